//! Receive fast path for DATA: the next TSN, if its message is readable at once, or if it continues
//! the only incomplete message. While no TSN is missing, no message is waiting, tracing is
//! disabled, and the window is ample, most checks are not needed. The same checks are unnecessary
//! for complete messages after a gap. The result must equal that of [`Receiver::sort_data`], which
//! handles all other cases.

use anabranch_transport::{Nanos, Trace};
use anabranch_wire::chunk::{Data, kind};
use anabranch_wire::packet::{Chunks, Frame};

use super::Receiver;
use super::chunk::{ChunkView, number_of};
use super::message::{MessageBytes, ReceivedMessage, ReceivedPart};
use super::ordering::Whole;
use super::ready_queue::Deliverable;
use crate::config::Config;
use crate::fast_path::FAST_PATH_PROBES;

/// Whether the settings allow the fast path. Other settings need checks for every chunk.
#[inline(always)]
pub(super) fn may_come(config: &Config) -> bool {
    config.partial_delivery_point.is_none()
}

/// Remainder of a packet after the chunks processed by the fast path.
pub(crate) enum ReceiveOutcome<'a> {
    /// End of the packet.
    End,
    /// The next chunk is malformed.
    Broken,
    /// The next chunk needs the slow path.
    Other(Frame<'a>),
}

impl Receiver {
    /// Processes the chunks of a packet, first the DATA `frame` and then `rest`, until a chunk
    /// needs the slow path. Returns the number of processed chunks, and the remainder.
    #[inline(always)]
    pub(crate) fn take_run<'a>(
        &mut self,
        now: Nanos,
        frame: Frame<'a>,
        rest: &mut Chunks<'a>,
        trace: &Trace,
    ) -> (usize, ReceiveOutcome<'a>) {
        // The very first DATA has different SACK timing.
        if !self.is_undisturbed(trace) || self.tracker.cumulative().next() == self.initial_tsn {
            return (0, ReceiveOutcome::Other(frame));
        }
        match self.tracker.has_gaps() {
            false => self.take_chunks::<false>(now, frame, rest),
            true => self.take_chunks_behind_gap(now, frame, rest),
        }
    }

    #[cold] // or the caller's loop is no longer inlined
    #[inline(never)]
    fn take_chunks_behind_gap<'a>(
        &mut self,
        now: Nanos,
        frame: Frame<'a>,
        rest: &mut Chunks<'a>,
    ) -> (usize, ReceiveOutcome<'a>) {
        self.take_chunks::<true>(now, frame, rest)
    }

    /// Processes chunks in the order of their TSNs or, if `GAPS`, after missing TSNs.
    #[inline(always)]
    fn take_chunks<'a, const GAPS: bool>(
        &mut self,
        now: Nanos,
        mut frame: Frame<'a>,
        rest: &mut Chunks<'a>,
    ) -> (usize, ReceiveOutcome<'a>) {
        let mut last = self.tracker.cumulative();
        let (mut taken, mut wholes) = (0, 0);
        let (mut user_data, mut bytes_taken) = (0, 0);
        // Readable data does not occupy the window, unless the profile counts it.
        let counts_wholes = self.profile.window_counts_deliverable || GAPS;
        let mut ample = self.window.ample_window();
        // These conditions stay true, because complete messages and middle fragments do not change
        // them.
        let takes_wholes = self.reassembly.is_empty() && self.long.is_empty();
        let takes_wholes = takes_wholes && (GAPS || self.order.has_nothing_waiting());
        let least = self.nearly_full();
        let next = loop {
            let Ok(data) = Data::view(&frame) else {
                break ReceiveOutcome::Other(frame);
            };
            let length = data.user_data.len();
            let bytes = self.profile.rwnd_counts.bytes(length);
            if (data.tsn != last.next() && !GAPS)
                || length == 0
                || data.beginning != data.ending
                || data.immediate
                || data.stream_id >= self.streams
                || !ample.take(bytes, length)
            {
                break ReceiveOutcome::Other(frame);
            }
            let fills = 8 * length >= least;
            let kept = if counts_wholes || !data.beginning {
                bytes
            } else {
                0
            };
            // A buffered message must nearly fill its packet, because it is stored as a slice. The
            // slow path copies other messages.
            let is_taken = if GAPS {
                takes_wholes && fills && self.take_waiting(now, &data, &frame)
            } else if data.beginning {
                takes_wholes && self.take_whole(&data, kept, fills, &frame)
            } else {
                fills && self.take_piece(&data, &frame)
            };
            if !is_taken {
                break ReceiveOutcome::Other(frame);
            }
            last = data.tsn;
            taken += 1;
            wholes += u64::from(data.beginning);
            user_data += length;
            bytes_taken += kept;
            match rest.next_frame() {
                None => break ReceiveOutcome::End,
                Some(Ok(next)) => frame = next,
                Some(Err(_)) => break ReceiveOutcome::Broken,
            }
            if frame.kind != kind::DATA {
                break ReceiveOutcome::Other(frame);
            }
        };
        if taken > 0 {
            if !GAPS {
                self.tracker.advance(last);
                self.statistics.messages += wholes;
            }
            self.sack.saw_data();
            self.window.take_over(bytes_taken, user_data, taken);
            self.sliced += user_data;
            self.statistics.chunks += taken as u64;
            self.statistics.bytes += user_data as u64;
        }
        (taken, next)
    }

    /// Buffers a complete message that follows missing TSNs. Returns `false` if the slow path must
    /// process it, for example because it fills the gap.
    #[inline(always)]
    fn take_waiting(&mut self, now: Nanos, data: &Data<&[u8]>, frame: &Frame<'_>) -> bool {
        let (stream, number) = (data.stream_id, number_of(data.ssn));
        if !data.beginning
            || data.unordered
            || !self.tracker.leaves_gap(data.tsn)
            || !self.order.may_wait(stream, number)
        {
            return false;
        }
        self.tracker.insert(data.tsn);
        let message = ReceivedMessage {
            stream,
            ppid: data.ppid,
            unordered: false,
            ssn: data.ssn,
            tsn: data.tsn,
            payload: MessageBytes::One(Data::slice(frame)),
        };
        self.order.wait_in_order(Whole {
            message,
            since: now,
            number,
            compact: true,
        });
        true
    }

    /// Whether the state of the receiver permits the fast path.
    #[inline(always)]
    fn is_undisturbed(&self, trace: &Trace) -> bool {
        self.common
            && trace.wants_only(FAST_PATH_PROBES)
            && self.held.is_off()
            && self.unrecorded.is_empty()
    }

    /// Delivers a complete message if it is readable at once.
    #[inline(always)]
    fn take_whole(
        &mut self,
        data: &Data<&[u8]>,
        bytes: u64,
        compact: bool,
        frame: &Frame<'_>,
    ) -> bool {
        if !data.unordered && !self.order.passes(data.stream_id, data.ssn) {
            return false;
        }
        self.ready.push_back(Deliverable {
            part: ReceivedPart {
                stream: data.stream_id,
                tsn: data.tsn,
                ppid: data.ppid,
                unordered: data.unordered,
                ssn: data.ssn,
                begins: true,
                ends: true,
                payload: MessageBytes::One(Data::slice(frame)),
            },
            bytes,
            preceding: self.preceding,
            compact,
        });
        true
    }

    /// Appends a fragment to the only incomplete message, if it is neither the first nor the last
    /// fragment.
    #[inline(always)]
    fn take_piece(&mut self, data: &Data<&[u8]>, frame: &Frame<'_>) -> bool {
        let Some(run) = self.reassembly.only(&ChunkView::of_data(data)) else {
            return false;
        };
        run.append(data.tsn, data.ending, Data::slice(frame));
        true
    }
}

#[cfg(test)]
mod tests {
    use anabranch_wire::encode::Encode;
    use anabranch_wire::extension::{ForwardTsn, SkippedStream};
    use anabranch_wire::packet::CommonHeader;
    use anabranch_wire::{PacketBuilder, Ssn, Tsn};
    use bytes::{Bytes, BytesMut};

    use super::*;
    use crate::profile::Profile;

    /// Random number generator with the same results on all platforms.
    struct Draw(u64);

    impl Draw {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 20) % bound
        }
    }

    /// Processes the chunks of a packet, by the fast path if `short`. Returns whether the fast path
    /// processed all of them.
    fn receive(
        rx: &mut Receiver,
        now: Nanos,
        packet: &Bytes,
        short: bool,
        trace: &mut Trace,
    ) -> bool {
        rx.on_packet_begin(packet.len() + 12);
        let mut rest = Chunks::bare(packet);
        let mut next = rest.next_frame().and_then(Result::ok);
        if let Some(frame) = next.filter(|_| short) {
            next = match rx.take_run(now, frame, &mut rest, trace) {
                (_, ReceiveOutcome::Other(frame)) => Some(frame),
                _ => None,
            };
        }
        let all = next.is_none();
        while let Some(frame) = next {
            let taken = rx.handle_frame(now, &frame, trace);
            assert!(taken.is_ok(), "it is whole");
            next = rest.next_frame().and_then(Result::ok);
        }
        rx.on_packet_end(now);
        all
    }

    /// State after a packet, as text: the SACK if one is due, the readable data if `reads`, and the
    /// receiver.
    fn left(rx: &mut Receiver, now: Nanos, reads: bool, trace: &mut Trace) -> String {
        let mut parts = Vec::new();
        while reads && let Some(part) = rx.poll_part() {
            parts.push(format!("{part:?}"));
        }
        let mut out = BytesMut::new();
        if rx.sack_due() {
            let header = CommonHeader {
                source_port: 1,
                destination_port: 2,
                verification_tag: 3,
            };
            let mut packet = PacketBuilder::new(&mut out, header, 600);
            rx.push_sack(now, &mut packet, trace).expect("it fits");
            packet.finish(false);
        }
        let stands = (rx.cumulative_tsn(), rx.a_rwnd(), rx.sack_deadline());
        format!("{stands:?} {:?} {out:?} {parts:?}", rx.statistics())
    }

    /// Simulates that the peer abandons the missing data up to a TSN, and all messages before a
    /// given number on some streams.
    fn give_up(
        now: Nanos,
        ends: &mut [Receiver; 2],
        traces: &mut [Trace; 2],
        draw: &mut Draw,
        ssns: &[Ssn],
    ) {
        let to = ends[0].cumulative_tsn().add(draw.below(6) as u32);
        let mut skipped = Vec::new();
        for (stream_id, ssn) in (0..).zip(ssns) {
            if draw.below(2) == 0 {
                let ssn = Ssn(ssn.0.wrapping_sub(1 + draw.below(8) as u16));
                skipped.push(SkippedStream { stream_id, ssn });
            }
        }
        let forward = ForwardTsn::new(to, &skipped);
        let [one, other] = [0, 1].map(|end| {
            let (rx, trace) = (&mut ends[end], &mut traces[end]);
            rx.handle_forward_tsn(now, &forward, trace)
        });
        assert_eq!(one, other);
    }

    /// Random messages of one or several chunks, on several streams and in full or shared packets.
    /// Some packets arrive late, twice or never, and some messages are abandoned.
    #[test]
    fn fast_path_leaves_what_the_slow_path_leaves() {
        let (mut behind_gaps, mut given_up) = (0, 0);
        for seed in 1..=300_u64 {
            let mut draw = Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let name = Profile::NAMES[draw.below(Profile::NAMES.len() as u64) as usize];
            let profile = Profile::by_name(name).expect("it is named");
            let config = Config::new(profile).with(|it| {
                it.receive_buffer = [8_000, 65_536][draw.below(2) as usize];
                it.delayed_sack = draw.below(2) == 0;
            });
            let mut tsn = Tsn(u32::MAX - 50);
            let mut ends = [0; 2].map(|_| Receiver::new(&config, tsn, 3));
            let mut traces = [Trace::default(), Trace::default()];
            let mut ssns = [Ssn(u16::MAX - 20); 3];
            for end in &mut ends {
                for (stream, ssn) in (0..).zip(ssns) {
                    end.order
                        .pass(stream, number_of(Ssn(ssn.0.wrapping_sub(1))));
                }
            }
            let gives_up = draw.below(3) == 0;
            for end in &mut ends {
                end.expect_abandoned(gives_up);
            }
            let (streams, lost, small) = (1 + draw.below(3), draw.below(25), draw.below(40));
            let mut late: Vec<Bytes> = Vec::new();
            for turn in 0..200 {
                let mut packet = BytesMut::new();
                let bundled = draw.below(100) < small;
                let pieces = if draw.below(20) == 0 { 2 } else { 1 };
                for piece in 0..if bundled { 2 } else { pieces } {
                    let stream = draw.below(streams) as usize;
                    let split = !bundled && pieces == 2;
                    let data = Data {
                        tsn,
                        stream_id: if split { 0 } else { stream as u16 },
                        ssn: ssns[if split { 0 } else { stream }],
                        ppid: turn,
                        unordered: !split && draw.below(30) == 0,
                        beginning: !split || piece == 0,
                        ending: !split || piece == 1,
                        immediate: draw.below(40) == 0,
                        user_data: Bytes::from(vec![turn as u8; if bundled { 100 } else { 1_000 }]),
                    };
                    if data.ending && !data.unordered {
                        let ssn = &mut ssns[usize::from(data.stream_id)];
                        *ssn = ssn.next();
                    }
                    tsn = tsn.next();
                    if split {
                        // Each fragment is as long as a packet permits.
                        let mut own = BytesMut::new();
                        data.encode(&mut own);
                        late.push(own.freeze());
                    } else {
                        data.encode(&mut packet);
                    }
                }
                let mut come = Vec::new();
                if draw.below(100) < lost {
                    late.push(packet.freeze());
                } else {
                    if draw.below(30) == 0 {
                        late.push(packet.clone().freeze());
                    }
                    come.push(packet.freeze());
                }
                if !late.is_empty() && draw.below(4) == 0 {
                    let at = draw.below(late.len() as u64) as usize;
                    come.push(late.remove(at));
                }
                let (now, reads) = (1_000_000 * Nanos::from(turn), draw.below(5) > 0);
                if gives_up && draw.below(12) == 0 {
                    give_up(now, &mut ends, &mut traces, &mut draw, &ssns);
                    given_up += 1;
                }
                for packet in come.iter().filter(|packet| !packet.is_empty()) {
                    let had_gaps = ends[0].tracker.has_gaps();
                    let [short, long] = [0, 1].map(|end| {
                        let (rx, trace) = (&mut ends[end], &mut traces[end]);
                        let all = receive(rx, now, packet, end == 0, trace);
                        behind_gaps += u32::from(end == 0 && all && had_gaps);
                        left(rx, now, reads, trace)
                    });
                    assert_eq!(short, long, "seed {seed}, turn {turn}, {name}");
                }
            }
        }
        assert!(
            behind_gaps > 2_000 && given_up > 1_000,
            "{behind_gaps} {given_up}"
        );
    }
}

//! The common chunk: the next TSN, of a message that can be read at once or a further piece of the one that is coming.
//!
//! While nothing is missing, nothing waits, nobody records what is common, and there is plenty of room, most questions that DATA raises
//! have their answer before they are asked. What is done here is what [`Receiver::sort_data`] would do, no less; where any answer is another, that does it.

use anabranch_transport::Trace;
use anabranch_wire::chunk::{Data, kind};
use anabranch_wire::packet::{Chunks, Frame};

use super::Receiver;
use super::delivery::Readable;
use super::message::{MessageBytes, ReceivedPart};
use super::room::Source;
use crate::config::Config;
use crate::path::PathId;
use crate::uncommon::UNCOMMON;

/// Whether the settings leave room for common chunks: what they ask for else is asked of every chunk.
#[inline(always)]
pub(super) fn may_come(config: &Config) -> bool {
    config.partial_delivery_point.is_none()
}

/// What comes in a packet behind common chunks.
pub(crate) enum Next<'a> {
    /// Nothing.
    End,
    /// Something that is no chunk.
    Broken,
    /// Another chunk.
    Other(Frame<'a>),
}

impl Receiver {
    /// Takes the chunks of a packet, the DATA `frame` and then `rest`, as long as they are common ones. Gives how many were taken, and what
    /// comes next.
    #[inline(always)]
    pub(crate) fn take_run<'a>(
        &mut self,
        mut frame: Frame<'a>,
        rest: &mut Chunks<'a>,
        from: PathId,
        trace: &Trace,
    ) -> (usize, Next<'a>) {
        if self.tracker.has_gaps() || !self.is_undisturbed(trace) {
            return (0, Next::Other(frame));
        }
        let mut last = self.tracker.cumulative();
        let (mut taken, mut wholes) = (0, 0);
        let (mut user_data, mut bytes_taken) = (0, 0);
        // What can be read counts as read, unless the profile counts it.
        let counts_wholes = self.profile.window_counts_deliverable;
        let mut plenty = self.window.plenty();
        // Neither a whole message nor a piece that goes on changes any of these.
        let takes_wholes = self.reassembly.is_empty() && self.long.is_empty();
        let takes_wholes = takes_wholes && self.order.waits_for_nothing();
        let least = self.nearly_full();
        let next = loop {
            let Ok(data) = Data::view(&frame) else {
                break Next::Other(frame);
            };
            let length = data.user_data.len();
            let bytes = self.profile.rwnd_counts.bytes(length);
            if data.tsn != last.next()
                || length == 0
                || data.beginning != data.ending
                || data.immediate
                || data.stream_id >= self.streams
                || data.tsn == self.initial_tsn
                || !plenty.take(bytes, length)
            {
                break Next::Other(frame);
            }
            let fills = 8 * length >= least;
            let kept = if counts_wholes || !data.beginning {
                bytes
            } else {
                0
            };
            let is_taken = if data.beginning {
                takes_wholes && self.take_whole(&data, kept, fills, &frame)
            } else {
                // What waits stays a slice only of a packet that it nearly fills; the others are copied where they always are.
                fills && self.take_piece(&data, &frame)
            };
            if !is_taken {
                break Next::Other(frame);
            }
            last = data.tsn;
            taken += 1;
            wholes += u64::from(data.beginning);
            user_data += length;
            bytes_taken += kept;
            match rest.next_frame() {
                None => break Next::End,
                Some(Ok(next)) => frame = next,
                Some(Err(_)) => break Next::Broken,
            }
            if frame.kind != kind::DATA {
                break Next::Other(frame);
            }
        };
        if taken > 0 {
            self.from = from;
            self.tracker.advance(last);
            self.sack.saw_data();
            self.window.take_over(bytes_taken, user_data, taken);
            self.sliced += user_data;
            self.statistics.messages += wholes;
            self.statistics.chunks += taken as u64;
            self.statistics.bytes += user_data as u64;
        }
        (taken, next)
    }

    /// Whether nothing is asked of a chunk but where it belongs.
    #[inline(always)]
    fn is_undisturbed(&self, trace: &Trace) -> bool {
        self.common
            && trace.wants_only(UNCOMMON)
            && self.held.is_off()
            && self.unrecorded.is_empty()
    }

    /// A whole message, if it can be read at once.
    #[inline(always)]
    fn take_whole(
        &mut self,
        data: &Data<&[u8]>,
        bytes: u64,
        compact: bool,
        source: &impl Source,
    ) -> bool {
        if !data.unordered && !self.order.passes(data.stream_id, data.ssn) {
            return false;
        }
        self.ready.push_back(Readable {
            part: ReceivedPart {
                stream: data.stream_id,
                tsn: data.tsn,
                ppid: data.ppid,
                unordered: data.unordered,
                ssn: data.ssn,
                begins: true,
                ends: true,
                payload: MessageBytes::One(source.user_data()),
            },
            bytes,
            compact,
        });
        true
    }

    /// A piece that is neither the first nor the last of the only message that is not whole.
    #[inline(always)]
    fn take_piece(&mut self, data: &Data<&[u8]>, source: &impl Source) -> bool {
        let Some(run) = self.reassembly.only(data) else {
            return false;
        };
        run.append(data.with(source.user_data()));
        true
    }
}

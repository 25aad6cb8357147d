//! Traces computed by hand, on one path with segments of 1448 bytes (user data: 1432) and an MTU of
//! 1480 bytes.

use std::net::{IpAddr, Ipv4Addr};

use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Path, ProbeSet, Sample};
use anabranch_wire::chunk::{Chunk, GapAckBlock, OutgoingSack};
use anabranch_wire::{Checksum, CommonHeader, Packet, PacketBuilder};
use bytes::{Bytes, BytesMut};

use super::*;
use crate::config::{Config, SchedulerKind};
use crate::path::PathState;
use crate::profile::{FastRecovery, MaxBurst, Profile, RecoveryWaits, RetransmissionPath};

mod concurrent;
mod forward;
mod gap_sacks;
mod packets;
mod rack;
mod reductions;
mod several_paths;
mod timeouts;
mod window;
mod withdrawals;

const SEGMENT: u64 = 1448;
const MESSAGE: usize = 1432;

struct Rig {
    now: Nanos,
    sender: Sender,
    paths: Paths,
    trace: Trace,
    /// `sent`: offsets and paths of the sent TSNs in their order. `packets`: number of packets.
    sent: Vec<(u32, u8)>,
    packets: usize,
    start: Tsn,
}

fn config(profile: Profile) -> Config {
    Config {
        mtu: 1480,
        send_buffer: 1 << 30,
        ..Config::new(profile)
    }
}

fn path(last: u8) -> Path {
    Path::new(
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
        IpAddr::V4(Ipv4Addr::new(10, 0, 1, last)),
    )
}

impl Rig {
    fn new(config: &Config, start: u32) -> Self {
        let mut sender = Sender::new(config, Tsn(start));
        sender.set_peer(65536, 10);
        Self {
            now: 0,
            sender,
            paths: Paths::new(config, path(1), PathState::Active),
            trace: Trace::new(ProbeSet::NONE),
            sent: Vec::new(),
            packets: 0,
            start: Tsn(start),
        }
    }

    fn offer(&mut self, count: usize, length: usize) {
        for _ in 0..count {
            self.sender
                .send(self.now, vec![1; length].into(), &SendOptions::new())
                .expect("room in the send buffer");
        }
    }

    /// Sends all data that is permitted. Returns the offsets of the sent TSNs.
    fn drain(&mut self) -> Vec<u32> {
        let before = self.sent.len();
        while let Some(id) = self.sender.wants_to_send(self.now, &self.paths) {
            let header = CommonHeader {
                source_port: 1,
                destination_port: 2,
                verification_tag: 3,
            };
            let mut out = BytesMut::new();
            let limit = self.paths.get(id).max_packet;
            let mut packet = PacketBuilder::new(&mut out, header, limit);
            let added =
                self.sender
                    .fill(self.now, id, &mut packet, &mut self.paths, &mut self.trace);
            assert!(added > 0, "it wanted to send");
            packet.finish(true);
            assert!(out.len() <= limit);
            self.packets += 1;
            let out = out.freeze();
            let packet = Packet::parse(&out, Checksum::Verify).expect("our own packet");
            for raw in packet.chunks() {
                let Ok(Chunk::Data(data)) = Chunk::decode(raw.expect("a chunk")) else {
                    panic!("not DATA")
                };
                self.sent.push((data.tsn.distance_from(self.start), id.0));
            }
        }
        self.sent[before..].iter().map(|sent| sent.0).collect()
    }

    /// Processes a SACK of all TSNs below offset `next` and of the blocks (inclusive offsets).
    fn sack(&mut self, next: u32, blocks: &[(u32, u32)], a_rwnd: u32) -> SackOutcome {
        let cumulative = self.start.add(next).prev();
        let relative = |offset: u32| (offset + 1 - next) as u16;
        let blocks: Vec<GapAckBlock> = blocks
            .iter()
            .map(|&(a, b)| GapAckBlock {
                start: relative(a),
                end: relative(b),
            })
            .collect();
        let sack = OutgoingSack {
            cumulative_tsn_ack: cumulative,
            a_rwnd,
            gap_blocks: blocks.iter().copied(),
            duplicates: &[],
        };
        let sack = sack.to_sack();
        let (paths, trace) = (&mut self.paths, &mut self.trace);
        // Use the fast path if possible, like the association.
        let (now, sender) = (self.now, &mut self.sender);
        let common = sender.handle_fast_path_sack(now, &sack, paths, trace);
        let short = common.or_else(|| sender.handle_fast_path_gap_sack(now, &sack, paths, trace));
        short.unwrap_or_else(|| sender.handle_sack(now, &sack, paths, trace))
    }

    fn sack_and_drain(&mut self, next: u32, blocks: &[(u32, u32)]) -> Vec<u32> {
        self.sack(next, blocks, 65536);
        self.drain()
    }

    fn cwnd(&self) -> u64 {
        self.paths.get(PathId(0)).cc.cwnd()
    }

    fn flight(&self) -> u64 {
        self.paths.get(PathId(0)).flightsize
    }

    fn probe(&mut self, probe: Probe) -> Vec<f64> {
        self.trace
            .drain()
            .filter(|sample: &Sample| sample.probe == probe)
            .map(|sample| sample.value)
            .collect()
    }
}

fn ns2_era() -> Profile {
    let mut profile = Profile::ns2();
    profile.missing_reports = 4;
    profile.initial_window = crate::profile::InitialCwnd::Units(2);
    profile.initial_ssthresh = crate::profile::WindowSize::Bytes(65_536);
    profile
}

/// Loss of one segment as in Sections V-B and V-C.2 of the GEO paper. When the loss is detected,
/// cwnd is 9 segments. Each of the first three SACKs that report the gap releases a new segment,
/// and the fourth the retransmission. No further segment is sent until the flight is below the
/// reduced cwnd of 4.5 segments. After the recovery cwnd grows to 5.5 and then to 6.5 segments.
#[test]
fn the_loss_of_segment_8_goes_as_the_paper_prints_it() {
    for profile in [Profile::rfc2960(), ns2_era()] {
        let name = profile.name;
        let mut rig = Rig::new(&config(profile), 1000);
        rig.offer(100, MESSAGE);
        assert_eq!(rig.drain(), [0, 1], "{name}: two segments to begin with");
        // Slow start with one SACK per segment: each SACK releases two new segments.
        for acked in 1..=7u32 {
            assert_eq!(
                rig.sack_and_drain(acked, &[]),
                [2 * acked, 2 * acked + 1],
                "{name}"
            );
        }
        assert_eq!(
            (rig.cwnd(), rig.flight()),
            (9 * SEGMENT, 9 * SEGMENT),
            "{name}: 13032 bytes"
        );
        // Segment 7 (the eighth) is lost here; 8..=15 arrive.
        assert_eq!(rig.sack_and_drain(7, &[(8, 8)]), [16], "{name}");
        assert_eq!(rig.sack_and_drain(7, &[(8, 9)]), [17], "{name}");
        assert_eq!(rig.sack_and_drain(7, &[(8, 10)]), [18], "{name}");
        assert_eq!(rig.cwnd(), 13032, "{name}");
        assert_eq!(
            rig.sack_and_drain(7, &[(8, 11)]),
            [7],
            "{name}: the fourth report retransmits"
        );
        assert_eq!(
            (rig.cwnd(), rig.flight()),
            (6516, 8 * SEGMENT),
            "{name}: flight 11584"
        );
        for highest in 12..=14u32 {
            assert_eq!(
                rig.sack_and_drain(7, &[(8, highest)]),
                [] as [u32; 0],
                "{name}: {highest}"
            );
        }
        assert_eq!(
            rig.sack_and_drain(7, &[(8, 15)]),
            [19],
            "{name}: flight 4 segments below 4.5"
        );
        for highest in 16..=18u32 {
            assert_eq!(
                rig.sack_and_drain(7, &[(8, highest)]),
                [highest + 4],
                "{name}"
            );
        }
        assert_eq!((rig.cwnd(), rig.flight()), (6516, 5 * SEGMENT), "{name}");
        // The retransmission arrives, and the SACK acknowledges 18 segments.
        assert_eq!(
            rig.sack_and_drain(19, &[]),
            [23, 24],
            "{name}: two new segments"
        );
        assert_eq!(rig.cwnd(), 7964, "{name}: slow start at cwnd == ssthresh");
        for (turn, acked) in (20..=24u32).enumerate() {
            rig.sack_and_drain(acked, &[]);
            let pba = rig.paths.get(PathId(0)).cc.partial_bytes_acked();
            assert_eq!(
                (rig.cwnd(), pba),
                (7964, (turn as u64 + 1) * SEGMENT),
                "{name}"
            );
        }
        rig.sack_and_drain(25, &[]);
        assert_eq!(rig.cwnd(), 9412, "{name}");
    }
}

/// If different SACKs detect two losses of a window, only RFC 2960 reduces cwnd for each of them.
#[test]
fn two_losses_of_one_window() {
    let windows = |fast_recovery: FastRecovery| {
        let mut profile = Profile::rfc2960();
        profile.fast_recovery = fast_recovery;
        profile.initial_window = crate::profile::InitialCwnd::Units(16);
        let mut rig = Rig::new(&config(profile), 1);
        rig.offer(100, MESSAGE);
        rig.drain();
        let mut cuts = vec![rig.cwnd()];
        // Segments 0 and 3 are lost.
        for blocks in [
            &[(1, 1)][..],
            &[(1, 2)],
            &[(1, 2), (4, 4)],
            &[(1, 2), (4, 5)],
            &[(1, 2), (4, 6)],
            &[(1, 2), (4, 7)],
        ] {
            rig.sack_and_drain(0, blocks);
            if cuts.last() != Some(&rig.cwnd()) {
                cuts.push(rig.cwnd());
            }
        }
        assert!(
            rig.sent.iter().filter(|sent| sent.0 == 0).count() == 2,
            "{fast_recovery:?}: 0 went twice"
        );
        cuts
    };
    assert_eq!(
        windows(FastRecovery::None),
        [16 * SEGMENT, 8 * SEGMENT, 4 * SEGMENT]
    );
    assert_eq!(
        windows(FastRecovery::ExitPoint),
        [16 * SEGMENT, 8 * SEGMENT]
    );
    assert_eq!(
        windows(FastRecovery::RecoveryPoint),
        [16 * SEGMENT, 8 * SEGMENT]
    );
}

/// HTNA: a SACK that newly acknowledges only TSNs below a gap is no report of this gap.
#[test]
fn only_newly_acknowledged_tsns_above_a_hole_report_it() {
    let reports = |profile: Profile| {
        let mut rig = Rig::new(
            &Config {
                profile,
                ..config(Profile::rfc9260())
            },
            1,
        );
        rig.paths.get_mut(PathId(0)).cc.on_mtu(1448);
        rig.offer(10, 100);
        rig.drain();
        // Segment 9 arrives first, then segments 2 and 3; segment 1 is missing throughout.
        rig.sack(1, &[(9, 9)], 65536);
        rig.sack(1, &[(2, 2), (9, 9)], 65536);
        rig.sack(1, &[(2, 3), (9, 9)], 65536);
        (
            rig.sender.outstanding.get(Tsn(2)).unwrap().missing_reports,
            rig.sender.outstanding.get(Tsn(7)).unwrap().missing_reports,
        )
    };
    let mut off = Profile::rfc9260();
    off.htna = crate::profile::Htna::Off;
    assert_eq!(reports(Profile::rfc9260()), (3, 1));
    assert_eq!(reports(off), (3, 3));
}

#[test]
fn fast_recovery_holds_cwnd_until_the_exit_point_and_partial_advances_report_holes() {
    let mut profile = Profile::rfc9260();
    profile.initial_window = crate::profile::InitialCwnd::Units(20);
    profile.max_burst_applies = MaxBurst::Off;
    let mut grown = Rig::new(&config(profile.clone()), 1);
    grown.offer(100, MESSAGE);
    grown.drain();
    for highest in 1..=3 {
        grown.sack_and_drain(0, &[(1, highest)]);
    }
    // cwnd grows in slow start to 23 segments until fast recovery halves it (§7.2.1). The exit
    // point is the 24th segment, because four segments were sent after the first 20.
    assert_eq!(
        (grown.cwnd(), grown.sender.recovery_until),
        (23 * SEGMENT / 2, Some(Tsn(24)))
    );
    profile.growth_needs_cumulative_advance = true;
    let mut rig = Rig::new(&config(profile), 1);
    rig.offer(100, MESSAGE);
    assert_eq!(rig.drain().len(), 20);
    // 0 and 5 are lost; 1, 2 and 3 report 0 as missing.
    for highest in 1..=3 {
        rig.sack_and_drain(0, &[(1, highest)]);
    }
    assert_eq!(
        (rig.cwnd(), rig.sender.recovery_until),
        (10 * SEGMENT, Some(Tsn(22))),
        "two more went on duplicates"
    );
    for highest in 6..=15 {
        rig.sack_and_drain(0, &[(1, 4), (6, highest)]);
    }
    assert_eq!(rig.sent.iter().filter(|sent| sent.0 == 5).count(), 2);
    // 0 arrives, but a partial acknowledgment does not increase cwnd.
    rig.sack_and_drain(5, &[(6, 15)]);
    assert_eq!(rig.cwnd(), 10 * SEGMENT);
    // After the exit point cwnd grows again, in slow start at cwnd == ssthresh.
    let flight = rig.flight();
    assert!(flight >= rig.cwnd());
    rig.sack_and_drain(22, &[]);
    assert_eq!(
        (rig.cwnd(), rig.sender.recovery_until),
        (11 * SEGMENT, None)
    );
}

/// A lone packet is retransmitted after T3, and its SACK takes the fast path. The SACK yields no
/// round-trip time (Karn's rule, RFC 9260 §6.3.1 C5), even if every chunk may be measured.
/// Afterwards new data is sent: two segments, because cwnd has grown from one segment.
#[test]
fn a_lone_packet_that_went_again_is_acknowledged() {
    let mut profile = Profile::rfc9260();
    profile.rtt_once_per_round_trip = false;
    profile.retransmissions_wait_for_sack = true;
    let mut rig = Rig::new(&config(profile), u32::MAX - 1);
    rig.offer(1, MESSAGE);
    assert_eq!(rig.drain(), [0]);
    rig.now = rig.sender.next_deadline(&rig.paths).expect("T3 runs");
    rig.sender
        .handle_t3(rig.now, PathId(0), &mut rig.paths, &mut rig.trace);
    assert_eq!(rig.drain(), [0]);
    rig.now += 500 * MILLISECOND;
    assert!(rig.sack_and_drain(1, &[]).is_empty());
    assert_eq!(rig.paths.get(PathId(0)).rto.srtt(), None);
    assert!(!rig.sender.timed_out);
    rig.offer(4, MESSAGE);
    assert_eq!(rig.drain(), [1, 2]);
}

/// No SACK arrives: T3-rtx causes one retransmission and doubles the RTO. Then each SACK releases
/// further packets.
#[test]
fn a_timeout_marks_all_and_sends_one_packet() {
    for profile in [Profile::rfc9260(), Profile::rfc2960(), ns2_era()] {
        let name = profile.name;
        let mut rig = Rig::new(&config(profile), u32::MAX - 1);
        rig.trace = Trace::new(ProbeSet::ALL);
        rig.offer(4, MESSAGE);
        let first = rig.drain();
        assert!(first.len() >= 2, "{name}");
        let deadline = rig.sender.next_deadline(&rig.paths).expect("T3 runs");
        assert_eq!(deadline, rig.paths.get(PathId(0)).rto.rto(), "{name}");
        rig.now = deadline - 1;
        assert_eq!(
            rig.sender
                .handle_t3(rig.now, PathId(0), &mut rig.paths, &mut rig.trace),
            T3Outcome::Nothing
        );
        rig.now = deadline;
        let outcome = rig
            .sender
            .handle_t3(rig.now, PathId(0), &mut rig.paths, &mut rig.trace);
        assert_eq!(outcome, T3Outcome::Marked { count_error: true }, "{name}");
        assert_eq!(rig.drain(), [0], "{name}: one packet");
        assert_eq!(
            (rig.cwnd(), rig.flight()),
            (
                if name == "rfc2960" {
                    SEGMENT
                } else {
                    rig.cwnd()
                },
                SEGMENT
            ),
            "{name}"
        );
        assert_eq!(
            rig.sender.next_deadline(&rig.paths),
            Some(3 * deadline),
            "{name}: RTO doubled"
        );
        assert_eq!(rig.probe(Probe::Timeout), [0.0], "{name}");
        rig.now += 500 * MILLISECOND;
        // The retransmission arrives. Slow start from one segment permits two segments in flight;
        // retransmissions are sent first.
        assert_eq!(rig.sack_and_drain(1, &[])[0], 1, "{name}");
        assert_eq!(
            rig.paths.get(PathId(0)).rto.srtt(),
            None,
            "{name}: Karn's rule"
        );
        rig.sack_and_drain(rig.sender.next_tsn().distance_from(rig.start), &[]);
        rig.sack_and_drain(4, &[]);
        assert!(rig.sender.is_drained(), "{name}");
        assert_eq!(
            (
                rig.flight(),
                rig.paths.get(PathId(0)).marked_bytes,
                rig.sender.rwnd_in_flight
            ),
            (0, 0, 0),
            "{name}"
        );
        assert_eq!(
            rig.sender.next_deadline(&rig.paths),
            None,
            "{name}: T3 stopped"
        );
    }
}

#[test]
fn round_trips_are_measured_once_at_a_time() {
    let mut rig = Rig::new(&config(Profile::rfc2960()), 1);
    rig.offer(50, MESSAGE);
    rig.drain();
    rig.now = 600 * MILLISECOND;
    rig.sack_and_drain(1, &[]);
    assert_eq!(rig.paths.get(PathId(0)).rto.srtt(), Some(600 * MILLISECOND));
    rig.now = 700 * MILLISECOND;
    rig.sack_and_drain(2, &[]); // 1 was sent at 0 too, but 0 was the one timed
    assert_eq!(rig.paths.get(PathId(0)).rto.srtt(), Some(600 * MILLISECOND));
    rig.now = 1120 * MILLISECOND; // 2 was sent at 600 and is timed: 520 ms
    rig.sack_and_drain(3, &[]);
    assert_eq!(rig.paths.get(PathId(0)).rto.srtt(), Some(590 * MILLISECOND));
}

#[test]
fn unsent_tsns_cannot_be_acknowledged_and_old_sacks_are_ignored() {
    let mut rig = Rig::new(&config(Profile::rfc9260()), 1);
    rig.offer(3, MESSAGE);
    rig.drain();
    assert!(rig.sack(4, &[], 65536).protocol_violation);
    assert!(rig.sack(0, &[(2, 3)], 65536).protocol_violation);
    assert_eq!(rig.flight(), 3 * SEGMENT);
    assert!(rig.sack(2, &[], 65536).cumulative_advanced);
    assert!(rig.sack(1, &[], 65536).stale);
    assert_eq!(rig.flight(), SEGMENT);
}

#[test]
fn sends_that_are_refused() {
    let mut rig = Rig::new(
        &Config {
            send_buffer: 1000,
            ..config(Profile::rfc9260())
        },
        1,
    );
    let mut send = |stream, length| {
        let message = Bytes::from(vec![0; length]);
        rig.sender.send(0, message, &SendOptions::on(stream))
    };
    assert_eq!(send(0, 0), Err(SendError::Empty));
    assert_eq!(
        send(10, 1),
        Err(SendError::NoSuchStream {
            stream: 10,
            streams: 10
        })
    );
    assert_eq!(send(9, 5000), Ok(()), "an empty buffer takes any message");
    assert_eq!(send(0, 1), Err(SendError::BufferFull));
    assert_eq!(rig.sender.unsent_bytes(), 5000);
}

#[test]
fn idle_time_shrinks_the_window() {
    let mut profile = Profile::rfc9260();
    profile.initial_window = crate::profile::InitialCwnd::Units(20);
    let mut rig = Rig::new(
        &Config {
            scheduler: SchedulerKind::Fcfs,
            ..config(profile)
        },
        1,
    );
    rig.offer(1, MESSAGE);
    rig.drain();
    rig.now = 500 * MILLISECOND;
    rig.sack(1, &[], 65536);
    rig.now = 10 * SECOND;
    rig.offer(1, MESSAGE);
    rig.drain();
    assert_eq!(rig.cwnd(), 4 * SEGMENT);
}

/// RFC 9260 §7.2.4 (3): at the start of fast recovery one packet ignores cwnd; later losses wait
/// for cwnd. In RFC 4960 each SACK that finds a loss permits one packet. With `paced`, later losses
/// wait if packets are paced, by the setting or by a congestion control that computes a rate.
#[test]
fn losses_found_in_fast_recovery_wait_for_cwnd() {
    let sent_again = |waits: RecoveryWaits, pacing: Option<f64>| {
        let mut profile = Profile::rfc9260();
        profile.fast_retransmit_in_recovery_waits = waits;
        profile.growth_needs_cumulative_advance = true;
        profile.initial_window = crate::profile::InitialCwnd::Units(40);
        profile.max_burst_applies = MaxBurst::Off;
        let config = config(profile).with(|it| it.pacing = pacing);
        // No packet is paced before the first RTT measurement, but only the setting counts.
        let mut rig = Rig::new(&config, 1);
        rig.offer(40, MESSAGE);
        rig.drain();
        // Segments 0 and 5 of 40 are lost. cwnd falls to 20 segments, far below the flight.
        for highest in 1..=4 {
            rig.sack_and_drain(0, &[(1, highest)]);
        }
        for highest in 6..=8 {
            rig.sack_and_drain(0, &[(1, 4), (6, highest)]);
        }
        assert!(rig.flight() > rig.cwnd(), "{}", rig.flight() / SEGMENT);
        let again = |number: u32| rig.sent.iter().filter(|sent| sent.0 == number).count() - 1;
        (again(0), again(5))
    };
    let (waits, goes) = ((1, 0), (1, 1));
    assert_eq!(sent_again(RecoveryWaits::Always, None), waits);
    assert_eq!(sent_again(RecoveryWaits::Never, None), goes);
    assert_eq!(sent_again(RecoveryWaits::Paced, None), goes);
    assert_eq!(sent_again(RecoveryWaits::Paced, Some(1.25)), waits);
    assert_eq!(sent_again(RecoveryWaits::Never, Some(1.25)), goes);
}

/// RFC 9260 §6.3.1 C5: the acknowledgment of a TSN yields no round-trip time if an earlier TSN was
/// retransmitted in the meantime.
#[test]
fn a_retransmission_cancels_the_measurement_of_later_tsns() {
    for cancels in [true, false] {
        let mut profile = Profile::rfc9260();
        profile.retransmission_cancels_rtt = cancels;
        profile.loss_cancels_rtt = false;
        let mut rig = Rig::new(&config(profile), 1);
        rig.offer(4, MESSAGE);
        rig.drain();
        // Segment 0 is acknowledged, which yields a measurement. The next new segment is timed, and
        // the earlier segment 1 is retransmitted.
        rig.sack(1, &[], 65536);
        rig.offer(2, MESSAGE);
        rig.now += 1;
        rig.drain();
        let timed = |rig: &Rig| rig.paths.get(PathId(0)).timed;
        assert_eq!(timed(&rig), Some(Tsn(5)));
        for blocks in [&[(2, 2)][..], &[(2, 3)], &[(2, 3), (5, 5)]] {
            rig.sack_and_drain(1, blocks);
        }
        assert_eq!(rig.sent.iter().filter(|sent| sent.0 == 1).count(), 2);
        assert_eq!(timed(&rig).is_none(), cancels);
    }
}

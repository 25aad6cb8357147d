//! Accurate ECN (RFC 9768) in single acknowledgements: options and their space, acknowledgements of
//! acknowledgements, and acknowledgements that report marks without new data.

use crate::accurate_ecn::{
    MSS, ace, acknowledge, client, config, counters, hand, hand_data, hand_options, next, of_ace,
    parse, server, transfer,
};
use crate::common::{Fate, Line};

use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_congestion::{AckSample, Algorithm, CongestionControl, LossCause, Requirement};
use anabranch_tcp::profile::{InitialWindow, RecoveryKind};
use anabranch_tcp::{Connection, Event, Failure};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Ecn, Nanos};
use anabranch_wire::SeqNumber;
use anabranch_wire::tcp::{Flags, Options, SackBlock, Segment, Timestamps};

/// Passes ten bytes of data with the sequence number `number` to a server.
fn data(end: &mut Connection, ecn: Ecn, number: u32) {
    let flags = Flags::ACK | of_ace(5);
    hand_data(end, false, ecn, flags, (number, 1001), b"ten bytes.");
}

fn sack_blocks(segment: &Segment) -> usize {
    segment.header.options.sack_blocks.len()
}

/// Two SACK blocks have precedence over the counters: with timestamps there is space for two
/// counters, but not for the third (§3.2.3.3).
#[test]
fn two_sack_blocks_leave_space_for_two_counters() {
    let mut both = config(true);
    both.profile.timestamps = true;
    let mut end = server(both, 7);
    acknowledge(&mut end, 2, 1001);
    // All three counters change, and then two gaps begin.
    let mut seen = Vec::new();
    for (field, number) in [
        (Ecn::Ect0, 8),
        (Ecn::Ce, 18),
        (Ecn::Ect1, 28),
        (Ecn::Ect0, 48),
        (Ecn::Ce, 68),
        (Ecn::Ect1, 78),
        (Ecn::Ect0, 38),
    ] {
        data(&mut end, field, number);
        let (answer, _) = next(&mut end).expect("an acknowledgement");
        assert!(answer.header.options.timestamps.is_some());
        let count = counters(&answer).map(|it| it.iter().flatten().count());
        seen.push((count, sack_blocks(&answer)));
    }
    assert_eq!(
        seen,
        [
            (Some(1), 0),
            (Some(2), 0),
            (Some(3), 0),
            // There is no space for all three counters, and only the first has changed since the
            // last option.
            (Some(1), 1),
            (Some(2), 2),
            // The third counter has changed, so the option would have to contain all three, for
            // which there is no space.
            (None, 2),
            (None, 1),
        ]
    );
}

/// A transfer with SACK blocks, AccECN options and timestamps: segments 1, 3 and 5 are lost, and 6
/// is marked. Two SACK blocks have precedence over the AccECN option (§3.2.3.3).
#[test]
fn sack_blocks_have_precedence_over_the_option() {
    let mut both = config(true);
    both.profile.timestamps = true;
    both.profile.initial_window = InitialWindow::Segments(10);
    let mut world = transfer(both.clone(), both, 60);
    world.fate = Box::new(|end, number, _| match (end, number) {
        (0, 3 | 5 | 7) => Fate::Drop,
        (0, 8) => Fate::Mark,
        _ => Fate::Pass,
    });
    world.run_until(20 * SECOND);
    // Acknowledgements sent while segment 1 is missing: those of segments 0, 2, 4, 6 and so on.
    let acknowledgements: Vec<_> = world.sent[1][1..]
        .iter()
        .map(|(_, packet)| parse(packet))
        .collect();
    let first = acknowledgements[0].header.acknowledgment_number;
    let blocks: Vec<_> = acknowledgements
        .iter()
        .take_while(|it| it.header.acknowledgment_number == first)
        .map(sack_blocks)
        .collect();
    assert_eq!(blocks[..4], [0, 1, 2, 2]);
    assert!(blocks[4..].iter().all(|&it| it == 2), "{blocks:?}");
    assert!(
        acknowledgements[..blocks.len()]
            .iter()
            .all(|it| counters(it).is_some())
    );
    assert!(blocks.len() > 6, "{blocks:?}");
    assert_eq!(world.ends[0].stats().marked_packets_reported, 1);
    assert_eq!(world.ends[0].stats().marked_bytes_reported, MSS - 12);
}

/// The option that tests the path does not fit in a segment full of data, so the first segment with
/// enough space carries it (§3.2.3.2.1).
#[test]
fn the_test_of_the_path_waits_for_space() {
    let mut end = client(true);
    let answer = Flags::SYN | Flags::ACK | of_ace(2);
    hand(&mut end, true, Ecn::NotEct, answer, (1000, 8));
    let sent: Vec<_> = std::iter::from_fn(|| next(&mut end)).collect();
    let options: Vec<_> = sent.iter().map(|(it, _)| counters(it)).collect();
    let all = Some([Some(1), Some(0), Some(1)]);
    assert_eq!(options[..3], [all, None, None]);
    let flags = Flags::ACK | of_ace(5);
    hand(&mut end, true, Ecn::NotEct, flags, (1001, 8 + 2 * 536));
    for expected in [all, None] {
        end.write_zeros(100).expect("open");
        let (data, _) = next(&mut end).expect("data");
        assert_eq!((data.payload.len(), counters(&data)), (100, expected));
        let up_to = data.header.sequence_number.0 + 100;
        hand(&mut end, true, Ecn::NotEct, flags, (1001, up_to));
    }
}

/// An acknowledgement of acknowledgements must not count as a duplicate, so it has no SACK blocks
/// (§3.2.2.5.1). The next acknowledgement of data has them again.
#[test]
fn acknowledgements_of_acknowledgements_have_no_sack_blocks() {
    let mut end = server(config(true), 7);
    acknowledge(&mut end, 2, 1001);
    data(&mut end, Ecn::NotEct, 28);
    let (gap, _) = next(&mut end).expect("an acknowledgement");
    assert_eq!(sack_blocks(&gap), 1);
    for expected in [None, None, Some((0, 0)), None, None, Some((3, 0))] {
        let flags = Flags::ACK | of_ace(5);
        hand(&mut end, false, Ecn::Ce, flags, (8, 1001));
        let answer = next(&mut end).map(|(it, _)| (ace(it.header.flags), sack_blocks(&it)));
        assert_eq!(answer, expected);
    }
    data(&mut end, Ecn::NotEct, 48);
    let (gap, _) = next(&mut end).expect("an acknowledgement");
    assert_eq!(sack_blocks(&gap), 2);
    // An acknowledgement that is due for data as well keeps its SACK blocks.
    data(&mut end, Ecn::NotEct, 68);
    for _ in 0..3 {
        hand(&mut end, false, Ecn::Ce, Flags::ACK | of_ace(5), (8, 1001));
    }
    let sent: Vec<_> = std::iter::from_fn(|| next(&mut end)).collect();
    let blocks: Vec<_> = sent.iter().map(|(it, _)| sack_blocks(it)).collect();
    assert_eq!(blocks, [3]);
}

/// A connection that has failed must not send its pending acknowledgement.
#[test]
fn no_acknowledgement_follows_a_failure() {
    let mut end = client(true);
    let answer = Flags::SYN | Flags::ACK | of_ace(2);
    hand(&mut end, true, Ecn::NotEct, answer, (1000, 8));
    let reset = Flags::RST | Flags::ACK;
    hand(&mut end, true, Ecn::NotEct, reset, (1001, 8));
    assert_eq!(end.poll_event(), Some(Event::Connected));
    assert_eq!(end.poll_event(), Some(Event::Failed(Failure::Reset)));
    assert!(next(&mut end).is_none());
}

/// A server that has sent four segments of 536 bytes to a client with SACK.
fn sender(recovery: RecoveryKind, rack: bool) -> Connection {
    let mut both = config(true);
    (both.profile.recovery, both.profile.timestamps) = (recovery, true);
    both.rack = rack;
    both.profile.initial_window = InitialWindow::Segments(4);
    let mut end = server(both, 7);
    acknowledge(&mut end, 2, 1001);
    let segment = end.segment();
    end.write_zeros(4 * segment).expect("open");
    assert_eq!(std::iter::from_fn(|| next(&mut end)).count(), 4);
    end
}

/// An acknowledgement of new data is never superseded, even if it acknowledges less than earlier
/// SACK blocks reported, because Sack1 forgets the blocks when the cumulative point advances.
#[test]
fn an_acknowledgement_of_new_data_reports_marks() {
    for (recovery, rack) in [
        (RecoveryKind::Sack1, false),
        (RecoveryKind::Rfc6675, false),
        (RecoveryKind::Rfc6675, true),
    ] {
        let mut end = sender(recovery, rack);
        let number = |segments: u32| SeqNumber(1001 + segments * end.segment() as u32);
        let (one, two, four) = (number(1), number(2), number(4));
        let mut options = Options::default();
        let block = SackBlock {
            left: two,
            right: four,
        };
        options.sack_blocks.push(block).expect("space");
        let flags = Flags::ACK | of_ace(5);
        let given = (&b""[..], options);
        hand_options(&mut end, false, Ecn::NotEct, flags, (8, 1001), given);
        assert_eq!(end.stats().marked_packets_reported, 0);
        acknowledge(&mut end, 6, one.0);
        let reported = end.stats().marked_packets_reported;
        assert_eq!(reported, 1, "{recovery:?} {rack}");
    }
}

/// An acknowledgement without new information counts as superseded, unless its timestamp is newer
/// than all earlier ones (§A.1).
#[test]
fn a_newer_timestamp_shows_that_an_acknowledgement_is_new() {
    let mut end = sender(RecoveryKind::Rfc6675, false);
    for (value, counter, reported) in [(0, 6, 0), (1, 6, 1), (1, 7, 1), (2, 7, 2)] {
        let options = Options {
            timestamps: Some(Timestamps {
                value,
                echo_reply: 0,
            }),
            ..Options::default()
        };
        let flags = Flags::ACK | of_ace(counter);
        let given = (&b""[..], options);
        hand_options(&mut end, false, Ecn::NotEct, flags, (8, 1001), given);
        assert_eq!(end.stats().marked_packets_reported, reported, "{value}");
    }
}

/// Number of marked bytes of which the controller of the test below was notified.
static MARKED: AtomicU64 = AtomicU64::new(0);

/// Controller with a constant window of 16 segments, which records marked bytes.
#[derive(Debug)]
struct Recorder;

static RECORDER: Algorithm = Algorithm {
    name: "recorder",
    about: "records the marked bytes",
    only: None,
    needs: Requirement::Nothing,
    properties: &[],
    make: &|_, _| Box::new(Recorder),
};

impl CongestionControl for Recorder {
    fn on_ack(&mut self, ack: &AckSample) {
        MARKED.fetch_add(ack.bytes_marked, Ordering::Relaxed);
    }

    fn on_loss(&mut self, _now: Nanos, _cause: LossCause, _flightsize: u64) {}

    fn cwnd(&self) -> u64 {
        16 * MSS
    }

    fn ssthresh(&self) -> u64 {
        16 * MSS
    }

    fn name(&self) -> &'static str {
        RECORDER.name
    }
}

/// Without SACK, duplicate acknowledgements report the marks of segments 1 to 10, because segment 0
/// is lost. The controller must be notified of these marks.
#[test]
fn marks_reported_by_duplicates_reach_the_controller() {
    let mut both = config(true);
    (both.profile.sack, both.profile.dsack) = (false, false);
    both.profile.timestamps = true;
    both.congestion = &RECORDER;
    let mut world = transfer(both.clone(), both, 40);
    // A segment takes 2 ms, so that each acknowledgement has a different timestamp.
    world.lines[0] = vec![Line::new(6_000_000, 0), Line::new(0, 50 * MILLISECOND)];
    // Packet 2 of the client is segment 0.
    world.fate = Box::new(|end, number, _| match (end, number) {
        (0, 2) => Fate::Drop,
        (0, 3..=12) => Fate::Mark,
        _ => Fate::Pass,
    });
    // The retransmission of segment 0 is not acknowledged yet.
    world.run_until(290 * MILLISECOND);
    let stats = world.ends[0].stats();
    let marked = 10 * world.ends[0].segment();
    assert_eq!((stats.fast_retransmits, stats.bytes_acknowledged), (1, 0));
    assert_eq!(stats.marked_packets_reported, 10);
    assert_eq!(stats.marked_bytes_reported, marked);
    assert_eq!(MARKED.load(Ordering::Relaxed), marked);
}

//! Accurate ECN (RFC 9768): tables of the RFC, and traces computed by hand for links with 50 ms
//! delay each way and unlimited rate.

use crate::common;

use anabranch_tcp::profile::InitialWindow;
use anabranch_tcp::{Config, Connection, Event, Failure, Ports, Profile, State};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Ecn, Transport};
use anabranch_wire::tcp::{Flags, Header, Options, Segment, Timestamps};
use anabranch_wire::{Checksum, SeqNumber};
use bytes::{Bytes, BytesMut};
use common::{CLIENT, Fate, SERVER, World, path_of};

pub(crate) const MSS: u64 = 1460;

pub(crate) fn config(accurate: bool) -> Config {
    let mut profile = Profile::rfc6675();
    (profile.ecn, profile.accurate_ecn, profile.dsack) = (true, accurate, true);
    profile.delayed_ack = false;
    Config::new(profile)
}

pub(crate) fn transfer(client: Config, server: Config, segments: u64) -> World {
    let mut world = World::new(client, server);
    world.ends[0].write_zeros(segments * MSS).expect("open");
    world.ends[1].set_discard(true);
    world
}

pub(crate) fn parse(packet: &Bytes) -> Segment {
    Segment::parse(packet, (CLIENT, SERVER), Checksum::Ignore).expect("a segment")
}

/// AE, CWR and ECE as a three-bit number, the ACE field.
pub(crate) fn ace(flags: Flags) -> u16 {
    (flags.0 >> 6) & 7
}

pub(crate) fn of_ace(ace: u16) -> Flags {
    Flags(ace << 6)
}

/// Counters of the AccECN option: ECT(0), CE and ECT(1).
pub(crate) fn counters(segment: &Segment) -> Option<[Option<u32>; 3]> {
    let option = segment.header.options.accurate_ecn?;
    Some([option.ect0(), option.ce(), option.ect1()])
}

/// ACE fields of the packets that an end has sent.
pub(crate) fn aces(world: &World, end: usize) -> Vec<u16> {
    let packets = world.sent[end].iter();
    packets
        .map(|(_, packet)| ace(parse(packet).header.flags))
        .collect()
}

const PORTS: Ports = Ports {
    local: 40_000,
    remote: 80,
};

/// Passes a segment without data to an end. `client` says whether the end is the client, whose
/// initial sequence number is 7; the server's is 1000.
pub(crate) fn hand(
    end: &mut Connection,
    client: bool,
    ecn: Ecn,
    flags: Flags,
    numbers: (u32, u32),
) {
    hand_data(end, client, ecn, flags, numbers, b"");
}

pub(crate) fn hand_data(
    end: &mut Connection,
    client: bool,
    ecn: Ecn,
    flags: Flags,
    numbers: (u32, u32),
    data: &[u8],
) {
    let options = Options::default();
    hand_options(end, client, ecn, flags, numbers, (data, options));
}

pub(crate) fn hand_options(
    end: &mut Connection,
    client: bool,
    ecn: Ecn,
    flags: Flags,
    numbers: (u32, u32),
    (data, options): (&[u8], Options),
) {
    let (source_port, destination_port) = if client { (80, 40_000) } else { (40_000, 80) };
    let header = Header {
        source_port,
        destination_port,
        sequence_number: SeqNumber(numbers.0),
        acknowledgment_number: SeqNumber(numbers.1),
        flags,
        window: 65_535,
        options,
        ..Header::default()
    };
    let path = path_of(usize::from(!client));
    let mut bytes = BytesMut::new();
    header.encode(&mut bytes, (path.remote, path.local), true, [data]);
    end.handle_datagram(0, path, ecn, bytes.freeze());
}

/// A server that has answered a SYN with the ACE field `request`; the SYN offers SACK and
/// timestamps.
pub(crate) fn server(config: Config, request: u16) -> Connection {
    let mut end = Connection::listen(config, 80, 1000);
    let options = Options {
        sack_permitted: true,
        timestamps: Some(Timestamps::default()),
        ..Options::default()
    };
    let flags = Flags::SYN | of_ace(request);
    hand_options(&mut end, false, Ecn::NotEct, flags, (7, 0), (b"", options));
    next(&mut end).expect("a SYN-ACK");
    end
}

/// Passes a pure acknowledgement of the data before `up_to` to a server.
pub(crate) fn acknowledge(end: &mut Connection, ace: u16, up_to: u32) {
    hand(
        end,
        false,
        Ecn::NotEct,
        Flags::ACK | of_ace(ace),
        (8, up_to),
    );
}

/// Polls an end for its next segment, and returns it with its ECN field.
pub(crate) fn next(end: &mut Connection) -> Option<(Segment, Ecn)> {
    let mut out = BytesMut::new();
    let transmit = end.poll_transmit(0, &mut out)?;
    Some((parse(&out.freeze()), transmit.ecn))
}

/// A client that has sent its SYN and has data to send.
pub(crate) fn client(accurate: bool) -> Connection {
    let mut end = Connection::connect(config(accurate), path_of(0), PORTS, 7);
    end.write_zeros(2 * 536).expect("open");
    let (syn, _) = next(&mut end).expect("a SYN");
    assert_eq!(ace(syn.header.flags), if accurate { 7 } else { 3 });
    assert!(counters(&syn).is_none(), "never on a SYN (§3.2.3.2.1)");
    end
}

/// How an end sends its segments after the handshake: whether data is ECN-capable, and whether the
/// flags carry a counter.
#[derive(Debug, PartialEq, Eq)]
enum Mode {
    NotEcn,
    Classic,
    Accurate,
}

/// Table 2, the client's part, and §3.1.3: all eight flag combinations of a SYN-ACK. Data is not
/// ECN-capable if the ECN field of the SYN was changed, and a mark of the SYN reduces the window.
#[test]
fn the_answer_to_an_accurate_syn_decides_the_mode_of_a_client() {
    for (answer, mode, capable) in [
        (0, Mode::NotEcn, false),
        (1, Mode::Classic, true),
        (2, Mode::Accurate, true),
        (3, Mode::Accurate, false),
        (4, Mode::Accurate, false),
        (5, Mode::Accurate, true),
        (6, Mode::Accurate, false),
        (7, Mode::NotEcn, false),
    ] {
        let mut end = client(true);
        let flags = Flags::SYN | Flags::ACK | of_ace(answer);
        hand(&mut end, true, Ecn::NotEct, flags, (1000, 8));
        let mut sent: Vec<_> = std::iter::from_fn(|| next(&mut end)).collect();
        sent.truncate(sent.len() - 1);
        let (data, field) = sent.pop().expect("two segments of data");
        // The SYN-ACK has no MSS option.
        assert_eq!(data.payload.len(), 536, "{answer:03b}");
        assert_eq!(field.is_capable(), capable, "{answer:03b}");
        // The first segment is a pure acknowledgement, which reports that the SYN-ACK was not
        // ECN-capable.
        let first = sent.first().map(|(it, _)| ace(it.header.flags));
        match mode {
            Mode::Accurate => {
                assert_eq!(first, Some(2), "{answer:03b}");
                assert_eq!(counters(&sent[0].0), Some([Some(1), Some(0), Some(1)]));
                assert_eq!(ace(data.header.flags), 5, "{answer:03b}");
            }
            _ => assert_eq!((first, ace(data.header.flags)), (None, 0), "{answer:03b}"),
        }
        assert_eq!(end.stats().reductions_by_mark, u64::from(answer == 6));
    }
}

/// Table 2, the server's part, and §3.1.3: all eight flag combinations of a SYN, with every ECN
/// field.
#[test]
fn a_server_answers_each_syn_in_its_mode_and_reports_its_field() {
    let fields = [
        (Ecn::NotEct, 2),
        (Ecn::Ect1, 3),
        (Ecn::Ect0, 4),
        (Ecn::Ce, 6),
    ];
    for (syn, mode) in [
        (0, Mode::NotEcn),
        (1, Mode::Accurate),
        (2, Mode::Accurate),
        (3, Mode::Classic),
        (4, Mode::Accurate),
        (5, Mode::Accurate),
        (6, Mode::Accurate),
        (7, Mode::Accurate),
    ] {
        for (field, reported) in fields {
            let mut end = Connection::listen(config(true), 80, 1000);
            hand(&mut end, false, field, Flags::SYN | of_ace(syn), (7, 0));
            let (answer, ecn) = next(&mut end).expect("a SYN-ACK");
            assert_eq!(ecn, Ecn::NotEct);
            let expected = match mode {
                Mode::NotEcn => 0,
                Mode::Classic => 1,
                Mode::Accurate => reported,
            };
            assert_eq!(ace(answer.header.flags), expected, "{syn:03b} {field:?}");
            let option = (mode == Mode::Accurate).then_some([Some(1), Some(0), Some(1)]);
            assert_eq!(counters(&answer), option);
        }
    }
    // A server that supports only RFC 3168 answers in that mode (second block of the table).
    let mut end = Connection::listen(config(false), 80, 1000);
    hand(&mut end, false, Ecn::NotEct, Flags::SYN | of_ace(7), (7, 0));
    let (answer, _) = next(&mut end).expect("a SYN-ACK");
    assert_eq!(ace(answer.header.flags), 1);
}

/// Table 3: the first acknowledgement of a client reports the ECN field of the SYN-ACK. The counter
/// of marks begins with 5, or with 6 after a marked SYN-ACK, however often it was received.
#[test]
fn a_client_reports_the_field_of_the_syn_ack() {
    for (field, report, counter) in [
        (Ecn::NotEct, 2, 5),
        (Ecn::Ect1, 3, 5),
        (Ecn::Ect0, 4, 5),
        (Ecn::Ce, 6, 6),
    ] {
        let mut end = client(true);
        let answer = Flags::SYN | Flags::ACK | of_ace(2);
        for turn in 0..2 {
            hand(&mut end, true, field, answer, (1000, 8));
            let (first, _) = next(&mut end).expect("an acknowledgement");
            assert_eq!(ace(first.header.flags), report, "{field:?}, turn {turn}");
            assert!(first.payload.is_empty());
            end.write_zeros(536).expect("open");
            let (data, _) = next(&mut end).expect("data");
            assert_eq!(ace(data.header.flags), counter, "{field:?}, turn {turn}");
            while next(&mut end).is_some() {}
        }
    }
}

/// Table 4: meaning of the client's first acknowledgement for the server.
#[test]
fn a_server_reads_the_report_about_its_syn_ack() {
    for (report, capable, reductions) in [
        (0, false, 0),
        (1, true, 0),
        (2, true, 0),
        (3, false, 0),
        (4, false, 0),
        (5, true, 0),
        (6, false, 1),
        (7, true, 0),
    ] {
        let mut end = server(config(true), 7);
        acknowledge(&mut end, report, 1001);
        assert_eq!(end.stats().reductions_by_mark, reductions, "{report:03b}");
        end.write_zeros(2 * 536).expect("open");
        let (data, field) = next(&mut end).expect("data");
        assert_eq!(field.is_capable(), capable, "{report:03b}");
        assert_eq!(ace(data.header.flags), 5, "it reports marks anyway");
        // The next acknowledgement reports one more mark than the handshake. After a report of 0
        // the counter has no meaning.
        let counter = if report == 6 { 7 } else { 6 };
        acknowledge(&mut end, counter, 1001 + 536);
        let answered = u64::from(report != 0);
        let reported = end.stats().marked_packets_reported;
        assert_eq!(reported, answered, "{report:03b}");
        let total = end.stats().reductions_by_mark;
        assert_eq!(total, reductions + answered, "{report:03b}");
    }
}

/// Of the first three segments, 0 to 2, segment 1 is marked. Its acknowledgement reports one more
/// mark, and so do all later ones. cwnd is halved once, as with ECN-Echo, and no segment carries
/// CWR.
#[test]
fn a_mark_is_counted_once_and_halves_the_window_once() {
    let mut world = transfer(config(true), config(true), 40);
    // Packet 1 of the client is the pure acknowledgement, packet 3 is segment 1.
    world.fate = Box::new(|end, number, _| match (end, number) {
        (0, 3) => Fate::Mark,
        _ => Fate::Pass,
    });
    world.run_until(450 * MILLISECOND);
    let server = aces(&world, 1);
    assert_eq!(server[..4], [2, 5, 6, 6]);
    assert!(server[2..].iter().all(|&it| it == 6), "{server:?}");
    let client = aces(&world, 0);
    assert_eq!(client[..2], [7, 2]);
    assert!(client[2..].iter().all(|&it| it == 5), "{client:?}");
    let acknowledgements: Vec<_> = world.sent[1][1..4]
        .iter()
        .map(|(_, packet)| counters(&parse(packet)))
        .collect();
    let (one, two) = (1 + MSS as u32, MSS as u32);
    assert_eq!(
        acknowledgements,
        [
            Some([Some(one), None, None]),
            Some([Some(one), Some(two), None]),
            Some([Some(one + two), Some(two), None]),
        ]
    );
    let stats = world.ends[0].stats();
    assert_eq!((stats.reductions_by_mark, stats.fast_retransmits), (1, 0));
    assert_eq!(stats.marked_packets_reported, 1);
    assert_eq!(stats.marked_bytes_reported, MSS);
    assert_eq!(world.ends[0].ssthresh(), 2 * MSS);
}

/// With delayed acknowledgements, a mark after an unmarked packet is acknowledged at once
/// (§3.2.2.5.1). The segments are 0* 1 2 3* 4 5 6 7, where * is a mark.
#[test]
fn the_first_mark_is_acknowledged_at_once() {
    let mut client = config(true);
    client.profile.initial_window = InitialWindow::Segments(8);
    let mut server = config(true);
    server.profile.delayed_ack = true;
    let mut world = transfer(client, server, 8);
    world.fate = Box::new(|end, number, _| match (end, number) {
        (0, 2 | 5) => Fate::Mark,
        _ => Fate::Pass,
    });
    world.run_until(160 * MILLISECOND);
    let first = 0xFFFF_F000u32.wrapping_add(1);
    let seen: Vec<_> = world.sent[1][1..]
        .iter()
        .map(|(_, packet)| {
            let header = parse(packet).header;
            let upto = header.acknowledgment_number.0.wrapping_sub(first) / MSS as u32;
            (upto, ace(header.flags))
        })
        .collect();
    assert_eq!(seen, [(1, 6), (3, 6), (4, 7), (6, 7), (8, 7)]);
}

/// Small marked segments: every second one is acknowledged. Marked acknowledgements: every third
/// one is acknowledged (§3.2.2.5.1).
#[test]
fn every_few_marks_are_acknowledged_at_once() {
    let mut server = config(true);
    server.profile.delayed_ack = true;
    let mut end = self::server(server, 7);
    acknowledge(&mut end, 2, 1001);
    let flags = Flags::ACK | of_ace(5);
    let mut number = 8;
    for expected in [Some(6), None, Some(0), None, Some(2)] {
        hand_data(
            &mut end,
            false,
            Ecn::Ce,
            flags,
            (number, 1001),
            b"ten bytes.",
        );
        number += 10;
        let answer = next(&mut end).map(|(segment, _)| ace(segment.header.flags));
        assert_eq!(answer, expected, "{number}");
    }
    for expected in [None, None, Some(5), None, None, Some(0)] {
        hand(&mut end, false, Ecn::Ce, flags, (number, 1001));
        let answer = next(&mut end).map(|(segment, _)| ace(segment.header.flags));
        assert_eq!(answer, expected);
    }
}

/// The first SYN-ACK has an option, the second has none, and the third does not request ECN. The
/// server still reports marks after that, but its data is not ECN-capable (§3.2.3.2.2, §3.1.5).
#[test]
fn a_syn_ack_falls_back_step_by_step() {
    let mut world = transfer(config(true), config(true), 4);
    world.ends[1].write_zeros(MSS).expect("open");
    world.fate = Box::new(|end, number, _| match (end, number) {
        (1, 0..=1) => Fate::Drop,
        _ => Fate::Pass,
    });
    world.run_until(60 * SECOND);
    let answers: Vec<_> = world.sent[1][..3]
        .iter()
        .map(|(_, packet)| (ace(parse(packet).header.flags), counters(&parse(packet))))
        .collect();
    assert_eq!(
        answers,
        [(2, Some([Some(1), Some(0), Some(1)])), (2, None), (0, None)]
    );
    assert!(world.fields[1].iter().all(|&field| field == Ecn::NotEct));
    // The client received the third SYN-ACK, which has no ECN.
    assert!(world.fields[0].iter().all(|&field| field == Ecn::NotEct));
    assert_eq!(world.ends[1].stats().bytes_delivered, 4 * MSS);
    assert_eq!(world.ends[0].readable(), MSS);

    // The client, which received the SYN-ACK without ECN, is not in AccECN mode. The server still
    // counts a mark of the client's data, which is not ECN-capable.
    let mut end = server(config(true), 7);
    for expected in [2, 0] {
        let at = end.poll_timeout().expect("a timer");
        end.handle_timeout(at);
        let (answer, _) = next(&mut end).expect("a SYN-ACK");
        assert_eq!(ace(answer.header.flags), expected);
    }
    acknowledge(&mut end, 0, 1001);
    hand_data(&mut end, false, Ecn::Ce, Flags::ACK, (8, 1001), b"data");
    let (answer, _) = next(&mut end).expect("an acknowledgement");
    assert_eq!(ace(answer.header.flags), 6);
    assert_eq!(counters(&answer), Some([Some(1), Some(4), None]));
}

/// The first retransmission of a SYN requests accurate ECN again; the second requests no ECN
/// (§3.1.4.1). The first SYN-ACK determines the mode.
#[test]
fn a_syn_falls_back_after_its_first_retransmission() {
    for (lost, last, capable) in [(1, 7, true), (2, 0, false)] {
        let mut world = transfer(config(true), config(true), 4);
        world.fate = Box::new(move |end, number, _| match (end, number) {
            (0, number) if number < lost => Fate::Drop,
            _ => Fate::Pass,
        });
        world.run_until(60 * SECOND);
        let syns = &aces(&world, 0)[..=lost as usize];
        assert_eq!(syns[..2], [7, 7][..syns.len().min(2)]);
        assert_eq!(syns.last(), Some(&last));
        let fields = world.sent[0].iter().zip(&world.fields[0]);
        let data = fields.filter(|((_, packet), _)| packet.len() > 100);
        assert!(data.into_iter().all(|(_, ecn)| ecn.is_capable() == capable));
        assert_eq!(world.ends[1].stats().bytes_delivered, 4 * MSS);
    }
}

/// After a RST in response to its SYN, a client sends the SYN once more, without ECN.
#[test]
fn a_syn_that_is_reset_goes_once_more_without_ecn() {
    let mut end = client(true);
    let reset = Flags::RST | Flags::ACK;
    hand(&mut end, true, Ecn::NotEct, reset, (0, 8));
    let (syn, _) = next(&mut end).expect("a SYN");
    assert_eq!(ace(syn.header.flags), 0);
    hand(&mut end, true, Ecn::NotEct, reset, (0, 8));
    assert_eq!(end.poll_event(), Some(Event::Failed(Failure::Refused)));
}

/// The first SYN determines the mode of a server, whatever later SYNs request (§3.1.5).
#[test]
fn a_server_keeps_the_mode_of_the_first_syn() {
    for (first, second) in [(7, 7), (7, 0), (3, 0), (0, 7), (0, 3)] {
        let mut end = server(config(true), first);
        let again = Flags::SYN | of_ace(second);
        hand(&mut end, false, Ecn::Ce, again, (7, 0));
        // The timer retransmits the SYN-ACK, which reports the ECN field of the last SYN.
        end.handle_timeout(2 * SECOND);
        let (answer, _) = next(&mut end).expect("a SYN-ACK");
        let expected = if first == 7 { 6 } else { 0 };
        assert_eq!(ace(answer.header.flags), expected, "{first} {second}");
        acknowledge(&mut end, 2, 1001);
        end.write_zeros(536).expect("open");
        let (_, field) = next(&mut end).expect("data");
        let capable = (first, second) == (7, 7);
        assert_eq!(field.is_capable(), capable, "{first} {second}");
    }
}

/// A server in the mode of RFC 3168 stays in it after a SYN without ECN. It echoes marks, but its
/// data is not ECN-capable.
#[test]
fn a_syn_without_ecn_does_not_end_the_older_feedback() {
    let mut end = server(config(true), 3);
    hand(&mut end, false, Ecn::NotEct, Flags::SYN, (7, 0));
    acknowledge(&mut end, 0, 1001);
    hand_data(&mut end, false, Ecn::Ce, Flags::ACK, (8, 1001), b"data");
    let (answer, _) = next(&mut end).expect("an acknowledgement");
    assert_eq!(ace(answer.header.flags), 1);
    end.write_zeros(536).expect("open");
    let (_, field) = next(&mut end).expect("data");
    assert_eq!(field, Ecn::NotEct);
}

/// If SYNs request both modes, the server resets the handshake and listens again (§3.1.5), even if
/// a SYN without ECN came between them or before them.
#[test]
fn requests_of_both_modes_reset_the_handshake() {
    for syns in [
        &[7, 3][..],
        &[3, 7],
        &[3, 0, 7],
        &[0, 3, 7],
        &[0, 7, 3],
        &[7, 0, 3],
    ] {
        let mut end = server(config(true), syns[0]);
        for &syn in &syns[1..] {
            assert!(next(&mut end).is_none(), "{syns:?}");
            hand(&mut end, false, Ecn::Ce, Flags::SYN | of_ace(syn), (7, 0));
        }
        let (reset, _) = next(&mut end).expect("a RST");
        assert!(reset.header.flags.contains(Flags::RST), "{syns:?}");
        assert_eq!(end.state(), State::Listen);
        hand(&mut end, false, Ecn::NotEct, Flags::SYN | of_ace(7), (7, 0));
        let (answer, _) = next(&mut end).expect("a SYN-ACK");
        assert_eq!(ace(answer.header.flags), 2, "{syns:?}");
        acknowledge(&mut end, 2, 1001);
        assert_eq!(end.poll_event(), Some(Event::Connected));
    }
}

/// A middlebox has removed the options. The client estimates the marked bytes from the ACE field.
#[test]
fn the_field_is_enough_without_options() {
    let mut end = client(true);
    hand(
        &mut end,
        true,
        Ecn::NotEct,
        Flags::SYN | Flags::ACK | of_ace(2),
        (1000, 8),
    );
    while next(&mut end).is_some() {}
    let segment = end.segment() as u32;
    hand(
        &mut end,
        true,
        Ecn::NotEct,
        Flags::ACK | of_ace(6),
        (1001, 8 + segment),
    );
    assert_eq!(end.stats().marked_packets_reported, 1);
    assert_eq!(end.stats().marked_bytes_reported, u64::from(segment));
    assert_eq!(end.stats().reductions_by_mark, 1);
}

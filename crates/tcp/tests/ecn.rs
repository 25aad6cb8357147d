//! Explicit congestion notification (RFC 3168 §6.1), computed by hand for links with 50 ms delay
//! each way and unlimited rate.

use crate::common;

use anabranch_tcp::profile::InitialWindow;
use anabranch_tcp::{Config, Connection, Event, Failure, Ports, Profile};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Ecn, Nanos, Probe, Transport};
use anabranch_wire::SeqNumber;
use anabranch_wire::tcp::{Flags, Header};
use bytes::{Bytes, BytesMut};
use common::{Fate, World, path_of};

const MSS: f64 = 1460.0;

fn config(ecn: bool) -> Config {
    let mut profile = Profile::rfc6675();
    profile.ecn = ecn;
    // With one acknowledgement per segment, the traces below are easier to compute.
    profile.delayed_ack = false;
    Config::new(profile)
}

/// A client that starts to connect and has `segments` segments of data to send.
fn transfer(client: Config, server: Config, segments: u64) -> World {
    let mut world = World::new(client, server);
    world.ends[0].write_zeros(segments * 1460).expect("open");
    world.ends[1].set_discard(true);
    world
}

fn flags(packet: &Bytes) -> u8 {
    packet[13]
}

fn has(packet: &Bytes, flag: Flags) -> bool {
    u16::from(flags(packet)) & flag.0 != 0
}

fn is_text(packet: &Bytes) -> bool {
    packet.len() > 100
}

fn sequence(packet: &Bytes) -> u32 {
    u32::from_be_bytes([packet[4], packet[5], packet[6], packet[7]])
}

/// Data packets of the client: send time, bytes and ECN field.
fn text(world: &World) -> Vec<(Nanos, Bytes, Ecn)> {
    let sent = world.sent[0].iter().zip(&world.fields[0]);
    let text = sent.filter(|((_, packet), _)| is_text(packet));
    text.map(|((at, packet), ecn)| (*at, packet.clone(), *ecn))
        .collect()
}

fn windows(world: &World) -> Vec<(Nanos, f64)> {
    let samples = world.probe(0, Probe::Cwnd).into_iter();
    samples
        .map(|(at, cwnd)| (at / MILLISECOND, cwnd / MSS))
        .collect()
}

#[test]
fn both_ends_must_want_it() {
    for (client, server, syn, syn_ack) in [
        (true, true, 0xC2, 0x52),
        (true, false, 0xC2, 0x12),
        (false, true, 0x02, 0x12),
        (false, false, 0x02, 0x12),
    ] {
        let mut world = transfer(config(client), config(server), 30);
        // Every router marks all ECN-capable packets.
        world.fate = Box::new(|_, _, _| Fate::Mark);
        world.run_until(60 * SECOND);
        let case = format!("{client} {server}");
        assert_eq!(flags(&world.sent[0][0].1), syn, "{case}");
        assert_eq!(flags(&world.sent[1][0].1), syn_ack, "{case}");
        assert_eq!(world.fields[0][0], Ecn::NotEct, "a SYN is never marked");
        assert_eq!(world.fields[1][0], Ecn::NotEct, "nor its answer");
        assert_eq!(world.ends[1].stats().bytes_delivered, 30 * 1460, "{case}");
        let both = client && server;
        let marked = |(_, _, ecn): &(Nanos, Bytes, Ecn)| *ecn == Ecn::Ect0;
        assert!(
            text(&world).iter().all(|packet| marked(packet) == both),
            "{case}"
        );
        // Pure acknowledgements are never ECN-capable (§6.1.4).
        assert!(world.fields[1].iter().all(|&ecn| ecn == Ecn::NotEct));
        let echoes = world.sent[1][1..].iter();
        let echoes = echoes.filter(|(_, packet)| has(packet, Flags::ECE)).count();
        assert_eq!(echoes > 0, both, "{case}");
        let stats = world.ends[0].stats();
        assert_eq!(stats.reductions_by_mark > 0, both, "{case}");
        assert_eq!(stats.segments_retransmitted, 0, "{case}");
    }
}

/// Of the first three segments, 0 to 2, segment 1 is marked. At 200 ms, the acknowledgement of
/// segment 0 increases the window to 4, and segments 3 and 4 are sent. The acknowledgement of
/// segment 1 carries ECN-Echo while 1 to 4 are outstanding, so the window is halved from 4 to 2.
/// The acknowledgements of 2, 3 and 4 carry it too, but concern the same window of data and change
/// nothing. At 300 ms, segment 3 is acknowledged; 5 is sent with CWR, and then 6 without. At 400 ms
/// the echo has ended, and two acknowledgements increase the window from 2 to 3.
#[test]
fn a_mark_halves_the_window_once_and_nothing_goes_again() {
    let mut world = transfer(config(true), config(true), 40);
    world.fate = Box::new(|end, number, _| match (end, number) {
        (0, 2) => Fate::Mark,
        _ => Fate::Pass,
    });
    world.run_until(450 * MILLISECOND);
    assert_eq!(
        windows(&world),
        [(100, 3.0), (200, 4.0), (200, 2.0), (400, 3.0)]
    );
    assert_eq!(world.ends[0].ssthresh(), 2 * 1460);
    let with = |flag, end: usize| -> Vec<usize> {
        let sent = world.sent[end].iter().enumerate().skip(1);
        sent.filter(|(_, (_, packet))| has(packet, flag))
            .map(|(number, _)| number)
            .collect()
    };
    // Acknowledgements 1 to 5 are those of segments 0 to 4; packets 1 to 7 of the client are
    // segments 0 to 6.
    assert_eq!(with(Flags::ECE, 1), [2, 3, 4, 5]);
    assert_eq!(with(Flags::CWR, 0), [6]);
    let stats = world.ends[0].stats();
    assert_eq!((stats.reductions_by_mark, stats.fast_retransmits), (1, 0));
    assert_eq!((stats.segments_retransmitted, stats.timeouts), (0, 0));
    assert_eq!(world.ends[1].stats().marks_received, 1);
}

/// The packet with CWR is lost. The window is reduced because of this loss, and the next new data
/// carries CWR again (§6.1.2).
#[test]
fn a_lost_cwr_is_said_again() {
    let mut world = transfer(config(true), config(true), 40);
    world.fate = Box::new(|end, number, _| match (end, number) {
        (0, 2) => Fate::Mark,
        (0, 6) => Fate::Drop,
        _ => Fate::Pass,
    });
    world.run_until(20 * SECOND);
    let said: Vec<_> = text(&world)
        .iter()
        .filter(|(_, packet, _)| has(packet, Flags::CWR))
        .map(|(_, packet, ecn)| (sequence(packet), *ecn))
        .collect();
    assert_eq!(said.len(), 2);
    assert!(said[0].0 < said[1].0);
    assert!(said.iter().all(|(_, ecn)| *ecn == Ecn::Ect0), "new text");
    assert_eq!(world.ends[0].stats().reductions_by_mark, 1);
    assert_eq!(world.ends[1].stats().bytes_delivered, 40 * 1460);
    let (_, last) = world.sent[1].last().expect("acknowledgements");
    assert!(!has(last, Flags::ECE));
}

/// A retransmission is not ECN-capable (§6.1.5). A loss must not halve cwnd again if a mark in the
/// same window of data has already halved it (§6.1.2).
#[test]
fn a_mark_and_a_loss_of_one_window_are_one_congestion() {
    let reductions = |marked: bool| {
        let mut world = transfer(config(true), config(true), 60);
        // Segments 9 to 20 are sent together at 300 ms.
        world.fate = Box::new(move |end, number, _| match (end, number) {
            (0, 11) if marked => Fate::Mark,
            (0, 13) => Fate::Drop,
            _ => Fate::Pass,
        });
        world.run_until(20 * SECOND);
        assert_eq!(world.ends[1].stats().bytes_delivered, 60 * 1460);
        let stats = *world.ends[0].stats();
        assert_eq!((stats.fast_retransmits, stats.timeouts), (1, 0));
        assert_eq!(stats.reductions_by_mark, u64::from(marked));
        let again = text(&world);
        let lost = sequence(&again[12].1);
        let again: Vec<_> = again
            .iter()
            .filter(|(_, packet, _)| sequence(packet) == lost)
            .map(|(_, _, ecn)| *ecn)
            .collect();
        assert_eq!(again, [Ecn::Ect0, Ecn::NotEct]);
        world.probe(0, Probe::Ssthresh).len()
    };
    assert_eq!((reductions(false), reductions(true)), (1, 1));
}

/// A window of one segment cannot be halved, so each mark delays the next segment by a timeout of 1
/// s (§6.1.2). The RTT is 100 ms.
#[test]
fn marks_at_a_window_of_one_segment_slow_down_to_the_timer() {
    let mut client = config(true);
    client.profile.initial_window = InitialWindow::Segments(1);
    let mut world = transfer(client, config(true), 5);
    world.fate = Box::new(|end, _, _| if end == 0 { Fate::Mark } else { Fate::Pass });
    world.run_until(20 * SECOND);
    let at: Vec<_> = text(&world)
        .iter()
        .map(|(at, ..)| at / MILLISECOND)
        .collect();
    assert_eq!(at, [100, 1200, 2300, 3400, 4500]);
    assert_eq!(world.ends[0].stats().reductions_by_mark, 5);
}

/// A retransmitted SYN does not request ECN. Data is then not ECN-capable, whatever the SYN-ACK
/// says (§6.1.1.1, §6.1.1).
#[test]
fn a_syn_without_an_answer_goes_again_without_ecn() {
    let mut world = transfer(config(true), config(true), 3);
    world.fate = Box::new(|end, number, _| match (end, number) {
        (0, 0) => Fate::Drop,
        _ => Fate::Pass,
    });
    world.run_until(20 * SECOND);
    let syns: Vec<_> = world.sent[0][..2]
        .iter()
        .map(|(_, packet)| flags(packet))
        .collect();
    assert_eq!(syns, [0xC2, 0x02]);
    assert_eq!(flags(&world.sent[1][0].1), 0x12);
    assert!(text(&world).iter().all(|(_, _, ecn)| *ecn == Ecn::NotEct));
    assert_eq!(world.ends[1].stats().bytes_delivered, 3 * 1460);
}

/// An old firewall may answer unknown flags with a RST, so the SYN is sent once more without ECN
/// (§6.1.1.1).
#[test]
fn a_syn_that_is_reset_goes_once_more_without_ecn() {
    let ports = Ports {
        local: 1,
        remote: 2,
    };
    let mut end = Connection::connect(config(true), path_of(0), ports, 7);
    let mut out = BytesMut::new();
    let mut syn = |end: &mut Connection| {
        let transmit = end.poll_transmit(0, &mut out)?;
        Some(out.split_to(transmit.len)[13])
    };
    assert_eq!(syn(&mut end), Some(0xC2));
    let reset = Header {
        source_port: 2,
        destination_port: 1,
        acknowledgment_number: SeqNumber(8),
        flags: Flags::RST | Flags::ACK,
        ..Header::default()
    };
    let path = path_of(0);
    let mut bytes = BytesMut::new();
    reset.encode(&mut bytes, (path.remote, path.local), true, []);
    let reset = bytes.freeze();
    end.handle_datagram(0, path, Ecn::NotEct, reset.clone());
    assert_eq!(end.poll_event(), None);
    assert_eq!(syn(&mut end), Some(0x02));
    end.handle_datagram(0, path, Ecn::NotEct, reset);
    assert_eq!(end.poll_event(), Some(Event::Failed(Failure::Refused)));
}

/// A middlebox that reflects the flags of the SYN in the SYN-ACK has not accepted ECN (§6.1.1).
#[test]
fn a_reflected_offer_is_no_agreement() {
    let ports = Ports {
        local: 1,
        remote: 2,
    };
    for (flags, capable) in [
        (Flags::ECE | Flags::CWR, false),
        (Flags::ECE, true),
        (Flags::CWR, false),
        (Flags::NONE, false),
    ] {
        let mut end = Connection::connect(config(true), path_of(0), ports, 7);
        let mut out = BytesMut::new();
        end.write_zeros(1460).expect("open");
        end.poll_transmit(0, &mut out).expect("a SYN");
        let answer = Header {
            source_port: 2,
            destination_port: 1,
            acknowledgment_number: SeqNumber(8),
            flags: Flags::SYN | Flags::ACK | flags,
            window: 65_535,
            ..Header::default()
        };
        let path = path_of(0);
        let mut bytes = BytesMut::new();
        answer.encode(&mut bytes, (path.remote, path.local), true, []);
        end.handle_datagram(0, path, Ecn::NotEct, bytes.freeze());
        let text = end.poll_transmit(0, &mut out).expect("text");
        assert_eq!(text.ecn.is_capable(), capable, "{flags:?}");
    }
}

/// A window of two segments is not reduced further, but sending does not pause until the timer
/// expires either (RFC 3168 §6.1.2).
#[test]
fn a_mark_at_a_window_of_two_segments_stops_nothing() {
    let mut client = config(true);
    client.profile.initial_window = InitialWindow::Segments(2);
    let mut world = transfer(client, config(true), 6);
    world.fate = Box::new(|end, number, _| match (end, number) {
        (0, 1..=2) => Fate::Mark,
        _ => Fate::Pass,
    });
    world.run_until(20 * SECOND);
    let at: Vec<_> = text(&world)
        .iter()
        .map(|(at, ..)| at / MILLISECOND)
        .collect();
    assert_eq!(at.len(), 6);
    assert!(at.iter().all(|&at| at < 600), "{at:?}");
    assert_eq!(world.ends[0].stats().reductions_by_mark, 1);
}

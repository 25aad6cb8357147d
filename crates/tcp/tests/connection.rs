//! Opening, closing, resets, windows and acknowledgements, traced segment by segment.

use crate::common;

use anabranch_tcp::profile::WindowSize;
use anabranch_tcp::{Config, Connection, Event, Failure, Ports, Profile, State};
use anabranch_transport::time::{MILLISECOND as MS, SECOND};
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use anabranch_wire::tcp::{Flags, Header, Options, Segment};
use anabranch_wire::{Checksum, SeqNumber};
use bytes::{Bytes, BytesMut};
use common::{CLIENT, Fate, SERVER, World, path_of};

/// Segments that an end has sent, as text: flags, sequence and acknowledgment number relative to
/// the initial ones, and data length.
fn told(world: &World, end: usize) -> Vec<String> {
    let mut initial = [0; 2];
    for (index, packets) in world.sent.iter().enumerate() {
        if let Some((_, first)) = packets.first() {
            initial[index] = parse(index, first).header.sequence_number.0;
        }
    }
    world.sent[end]
        .iter()
        .map(|(_, packet)| {
            let segment = parse(end, packet);
            let header = &segment.header;
            let mut flags = String::new();
            for (bit, letter) in [
                (Flags::SYN, 'S'),
                (Flags::FIN, 'F'),
                (Flags::RST, 'R'),
                (Flags::ACK, 'A'),
            ] {
                if header.flags.contains(bit) {
                    flags.push(letter);
                }
            }
            let seq = header.sequence_number.0.wrapping_sub(initial[end]);
            let ack = header
                .acknowledgment_number
                .0
                .wrapping_sub(initial[1 - end]);
            let ack = if header.flags.contains(Flags::ACK) {
                format!(" ack {ack}")
            } else {
                String::new()
            };
            format!("{flags} {seq}+{}{ack}", segment.payload.len())
        })
        .collect()
}

fn parse(end: usize, packet: &Bytes) -> Segment {
    let path = path_of(end);
    Segment::parse(packet, (path.local, path.remote), Checksum::Verify).expect("a good segment")
}

fn world() -> World {
    World::new(
        Config::default().with(|it| it.mss = 1000),
        Config::default().with(|it| it.mss = 1000),
    )
}

/// Creates a world and runs the handshake.
fn established() -> World {
    let mut world = world();
    world.run_until(SECOND);
    assert_eq!(
        [0, 1].map(|end| world.ends[end].state()),
        [State::Established; 2]
    );
    world
}

/// Passes a forged segment to an end. `seq` and `ack` are offsets from the initial sequence
/// numbers.
fn forge(world: &mut World, end: usize, flags: Flags, seq: i64, ack: i64, text: &'static [u8]) {
    let initial = |of: usize| parse(of, &world.sent[of][0].1).header.sequence_number.0;
    let path = path_of(1 - end);
    let ports = if end == 0 { (80, 40_000) } else { (40_000, 80) };
    let header = Header {
        source_port: ports.0,
        destination_port: ports.1,
        sequence_number: SeqNumber(initial(1 - end).wrapping_add(seq as u32)),
        acknowledgment_number: SeqNumber(initial(end).wrapping_add(ack as u32)),
        flags,
        window: 10_000,
        ..Header::default()
    };
    let mut out = BytesMut::new();
    header.encode(&mut out, (path.local, path.remote), true, [text]);
    let now = world.now;
    world.ends[end].handle_datagram(now, path_of(end), Ecn::NotEct, out.freeze());
    world.drain(end);
}

#[test]
fn opening_and_closing() {
    // Handshake, and then A closes first and Z second.
    let mut world = established();
    assert_eq!(told(&world, 0), ["S 0+0", "A 1+0 ack 1"]);
    assert_eq!(told(&world, 1), ["SA 0+0 ack 1"]);
    world.ends[0].write(Bytes::from_static(b"hello")).unwrap();
    world.ends[0].close();
    assert_eq!(world.ends[0].state(), State::FinWait1);
    world.run_until(2 * SECOND);
    assert_eq!(
        [0, 1].map(|end| world.ends[end].state()),
        [State::FinWait2, State::CloseWait]
    );
    assert_eq!(world.ends[1].read().as_deref(), Some(&b"hello"[..]));
    world.ends[1].close();
    world.run_until(3 * SECOND);
    assert_eq!(
        [0, 1].map(|end| world.ends[end].state()),
        [State::TimeWait, State::Closed]
    );
    assert_eq!(told(&world, 0)[2..], ["FA 1+5 ack 1", "A 7+0 ack 2"]);
    assert_eq!(told(&world, 1)[1..], ["A 1+0 ack 7", "FA 1+0 ack 7"]);
    assert_eq!(
        world.events[0],
        [Event::Connected, Event::PeerClosed, Event::Closed]
    );
    assert_eq!(
        world.events[1],
        [Event::Connected, Event::PeerClosed, Event::Closed]
    );
    world.run_until(250 * SECOND);
    assert_eq!(world.ends[0].state(), State::Closed);
    assert_eq!(world.ends[0].poll_timeout(), None);
}

#[test]
fn closing_at_once() {
    // Simultaneous close: FIN-WAIT-1 -> CLOSING -> TIME-WAIT on both sides.
    let mut world = established();
    world.ends[0].close();
    world.ends[1].close();
    world.run_until(SECOND + 70 * MS);
    assert_eq!(
        [0, 1].map(|end| world.ends[end].state()),
        [State::Closing; 2]
    );
    world.run_until(2 * SECOND);
    assert_eq!(
        [0, 1].map(|end| world.ends[end].state()),
        [State::TimeWait; 2]
    );
}

#[test]
fn opening_at_once() {
    // Simultaneous open: both ends pass through SYN-RECEIVED (RFC 9293 §3.5, figure 8).
    let mut world = world();
    world.ends[1] = Connection::connect(
        Config::default(),
        Path::new(SERVER, CLIENT),
        Ports {
            local: 80,
            remote: 40_000,
        },
        5,
    );
    world.ends[0].write(Bytes::from_static(b"x")).unwrap();
    world.run_until(2 * SECOND);
    assert_eq!(
        [0, 1].map(|end| world.ends[end].state()),
        [State::Established; 2]
    );
    assert_eq!(told(&world, 0)[..2], ["S 0+0", "SA 0+0 ack 1"]);
    assert_eq!(world.ends[1].read().as_deref(), Some(&b"x"[..]));
}

#[test]
fn lost_syns_are_sent_again() {
    let mut world = world();
    world.fate = Box::new(|end, number, _| {
        if end == 0 && number < 2 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    world.run_until(10 * SECOND);
    let times: Vec<Nanos> = world.sent[0]
        .iter()
        .take(3)
        .map(|(at, _)| at / SECOND)
        .collect();
    assert_eq!(times, [0, 1, 3]);
    assert_eq!(world.ends[0].state(), State::Established);
    assert_eq!(
        world.ends[0].cwnd(),
        1000.0,
        "a lost SYN makes the first window one segment (RFC 5681 §3.1)"
    );
    assert_eq!(
        world.ends[0].rto(),
        3 * SECOND,
        "and the timeout 3 s (RFC 6298 §5.7)"
    );
}

#[test]
fn options_are_used_only_where_both_offer_them() {
    for (client, server) in [(true, true), (true, false), (false, true)] {
        let config = |all: bool| {
            let mut profile = Profile::rfc6675();
            (profile.sack, profile.timestamps, profile.window_scale) = (all, all, all);
            Config::new(profile).with(|it| {
                it.mss = if all { 1400 } else { 900 };
                it.receive_buffer = WindowSize::Bytes(200_000);
            })
        };
        let mut world = World::new(config(client), config(server));
        world.ends[0].write(Bytes::from_static(b"x")).unwrap();
        world.run_until(SECOND);
        let (syn, answer) = (parse(0, &world.sent[0][0].1), parse(1, &world.sent[1][0].1));
        let last = parse(0, &world.sent[0].last().unwrap().1);
        let both = client && server;
        assert_eq!(syn.header.options.window_scale, client.then_some(2));
        assert_eq!(
            (
                answer.header.options.window_scale,
                answer.header.options.sack_permitted
            ),
            (both.then_some(2), both)
        );
        assert_eq!(last.header.options.timestamps.is_some(), both);
        assert_eq!(
            answer.header.options.maximum_segment_size,
            Some(if server { 1400 } else { 900 })
        );
        assert_eq!(world.ends[0].segment(), if both { 1388 } else { 900 });
        let acknowledged = parse(1, &world.sent[1].last().unwrap().1);
        let window = u32::from(acknowledged.header.window) << if both { 2 } else { 0 };
        assert!(
            if both {
                window > 199_000
            } else {
                window > 65_000 && window <= 65_535
            },
            "{window}"
        );
    }
}

#[test]
fn resets() {
    // A RST takes effect only if its number is exactly the next one; any other number in the window
    // causes a challenge ACK (RFC 5961 §3).
    let mut world = established();
    forge(&mut world, 0, Flags::RST, 2, 0, b"");
    assert_eq!(world.ends[0].state(), State::Established);
    assert_eq!(told(&world, 0).last().unwrap(), "A 1+0 ack 1");
    forge(&mut world, 0, Flags::RST, 70_000, 0, b"");
    assert_eq!(world.sent[0].len(), 3, "outside the window: silence");
    forge(&mut world, 0, Flags::RST, 1, 0, b"");
    assert_eq!(
        world.events[0],
        [Event::Connected, Event::Failed(Failure::Reset)]
    );
    // Segments that arrive after the end of the connection are answered with a RST (RFC 9293
    // §3.10.7.1).
    forge(&mut world, 0, Flags::ACK, 1, 1, b"late");
    assert_eq!(told(&world, 0).last().unwrap(), "R 1+0");
}

#[test]
fn aborting_notifies_the_peer() {
    let mut world = established();
    world.ends[0].abort();
    world.run_until(2 * SECOND);
    assert_eq!(world.events[0][1..], [Event::Failed(Failure::Aborted)]);
    assert_eq!(world.events[1][1..], [Event::Failed(Failure::Reset)]);
    assert!(world.ends[0].write(Bytes::from_static(b"x")).is_err());
}

#[test]
fn no_listener() {
    let mut world = world();
    world.ends[1].close();
    world.run_until(SECOND);
    assert_eq!(world.events[0], [Event::Failed(Failure::Refused)]);
    assert_eq!(told(&world, 1), ["RA 0+0 ack 1"]);
}

#[test]
fn a_syn_in_the_window_is_challenged_rarely() {
    let mut world = established();
    for _ in 0..5 {
        forge(&mut world, 1, Flags::SYN, 100, 0, b"");
    }
    assert_eq!(world.ends[1].state(), State::Established);
    assert_eq!(
        world.sent[1].len(),
        2,
        "one challenge in half a second (RFC 5961 §4, §7)"
    );
    assert_eq!(world.ends[1].stats().dropped.suspicious, 5);
}

#[test]
fn acknowledgements_of_the_future_and_the_far_past_are_refused() {
    let mut world = established();
    forge(&mut world, 1, Flags::ACK, 1, 2, b"text");
    forge(&mut world, 1, Flags::ACK, 1, -70_000, b"text");
    assert_eq!(
        (
            world.ends[1].stats().dropped.bad_acknowledgement,
            world.ends[1].readable()
        ),
        (2, 0)
    );
    forge(&mut world, 1, Flags::ACK, 1, 1, b"text");
    assert_eq!(world.ends[1].readable(), 4);
}

#[test]
fn misdirected_and_broken_segments_are_counted() {
    let mut world = established();
    let good = world.sent[0][1].1.clone();
    let now = world.now;
    let elsewhere = Path::new(SERVER, "10.0.0.9".parse().unwrap());
    let before = *world.ends[1].stats();
    let mut other_port = BytesMut::new();
    let mut header = parse(0, &good).header;
    header.source_port = 1;
    header.encode(&mut other_port, (CLIENT, SERVER), true, [&b""[..]]);
    world.ends[1].handle_datagram(now, path_of(1), Ecn::NotEct, other_port.freeze());
    let mut from_elsewhere = BytesMut::new();
    header.source_port = 40_000;
    header.encode(
        &mut from_elsewhere,
        (elsewhere.remote, SERVER),
        true,
        [&b""[..]],
    );
    world.ends[1].handle_datagram(now, elsewhere, Ecn::NotEct, from_elsewhere.freeze());
    let mut flipped = BytesMut::from(&good[..]);
    flipped[15] ^= 1;
    world.ends[1].handle_datagram(now, path_of(1), Ecn::NotEct, flipped.freeze());
    world.ends[1].handle_datagram(now, path_of(1), Ecn::NotEct, good.slice(..12));
    let dropped = world.ends[1].stats().dropped;
    assert_eq!(
        (dropped.misdirected, dropped.checksum, dropped.malformed),
        (2, 1, 1)
    );
    assert_eq!(
        world.ends[1].stats().segments_received,
        before.segments_received + 4
    );
}

#[test]
fn delayed_acknowledgements() {
    // Every second segment is acknowledged immediately, and a single one after 200 ms (RFC 5681
    // §4.2, RFC 9293 §3.8.6.3).
    let mut world = established();
    world.ends[1].set_discard(true);
    let start = world.now;
    world.ends[0].write_zeros(3_000).unwrap();
    world.run_until(2 * SECOND);
    let acks: Vec<(Nanos, String)> = world.sent[1][1..]
        .iter()
        .map(|(at, _)| (at - start) / MS)
        .zip(told(&world, 1).split_off(1))
        .collect();
    assert_eq!(
        acks,
        [
            (50, "A 1+0 ack 2001".to_owned()),
            (250, "A 1+0 ack 3001".to_owned())
        ]
    );
}

#[test]
fn nagle_holds_small_segments_back() {
    for (nagle, expected) in [
        (true, vec!["A 1+3 ack 1", "A 4+6 ack 1"]),
        (false, vec!["A 1+3 ack 1", "A 4+3 ack 1", "A 7+3 ack 1"]),
    ] {
        let mut profile = Profile::rfc6675();
        profile.nagle = nagle;
        let mut world = World::new(Config::new(profile.clone()), Config::new(profile));
        world.run_until(SECOND);
        for _ in 0..3 {
            world.ends[0].write(Bytes::from_static(b"abc")).unwrap();
            world.drain(0);
        }
        world.run_until(3 * SECOND);
        assert_eq!(told(&world, 0)[2..], expected, "nagle {nagle}");
    }
}

#[test]
fn a_closed_window_is_probed_and_opens_again() {
    let server = Config::default().with(|it| it.receive_buffer = WindowSize::Bytes(2_500));
    let mut world = World::new(Config::default().with(|it| it.mss = 1000), server);
    world.ends[0].write(Bytes::from(vec![7; 6_000])).unwrap();
    world.run_until(20 * SECOND);
    let stats = *world.ends[0].stats();
    assert_eq!((world.ends[1].readable(), stats.timeouts), (2_500, 0));
    assert!(
        (2..=5).contains(&stats.window_probes),
        "{} probes",
        stats.window_probes
    );
    let mut read = 0;
    while read < 6_000 {
        while let Some(bytes) = world.ends[1].read() {
            read += bytes.len();
        }
        world.drain(1);
        let now = world.now;
        world.run_until(now + SECOND / 2);
        assert!(now < 60 * SECOND, "stuck at {read}");
    }
    assert_eq!(world.ends[0].unacknowledged(), 0);
    assert!(
        world.now < 25 * SECOND,
        "the opening is announced, not found by a probe"
    );
}

#[test]
fn the_write_limit_pushes_back() {
    let mut world = World::new(
        Config::default().with(|it| it.send_buffer = 100),
        Config::default(),
    );
    assert_eq!(world.ends[0].writable(), 100);
    world.ends[0].write(Bytes::from(vec![0; 60])).unwrap();
    assert_eq!(
        world.ends[0]
            .write(Bytes::from(vec![0; 60]))
            .unwrap_err()
            .to_string(),
        "the send buffer has room for 40 bytes only"
    );
    world.run_until(SECOND);
    assert_eq!(world.ends[0].writable(), 100);
}

#[test]
fn old_timestamps_are_refused() {
    let mut profile = Profile::rfc6675();
    profile.timestamps = true;
    let mut world = World::new(Config::new(profile.clone()), Config::new(profile));
    world.run_until(SECOND);
    world.ends[0].write(Bytes::from_static(b"new")).unwrap();
    world.run_until(2 * SECOND);
    assert_eq!(
        world.ends[0].srtt().map(|srtt| srtt / MS),
        Some(125),
        "100 ms, then 300 ms by a delayed acknowledgement"
    );
    let mut old = parse(0, &world.sent[0].last().unwrap().1);
    old.header.sequence_number = old.header.sequence_number.add(3);
    let stamps = old.header.options.timestamps.as_mut().unwrap();
    stamps.value = stamps.value.wrapping_sub(500);
    old.header.options = Options {
        timestamps: old.header.options.timestamps,
        ..Options::default()
    };
    let mut out = BytesMut::new();
    old.encode(&mut out, (CLIENT, SERVER), true);
    let now = world.now;
    world.ends[1].handle_datagram(now, path_of(1), Ecn::NotEct, out.freeze());
    assert_eq!(
        (
            world.ends[1].stats().dropped.old_timestamp,
            world.ends[1].readable()
        ),
        (1, 3)
    );
}

#[test]
fn listening_survives_a_reset_of_a_half_open_connection() {
    let mut world = world();
    world.fate = Box::new(|end, _, _| if end == 1 { Fate::Drop } else { Fate::Pass });
    world.run_until(200 * MS);
    assert_eq!(world.ends[1].state(), State::SynReceived);
    forge(&mut world, 1, Flags::RST, 1, 0, b"");
    assert_eq!(world.ends[1].state(), State::Listen);
    world.fate = Box::new(|_, _, _| Fate::Pass);
    world.run_until(10 * SECOND);
    assert_eq!(
        [0, 1].map(|end| world.ends[end].state()),
        [State::Established; 2]
    );
}

/// The window closes twice. After the second closing, the first probe must be sent after one
/// timeout, and not at the later time that was planned for the next probe of the first closing.
#[test]
fn each_closed_window_is_probed_from_the_timeout_on() {
    let server = Config::default().with(|it| it.receive_buffer = WindowSize::Bytes(2_000));
    let mut world = World::new(Config::default().with(|it| it.mss = 1000), server);
    world.ends[0].write(Bytes::from(vec![7; 6_000])).unwrap();
    world.run_until(20 * SECOND);
    let first = world.ends[0].stats().window_probes;
    assert!(first >= 3, "{first} probes");
    while world.ends[1].read().is_some() {}
    world.drain(1);
    let opened = world.now;
    world.run_until(opened + SECOND / 2);
    assert_eq!(world.ends[1].readable(), 2_000, "it is full again");
    assert_eq!(world.ends[0].stats().window_probes, first);
    world.run_until(opened + 2 * SECOND);
    assert_eq!(world.ends[0].stats().window_probes, first + 1);
}

/// RFC 9293 §3.8.6.2.1 (3): less than a full segment is sent if it is at least half of the largest
/// window.
#[test]
fn half_of_the_window_is_worth_a_segment() {
    for (size, more) in [(500, 1), (501, 0)] {
        let server = Config::default().with(|it| it.receive_buffer = WindowSize::Bytes(1_000));
        let mut world = World::new(Config::default().with(|it| it.mss = 800), server);
        world.run_until(SECOND);
        world.ends[0].write(Bytes::from(vec![7; size])).unwrap();
        world.drain(0);
        let before = world.sent[0].len();
        world.ends[0].write(Bytes::from(vec![7; 5_000])).unwrap();
        world.drain(0);
        assert_eq!(world.sent[0].len() - before, more, "behind {size} bytes");
    }
}

#[test]
fn a_connection_that_is_reset_has_no_timer() {
    let mut world = established();
    forge(&mut world, 1, Flags::ACK, 1, 1, b"text");
    assert!(world.ends[1].poll_timeout().is_some(), "its answer waits");
    forge(&mut world, 1, Flags::RST, 5, 0, b"");
    assert_eq!(world.ends[1].state(), State::Closed);
    assert_eq!(world.ends[1].poll_timeout(), None);
}

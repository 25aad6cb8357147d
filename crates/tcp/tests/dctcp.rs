//! DCTCP (RFC 8257), computed by hand for links with 50 ms delay each way and unlimited rate.

use crate::common;

use anabranch_tcp::{Config, Profile};
use anabranch_transport::Ecn;
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::tcp::Flags;
use bytes::Bytes;
use common::{Fate, World};

fn config(settings: &[(&str, &str)]) -> Config {
    let mut config = Config::new(Profile::rfc6675());
    for (name, value) in [("congestion", "dctcp"), ("ecn", "true")]
        .iter()
        .chain(settings)
    {
        let set = config.set(name, value);
        set.or_else(|_| config.profile.set(name, value))
            .expect("a setting or a switch");
    }
    config.check().expect("they go together");
    config
}

fn transfer(config: &Config, segments: u64, fate: fn(usize, u64) -> Fate) -> World {
    let mut world = World::new(config.clone(), config.clone());
    world.ends[0].write_zeros(segments * 1460).expect("open");
    world.ends[1].set_discard(true);
    world.fate = Box::new(move |end, number, _| fate(end, number));
    world
}

/// Acknowledgements of the server: number of acknowledged segments, and whether ECN-Echo is set.
fn echoes(world: &World) -> Vec<(u32, bool)> {
    let first = 0xFFFF_F000u32.wrapping_add(1);
    let told = |packet: &Bytes| {
        let up_to = u32::from_be_bytes([packet[8], packet[9], packet[10], packet[11]]);
        let echo = u16::from(packet[13]) & Flags::ECE.0 != 0;
        (up_to.wrapping_sub(first) / 1460, echo)
    };
    // The first packet is the SYN-ACK.
    world.sent[1][1..]
        .iter()
        .map(|(_, packet)| told(packet))
        .collect()
}

/// Packet 0 of the client is the SYN, and packets 2 and 3 are segments 1 and 2, which are marked.
/// Every second segment is acknowledged, but when marking starts or stops, the earlier data must
/// first be acknowledged with the mark state of that data (RFC 8257 §3.2, figure 1).
#[test]
fn a_receiver_echoes_each_mark_and_no_more() {
    let marked = |end, number| match (end, number) {
        (0, 2 | 3) => Fate::Mark,
        _ => Fate::Pass,
    };
    let mut world = transfer(&config(&[("initial_window", "4 segments")]), 40, marked);
    world.run_until(190 * MILLISECOND);
    // Segment 0 is not marked, 1 and 2 are marked, and 3 is not; the acknowledgement of 3 waits for
    // a second segment.
    assert_eq!(echoes(&world)[..2], [(1, false), (3, true)]);
    world.run_until(20 * SECOND);
    assert_eq!(world.ends[1].stats().bytes_delivered, 40 * 1460);
    let told = echoes(&world);
    let of_marks: Vec<_> = told.iter().filter(|(_, echo)| *echo).collect();
    assert_eq!(of_marks.len(), 1, "{told:?}");
    assert_eq!(world.ends[0].stats().segments_retransmitted, 0);
}

/// The sender reduces the window once per window of data. The share of marks is initially 1, so the
/// window is halved (§3.3).
#[test]
fn a_window_is_cut_once_by_half_of_the_share() {
    let marked = |end, number| match (end, number) {
        (0, 2..=4) => Fate::Mark,
        _ => Fate::Pass,
    };
    let settings = [("initial_window", "10 segments"), ("delayed_ack", "false")];
    let mut world = transfer(&config(&settings), 400, marked);
    world.run_until(150 * MILLISECOND);
    assert_eq!(world.ends[0].cwnd() as u64, 10 * 1460);
    world.run_until(250 * MILLISECOND);
    // The window is eleven segments when the first mark is reported, and the share of marks is
    // still close to 1.
    let ssthresh = world.ends[0].ssthresh();
    assert!((5 * 1460..=6 * 1460).contains(&ssthresh), "{ssthresh}");
    assert_eq!(world.ends[0].stats().reductions_by_mark, 1);
    assert_eq!(world.ends[0].stats().segments_retransmitted, 0);
}

#[test]
fn scalable_text_says_so_and_nothing_else_does() {
    for (l4s, field) in [("false", Ecn::Ect0), ("true", Ecn::Ect1)] {
        let mut world = transfer(&config(&[("l4s", l4s)]), 20, |_, _| Fate::Pass);
        world.run_until(20 * SECOND);
        let sent = world.sent[0].iter().zip(&world.fields[0]);
        for ((_, packet), ecn) in sent {
            let expected = if packet.len() > 100 {
                field
            } else {
                Ecn::NotEct
            };
            assert_eq!(*ecn, expected);
        }
        assert!(world.fields[1].iter().all(|&ecn| ecn == Ecn::NotEct));
    }
}

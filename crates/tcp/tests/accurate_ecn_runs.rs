//! Accurate ECN (RFC 9768) in transfers: random losses, other peers, and scalable senders.

use crate::accurate_ecn::{MSS, aces, config, counters, parse, transfer};
use crate::common::Fate;

use anabranch_transport::Ecn;
use anabranch_transport::time::SECOND;
use anabranch_wire::tcp::Flags;
use bytes::Bytes;

/// A random generator: its function returns `true` with the given probability, percent.
fn random(seed: u64) -> impl FnMut(u64) -> bool {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1;
    move |percent| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % 100 < percent
    }
}

/// Random losses and marks in both directions, with delayed acknowledgements: at the end the sender
/// knows the number of all marked packets and bytes. The exception is a timeout, after which the
/// scoreboard is empty. An acknowledgement of many segments without an option may then have wrapped
/// the ACE field, so the sender assumes eight more marks (§3.2.2.5.2). A failure prints the seed.
#[test]
fn every_mark_is_known_at_the_end() {
    let (mut marks, mut exact) = (0, 0);
    for seed in 0..200u64 {
        let mut draw = random(seed);
        let mut both = config(true);
        both.profile.delayed_ack = draw(50);
        both.profile.timestamps = draw(50);
        both.rack = draw(50);
        let (lost, marked) = (seed % 5, seed % 60);
        let mut world = transfer(both.clone(), both, 400);
        world.fate = Box::new(move |end, number, _| match () {
            () if number < 3 => Fate::Pass,
            () if draw(lost) => Fate::Drop,
            () if end == 0 && draw(marked) => Fate::Mark,
            () => Fate::Pass,
        });
        world.run_until(SECOND);
        world.ends[0].close();
        world.run_until(2000 * SECOND);
        let (sender, receiver) = (*world.ends[0].stats(), *world.ends[1].stats());
        assert_eq!(receiver.bytes_delivered, 400 * MSS, "seed {seed}");
        let more = sender
            .marked_packets_reported
            .checked_sub(receiver.marks_received);
        let more = more.unwrap_or_else(|| panic!("seed {seed}: {sender:?} {receiver:?}"));
        assert!(
            more == 0 || (more % 8 == 0 && sender.timeouts > 0),
            "seed {seed}: {more} too many: {sender:?} {receiver:?}"
        );
        exact += u32::from(more == 0);
        let received = sender.marked_bytes_reported + sender.ect0_bytes_reported;
        assert!(received <= 400 * MSS, "seed {seed}: {sender:?}");
        let retransmitted = sender.bytes_retransmitted;
        assert!(
            received + retransmitted >= 400 * MSS,
            "seed {seed}: {sender:?}"
        );
        assert_eq!(sender.ect1_bytes_reported, 0);
        marks += receiver.marks_received;
    }
    assert!(marks > 5_000, "{marks}");
    assert!(exact >= 190, "{exact} of 200");
}

/// Data in both directions, with random losses and marks. Segments full of data have no space for
/// options, so the sender learns the bytes of a mark later than the mark. Neither end may take this
/// for mangled feedback, so the last data is still ECN-capable. A failure prints the seed.
#[test]
fn data_in_both_directions_is_ecn_capable_to_its_end() {
    let (mut marks, mut exact) = (0, 0);
    for seed in 0..200u64 {
        let mut draw = random(seed);
        let mut both = config(true);
        both.profile.delayed_ack = draw(50);
        both.profile.timestamps = draw(75);
        both.rack = draw(50);
        let (lost, marked) = (seed % 5, 1 + seed % 30);
        let mut world = transfer(both.clone(), both, 300);
        world.ends[1].write_zeros(200 * MSS).expect("open");
        world.ends[0].set_discard(true);
        world.fate = Box::new(move |_, number, _| match () {
            () if number < 3 => Fate::Pass,
            () if draw(lost) => Fate::Drop,
            () if draw(marked) => Fate::Mark,
            () => Fate::Pass,
        });
        world.run_until(1000 * SECOND);
        world.fate = Box::new(|_, _, _| Fate::Pass);
        let sent = [0, 1].map(|end| world.fields[end].len());
        for end in &mut world.ends {
            end.write_zeros(2 * MSS).expect("open");
        }
        world.run_until(2000 * SECOND);
        for end in [0, 1] {
            let (sender, receiver) = (*world.ends[end].stats(), *world.ends[1 - end].stats());
            let last = &world.fields[end][sent[end]..];
            assert!(
                last.contains(&Ecn::Ect0),
                "seed {seed}, end {end}: {sender:?}"
            );
            let more = sender
                .marked_packets_reported
                .checked_sub(receiver.marks_received);
            let more = more.unwrap_or_else(|| panic!("seed {seed}: {sender:?} {receiver:?}"));
            assert_eq!(more % 8, 0, "seed {seed}, end {end}: {sender:?}");
            exact += u32::from(more == 0);
            marks += receiver.marks_received;
        }
    }
    assert!(marks > 10_000, "{marks}");
    assert!(exact >= 350, "{exact} of 400");
}

/// If only one end supports accurate ECN, both ends use the feedback of RFC 3168.
#[test]
fn an_end_without_accurate_ecn_gets_the_older_feedback() {
    for (client, server) in [(true, false), (false, true)] {
        let mut world = transfer(config(client), config(server), 40);
        world.fate = Box::new(|end, number, _| match (end, number) {
            (0, 2) => Fate::Mark,
            _ => Fate::Pass,
        });
        world.run_until(20 * SECOND);
        assert_eq!(aces(&world, 1)[0], 1);
        let stats = world.ends[0].stats();
        assert_eq!(
            (stats.reductions_by_mark, stats.marked_packets_reported),
            (1, 0)
        );
        let reduced = |packet: &Bytes| parse(packet).header.flags.contains(Flags::CWR);
        let data = world.sent[0][1..].iter();
        assert_eq!(data.filter(|(_, packet)| reduced(packet)).count(), 1);
        assert_eq!(world.ends[1].stats().bytes_delivered, 40 * MSS);
    }
}

/// ECT(1) requires accurate feedback (RFC 9331 §4.2): a scalable sender that supports accurate
/// feedback sends ECT(0) if the peer does not support it.
#[test]
fn a_scalable_sender_marks_itself_only_with_accurate_feedback() {
    for (server, field) in [(true, Ecn::Ect1), (false, Ecn::Ect0)] {
        let mut scalable = config(true);
        scalable.set("congestion", "prague").expect("a control");
        scalable.profile.l4s = true;
        scalable.check().expect("settings that go together");
        scalable.check_effects().expect("each has an effect");
        let mut world = transfer(scalable, config(server), 40);
        world.run_until(20 * SECOND);
        let fields = world.sent[0].iter().zip(&world.fields[0]);
        let data = fields.filter(|((_, packet), _)| packet.len() > 100);
        assert!(data.into_iter().all(|(_, ecn)| *ecn == field));
        let reported = world.ends[0].stats().ect1_bytes_reported;
        assert_eq!(reported, if server { 40 * MSS } else { 0 });
        // With order 1, the counter of ECT(1) comes first in the option.
        let acknowledgements = world.sent[1][1..].iter();
        let options: Vec<_> = acknowledgements
            .filter_map(|(_, packet)| counters(&parse(packet)))
            .collect();
        assert_eq!(!options.is_empty(), server);
        let last = [None, None, Some(1 + 40 * MSS as u32)];
        assert!(!server || options.last() == Some(&last), "{options:?}");
    }
}

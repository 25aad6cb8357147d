//! Explicit Congestion Notification (RFC 4960 Appendix A): negotiation, effects of marks, and
//! limits for a malicious peer.

use crate::common;

use anabranch_sctp::profile::MaxBurst;
use anabranch_sctp::{AssociationId, Config, DiscardReason, PathId, Profile, SendOptions};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Ecn, Probe, ProbeSet, Trace};
use anabranch_wire::chunk::{Chunk, Cwr, Ecne};
use anabranch_wire::serial::Tsn;
use bytes::Bytes;
use common::*;

/// Settings with an ssthresh floor of one packet, because the usual floor of four packets would
/// hide that cwnd is halved. The burst limit and the I bit are off.
fn config(ecn: bool) -> Config {
    let mut profile = Profile::rfc9260();
    profile.ecn = ecn;
    profile.ssthresh_floor = 1;
    profile.sack_immediately = false;
    profile.max_burst_applies = MaxBurst::Off;
    Config::new(profile)
}

/// World in which A and Z are established, and cwnd of A is recorded.
fn world(a: bool, z: bool) -> (World, AssociationId, AssociationId) {
    let mut world = World::with_configs(config(a), config(z));
    let (a, z) = world.established();
    let association = world.endpoints[A].association_mut(a).expect("known");
    let wanted = ProbeSet::NONE.with(Probe::Cwnd).with(Probe::Ssthresh);
    *association.trace_mut() = Trace::new(wanted);
    (world, a, z)
}

/// Queues messages that are sent one per packet: 1016 bytes of cwnd each.
fn offer(world: &mut World, id: AssociationId, messages: usize) {
    for _ in 0..messages {
        let message = Bytes::from(vec![7; 1000]);
        let association = world.endpoints[A].association_mut(id).expect("known");
        association
            .send(world.now, message, &SendOptions::new())
            .expect("room");
    }
    world.drain(A);
}

fn recorded(world: &mut World, id: AssociationId, probe: Probe) -> Vec<f64> {
    let association = world.endpoints[A].association_mut(id).expect("known");
    let samples = association.trace_mut().drain();
    let samples = samples.filter(|sample| sample.probe == probe);
    samples.map(|sample| sample.value).collect()
}

fn reductions(world: &World, id: AssociationId) -> u64 {
    let association = world.endpoints[A].association(id).expect("known");
    association.stats().sender.reductions_by_mark
}

fn cwnd(world: &World, id: AssociationId, path: u8) -> u64 {
    let association = world.endpoints[A].association(id).expect("known");
    association.paths().get(PathId(path)).cwnd()
}

/// Marks the DATA packets of A for which `which` returns so; packets are counted from 1.
fn marks(mut which: impl FnMut(u64) -> Fate + 'static) -> Box<dyn FnMut(&Shot) -> Fate> {
    let mut data = 0;
    Box::new(move |shot| {
        if shot.from == A && shot.chunks.contains("DATA") {
            data += 1;
            return which(data);
        }
        Fate::Deliver
    })
}

#[test]
fn both_ends_must_offer_it() {
    for (offers_a, offers_z) in [(true, true), (true, false), (false, true), (false, false)] {
        let (mut world, a, z) = world(offers_a, offers_z);
        let both = offers_a && offers_z;
        let uses = |host: usize, id| {
            let association = world.endpoints[host].association(id).expect("known");
            association.negotiated().ecn
        };
        assert_eq!((uses(A, a), uses(Z, z)), (both, both));
        // Every router marks all ECN-capable packets.
        world.fate = Box::new(|_| Fate::Mark);
        offer(&mut world, a, 40);
        world.run_for(20 * SECOND);
        assert_eq!(world.receive_all(Z, z).len(), 40);
        for shot in &world.shots {
            let data = shot.from == A && shot.chunks.contains("DATA");
            assert_eq!(shot.ecn == Ecn::Ect0, both && data, "{}", shot.chunks);
        }
        let told = world.story.iter().any(|line| line.contains("ECNE"));
        assert_eq!(told, both);
        assert_eq!(reductions(&world, a) > 0, both);
        let stats = world.endpoints[A].association(a).expect("known").stats();
        assert_eq!(stats.sender.chunks_retransmitted, 0);
    }
}

/// The initial cwnd of 4404 bytes permits five packets of 1016; the second is marked. Z
/// acknowledges packet 1 at once, and packets 3 and 5 with ECNE. The first SACK increases cwnd by
/// 1016 to 5420, and two more packets are sent. The first ECNE, with 6096 bytes in flight, halves
/// cwnd to 2710, and its SACK increases nothing: 4064 bytes remain in flight. The second ECNE
/// belongs to the same window. Its SACK leaves 2032 bytes in flight: one more packet is sent, with
/// CWR. Z repeats the ECNE for packets 6 and 7, which were sent before the CWR, and gets a second
/// CWR. After that, neither ECNE nor CWR is sent.
#[test]
fn a_mark_halves_the_window_once_and_nothing_goes_again() {
    let (mut world, a, _) = world(true, true);
    world.fate = marks(|data| if data == 2 { Fate::Mark } else { Fate::Deliver });
    offer(&mut world, a, 10);
    world.run_for(55 * MILLISECOND);
    assert_eq!(
        world.take_story(),
        [
            "A -> DATA -> Z",
            "A -> DATA -> Z",
            "A -> DATA -> Z",
            "A -> DATA -> Z",
            "A -> DATA -> Z",
            "Z -> SACK -> A",
            "Z -> ECNE, SACK -> A",
            "Z -> ECNE, SACK -> A",
            "A -> DATA -> Z",
            "A -> DATA -> Z",
            "A -> CWR, DATA -> Z",
            "Z -> ECNE, SACK -> A",
            "A -> CWR, DATA -> Z",
            "A -> DATA -> Z",
            "Z -> SACK -> A",
        ]
    );
    assert_eq!(recorded(&mut world, a, Probe::Cwnd), [5420.0, 2710.0]);
    assert_eq!(reductions(&world, a), 1);
    let stats = world.endpoints[A].association(a).expect("known").stats();
    assert_eq!(stats.sender.chunks_retransmitted, 0);
    assert_eq!(stats.sender.timeouts, 0);
}

/// Z repeats ECNE until a CWR arrives, but A reduces cwnd only once.
#[test]
fn a_lost_cwr_is_said_again() {
    let (mut world, a, z) = world(true, true);
    let mut lost = false;
    let mut data = marks(|data| if data == 2 { Fate::Mark } else { Fate::Deliver });
    world.fate = Box::new(move |shot| {
        if shot.chunks.contains("CWR") && !std::mem::replace(&mut lost, true) {
            return Fate::Drop;
        }
        data(shot)
    });
    offer(&mut world, a, 40);
    world.run_for(20 * SECOND);
    assert_eq!(world.receive_all(Z, z).len(), 40);
    let said = world.story.iter().filter(|line| line.contains("CWR"));
    assert!(said.count() >= 2, "{:#?}", world.story);
    let told = world.story.iter().rposition(|line| line.contains("ECNE"));
    assert!(told.expect("told") + 10 < world.story.len());
    assert_eq!(reductions(&world, a), 1);
}

/// A mark after the reduction is a new congestion event. The CWR of the first event does not end
/// the ECNE of this one.
#[test]
fn a_mark_of_the_next_window_reduces_again() {
    let (mut world, a, z) = world(true, true);
    world.fate = marks(|data| match data {
        // The eighth packet is the first after the reduction, and contains the CWR for it.
        2 | 8 => Fate::Mark,
        _ => Fate::Deliver,
    });
    offer(&mut world, a, 40);
    world.run_for(20 * SECOND);
    assert_eq!(world.receive_all(Z, z).len(), 40);
    assert_eq!(reductions(&world, a), 2);
}

/// A loss in the window for which a mark has halved cwnd causes no second reduction, and
/// retransmissions are not ECN-capable.
#[test]
fn a_mark_and_a_loss_of_one_window_are_one_congestion() {
    let thresholds = |marked: bool| {
        let (mut world, a, z) = world(true, true);
        let mut sent = Vec::new();
        // The third round has enough packets for three missing reports.
        world.fate = marks(move |data| match data {
            20 if marked => Fate::Mark,
            22 => Fate::Drop,
            _ => Fate::Deliver,
        });
        offer(&mut world, a, 60);
        world.run_for(20 * SECOND);
        assert_eq!(world.receive_all(Z, z).len(), 60);
        let stats = world.endpoints[A].association(a).expect("known").stats();
        assert_eq!(stats.sender.chunks_retransmitted, 1);
        assert_eq!(stats.sender.timeouts, 0);
        assert_eq!(stats.sender.reductions_by_mark, u64::from(marked));
        for shot in &world.shots {
            for chunk in chunks_of(&shot.bytes) {
                if let Chunk::Data(data) = chunk {
                    assert_eq!(shot.ecn == Ecn::NotEct, sent.contains(&data.tsn));
                    sent.push(data.tsn);
                }
            }
        }
        recorded(&mut world, a, Probe::Ssthresh).len()
    };
    assert_eq!((thresholds(false), thresholds(true)), (1, 1));
}

/// If the retransmission is lost, too, and RACK detects that, the loss is a new congestion event
/// (RFC 5681 §4.3).
#[test]
fn a_lost_retransmission_halves_the_window_that_a_mark_has_halved() {
    let thresholds = |marked: bool| {
        let racked = || config(true).with(|it| it.rack = true);
        let mut world = World::with_configs(racked(), racked());
        let (a, z) = world.established();
        let association = world.endpoints[A].association_mut(a).expect("known");
        *association.trace_mut() = Trace::new(ProbeSet::NONE.with(Probe::Ssthresh));
        let (mut data, mut first) = (0, None);
        world.fate = Box::new(move |shot| {
            let Some(tsn) = chunks_of(&shot.bytes)
                .into_iter()
                .find_map(|chunk| match chunk {
                    Chunk::Data(data) if shot.from == A => Some(data.tsn),
                    _ => None,
                })
            else {
                return Fate::Deliver;
            };
            data += 1;
            match data {
                20 if marked => Fate::Mark,
                22 => {
                    first = Some(tsn);
                    Fate::Drop
                }
                _ if first == Some(tsn) => {
                    first = None;
                    Fate::Drop
                }
                _ => Fate::Deliver,
            }
        });
        offer(&mut world, a, 60);
        world.run_for(20 * SECOND);
        assert_eq!(world.receive_all(Z, z).len(), 60);
        let stats = world.endpoints[A].association(a).expect("known").stats();
        let sender = stats.sender;
        assert_eq!(sender.timeouts, 0);
        assert_eq!(sender.reductions_by_mark, u64::from(marked));
        recorded(&mut world, a, Probe::Ssthresh).len()
    };
    // The third reduction is for a retransmission that was sent after new data, but at the same
    // time. RACK orders transmissions of equal time by TSN (RFC 8985 §6.2 step 2), and therefore
    // considers the retransmission lost once the new data has arrived.
    assert_eq!((thresholds(false), thresholds(true)), (3, 3));
}

#[test]
fn a_path_without_marks_keeps_its_window() {
    let homes =
        |host| config(true).with(|it| it.addresses = vec![address(host, 0), address(host, 1)]);
    let mut world = World::with_configs(homes(A), homes(Z));
    let (a, _) = world.established();
    let (first, other) = (cwnd(&world, a, 0), cwnd(&world, a, 1));
    world.fate = marks(|data| if data == 1 { Fate::Mark } else { Fate::Deliver });
    offer(&mut world, a, 5);
    world.run_for(50 * MILLISECOND);
    assert_eq!(cwnd(&world, a, 0), first / 2);
    assert_eq!(cwnd(&world, a, 1), other);
}

/// Delivers `chunks` from Z to A, and returns the packets that A then sends to Z, as logged.
fn tell(world: &mut World, chunks: &[&Chunk]) -> Vec<String> {
    let tag = world.tag_sent_by(Z);
    let bytes = packet(Z, tag, chunks);
    world.take_story();
    world.inject(A, bytes);
    let story = world.take_story();
    story.into_iter().skip(1).collect()
}

fn ecne(tsn: Tsn) -> Chunk {
    Chunk::Ecne(Ecne { lowest_tsn: tsn })
}

/// ECNEs of a malicious peer only slow down the data that is sent to this peer, and once per
/// window.
#[test]
fn ecne_of_unsent_tsns_changes_no_window_and_a_flood_reduces_it_once() {
    let (mut world, a, _) = world(true, true);
    offer(&mut world, a, 4);
    world.run_for(SECOND);
    let sent: Vec<_> = world
        .shots
        .iter()
        .flat_map(|shot| chunks_of(&shot.bytes))
        .filter_map(|chunk| match chunk {
            Chunk::Data(data) => Some(data.tsn),
            _ => None,
        })
        .collect();
    let (first, last) = (sent[0], *sent.last().expect("sent"));
    let before = cwnd(&world, a, 0);
    for wrong in [
        last.next(),
        last.add(1 << 31),
        first.prev(),
        last.add(1_000),
        Tsn(first.0.wrapping_sub(1 << 30)),
    ] {
        assert_eq!(tell(&mut world, &[&ecne(wrong)]), [""; 0], "{wrong:?}");
    }
    assert_eq!(world.endpoints[A].discards().of(DiscardReason::BadEcne), 5);
    assert_eq!(cwnd(&world, a, 0), before);
    let many = vec![ecne(last); 100];
    let many: Vec<_> = many.iter().collect();
    for _ in 0..10 {
        assert_eq!(tell(&mut world, &many), [""; 0]);
    }
    assert_eq!(reductions(&world, a), 1);
    assert_eq!(cwnd(&world, a, 0), before / 2);
    // The CWR is bundled with the next DATA.
    offer(&mut world, a, 1);
    assert_eq!(world.take_story(), ["A -> CWR, DATA -> Z"]);
    // A CWR that was not expected has no effect.
    let cwr = Chunk::Cwr(Cwr { lowest_tsn: last });
    assert_eq!(tell(&mut world, &[&cwr]), [""; 0]);
}

/// Some stacks append the number of marked packets to the ECNE (draft-stewart-tsvwg-sctpecn):
/// twelve bytes, of which eight are used.
#[test]
fn an_ecne_that_counts_marks_is_read() {
    let (mut world, a, _) = world(true, true);
    offer(&mut world, a, 5);
    let data = world.shot(A, "DATA");
    let Chunk::Data(data) = chunks_of(&data).remove(0) else {
        panic!("no DATA");
    };
    world.run_for(SECOND);
    let tag = world.tag_sent_by(Z);
    let mut chunk = vec![12, 0, 0, 12];
    chunk.extend(data.tsn.0.to_be_bytes());
    chunk.extend(3u32.to_be_bytes());
    world.inject(A, raw_packet(Z, tag, &chunk));
    assert_eq!(reductions(&world, a), 1);
}

#[test]
fn without_agreement_the_chunks_mean_nothing() {
    let (mut world, a, _) = world(true, false);
    offer(&mut world, a, 2);
    world.run_for(SECOND);
    let before = cwnd(&world, a, 0);
    let data = world.shot(A, "DATA");
    let Chunk::Data(data) = chunks_of(&data).remove(0) else {
        panic!("no DATA");
    };
    let unexpected = world.endpoints[A].discards().of(DiscardReason::WrongState);
    let cwr = Chunk::Cwr(Cwr {
        lowest_tsn: data.tsn,
    });
    assert_eq!(tell(&mut world, &[&ecne(data.tsn), &cwr]), [""; 0]);
    let now = world.endpoints[A].discards().of(DiscardReason::WrongState);
    assert_eq!(now, unexpected + 2);
    assert_eq!((cwnd(&world, a, 0), reductions(&world, a)), (before, 0));
}

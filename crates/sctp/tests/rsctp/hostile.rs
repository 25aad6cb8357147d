//! Tests of HEARTBEAT ACKs from an attacker, or from a peer that reports false values.

use super::*;

/// Values that an attacker could change: windows, estimates, the primary path.
fn standing(world: &World, a: AssociationId) -> String {
    let paths = of(world, A, a).paths();
    let mut text = format!("primary {:?}", paths.primary());
    for (id, entry) in paths.iter() {
        text += &format!(
            "; {id:?} {:?} cwnd {} ssthresh {} {:?} errors {}",
            entry.state(),
            entry.cwnd(),
            entry.ssthresh(),
            entry.receiver(),
            entry.error_count()
        );
    }
    text
}

#[test]
fn an_attackers_heartbeat_ack_moves_nothing_and_is_counted() {
    let mut world = world(config(|_| {}));
    let (a, z) = world.established();
    world.fate = links([125_000, 125_000], |_, _| false);
    let (mut next, mut got) = (0, Vec::new());
    transfer(&mut world, (a, z), &mut next, &mut got, 5);
    // From here on the answers of Z are dropped, so that the HEARTBEATs of A stay outstanding.
    world.fate = Box::new(|shot| {
        if shot.from == Z && shot.chunks.contains("HEARTBEAT ACK") {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    world.forget();
    transfer(&mut world, (a, z), &mut next, &mut got, 1);
    let (_, info) = heartbeats_of(&world, A, 0).pop().expect("asked");
    world.fate = Box::new(|_| Fate::Drop);
    let tag = world.tag_sent_by(Z);
    let answer = |available_bandwidth: u32, chunk_loss_rate: u32, echoed: Vec<u8>| {
        let fields = HeartbeatAckFields {
            available_bandwidth,
            chunk_loss_rate,
            echoed: echoed.into(),
        };
        let ack = HeartbeatAck {
            info: fields.encode(),
        };
        packet(Z, tag, &[&Chunk::HeartbeatAck(ack)])
    };
    let bent = |change: fn(&mut Vec<u8>)| {
        let mut info = info.to_vec();
        change(&mut info);
        answer(1_000, 900_000, info)
    };
    let before = standing(&world, a);
    let count = |world: &World, reason| world.endpoints[A].discards().of(reason);
    let nonces = count(&world, DiscardReason::HeartbeatNonce);
    let forged = [
        bent(|info| *info.last_mut().expect("long") ^= 1), // the nonce
        bent(|info| info[8] = 1),                          // the address
        bent(|info| info[8] = 77),
        bent(|info| info.truncate(12)),
        bent(Vec::clear),
        bent(|info| info.push(0)),
        packet(
            Z,
            tag,
            &[&Chunk::HeartbeatAck(HeartbeatAck { info: info.clone() })],
        ), // as in the RFC
    ];
    for (index, bytes) in forged.iter().enumerate() {
        world.inject(A, bytes.clone());
        assert_eq!(standing(&world, a), before, "forgery {index}");
        let counted = count(&world, DiscardReason::HeartbeatNonce) - nonces;
        assert_eq!(counted, index as u64 + 1);
    }
    // An off-path attacker does not know the tag.
    let tags = count(&world, DiscardReason::VerificationTag);
    world.inject(A, retag(&answer(1_000, 0, info.to_vec()), tag ^ 1));
    assert_eq!(count(&world, DiscardReason::VerificationTag), tags + 1);
    // The nonce is correct, but the report is impossible, because the receiver lies. The answer
    // should only prove that the path is alive.
    for (bandwidth, loss) in [
        (u32::MAX, 0),
        (1_250_000_001, NO_LOSS_RATE),
        (10_000_000, 0), // 80 times the link rate, within a second that carried at most 125 kB
        (1_000, WHOLE + 1),
        (1_000, NO_LOSS_RATE - 1),
    ] {
        world.fate = Box::new(|shot| {
            if shot.chunks.contains("HEARTBEAT") {
                Fate::Drop
            } else {
                Fate::Deliver
            }
        });
        world.forget();
        transfer(&mut world, (a, z), &mut next, &mut got, 2);
        let (_, info) = heartbeats_of(&world, A, 0).pop().expect("asked");
        world.fate = Box::new(|_| Fate::Drop);
        // The windows are compared without the error counts, because the answer clears earlier
        // errors.
        let windows = |world: &World| -> Vec<String> {
            let standing = standing(world, a);
            let path = |text: &str| text.split(" errors ").next().map(str::to_owned);
            standing.split("; ").filter_map(path).collect()
        };
        let before = windows(&world);
        let reports = count(&world, DiscardReason::HeartbeatReport);
        world.inject(A, answer(bandwidth, loss, info.to_vec()));
        assert_eq!(windows(&world), before, "{bandwidth} {loss}");
        assert_eq!(count(&world, DiscardReason::HeartbeatReport), reports + 1);
        // A second copy of the answer should be discarded.
        let nonces = count(&world, DiscardReason::HeartbeatNonce);
        world.inject(A, answer(bandwidth, loss, info.to_vec()));
        assert_eq!(count(&world, DiscardReason::HeartbeatNonce), nonces + 1);
    }
    world.fate = Box::new(|_| Fate::Deliver);
    all_arrived(&mut world, z, &mut got, next);
}

/// A receiver exaggerates the rate of an idle path. The path should get no larger burst than the
/// receive window.
#[test]
fn a_boast_about_the_idle_path_is_bounded_by_the_window() {
    let mut world = world(config(|_| {}));
    let (a, _) = world.established();
    world.send(A, a, 0, "something to measure");
    let boast = |world: &mut World, info: Bytes| {
        let fields = HeartbeatAckFields {
            available_bandwidth: 1_250_000_000,
            chunk_loss_rate: NO_LOSS_RATE,
            echoed: info,
        };
        let ack = HeartbeatAck {
            info: fields.encode(),
        };
        let bytes = packet(Z, world.tag_sent_by(Z), &[&Chunk::HeartbeatAck(ack)]);
        let path = Path::new(address(A, 1), address(Z, 1));
        world.inject_from(A, path, bytes);
    };
    world.run_for(SECOND);
    world.forget();
    world.fate = Box::new(|shot| {
        if shot.from == Z && network(shot.path.remote) == 1 {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    world.run_for(4 * SECOND);
    let pair = heartbeats_of(&world, A, 1);
    assert_eq!(pair.len(), 2);
    boast(&mut world, pair[1].1.clone());
    let entry = of(&world, A, a).paths().get(PathId(1)).cwnd();
    assert_eq!(entry, 65_536 - 20, "what Z offers: it has 20 bytes to read");
}

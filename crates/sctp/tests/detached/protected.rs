//! Detached associations that use the DTLS chunk.

use anabranch_sctp::{AssociationId, AssociationState, DiscardReason, Recipient, RestartKeys};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Ecn, Transport};
use anabranch_wire::checksum;

use super::{CLIENT_PORT, DELAY, Net, numbers};
use crate::dtls::{DTLS, strict};

fn protected() -> (Net, usize, AssociationId) {
    let mut net = Net::with(strict());
    let (client, id) = net.up(2, 1);
    let association = net.clients[client].1.association(id).expect("up");
    assert!(association.protection().is_active());
    assert_eq!(net.workers.len(), 1);
    (net, client, id)
}

fn restart_keys(net: &Net, client: usize, id: AssociationId) -> Option<RestartKeys> {
    let association = net.clients[client].1.association(id).expect("up");
    association.protection().restart_keys()
}

/// The association has the keys and their timers. Messages are echoed despite losses, with keys of
/// two epochs, and no packet is unprotected.
#[test]
fn a_protected_association_has_its_keys_on_another_thread() {
    let (mut net, client, id) = protected();
    net.story.clear();
    let mut count = 0;
    net.lost = Box::new(move |_, _| {
        count += 1;
        count % 7 == 0
    });
    let all = numbers(0..60);
    for (number, text) in all.iter().enumerate() {
        if number == 30 {
            let now = net.now;
            let association = net.clients[client].1.association_mut(id).expect("up");
            association.protection_mut().rekey(now);
        }
        net.send(client, id, text.clone());
        net.run_for(5 * MILLISECOND);
    }
    net.run_for(200 * SECOND);
    assert_eq!(net.only_worker().output, all);
    assert_eq!(net.read(client, id), all);
    assert!(net.story.iter().all(|it| it.contains(DTLS)));
    let keys = restart_keys(&net, client, id).expect("both ends have them");
    assert_eq!(keys.epoch, 4, "keys were negotiated again");
    // Both ends shut down; the SHUTDOWN COMPLETE is protected, too.
    let now = net.now;
    let association = net.clients[client].1.association_mut(id).expect("up");
    association.shutdown(now, None).expect("open");
    net.drain();
    net.run_for(20 * SECOND);
    assert_eq!(net.state(client, id), Some(AssociationState::Closed));
    assert!(net.only_worker().is_closed);
    assert!(net.story.iter().all(|it| it.contains(DTLS)));
}

/// The association decrypts the COOKIE ECHO, and the endpoint verifies its cookie
/// (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.4).
#[test]
fn the_peer_of_a_protected_association_restarts_with_its_restart_keys() {
    let (mut net, client, id) = protected();
    let keys = restart_keys(&net, client, id).expect("negotiated");
    net.story.clear();
    let (client, id) = net.connect_after(2, 1, CLIENT_PORT, |association| {
        assert!(association.protection_mut().restart_with(&keys));
    });
    net.run_for(SECOND);
    assert_eq!(net.only_worker().output, ["restarted"]);
    let clear: Vec<_> = net.story.iter().filter(|it| !it.contains(DTLS)).collect();
    assert_eq!(clear, ["-> INIT", "<- INIT ACK"]);
    net.send(client, id, "new".into());
    net.run_for(SECOND);
    assert_eq!(net.read(client, id), ["new"]);
    // Keys for the next restart are available when no packet of this restart can be in flight any
    // more.
    assert!(restart_keys(&net, client, id).is_none());
    net.run_for(200 * SECOND);
    assert_eq!(restart_keys(&net, client, id).map(|it| it.epoch), Some(3));
}

/// A driver sends the packets of an association before it passes its events to the endpoint.
/// Packets of the peer may therefore arrive after a restart before the endpoint knows the new tag.
#[test]
fn packets_right_after_a_restart_reach_the_association() {
    let (mut net, client, id) = protected();
    let keys = restart_keys(&net, client, id).expect("negotiated");
    net.hides_restarts = true;
    let (client, id) = net.connect_after(2, 1, CLIENT_PORT, |association| {
        assert!(association.protection_mut().restart_with(&keys));
    });
    net.run_for(SECOND);
    assert_eq!(net.only_worker().output, ["restarted"]);
    net.send(client, id, "early".into());
    net.run_for(2 * DELAY);
    assert_eq!(net.only_worker().output, ["restarted", "early"]);
    assert_eq!(net.server.discards().of(DiscardReason::VerificationTag), 0);
}

#[test]
fn the_peer_of_a_protected_association_does_not_restart_without_the_keys() {
    let (mut net, former, former_id) = protected();
    let (client, id) = net.connect(2, 1);
    net.run_for(3 * SECOND);
    assert_eq!(net.state(client, id), Some(AssociationState::CookieEchoed));
    let worker = net.only_worker();
    assert_eq!(worker.output, [""; 0]);
    let refused = |it: &&(DiscardReason, u64)| it.0 == DiscardReason::Unprotected;
    let refused = worker.discarded.iter().find(refused).map(|it| it.1);
    assert!(refused.is_some_and(|it| it >= 2), "{refused:?}");
    // The association of the former peer still works.
    net.clients.remove(client);
    net.send(former, former_id, "still".into());
    net.run_for(SECOND);
    assert_eq!(net.read(former, former_id), ["still"]);
}

/// A packet that was altered, has another tag, is not protected, or arrives twice: only one copy of
/// the valid packet has an effect.
#[test]
fn a_protected_association_discards_packets_of_others() {
    let (mut net, client, id) = protected();
    net.send(client, id, "once".into());
    let (_, (_, path, packet)) = net.flying.pop_last().expect("sent");
    let mut changed = packet.to_vec();
    changed[40] ^= 1;
    checksum::fill(&mut changed);
    // An unprotected SHUTDOWN with TSN 0.
    let mut clear = packet[..12].to_vec();
    clear.extend_from_slice(&[7, 0, 0, 8, 0, 0, 0, 0]);
    checksum::fill(&mut clear);
    let mut foreign = packet.to_vec();
    foreign[4] ^= 1;
    checksum::fill(&mut foreign);
    let foreign = foreign.into();
    let all = 0..packet.len();
    let recipient =
        (net.server).handle_udp_datagram(net.now, path, 0, Ecn::NotEct, (&foreign, all));
    assert_eq!(recipient, Recipient::None);
    net.drain();
    for packet in [changed.into(), clear.into(), packet.clone(), packet] {
        net.server
            .handle_datagram(net.now, path, Ecn::NotEct, packet);
        net.drain();
    }
    let worker = net.only_worker();
    assert_eq!(worker.output, ["once"]);
    let mut discarded = worker.discarded.clone();
    discarded.sort_unstable();
    let mut expected = [
        DiscardReason::ReplayedDtls,
        DiscardReason::ForgedDtls,
        DiscardReason::Unprotected,
        DiscardReason::VerificationTag,
    ]
    .map(|it| (it, 1));
    expected.sort_unstable();
    assert_eq!(discarded, expected);
}

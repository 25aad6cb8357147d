//! Requester of ASCONFs (RFC 5061 §5.1, §5.3) between two endpoints.

use crate::common;

use anabranch_sctp::{
    AddressChange, AddressChangeOutcome, AssociationState, CloseReason, Config, Endpoint,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use bytes::Bytes;
use common::pair::*;
use common::*;

use AddressChange::{Add, AddSource, KeepOnly, PeerPrimary, Remove};
use AddressChangeOutcome::{Failed, Performed, Refused};

#[test]
fn an_address_is_added_chosen_and_the_old_one_removed() {
    let mut pair = Pair::new();
    pair.change(&[Add(new())]);
    assert_eq!(pair.a().local_addresses(), [old()]);
    pair.world.run_for(5 * MILLISECOND);
    let a = pair.a;
    pair.world.send(A, a, 0, "meanwhile");
    pair.world.run_for(SECOND);
    assert_eq!(pair.outcomes(), [(Add(new()), Performed)]);
    assert_eq!(pair.a().local_addresses(), [old(), new()]);
    assert!(pair.z().paths().addresses().any(|it| it == new()));
    // No packet was sent from the new address before the peer agreed, and Z has verified it.
    let acked = pair
        .world
        .shots
        .iter()
        .position(|it| it.chunks.contains("type 128"));
    let before = &pair.world.shots[..acked.expect("answered")];
    assert!(
        before.iter().all(|it| it.path.local != new()),
        "{:#?}",
        pair.sent()
    );
    pair.change(&[PeerPrimary(new())]);
    pair.world.run_for(SECOND);
    let z = pair.z;
    pair.world.forget();
    pair.world.send(Z, z, 0, "to the new one");
    let to = pair
        .world
        .shots
        .iter()
        .find(|it| it.chunks.contains("DATA"));
    assert_eq!(to.expect("sent").path.remote, new());
    pair.change(&[Remove(old())]);
    pair.world.send(A, a, 0, "from the new one");
    pair.world.run_for(SECOND);
    assert_eq!(pair.outcomes(), [(Remove(old()), Performed)]);
    assert!(
        pair.sent().iter().all(|(_, from)| *from == new()),
        "{:#?}",
        pair.sent()
    );
    assert_eq!(pair.z().paths().addresses().collect::<Vec<_>>(), [new()]);
    assert_eq!(pair.world.receive_all(Z, z).len(), 2);
    assert_eq!(pair.world.receive_all(A, a).len(), 1);
}

/// Both directions are full of data when the network of A fails. Another network appears `gap`
/// later.
fn renumbered(gap: u64, lossy: bool) {
    let mut pair = Pair::new();
    let (a, z) = (pair.a, pair.z);
    let lost_at = pair.world.now + 100 * MILLISECOND;
    let mut count = 0_u32;
    pair.world.fate = Box::new(move |shot| {
        count += 1;
        let gone = shot.at >= lost_at && [shot.path.local, shot.path.remote].contains(&old());
        let lost = lossy && count % 7 == 3;
        if gone || lost {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    let mut given = 0_u32;
    let give = |pair: &mut Pair, given: &mut u32, many: u32| {
        for _ in 0..many {
            let payload = Bytes::copy_from_slice(&[given.to_be_bytes(), [9; 4]].concat());
            pair.world.send(A, a, 0, payload.clone());
            pair.world.send(Z, z, 0, payload);
            *given += 1;
        }
    };
    give(&mut pair, &mut given, 50);
    pair.world.run_until(lost_at + gap);
    give(&mut pair, &mut given, 50);
    pair.change(&[Add(new()), Remove(old())]);
    // Until the response, only the ASCONF is sent: from the new address, with the old address as a
    // parameter.
    let asconf = pair.asconfs().last().cloned().expect("sent");
    assert_eq!(asconf.path.local, new());
    assert_eq!(asconf_of(&asconf.bytes)[8..16], [0, 5, 0, 8, 10, 0, 0, 1]);
    let from = pair.world.shots.len();
    while !pair.outcomes().contains(&(Remove(old()), Performed)) {
        assert!(pair.world.step(u64::MAX));
        let answered = !pair.outcomes().is_empty();
        let sent = pair.world.shots[from..].iter().filter(|it| it.from == A);
        assert!(answered || sent.clone().all(|it| it.chunks.contains(ASCONF)));
        assert!(sent.clone().all(|it| it.path.local == new()));
    }
    let agreed = pair.world.now;
    give(&mut pair, &mut given, 20);
    pair.world.run_for(if lossy { 60 } else { 2 } * SECOND);
    for (host, id) in [(A, a), (Z, z)] {
        let messages = pair.world.receive_all(host, id);
        let numbers: Vec<_> = messages
            .iter()
            .map(|it| u32::from_be_bytes(it.payload.parts()[0][..4].try_into().expect("four")))
            .collect();
        assert_eq!(numbers, (0..given).collect::<Vec<_>>(), "at {}", name(host));
    }
    if !lossy {
        // A continues to send immediately, without waiting for a timer.
        let shots = &pair.world.shots;
        let data = shots
            .iter()
            .find(|it| it.at >= agreed && it.from == A && it.chunks.contains("DATA"));
        assert_eq!(data.expect("goes on").at, agreed);
    }
    assert_eq!(pair.a().local_addresses(), [new()]);
    pair.world.shutdown(A, a);
    pair.world.run_for(10 * SECOND);
    assert_eq!(pair.world.close_reason(A, a), Some(CloseReason::Shutdown));
    assert_eq!(pair.world.close_reason(Z, z), Some(CloseReason::Shutdown));
}

#[test]
fn the_only_address_is_replaced_with_data_under_way() {
    for gap in [0, 500 * MILLISECOND, 4 * SECOND] {
        renumbered(gap, false);
        renumbered(gap, true);
    }
}

/// Z is established and replaces its only address while A still waits for the COOKIE ACK. Z may
/// then send only the ASCONF (RFC 5061 §5.3 F1, F4), but A accepts no ASCONF before the COOKIE ACK
/// (RFC 9260 §5.1 E). `gone`: the COOKIE ECHO no longer reaches the old address.
fn renumbered_before_the_cookie_ack(gone: bool) {
    let mut world = World::with_configs(settings(), settings());
    let (old, new) = (address(Z, 0), address(Z, 9));
    let mut lost = 0;
    world.fate = Box::new(move |shot| {
        let first = shot.chunks == "COOKIE ACK" && lost == 0;
        lost += u32::from(first);
        let unreached = gone && lost > 0 && shot.path.remote == old;
        if first || unreached {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    let a = world.connect();
    world.run_for(200 * MILLISECOND);
    let z = world.only_association(Z);
    let states = [world.state(A, a), world.state(Z, z)];
    assert_eq!(
        states,
        [
            AssociationState::CookieEchoed,
            AssociationState::Established
        ]
    );
    let now = world.now;
    let association = world.endpoints[Z].association_mut(z).expect("up");
    let changes = [Add(new), Remove(old)];
    association.change_addresses(now, &changes).expect("taken");
    world.drain(Z);
    world.run_for(60 * SECOND);
    assert_eq!(
        world.state(A, a),
        AssociationState::Established,
        "gone: {gone}"
    );
    let association = world.endpoints[A].association(a).expect("up");
    assert_eq!(association.paths().addresses().collect::<Vec<_>>(), [new]);
    world.send(A, a, 0, "to where Z is now");
    world.send(Z, z, 0, "from where Z is now");
    world.run_for(10 * SECOND);
    assert_eq!(world.receive_all(A, a).len(), 1);
    assert_eq!(world.receive_all(Z, z).len(), 1);
}

#[test]
fn an_address_is_replaced_though_the_peer_waits_for_its_cookie_ack() {
    renumbered_before_the_cookie_ack(false);
    renumbered_before_the_cookie_ack(true);
}

#[test]
fn an_asconf_is_sent_again_unchanged_over_another_path_and_counts_as_errors() {
    let z = settings().with(|it| it.addresses = vec![address(Z, 0), address(Z, 1)]);
    let mut pair = Pair::with(settings(), z);
    pair.world.fate = Box::new(|shot| {
        if shot.from == A {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    pair.change(&[Add(new())]);
    let other = Add(third());
    pair.change(&[other]);
    pair.world.run_for(3_500 * MILLISECOND);
    let sent = pair.asconfs();
    // Each address has its own RTO, which doubles at each expiration: 1 s, then 1 s for the other
    // address, then 2 s.
    let begun = sent[0].at;
    let at: Vec<_> = sent.iter().map(|it| (it.at - begun) / SECOND).collect();
    assert_eq!(at, [0, 1, 2], "{:#?}", pair.sent());
    assert_eq!(sent[0].path.remote, address(Z, 0));
    assert_eq!(sent[1].path.remote, address(Z, 1));
    assert_eq!(sent[2].path.remote, address(Z, 0));
    for again in &sent[1..] {
        // The ASCONF is repeated unchanged. A second ASCONF after it contains the request that was
        // made in the meantime.
        let (again, first) = (asconf_of(&again.bytes), asconf_of(&sent[0].bytes));
        assert!(again.starts_with(&first) && again.len() == 2 * first.len());
    }
    // After a timeout at the old address, the ASCONF is sent from the address that it adds.
    assert_eq!(sent[0].path.local, old());
    assert_eq!(sent[1].path.local, new());
    let errors: Vec<_> = pair
        .a()
        .paths()
        .iter()
        .map(|(_, it)| it.error_count())
        .collect();
    assert_eq!(errors, [1, 1]);
    pair.world.fate = Box::new(|_| Fate::Deliver);
    pair.world.run_for(5 * SECOND);
    assert_eq!(
        pair.outcomes(),
        [(Add(new()), Performed), (other, Performed)]
    );
    let serials: Vec<_> = pair
        .asconfs()
        .iter()
        .map(|it| serial_of(&it.bytes))
        .collect();
    let first = serials[0];
    assert_eq!(serials.first(), Some(&first));
    assert!(serials.iter().all(|&it| it == first));
    let errors: Vec<_> = pair
        .a()
        .paths()
        .iter()
        .map(|(_, it)| it.error_count())
        .collect();
    assert_eq!(errors[1], 0, "an answer clears those of its path");
}

#[test]
fn a_peer_that_never_answers_is_unreachable() {
    let mut pair = Pair::with(
        settings().with(|it| it.association_max_retrans = 3),
        settings(),
    );
    pair.silence();
    pair.change(&[Add(new()), Remove(old())]);
    pair.world.run_for(60 * SECOND);
    let a = pair.a;
    assert_eq!(
        pair.world.close_reason(A, a),
        Some(CloseReason::PeerUnreachable)
    );
    assert_eq!(pair.asconfs().len(), 4);
    let failed = [(Add(new()), Failed), (Remove(old()), Failed)];
    assert_eq!(pair.outcomes(), failed);
}

#[test]
fn wildcards_come_from_the_address_that_they_mean() {
    let mut pair = Pair::new();
    pair.change(&[AddSource(new())]);
    let asconf = pair.asconfs()[0].clone();
    assert_eq!(requests_of(&asconf.bytes), [(0xC001, 1, 0)]);
    assert_eq!(asconf.path.local, new());
    pair.world.run_for(SECOND);
    pair.change(&[Add(third())]);
    pair.world.run_for(SECOND);
    pair.change(&[KeepOnly(third())]);
    let asconf = pair.asconfs()[2].clone();
    assert_eq!(requests_of(&asconf.bytes), [(0xC002, 3, 0)]);
    assert_eq!(asconf.path.local, third());
    pair.world.run_for(SECOND);
    assert_eq!(pair.a().local_addresses(), [third()]);
    assert_eq!(pair.z().paths().addresses().collect::<Vec<_>>(), [third()]);
}

#[test]
fn a_restarted_peer_knows_the_addresses_of_its_handshake() {
    let mut pair = Pair::new();
    pair.change(&[Add(new())]);
    pair.world.run_for(SECOND);
    pair.world.fate = Box::new(|_| Fate::Drop);
    pair.change(&[Add(third())]);
    pair.world.fate = Box::new(|_| Fate::Deliver);
    // Z has lost its state, and connects again.
    let config = settings().with(|it| it.addresses = vec![address(Z, 0)]);
    pair.world.endpoints[Z] = Endpoint::new(config, PORT_Z, [9; 32]).expect("settings");
    pair.world.endpoints[A].listen(true);
    let now = pair.world.now;
    let z = pair.world.endpoints[Z]
        .connect(now, &[old()], PORT_A)
        .expect("none");
    pair.world.drain(Z);
    pair.world.run_for(SECOND);
    assert_eq!(pair.world.state(Z, z), AssociationState::Established);
    assert_eq!(pair.outcomes()[1], (Add(third()), Failed));
    assert_eq!(pair.a().local_addresses(), [old()]);
    // The serial numbers of ASCONFs restart, too.
    pair.change(&[Add(third())]);
    pair.world.run_for(SECOND);
    assert_eq!(pair.outcomes().last(), Some(&(Add(third()), Performed)));
}

#[test]
fn both_sides_change_at_once_and_while_they_close() {
    let mut pair = Pair::new();
    let (a, z) = (pair.a, pair.z);
    let zs = [10, 0, 9, 2].into();
    for host in [A, Z] {
        let silent: Vec<_> = (0..50).map(|_| Bytes::from_static(&[7; 1_000])).collect();
        for message in silent {
            let id = [a, z][host];
            pair.world.send(host, id, 0, message);
        }
    }
    let now = pair.world.now;
    pair.z()
        .change_addresses(now, &[AddressChange::Add(zs)])
        .expect("taken");
    pair.change(&[Add(new())]);
    pair.world.drain(Z);
    pair.world.shutdown(A, a);
    pair.world.run_for(20 * MILLISECOND);
    let ending = pair.world.state(A, a);
    assert_eq!(ending, AssociationState::ShutdownPending);
    assert_eq!(pair.outcomes(), [(Add(new()), Performed)]);
    assert!(pair.a().paths().addresses().any(|it| it == zs));
    assert_eq!(pair.try_change(&[Add(third())]), Ok(()));
    pair.world.run_for(20 * SECOND);
    assert_eq!(pair.world.close_reason(A, a), Some(CloseReason::Shutdown));
    assert_eq!(pair.world.close_reason(Z, z), Some(CloseReason::Shutdown));
    assert_eq!(pair.outcomes().len(), 2);
}

#[test]
fn settings_refuse_what_the_peer_asks_but_not_what_this_side_does() {
    let strict = settings().with(|it| it.accept_address_changes = false);
    let mut pair = Pair::with(settings(), strict);
    pair.change(&[Add(new())]);
    pair.world.run_for(SECOND);
    let refused = Refused { cause: Some(0xA4) };
    assert_eq!(pair.outcomes(), [(Add(new()), refused)]);
    assert_eq!(pair.a().local_addresses(), [old()]);
    let now = pair.world.now;
    pair.z()
        .change_addresses(now, &[AddressChange::Add([10, 0, 9, 2].into())])
        .expect("taken");
    pair.world.drain(Z);
    pair.world.run_for(SECOND);
    assert_eq!(pair.a().paths().addresses().count(), 2);
}

#[test]
fn without_authentication_only_by_the_switch() {
    let unsigned = Config::default().with(|it| {
        it.address_changes = true;
        it.profile.asconf_without_auth = true;
    });
    let mut pair = Pair::with_unsigned(unsigned.clone(), unsigned.clone());
    pair.change(&[Add(new()), Remove(old())]);
    pair.world.run_for(SECOND);
    assert_eq!(pair.asconfs()[0].chunks, ASCONF);
    assert_eq!(pair.z().paths().addresses().collect::<Vec<_>>(), [new()]);
    // With AUTH required, a peer that lists ASCONF without AUTH is refused (RFC 5061 §4.2.7).
    for (a, z) in [(unsigned.clone(), settings()), (settings(), unsigned)] {
        let mut world = World::with_configs(a, z);
        let id = world.connect();
        world.run_for(SECOND);
        assert!(
            world.endpoints[A]
                .association(id)
                .expect("known")
                .is_closed()
        );
        assert!(
            world.story.iter().any(|it| it.contains("ABORT")),
            "{:?}",
            world.story
        );
    }
}

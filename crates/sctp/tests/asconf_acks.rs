//! Requester of ASCONFs (RFC 5061 §5.1, §5.3) with a peer whose ASCONF-ACKs are hand-made.

use crate::common;

use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;

use anabranch_sctp::{
    AddressChange, AddressChangeError, AddressChangeOutcome, AssociationState, CloseReason, Config,
    DiscardReason, Event,
};
use anabranch_transport::Path;
use anabranch_transport::time::SECOND;
use anabranch_wire::chunk::kind;
use bytes::Bytes;
use common::pair::*;
use common::wrong::discarded;
use common::*;

use AddressChange::{Add, KeepOnly, PeerPrimary, Remove};
use AddressChangeOutcome::{Failed, Performed, Refused};

#[test]
fn the_response_to_one_request_answers_its_neighbours_too() {
    let many = [
        Add(new()),
        Add(third()),
        PeerPrimary(third()),
        Remove(new()),
    ];
    let refused = |cause| Refused { cause };
    let cases: [(Vec<u8>, [AddressChangeOutcome; 4]); 5] = [
        (Vec::new(), [Performed; 4]),
        // Requests without a response parameter have succeeded if they precede a failed request,
        // and have failed if they follow it.
        (
            [error(2, 0xA1), success(3)].concat(),
            [Performed, refused(Some(0xA1)), Performed, refused(None)],
        ),
        (
            error(4, 0xA0),
            [Performed, Performed, Performed, refused(Some(0xA0))],
        ),
        (success(2), [Performed; 4]),
        // Correlation IDs that were not used, an unknown parameter type, and a truncated parameter.
        (
            [error(77, 5), vec![0xC0, 0x77, 0, 4], vec![0xC0, 3, 0, 99]].concat(),
            [Performed; 4],
        ),
    ];
    for (said, expected) in cases {
        let mut pair = Pair::new();
        pair.silence();
        pair.change(&many);
        let packet = pair.asconfs()[0].bytes.clone();
        assert_eq!(
            requests_of(&packet),
            [
                (0xC001, 1, 1),
                (0xC001, 2, 1),
                (0xC004, 3, 1),
                (0xC002, 4, 1)
            ]
        );
        assert!(pair.signer.is_right(&packet));
        pair.acknowledge(serial_of(&packet), &said);
        let outcomes: Vec<_> = pair.outcomes().into_iter().map(|(_, it)| it).collect();
        assert_eq!(outcomes, expected, "{said:?}");
        let mut there = vec![old()];
        if expected[0] == Performed && expected[3] != Performed {
            there.push(new());
        }
        if expected[1] == Performed {
            there.push(third());
        }
        assert_eq!(pair.a().local_addresses(), there);
    }
}

/// RFC 5061 §5.3 F3: a type of request that the peer does not recognize is not sent again. §5.1 A9:
/// if the peer reports ASCONF as an unknown chunk, no ASCONF is sent again.
#[test]
fn a_peer_that_does_not_understand_is_not_asked_again() {
    let mut pair = Pair::new();
    pair.silence();
    pair.change(&[PeerPrimary(old())]);
    let serial = serial_of(&pair.asconfs()[0].bytes);
    pair.acknowledge(serial, &error(1, 8));
    assert_eq!(
        pair.outcomes(),
        [(PeerPrimary(old()), Refused { cause: Some(8) })]
    );
    let not = Err(AddressChangeError::NotUnderstood);
    assert_eq!(pair.try_change(&[PeerPrimary(old())]), not);
    pair.change(&[Add(new())]);
    pair.change(&[Add(third())]);
    pair.acknowledge(serial.wrapping_add(1), &error(2, 8));
    assert_eq!(pair.try_change(&[Add(third())]), not);
    // The queued request is not sent, either.
    assert_eq!(pair.asconfs().len(), 2);
    assert_eq!(pair.outcomes().last(), Some(&(Add(third()), Failed)));

    let mut pair = Pair::new();
    pair.silence();
    let report = |kind| [9, 0, 0, 12, 0, 6, 0, 8, kind, 0, 0, 4];
    pair.say(old(), &report(kind::ASCONF));
    pair.change(&[Add(new()), Remove(old())]);
    pair.say(old(), &report(kind::RE_CONFIG));
    assert!(pair.outcomes().is_empty());
    pair.say(old(), &report(kind::ASCONF));
    assert_eq!(
        pair.outcomes(),
        [(Add(new()), Failed), (Remove(old()), Failed)]
    );
    assert_eq!(pair.try_change(&[Add(third())]), not);
    pair.world.run_for(30 * SECOND);
    assert_eq!(pair.asconfs().len(), 1, "its timer has stopped");
    // The association still has the old address.
    pair.world.fate = Box::new(|_| Fate::Deliver);
    let (a, z) = (pair.a, pair.z);
    pair.world.send(A, a, 0, "as before");
    pair.world.run_for(SECOND);
    assert_eq!(pair.world.receive_all(Z, z).len(), 1);
}

#[test]
fn a_lost_answer_comes_again_and_duplicates_change_nothing() {
    let mut pair = Pair::new();
    let lost = Rc::new(Cell::new(0));
    let seen = Rc::clone(&lost);
    pair.world.fate = Box::new(move |shot| {
        let answer = shot.chunks.contains("type 128");
        seen.set(seen.get() + u32::from(answer));
        match (answer, seen.get()) {
            (true, 1) => Fate::Drop,
            (true, _) => Fate::Duplicate,
            (false, _) if shot.chunks.contains(ASCONF) => Fate::Duplicate,
            _ => Fate::Deliver,
        }
    });
    pair.change(&[Add(new())]);
    pair.world.run_for(3 * SECOND);
    assert_eq!(pair.outcomes(), [(Add(new()), Performed)]);
    assert!(lost.get() >= 2);
    let added = |it: &Event| matches!(it, Event::PeerAddressAdded { .. });
    assert_eq!(pair.world.told(Z).iter().filter(|it| added(it)).count(), 1);
    assert_eq!(pair.a().state(), AssociationState::Established);
    // A late copy of an earlier ASCONF-ACK is discarded, and does not affect the outstanding
    // request.
    let serial = serial_of(&pair.asconfs()[0].bytes);
    pair.silence();
    pair.change(&[Add(third())]);
    let before = discarded(&pair.world, A, DiscardReason::BadAsconf);
    pair.acknowledge(serial, &[]);
    pair.acknowledge(serial.wrapping_add(2), &[]);
    assert_eq!(
        discarded(&pair.world, A, DiscardReason::BadAsconf),
        before + 2
    );
    assert_eq!(pair.outcomes().len(), 1);
    pair.acknowledge(serial.wrapping_add(1), &[]);
    assert_eq!(pair.outcomes()[1], (Add(third()), Performed));
    // No ASCONF is outstanding, so an ASCONF-ACK for an unused serial number ends the association.
    pair.acknowledge(serial.wrapping_add(1), &[]);
    assert_eq!(pair.a().state(), AssociationState::Established);
    pair.acknowledge(serial.wrapping_add(2), &[]);
    assert!(matches!(
        pair.a().close_reason(),
        Some(CloseReason::PeerViolation(_))
    ));
}

/// RFC 5061 §5.3.1: the peer treats late packets from the deleted address as out of the blue.
#[test]
fn an_abort_to_an_address_that_goes_is_ignored() {
    let mut pair = Pair::new();
    pair.world.run_for(SECOND);
    pair.silence();
    pair.change(&[Add(new()), Remove(old())]);
    let abort = [6, 0, 0, 4];
    pair.say(old(), &abort);
    assert_eq!(pair.a().state(), AssociationState::Established);
    let serial = serial_of(&pair.asconfs()[0].bytes);
    pair.acknowledge(serial, &[]);
    pair.say(old(), &abort);
    assert_eq!(pair.a().state(), AssociationState::Established);
    assert_eq!(discarded(&pair.world, A, DiscardReason::BadTagAbort), 2);
    pair.say(new(), &abort);
    assert!(pair.a().is_closed());
}

/// If an ASCONF comes from an address that is being added, a peer that looks up the association
/// only by the source address treats the packet as out of the blue.
#[test]
fn an_abort_out_of_the_blue_to_an_address_that_comes_is_ignored() {
    let mut pair = Pair::new();
    let a = pair.a;
    pair.world.send(A, a, 0, "a packet");
    pair.world.run_for(SECOND);
    let peers = pair.world.tag_sent_by(A);
    pair.silence();
    let reflected = |pair: &mut Pair, local| {
        let path = Path::new(local, address(Z, 0));
        let packet = raw_packet(Z, peers, &[6, 1, 0, 4]);
        pair.world.inject_from(A, path, packet);
    };
    pair.change(&[Add(new())]);
    reflected(&mut pair, new());
    // At an address that A only requests to add, an ABORT with the T bit is ignored.
    assert_eq!(pair.a().state(), AssociationState::Established);
    assert_eq!(discarded(&pair.world, A, DiscardReason::BadTagAbort), 1);
    // Such an ABORT is accepted if A has no other address left (`known`), and at an address that
    // the peer knows (`pair`).
    let mut known = Pair::new();
    known.silence();
    known.change(&[Add(new()), Remove(old())]);
    let tag = known.world.tag_sent_by(A);
    let path = Path::new(new(), address(Z, 0));
    known
        .world
        .inject_from(A, path, raw_packet(Z, tag, &[6, 1, 0, 4]));
    assert!(known.a().is_closed());
    reflected(&mut pair, old());
    assert!(pair.a().is_closed());
}

#[test]
fn invalid_requests_are_refused_with_the_reason() {
    use AddressChangeError as No;
    let mut pair = Pair::new();
    let multicast = [224, 0, 0, 1].into();
    let six: IpAddr = "2001:db8::1".parse().expect("an address");
    for (changes, why) in [
        (vec![Add(multicast)], No::NotUnicast(multicast)),
        (vec![Add(old())], No::Exists(old())),
        (vec![Add(six)], No::Family(six)),
        (vec![Remove(new())], No::NoSuchAddress(new())),
        (vec![PeerPrimary(new())], No::NoSuchAddress(new())),
        (vec![KeepOnly(new())], No::NoSuchAddress(new())),
        (vec![Remove(old())], No::LastAddress(old())),
        // The last address cannot be removed before another is added (RFC 5061 §5.3 F5).
        (vec![Remove(old()), Add(new())], No::LastAddress(old())),
        (vec![Add(new()); 11], No::TooMany { most: 10 }),
    ] {
        assert_eq!(pair.try_change(&changes), Err(why), "{changes:?}");
    }
    assert!(pair.asconfs().is_empty());
    pair.silence();
    pair.change(&[Add(new())]);
    assert_eq!(
        pair.try_change(&[Add(new())]),
        Err(No::Exists(new())),
        "under way"
    );
    for host in 0..64 {
        pair.change(&[Add([10, 9, 0, host].into())]);
    }
    let most = No::TooMany { most: 64 };
    assert_eq!(pair.try_change(&[Add(third())]), Err(most));
    let now = pair.world.now;
    pair.a().abort(now, Bytes::new()).expect("open");
    assert_eq!(pair.try_change(&[Add(third())]), Err(No::NotEstablished));
    assert_eq!(pair.outcomes().len(), 65);

    let mut pair = Pair::with(settings(), Config::default());
    assert_eq!(pair.try_change(&[Add(new())]), Err(No::NotNegotiated));
}

//! Associations whose addresses on the loopback network change during a transfer (RFC 5061).
#![cfg(target_os = "linux")] // all of 127.0.0.0/8 is this host's

use crate::common;

use std::net::IpAddr;

use anabranch_net::{
    AddressChange, AddressChangeOutcome, AddressError, Association, Carrier, Config, Endpoint,
    Event, Message, PathState, Peer, SendOptions,
};
use anabranch_sctp::Authentication;
use common::*;

/// Addresses that no other test uses, so that a UDP port that is free at one of them is also free
/// at the others, which are added later.
const FIRST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 21, 1));
const SECOND: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 21, 2));
const THIRD: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 21, 3));
const FOURTH: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 21, 4));
const MESSAGES: u32 = 2_000;

fn config() -> Config {
    Config::default().with(|it| {
        it.addresses = vec![LOOPBACK];
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
        it.sctp.authentication = Authentication::On;
        it.sctp.address_changes = true;
    })
}

/// Waits for the outcome of `change`.
async fn settled(association: &Association, change: AddressChange) -> AddressChangeOutcome {
    loop {
        match association.next_event().await {
            Some(Event::AddressChanged {
                change: it,
                outcome,
            }) if it == change => {
                return outcome;
            }
            Some(_) => {}
            None => panic!("it ended"),
        }
    }
}

async fn send(association: &Association, from: u32, to: u32) {
    for number in from..to {
        let text = pattern(number, 3_000);
        association
            .send(text, SendOptions::default())
            .await
            .expect("up");
    }
}

async fn receive(association: Association) {
    for number in 0..MESSAGES {
        let message: Option<Message> = association.recv().await.expect("up");
        let message = message.expect("one more");
        assert_eq!(message.bytes, pattern(number, 3_000), "{number}");
    }
}

/// The peer's addresses in the association, sorted.
fn peers(association: &Association) -> Vec<IpAddr> {
    let status = association.status().expect("known");
    let mut all: Vec<_> = status.paths.iter().map(|path| path.address).collect();
    all.sort();
    all
}

/// Waits for the event that the peer's address was added or removed.
async fn told(association: &Association, is_it: impl Fn(&Event) -> bool) {
    while !is_it(&association.next_event().await.expect("it lives")) {}
}

fn added(event: &Event) -> bool {
    matches!(event, Event::PeerAddressAdded { address, .. } if *address == SECOND)
}

fn removed(event: &Event) -> bool {
    matches!(event, Event::PeerAddressRemoved { address, .. } if *address == FIRST)
}

fn is_up(event: &Event) -> bool {
    matches!(event, Event::PathChanged { address, state: PathState::Active, .. } if *address == SECOND)
}

/// A change of the endpoint applies to established associations and to later ones.
#[test]
fn an_endpoint_that_moves_reports_it_to_old_and_new_peers() {
    bounded(async {
        let of = |first| config().with(|it: &mut Config| it.addresses = vec![first]);
        let server = Endpoint::bind(of(FIRST).with(|it| it.accept = true)).expect("loopback");
        let call = |to: IpAddr| {
            let peer = Peer::from((to, server.port())).over_udp(server.udp_port());
            async move {
                let client = Endpoint::bind(of(LOOPBACK)).expect("loopback");
                client.connect(peer).await.expect("it listens")
            }
        };
        let before = call(FIRST).await;
        assert_eq!(peers(&before), [FIRST]);
        assert_eq!(
            server
                .change_addresses(&[AddressChange::Add(SECOND)])
                .expect("one more"),
            1
        );
        assert_eq!(server.addresses(), [FIRST, SECOND]);
        told(&before, added).await;
        let between = call(FIRST).await;
        assert_eq!(peers(&between), [FIRST, SECOND]);
        // Waits until the first address is confirmed, because before that no other address can be
        // used as the source.
        told(&before, is_up).await;
        assert_eq!(
            server
                .change_addresses(&[AddressChange::Remove(FIRST)])
                .expect("another is left"),
            2
        );
        told(&before, removed).await;
        told(&between, removed).await;
        let after = call(SECOND).await;
        assert_eq!(peers(&after), [SECOND]);
        for (address, adds) in [(SECOND, false), (SECOND, true), (FIRST, false)] {
            let refused = match adds {
                true => server.change_addresses(&[AddressChange::Add(address)]),
                false => server.change_addresses(&[AddressChange::Remove(address)]),
            };
            assert!(
                matches!(refused, Err(AddressError::Refused(_))),
                "{refused:?}"
            );
        }
        assert_eq!(server.addresses(), [SECOND]);
    });
}

#[test]
fn a_transfer_moves_to_an_address_that_was_not_bound() {
    bounded(async {
        let server = Endpoint::bind(config().with(|it| it.accept = true)).expect("loopback");
        let client = Endpoint::bind(config().with(|it| it.addresses = vec![THIRD]));
        let client = client.expect("loopback");
        let peer = Peer::from((LOOPBACK, server.port())).over_udp(server.udp_port());
        let here = client.connect(peer).await.expect("it listens");
        let there = server.accept().await.expect("it came");
        let down = tokio::spawn(receive(here.clone()));
        let up = tokio::spawn(receive(there.clone()));
        let (a, b) = (here.clone(), there.clone());
        let sent = tokio::spawn(async move {
            send(&a, 0, MESSAGES).await;
        });
        send(&b, 0, MESSAGES / 2).await;
        // Replaces the only address during a transfer.
        let changes = [AddressChange::Add(FOURTH), AddressChange::Remove(THIRD)];
        here.change_addresses(&changes).expect("taken");
        for change in changes {
            assert_eq!(
                settled(&here, change).await,
                AddressChangeOutcome::Performed
            );
        }
        let paths = |it: &Association| {
            let status = it.status().expect("known");
            let paths = status.paths.into_iter();
            paths.map(|path| path.address).collect::<Vec<_>>()
        };
        assert!(paths(&there).contains(&FOURTH), "{:?}", paths(&there));
        send(&b, MESSAGES / 2, MESSAGES).await;
        for task in [down, up, sent] {
            task.await.expect("all came");
        }
        // Changes back immediately, with both changes in one call.
        here.change_addresses(&[AddressChange::Add(THIRD)])
            .expect("taken");
        assert_eq!(
            settled(&here, AddressChange::Add(THIRD)).await,
            AddressChangeOutcome::Performed
        );
        here.change_addresses(&[AddressChange::PeerPrimary(THIRD)])
            .expect("taken");
        let primary = AddressChange::PeerPrimary(THIRD);
        assert_eq!(
            settled(&here, primary).await,
            AddressChangeOutcome::Performed
        );
        here.change_addresses(&[AddressChange::Remove(FOURTH)])
            .expect("taken");
        let removed = AddressChange::Remove(FOURTH);
        assert_eq!(
            settled(&here, removed).await,
            AddressChangeOutcome::Performed
        );
        // No socket can be opened for an address of another host; an address that is present needs
        // none.
        let strange = here.change_addresses(&[AddressChange::Add([192, 0, 2, 1].into())]);
        assert!(
            matches!(strange, Err(AddressError::Socket(_))),
            "{strange:?}"
        );
        let again = here.change_addresses(&[AddressChange::Add(THIRD)]);
        assert!(matches!(again, Err(AddressError::Refused(_))), "{again:?}");
        here.shutdown().await.expect("in peace");
    });
}

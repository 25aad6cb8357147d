//! Connecting by name over the loopback interface. Unit tests of the module check the order of
//! attempts in virtual time.
#![cfg(target_os = "linux")] // all of 127.0.0.0/8 is this host's

use crate::common;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use anabranch_net::{
    Carrier, Config, ConnectError, ConnectOptions, Endpoint, Peer, Resolve, ResolverStream,
    SendOptions,
};
use common::{LOOPBACK, bounded, without_timers};
use futures_util::stream;

/// A resolver that knows one name and its addresses.
struct Book(Vec<IpAddr>);

impl Resolve for Book {
    fn resolve(&self, name: &str) -> ResolverStream {
        let answer = match name {
            "service.example" => Ok(self.0.clone()),
            _ => Err(io::Error::new(io::ErrorKind::NotFound, "no such name")),
        };
        Box::pin(stream::iter([answer]))
    }
}

/// Connect options with this resolver.
fn known_by(book: Book) -> ConnectOptions {
    ConnectOptions::default().with(|it| it.resolver = Some(Arc::new(book)))
}

fn settings(addresses: Vec<IpAddr>) -> Config {
    without_timers(Config::default()).with(|it| {
        it.addresses = addresses;
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
    })
}

/// The first address is never answered, so a second attempt starts at the next address.
#[test]
fn a_name_leads_to_the_address_that_answers() {
    bounded(async {
        let server = Endpoint::bind(settings(vec![LOOPBACK]).with(|it| it.accept = true));
        let server = server.expect("loopback");
        let client = Endpoint::bind(settings(vec![LOOPBACK])).expect("loopback");
        let book = known_by(Book(vec![[127, 0, 0, 99].into(), LOOPBACK]));
        let peer = Peer::from(("service.example", server.port()));
        let peer = peer.over_udp(server.udp_port());
        let connecting = client.connect_with(peer.clone(), book.clone());
        let held = connecting.await.expect("one answers");
        let served = server.accept().await.expect("it came");
        let sent = held.send("found", SendOptions::default());
        sent.await.expect("up");
        let message = served.recv().await.expect("up").expect("a message");
        assert_eq!(&message.bytes[..], b"found");
        held.shutdown().await.expect("graceful");
        drop(held);
        // The attempt that was not first is aborted and removed.
        client.wait_idle().await;

        let nobody = Peer::from(("nobody.example", 7)).over_udp(9);
        let book = known_by(Book(Vec::new()));
        let failed = client.connect_with(nobody, book);
        let error = failed.await.expect_err("no such name");
        let text = "cannot resolve nobody.example: no such name";
        assert_eq!(error.to_string(), text);
        let far = known_by(Book(vec!["2001:db8::1".parse().expect("an address")]));
        let failed = client.connect_with(peer, far);
        let error = failed.await.expect_err("another family");
        assert!(matches!(error, ConnectError::Name { .. }), "{error}");
    });
}

/// If both addresses belong to one host, it sees one association, and no restart.
#[test]
fn both_addresses_may_be_one_hosts() {
    bounded(async {
        let homes: Vec<IpAddr> = vec![[127, 0, 0, 11].into(), [127, 0, 0, 12].into()];
        let server = Endpoint::bind(settings(homes.clone()).with(|it| it.accept = true));
        let server = server.expect("loopback");
        let client = Endpoint::bind(settings(vec![[127, 0, 0, 13].into()])).expect("loopback");
        let peer = Peer::from(("service.example", server.port()));
        let peer = peer.over_udp(server.udp_port());
        let book = known_by(Book(homes.clone()))
            .with(|it| it.happy_eyeballs.attempt_delay = std::time::Duration::ZERO);
        for _ in 0..5 {
            let connecting = client.connect_with(peer.clone(), book.clone());
            let held = connecting.await.expect("it listens");
            let served = server.accept().await.expect("it came");
            assert_eq!(held.status().expect("up").paths.len(), 2, "both are told");
            held.shutdown().await.expect("graceful");
            served.closed().await;
        }
        drop(client);
        server.wait_idle().await;
    });
}

/// An address in text form is not resolved.
#[test]
fn an_address_as_text_needs_no_resolver() {
    bounded(async {
        let server = Endpoint::bind(settings(vec![LOOPBACK]).with(|it| it.accept = true));
        let server = server.expect("loopback");
        let client = Endpoint::bind(settings(vec![LOOPBACK])).expect("loopback");
        let peer = Peer::from(("127.0.0.1", server.port())).over_udp(server.udp_port());
        client.connect(peer).await.expect("it listens");
    });
}

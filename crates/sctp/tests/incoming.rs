//! Tests of incoming associations that wait for the user's decision: the stored state, the limit on
//! this state, and the packet that each decision causes.

use crate::common;

use std::net::IpAddr;

use anabranch_sctp::{
    AssociationState, CloseReason, Config, DiscardReason, Endpoint, Event, IncomingGone, Refusal,
    SendOptions,
};
use anabranch_transport::time::SECOND;
use anabranch_transport::{Ecn, Nanos, Transport};
use bytes::{Bytes, BytesMut};

const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 100));

fn host(number: u8) -> IpAddr {
    [10, 0, 0, number].into()
}

fn endpoint(address: IpAddr, seed: u8) -> Endpoint {
    let config = Config::default().with(|it| it.addresses = vec![address]);
    Endpoint::new(config, common::PORT_A, [seed; 32]).expect("settings")
}

/// Clients and one server; packets arrive without delay.
struct Hosts {
    server: Endpoint,
    clients: Vec<Endpoint>,
    now: Nanos,
    /// Number of packets that the server has sent to each client since the last check.
    answers: Vec<usize>,
}

impl Hosts {
    fn new(clients: u8, most: usize) -> Self {
        let mut server = endpoint(SERVER, 200);
        server.listen(true);
        server.decide_incoming(most);
        Self {
            server,
            clients: (0..clients).map(|it| endpoint(host(it), it)).collect(),
            now: SECOND,
            answers: vec![0; clients.into()],
        }
    }

    fn connect(&mut self, client: usize) {
        let client = &mut self.clients[client];
        let begun = client.connect(self.now, &[SERVER], common::PORT_A);
        begun.expect("free");
        self.exchange();
    }

    fn exchange(&mut self) {
        let mut quiet = false;
        while !std::mem::replace(&mut quiet, true) {
            for client in &mut self.clients {
                let mut out = BytesMut::new();
                while let Some(transmit) = client.poll_transmit(self.now, &mut out) {
                    quiet = false;
                    let (path, packet) = (transmit.path.reversed(), out.split().freeze());
                    self.server
                        .handle_datagram(self.now, path, Ecn::NotEct, packet);
                }
            }
            let mut out = BytesMut::new();
            while let Some(transmit) = self.server.poll_transmit(self.now, &mut out) {
                quiet = false;
                let (path, packet) = (transmit.path.reversed(), out.split().freeze());
                let local = |it: &usize| host(*it as u8) == path.local;
                let to = (0..self.clients.len()).find(local).expect("a client");
                self.answers[to] += 1;
                self.clients[to].handle_datagram(self.now, path, Ecn::NotEct, packet);
            }
        }
    }

    /// Advances the time to a client's next timer.
    fn timeout(&mut self, client: usize) {
        self.now = self.clients[client].poll_timeout().expect("a timer");
        self.clients[client].handle_timeout(self.now);
        self.exchange();
    }

    fn events(endpoint: &mut Endpoint) -> Vec<Event> {
        std::iter::from_fn(|| endpoint.poll_event())
            .map(|(_, event)| event)
            .collect()
    }
}

#[test]
fn nothing_is_answered_before_the_decision_and_data_comes_with_it() {
    let mut hosts = Hosts::new(1, 4);
    let client = &mut hosts.clients[0];
    let id = client
        .connect(hosts.now, &[SERVER], common::PORT_A)
        .expect("free");
    let message = Bytes::from_static(b"with the COOKIE ECHO");
    let association = client.association_mut(id).expect("begun");
    association
        .send(0, message, &SendOptions::new().with_ppid(7))
        .expect("room");
    hosts.exchange();
    assert_eq!(hosts.answers, [1], "INIT ACK");
    assert_eq!(hosts.server.associations().count(), 0);
    let incoming = hosts.server.poll_incoming().expect("its COOKIE ECHO came");
    assert_eq!(
        (incoming.addresses[0], incoming.port),
        (host(0), common::PORT_A)
    );
    assert_eq!(hosts.server.poll_incoming(), None);
    // After T1-cookie, the repeated COOKIE ECHO has no effect.
    hosts.timeout(0);
    assert_eq!((hosts.answers[0], hosts.server.poll_incoming()), (1, None));
    assert_eq!(hosts.server.discards().of(DiscardReason::Undecided), 1);

    let id = incoming
        .accept(hosts.now, &mut hosts.server)
        .expect("it waits");
    hosts.exchange();
    let server = hosts.server.association_mut(id).expect("made");
    let received = server.poll_message().expect("it came with it");
    assert_eq!(received.payload.into_bytes(), "with the COOKIE ECHO");
    assert!(hosts.clients[0].associations().all(|id| {
        hosts.clients[0]
            .association(id)
            .is_some_and(|it| it.state() == AssociationState::Established)
    }));
    let again = incoming.accept(hosts.now, &mut hosts.server);
    assert_eq!(again, Err(IncomingGone));
}

#[test]
fn a_refused_peer_gets_the_reason_and_nothing_is_kept() {
    for (refusal, cause) in [
        (Refusal::Plain, None),
        (Refusal::OutOfResource, Some(4)),
        (Refusal::Reason(vec![b'x'; 2_000].into()), Some(12)),
    ] {
        let mut hosts = Hosts::new(1, 4);
        hosts.connect(0);
        let incoming = hosts.server.poll_incoming().expect("one came");
        incoming
            .refuse(&mut hosts.server, &refusal)
            .expect("it waits");
        hosts.exchange();
        let events = Hosts::events(&mut hosts.clients[0]);
        let closed = Event::Closed(CloseReason::AbortedByPeer { cause });
        assert_eq!(events, [closed], "{refusal:?}");
        if cause == Some(12) {
            let id = hosts.clients[0]
                .associations()
                .next()
                .expect("not released");
            let association = hosts.clients[0].association(id).expect("not released");
            let said = association.status().abort_reason.map(|it| it.len());
            assert_eq!(said, Some(512));
        }
        assert_eq!(hosts.server.associations().count(), 0);
        let again = incoming.refuse(&mut hosts.server, &refusal);
        assert_eq!(again, Err(IncomingGone));
    }
}

/// A peer beyond the limit retries by T1-cookie, and is admitted later.
#[test]
fn beyond_the_bound_peers_go_unanswered_and_come_again() {
    let mut hosts = Hosts::new(3, 2);
    (0..3).for_each(|client| hosts.connect(client));
    let first = hosts.server.poll_incoming().expect("the first");
    assert_eq!(
        hosts.server.poll_incoming().expect("the second").addresses,
        [host(1)]
    );
    assert_eq!(hosts.server.poll_incoming(), None);
    assert_eq!(hosts.server.discards().of(DiscardReason::RateLimited), 1);
    assert_eq!(hosts.answers, [1, 1, 1], "only INIT ACKs");
    first
        .accept(hosts.now, &mut hosts.server)
        .expect("it waits");
    hosts.exchange();
    hosts.timeout(2);
    assert_eq!(
        hosts.server.poll_incoming().expect("again").addresses,
        [host(2)]
    );
}

/// A peer that restarts while it waits should have only one entry, because its previous attempt is
/// gone.
#[test]
fn a_restarted_peer_waits_once() {
    let mut hosts = Hosts::new(1, 2);
    hosts.connect(0);
    let former = hosts.server.poll_incoming().expect("one came");
    hosts.clients[0] = endpoint(host(0), 77);
    hosts.connect(0);
    let later = hosts.server.poll_incoming().expect("it came again");
    assert_eq!(
        former.accept(hosts.now, &mut hosts.server),
        Err(IncomingGone)
    );
    later
        .accept(hosts.now, &mut hosts.server)
        .expect("it waits");
    hosts.exchange();
    let events = Hosts::events(&mut hosts.clients[0]);
    assert!(
        matches!(events[..], [Event::Established { .. }, ..]),
        "{events:?}"
    );
}

/// A cookie that expired while its peer waited is answered like any stale cookie (RFC 9260 §5.2.6),
/// and its entry is released.
#[test]
fn an_incoming_association_expires_with_its_cookie() {
    let mut hosts = Hosts::new(2, 1);
    hosts.connect(0);
    let waiting = hosts.server.poll_incoming().expect("one came");
    hosts.now += 61 * SECOND;
    hosts.clients[0] = endpoint(host(0), 78);
    hosts.connect(1);
    assert_eq!(
        hosts
            .server
            .poll_incoming()
            .expect("there is room")
            .addresses,
        [host(1)]
    );
    assert_eq!(
        waiting.accept(hosts.now, &mut hosts.server),
        Err(IncomingGone)
    );

    let mut hosts = Hosts::new(1, 1);
    hosts.connect(0);
    let waiting = hosts.server.poll_incoming().expect("one came");
    hosts.now += 61 * SECOND;
    assert_eq!(
        waiting.accept(hosts.now, &mut hosts.server),
        Err(IncomingGone)
    );
    assert_eq!(hosts.server.discards().of(DiscardReason::StaleCookie), 1);
    assert_eq!(hosts.server.associations().count(), 0);
}

/// An endpoint that stops listening refuses new peers, but waiting peers can still be accepted.
#[test]
fn those_that_wait_outlast_the_listening() {
    let mut hosts = Hosts::new(2, 4);
    hosts.connect(0);
    let waiting = hosts.server.poll_incoming().expect("one came");
    hosts.server.listen(false);
    hosts.timeout(0);
    hosts.connect(1);
    let events = Hosts::events(&mut hosts.clients[1]);
    assert!(matches!(events[..], [Event::Closed(_)]), "{events:?}");
    waiting
        .accept(hosts.now, &mut hosts.server)
        .expect("it waits");
    hosts.exchange();
    let events = Hosts::events(&mut hosts.clients[0]);
    assert!(
        matches!(events[..], [Event::Established { .. }, ..]),
        "{events:?}"
    );
}

/// After `decide_incoming` was called again, a decision about an earlier peer does not apply to a
/// new one.
#[test]
fn a_decision_about_a_former_peer_reaches_no_other() {
    let mut hosts = Hosts::new(2, 4);
    hosts.connect(0);
    let old = hosts.server.poll_incoming().expect("one came");
    hosts.server.decide_incoming(0);
    hosts.server.decide_incoming(4);
    hosts.connect(1);
    let gone = old.accept(hosts.now, &mut hosts.server);
    assert_eq!(gone, Err(IncomingGone));
    let gone = old.refuse(&mut hosts.server, &Refusal::Plain);
    assert_eq!(gone, Err(IncomingGone));
    let other = hosts.server.poll_incoming().expect("it still waits");
    assert_eq!(other.addresses, [host(1)]);
    other
        .accept(hosts.now, &mut hosts.server)
        .expect("it waits");
}

/// An endpoint queues at most 64 answers, so only 64 of the waiting peers are refused at once. The
/// others are treated as new peers when they retransmit.
#[test]
fn those_that_wait_are_refused_when_the_setting_changes() {
    let mut hosts = Hosts::new(66, 66);
    (0..66).for_each(|client| hosts.connect(client));
    assert_eq!(hosts.answers, [1; 66], "INIT ACKs");
    hosts.server.decide_incoming(0);
    assert!(!hosts.server.has_incoming());
    assert_eq!(hosts.server.discards().of(DiscardReason::RateLimited), 2);
    hosts.exchange();
    let closed = [Event::Closed(CloseReason::AbortedByPeer { cause: None })];
    for client in 0..64 {
        let events = Hosts::events(&mut hosts.clients[client]);
        assert_eq!(events, closed, "client {client}");
    }
    assert_eq!(hosts.answers[64..], [1, 1]);
    hosts.timeout(64);
    let events = Hosts::events(&mut hosts.clients[64]);
    assert!(
        matches!(events[..], [Event::Established { .. }, ..]),
        "{events:?}"
    );
    hosts.server.listen(false);
    hosts.timeout(65);
    assert_eq!(Hosts::events(&mut hosts.clients[65]), closed);
}

//! Tests of simultaneous attempts at two addresses of one host. One attempt should succeed, and the
//! host should not mistake the other for a restart.

use crate::common;

use std::net::IpAddr;

use anabranch_sctp::{
    AssociationId, AssociationState, Config, ConnectOptions, DiscardReason, Endpoint, Event,
};
use anabranch_transport::time::SECOND;
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use bytes::{Bytes, BytesMut};

fn address(last: u8) -> IpAddr {
    [10, 0, 0, last].into()
}

struct Hosts {
    client: Endpoint,
    server: Endpoint,
    now: Nanos,
}

type Packets = Vec<(Path, Bytes)>;

impl Hosts {
    fn new() -> Self {
        let endpoint = |addresses: Vec<IpAddr>, seed| {
            let config = Config::default().with(|it| it.addresses = addresses);
            Endpoint::new(config, common::PORT_A, [seed; 32]).expect("settings")
        };
        let mut server = endpoint(vec![address(1), address(2)], 1);
        server.listen(true);
        Self {
            client: endpoint(vec![address(9)], 2),
            server,
            now: SECOND,
        }
    }

    fn race(&mut self, last: u8) -> AssociationId {
        let to = [address(last)];
        let begun = self.client.connect_with(
            self.now,
            &to,
            common::PORT_A,
            ConnectOptions::default().with_race(Some(7)),
        );
        begun.expect("free")
    }

    fn sent(endpoint: &mut Endpoint, now: Nanos) -> Packets {
        let mut out = BytesMut::new();
        std::iter::from_fn(|| {
            let transmit = endpoint.poll_transmit(now, &mut out)?;
            Some((transmit.path.reversed(), out.split().freeze()))
        })
        .collect()
    }

    /// Delivers all packets before any answer is sent.
    fn take(endpoint: &mut Endpoint, now: Nanos, packets: Packets) {
        for (path, packet) in packets {
            endpoint.handle_datagram(now, path, Ecn::NotEct, packet);
        }
    }

    fn exchange(&mut self) {
        loop {
            let there = Self::sent(&mut self.client, self.now);
            let back = Self::sent(&mut self.server, self.now);
            if there.is_empty() && back.is_empty() {
                return;
            }
            Self::take(&mut self.server, self.now, there);
            Self::take(&mut self.client, self.now, back);
        }
    }

    fn state(&self, id: AssociationId) -> AssociationState {
        self.client.association(id).expect("not released").state()
    }
}

#[test]
fn one_of_two_attempts_at_one_host_goes_on() {
    let mut hosts = Hosts::new();
    let [first, second] = [1, 2].map(|last| hosts.race(last));
    hosts.exchange();
    assert_eq!(hosts.state(first), AssociationState::Established);
    assert_eq!(hosts.state(second), AssociationState::CookieWait);
    assert_eq!(
        hosts.client.discards().of(DiscardReason::SupersededAttempt),
        1
    );
    let events: Vec<Event> = std::iter::from_fn(|| hosts.server.poll_event())
        .map(|(_, event)| event)
        .collect();
    let restarted = |it: &Event| matches!(it, Event::Restarted { .. });
    assert!(!events.iter().any(restarted), "{events:?}");
    assert_eq!(hosts.server.associations().count(), 1);

    let loser = hosts.client.association_mut(second).expect("not released");
    loser.abort(hosts.now, Bytes::new()).expect("not closed");
    let last_words = Hosts::sent(&mut hosts.client, hosts.now);
    assert_eq!(last_words, [], "no trace");
    hosts.exchange();
    assert_eq!(hosts.state(first), AssociationState::Established);
}

/// The INIT ACK of the second attempt is discarded, because the first attempt has already
/// continued. Then the first attempt fails. The second one should continue when its INIT is
/// answered again.
#[test]
fn an_attempt_that_was_behind_goes_on_when_the_other_failed() {
    let mut hosts = Hosts::new();
    let [first, second] = [1, 2].map(|last| hosts.race(last));
    let inits = Hosts::sent(&mut hosts.client, hosts.now);
    Hosts::take(&mut hosts.server, hosts.now, inits);
    let acks = Hosts::sent(&mut hosts.server, hosts.now);
    Hosts::take(&mut hosts.client, hosts.now, acks);
    assert_eq!(hosts.state(first), AssociationState::CookieEchoed);
    assert_eq!(hosts.state(second), AssociationState::CookieWait);
    // The COOKIE ECHO of the first association is lost. Then the user aborts this association.
    Hosts::sent(&mut hosts.client, hosts.now);
    let association = hosts.client.association_mut(first).expect("not released");
    association
        .abort(hosts.now, Bytes::new())
        .expect("not closed");
    hosts.exchange();
    hosts.now = hosts.client.poll_timeout().expect("T1-init");
    hosts.client.handle_timeout(hosts.now);
    hosts.exchange();
    assert_eq!(hosts.state(second), AssociationState::Established);
    assert_eq!(hosts.server.associations().count(), 1);
}

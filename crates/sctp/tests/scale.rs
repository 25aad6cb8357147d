//! Tests of the memory and work for many associations at one endpoint, and during a flood of INITs.

mod common;

use std::net::{IpAddr, Ipv4Addr};

use anabranch_sctp::{
    AssociationId, AssociationState, Config, DiscardReason, Endpoint, SendOptions,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use anabranch_wire::chunk::{Chunk, Init};
use anabranch_wire::parameter::Parameters;
use anabranch_wire::serial::Tsn;
use bytes::{Bytes, BytesMut};
use cap::Cap;
use common::{PORT_A, PORT_Z, packet};

#[global_allocator]
static HEAP: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

/// All tests measure the same heap, so they run one at a time.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

const CLIENTS: u32 = 10_000;
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

fn client_address(number: u32) -> IpAddr {
    Ipv4Addr::from(0x0B00_0000 + number).into()
}

fn client(number: u32) -> Endpoint {
    let config = Config::default().with(|it| it.addresses = vec![client_address(number)]);
    let mut seed = [3; 32];
    seed[..4].copy_from_slice(&number.to_be_bytes());
    Endpoint::new(config, PORT_A, seed).expect("settings")
}

fn server() -> Endpoint {
    let config = Config::default().with(|it| it.addresses = vec![SERVER]);
    let mut endpoint = Endpoint::new(config, PORT_Z, [4; 32]).expect("settings");
    endpoint.listen(true);
    endpoint
}

/// Exchanges packets between a client and the server until neither sends any more.
fn exchange(now: Nanos, client: &mut Endpoint, server: &mut Endpoint) {
    let mut out = BytesMut::new();
    loop {
        let mut quiet = true;
        for turn in 0..2 {
            let (from, to) = match turn {
                0 => (&mut *client, &mut *server),
                _ => (&mut *server, &mut *client),
            };
            while let Some(transmit) = from.poll_transmit(now, &mut out) {
                quiet = false;
                to.handle_datagram(
                    now,
                    transmit.path.reversed(),
                    Ecn::NotEct,
                    out.split().freeze(),
                );
            }
        }
        if quiet {
            return;
        }
    }
}

fn message(len: usize) -> Bytes {
    Bytes::from(vec![1; len])
}

#[test]
fn ten_thousand_associations_cost_little_each_and_only_those_with_work_are_asked() {
    let _turn = TURN.lock();
    let mut server = server();
    let mut now = SECOND;
    let before = HEAP.allocated();
    let mut last = None;
    for number in 0..CLIENTS {
        let mut client = client(number);
        let id = client.connect(now, &[SERVER], PORT_Z).expect("free");
        exchange(now, &mut client, &mut server);
        client
            .association_mut(id)
            .expect("known")
            .send(now, message(2_000), &SendOptions::on(3))
            .expect("accepted");
        exchange(now, &mut client, &mut server);
        now += MILLISECOND / 10;
        last = Some(client);
    }
    let mut out = BytesMut::new();
    let ids: Vec<AssociationId> = server.associations().collect();
    assert_eq!(ids.len(), CLIENTS as usize);
    while server.poll_event().is_some() {}
    for &id in &ids {
        let association = server.association_mut(id).expect("listed");
        assert_eq!(association.state(), AssociationState::Established);
        assert_eq!(
            association.poll_message().map(|it| it.payload.len()),
            Some(2_000)
        );
        assert!(association.poll_message().is_none());
    }
    while server.poll_transmit(now, &mut out).is_some() {}
    drop(out);
    let mut client = last.expect("one");
    let each = (HEAP.allocated() - before) / ids.len();
    println!("{each} bytes an association that has received and is idle");
    assert!(each < 8 * 1024, "{each} bytes an association");

    // Only one association is active, and the others should not be examined. Because a measured
    // time would not be reliable, the test checks the output: a packet for one association should
    // cause packets of this association only, and no event of another one.
    let id = client.associations().next().expect("one");
    for _ in 0..1_000 {
        let association = client.association_mut(id).expect("known");
        association
            .send(now, message(1_000), &SendOptions::new())
            .expect("accepted");
        exchange(now, &mut client, &mut server);
        now += MILLISECOND;
        while let Some((of, association)) = server.poll_ready() {
            assert_eq!(of, ids[ids.len() - 1]);
            while association.poll_message().is_some() {}
        }
    }
    // When the HEARTBEATs are due, each association should be polled and should send one.
    let mut beats = 0;
    let mut out = BytesMut::new();
    while let Some(at) = server.poll_timeout().filter(|&at| at <= now + 40 * SECOND) {
        server.handle_timeout(at);
        while server.poll_transmit(at, &mut out).is_some() {
            beats += 1;
            out.clear();
        }
    }
    assert!(beats >= ids.len(), "{beats}");
}

#[test]
fn closed_and_released_associations_leave_nothing() {
    let _turn = TURN.lock();
    let mut server = server();
    let mut now = SECOND;
    let mut rounds = Vec::new();
    // Three rounds have more associations than the number of tags that the endpoint remembers.
    const EACH: u32 = 6_000;
    for round in 0..6 {
        for number in 0..EACH {
            now += MILLISECOND;
            let mut client = client(round * EACH + number);
            let id = client.connect(now, &[SERVER], PORT_Z).expect("free");
            exchange(now, &mut client, &mut server);
            let association = client.association_mut(id).expect("known");
            association.abort(now, Bytes::new()).expect("open");
            exchange(now, &mut client, &mut server);
        }
        while server.poll_event().is_some() {}
        let ids: Vec<_> = server.associations().collect();
        assert_eq!(ids.len(), EACH as usize);
        assert!(ids.into_iter().all(|id| server.release(id)));
        rounds.push(HEAP.allocated());
    }
    let grown = rounds[5].saturating_sub(rounds[2]);
    assert!(grown < 64 * 1024, "{rounds:?}");
}

#[test]
fn a_million_inits_cost_no_memory_and_stop_no_work() {
    let _turn = TURN.lock();
    let mut server = server();
    let mut client = client(0);
    let mut now = SECOND;
    let id = client.connect(now, &[SERVER], PORT_Z).expect("free");
    exchange(now, &mut client, &mut server);
    let served = server.associations().next().expect("one");
    let mut out = BytesMut::with_capacity(4_096);
    let mut received = 0;
    let mut before = 0;
    for number in 0..1_000_000_u32 {
        let init = Chunk::Init(Init {
            initiate_tag: number + 1,
            a_rwnd: 65_536,
            outbound_streams: 1,
            inbound_streams: 1,
            initial_tsn: Tsn(number),
            parameters: Parameters::empty(),
        });
        let path = Path::new(SERVER, client_address(1 + number));
        server.handle_datagram(now, path, Ecn::NotEct, packet(common::A, 0, &[&init]));
        if number % 10 == 0 {
            while server.poll_transmit(now, &mut out).is_some() {
                out.clear();
            }
        }
        if number % 1_000 == 0 {
            let association = client.association_mut(id).expect("known");
            association
                .send(now, message(1_000), &SendOptions::new())
                .expect("accepted");
            exchange(now, &mut client, &mut server);
            let association = server.association_mut(served).expect("known");
            received += std::iter::from_fn(|| association.poll_message()).count();
            exchange(now, &mut client, &mut server);
            while server.poll_event().is_some() {}
            while client.poll_event().is_some() {}
            now += MILLISECOND;
        }
        if number == 10_000 {
            before = HEAP.allocated();
        }
    }
    let grown = HEAP.allocated().saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} bytes");
    assert_eq!(server.associations().count(), 1);
    assert_eq!(received, 1_000);
    assert_eq!(server.discards().of(DiscardReason::RateLimited), 0);
}

//! Bulk transfer over a satellite delay: the throughput must equal one window per round trip.

use crate::common;

use anabranch_sctp::{AssociationState, Config, Endpoint, Profile, SendOptions};
use anabranch_transport::time::{MILLISECOND, SECOND, seconds};
use anabranch_transport::{Ecn, Transport};
use bytes::{Bytes, BytesMut};
use common::*;

/// Goodput in bytes of user data that Z receives within `span` of the first DATA, over a lossless
/// pipe of `delay`.
fn goodput(profile: Profile, delayed_sack: bool) -> f64 {
    let name = profile.name;
    let config = Config::new(profile).with(|it| {
        it.delayed_sack = delayed_sack;
        it.mtu = 1480;
    });
    let mut world = World::new(config);
    world.narrate = false;
    world.delay = 252 * MILLISECOND;
    let a = world.endpoints[A]
        .connect(world.now, &[address(Z, 0)], PORT_Z)
        .unwrap();
    world.drain(A);
    world.run_for(10 * SECOND);
    let z = world.only_association(Z);
    let payload = Bytes::from(vec![0; 1_432]);
    let (mut received, began, span) = (0, world.now, 60 * SECOND);
    while world.now < began + span {
        let association = world.endpoints[A].association_mut(a).unwrap();
        while association
            .send(world.now, payload.clone(), &SendOptions::new())
            .is_ok()
        {}
        world.drain(A);
        if !world.step(began + span) {
            world.now = began + span;
        }
        received += world
            .receive_all(Z, z)
            .iter()
            .map(|message| message.payload.len())
            .sum::<usize>();
    }
    let goodput = received as f64 / seconds(span);
    println!(
        "{name}, delayed SACK {delayed_sack}: {:.0} bytes/s over 60 s at 252 ms one way",
        goodput
    );
    goodput
}

#[test]
fn the_receive_window_over_the_round_trip_is_reached() {
    for name in Profile::NAMES {
        for delayed_sack in [false, true] {
            let goodput = goodput(Profile::by_name(name).unwrap(), delayed_sack);
            let limit = 65_536.0 / 0.504;
            assert!(goodput < limit, "{name}: more than the window allows");
            assert!(
                goodput > 0.80 * limit,
                "{name}: {goodput} is far below the window's {limit}"
            );
        }
    }
}

/// A driver processes all packets of a round trip before it polls the output, so one SACK
/// acknowledges them all. This must not limit the flight to Max.Burst (RFC 9260 §6.1 D limits the
/// burst).
#[test]
fn packets_taken_in_batches_fill_the_window() {
    let config = |host| {
        Config::default().with(|it| {
            it.addresses = vec![address(host, 0)];
            it.receive_buffer = 1 << 20;
            it.send_buffer = 1 << 20;
        })
    };
    let mut ends = [(A, PORT_A), (Z, PORT_Z)]
        .map(|(host, port)| Endpoint::new(config(host), port, [host as u8; 32]).expect("settings"));
    ends[Z].listen(true);
    let a = ends[A].connect(0, &[address(Z, 0)], PORT_Z).unwrap();
    let (mut out, mut now, mut read) = (BytesMut::new(), 0, 0);
    let payload = Bytes::from(vec![0; 1_000]);
    let mut flights = Vec::new();
    for _ in 0..100 {
        now += 10 * MILLISECOND;
        for from in [A, Z] {
            let mut wire = Vec::new();
            while let Some(transmit) = ends[from].poll_transmit(now, &mut out) {
                wire.push((transmit.path.reversed(), out.split().freeze()));
            }
            flights.push(wire.len());
            let to = &mut ends[1 - from];
            for (path, packet) in wire {
                to.handle_datagram(now, path, Ecn::NotEct, packet);
            }
            let id = to.associations().next();
            while let Some(message) = id.and_then(|id| to.association_mut(id)?.poll_message()) {
                read += message.payload.len();
            }
        }
        let association = ends[A].association_mut(a).unwrap();
        while association.state() == AssociationState::Established
            && association
                .send(now, payload.clone(), &SendOptions::new())
                .is_ok()
        {}
        while ends.iter_mut().any(|end| end.poll_event().is_some()) {}
    }
    let most = flights.iter().max().copied().unwrap_or(0);
    assert!(
        most > 60,
        "at most {most} packets in flight, {read} bytes read"
    );
}

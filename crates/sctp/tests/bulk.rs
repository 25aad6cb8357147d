//! A bulk transfer over a satellite's delay: what the window allows is what arrives.

mod common;

use anabranch_sctp::{Config, Message, Profile};
use anabranch_transport::time::{MILLISECOND, SECOND, seconds};
use bytes::Bytes;
use common::*;

/// Bytes of user data that Z got within `span` of the first DATA, over a pipe of `delay` that loses nothing.
fn goodput(profile: Profile, delayed_sack: bool) -> f64 {
    let name = profile.name;
    let config = Config {
        delayed_sack,
        mtu: 1480,
        ..Config::new(profile)
    };
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
            .send(
                0,
                Message {
                    ppid: 0,
                    unordered: false,
                    payload: payload.clone(),
                },
            )
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

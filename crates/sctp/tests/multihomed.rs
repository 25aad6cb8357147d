//! Two hosts with two addresses each, on networks 0 and 1: path failures, failover, and error
//! counters.

use crate::common;

use anabranch_sctp::{
    AssociationId, AssociationState, CloseReason, Config, Event, PathId, PathState, Profile,
    SendOptions,
};
use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::Chunk;
use bytes::{BufMut, Bytes, BytesMut};
use common::*;
use std::net::IpAddr;

fn homes(host: usize, config: &Config) -> Config {
    config
        .clone()
        .with(|it| it.addresses = vec![address(host, 0), address(host, 1)])
}

fn two_homes(config: Config) -> World {
    World::with_configs(homes(A, &config), homes(Z, &config))
}

/// Network of an address.
fn network(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(address) => address.octets()[2],
        IpAddr::V6(_) => 1,
    }
}

/// Drops all packets over the network `dead` from time `from` on.
fn dies(dead: u8, from: Nanos) -> Box<dyn FnMut(&Shot) -> Fate> {
    Box::new(move |shot| {
        if shot.at >= from && network(shot.path.remote) == dead {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    })
}

fn networks_of(world: &World, chunks: &str) -> Vec<u8> {
    world
        .shots
        .iter()
        .filter(|shot| shot.chunks.split(", ").any(|chunk| chunk == chunks))
        .map(|shot| network(shot.path.remote))
        .collect()
}

/// Sends `count` numbered messages from A to Z.
fn transfer(world: &mut World, a: AssociationId, z: AssociationId, count: u32, len: usize) {
    let mut got = Vec::new();
    let mut sent = 0;
    for _ in 0..4_000 {
        while sent < count {
            let mut payload = BytesMut::new();
            payload.put_u32(sent);
            payload.resize(len, 1);
            let message = payload.freeze();
            let association = world.endpoints[A].association_mut(a).unwrap();
            match association.send(world.now, message, &SendOptions::new()) {
                Ok(()) => sent += 1,
                Err(_) => break,
            }
        }
        world.drain(A);
        world.run_for(100 * MILLISECOND);
        got.extend(world.receive_all(Z, z));
        if got.len() == count as usize {
            break;
        }
    }
    let numbers: Vec<u32> = got
        .iter()
        .map(|message| {
            let bytes: Bytes = message.payload.clone().into_bytes();
            u32::from_be_bytes(bytes[..4].try_into().unwrap())
        })
        .collect();
    assert_eq!(
        numbers,
        (0..count).collect::<Vec<_>>(),
        "each once, in order"
    );
}

fn path_events(world: &World, host: usize) -> Vec<(u8, PathState)> {
    world
        .told(host)
        .into_iter()
        .filter_map(|event| match event {
            Event::PathChanged { path, state, .. } => Some((path.0, state)),
            _ => None,
        })
        .collect()
}

#[test]
fn t1_init_alternates_over_the_addresses_the_user_gave() {
    let mut world = two_homes(Config::default());
    world.fate = dies(0, 0);
    let remote = [address(Z, 0), address(Z, 1)];
    let a = world.endpoints[A]
        .connect(world.now, &remote, PORT_Z)
        .unwrap();
    world.drain(A);
    world.run_for(30 * SECOND);
    assert_eq!(networks_of(&world, "INIT"), [0, 1], "{:#?}", world.story);
    assert_eq!(world.state(A, a), AssociationState::Established);
}

#[test]
fn t1_cookie_alternates_once_the_peer_has_listed_its_addresses() {
    let mut world = two_homes(Config::default());
    let remote = [address(Z, 0), address(Z, 1)];
    let a = world.endpoints[A]
        .connect(world.now, &remote, PORT_Z)
        .unwrap();
    // Network 0 fails between INIT ACK and COOKIE ECHO.
    world.fate = dies(0, world.now + 15 * MILLISECOND);
    world.drain(A);
    world.run_for(30 * SECOND);
    assert_eq!(networks_of(&world, "COOKIE ECHO"), [0, 1]);
    assert_eq!(world.state(A, a), AssociationState::Established);
}

#[test]
fn t2_shutdown_alternates() {
    let mut world = two_homes(Config::default());
    let (a, z) = world.established();
    world.run_for(5 * SECOND);
    world.forget();
    world.fate = dies(0, 0);
    world.shutdown(A, a);
    world.run_for(60 * SECOND);
    assert_eq!(
        networks_of(&world, "SHUTDOWN"),
        [0, 1],
        "{:#?}",
        world.story
    );
    for (host, id) in [(A, a), (Z, z)] {
        assert_eq!(world.close_reason(host, id), Some(CloseReason::Shutdown));
    }
}

/// RFC 9260 §6.4: a SHUTDOWN that is repeated over another path is answered immediately over that
/// path. Z's own timer would expire much later.
#[test]
fn a_shutdown_is_answered_where_it_came_from() {
    let slow = Config::default().with(|it| {
        it.rto_min = 20 * SECOND;
        it.profile.set("rto_initial", "20 s").expect("a switch");
    });
    let mut world = World::with_configs(homes(A, &Config::default()), homes(Z, &slow));
    let (a, z) = world.established();
    world.run_for(5 * SECOND);
    world.forget();
    world.fate = Box::new(|shot| {
        if shot.chunks == "SHUTDOWN ACK" && network(shot.path.remote) == 0 {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    world.shutdown(A, a);
    world.run_for(15 * SECOND);
    assert_eq!(networks_of(&world, "SHUTDOWN"), [0, 1]);
    assert_eq!(networks_of(&world, "SHUTDOWN ACK"), [0, 1]);
    for (host, id) in [(A, a), (Z, z)] {
        assert_eq!(world.close_reason(host, id), Some(CloseReason::Shutdown));
    }
}

/// The primary path fails during a transfer and recovers. All data arrives once, the path becomes
/// inactive and active again, and data returns to it.
#[test]
fn the_primary_dies_in_mid_transfer_and_comes_back() {
    for name in ["rfc9260", "rfc4960", "rfc2960"] {
        let config = Config::new(Profile::by_name(name).unwrap()).with(|it| {
            it.path_max_retrans = 2;
            it.heartbeat_interval = Some(5 * SECOND);
            it.rto_max = 4 * SECOND;
        });
        let mut world = two_homes(config);
        let (a, z) = world.established();
        world.run_for(3 * SECOND);
        world.forget();
        world.fate = dies(0, world.now + 150 * MILLISECOND);
        transfer(&mut world, a, z, 2_000, 1_000);
        assert_eq!(path_events(&world, A), [(0, PathState::Inactive)], "{name}");
        world.run_for(30 * SECOND);
        assert_eq!(
            world.state(A, a),
            AssociationState::Established,
            "{name}: idle on the other path"
        );
        world.forget();
        world.fate = Box::new(|_| Fate::Deliver);
        world.run_for(30 * SECOND);
        assert_eq!(path_events(&world, A), [(0, PathState::Active)], "{name}");
        world.forget();
        transfer(&mut world, a, z, 20, 1_000);
        assert!(
            networks_of(&world, "DATA")
                .iter()
                .all(|&network| network == 0),
            "{name}: the primary again"
        );
    }
}

/// Chunks created for one path must also fit the other path (RFC 9260 §6.9, AMDCS); IPv6 leaves 20
/// bytes less.
#[test]
fn chunks_cut_for_ipv4_fail_over_to_ipv6() {
    let v6 = |host: usize| -> IpAddr { format!("2001:db8::{}", 1 + host).parse().unwrap() };
    let config = |host| {
        Config::default().with(|it| {
            it.addresses = vec![address(host, 0), v6(host)];
            it.path_max_retrans = 1;
        })
    };
    let mut world = World::with_configs(config(A), config(Z));
    let (a, z) = world.established();
    world.run_for(3 * SECOND);
    world.forget();
    world.fate = dies(0, world.now + 50 * MILLISECOND);
    transfer(&mut world, a, z, 50, 10_000);
    let longest = world.shots.iter().map(|shot| shot.bytes.len()).max();
    assert_eq!(longest, Some(1_500 - 40), "the smaller path's packets");
}

/// An idle association whose primary path has failed survives. Lost HEARTBEATs on unused paths are
/// no errors of the association, but those on the path in use are (RFC 9260 §8.1).
#[test]
fn only_heartbeats_of_the_path_in_use_count_for_the_association() {
    let config = Config::default().with(|it| {
        it.heartbeat_interval = Some(2 * SECOND);
        it.path_max_retrans = 3;
        it.association_max_retrans = 3;
        it.rto_max = 2 * SECOND;
    });
    // The primary path fails permanently; then the other path answers only every fourth HEARTBEAT.
    let mut world = two_homes(config);
    let (a, _) = world.established();
    world.run_for(3 * SECOND);
    world.fate = dies(0, 0);
    world.run_for(30 * SECOND);
    assert_eq!(path_events(&world, A), [(0, PathState::Inactive)]);
    let mut beats = 0;
    world.fate = Box::new(move |shot| {
        if network(shot.path.remote) == 0 {
            return Fate::Drop;
        }
        if shot.from == A && shot.chunks == "HEARTBEAT" {
            beats += 1;
            if beats % 4 != 0 {
                return Fate::Drop;
            }
        }
        Fate::Deliver
    });
    world.run_for(300 * SECOND);
    assert_eq!(world.state(A, a), AssociationState::Established);
    // Now the other path fails as well.
    world.fate = Box::new(|_| Fate::Drop);
    world.run_for(100 * SECOND);
    assert_eq!(world.close_reason(A, a), Some(CloseReason::PeerUnreachable));
}

/// The association fails after Association.Max.Retrans errors, although no path exceeds
/// Path.Max.Retrans.
#[test]
fn association_max_retrans_counts_over_all_paths() {
    let config = Config::default().with(|it| {
        it.heartbeat_interval = None;
        it.path_max_retrans = 5;
        it.association_max_retrans = 4;
        it.rto_max = 2 * SECOND;
    });
    let mut world = two_homes(config);
    let (a, _) = world.established();
    world.run_for(3 * SECOND);
    world.forget();
    world.fate = Box::new(|_| Fate::Drop);
    world.send(A, a, 0, "anyone?");
    world.run_for(100 * SECOND);
    assert_eq!(world.close_reason(A, a), Some(CloseReason::PeerUnreachable));
    assert!(path_events(&world, A).is_empty(), "{:?}", world.told(A));
    let networks = networks_of(&world, "DATA");
    assert_eq!(networks, [0, 1, 0, 1, 0], "1 + 4 times, in turn");
}

/// After a failover the SHUTDOWN is sent on the path of the data, and not on the failed primary
/// path.
#[test]
fn a_shutdown_takes_the_path_that_works() {
    let config = Config::default().with(|it| {
        it.path_max_retrans = 0;
        it.heartbeat_interval = None;
    });
    let mut world = two_homes(config);
    let (a, z) = world.established();
    world.run_for(3 * SECOND);
    world.fate = dies(0, 0);
    world.send(A, a, 0, "first");
    world.run_for(10 * SECOND);
    assert_eq!(world.receive_all(Z, z).len(), 1);
    world.forget();
    world.shutdown(A, a);
    world.run_for(SECOND);
    assert_eq!(networks_of(&world, "SHUTDOWN"), [1]);
    assert_eq!(world.close_reason(A, a), Some(CloseReason::Shutdown));
}

/// An answer without the right nonce confirms no path, and a valid answer confirms only its own
/// path (RFC 9260 §5.4).
#[test]
fn a_forged_heartbeat_ack_confirms_nothing() {
    let mut world = two_homes(Config::default());
    // Network 1 delivers no packets to Z, so the second path of A stays unconfirmed.
    world.fate = dies(1, 0);
    let a = world.connect();
    world.run_for(SECOND);
    let heartbeat = world
        .shots
        .iter()
        .find(|shot| shot.from == A && shot.chunks == "HEARTBEAT")
        .expect("the unconfirmed path is probed")
        .bytes
        .clone();
    let Chunk::Heartbeat(heartbeat) = chunks_of(&heartbeat).remove(0) else {
        panic!()
    };
    let to_a = world.tag_sent_by(Z);
    let forge = |change: fn(&mut Vec<u8>)| {
        let mut info = heartbeat.info.to_vec();
        change(&mut info);
        let ack = anabranch_wire::chunk::HeartbeatAck { info: info.into() };
        packet(Z, to_a, &[&Chunk::HeartbeatAck(ack)])
    };
    let forged = [
        forge(|info| *info.last_mut().unwrap() ^= 1),
        forge(|info| info[0] = 0),
        forge(|info| info[0] = 200),
        forge(|info| info.truncate(8)),
        forge(|info| info.push(0)),
    ];
    for bytes in forged {
        world.inject(A, bytes);
        let entry = world.endpoints[A].association(a).unwrap().paths();
        assert_eq!(entry.get(PathId(1)).state(), PathState::Unconfirmed);
    }
}

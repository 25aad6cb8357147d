//! Tests of the destination address and authentication key of a single message, and of replacing
//! the scheduler.

use crate::common;

use anabranch_sctp::config::SchedulerKind;
use anabranch_sctp::{
    AssociationId, Authentication, ChunkTypes, Config, Event, SendOptions, SharedKeys,
};
use anabranch_transport::time::SECOND;
use anabranch_wire::chunk::{Chunk, kind};
use common::*;

/// Creates two hosts with two addresses each. Both paths are confirmed.
fn two_homes(config: &Config) -> (World, AssociationId, AssociationId) {
    let homes = |host: usize| {
        config
            .clone()
            .with(|it| it.addresses = vec![address(host, 0), address(host, 1)])
    };
    let mut world = World::with_configs(homes(A), homes(Z));
    let (a, z) = world.established();
    world.run_for(5 * SECOND);
    world.forget();
    (world, a, z)
}

/// Queues messages at A. Nothing is sent until all are queued.
fn give(world: &mut World, id: AssociationId, messages: &[(u16, &'static [u8], SendOptions)]) {
    let now = world.now;
    let association = world.endpoints[A].association_mut(id).expect("known");
    for (stream, text, options) in messages {
        let payload = bytes::Bytes::from_static(text);
        let given = association.send(now, payload, &options.with_stream(Some(*stream)));
        given.expect("taken");
    }
    world.drain(A);
}

/// Returns, for each packet of A with DATA, the number of its network and the user data of each
/// chunk.
fn sent(world: &World) -> Vec<(u8, Vec<String>)> {
    let mut out = Vec::new();
    for shot in world.shots.iter().filter(|it| it.from == A) {
        let network = u8::from(shot.path.remote == address(Z, 1));
        let data = chunks_of(&shot.bytes)
            .into_iter()
            .filter_map(|it| match it {
                Chunk::Data(data) => Some(String::from_utf8_lossy(&data.user_data).into_owned()),
                _ => None,
            });
        let data: Vec<_> = data.collect();
        if !data.is_empty() {
            out.push((network, data));
        }
    }
    out
}

fn packets(all: &[(u8, &[&str])]) -> Vec<(u8, Vec<String>)> {
    let owned = |it: &&[&str]| it.iter().map(|&it| it.to_owned()).collect();
    all.iter()
        .map(|(network, it)| (*network, owned(it)))
        .collect()
}

#[test]
fn a_message_goes_to_the_address_that_its_user_names() {
    let (mut world, a, z) = two_homes(&Config::default());
    let other = SendOptions::new().with_address(Some(address(Z, 1)));
    let usual = SendOptions::new();
    let all = [
        (0, &b"one"[..], usual),
        (0, b"two", other),
        (0, b"three", other),
        (0, b"four", usual),
    ];
    give(&mut world, a, &all);
    world.run_for(SECOND);
    // Each change of the address should start another packet, and the order of the stream should be
    // kept. Consecutive messages to one address should share a packet.
    let expected = packets(&[(0, &["one"]), (1, &["two", "three"]), (0, &["four"])]);
    assert_eq!(sent(&world), expected);
    let texts: Vec<_> = world
        .receive_all(Z, z)
        .into_iter()
        .map(|it| it.payload.into_bytes())
        .collect();
    assert_eq!(texts, ["one", "two", "three", "four"]);
}

#[test]
fn an_address_that_is_not_active_or_not_the_peers_gives_way_to_the_primary() {
    let (mut world, a, _) = two_homes(&Config::default());
    let strange = SendOptions::new().with_address(Some("192.0.2.99".parse().unwrap()));
    give(&mut world, a, &[(0, b"strange", strange)]);
    world.run_for(SECOND);
    assert_eq!(sent(&world), packets(&[(0, &["strange"])]));
}

#[test]
fn a_message_is_signed_by_the_key_that_its_user_names() {
    let config = Config::default().with(|it| {
        it.authentication = Authentication::On;
        it.authenticated_chunks = Some(ChunkTypes::of(&[kind::DATA]));
        let mut keys = SharedKeys::default();
        keys.set(3, "three").unwrap();
        keys.set(4, "four").unwrap();
        it.auth_keys = keys;
    });
    let (mut world, a, z) = two_homes(&config);
    let usual = SendOptions::new();
    let (three, four) = (usual.with_key(Some(3)), usual.with_key(Some(4)));
    let all = [
        (0, &b"a"[..], usual),
        (0, b"b", three),
        (0, b"c", three),
        (0, b"d", four),
        (0, b"e", usual),
    ];
    give(&mut world, a, &all);
    // The user deletes the key before the messages are sent. They should be signed with the active
    // key.
    let association = world.endpoints[A].association_mut(a).expect("known");
    let keys = association.auth_keys().expect("offered");
    assert!(keys.can_sign(3) && !keys.can_sign(9));
    world.run_for(SECOND);
    let keys: Vec<_> = world
        .shots
        .iter()
        .filter(|it| it.from == A)
        .flat_map(|it| keys_of(&it.bytes))
        .collect();
    assert_eq!(
        keys,
        [0, 3, 4, 0],
        "one AUTH for each packet, one key for each AUTH"
    );
    let texts: Vec<_> = world
        .receive_all(Z, z)
        .into_iter()
        .map(|it| it.payload.into_bytes())
        .collect();
    assert_eq!(
        texts,
        ["a", "b", "c", "d", "e"],
        "the peer has all of the keys"
    );
    let told: Vec<_> = world.events[Z]
        .iter()
        .filter_map(|(_, it)| match it {
            Event::PeerAuthKey { key_id } => Some(*key_id),
            _ => None,
        })
        .collect();
    assert_eq!(told, [3, 4, 0]);
}

/// Identifiers of the keys in the AUTH chunks of a packet.
fn keys_of(packet: &[u8]) -> Vec<u16> {
    let (mut at, mut keys) = (12, Vec::new());
    while at + 4 <= packet.len() {
        if packet[at] == kind::AUTH {
            keys.push(u16::from_be_bytes([packet[at + 4], packet[at + 5]]));
        }
        let length = usize::from(u16::from_be_bytes([packet[at + 2], packet[at + 3]]));
        at += length.next_multiple_of(4);
    }
    keys
}

#[test]
fn retransmissions_are_authenticated_by_the_same_key() {
    let config = Config::default().with(|it| {
        it.authentication = Authentication::On;
        it.authenticated_chunks = Some(ChunkTypes::of(&[kind::DATA]));
        let mut keys = SharedKeys::default();
        keys.set(3, "three").unwrap();
        it.auth_keys = keys;
    });
    let (mut world, a, z) = two_homes(&config);
    let mut lost = 0;
    world.fate = Box::new(move |shot| {
        let data = shot.from == A && shot.chunks.contains("DATA");
        if data && lost < 2 {
            lost += 1;
            return Fate::Drop;
        }
        Fate::Deliver
    });
    let usual = SendOptions::new();
    give(
        &mut world,
        a,
        &[
            (0, b"by three", usual.with_key(Some(3))),
            (0, b"by the active", usual),
        ],
    );
    world.run_for(10 * SECOND);
    let keys: Vec<_> = world
        .shots
        .iter()
        .filter(|it| it.from == A)
        .flat_map(|it| keys_of(&it.bytes))
        .collect();
    assert_eq!(keys, [3, 0, 3, 0]);
    assert_eq!(world.receive_all(Z, z).len(), 2);
}

#[test]
fn another_scheduler_takes_over_what_waits() {
    let (mut world, a, _) =
        two_homes(&Config::default().with(|it| it.scheduler = SchedulerKind::RoundRobin));
    let now = world.now;
    let association = world.endpoints[A].association_mut(a).expect("known");
    let usual = SendOptions::new();
    for text in ["0a", "0b", "0c"] {
        association.send(now, text.into(), &usual).unwrap();
    }
    for text in ["1a", "1b"] {
        association
            .send(now, text.into(), &usual.with_stream(Some(1)))
            .unwrap();
    }
    association.set_stream_value(0, 2);
    association.set_stream_value(1, 1);
    let settings = association
        .settings()
        .with(|it| it.scheduler = SchedulerKind::Priority);
    association.set_settings(settings).expect("in range");
    association
        .send(now, "1c".into(), &usual.with_stream(Some(1)))
        .unwrap();
    world.drain(A);
    world.run_for(SECOND);
    let order: Vec<_> = sent(&world).into_iter().flat_map(|(_, it)| it).collect();
    assert_eq!(order, ["1a", "1b", "1c", "0a", "0b", "0c"]);
}

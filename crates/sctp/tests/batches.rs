//! Packets sent and received in batches: with deferred checksums, and as parts of a larger block.

use crate::common;

use anabranch_sctp::{Config, Profile, ZeroChecksum};
use anabranch_transport::time::SECOND;
use bytes::Bytes;
use common::*;

/// Lets two ends exchange messages while every seventh packet is lost. Returns the world and the
/// messages that were read.
fn played(config: Config, unsummed: bool) -> (World, Vec<Bytes>) {
    let mut world = World::new(config);
    world.unsummed = unsummed.then_some(0);
    let a = world.connect();
    world.run_for(SECOND);
    let z = world.only_association(Z);
    let mut sent = 0;
    world.fate = Box::new(move |_| {
        sent += 1;
        if sent % 7 == 0 {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    let mut read = Vec::new();
    for turn in 0..60_usize {
        let size = [10, 100, 1_400, 5_000][turn % 4];
        world.send(A, a, 0, vec![turn as u8; size]);
        world.send(Z, z, 1, vec![turn as u8; 700]);
        world.run_for(SECOND / 20);
        for (host, id) in [(A, a), (Z, z)] {
            let came = world.receive_all(host, id);
            read.extend(came.into_iter().map(|it| it.payload.into_bytes()));
        }
    }
    world.fate = Box::new(|_| Fate::Deliver);
    world.shutdown(A, a);
    world.run_for(20 * SECOND);
    (world, read)
}

/// Packets and messages must not depend on the time at which checksums are computed, or on the
/// memory block of a packet.
#[test]
fn nothing_depends_on_what_packets_lie_among() {
    for profile in Profile::NAMES {
        let config = Config::new(Profile::by_name(profile).expect("it is named"));
        let (alone, expected) = played(config.clone(), false);
        let (among, read) = played(config, true);
        assert_eq!(alone.story, among.story, "{profile}");
        let bytes = |world: &World| -> Vec<(u64, Bytes)> {
            world
                .shots
                .iter()
                .map(|it| (it.at, it.bytes.clone()))
                .collect()
        };
        assert_eq!(bytes(&alone), bytes(&among), "{profile}");
        assert_eq!(read, expected, "{profile}");
        assert!(among.unsummed > Some(10), "{profile}: {:?}", among.unsummed);
    }
}

/// RFC 9653: a packet that needs no checksum is not returned with a deferred checksum.
#[test]
fn zero_checksums_are_not_computed() {
    let config = Config::new(Profile::rfc9260()).with(|it| it.zero_checksum = ZeroChecksum::Dtls);
    let (world, _) = played(config, true);
    assert_eq!(world.unsummed, Some(0));
}

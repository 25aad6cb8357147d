//! Vulnerabilities of other stacks in AUTH, ASCONF, FORWARD TSN, RE-CONFIG and I-DATA, tested with
//! an association that uses all of them. Tests that need a signature or a special state are with
//! the extension: `authentication_setup.rs` (CVE-2014-0101, CVE-2014-5077, CVE-2015-1421),
//! `address_changes.rs` (CVE-2014-3673, CVE-2014-3687, CVE-2014-3688, CVE-2014-7841),
//! `forward_tsn.rs` (CVE-2009-0065, CVE-2021-3655).

use crate::common;

use anabranch_sctp::{AssociationId, AssociationState, Authentication, Config, DiscardReason};
use anabranch_transport::time::SECOND;
use anabranch_wire::chunk::kind;
use common::*;

fn speaking_all() -> Config {
    Config::default().with(|it| {
        it.authentication = Authentication::On;
        it.address_changes = true;
        it.partial_reliability = true;
        it.interleaving = true;
        it.reconfiguration = true;
    })
}

/// World with an established association, and verification tag of packets to Z.
fn pair() -> (World, AssociationId, u32) {
    let mut world = World::new(speaking_all());
    world.connect();
    world.run_for(SECOND);
    let z = world.only_association(Z);
    let tag = world.tag_sent_by(A);
    world.forget();
    (world, z, tag)
}

fn chunk(kind: u8, length: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, 0];
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Number of packets and chunks that Z has discarded, for any reason.
fn thrown_away(world: &World) -> u64 {
    world.endpoints[Z].discards().total()
}

/// CVE-2020-6831: another stack did not compare the length of an AUTH chunk or of its HMAC with the
/// size of the destination buffer. Here an AUTH of any length is discarded together with the chunks
/// after it.
#[test]
fn cve_2020_6831_an_auth_of_any_length() {
    let (mut world, z, tag) = pair();
    let mut sent = 0;
    for hmac_id in [0, 1, 3, 0xFFFF_u16] {
        for len in (0..80).chain([255, 1_000]) {
            let mut value = vec![0, 0];
            value.extend_from_slice(&hmac_id.to_be_bytes());
            value.resize(value.len().max(len), 0xA5);
            value.truncate(len);
            for length in [4 + len as u16, 4, 5 + len as u16, 0xFFFF] {
                let mut chunks = chunk(kind::AUTH, length, &value);
                chunks.extend(chunk(kind::ASCONF, 8, &[0, 0, 0, 1]));
                let before = thrown_away(&world);
                world.inject(Z, raw_packet(A, tag, &chunks));
                sent += 1;
                assert!(thrown_away(&world) > before, "{hmac_id} {len} {length}");
                assert_eq!(world.state(Z, z), AssociationState::Established);
            }
        }
    }
    assert!(sent > 1_000);
    let discards = world.endpoints[Z].discards();
    assert!(discards.of(DiscardReason::BadAuth) > 300, "most were AUTHs");
    let answered = world.shots.iter().filter(|it| it.from == Z).count();
    assert!(answered <= sent, "one ERROR each at most");
}

/// CVE-2022-46871: a bundled SCTP stack lacked fixes of stream resets and reassembly. A RE-CONFIG
/// of any length with a parameter of any length is answered or discarded, as are I-DATA and
/// I-FORWARD-TSN of any length.
#[test]
fn cve_2022_46871_requests_and_pieces_of_any_length() {
    for parameter in 12..=19_u8 {
        let (mut world, z, tag) = pair();
        for len in 0..40_u16 {
            for inner in [0, 3, 4, len, 4 + len, 8 + len, 0xFFFF] {
                let mut value = vec![0, parameter];
                value.extend_from_slice(&inner.to_be_bytes());
                value.resize(4 + usize::from(len), 0x7F);
                let chunks = chunk(kind::RE_CONFIG, 4 + value.len() as u16, &value);
                world.inject(Z, raw_packet(A, tag, &chunks));
                assert_eq!(
                    world.state(Z, z),
                    AssociationState::Established,
                    "{parameter} {len} {inner}"
                );
            }
        }
        assert!(thrown_away(&world) > 100, "{parameter}");
        assert!(world.shots.iter().all(|it| it.bytes.len() < 100));
    }
    for (kind, fields) in [(kind::I_DATA, 16), (kind::I_FORWARD_TSN, 4)] {
        for len in 0..fields {
            let (mut world, z, tag) = pair();
            let value = vec![0; len];
            world.inject(Z, raw_packet(A, tag, &chunk(kind, 4 + len as u16, &value)));
            assert_eq!(thrown_away(&world), 1, "{kind} {len}");
            assert_eq!(
                world.state(Z, z),
                AssociationState::Established,
                "{kind} {len}"
            );
        }
    }
}

/// CVE-2021-3655: ASCONFs and ASCONF-ACKs that are shorter than their fields. Without
/// authentication they are not parsed.
#[test]
fn cve_2021_3655_asconfs_shorter_than_their_fields() {
    for kind in [kind::ASCONF, kind::ASCONF_ACK] {
        for len in 0..24_usize {
            let (mut world, z, tag) = pair();
            let value = vec![0; len];
            world.inject(Z, raw_packet(A, tag, &chunk(kind, 4 + len as u16, &value)));
            let discards = world.endpoints[Z].discards();
            assert_eq!(
                discards.of(DiscardReason::Unauthenticated),
                1,
                "{kind} {len}"
            );
            assert_eq!(
                world.state(Z, z),
                AssociationState::Established,
                "{kind} {len}"
            );
            assert!(world.shots.iter().all(|it| it.from == A), "{kind} {len}");
        }
    }
}

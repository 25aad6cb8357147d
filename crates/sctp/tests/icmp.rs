//! ICMP messages about sent packets (RFC 9260 §10, RFC 6951 §5.5): their effects, and that messages
//! of an off-path attacker have no effect.

use crate::common;

use anabranch_sctp::{
    AssociationId, AssociationState, CloseReason, Config, ConnectOptions, DiscardReason, Icmp,
    PathId, PathState,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use bytes::{Bytes, BytesMut};
use common::*;
use rand_core::{RngCore, SeedableRng};
use std::net::IpAddr;

/// IPv4 packet with `payload`, as quoted by a router.
pub(crate) fn quoted(remote: IpAddr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let IpAddr::V4(remote) = remote else { panic!() };
    let mut packet = vec![0; 20];
    packet[0] = 0x45;
    packet[9] = protocol;
    packet[16..20].copy_from_slice(&remote.octets());
    packet.extend_from_slice(payload);
    packet
}

/// Like [`quoted`], for an SCTP packet that was sent inside UDP to `port`.
fn over_udp(remote: IpAddr, port: u16, packet: &[u8]) -> Vec<u8> {
    let mut udp = vec![0x26, 0xAB, 0, 0, 0, 0, 0, 0];
    udp[2..4].copy_from_slice(&port.to_be_bytes());
    udp.extend_from_slice(packet);
    quoted(remote, 17, &udp)
}

const PROTOCOL: (u8, u8, u32) = (3, 2, 0);
const PORT: (u8, u8, u32) = (3, 3, 0);
const HOST: (u8, u8, u32) = (3, 1, 0);

fn too_big(mtu: u32) -> (u8, u8, u32) {
    (3, 4, mtu)
}

/// Delivers an ICMP message about one of A's packets to A, as sent by a router.
fn tell(world: &mut World, (kind, code, mtu): (u8, u8, u32), quoted: &[u8]) {
    let icmp = Icmp {
        v6: false,
        kind,
        code,
        mtu,
        quoted,
    };
    world.endpoints[A].handle_icmp(world.now, &icmp);
    world.drain(A);
}

fn discarded(world: &World, reason: DiscardReason) -> u64 {
    world.endpoints[A].discards().of(reason)
}

fn acted(world: &World, id: AssociationId) -> u64 {
    world.endpoints[A]
        .association(id)
        .unwrap()
        .stats()
        .control
        .icmp
}

/// World with data in flight, and the last packet of A.
fn under_way() -> (World, AssociationId, AssociationId, Bytes) {
    let mut world = World::new(Config::default());
    let (a, z) = world.established();
    world.send(A, a, 0, vec![7; 1_000]);
    let packet = world.shot(A, "DATA");
    (world, a, z, packet)
}

#[test]
fn protocol_unreachable_ends_the_association_as_an_abort() {
    let (mut world, a, _, packet) = under_way();
    tell(&mut world, PROTOCOL, &quoted(address(Z, 0), 132, &packet));
    assert_eq!(
        world.close_reason(A, a),
        Some(CloseReason::ProtocolUnreachable)
    );
    let (mut world, a, _, packet) = under_way();
    // Some routers quote only eight bytes, which include ports and tag.
    tell(
        &mut world,
        PROTOCOL,
        &quoted(address(Z, 0), 132, &packet[..8]),
    );
    assert_eq!(
        world.close_reason(A, a),
        Some(CloseReason::ProtocolUnreachable)
    );
}

#[test]
fn an_init_is_answered_by_its_initiate_tag_and_only_in_cookie_wait() {
    let init_of = |world: &World| world.shot(A, "INIT");
    let (mut world, _) = in_state(AssociationState::CookieWait);
    world.narrate = true;
    world.forget();
    world.run_for(2 * SECOND);
    let a = world.only_association(A);
    let init = init_of(&world);
    // The quote is too short for the Initiate Tag, or contains another Initiate Tag.
    tell(
        &mut world,
        PROTOCOL,
        &quoted(address(Z, 0), 132, &init[..19]),
    );
    let mut other = init.to_vec();
    other[19] ^= 1;
    tell(&mut world, PROTOCOL, &quoted(address(Z, 0), 132, &other));
    assert_eq!(discarded(&world, DiscardReason::IcmpTag), 2);
    assert_eq!(world.state(A, a), AssociationState::CookieWait);
    tell(
        &mut world,
        PROTOCOL,
        &quoted(address(Z, 0), 132, &init[..20]),
    );
    assert_eq!(
        world.close_reason(A, a),
        Some(CloseReason::ProtocolUnreachable)
    );
    // After an answer of the peer, a message about the INIT is outdated.
    let mut world = World::new(Config::default());
    let a = world.connect();
    let init = init_of(&world);
    world.run_for(SECOND);
    tell(&mut world, PROTOCOL, &quoted(address(Z, 0), 132, &init));
    assert_eq!(world.state(A, a), AssociationState::Established);
    assert_eq!(discarded(&world, DiscardReason::IcmpIgnored), 1);
}

#[test]
fn port_unreachable_counts_inside_udp_only() {
    let (mut world, a, _, packet) = under_way();
    tell(&mut world, PORT, &quoted(address(Z, 0), 132, &packet));
    assert_eq!(world.state(A, a), AssociationState::Established);
    assert_eq!(discarded(&world, DiscardReason::IcmpIgnored), 1);
    // The packet was not encapsulated in UDP.
    tell(&mut world, PORT, &over_udp(address(Z, 0), 9_899, &packet));
    assert_eq!(discarded(&world, DiscardReason::IcmpNoAssociation), 1);
    assert_eq!(world.state(A, a), AssociationState::Established);

    let mut world = World::new(Config::default());
    let mut out = BytesMut::new();
    let (now, remote) = (world.now, address(Z, 0));
    let a = world.endpoints[A]
        .connect_with(now, &[remote], PORT_Z, ConnectOptions::over_udp(9_899))
        .unwrap();
    let outgoing = poll_one(&mut world.endpoints[A], now, &mut out).expect("INIT");
    assert_eq!(outgoing.udp_port, 9_899);
    // The quote refers to another UDP port, or its minimum length of eight bytes does not include
    // SCTP's tag.
    tell(&mut world, PORT, &over_udp(remote, 9_900, &out));
    tell(&mut world, PORT, &over_udp(remote, 9_899, &out)[..28]);
    assert_eq!(world.state(A, a), AssociationState::CookieWait);
    tell(&mut world, PORT, &over_udp(remote, 9_899, &out));
    assert_eq!(
        world.close_reason(A, a),
        Some(CloseReason::ProtocolUnreachable)
    );
}

#[test]
fn too_big_lowers_the_path_mtu_and_never_raises_it() {
    let (mut world, a, z, packet) = under_way();
    let quote = quoted(address(Z, 0), 132, &packet[..8]);
    let most = |world: &World| {
        let association = world.endpoints[A].association(a).unwrap();
        (
            association.status().fragmentation_point,
            association.paths().get(PathId(0)).max_packet(),
        )
    };
    assert_eq!(most(&world).1, 1_480);
    tell(&mut world, too_big(1_400), &quote);
    assert_eq!(most(&world), (1_400 - 20 - 28, 1_380));
    for larger in [1_400, 1_500, 9_000, u32::MAX] {
        tell(&mut world, too_big(larger), &quote);
        assert_eq!(most(&world).1, 1_380);
    }
    // MTU values below the minimum are ignored (RFC 8899 §4.6.2). Otherwise an attacker who has
    // seen one packet could slow the transfer down extremely.
    tell(&mut world, too_big(575), &quote);
    assert_eq!(most(&world).1, 1_380);
    tell(&mut world, too_big(576), &quote);
    assert_eq!(most(&world).1, 576 - 20);
    assert_eq!(acted(&world, a), 2);
    world.run_for(SECOND);
    world.forget();
    world.send(A, a, 0, vec![7; 5_000]);
    world.run_for(5 * SECOND);
    assert!(world.shots.iter().all(|shot| shot.bytes.len() <= 556));
    let lengths: Vec<_> = world
        .receive_all(Z, z)
        .iter()
        .map(|it| it.payload.len())
        .collect();
    assert_eq!(lengths, [1_000, 5_000]);
}

/// RFC 9260 §6.9: chunks cannot be fragmented again after an MTU decrease, so they are
/// retransmitted unchanged, and fragmented by IP.
#[test]
fn chunks_cut_before_the_mtu_fell_go_again_whole() {
    let mut world = World::new(Config::default());
    let (a, z) = world.established();
    world.fate = lose("DATA", 3);
    world.send(A, a, 0, vec![7; 4_000]);
    let packet = world.shot(A, "DATA");
    tell(
        &mut world,
        too_big(600),
        &quoted(address(Z, 0), 132, &packet),
    );
    world.send(A, a, 0, vec![8; 1_000]);
    world.run_for(20 * SECOND);
    let lengths: Vec<_> = world
        .receive_all(Z, z)
        .iter()
        .map(|it| it.payload.len())
        .collect();
    assert_eq!(lengths, [4_000, 1_000], "{:#?}", world.story);
}

#[test]
fn unreachable_is_one_error_of_the_path_per_rto() {
    let config = Config::default().with(|it| it.addresses = vec![address(A, 0), address(A, 1)]);
    let theirs = Config::default().with(|it| it.addresses = vec![address(Z, 0), address(Z, 1)]);
    let mut world = World::with_configs(config, theirs);
    let (a, z) = world.established();
    world.run_for(10 * SECOND);
    world.send(A, a, 0, "one");
    let quote = quoted(address(Z, 0), 132, &world.shot(A, "DATA"));
    let standing = |world: &World| {
        let paths = world.endpoints[A].association(a).unwrap().paths();
        (
            paths.get(PathId(0)).error_count(),
            paths.get(PathId(0)).state(),
        )
    };
    for _ in 0..100 {
        tell(&mut world, HOST, &quote);
    }
    assert_eq!(standing(&world), (1, PathState::Active));
    assert_eq!(acted(&world, a), 1);
    // The SACK of the data clears the error.
    world.run_for(900 * MILLISECOND);
    assert_eq!(standing(&world), (0, PathState::Active));
    for _ in 0..6 {
        world.run_for(SECOND);
        tell(&mut world, HOST, &quote);
    }
    assert_eq!(standing(&world), (6, PathState::Inactive));
    assert_eq!(
        world.state(A, a),
        AssociationState::Established,
        "the association counts none"
    );
    world.forget();
    world.send(A, a, 0, "two");
    let on = |shot: &Shot| shot.path.remote;
    assert_eq!(
        world.shots.iter().map(on).collect::<Vec<_>>(),
        [address(Z, 1)]
    );
    world.run_for(SECOND);
    assert_eq!(world.receive_all(Z, z).len(), 2);
}

/// An off-path attacker must guess tags, ports and addresses. Messages whose quotes do not match
/// are counted, and have no other effect.
#[test]
fn an_off_path_attacker_changes_nothing() {
    let (mut world, a, _, packet) = under_way();
    world.run_for(SECOND);
    let all = [PROTOCOL, HOST, too_big(576)];
    let before =
        |world: &World| format!("{:?}", world.endpoints[A].association(a).unwrap().paths());
    let paths = before(&world);
    for flipped in [0, 1, 2, 3, 4, 5, 6, 7] {
        let mut forged = packet.to_vec();
        forged[flipped] ^= 1;
        for message in all {
            tell(&mut world, message, &quoted(address(Z, 0), 132, &forged));
        }
    }
    assert_eq!(discarded(&world, DiscardReason::IcmpNoAssociation), 4 * 3);
    assert_eq!(discarded(&world, DiscardReason::IcmpTag), 4 * 3);
    for message in all {
        tell(
            &mut world,
            message,
            &quoted([10, 9, 9, 9].into(), 132, &packet),
        );
        tell(&mut world, message, &quoted(address(Z, 0), 6, &packet));
        tell(
            &mut world,
            message,
            &quoted(address(Z, 0), 132, &packet[..7]),
        );
        // The quote has tag 0, but is not an INIT.
        tell(
            &mut world,
            message,
            &quoted(address(Z, 0), 132, &retag(&packet, 0)),
        );
        // The tag of packets to A, which the peer's packets contain, does not match.
        let own = world.tag_sent_by(Z);
        tell(
            &mut world,
            message,
            &quoted(address(Z, 0), 132, &retag(&packet, own)),
        );
    }
    assert_eq!(discarded(&world, DiscardReason::IcmpQuote), 6);
    assert_eq!(before(&world), paths);
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(7);
    for _ in 0..20_000 {
        let mut bytes = vec![0; random.next_u32() as usize % 90];
        random.fill_bytes(&mut bytes);
        if let Some(first) = bytes.get_mut(8) {
            *first = if random.next_u32() & 1 == 0 {
                0x45
            } else {
                0x60
            };
        }
        let v6 = random.next_u32() & 1 == 0;
        if let Some(kind) = bytes.first_mut() {
            *kind %= 5;
        }
        if let Some(icmp) = Icmp::read(v6, &bytes) {
            world.endpoints[A].handle_icmp(world.now, &icmp);
        }
    }
    assert_eq!(before(&world), paths);
    assert_eq!(world.state(A, a), AssociationState::Established);
    assert_eq!(acted(&world, a), 0);
}

/// ICMP messages may still arrive for packets of a closed association.
#[test]
fn a_message_about_an_association_that_ended_is_a_strangers() {
    let (mut world, a, _, packet) = under_way();
    world.run_for(SECOND);
    world.shutdown(A, a);
    world.run_for(SECOND);
    tell(&mut world, PROTOCOL, &quoted(address(Z, 0), 132, &packet));
    assert_eq!(world.close_reason(A, a), Some(CloseReason::Shutdown));
    assert_eq!(discarded(&world, DiscardReason::IcmpNoAssociation), 1);
}

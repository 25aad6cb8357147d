//! Authenticated chunks between two ends of this stack, and an independent implementation that
//! signs, alters and omits chunks (RFC 4895).

use crate::common;

use anabranch_sctp::{
    Association, AssociationId, AssociationState, AuthHmac, Authentication, ChunkTypes,
    CloseReason, Config, DiscardReason, Event, KeyError, Reconfiguration, SharedKeys,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::{Chunk, kind};
use bytes::Bytes;
use common::signed::Signer;
use common::wrong::{abort, data, discarded, encoded};
use common::*;

/// All chunk types that can be listed.
fn all() -> ChunkTypes {
    ChunkTypes::of(&(0..=255).collect::<Vec<u8>>())
}

fn demanding(types: &[u8]) -> Config {
    Config::default().with(|it| {
        it.authentication = Authentication::On;
        it.authenticated_chunks = Some(ChunkTypes::of(types));
    })
}

fn with_key(config: Config, id: u16, secret: &'static str) -> Config {
    config.with(|it| {
        it.auth_keys = SharedKeys::only(id, secret);
    })
}

struct Rig {
    world: World,
    ids: [AssociationId; 2],
    signer: Signer,
    /// INIT that A has sent.
    init: Bytes,
    /// Verification tags of packets to each host.
    tags: [u32; 2],
}

impl Rig {
    fn new(a: Config, z: Config) -> Self {
        Self::sharing(a, z, b"", 0)
    }

    fn sharing(a: Config, z: Config, secret: &[u8], key_id: u16) -> Self {
        let mut world = World::with_configs(a, z);
        let a = world.connect();
        world.run_for(SECOND);
        let z = world.only_association(Z);
        assert_eq!(
            world.state(A, a),
            AssociationState::Established,
            "{:#?}",
            world.story
        );
        let signer = Signer::of(&world, secret, key_id);
        let tags = [world.tag_sent_by(Z), world.tag_sent_by(A)];
        let init = world.shot(A, "INIT");
        world.forget();
        Self {
            init,
            world,
            ids: [a, z],
            signer,
            tags,
        }
    }

    fn of(&mut self, host: usize) -> &mut Association {
        let id = self.ids[host];
        self.world.endpoints[host]
            .association_mut(id)
            .expect("known")
    }

    /// Delivers a packet with these chunk bytes to `host`, from its peer.
    fn inject(&mut self, host: usize, chunks: &[u8]) {
        let bytes = raw_packet(1 - host, self.tags[host], chunks);
        self.world.inject(host, bytes);
    }

    fn counted(&self, host: usize) -> [u64; 2] {
        [DiscardReason::Unauthenticated, DiscardReason::BadAuth]
            .map(|it| discarded(&self.world, host, it))
    }

    /// Both ends send a long message, which must arrive.
    fn talk(&mut self) {
        for host in [A, Z] {
            let id = self.ids[host];
            self.world.send(host, id, 0, vec![host as u8; 20_000]);
        }
        self.world.run_for(10 * SECOND);
        for host in [A, Z] {
            let read = self.world.receive_all(host, self.ids[host]);
            assert_eq!(read.len(), 1, "{}: {:#?}", name(host), self.world.story);
            assert_eq!(read[0].payload.len(), 20_000);
        }
    }
}

/// Chunk types of a packet.
fn kinds_of(bytes: &Bytes) -> Vec<u8> {
    let packet = anabranch_wire::Packet::parse(bytes, anabranch_wire::Checksum::Ignore);
    let chunks = packet.expect("a packet").chunks();
    chunks.map(|raw| raw.expect("framed").kind).collect()
}

#[test]
fn requested_chunks_are_authenticated_as_an_independent_signer_computes() {
    for (hmac, hmac_id) in [(AuthHmac::Sha256, 3), (AuthHmac::Sha1, 1)] {
        let a = demanding(&[kind::SACK, kind::HEARTBEAT]);
        let z = demanding(&[kind::DATA, kind::COOKIE_ECHO]).with(|it| {
            it.authentication_hmac = hmac;
        });
        let (a, z) = (with_key(a, 9, "between us"), with_key(z, 9, "between us"));
        let mut world = World::with_configs(a, z);
        let id = world.connect();
        world.run_for(SECOND);
        let zid = world.only_association(Z);
        world.send(A, id, 0, vec![1; 9_000]);
        world.run_for(SECOND);
        assert_eq!(world.receive_all(Z, zid).len(), 1);
        let mut signer = Signer::of(&world, b"between us", 9);
        let mut signed = 0;
        for shot in &world.shots {
            let kinds = kinds_of(&shot.bytes);
            // Z requests `hmac_id` from A, and A requests the default from Z: identifier 3,
            // SHA-256.
            signer.hmac_id = if shot.from == A { hmac_id } else { 3 };
            let demanded: &[u8] = if shot.from == A {
                &[kind::DATA, kind::COOKIE_ECHO]
            } else {
                &[kind::SACK, kind::HEARTBEAT]
            };
            let first = kinds.iter().position(|kind| demanded.contains(kind));
            let auth = kinds.iter().position(|&kind| kind == kind::AUTH);
            assert_eq!(
                auth.map(|at| at + 1),
                first,
                "right before it: {}",
                shot.chunks
            );
            if auth.is_some() {
                signed += 1;
                assert!(signer.is_right(&shot.bytes), "{}", shot.chunks);
            }
        }
        assert!(signed > 8, "{signed}");
        assert_eq!(world.story[2], "A -> AUTH, COOKIE ECHO -> Z");
        for host in [A, Z] {
            assert_eq!(world.endpoints[host].discards().total(), 0);
        }
        let association = world.endpoints[A].association(id).expect("known");
        assert!(association.negotiated().authentication);
        assert!(association.negotiated().peer_auth_chunks.has(kind::DATA));
        assert!(association.negotiated().local_auth_chunks.has(kind::SACK));
    }
}

#[test]
fn all_chunks_can_be_demanded_from_the_handshake_to_the_end() {
    let types: Vec<u8> = all().iter().collect();
    let config = demanding(&types).with(|it| {
        it.reconfiguration = true;
        it.partial_reliability = true;
        it.interleaving = true;
    });
    let mut rig = Rig::new(config.clone(), config);
    rig.talk();
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_outgoing([1]))
        .expect("up");
    rig.of(Z)
        .reconfigure(0, &Reconfiguration::add_streams(1, 0))
        .expect("up");
    rig.world.drain(A);
    rig.world.drain(Z);
    rig.world.run_for(70 * SECOND);
    let id = rig.ids[A];
    rig.world.shutdown(A, id);
    rig.world.run_for(SECOND);
    for host in [A, Z] {
        assert_eq!(
            rig.world.close_reason(host, rig.ids[host]),
            Some(CloseReason::Shutdown)
        );
        assert_eq!(
            rig.world.endpoints[host].discards().total(),
            0,
            "{}",
            name(host)
        );
    }
    for shot in &rig.world.shots {
        let free = shot.chunks == "SHUTDOWN COMPLETE";
        assert_eq!(shot.chunks.starts_with("AUTH, "), !free, "{}", shot.chunks);
    }
}

#[test]
fn packets_with_an_auth_keep_the_mtu() {
    for interleaving in [false, true] {
        for mtu in [200, 576, 1_500] {
            let config = demanding(&[kind::DATA, kind::I_DATA]).with(|it| {
                it.interleaving = interleaving;
                it.mtu = mtu;
            });
            let mut world = World::with_configs(config.clone(), config);
            // With the smallest MTU, the cookie does not leave space for the AUTH parameters.
            if mtu > 200 {
                let (a, z) = world.established();
                world.send(A, a, 0, vec![7; 30_000]);
                world.run_for(30 * SECOND);
                assert_eq!(world.receive_all(Z, z).len(), 1);
                let longest = world.shots.iter().map(|shot| shot.bytes.len()).max();
                let longest = longest.expect("packets") + 20;
                assert!(longest <= mtu && longest > mtu - 8, "{longest} of {mtu}");
                assert!(world.shots.iter().all(|shot| !shot.may_fragment));
                let association = world.endpoints[A].association(a).expect("known");
                let header = if interleaving { 20 } else { 16 };
                let most = (mtu - 20) / 4 * 4 - 12 - 40 - header;
                assert_eq!(association.status().fragmentation_point, most);
            }
        }
    }
}

#[test]
fn a_packet_too_small_for_the_cookie_of_auth_goes_without() {
    let small = |authentication| {
        demanding(&[kind::DATA]).with(|it| {
            it.mtu = 260;
            it.authentication = authentication;
        })
    };
    let mut world = World::with_configs(small(Authentication::On), small(Authentication::On));
    let (a, _) = world.established();
    assert!(
        !world.endpoints[A]
            .association(a)
            .expect("known")
            .negotiated()
            .authentication
    );
    let mut world = World::with_configs(small(Authentication::On), small(Authentication::Required));
    let a = world.connect();
    world.run_for(SECOND);
    let refused = CloseReason::AbortedByPeer { cause: Some(4) };
    assert_eq!(world.close_reason(A, a), Some(refused));
}

#[test]
fn data_that_is_not_requested_keeps_its_buffer_space() {
    let config = demanding(&[kind::RE_CONFIG, kind::HEARTBEAT]).with(|it| {
        it.reconfiguration = true;
    });
    let mut rig = Rig::new(config.clone(), config);
    let id = rig.ids[A];
    assert_eq!(rig.of(A).status().fragmentation_point, 1_480 - 12 - 16);
    rig.world.send(A, id, 0, vec![7; 60_000]);
    rig.of(A)
        .reconfigure(0, &Reconfiguration::reset_outgoing([1]))
        .expect("up");
    rig.world.drain(A);
    rig.world.run_for(5 * SECOND);
    assert_eq!(rig.world.receive_all(Z, rig.ids[Z]).len(), 1);
    let shots = rig.world.shots.iter().filter(|shot| shot.from == A);
    let (with, without): (Vec<_>, Vec<_>) = shots.partition(|shot| shot.chunks.contains("AUTH"));
    assert!(
        with.iter()
            .all(|shot| shot.chunks.contains("AUTH, RE-CONFIG"))
    );
    assert_eq!(with.len(), 1, "{with:?}");
    assert!(without.iter().any(|shot| shot.bytes.len() == 1_480));
    assert!(rig.world.shots.iter().all(|shot| shot.bytes.len() <= 1_480));
}

#[test]
fn a_demanded_chunk_without_an_auth_is_dropped_and_the_others_are_taken() {
    let mut rig = Rig::new(demanding(&[]), demanding(&[kind::DATA]));
    let heartbeat = [4, 0, 0, 8, 0, 1, 0, 4];
    let Chunk::Init(init) = chunks_of(&rig.init).remove(0) else {
        panic!("an INIT")
    };
    let text = encoded(&data(init.initial_tsn.0, b"forged"));
    rig.inject(Z, &[&text[..], &heartbeat].concat());
    assert_eq!(rig.counted(Z), [1, 0]);
    assert_eq!(
        rig.world.take_story().last().expect("answered"),
        "Z -> HEARTBEAT ACK -> A"
    );
    rig.inject(Z, &text);
    assert_eq!(rig.counted(Z), [2, 0]);
    // Chunks before the AUTH are unauthenticated, and chunks after it are authenticated.
    let signed = rig.signer.sign(&text);
    rig.inject(Z, &[&text[..], &signed].concat());
    assert_eq!(rig.counted(Z), [3, 0]);
    let read = rig.world.receive_all(Z, rig.ids[Z]);
    assert_eq!(read.len(), 1, "the one behind it");
    assert_eq!(rig.of(Z).state(), AssociationState::Established);
}

#[test]
fn chunks_after_a_wrong_auth_are_dropped_and_those_before_it_are_processed() {
    let heartbeat = [4, 0, 0, 8, 0, 1, 0, 4];
    let other = [4, 0, 0, 12, 0, 1, 0, 8, 1, 2, 3, 4];
    let mut rig = Rig::new(demanding(&[]), demanding(&[kind::DATA]));
    let signed = rig.signer.sign(&heartbeat);
    let answers = |rig: &mut Rig| {
        let story = rig.world.take_story();
        story
            .iter()
            .filter(|it| it.starts_with("Z -> HEARTBEAT ACK"))
            .count()
    };
    rig.inject(Z, &signed);
    assert_eq!((answers(&mut rig), rig.counted(Z)), (1, [0, 0]));
    for at in 0..signed.len() {
        if matches!(at, 0 | 1 | 2 | 3 | 6 | 7) || (40..44).contains(&at) {
            continue; // headers, and the algorithm
        }
        let mut altered = signed.clone();
        altered[at] ^= 0x40;
        rig.inject(Z, &[&other[..], &altered].concat());
        assert_eq!(
            answers(&mut rig),
            1,
            "byte {at}: what is before it is answered"
        );
    }
    let wrong = rig.counted(Z)[1];
    assert!(wrong > 30, "{wrong}");
    // A second AUTH is refused, even if it is valid.
    let twice = rig.signer.sign(&rig.signer.sign(&heartbeat));
    rig.inject(Z, &twice);
    assert_eq!((answers(&mut rig), rig.counted(Z)), (0, [0, wrong + 1]));
    // AUTH with an unknown key.
    let mut stranger = rig.signer.clone();
    stranger.key_id = 1;
    let signed = stranger.sign(&heartbeat);
    rig.inject(Z, &signed);
    assert_eq!((answers(&mut rig), rig.counted(Z)), (0, [0, wrong + 2]));
    // The HMAC also covers bytes after the last chunk.
    let mut signed = rig.signer.sign(&[&heartbeat[..], &other].concat());
    signed.truncate(signed.len() - other.len());
    rig.inject(Z, &signed);
    assert_eq!((answers(&mut rig), rig.counted(Z)), (0, [0, wrong + 3]));
}

#[test]
fn an_algorithm_that_was_not_offered_is_reported() {
    let z = demanding(&[kind::DATA]).with(|it| {
        it.authentication_hmac = AuthHmac::Sha1;
    });
    let mut rig = Rig::new(demanding(&[]), z);
    for (hmac_id, reported) in [(3, true), (2, true), (0xFFFF, true), (1, false)] {
        rig.signer.hmac_id = hmac_id;
        let signed = rig.signer.sign(&[4, 0, 0, 8, 0, 1, 0, 4]);
        rig.inject(Z, &signed);
        let last = rig.world.shots.last().expect("answered").clone();
        if reported {
            assert_eq!(last.chunks, "ERROR");
            let [high, low] = u16::to_be_bytes(hmac_id);
            assert_eq!(last.bytes[12..22], [9, 0, 0, 10, 1, 5, 0, 6, high, low]);
        } else {
            assert_eq!(last.chunks, "HEARTBEAT ACK");
        }
    }
    rig.world.run_for(SECOND);
    let told = rig.world.told(A);
    assert_eq!(told, vec![Event::PeerError { cause: 0x0105 }; 3]);
}

/// CVE-2020-6831, CVE-2021-3655: an AUTH that is too short, or whose length field is wrong.
#[test]
fn short_and_overlong_auths_are_dropped() {
    let mut rig = Rig::new(demanding(&[]), demanding(&[kind::DATA]));
    let signed = rig.signer.sign(&[4, 0, 0, 8, 0, 1, 0, 4]);
    let total = |rig: &Rig| rig.world.endpoints[Z].discards().total();
    for length in 0..=255_u8 {
        if length == signed[3] {
            continue;
        }
        let mut altered = signed.clone();
        altered[3] = length;
        let before = total(&rig);
        rig.inject(Z, &altered);
        assert!(total(&rig) > before, "length {length}");
    }
    for len in 0..signed.len() {
        rig.inject(Z, &signed[..len]);
    }
    assert!(
        !rig.world
            .story
            .iter()
            .any(|it| it.contains("HEARTBEAT ACK"))
    );
    assert_eq!(rig.of(Z).state(), AssociationState::Established);
}

#[test]
fn keys_are_changed_while_messages_go() {
    let config = demanding(&[kind::DATA, kind::SACK]);
    let mut rig = Rig::new(config.clone(), config);
    rig.talk();
    for host in [A, Z] {
        rig.of(host)
            .change_auth_keys(|keys| keys.set(5, "five"))
            .expect("room");
    }
    rig.talk();
    assert_eq!(
        rig.told_keys(),
        [const { Vec::<u16>::new() }; 2],
        "nobody uses it yet"
    );
    rig.of(A)
        .change_auth_keys(|keys| keys.activate(5))
        .expect("there");
    rig.talk();
    assert_eq!(rig.told_keys(), [vec![], vec![5]]);
    rig.of(Z)
        .change_auth_keys(|keys| keys.activate(5))
        .expect("there");
    rig.talk();
    assert_eq!(rig.told_keys(), [vec![5], vec![5]]);
    for host in [A, Z] {
        let delete = |rig: &mut Rig, id| rig.of(host).change_auth_keys(|keys| keys.delete(id));
        assert_eq!(delete(&mut rig, 5), Err(KeyError::Active(5)));
        assert_eq!(delete(&mut rig, 0), Ok(()));
    }
    rig.talk();
    let old = rig.signer.sign(&encoded(&data(1, b"old key")));
    rig.inject(Z, &old);
    assert_eq!(rig.counted(Z), [0, 1], "the null key is gone");
    assert_eq!(rig.counted(A), [0, 0]);
    assert_eq!(rig.of(A).auth_keys().expect("offered").active(), 5);
}

impl Rig {
    /// Keys that [`Event::PeerAuthKey`] has reported at each end.
    fn told_keys(&self) -> [Vec<u16>; 2] {
        [A, Z].map(|host| {
            let told = self.world.told(host).into_iter();
            told.filter_map(|it| match it {
                Event::PeerAuthKey { key_id } => Some(key_id),
                _ => None,
            })
            .collect()
        })
    }
}

#[test]
fn a_key_is_activated_before_the_peer_has_it_and_nothing_is_lost() {
    let config = demanding(&[kind::DATA, kind::SACK]);
    let mut rig = Rig::new(config.clone(), config);
    rig.of(A)
        .change_auth_keys(|keys| keys.set(1, "one").and_then(|()| keys.activate(1)))
        .expect("room");
    let id = rig.ids[A];
    rig.world.send(A, id, 0, "early");
    rig.world.run_for(500 * MILLISECOND);
    assert!(rig.counted(Z)[1] > 0);
    rig.of(Z)
        .change_auth_keys(|keys| keys.set(1, "one"))
        .expect("room");
    rig.world.run_for(5 * SECOND);
    assert_eq!(rig.world.receive_all(Z, rig.ids[Z]).len(), 1, "sent again");
}

#[test]
fn where_one_end_does_not_speak_it_nothing_is_demanded() {
    for (a, z) in [
        (
            demanding(&[kind::DATA, kind::COOKIE_ECHO]),
            Config::default(),
        ),
        (
            Config::default(),
            demanding(&[kind::DATA, kind::COOKIE_ECHO]),
        ),
    ] {
        let mut rig = Rig::new(a, z);
        rig.talk();
        for host in [A, Z] {
            assert!(!rig.of(host).negotiated().authentication);
            assert!(rig.of(host).negotiated().local_auth_chunks.is_empty());
            assert_eq!(rig.counted(host), [0, 0]);
        }
        assert!(
            rig.world
                .shots
                .iter()
                .all(|shot| !shot.chunks.contains("AUTH"))
        );
    }
    let mut rig = Rig::new(Config::default(), Config::default());
    assert_eq!(
        rig.of(A).change_auth_keys(|keys| keys.set(1, "one")),
        Err(KeyError::NotNegotiated)
    );
}

#[test]
fn an_end_that_requires_it_refuses_peers_without() {
    let required = demanding(&[kind::DATA]).with(|it| {
        it.authentication = Authentication::Required;
    });
    for (a, z, reason) in [
        (
            Config::default(),
            required.clone(),
            CloseReason::AbortedByPeer { cause: Some(2) },
        ),
        (
            required.clone(),
            Config::default(),
            CloseReason::PeerViolation(anabranch_sctp::Violation::NoAuth),
        ),
    ] {
        let mut world = World::with_configs(a, z);
        let a = world.connect();
        world.run_for(SECOND);
        assert_eq!(world.close_reason(A, a), Some(reason));
        assert_eq!(world.endpoints[Z].associations().count(), 0);
    }
    Rig::new(required.clone(), required).talk();
}

#[test]
fn a_blind_abort_means_nothing_where_aborts_are_demanded() {
    let mut rig = Rig::new(demanding(&[kind::ABORT]), demanding(&[kind::ABORT]));
    for reflected in [false, true] {
        let bytes = encoded(&abort(reflected));
        rig.inject(Z, &bytes);
        let tag = rig.tags[1 - Z];
        let reflecting = raw_packet(A, tag, &bytes);
        rig.world.inject(Z, reflecting);
    }
    assert_eq!(rig.of(Z).state(), AssociationState::Established);
    assert_eq!(rig.counted(Z)[0], 2);
    let now = rig.world.now;
    rig.of(A)
        .abort(now, Bytes::from_static(b"enough"))
        .expect("up");
    rig.world.drain(A);
    rig.world.run_for(SECOND);
    assert_eq!(
        rig.world.story.last().expect("sent"),
        "A -> AUTH, ABORT -> Z"
    );
    assert_eq!(
        rig.world.close_reason(Z, rig.ids[Z]),
        Some(CloseReason::AbortedByPeer { cause: Some(12) })
    );
}

#[test]
fn a_packet_out_of_the_blue_is_judged_without_its_auth() {
    let mut rig = Rig::new(demanding(&[]), demanding(&[]));
    let path = anabranch_transport::Path::new(address(Z, 0), [10, 0, 0, 77].into());
    let answered = |rig: &mut Rig, chunks: &[u8]| {
        let signed = rig.signer.sign(chunks);
        rig.world.inject_from(Z, path, raw_packet(A, 99, &signed));
        rig.world.take_story().pop().expect("a packet")
    };
    assert_eq!(
        answered(&mut rig, &[3, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        "Z -> ABORT -> A"
    );
    assert_eq!(
        answered(&mut rig, &[8, 0, 0, 4]),
        "Z -> SHUTDOWN COMPLETE -> A"
    );
    assert_eq!(answered(&mut rig, &[6, 0, 0, 4]), "? -> AUTH, ABORT -> Z");
    // Like the ABORT before, a COOKIE ACK is not answered, so the last packet is the injected one.
    assert_eq!(
        answered(&mut rig, &[11, 0, 0, 4]),
        "? -> AUTH, COOKIE ACK -> Z"
    );
}

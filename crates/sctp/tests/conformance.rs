//! Clauses of RFC 9260 and RFC 7829 that no other test covers, one test for each clause.
//! `docs/CONFORMANCE.md` lists all clauses with their tests.

use crate::common;

use anabranch_sctp::{AssociationId, AssociationState, Config, Endpoint, Event, PathId, PathState};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Nanos, Path};
use anabranch_wire::chunk::Chunk;
use common::*;
use std::net::IpAddr;

fn homes(host: usize, config: &Config) -> Config {
    config
        .clone()
        .with(|it| it.addresses = vec![address(host, 0), address(host, 1)])
}

fn two_homes(config: &Config) -> World {
    World::with_configs(homes(A, config), homes(Z, config))
}

fn network(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(address) => address.octets()[2],
        IpAddr::V6(_) => 1,
    }
}

/// Drops all packets over the network `dead`.
fn dies(dead: u8) -> Box<dyn FnMut(&Shot) -> Fate> {
    Box::new(move |shot| {
        if network(shot.path.remote) == dead {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    })
}

/// Networks over which `from` has sent packets with this chunk.
fn networks_of(world: &World, from: usize, chunk: &str) -> Vec<u8> {
    let has = |shot: &&Shot| shot.from == from && shot.chunks.split(", ").any(|it| it == chunk);
    let network_of = |shot: &Shot| network(shot.path.remote);
    world.shots.iter().filter(has).map(network_of).collect()
}

/// A connects to both addresses of Z.
fn both_up(world: &mut World) -> (AssociationId, AssociationId) {
    let remote = [address(Z, 0), address(Z, 1)];
    let now = world.now;
    let a = world.endpoints[A].connect(now, &remote, PORT_Z).unwrap();
    world.drain(A);
    world.run_for(5 * SECOND);
    let z = world.only_association(Z);
    assert_eq!(world.state(A, a), AssociationState::Established);
    world.forget();
    (a, z)
}

fn path_of(world: &World, host: usize, id: AssociationId, path: u8) -> (PathState, u32) {
    let association = world.endpoints[host].association(id).expect("known");
    let entry = association.paths().get(PathId(path));
    (entry.state(), entry.error_count())
}

/// RFC 9260 §8.5.1 A: a packet with tag 0 that is not an INIT is silently discarded, even if it is
/// out of the blue.
#[test]
fn tag_zero_draws_no_answer() {
    let mut world = World::new(Config::default());
    for chunks in [
        &[0, 3, 0, 17, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0][..],
        &[8, 0, 0, 4],
        &[0x40, 0, 0, 4],
    ] {
        world.inject(Z, raw_packet(A, 0, chunks));
    }
    let answers =
        networks_of(&world, Z, "ABORT").len() + networks_of(&world, Z, "SHUTDOWN COMPLETE").len();
    assert_eq!(answers, 0, "{:#?}", world.story);
    assert_eq!(
        world.endpoints[Z]
            .discards()
            .of(anabranch_sctp::DiscardReason::ZeroTag),
        3
    );
}

/// RFC 9260 §5.4: after an INIT ACK from an unknown address, no COOKIE ECHO without a HEARTBEAT is
/// sent to that address.
#[test]
fn a_cookie_echo_goes_to_no_unconfirmed_address() {
    let mut world = two_homes(&Config::default());
    world.fate = lose("INIT ACK", 1);
    let a = world.connect();
    world.run_for(100 * MILLISECOND);
    let ack = world.shot(Z, "INIT ACK");
    world.inject_from(A, Path::new(address(A, 0), address(Z, 1)), ack);
    assert_eq!(
        networks_of(&world, A, "COOKIE ECHO"),
        [0],
        "{:#?}",
        world.story
    );
    world.run_for(SECOND);
    assert_eq!(world.state(A, a), AssociationState::Established);
}

/// RFC 9260 §5.1: until the COOKIE ACK arrives, only the COOKIE ECHO and HEARTBEAT ACKs (§8.3) are
/// sent.
#[test]
fn a_cookie_echo_is_followed_by_no_other_packet() {
    let (mut world, tag) = in_state(AssociationState::CookieEchoed);
    world.narrate = true;
    world.forget();
    let unknown = raw_packet(Z, tag, &[0xC0, 0, 0, 8, 1, 2, 3, 4]);
    world.inject(A, unknown);
    assert_eq!(
        networks_of(&world, A, "ERROR").len(),
        0,
        "{:#?}",
        world.story
    );
}

/// RFC 9260 §5.2.1: in COOKIE-WAIT the INIT ACK is sent only to an address to which the user
/// connected, even if the INIT came from another address of the peer.
#[test]
fn an_init_ack_in_cookie_wait_goes_only_where_the_user_called() {
    let mut world = two_homes(&Config::default());
    world.fate = lose("INIT", 99);
    world.connect();
    let now = world.now;
    let back = world.endpoints[Z].connect(now, &[address(A, 0)], PORT_A);
    assert!(back.is_ok());
    world.drain(Z);
    let init = world.shot(Z, "INIT");
    world.inject_from(A, Path::new(address(A, 0), address(Z, 1)), init);
    assert_eq!(
        networks_of(&world, A, "INIT ACK"),
        [0],
        "{:#?}",
        world.story
    );
    let own = |shot: &Shot| match chunks_of(&shot.bytes).remove(0) {
        Chunk::Init(init) => Some(init.initiate_tag),
        Chunk::InitAck(ack) => Some(ack.initiate_tag),
        _ => None,
    };
    let tags: Vec<_> = world
        .shots
        .iter()
        .filter(|shot| shot.from == A)
        .map(own)
        .collect();
    assert_eq!(tags.len(), 2);
    assert_eq!(tags[0], tags[1], "the same parameters as its INIT");
}

/// RFC 9260 §5.4: an address that never answered stays unverified after it has failed. Only
/// HEARTBEATs are sent there, whatever packets arrive from it and whatever the user requests.
#[test]
fn an_address_that_failed_before_it_was_verified_gets_nothing() {
    let mut world = two_homes(&Config::default());
    world.fate = dies(1);
    let a = world.connect();
    world.run_for(100 * SECOND);
    let z = world.only_association(Z);
    assert_eq!(path_of(&world, Z, z, 1).0, PathState::Inactive);
    world.forget();
    world.fate = Box::new(|shot| match network(shot.path.remote) {
        0 if shot.chunks.contains("DATA") && shot.from == A => Fate::Drop,
        1 => Fate::Drop,
        _ => Fate::Deliver,
    });
    world.send(A, a, 0, "over the other way");
    let stray = world.shot(A, "DATA");
    for _ in 0..3 {
        world.inject_from(Z, Path::new(address(Z, 1), address(A, 1)), stray.clone());
    }
    let tag = header_of(&stray).verification_tag;
    let unknown = raw_packet(A, tag, &[0xC0, 0, 0, 8, 1, 2, 3, 4]);
    world.inject_from(Z, Path::new(address(Z, 1), address(A, 1)), unknown);
    assert!(!networks_of(&world, Z, "SACK").is_empty());
    assert!(
        !networks_of(&world, Z, "SACK").contains(&1),
        "{:#?}",
        world.story
    );
    assert_eq!(networks_of(&world, Z, "ERROR"), [0], "{:#?}", world.story);
    // Even as the primary path, the unverified path carries no data; data uses the verified path.
    let now = world.now;
    let association = world.endpoints[Z].association_mut(z).unwrap();
    assert!(association.set_primary(now, address(A, 1)));
    world.send(Z, z, 0, "to the primary");
    assert_eq!(networks_of(&world, Z, "DATA"), [0], "{:#?}", world.story);
}

/// RFC 9260 §5.4, §6.4: an unverified primary does not delay data while another path is verified.
#[test]
fn an_unverified_primary_does_not_stall_data() {
    let mut world = two_homes(&Config::default());
    world.fate = dies(1);
    world.connect();
    world.run_for(SECOND);
    let z = world.only_association(Z);
    assert_eq!(path_of(&world, Z, z, 1).0, PathState::Unconfirmed);
    let now = world.now;
    let association = world.endpoints[Z].association_mut(z).unwrap();
    assert!(association.set_primary(now, address(A, 1)));
    world.forget();
    world.send(Z, z, 0, "now");
    assert_eq!(networks_of(&world, Z, "DATA"), [0], "{:#?}", world.story);
}

/// RFC 9260 §8.3: the error counter of an inactive path does not increase further.
#[test]
fn an_inactive_path_counts_no_more_errors() {
    let mut world = two_homes(&Config::default());
    let (a, _) = both_up(&mut world);
    world.fate = dies(1);
    world.run_for(2_000 * SECOND);
    assert_eq!(path_of(&world, A, a, 1), (PathState::Inactive, 6));
    assert!(
        networks_of(&world, A, "HEARTBEAT")
            .iter()
            .filter(|&&it| it == 1)
            .count()
            > 15
    );
}

fn potentially_failed() -> Config {
    let mut config = Config::default();
    config.profile.potentially_failed = true;
    config
}

/// RFC 7829 §3.2 (5): if path heartbeats are off, a potentially failed path is not probed, either.
#[test]
fn a_potentially_failed_path_gets_no_heartbeat_where_they_are_off() {
    let mut world = two_homes(&potentially_failed().with(|it| it.heartbeat_interval = None));
    let (a, _) = both_up(&mut world);
    world.fate = dies(0);
    world.send(A, a, 0, "lost on its way");
    world.run_for(10 * SECOND);
    assert_eq!(path_of(&world, A, a, 0), (PathState::PotentiallyFailed, 1));
    assert_eq!(
        networks_of(&world, A, "HEARTBEAT"),
        [0; 0],
        "{:#?}",
        world.story
    );
}

/// RFC 7829 §3.2 (10), with the profile switch `answer_after_timeout_clears_errors`: data was sent
/// to one address only. If it is acknowledged after a spurious timeout, the path is active again.
#[test]
fn an_answer_after_a_spurious_timeout_makes_the_path_active() {
    let mut config = potentially_failed();
    config.profile.answer_after_timeout_clears_errors = true;
    let mut world = two_homes(&config);
    let (a, _) = both_up(&mut world);
    for _ in 0..40 {
        world.send(A, a, 0, vec![7; 1_400]);
    }
    world.run_for(400 * MILLISECOND);
    world.forget();
    // More data than the initial cwnd of the other path permits.
    let mut sacks = 0;
    world.fate = Box::new(move |shot| match shot.from {
        Z if shot.chunks == "SACK" => {
            sacks += 1;
            if sacks == 3 {
                Fate::Late(1_200 * MILLISECOND)
            } else {
                Fate::Drop
            }
        }
        Z => Fate::Drop,
        _ => Fate::Deliver,
    });
    for _ in 0..12 {
        world.send(A, a, 0, vec![7; 1_400]);
        world.run_for(MILLISECOND);
    }
    let changes = |world: &World| -> Vec<(u8, PathState)> {
        let of = |event| match event {
            Event::PathChanged { path, state, .. } => Some((path.0, state)),
            _ => None,
        };
        world.told(A).into_iter().filter_map(of).collect()
    };
    world.run_for(1_140 * MILLISECOND);
    assert_eq!(
        changes(&world),
        [(0, PathState::PotentiallyFailed)],
        "{:#?}",
        world.story
    );
    world.run_for(150 * MILLISECOND);
    assert_eq!(
        changes(&world),
        [(0, PathState::PotentiallyFailed), (0, PathState::Active)],
        "{:#?}",
        world.story
    );
}

/// RFC 7829 §4.1 (3): while all paths are inactive, data uses the path with the fewest errors.
#[test]
fn a_dormant_association_sends_to_the_path_with_the_fewest_errors() {
    let mut world = two_homes(&potentially_failed().with(|it| {
        it.path_max_retrans = 1;
        it.association_max_retrans = 40;
        it.rto_max = 2 * SECOND;
    }));
    let (a, _) = both_up(&mut world);
    world.fate = dies(0);
    world.run_for(200 * SECOND);
    assert_eq!(path_of(&world, A, a, 0).0, PathState::Inactive);
    world.fate = Box::new(|_| Fate::Drop);
    world.run_for(60 * SECOND);
    let errors = [0, 1].map(|path| path_of(&world, A, a, path));
    assert_eq!(
        errors.map(|it| it.0),
        [PathState::Inactive; 2],
        "{errors:?}"
    );
    assert!(errors[0].1 > errors[1].1, "{errors:?}");
    world.forget();
    world.send(A, a, 0, "to the one that failed last");
    assert_eq!(networks_of(&world, A, "DATA"), [1], "{:#?}", world.story);
}

/// RFC 7829 §5 (1): the primary path is not replaced before it has failed, and a smaller PSMR is
/// rejected.
#[test]
fn a_primary_is_not_abandoned_before_it_fails() {
    let config = |most| Config::default().with(|it| it.primary_switchover_max_retrans = Some(most));
    let refused = Endpoint::new(config(4), 1, [1; 32]).err();
    let field = "primary_switchover_max_retrans";
    assert_eq!(refused.map(|error| error.field), Some(field));
    let mut world = two_homes(&config(5));
    let (a, _) = both_up(&mut world);
    world.fate = dies(0);
    world.send(A, a, 0, "lost on its way");
    world.run_for(2 * SECOND);
    assert_eq!(path_of(&world, A, a, 0), (PathState::Active, 1));
    let association = world.endpoints[A].association(a).unwrap();
    assert_eq!(association.paths().primary(), PathId(0));
}

/// RFC 9260 §6.2: no SACK is delayed by more than 500 ms, and a longer setting is rejected.
#[test]
fn a_sack_waits_half_a_second_at_most() {
    let config = |delay| Config::default().with(|it| it.sack_delay = delay);
    let refused = Endpoint::new(config(501 * MILLISECOND), 1, [1; 32]).err();
    assert_eq!(refused.map(|error| error.field), Some("sack_delay"));
    let mut world = World::new(config(500 * MILLISECOND));
    let (a, _) = world.established();
    world.send(A, a, 0, "the first is answered at once");
    world.run_for(SECOND);
    world.forget();
    let sent = world.now;
    world.send(A, a, 0, "and this one after a while");
    world.run_for(600 * MILLISECOND);
    let sack = world.shots.iter().find(|shot| shot.chunks == "SACK");
    assert_eq!(sack.map(|shot| shot.at - sent), Some(510 * MILLISECOND));
}

/// RFC 9260 §9.2: in SHUTDOWN-SENT any packet of the peer shows that it is alive, so the
/// retransmission count restarts. T2-shutdown itself is not restarted here, because the profile
/// switch `t2_restarts_with_data_only` is on and the peer sends only HEARTBEATs.
#[test]
fn a_peer_that_still_sends_is_not_abandoned_in_shutdown_sent() {
    let impatient = Config::default().with(|it| {
        it.association_max_retrans = 3;
        it.path_max_retrans = 3;
        it.rto_max = 10 * SECOND;
        it.heartbeat_interval = None;
        it.profile.t2_restarts_with_data_only = true;
    });
    let lively = Config::default().with(|it| it.heartbeat_interval = Some(SECOND));
    let mut world = World::with_configs(impatient, lively);
    let (a, _) = world.established();
    world.fate = Box::new(|shot| {
        if shot.from == A && shot.chunks.contains("SHUTDOWN") {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    world.shutdown(A, a);
    // T2-shutdown expires after 1, 3, 7, 15, 25 and 35 s.
    world.run_for(40 * SECOND);
    assert_eq!(world.state(A, a), AssociationState::ShutdownSent);
    assert_eq!(networks_of(&world, A, "SHUTDOWN").len(), 7);
}

/// RFC 9260 §6.1 A: a closed window is probed after one RTO and then at increasing intervals, and
/// cwnd is not reduced.
#[test]
fn a_closed_window_is_probed_after_one_rto_and_costs_no_cwnd() {
    let mut world = World::new(Config::default().with(|it| it.receive_buffer = 6_000));
    let (a, z) = world.established();
    for _ in 0..8 {
        world.send(A, a, 0, vec![7; 1_000]);
    }
    // Z does not read, so its window closes. The remaining data of A is queued.
    let cwnd = |world: &World| {
        world.endpoints[A]
            .association(a)
            .unwrap()
            .paths()
            .get(PathId(0))
            .cwnd()
    };
    world.run_for(300 * MILLISECOND);
    let closed = world
        .shots
        .iter()
        .rev()
        .find(|shot| shot.chunks == "SACK")
        .expect("answered")
        .at;
    let before = cwnd(&world);
    world.forget();
    world.run_for(40 * SECOND);
    let probes: Vec<Nanos> = world
        .shots
        .iter()
        .filter(|shot| shot.from == A && shot.chunks == "DATA")
        .map(|shot| (shot.at - closed) / MILLISECOND)
        .collect();
    assert_eq!(
        probes,
        [1_010, 2_010, 4_010, 8_010, 16_010, 32_010],
        "{:#?}",
        world.story
    );
    assert_eq!(cwnd(&world), before);
    assert_eq!(path_of(&world, A, a, 0), (PathState::Active, 0));
    assert_eq!(world.receive_all(Z, z).len(), 6);
    world.run_for(SECOND);
    assert_eq!(world.receive_all(Z, z).len(), 2);
}

/// Every test that `docs/CONFORMANCE.md` names in its last column must exist. Names in backticks
/// that look like test names are checked.
#[test]
fn every_test_of_the_table_exists() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut sources = String::new();
    let mut folders: Vec<std::path::PathBuf> = [
        "sctp",
        "dtls",
        "tcp",
        "wire",
        "congestion",
        "net",
        "datachannel",
    ]
    .iter()
    .map(|name| format!("{root}/crates/{name}").into())
    .collect();
    folders.push(format!("{root}/interop/tests").into());
    folders.push(format!("{root}/capi/tests").into());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                sources += &std::fs::read_to_string(&path).expect("readable");
            }
        }
    }
    let table = std::fs::read_to_string(format!("{root}/docs/CONFORMANCE.md")).expect("the table");
    let switches: Vec<&str> = anabranch_sctp::Profile::SWITCHES
        .iter()
        .map(|it| it.name)
        .collect();
    let mut named = 0;
    for row in table
        .lines()
        .filter(|line| line.starts_with("| ") && !line.contains("---"))
    {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        assert_eq!(cells.len(), 4, "{row}");
        for name in cells[3].split('`').skip(1).step_by(2) {
            let exists = sources.contains(&format!("fn {name}(")) || switches.contains(&name);
            assert!(exists, "`{name}` in: {row}");
            named += 1;
        }
    }
    assert!(named > 150, "{named}");
}

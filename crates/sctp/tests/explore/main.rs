//! Exhaustive exploration of the real code: two endpoints, their users, and a network that may
//! deliver any packet ever sent, at any time and repeatedly. From an initial state, every sequence
//! of steps up to a depth is executed. Worlds with the same digest are examined once.
//!
//! In each world the network then becomes reliable. After that, no end may wait forever. Either
//! both ends must be established and exchange data, or both must have reported that the association
//! is closed. Data that was acknowledged before a graceful close must have been delivered once. No
//! old packet may end an association on which both ends agree. Failures are printed step by step.
//!
//! `MORE=2 cargo test --release -p anabranch-sctp --test explore -- --nocapture` explores two more
//! steps in all scenarios.

mod digest;
#[path = "../common/moves.rs"]
mod moves;
mod search;
mod verdict;
mod world;

use anabranch_sctp::{AssociationState, Config};
use anabranch_transport::time::SECOND;

use search::{Budget, Scenario};
use world::{A, Step, World, Z};

/// Settings with short timeouts, for short traces, and with immediate SACKs, for fewer timers.
fn config() -> Config {
    Config::default().with(|it| {
        it.rto_max = 4 * SECOND;
        it.max_init_retransmits = 2;
        it.path_max_retrans = 1;
        it.association_max_retrans = 3;
        it.delayed_sack = false;
        it.heartbeat_interval = None;
    })
}

/// Initial steps after which A has connected to Z, and both are established.
const UP: &[Option<Step>] = &[Some(Step::Connect(A)), None];

fn explore(scenario: &Scenario) {
    let worlds = scenario.explore().unwrap_or_else(|story| panic!("{story}"));
    assert!(worlds >= scenario.at_least, "{worlds} worlds");
}

/// Both users may connect, close and abort in any order, and may connect at the same time.
#[test]
fn handshake_and_collision() {
    explore(&Scenario {
        name: "handshake",
        config: config(),
        begin: &[],
        budget: Budget {
            connect: [1, 1],
            shutdown: [1, 1],
            abort: [1, 1],
            timer: 1,
            ..Budget::default()
        },
        depth: 7,
        at_least: 1_000,
    });
}

/// A connects and aborts, then Z connects. Packets of the first attempt arrive during the second.
#[test]
fn late_packets_of_a_former_attempt() {
    explore(&Scenario {
        name: "late packets",
        config: config(),
        begin: &[],
        budget: Budget {
            connect: [1, 1],
            abort: [1, 0],
            ..Budget::default()
        },
        depth: 10,
        at_least: 1_000,
    });
}

/// One end or both lose their state, and either end then connects again.
#[test]
fn restart() {
    explore(&Scenario {
        name: "restart",
        config: config(),
        begin: UP,
        budget: Budget {
            connect: [1, 1],
            crash: [1, 1],
            send: [1, 0],
            timer: 1,
            ..Budget::default()
        },
        depth: 7,
        at_least: 1_000,
    });
}

/// Both users send and close, or abort, while packets are lost and duplicated.
#[test]
fn shutdown() {
    explore(&Scenario {
        name: "shutdown",
        config: config(),
        begin: UP,
        budget: Budget {
            send: [1, 1],
            shutdown: [1, 1],
            abort: [1, 1],
            timer: 2,
            ..Budget::default()
        },
        depth: 6,
        at_least: 1_000,
    });
}

/// Two paths, the first of which fails and recovers.
#[test]
fn failover() {
    explore(&Scenario {
        name: "failover",
        config: config().with(|it| it.heartbeat_interval = Some(5 * SECOND)),
        begin: UP,
        budget: Budget {
            send: [2, 1],
            shutdown: [1, 0],
            cut: 2,
            timer: 4,
            ..Budget::default()
        },
        depth: 5,
        at_least: 500,
    });
}

/// Worlds that differ only in random numbers and times must have the same digest. Worlds with any
/// other difference must have different digests.
#[test]
fn a_digest_knows_what_matters() {
    let of = |steps: &[Step]| {
        let mut world = World::new(&config());
        steps.iter().for_each(|&step| world.take(step));
        world
    };
    let up = [
        Step::Connect(A),
        Step::Deliver(0),
        Step::Deliver(1),
        Step::Deliver(2),
        Step::Deliver(3),
    ];
    let one = of(&up);
    assert_eq!(one.state(Z), Some(AssociationState::Established));
    assert_eq!(one.state(A), Some(AssociationState::Established));
    // The same association in another incarnation of both ends, with other tags, TSNs and cookies.
    let other = {
        let mut world = of(&[Step::Connect(A), Step::Crash(A), Step::Crash(Z)]);
        world.seen.clear();
        world.lives.clear();
        up.iter().for_each(|&step| world.take(step));
        world
    };
    assert_eq!(digest::text(&one), digest::text(&other));
    assert_eq!(digest::digest(&one, &[]), digest::digest(&other, &[]));
    let mut digests: Vec<_> = (0..=up.len())
        .map(|len| digest::digest(&of(&up[..len]), &[]))
        .collect();
    digests.push(digest::digest(
        &of(&[&up[..], &[Step::Send(A)]].concat()),
        &[],
    ));
    digests.push(digest::digest(
        &of(&[&up[..], &[Step::Shutdown(A)]].concat()),
        &[],
    ));
    digests.push(digest::digest(
        &of(&[&up[..3], &[Step::Timer]].concat()),
        &[],
    ));
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), up.len() + 4);
}

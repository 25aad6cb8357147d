//! Random scenarios of shutdowns. Two ends send their last messages, and one or both close, while
//! packets are lost, duplicated and late. Some packets arrive only after their association is
//! closed. None of them may turn a graceful shutdown into an abort (RFC 9260 §8.4, §9.2).

use crate::common;

use anabranch_sctp::{AssociationId, CloseReason, Config, Event};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Nanos, Transport};
use common::*;
use rand_core::{RngCore, SeedableRng};

type Random = rand_pcg::Pcg64Mcg;

fn below(random: &mut Random, most: u32) -> u32 {
    random.next_u32() % most
}

struct Scenario {
    world: World,
    random: Random,
    ids: [AssociationId; 2],
    sent: [u32; 2],
    heard: [u32; 2],
    reasons: [Option<CloseReason>; 2],
    /// Whether the driver releases closed associations immediately.
    releases: bool,
}

impl Scenario {
    fn new(seed: u64) -> Self {
        let mut random = Random::seed_from_u64(seed);
        let config = Config::default().with(|it| {
            it.rto_min = 100 * MILLISECOND;
            it.association_max_retrans = 12;
            it.path_max_retrans = 12;
            it.heartbeat_interval = (below(&mut random, 2) == 0).then_some(20 * MILLISECOND);
            // Otherwise frequent HEARTBEATs would restart T2-shutdown, and a lost SHUTDOWN would
            // never be repeated.
            it.profile.t2_restarts_with_data_only = it.heartbeat_interval.is_some();
        });
        let mut world = World::new(config);
        world.narrate = false;
        world.delay = u64::from(1 + below(&mut random, 30)) * MILLISECOND;
        let (a, z) = world.established();
        let releases = below(&mut random, 2) == 0;
        Self {
            world,
            random,
            ids: [a, z],
            sent: [0; 2],
            heard: [0; 2],
            reasons: [None, None],
            releases,
        }
    }

    fn say(&mut self, host: usize) {
        for _ in 0..below(&mut self.random, 6) {
            let length = 4 + below(&mut self.random, 4_000) as usize;
            let mut text = vec![7; length];
            text[..4].copy_from_slice(&self.sent[host].to_be_bytes());
            self.world.send(host, self.ids[host], 0, text);
            self.sent[host] += 1;
        }
    }

    /// Reads all output of both ends, including the final event.
    fn attend(&mut self) {
        for host in [A, Z] {
            if self.reasons[host].is_some() {
                continue;
            }
            for message in self.world.receive_all(host, self.ids[host]) {
                let text = message.payload.into_bytes();
                let number = u32::from_be_bytes(text[..4].try_into().expect("four"));
                assert_eq!(number, self.heard[host], "at {}", name(host));
                self.heard[host] += 1;
            }
            for (_, event) in std::mem::take(&mut self.world.events[host]) {
                if let Event::Closed(reason) = event {
                    self.reasons[host] = Some(reason);
                }
            }
            if self.releases && self.reasons[host].is_some() {
                assert!(self.world.endpoints[host].release(self.ids[host]));
            }
        }
    }

    fn run_for(&mut self, span: Nanos) {
        let until = self.world.now + span;
        while self.world.step(until) {
            self.attend();
        }
        self.world.run_until(until);
    }

    /// Both ends send messages; then one or both close. `leaves`: the host that closes first is
    /// removed as soon as its association is closed, and then no longer answers.
    fn run(mut self, seed: u64, leaves: bool) -> [Option<CloseReason>; 2] {
        let lossy = [0, 2, 10, 20][below(&mut self.random, 4) as usize];
        self.world.fate = trouble(seed, lossy);
        for host in [A, Z] {
            self.say(host);
        }
        let span = u64::from(below(&mut self.random, 100)) * MILLISECOND;
        self.run_for(span);
        let closes = [A, Z][below(&mut self.random, 2) as usize];
        self.say(1 - closes);
        self.world.shutdown(closes, self.ids[closes]);
        if below(&mut self.random, 4) == 0 {
            let span = u64::from(below(&mut self.random, 50)) * MILLISECOND;
            self.run_for(span);
            if self.reasons[1 - closes].is_none() {
                let now = self.world.now;
                let other = self.world.endpoints[1 - closes].association_mut(self.ids[1 - closes]);
                other.expect("known").shutdown(now, None).expect("open");
                self.world.drain(1 - closes);
            }
        }
        if leaves {
            let until = self.world.now + 600 * SECOND;
            while self.reasons == [None, None] && self.world.step(until) {
                self.attend();
            }
            self.world.fate = Box::new(|_| Fate::Drop);
        }
        self.run_for(900 * SECOND);
        assert_eq!(self.heard, [self.sent[Z], self.sent[A]], "seed {seed}");
        for host in [A, Z] {
            assert_eq!(
                self.world.endpoints[host].poll_timeout(),
                None,
                "seed {seed}"
            );
        }
        self.reasons
    }
}

fn trouble(seed: u64, lossy: u32) -> Box<dyn FnMut(&Shot) -> Fate> {
    let mut dice = Random::seed_from_u64(seed ^ 0x84);
    Box::new(move |_| match below(&mut dice, 100) {
        it if it < lossy => Fate::Drop,
        85..90 => Fate::Duplicate,
        90..100 => Fate::Late(u64::from(below(&mut dice, 120)) * MILLISECOND),
        _ => Fate::Deliver,
    })
}

#[test]
fn both_part_in_peace() {
    let graceful = Some(CloseReason::Shutdown);
    let failed: Vec<_> = seeds::seeds(400)
        .map(|seed| (seed, Scenario::new(seed).run(seed, false)))
        .filter(|(_, reasons)| reasons.iter().any(|it| *it != graceful))
        .collect();
    assert!(failed.is_empty(), "{}: {failed:#?}", failed.len());
}

/// The last packet of the removed host may be lost and cannot be repeated, so the other end times
/// out.
#[test]
fn who_is_left_behind_ends() {
    let mut given_up = 0;
    for seed in seeds::seeds(400) {
        let reasons = Scenario::new(seed).run(seed, true);
        let ended = |reason: &CloseReason| {
            use CloseReason::{PeerUnreachable, Shutdown, ShutdownTimeout};
            matches!(reason, Shutdown | PeerUnreachable | ShutdownTimeout)
        };
        let all = reasons.iter().flatten().filter(|it| ended(it)).count();
        assert_eq!(all, 2, "seed {seed}: {reasons:?}");
        given_up += usize::from(reasons.contains(&Some(CloseReason::PeerUnreachable)));
    }
    println!("{given_up} gave up");
}

//! Search over all worlds that can be reached in a number of steps from an initial state. Each
//! world is examined once.

use std::collections::BTreeMap;

use anabranch_sctp::Config;

use super::digest::digest;
use super::verdict::{Verdict, verdict};
use super::world::{A, Step, World, Z};

/// Maximum number of each event that the users or hosts cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Number of connection attempts of each host.
    pub connect: [u8; 2],
    pub send: [u8; 2],
    pub shutdown: [u8; 2],
    pub abort: [u8; 2],
    pub crash: [u8; 2],
    pub timer: u8,
    pub cut: u8,
}

impl Budget {
    fn of(&mut self, step: Step) -> Option<&mut u8> {
        match step {
            Step::Deliver(_) => None,
            Step::Timer => Some(&mut self.timer),
            Step::Connect(host) => Some(&mut self.connect[host]),
            Step::Send(host) => Some(&mut self.send[host]),
            Step::Shutdown(host) => Some(&mut self.shutdown[host]),
            Step::Abort(host) => Some(&mut self.abort[host]),
            Step::Crash(host) => Some(&mut self.crash[host]),
            Step::Cut => Some(&mut self.cut),
        }
    }

    fn after(mut self, steps: &[Step]) -> Self {
        for &step in steps {
            if let Some(left) = self.of(step) {
                *left -= 1;
            }
        }
        self
    }

    fn bytes(self) -> Vec<u8> {
        let pairs = [
            self.connect,
            self.send,
            self.shutdown,
            self.abort,
            self.crash,
        ];
        let pairs = pairs.as_flattened().iter().copied();
        pairs.chain([self.timer, self.cut]).collect()
    }
}

/// Initial state and depth of a search.
pub struct Scenario {
    pub name: &'static str,
    pub config: Config,
    /// Initial steps: `None` delivers all packets in flight.
    pub begin: &'static [Option<Step>],
    pub budget: Budget,
    pub depth: usize,
    /// Minimum number of reachable worlds. If there are fewer, the search does not work.
    pub at_least: usize,
}

/// World, with the steps by which it was first reached.
struct Node {
    steps: Vec<Step>,
    digest: u64,
    agreed: bool,
}

/// Prints the steps when dropped during a panic of the code under test.
struct Telling<'a>(&'a Scenario, &'a [Step]);

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}: in the last of {:?}", self.0.name, self.1);
        }
    }
}

impl Scenario {
    fn first(&self) -> World {
        let mut world = World::new(&self.config);
        for step in self.begin {
            match step {
                Some(step) => world.take(*step),
                None => {
                    let mut next = 0;
                    while next < world.seen.len() {
                        world.take(Step::Deliver(next as u8));
                        next += 1;
                    }
                }
            }
        }
        world
    }

    fn replay(&self, steps: &[Step]) -> World {
        let mut world = self.first();
        steps.iter().for_each(|&step| world.take(step));
        world
    }

    /// Describes the steps as sentences.
    pub fn story(&self, steps: &[Step]) -> String {
        let mut world = self.first();
        let tell = |&step: &Step| {
            let line = world.tell(step);
            world.take(step);
            format!("{line}: {:?}, {:?}\n", world.state(A), world.state(Z))
        };
        steps.iter().map(tell).collect()
    }

    fn options(&self, world: &World, left: Budget) -> Vec<Step> {
        let users = [
            Step::Timer,
            Step::Cut,
            Step::Connect(A),
            Step::Connect(Z),
            Step::Send(A),
            Step::Send(Z),
            Step::Shutdown(A),
            Step::Shutdown(Z),
            Step::Abort(A),
            Step::Abort(Z),
            Step::Crash(A),
            Step::Crash(Z),
        ];
        let packets = (0..world.seen.len() as u8).map(Step::Deliver);
        let affordable = |step: &Step| {
            let mut left = left;
            left.of(*step).is_none_or(|left| *left > 0)
        };
        let all = packets.chain(users).filter(affordable);
        all.filter(|step| world.allows(*step)).collect()
    }

    /// Examines every reachable world. Returns their number, or the steps to a world that fails.
    pub fn explore(&self) -> Result<usize, String> {
        let more = std::env::var("MORE").ok();
        let more: usize = more.map_or(0, |more| more.parse().expect("MORE=number"));
        let world = self.first();
        let start = Node {
            steps: Vec::new(),
            digest: digest(&world, &self.budget.bytes()),
            agreed: self.judge(world, &[])?,
        };
        let mut known = BTreeMap::from([(start.digest, start.agreed)]);
        let mut level = vec![start];
        let (mut edges, mut deepest) = (0, 0);
        for depth in 1..=self.depth + more {
            let mut next = Vec::new();
            for node in &level {
                edges += self.expand(node, &mut known, &mut next)?;
            }
            println!(
                "{}: depth {depth}, {} worlds, {edges} steps",
                self.name,
                known.len()
            );
            if next.is_empty() {
                break;
            }
            (level, deepest) = (next, depth);
        }
        println!(
            "{}: {} worlds within {deepest} steps",
            self.name,
            known.len()
        );
        Ok(known.len())
    }

    /// Executes every possible step from `node`. Returns the number of new worlds.
    fn expand(
        &self,
        node: &Node,
        known: &mut BTreeMap<u64, bool>,
        next: &mut Vec<Node>,
    ) -> Result<usize, String> {
        let left = self.budget.after(&node.steps);
        let mut world = self.replay(&node.steps);
        let options = self.options(&world, left);
        let mut fresh = true;
        for &step in &options {
            let steps = [&node.steps[..], &[step]].concat();
            let _telling = Telling(self, &steps);
            if !std::mem::replace(&mut fresh, false) {
                world = self.replay(&node.steps);
            }
            world.take(step);
            let digest = digest(&world, &self.budget.after(&steps).bytes());
            if digest == node.digest {
                // The step had no effect, so the next step can start from the same world.
                fresh = true;
                continue;
            }
            let agreed = match known.get(&digest) {
                Some(&agreed) => agreed,
                None => {
                    let done = std::mem::replace(&mut world, World::new(&self.config));
                    let agreed = self.judge(done, &steps)?;
                    known.insert(digest, agreed);
                    next.push(Node {
                        steps: steps.clone(),
                        digest,
                        agreed,
                    });
                    agreed
                }
            };
            if node.agreed && !agreed && self.is_idle_arrival(node, step) {
                return Err(format!(
                    "{}: both ends were up and heard each other, until a packet came that neither had just sent:\n{}",
                    self.name,
                    self.story(&steps)
                ));
            }
        }
        Ok(options.len())
    }

    /// Whether a step must not end an association on which both ends agree: any arrival except an
    /// ABORT that a user requested. A packet of an earlier attempt with the same tag is
    /// indistinguishable from a current one (RFC 9260 §8.5.1 B), and excluded, too.
    fn is_idle_arrival(&self, node: &Node, step: Step) -> bool {
        let Step::Deliver(number) = step else {
            return false;
        };
        !self.replay(&node.steps).seen[usize::from(number)].is_users_abort()
    }

    fn judge(&self, world: World, steps: &[Step]) -> Result<bool, String> {
        let Verdict { agreed, problem } = verdict(world);
        match problem {
            None => Ok(agreed),
            Some(problem) => Err(format!("{}: {problem}:\n{}", self.name, self.story(steps))),
        }
    }
}

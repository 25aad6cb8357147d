//! Routes of a constellation whose world is divided among threads.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::thread::{self, ThreadId};

use anabranch_engine::kinds::Standard;
use anabranch_engine::parallel::Crew;
use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::Memory;
use anabranch_engine::world;
use anabranch_orbit::{Edge, Graph, Tree};
use anabranch_settings::{KindEntry, kind};
use anabranch_sim::routing::RoutingKind;

/// Number of trees that each thread has computed.
static TREES: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

kind! {
    /// Routing by least delay that counts the trees of each thread.
    struct Counted {}
    /// Routes by least delay.
    static COUNTED: KindEntry<Box<dyn RoutingKind>> = "counted", |routing: Counted, ()| Ok(Box::new(routing));
}

impl RoutingKind for Counted {
    fn find(
        &mut self,
        graph: &Graph,
        destination: u32,
        arrives: &dyn Fn(&Edge) -> bool,
        tree: &mut Tree,
    ) {
        let thread: ThreadId = thread::current().id();
        let mut trees = TREES.lock().expect("no panic");
        *trees.entry(format!("{thread:?}")).or_default() += 1;
        drop(trees);
        tree.find(graph, destination, |edge| edge.delay, arrives);
    }
}

/// A crew of new threads.
struct Threads(usize);

impl Crew for Threads {
    fn threads(&self) -> usize {
        self.0
    }

    fn processors(&self) -> usize {
        1
    }

    fn together(
        &self,
        parts: usize,
        others: &(dyn Fn(usize) + Sync),
        first: &mut dyn FnMut(),
    ) -> io::Result<()> {
        thread::scope(|scope| {
            let others = (1..parts).map(|part| scope.spawn(move || others(part)));
            let others: Vec<_> = others.collect();
            first();
            others
                .into_iter()
                .for_each(|it| it.join().expect("no panic"));
        });
        Ok(())
    }
}

const SPEC: &str = r#"
anabranch = 1
name = "divided-routes"
[world]
duration = "3 s"
routing = { kind = "counted", interval = "20 ms" }
[[constellation]]
name = "sky"
shells = ["kuiper-1"]
isl = { rate = "10 Mbit/s", queue = "100 packets" }
up = { rate = "10 Mbit/s", queue = "100 packets" }
down = { rate = "10 Mbit/s", queue = "100 packets" }
[[ground]]
name = "city"
stations = [
    { name = "Paris", at = "48.85,2.35" },
    { name = "Istanbul", at = "41.01,28.98" },
    { name = "Shanghai", at = "31.22,121.46" },
    { name = "Lima", at = "-12.05,-77.04" },
    { name = "Lagos", at = "6.45,3.39" },
    { name = "Sydney", at = "-33.87,151.21" },
]
[[flow]]
name = "pair"
from = "city"
to = "city"
pairs = { random = 3, seed = 1, both = true }
workload = { kind = "cbr", rate = "1 Mbit/s", message = "1000 B" }
transport = { protocol = "tcp" }
[[measure]]
metric = "goodput"
flow = "pair"
"#;

/// The threads of a world compute the trees of an interval together, and the results are those of
/// one thread.
#[test]
fn threads_divide_the_trees_of_an_interval() {
    let request = PlanRequest::new("divided-routes.toml", SPEC.to_owned());
    let kinds = Standard::default().with_routing(&COUNTED);
    let plan = Plan::with(request, &kinds).unwrap_or_else(|error| panic!("{error}"));
    let unit = &PlannedRun::all(&plan)[0];
    let run = |threads: usize| {
        TREES.lock().expect("no panic").clear();
        let crew = Threads(threads);
        let record = world::run_divided(unit, 7, &mut Memory::default(), &crew);
        let trees = std::mem::take(&mut *TREES.lock().expect("no panic"));
        let trees: Vec<usize> = trees.into_values().collect();
        (record.expect("a run"), trees)
    };
    let (record, all) = run(1);
    // Six destinations, and 150 intervals.
    assert!(all.len() == 1 && all[0] >= 6 * 149, "{all:?}");
    for threads in [2, 3] {
        let (same, trees) = run(threads);
        assert_eq!(record, same, "{threads} threads");
        assert_eq!(trees.len(), threads, "{trees:?}");
        // Each thread also computes the first tree of each destination, and the first thread
        // computes those at the moments for which the division estimates loads.
        let (share, more) = (all[0] / threads, 6 * 5);
        for trees in &trees {
            assert!(
                trees.abs_diff(share) <= more,
                "{trees} of {}: {trees:?}",
                all[0]
            );
        }
    }
}

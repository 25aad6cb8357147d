//! Small worlds with as many different events as possible, and digests of these events.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Write};
use std::rc::Rc;

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::Memory;
use anabranch_engine::world::{self, Capture};
use anabranch_scenario::transport::TransportKind;

/// A world of hosts `a` and `b` with one flow.
pub struct World {
    pub name: &'static str,
    duration: &'static str,
    links: &'static str,
    flow: &'static str,
    /// Settings that every transport gets in this world in addition to its own: key and value.
    given: &'static [(&'static str, &'static str)],
}

const SEVERAL: &str = r#"
[[link]]
name = "one"
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "20 ms"
queue = "15 packets"
down = ONE
loss = { model = "bernoulli", probability = 0.01 }
[[link]]
name = "two"
between = ["a", "b"]
rate = "1 Mbit/s"
delay = "45 ms"
queue = "15 packets"
down = TWO
loss = { model = "bernoulli", probability = 0.03 }
[[link]]
name = "three"
between = ["a", "b"]
rate = "500 kbit/s"
delay = "30 ms"
queue = "15 packets"
down = THREE
"#;

pub const WORLDS: &[World] = &[
    World {
        name: "losses, duplicates and packets out of order",
        duration: "40 s",
        links: r#"
[[link]]
name = "one"
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "30 ms"
queue = "12 packets"
loss = { model = "bernoulli", probability = 0.02 }
impairment = { duplicate = 0.01, reorder = 0.03, reorder_delay = "25 ms" }
"#,
        flow: r#"workload = { kind = "bulk", message = "3001 B", total = "800 kB" }"#,
        given: &[],
    },
    World {
        name: "a full queue",
        duration: "12 s",
        links: r#"
[[link]]
name = "one"
between = ["a", "b"]
rate = "5 Mbit/s"
delay = "40 ms"
queue = "10 packets"
"#,
        flow: r#"workload = { kind = "bulk" }
duration = "5 s""#,
        given: &[
            ("receive_buffer", "\"1 MiB\""),
            ("receive_window", "\"1 MiB\""),
        ],
    },
    World {
        name: "marks",
        duration: "4 s",
        links: r#"
[[link]]
name = "one"
between = ["a", "b"]
rate = "4 Mbit/s"
delay = "20 ms"
queue = { kind = "dualpi2" }
"#,
        flow: r#"workload = { kind = "bulk", message = "900 B" }"#,
        given: &[
            ("receive_buffer", "\"256 KiB\""),
            ("receive_window", "\"256 KiB\""),
        ],
    },
    World {
        name: "questions and answers",
        duration: "120 s",
        links: r#"
[[link]]
name = "one"
between = ["a", "b"]
rate = "1 Mbit/s"
delay = "60 ms"
queue = "8 packets"
loss = { model = "gilbert-elliott", to_bad = 0.02, to_good = 0.4 }
"#,
        flow: r#"
[flow.workload]
kind = "request-response"
request = { kind = "lognormal", median = "2 kB", sigma = 1.2 }
response = { kind = "lognormal", median = "5 kB", sigma = 1.3 }
think = "1500 ms"
exponential = true
"#,
        given: &[],
    },
    World {
        name: "small messages between large ones",
        duration: "6 s",
        links: r#"
[[link]]
name = "one"
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "25 ms"
queue = "20 packets"
loss = { model = "bernoulli", probability = 0.01 }
"#,
        flow: r#"workload = { kind = "mixed", small = "90 B", small_every = "15 ms", large = "60 kB", large_every = "400 ms", large_streams = 3 }"#,
        given: &[],
    },
    World {
        name: "a slow reader",
        duration: "25 s",
        links: r#"
[[link]]
name = "one"
between = ["a", "b"]
rate = "4 Mbit/s"
delay = "25 ms"
queue = "30 packets"
loss = { model = "bernoulli", probability = 0.01 }
"#,
        flow: r#"workload = { kind = "bulk", message = "5000 B", total = "700 kB" }"#,
        given: &[
            ("application_read_rate", "\"300 kbit/s\""),
            ("receive_buffer", "\"12000 B\""),
        ],
    },
    World {
        name: "several paths, one of which fails and comes back",
        duration: "900 s",
        links: SEVERAL,
        flow: r#"workload = { kind = "cbr", rate = "60 kbit/s", message = "1200 B", count = 5000 }"#,
        given: &[
            ("multihomed", "true"),
            (
                "ONE",
                r#"[["4 s", "60 s"], ["100 s", "103 s"], ["120 s", "700 s"]]"#,
            ),
            ("TWO", r#"[["20 s", "21 s"], ["125 s", "126 s"]]"#),
            ("THREE", "[]"),
        ],
    },
    World {
        name: "several paths, all of which fail",
        duration: "900 s",
        links: SEVERAL,
        flow: r#"workload = { kind = "cbr", rate = "40 kbit/s", message = "1000 B", count = 2500 }"#,
        given: &[
            ("multihomed", "true"),
            ("association_max_retrans", "60"),
            ("ONE", r#"[["5 s", "200 s"]]"#),
            ("TWO", r#"[["12 s", "150 s"], ["300 s", "900 s"]]"#),
            ("THREE", r#"[["8 s", "250 s"], ["300 s", "600 s"]]"#),
        ],
    },
    World {
        name: "several paths at full load",
        duration: "9 s",
        links: SEVERAL,
        flow: r#"workload = { kind = "bulk", message = "2500 B" }"#,
        given: &[
            ("multihomed", "true"),
            ("ONE", "[]"),
            ("TWO", r#"[["4 s", "5 s"]]"#),
            ("THREE", "[]"),
        ],
    },
    World {
        name: "a path that ends",
        duration: "3000 s",
        links: r#"
[[link]]
name = "one"
between = ["a", "b"]
rate = "1 Mbit/s"
delay = "20 ms"
down = [["6 s", "3000 s"]]
"#,
        flow: r#"workload = { kind = "cbr", rate = "100 kbit/s", message = "700 B", count = 200 }"#,
        given: &[],
    },
    World {
        name: "nobody there",
        duration: "900 s",
        links: r#"
[[link]]
name = "one"
between = ["a", "b"]
rate = "1 Mbit/s"
delay = "20 ms"
down = [["0 s", "900 s"]]
"#,
        flow: r#"workload = { kind = "cbr", rate = "100 kbit/s", message = "700 B", count = 20 }"#,
        given: &[],
    },
    World {
        name: "a path that is away for a while",
        duration: "90 s",
        links: r#"
[[link]]
name = "one"
between = ["a", "b"]
rate = "1 Mbit/s"
delay = "40 ms"
queue = "15 packets"
down = [["2 s", "14 s"], ["30 s", "31 s"]]
loss = { model = "gilbert-elliott", to_bad = 0.01, to_good = 0.3 }
"#,
        flow: r#"workload = { kind = "bulk", message = "1400 B", total = "1500 kB" }"#,
        given: &[],
    },
    World {
        name: "a reader that hardly reads",
        duration: "300 s",
        links: r#"
[[link]]
name = "one"
between = ["a", "b"]
rate = "4 Mbit/s"
delay = "25 ms"
queue = "30 packets"
"#,
        flow: r#"workload = { kind = "bulk", message = "3000 B", total = "150 kB" }"#,
        given: &[
            ("application_read_rate", "\"8 kbit/s\""),
            ("receive_buffer", "\"9000 B\""),
        ],
    },
    World {
        name: "a reader that never reads",
        duration: "1400 s",
        links: r#"
[[link]]
name = "one"
between = ["a", "b"]
rate = "4 Mbit/s"
delay = "25 ms"
"#,
        flow: r#"workload = { kind = "bulk", message = "3000 B", total = "40 kB" }"#,
        given: &[
            ("application_read_rate", "\"1 bit/s\""),
            ("receive_buffer", "\"9000 B\""),
        ],
    },
    World {
        name: "several paths, all of which fail for good",
        duration: "900 s",
        links: SEVERAL,
        flow: r#"workload = { kind = "cbr", rate = "40 kbit/s", message = "1000 B", count = 2500 }"#,
        given: &[
            ("multihomed", "true"),
            ("ONE", r#"[["5 s", "900 s"]]"#),
            ("TWO", r#"[["100 s", "900 s"]]"#),
            ("THREE", r#"[["9 s", "900 s"]]"#),
        ],
    },
    World {
        name: "a beginning that is lost once",
        duration: "30 s",
        links: r#"
[[link]]
name = "one"
between = ["a", "b"]
rate = "1 Mbit/s"
delay = "100 ms"
loss = { forward = { model = "ordinals", packets = [0] }, backward = { model = "none" } }
"#,
        flow: r#"workload = { kind = "bulk", message = "1000 B", total = "60 kB" }"#,
        given: &[],
    },
    World {
        name: "an end with losses",
        duration: "60 s",
        links: r#"
[[link]]
name = "one"
between = ["a", "b"]
rate = "1 Mbit/s"
delay = "20 ms"
loss = { forward = { model = "ordinals", packets = [3, 4, 5] }, backward = { model = "none" } }
"#,
        flow: r#"workload = { kind = "bulk", message = "300 B", total = "300 B" }"#,
        given: &[],
    },
    World {
        name: "a beginning with losses",
        duration: "60 s",
        links: r#"
[[link]]
name = "one"
between = ["a", "b"]
rate = "1 Mbit/s"
delay = "200 ms"
queue = "10 packets"
loss = { forward = { model = "ordinals", packets = [0, 1, 3, 9] }, backward = { model = "ordinals", packets = [0, 3] } }
"#,
        flow: r#"workload = { kind = "bulk", message = "1000 B", total = "90 kB" }"#,
        given: &[],
    },
    World {
        name: "an end whose acknowledgements are lost",
        duration: "20 s",
        links: r#"
[[link]]
name = "one"
between = ["a", "b"]
rate = "3 Mbit/s"
delay = "20 ms"
loss = { forward = { model = "ordinals", packets = [2] }, backward = { model = "none" } }
"#,
        flow: r#"workload = { kind = "bulk", message = "300 B", total = "300 B" }"#,
        given: &[],
    },
    World {
        name: "bursts of small messages, more than pass",
        duration: "40 s",
        links: r#"
[[link]]
name = "one"
between = ["a", "b"]
rate = "300 kbit/s"
delay = "20 ms"
queue = "12 packets"
loss = { model = "bernoulli", probability = 0.05 }
"#,
        flow: r#"workload = { kind = "on-off", rate = "600 kbit/s", message = "200 B", on = "1 s", off = "2 s" }"#,
        given: &[("receive_buffer", "\"256 KiB\"")],
    },
    World {
        name: "delays that jump",
        duration: "60 s",
        links: r#"
[[link]]
name = "one"
between = ["a", "b"]
rate = "1 Mbit/s"
queue = "40 packets"
delay = { kind = "deterministic", delay = { steps = [["0 s", "25 ms"], ["4 s", "1400 ms"], ["6 s", "25 ms"], ["11 s", "900 ms"], ["12 s", "60 ms"]], repeat = "15 s" } }
"#,
        flow: r#"workload = { kind = "bulk", message = "1400 B" }
duration = "22 s""#,
        given: &[],
    },
    World {
        name: "long pauses",
        duration: "400 s",
        links: r#"
[[link]]
name = "one"
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "30 ms"
queue = "20 packets"
loss = { model = "bernoulli", probability = 0.005 }
"#,
        flow: r#"workload = { kind = "on-off", rate = "1 Mbit/s", message = "400 B", on = "1 s", off = "70 s" }"#,
        given: &[],
    },
];

/// Depth of a digest: the events that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Depth {
    /// Each packet on each link: its sending time and its bytes.
    Packets,
    /// The packets, and the samples of every probe at both ends.
    Told,
}

/// Writer that only computes a digest.
#[derive(Clone, Default)]
struct Digest(Rc<RefCell<DefaultHasher>>);

impl Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Settings of a transport, as TOML.
pub type TransportInput = Vec<(String, String)>;

/// Digests by world, depth and settings, so that each combination is run only once.
pub struct Runs<'a> {
    kind: &'a TransportKind,
    known: BTreeMap<(usize, Depth, String), Option<u64>>,
    pub count: usize,
    /// Indices of the worlds that the transport supports.
    pub places: Vec<usize>,
}

impl<'a> Runs<'a> {
    /// Whether some world sets the key `key`.
    pub fn worlds_give(key: &str) -> bool {
        let mut all = WORLDS.iter().flat_map(|it| it.given);
        all.any(|(known, _)| *known == key)
    }

    pub fn new(kind: &'a TransportKind) -> Self {
        let mut all = Self {
            kind,
            known: BTreeMap::new(),
            count: 0,
            places: Vec::new(),
        };
        let fits = |it: &usize| all.refusal(*it, &TransportInput::new()).is_none();
        all.places = (0..WORLDS.len()).filter(fits).collect();
        all
    }

    fn spec(&self, world: &World, given: &TransportInput, depth: Depth) -> String {
        let is_given = |key: &str| given.iter().any(|(known, _)| known == key);
        let mut links = world.links.to_owned();
        let mut transport: Vec<String> = Vec::new();
        for (key, value) in given {
            transport.push(format!("{key} = {value}"));
        }
        for (key, value) in world.given {
            if key.chars().all(char::is_uppercase) {
                links = links.replace(key, value);
            } else if self.kind.setting(key).is_some() && !is_given(key) {
                transport.push(format!("{key} = {value}"));
            }
        }
        let protocol = match self.kind.stack_of {
            Some(protocol) => format!("\"{protocol}\", stack = \"{}\"", self.kind.name),
            None => format!("\"{}\"", self.kind.name),
        };
        transport.insert(0, format!("protocol = {protocol}"));
        let record = match (depth, self.kind.probes) {
            (Depth::Told, Some(probes)) => {
                let names: Vec<String> =
                    probes.iter().map(|it| format!("{:?}", it.name())).collect();
                format!(
                    "\nrecord = [{{ flow = \"f\", probes = [{}] }}]",
                    names.join(", ")
                )
            }
            _ => String::new(),
        };
        format!(
            "anabranch = 1\nname = \"effects\"\nworld = {{ duration = \"{}\" }}\n\
             node = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n{links}\n\
             [[experiment]]\nid = \"one\"\nmeasure = [{{ metric = \"goodput\", flow = \"f\" }}]{record}\n\
             [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\ntransport = {{ {} }}\n{}\n",
            world.duration,
            transport.join(", "),
            world.flow,
        )
    }

    /// Name of the transport.
    pub fn name(&self) -> &'static str {
        self.kind.name
    }

    /// Whether a spec with these settings is valid, with one path or with several; on error,
    /// returns the message for one path.
    pub fn accepts(&self, given: &TransportInput) -> Result<(), String> {
        let is_several = |it: &&usize| WORLDS[**it].links == SEVERAL;
        let [one, several] = [self.places.first(), self.places.iter().find(is_several)];
        let of = |place: Option<&usize>| {
            let world = &WORLDS[place.copied().unwrap_or(0)];
            plan(self.spec(world, given, Depth::Packets)).map(drop)
        };
        of(one).or_else(|error| of(several).map_err(|_| error))
    }

    /// Digest of a run in a world; `None` if the world rejects the settings.
    pub fn digest(&mut self, world: usize, given: &TransportInput, depth: Depth) -> Option<u64> {
        let key = (world, depth, format!("{given:?}"));
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let found = plan(self.spec(&WORLDS[world], given, depth)).ok();
        let found = found.map(|plan| {
            self.count += 1;
            run(&plan, depth)
        });
        self.known.insert(key, found);
        found
    }

    /// Error message of a world that rejects the settings.
    pub fn refusal(&self, world: usize, given: &TransportInput) -> Option<String> {
        plan(self.spec(&WORLDS[world], given, Depth::Packets)).err()
    }

    pub fn forget(&mut self) {
        self.known.clear();
    }
}

pub fn plan(text: String) -> Result<Plan, String> {
    let request = PlanRequest::new("effects.toml", text).with(|it| it.seed = 1);
    Plan::new(request).map_err(|error| error.to_string())
}

pub fn run(plan: &Plan, depth: Depth) -> u64 {
    let digest = Digest::default();
    let open = || -> io::Result<Box<dyn Write>> { Ok(Box::new(digest.clone())) };
    let names = world::link_names(&plan.spec);
    let captures = names.iter().map(|name| Capture {
        link: name,
        name: name.clone(),
        open: &open,
    });
    let captures: Vec<Capture<'_>> = captures.collect();
    let mut memory = Memory::default();
    let record = world::run(&PlannedRun::all(plan)[0], 1, &mut memory, &captures).expect("a run");
    if depth == Depth::Told {
        let mut hasher = digest.0.borrow_mut();
        hasher.write(format!("{:?}", record.metrics).as_bytes());
        hasher.write(format!("{:?}", record.failures).as_bytes());
        hasher.write(format!("{:?}", memory.series).as_bytes());
    }
    digest.0.borrow().finish()
}

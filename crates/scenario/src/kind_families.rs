//! Families of kinds that a spec can choose from, with their syntax.

use std::collections::BTreeMap;

use anabranch_settings::{Choice, Datum, Kind, Setting};

use serde_json::{Map, Value};

use crate::kind_choice::{KindChoice, KindFamily};
use crate::quantity::{Capacity, TimeSpan};

/// Loss models, which select the packets that a link loses.
#[derive(Debug)]
pub enum LossModel {}

/// Loss model of a direction of a link: `{ model = "bernoulli", probability = 0.01 }`.
pub type Loss = KindChoice<LossModel>;

/// Key that selects the position of a loss model.
const POSITION: &str = "position";
const AFTER_QUEUE: &str = "after-queue";

impl KindFamily for LossModel {
    const NAME: &'static str = "Loss";
    const WHAT: &'static str = "a loss model";
    const TAG: &'static str = "model";
    const EXPECTED: &'static str = "a table with the key `model`, such as { model = \"bernoulli\", probability = 0.01 }, or a name in quotes";
    const SHARED: &'static [Setting] = &[Setting::new(
        POSITION,
        " Where packets are lost: before they enter the queue, or after they left it, on the wire.",
        Kind::Choice(&[Choice::new("before-queue"), Choice::new(AFTER_QUEUE)]),
    )
    .or("before-queue")];
}

/// Position of a loss model on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossPlacement {
    /// Packets are lost before they enter the queue.
    #[default]
    BeforeQueue,
    /// Packets are lost on the wire, after they left the queue.
    AfterQueue,
}

impl Loss {
    /// Position of the loss model.
    pub fn place(&self) -> LossPlacement {
        match self.shared(POSITION) {
            Some(Datum::Word(word)) if word == AFTER_QUEUE => LossPlacement::AfterQueue,
            _ => LossPlacement::BeforeQueue,
        }
    }
}

/// Propagation models, which determine the delay of packets.
#[derive(Debug)]
pub enum PropagationModel {}

/// Propagation model of a direction of a link: `{ kind = "jitter", delay = "5 ms", jitter = "2 ms"
/// }`. `"5 ms"` is a constant delay, and `{ steps = [["0 s", "5 ms"]] }` a delay that changes over
/// time.
pub type Propagation = KindChoice<PropagationModel>;

/// Name of the kind whose delay depends only on time, and name of the parameter with this delay.
const DETERMINISTIC: &str = "deterministic";
const DELAY: &str = "delay";
const ALLOW_REORDERING: &str = "allow_reordering";

impl KindFamily for PropagationModel {
    const NAME: &'static str = "Propagation";
    const WHAT: &'static str = "a propagation";
    const EXPECTED: &'static str =
        "a time with its unit, such as \"250 ms\", or a table: { kind = ... } or { steps = [...] }";
    const SHARED: &'static [Setting] = &[Setting::new(
        ALLOW_REORDERING,
        " A packet with a shorter delay may arrive before one that was sent earlier. Off: both packets arrive at the same time.",
        Kind::Flag,
    )
    .or("false")];

    fn short_forms() -> Vec<Value> {
        const TIME: Kind = Kind::Duration {
            least: 0,
            most: u64::MAX,
        };
        vec![Kind::StepFunction(&TIME).json_schema()]
    }

    fn from_text(text: &str) -> Result<Propagation, String> {
        text.parse::<TimeSpan>()?;
        Ok(Propagation::new(DETERMINISTIC).with(DELAY, text))
    }

    fn untagged(parameters: BTreeMap<String, Value>) -> Propagation {
        if parameters.contains_key("steps") {
            let steps: Map<String, Value> = parameters.into_iter().collect();
            return Propagation::new(DETERMINISTIC).with(DELAY, steps);
        }
        Propagation::of("", parameters)
    }
}

impl Propagation {
    /// Whether packets may overtake one another.
    pub fn allow_reordering(&self) -> bool {
        self.shared(ALLOW_REORDERING) == Some(Datum::Flag(true))
    }
}

/// Queue disciplines, which determine the order of queued packets, and the packets that are dropped
/// or marked.
#[derive(Debug)]
pub enum QueueDiscipline {}

/// Queue of a direction of a link: `{ kind = "codel", limit = "1000 packets" }`; `"50 packets"` is
/// a drop-tail queue with this limit.
pub type Queue = KindChoice<QueueDiscipline>;

impl KindFamily for QueueDiscipline {
    const NAME: &'static str = "Queue";
    const WHAT: &'static str = "a queue discipline";
    const EXPECTED: &'static str = "an amount with its unit, such as \"10 packets\", or a table with the key `kind`, such as { kind = \"codel\", limit = \"1000 packets\" }";

    fn short_forms() -> Vec<Value> {
        let amount = Kind::Amount {
            segments: [1, u64::MAX],
            bytes: [1, u64::MAX],
            counted: "packets",
        };
        vec![amount.json_schema()]
    }

    fn from_text(text: &str) -> Result<Queue, String> {
        let name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(name) {
            return Ok(Queue::new(text));
        }
        match text.parse::<Capacity>()? {
            Capacity::Packets(0) | Capacity::Segments(0) | Capacity::Bytes(0) => Err(
                "found a queue of 0; it holds the packet on the wire too, so at least 1 packet"
                    .to_owned(),
            ),
            _ => Ok(Queue::new("drop-tail").with("limit", text)),
        }
    }
}

/// Workloads, which determine the sizes and times of the data that an application offers.
#[derive(Debug)]
pub enum Workloads {}

/// The workload of a flow: `{ kind = "cbr", rate = "80 kbit/s", message = "1000 B" }`.
pub type Workload = KindChoice<Workloads>;

impl KindFamily for Workloads {
    const NAME: &'static str = "Workload";
    const WHAT: &'static str = "a workload";
    const EXPECTED: &'static str =
        "a table, such as { kind = \"bulk\", total = \"10 MB\" }, or a name in quotes";
}

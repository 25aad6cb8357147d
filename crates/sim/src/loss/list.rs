//! Losses by name: exactly these packets.

use std::fmt;

use anabranch_settings::{Datum, Entry, Fallback, Kind, Setting, Value, Variant};
use anabranch_transport::Nanos;

use super::{Loss, Traffic};
use crate::packet::{Inspect, Packet};
use crate::rng::Rng;

/// How specs name [`Segments`].
pub(super) static ENTRY: Entry<Box<dyn Loss>, Traffic> = Entry {
    variant: Variant {
        name: "list",
        about: " These data segments are lost, and nothing else.",
        parameters: &[Setting {
            name: "segments",
            about: " The segments: `[{ flow = \"web\", number = 8 }]`.",
            clause: "",
            kind: Kind::List(&Kind::Table(SEGMENT)),
            fallback: Fallback::Required,
        }],
    },
    build: |parameters, traffic| {
        let named = parameters.list::<NamedSegment>("segments")?;
        let losses = named.iter().flat_map(|segment| segment.losses(&traffic));
        let losses: Vec<SegmentLoss> = losses.collect();
        Ok(Box::new(Segments::new(losses, traffic.inspector())))
    },
};

const SEGMENT: &[Setting] = &[
    Setting {
        name: "flow",
        about: " The flow; in a group, each member.",
        clause: "",
        kind: Kind::Name("flow"),
        fallback: Fallback::Required,
    },
    Setting {
        name: "number",
        about: " The segment, counted from 1: `8` is the eighth.",
        clause: "",
        kind: FROM_ONE,
        fallback: Fallback::Required,
    },
    Setting {
        name: "transmission",
        about: " Which transmission of it, counted from 1.",
        clause: "",
        kind: FROM_ONE,
        fallback: Fallback::Is("1"),
    },
];

const FROM_ONE: Kind = Kind::Count {
    least: 1,
    most: u32::MAX as u64,
};

/// A segment as specs write it.
struct NamedSegment {
    flow: String,
    number: u64,
    transmission: u32,
}

impl NamedSegment {
    /// One for each flow that the name means.
    fn losses(&self, traffic: &Traffic) -> Vec<SegmentLoss> {
        let numbers = traffic.numbers(&self.flow).into_iter();
        let loss = |flow| SegmentLoss {
            flow: Some(flow),
            number: self.number.saturating_sub(1),
            transmission: self.transmission.saturating_sub(1),
        };
        numbers.map(loss).collect()
    }
}

impl Value for NamedSegment {
    const KIND: Kind = Kind::Table(SEGMENT);

    fn from_datum(datum: &Datum) -> Option<Self> {
        let transmission = datum.key("transmission").map_or(Some(1), u32::from_datum)?;
        Some(Self {
            flow: String::from_datum(datum.key("flow")?)?,
            number: u64::from_datum(datum.key("number")?)?,
            transmission,
        })
    }

    fn to_datum(&self) -> Datum {
        let keys = [
            ("flow", self.flow.to_datum()),
            ("number", self.number.to_datum()),
            ("transmission", self.transmission.to_datum()),
        ];
        Datum::Table(keys.map(|(key, datum)| (key.to_owned(), datum)).into())
    }
}

/// How specs name [`Ordinals`].
pub(super) static ORDINALS: Entry<Box<dyn Loss>, Traffic> = Entry {
    variant: Variant {
        name: "ordinals",
        about: " The packets with these numbers are lost, and nothing else.",
        parameters: &[Setting {
            name: "packets",
            about: " Numbers of the packets in the order of their arrival, counted from 0.",
            clause: "",
            kind: Kind::List(&Kind::Count {
                least: 0,
                most: u64::MAX,
            }),
            fallback: Fallback::Required,
        }],
    },
    build: |parameters, _| Ok(Box::new(Ordinals::new(parameters.list::<u64>("packets")?))),
};

/// The packets at these places in the order of their coming, counted from 0.
#[derive(Clone, Debug)]
pub struct Ordinals {
    /// Sorted, the next last.
    left: Vec<u64>,
    seen: u64,
}

impl Ordinals {
    /// Loses the packets with these numbers, counted from 0 at this place. Order and repetitions do not matter.
    pub fn new(numbers: impl IntoIterator<Item = u64>) -> Self {
        let mut left: Vec<u64> = numbers.into_iter().collect();
        left.sort_unstable_by(|a, b| b.cmp(a));
        left.dedup();
        Self { left, seen: 0 }
    }
}

impl Loss for Ordinals {
    fn takes(&mut self, _at: Nanos, _packet: &Packet, _rng: &mut Rng) -> bool {
        let number = self.seen;
        self.seen += 1;
        self.left.pop_if(|next| *next == number).is_some()
    }
}

/// One data segment to lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentLoss {
    /// The flow, as the inspector numbers flows; `None`: the first flow that sends this segment.
    pub flow: Option<u32>,
    /// Number of the segment in its flow, counted from 0: the paper's "8th segment" is 7 where it counts from 1.
    pub number: u64,
    /// Which of its transmissions to lose: 0 the first, 1 the first retransmission, and so on.
    pub transmission: u32,
}

/// The data segments of a list, recognised by an [`Inspect`].
pub struct Segments {
    /// What is still to be lost, with the number of transmissions to let pass before.
    left: Vec<SegmentLoss>,
    inspect: Box<dyn Inspect>,
}

impl Segments {
    /// Loses these segments. Transmissions are counted at this place: those lost before it do not count.
    pub fn new(losses: impl IntoIterator<Item = SegmentLoss>, inspect: Box<dyn Inspect>) -> Self {
        Self {
            left: losses.into_iter().collect(),
            inspect,
        }
    }
}

impl fmt::Debug for Segments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segments")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl Loss for Segments {
    fn takes(&mut self, _at: Nanos, packet: &Packet, _rng: &mut Rng) -> bool {
        if self.left.is_empty() {
            return false;
        }
        let Some(segment) = self.inspect.inspect(packet) else {
            return false;
        };
        let mut lost = false;
        self.left.retain_mut(|entry| {
            if entry.number != segment.number || entry.flow.is_some_and(|flow| flow != segment.flow)
            {
                return true;
            }
            if entry.transmission == 0 {
                lost = true;
                return false;
            }
            entry.transmission -= 1;
            // From here on the entry means this flow only, or another flow's segment would count as a retransmission.
            entry.flow = Some(segment.flow);
            true
        });
        lost
    }
}

//! The world of a spec: nodes, links, queues and losses.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::addresses::Addresses;
use crate::constellation::MovingRouting;
use crate::families::{Loss, Propagation, Queue};
use crate::quantity::{Count, Probability, Size, Span};
use crate::rates::RateOverTime;
use crate::transport::Transport;

/// What holds for the whole world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// How long a run lasts, in simulated time.
    pub duration: Span,
    /// Compute and check the checksums of SCTP and TCP. Off unless asked for, since no link damages a packet by itself;
    /// captures and links that corrupt turn them on.
    #[serde(default)]
    pub checksum: bool,
    /// How routes over a constellation are found: `"least-delay"`, each 100 ms, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<MovingRouting>,
}

/// A host or a router, or a group of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// How many; with more than one they are members of a group, and 0 switches them off.
    #[serde(default)]
    pub count: Count,
    /// Addresses of its interfaces, by the links that they are at: `{ dsl = "192.0.2.1", lte = "198.51.100.7, 2001:db8::7" }`.
    /// Those left out are given: a network of its own to each path of a flow that has several, else one to each link.
    #[serde(default)]
    pub addresses: BTreeMap<String, Addresses>,
    /// What it does with packets that pass through it, beside forwarding them: `{ kind = "split-tcp" }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
}

/// A proxy at a node. `split-tcp` splits TCP connections (RFC 3135): it answers for either host, and has a connection of its own with
/// each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    /// What it does: `split-tcp`, or `none`.
    pub kind: String,
    /// The most bytes of a connection and direction that it has taken from one host, and the other has not acknowledged. When they are
    /// full it takes no more: the window that it offers closes.
    #[serde(default = "Proxy::buffer")]
    pub buffer: Size,
    /// Its transport towards the host that asks for a connection.
    #[serde(default = "Proxy::tcp")]
    pub asking: Transport,
    /// Its transport towards the host that is asked.
    #[serde(default = "Proxy::tcp")]
    pub asked: Transport,
}

impl Proxy {
    /// Default: a few bandwidth-delay products of a satellite link.
    const fn buffer() -> Size {
        Size(1 << 20)
    }

    /// Default transport: TCP.
    fn tcp() -> Transport {
        Transport {
            protocol: "tcp".to_owned(),
            ..Transport::default()
        }
    }
}

/// A full-duplex link between two nodes, or one for each member of a group: groups of equal count are joined i-th to
/// i-th, a group and a single node many to one, a group with itself as a chain, each member to the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// The two nodes, or members of a group: `satellite[0]`, `satellite[last]`, `r[1..3]`, `r[..last]`. Forward is from the first to the
    /// second, in a chain to the higher number.
    pub between: [String; 2],
    /// What kind of link.
    #[serde(default)]
    pub kind: LinkKind,
    /// Bits per second, in each direction: `"2 Mbit/s"`, `{ forward = "2 Mbit/s", backward = "128 kbit/s" }`, or over time,
    /// `{ steps = [["0 s", "2 Mbit/s"], ["10 s", "1 Mbit/s"]], repeat = "20 s" }`. A file may stand for the steps:
    /// `{ trace = "rate.csv" }` has lines `time,rate`; `{ opportunities = "up.trace" }` is mahimahi's format, one line with
    /// the millisecond for each packet that can leave, of `packet = "1500 B"`.
    pub rate: Directed<RateOverTime>,
    /// Propagation delay, one way: `"5 ms"`, over time as the rate, or another propagation, such as
    /// `{ kind = "jitter", delay = "5 ms", jitter = "2 ms" }`.
    pub delay: Directed<Propagation>,
    /// Who waits for the transmitter, and how many: `"10 packets"` or `"64 KiB"`, the packet on the wire included, is
    /// drop-tail with that limit; `{ kind = "codel" }` is another discipline. Left out: drop-tail without a limit.
    #[serde(default)]
    pub queue: Directed<Queue>,
    /// What is lost.
    #[serde(default)]
    pub loss: Directed<Loss>,
    /// The largest packet it carries, with the IP header; any if left out. Larger ones are dropped under the reason `too-big`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Size>,
    /// From when on it carries another size, in the order of time: `[["20 s", "1300 B"]]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mtu_changes: Vec<(Span, Size)>,
    /// When the link is down: `[["10 s", "12 s"]]`, the begin included, the end not; or `{ forward = [...] }` where one
    /// direction is down alone. What is offered meanwhile is dropped; so is what waits in the queue or is being sent when it
    /// begins. What is already in the air arrives. All of it is counted under the reason `link-down`.
    #[serde(default)]
    pub down: Directed<Vec<[Span; 2]>>,
    /// The same the other way round, instead of `down`: when the link is up. It is down at all other times.
    #[serde(default)]
    pub up: Directed<Vec<[Span; 2]>>,
    /// What else goes wrong, for tests.
    #[serde(default)]
    pub impairment: Directed<Impairment>,
}

impl Link {
    /// The outages of a direction, in order, each as a half-open interval of nanoseconds; the last
    /// one may be endless ([`u64::MAX`]).
    pub fn outages(&self, forward: bool) -> Vec<[u64; 2]> {
        let nanos = |spans: &Vec<[Span; 2]>| -> Vec<[u64; 2]> {
            spans.iter().map(|span| span.map(|end| end.0)).collect()
        };
        let Some(up) = self.up.side(forward) else {
            return self.down.side(forward).map_or(Vec::new(), nanos);
        };
        let mut since = 0;
        let mut down = Vec::new();
        for [from, until] in nanos(up) {
            down.push([since, from]);
            since = until;
        }
        down.push([since, u64::MAX]);
        down.retain(|[from, until]| from < until);
        down
    }
}

/// The kind of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKind {
    /// A wire or a beam: rate, delay, a queue at each end.
    #[default]
    PointToPoint,
}

/// One value for both directions of a link, or one for each.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(inline, with = "DirectedSchema<T>")]
pub struct Directed<T> {
    /// From the first node of `between` to the second.
    pub forward: Option<T>,
    /// From the second to the first.
    pub backward: Option<T>,
}

impl<T: Serialize + PartialEq> Serialize for Directed<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (&self.forward, &self.backward) {
            (None, None) => serializer.serialize_none(),
            (Some(forward), Some(backward)) if forward == backward => forward.serialize(serializer),
            (forward, backward) => {
                let sides = [("forward", forward), ("backward", backward)];
                let given = sides.iter().filter(|(_, side)| side.is_some());
                serializer.collect_map(given.copied())
            }
        }
    }
}

impl<T> Directed<T> {
    /// The value for one direction.
    pub fn side(&self, forward: bool) -> Option<&T> {
        if forward {
            self.forward.as_ref()
        } else {
            self.backward.as_ref()
        }
    }
}

impl<T> Default for Directed<T> {
    fn default() -> Self {
        Self {
            forward: None,
            backward: None,
        }
    }
}

/// The two ways of writing a [`Directed`] value.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "describes a grammar; never built")]
enum DirectedSchema<T> {
    Each {
        /// From the first node of `between` to the second.
        forward: Option<T>,
        /// From the second to the first.
        backward: Option<T>,
    },
    Both(T),
}

/// What goes wrong on a link beside loss.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Impairment {
    /// Probability that a packet arrives twice.
    #[serde(default)]
    pub duplicate: Probability,
    /// Probability that a byte of it is damaged.
    #[serde(default)]
    pub corrupt: Probability,
    /// Probability that it is held back by `reorder_delay`, so that later ones overtake it.
    #[serde(default)]
    pub reorder: Probability,
    /// For how long.
    #[serde(default)]
    pub reorder_delay: Option<Span>,
}

impl<'de, T: Deserialize<'de> + Clone> Deserialize<'de> for Directed<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(DIRECTED, DirectedVisitor(std::marker::PhantomData))
    }
}

/// Name by which the decoder presents a table with `forward` or `backward` as a map, and any other
/// value as a newtype.
pub(super) const DIRECTED: &str = "$directed";

struct DirectedVisitor<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de> + Clone> serde::de::Visitor<'de> for DirectedVisitor<T> {
    type Value = Directed<T>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("one value for both directions, or { forward = ..., backward = ... }")
    }

    fn visit_newtype_struct<D: serde::Deserializer<'de>>(
        self,
        both: D,
    ) -> Result<Directed<T>, D::Error> {
        let both = T::deserialize(both)?;
        Ok(Directed {
            forward: Some(both.clone()),
            backward: Some(both),
        })
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Directed<T>, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, bound = "T: Deserialize<'de>")]
        struct Each<T> {
            forward: Option<T>,
            backward: Option<T>,
        }
        let each = Each::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        Ok(Directed {
            forward: each.forward,
            backward: each.backward,
        })
    }
}

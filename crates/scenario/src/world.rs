//! World of a spec: nodes, links, queues and losses.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::addresses::Addresses;
use crate::constellation::MovingRouting;
use crate::kind_families::{Loss, Propagation, Queue};
use crate::quantity::{GroupSize, Probability, Size, TimeSpan};
use crate::rates::RateOverTime;
use crate::transport::Transport;

/// Properties of the whole simulation, such as its duration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// Duration of a run, in simulated time.
    pub duration: TimeSpan,
    /// Compute and verify the checksums of SCTP and TCP. Off by default, because links do not
    /// damage packets; captures and links with `corrupt` enable it.
    #[serde(default)]
    pub checksum: bool,
    /// Routing over constellations. Default: `"least-delay"`, computed every 100 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<MovingRouting>,
}

/// A host or a router, or a group of such nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Name of the node.
    pub name: String,
    /// Number of nodes. If it is more than one, they are members of a group; 0 removes the node.
    #[serde(default)]
    pub count: GroupSize,
    /// Addresses of the node's interfaces, by the names of their links: `{ dsl = "192.0.2.1", lte =
    /// "198.51.100.7, 2001:db8::7" }`. Default: the two interfaces of each path of a flow with
    /// several paths have addresses in a common network; all other interfaces have addresses in the
    /// network of their link.
    #[serde(default)]
    pub addresses: BTreeMap<String, Addresses>,
    /// Proxy for packets that the node forwards: `{ kind = "split-tcp" }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
}

/// A proxy at a node. `split-tcp` splits TCP connections (RFC 3135): it answers each host in place
/// of the other host, and has a separate connection to each of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    /// Kind of the proxy: `split-tcp`, or `none`.
    pub kind: String,
    /// Maximum number of bytes, per connection and direction, that the proxy has received from one
    /// host and that the other host has not acknowledged. If the buffer is full, the proxy
    /// advertises a window of 0.
    #[serde(default = "Proxy::buffer")]
    pub buffer: Size,
    /// Transport towards the host that opens the connection.
    #[serde(default = "Proxy::tcp")]
    pub downstream: Transport,
    /// Transport towards the host to which the connection is opened.
    #[serde(default = "Proxy::tcp")]
    pub upstream: Transport,
}

impl Proxy {
    /// Default size of the buffer: a few bandwidth-delay products of a satellite link.
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

/// A full-duplex link between two nodes, or a group of such links. Between two groups of equal
/// size, each member has a link to the member with the same number. Between a group and a single
/// node, each member has a link to this node. Between a group and itself, each member has a link to
/// the next one, which forms a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Name of the link.
    pub name: String,
    /// The two nodes, or members of groups: `satellite[0]`, `satellite[last]`, `r[1..3]`,
    /// `r[..last]`. The forward direction is from the first to the second, and in a chain to the
    /// higher number.
    pub between: [String; 2],
    /// Kind of the link.
    #[serde(default)]
    pub kind: LinkKind,
    /// Bit rate of each direction: `"2 Mbit/s"`, `{ forward = "2 Mbit/s", backward = "128 kbit/s"
    /// }`, or steps over time, `{ steps = [["0 s", "2 Mbit/s"], ["10 s", "1 Mbit/s"]], repeat = "20
    /// s" }`. The steps may be in a file: `{ trace = "rate.csv" }` has lines `time,rate`; `{
    /// opportunities = "up.trace" }` has the format of mahimahi, with one line for each packet of
    /// `packet = "1500 B"` that can be sent, and its time in milliseconds.
    pub rate: Directed<RateOverTime>,
    /// One-way propagation delay: `"5 ms"`, steps over time like the rate, or another model, such
    /// as `{ kind = "jitter", delay = "5 ms", jitter = "2 ms" }`.
    pub delay: Directed<Propagation>,
    /// Queue of each direction. `"10 packets"` or `"64 KiB"` is a drop-tail queue with this limit,
    /// which includes the packet in transmission; `{ kind = "codel" }` is another discipline.
    /// Default: drop-tail without a limit.
    #[serde(default)]
    pub queue: Directed<Queue>,
    /// Loss model of each direction. Default: no losses.
    #[serde(default)]
    pub loss: Directed<Loss>,
    /// Maximum packet size, including the IP header. Larger packets are dropped with the reason
    /// `too-big`. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Size>,
    /// Changes of the MTU in the order of time, each with its time: `[["20 s", "1300 B"]]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mtu_changes: Vec<(TimeSpan, Size)>,
    /// Periods in which the link is down, which include their start and exclude their end: `[["10
    /// s", "12 s"]]`, or `{ forward = [...] }` for one direction. Packets that arrive at the link
    /// in such a period are dropped with the reason `link-down`, as are packets that are queued or
    /// in transmission at its start. Packets that are already in flight still arrive.
    #[serde(default)]
    pub down: Directed<Vec<[TimeSpan; 2]>>,
    /// Periods in which the link is up, in place of `down`. The link is down at all other times.
    #[serde(default)]
    pub up: Directed<Vec<[TimeSpan; 2]>>,
    /// Impairments in addition to loss, for tests.
    #[serde(default)]
    pub impairment: Directed<Impairment>,
}

impl Link {
    /// Outages of a direction, in order. Each is a half-open interval in nanoseconds; the last may
    /// be endless ([`u64::MAX`]).
    pub fn outages(&self, forward: bool) -> Vec<[u64; 2]> {
        let nanos = |spans: &Vec<[TimeSpan; 2]>| -> Vec<[u64; 2]> {
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

/// Kind of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKind {
    /// A link with a rate, a delay, and a queue at each end.
    #[default]
    PointToPoint,
}

/// One value for both directions of a link, or one for each.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(inline, with = "DirectedSchema<T>")]
pub struct Directed<T> {
    /// Value for the direction from the first node of `between` to the second.
    pub forward: Option<T>,
    /// Value for the direction from the second node to the first.
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
    /// Value for one direction.
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

/// The two forms of a [`Directed`] value.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "describes a grammar; never built")]
enum DirectedSchema<T> {
    Each {
        /// Value for the direction from the first node of `between` to the second.
        forward: Option<T>,
        /// Value for the direction from the second node to the first.
        backward: Option<T>,
    },
    Both(T),
}

/// Impairments of a link in addition to loss.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Impairment {
    /// Probability that a packet arrives twice.
    #[serde(default)]
    pub duplicate: Probability,
    /// Probability that a byte of a packet is damaged.
    #[serde(default)]
    pub corrupt: Probability,
    /// Probability that a packet is delayed by up to `reorder_delay`, so that later packets
    /// overtake it.
    #[serde(default)]
    pub reorder: Probability,
    /// Maximum delay of a reordered packet.
    #[serde(default)]
    pub reorder_delay: Option<TimeSpan>,
}

impl<'de, T: Deserialize<'de> + Clone> Deserialize<'de> for Directed<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(DIRECTED, DirectedVisitor(std::marker::PhantomData))
    }
}

/// Name of the type for which the decoder presents a table with `forward` or `backward` as a map,
/// and any other value as a newtype.
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

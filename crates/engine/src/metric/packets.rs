//! Packets with data, as a trace of the network shows them.

use anabranch_settings::{Entry, Fallback, Setting, Value, Variant, spelled};

use super::words::FLOW;
use super::{Made, Metric, Name, Needs, Seen};
use crate::agent::packets::PacketAccount;

/// What is made of a flow's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketTake {
    Sent,
    Received,
    ReceivedOverSent,
    MeanDelay,
    DelaySpread,
    DelayVariance,
}
spelled!(PacketTake: PacketTake::Sent = "sent", PacketTake::Received = "received",
    PacketTake::ReceivedOverSent = "received-over-sent", PacketTake::MeanDelay = "mean-delay",
    PacketTake::DelaySpread = "delay-spread", PacketTake::DelayVariance = "delay-variance");

impl PacketTake {
    /// The metric's name and unit.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            PacketTake::Sent => ("packets_sent", "packets"),
            PacketTake::Received => ("packets_received", "packets"),
            PacketTake::ReceivedOverSent => ("received_over_sent", "%"),
            PacketTake::MeanDelay => ("mean_delay", "ms"),
            PacketTake::DelaySpread => ("delay_spread", "ms"),
            PacketTake::DelayVariance => ("delay_variance", "ms^2"),
        }
    }
}

/// From when a packet's delay counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Since {
    Host,
    Wire,
}
spelled!(Since: Since::Host = "host", Since::Wire = "wire");

/// How specs name it.
pub(super) static ENTRY: Entry<Made> = Entry {
    variant: Variant {
        name: "packets",
        about: " Packets that carried data of a flow, repetitions included, as a trace of the network shows them. A delay is that of \
                one packet that arrived, whichever time it was sent.",
        parameters: &[
            FLOW,
            Setting {
                name: "take",
                about: " What is made of them: how many the source `sent`; how many the sink `received`; \
                        `received-over-sent`, %; the `mean-delay` of those received, ms; the `delay-spread`, which Rafiq's \
                        thesis (2007) calls the delay's variance, in ms: the mean of the squared delay in ms^2, over 1000 ms; \
                        the `delay-variance`, ms^2.",
                clause: "",
                kind: <PacketTake as Value>::KIND,
                fallback: Fallback::Required,
            },
            Setting {
                name: "from",
                about: " From when a delay counts: from when the sending `host` handed the packet to its interface, so that what \
                        waits there counts, or from when the host's `wire` began to carry it. On a wireless link both are one.",
                clause: "",
                kind: <Since as Value>::KIND,
                fallback: Fallback::Is("host"),
            },
        ],
    },
    build: |parameters, ()| {
        Ok(Box::new(Packets {
            flow: parameters.get("flow")?,
            take: parameters.get("take")?,
            from: parameters.get("from")?,
        }))
    },
};

struct Packets {
    flow: String,
    take: PacketTake,
    from: Since,
}

impl Metric for Packets {
    fn names(&self) -> Vec<Name> {
        let (name, unit) = self.take.names();
        vec![Name::new(&self.flow, name, unit)]
    }

    fn needs(&self) -> Needs {
        Needs {
            packets: true,
            ..Needs::default()
        }
    }

    fn values(&self, seen: &Seen<'_>) -> Vec<f64> {
        let members = seen.members(&self.flow);
        let sum =
            |of: fn(&PacketAccount) -> u64| members.iter().map(|t| of(&t.packets)).sum::<u64>();
        let (sent, received) = (sum(|p| p.sent) as f64, sum(|p| p.received) as f64);
        // Every packet weighs alike, whichever member it belongs to.
        let [mean, square] = members.iter().fold([0.0; 2], |[mean, square], tally| {
            let packets = &tally.packets;
            let delays = match self.from {
                Since::Host => &packets.from_host,
                Since::Wire => &packets.from_wire,
            };
            let share = packets.received as f64 / received;
            let [m, s] = match packets.received {
                0 => [0.0; 2],
                _ => packets.moments(delays),
            };
            [mean + share * m, square + share * s]
        });
        vec![match self.take {
            PacketTake::Sent => sent,
            PacketTake::Received => received,
            PacketTake::ReceivedOverSent => received / sent * 100.0,
            PacketTake::MeanDelay => mean,
            PacketTake::DelaySpread => square / 1000.0,
            PacketTake::DelayVariance => square - mean * mean,
        }]
    }
}

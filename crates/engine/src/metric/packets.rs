//! Number and delay of data packets, as a network trace shows them.

use anabranch_settings::{Kind, KindEntry, KindError, SettingValue, kind, spelled};

use super::common_parameters::{FLOW, check_takes};
use super::{BoxedMetric, MeasureNeeds, Metric, ResultName, RunData};
use crate::agent::packets::{FirstPackets, PacketAccount};

/// Statistic of a flow's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketTake {
    Sent,
    Received,
    ReceivedOverSent,
    MeanDelay,
    DelaySpread,
    DelayVariance,
    FirstDelays,
}
spelled!(PacketTake: PacketTake::Sent = "sent", PacketTake::Received = "received",
    PacketTake::ReceivedOverSent = "received-over-sent", PacketTake::MeanDelay = "mean-delay",
    PacketTake::DelaySpread = "delay-spread", PacketTake::DelayVariance = "delay-variance",
    PacketTake::FirstDelays = "first-delays");

impl PacketTake {
    /// Name and unit of the value.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            PacketTake::Sent => ("packets_sent", "packets"),
            PacketTake::Received => ("packets_received", "packets"),
            PacketTake::ReceivedOverSent => ("received_over_sent", "%"),
            PacketTake::MeanDelay => ("mean_delay", "ms"),
            PacketTake::DelaySpread => ("delay_spread", "ms"),
            PacketTake::DelayVariance => ("delay_variance", "ms^2"),
            PacketTake::FirstDelays => ("delay", "ms"),
        }
    }
}

/// Start of a packet's delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Since {
    Host,
    Wire,
}
spelled!(Since: Since::Host = "host", Since::Wire = "wire");

kind! {
    /// Parameters of packets and their delays.
    struct Packets {
        flow: String as FLOW;
        /// Values to compute, one word or a list. `sent`: number of packets sent by the source;
        /// `received`: number received by the sink; `received-over-sent`, %; `mean-delay` of the
        /// received packets, ms; `delay-spread`, ms: mean of the squared delay in ms^2, divided by
        /// 1000 ms (the "variance" of Rafiq's thesis, 2007); `delay-variance`, ms^2;
        /// `first-delays`, ms: delays of the first packets (see `first`), named `delay_1`,
        /// `delay_2` and so on in the order of first transmission. The delay of a retransmitted
        /// packet starts at its first transmission.
        statistic: Vec<PacketTake>, Kind::List(&PacketTake::KIND);
        /// Start of a packet's delay. `host`: the sending host passes the packet to its interface,
        /// so that the delay includes the interface queue. `wire`: transmission on the first link
        /// begins. On a wireless link both times are the same.
        from: Since = "host", Since::KIND;
        /// Number of packets for `first-delays`.
        first: Option<u32> = none, Kind::count(1, FirstPackets::MAX_PACKETS as u64);
    }
    /// Numbers and delays of the packets that carry data of a flow, including retransmissions, as
    /// in a network trace. Delays are computed only from packets that arrived.
    pub(super) static ENTRY: KindEntry<BoxedMetric> = "packets", |it, ()| it.checked();
}

impl Packets {
    fn checked(self) -> Result<BoxedMetric, KindError> {
        check_takes(&self.statistic)?;
        if self.statistic.contains(&PacketTake::FirstDelays) != self.first.is_some() {
            let message = "`statistic = \"first-delays\"` says with `first` of how many packets, and nothing else does";
            return Err(KindError::together(message));
        }
        let counted = [
            PacketTake::Sent,
            PacketTake::Received,
            PacketTake::ReceivedOverSent,
        ];
        if self.from == Since::Wire && self.statistic.iter().all(|it| counted.contains(it)) {
            let message = "`from` says where a delay starts, and `statistic` has none; leave `from` out, or take a delay such as `mean-delay`";
            return Err(KindError::together(message));
        }
        Ok(Box::new(self))
    }

    /// Delays of the first packets, ms; NaN for a packet that did not arrive. For a flow with
    /// several members, they are the delays of its first member.
    fn first_delays(&self, seen: &RunData<'_>) -> Vec<f64> {
        let member = seen.members(&self.flow).first();
        let of = |number| {
            let [host, wire] = member?.packets.first.delays(number)?;
            Some(match self.from {
                Since::Host => host,
                Since::Wire => wire,
            })
        };
        let in_ms = |delay: Option<u64>| delay.map_or(f64::NAN, |delay| delay as f64 / 1e6);
        (0..self.first.unwrap_or(0) as usize)
            .map(|number| in_ms(of(number)))
            .collect()
    }
}

impl Metric for Packets {
    fn names(&self) -> Vec<ResultName> {
        let of = |take: &PacketTake| -> Vec<ResultName> {
            let (name, unit) = take.names();
            let named = |name: &str| ResultName::new(&self.flow, name, unit);
            match take {
                PacketTake::FirstDelays => {
                    let numbers = 1..=self.first.unwrap_or(0);
                    numbers.map(|it| named(&format!("{name}_{it}"))).collect()
                }
                _ => vec![named(name)],
            }
        };
        self.statistic.iter().flat_map(of).collect()
    }

    fn needs(&self) -> MeasureNeeds {
        MeasureNeeds {
            packets: true,
            ..MeasureNeeds::default()
        }
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let members = seen.members(&self.flow);
        let sum =
            |of: fn(&PacketAccount) -> u64| members.iter().map(|t| of(&t.packets)).sum::<u64>();
        let (sent, received) = (sum(|p| p.sent) as f64, sum(|p| p.received) as f64);
        // All packets have the same weight, whatever their member is.
        let [mean, square] = members.iter().fold([0.0; 2], |[mean, square], flow_stats| {
            let packets = &flow_stats.packets;
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
        let value = |take: &PacketTake| match take {
            PacketTake::Sent => vec![sent],
            PacketTake::Received => vec![received],
            PacketTake::ReceivedOverSent => vec![received / sent * 100.0],
            PacketTake::MeanDelay => vec![mean],
            PacketTake::DelaySpread => vec![square / 1000.0],
            PacketTake::DelayVariance => vec![square - mean * mean],
            PacketTake::FirstDelays => self.first_delays(seen),
        };
        self.statistic.iter().flat_map(value).collect()
    }
}

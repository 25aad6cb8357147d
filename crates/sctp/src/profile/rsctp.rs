//! What of RSCTP can be chosen (ho2008): its switches, with a choice for each place where the paper says two things.

use anabranch_congestion::rsctp::RsctpParameters;
use anabranch_settings::spelled;

use crate::profile::Profile;

/// Declares the switches of a profile as `switches` does, and those of RSCTP behind them.
macro_rules! with_rsctp {
    ($($own:tt)+) => {
        anabranch_settings::switches! {
            $($own)+
            /// Offer RSCTP in INIT and INIT ACK. Where both ends do, HEARTBEATs carry time and chunk count, and their answers what
            /// the receiver measured; otherwise the association is plain SCTP. What a sender makes of it is the business of
            /// the congestion control `rsctp` and of `rsctp_path_switch`.
            rsctp: bool, "ho2008 §3";
            /// Time between two HEARTBEATs on the path that carries new data, whether idle or not: 1 s had the least error.
            rsctp_primary_interval: Span => INTERVAL, "ho2008 §4.2";
            /// Time between two pairs of HEARTBEATs on each other path.
            rsctp_secondary_interval: Span => INTERVAL, "ho2008 §4.2";
            /// Beta of `cwnd - beta sqrt(cwnd)` after a loss that is put down to the radio.
            rsctp_beta: Fraction, "ho2008 §4.2";
            /// The unit of that formula, on which the paper is silent: `segments`, as the binomial algorithms are defined and as
            /// the increase is counted, or `bytes`, as the variables of ns-2's module, where beta has hardly an effect.
            rsctp_decrease_unit: DecreaseUnit, "ho2008 §3.5";
            /// When ssthresh becomes estimate x RTT: with `each_report` unless something was lost since the last one, so that
            /// what congestion set lasts until an interval without loss; with `each_ack` outside of recovery, as Fig. 3-7 to the
            /// letter, which undoes what §3.5.1 sets at a loss; or `never`.
            rsctp_ssthresh: SsthreshRule, "ho2008 §3.5.1";
            /// The least ssthresh after congestion: `two` units by §3.5.1, `one` by Fig. 3-7, or that of the `profile`, so that
            /// RSCTP and SCTP differ in the verdict alone.
            rsctp_congestion_floor: CongestionFloor, "ho2008 §3.5.1";
            /// A report on a path that stands by sets its cwnd to estimate x RTT.
            rsctp_secondary_cwnd: bool, "ho2008 §3.2";
            /// The size of the second HEARTBEAT of a pair, over the time between the two: the text says of the `chunk`; but what a
            /// bottleneck takes that time for is the `packet`, and half of the estimate would be missing.
            rsctp_probe_size: ProbeSize, "ho2008 §3.2";
            /// Change the primary path when its chunk loss rate exceeds `rsctp_max_loss_rate`. A congestion's loss also needs
            /// another path with more bandwidth.
            rsctp_path_switch: bool, "ho2008 §3.3";
            /// MPLR, the most that a path may lose.
            rsctp_max_loss_rate: Fraction, "ho2008 §4.3";
            /// A loss of the radio's, too, changes the path only to one with more bandwidth: by §3.5.1, but neither by §3.5 nor
            /// by Fig. 3-7.
            rsctp_wireless_switch_needs_bandwidth: bool, "ho2008 §3.5.1";
            /// What a HEARTBEAT without answer means on the path that carries data: by §3.5.1 a loss is one of a chunk, and
            /// Fig. 3-7 says "or Heartbeat Ack loss" without a branch for it under congestion. `judged`: as a loss of the
            /// radio's it shrinks cwnd, and either verdict may change the path.
            rsctp_heartbeat_loss: HeartbeatLoss, "ho2008 §3.5.1";
            /// What a new chunk loss rate weighs against the estimate so far; 1: each report as it comes, as formula (7).
            rsctp_loss_gain: Fraction, "ho2008 §3.3";
        }
    };
}

/// A profile of these switches, without RSCTP; its numbers are those that the paper used.
macro_rules! without_rsctp {
    ($profile:tt { $($own:tt)+ }) => {
        $profile {
            $($own)+
            rsctp: false,
            rsctp_primary_interval: Span(SECOND),
            rsctp_secondary_interval: Span(4 * SECOND),
            rsctp_beta: Fraction(0.2),
            rsctp_decrease_unit: DecreaseUnit::Segments,
            rsctp_ssthresh: SsthreshRule::EachReport,
            rsctp_congestion_floor: CongestionFloor::Profile,
            rsctp_secondary_cwnd: true,
            rsctp_probe_size: ProbeSize::Packet,
            rsctp_path_switch: true,
            rsctp_max_loss_rate: Fraction(0.05),
            rsctp_wireless_switch_needs_bandwidth: false,
            rsctp_heartbeat_loss: HeartbeatLoss::Ignored,
            rsctp_loss_gain: Fraction(1.0),
        }
    };
}

pub(crate) use {with_rsctp, without_rsctp};

/// See [`Profile::rsctp_probe_size`](crate::Profile::rsctp_probe_size).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeSize {
    /// The IP packet.
    Packet,
    /// The chunk.
    Chunk,
}
spelled!(ProbeSize: ProbeSize::Packet = "packet", ProbeSize::Chunk = "chunk");

/// See [`Profile::rsctp_heartbeat_loss`](crate::Profile::rsctp_heartbeat_loss).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeartbeatLoss {
    /// It moves no window and no path.
    Ignored,
    /// It is a loss like that of a chunk.
    Judged,
}
spelled!(HeartbeatLoss: HeartbeatLoss::Ignored = "ignored", HeartbeatLoss::Judged = "judged");

impl Profile {
    /// The numbers of the congestion control `rsctp`.
    pub fn rsctp_parameters(&self) -> RsctpParameters {
        RsctpParameters {
            beta: self.rsctp_beta.0,
            unit: self.rsctp_decrease_unit,
            ssthresh: self.rsctp_ssthresh,
            floor: self.rsctp_congestion_floor,
            secondary_cwnd: self.rsctp_secondary_cwnd,
        }
    }
}

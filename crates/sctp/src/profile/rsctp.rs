//! RSCTP switches (ho2008), with a choice for each point at which the paper contradicts itself.

use anabranch_congestion::rsctp::RsctpParameters;
use anabranch_settings::spelled;

use crate::profile::Profile;

/// Declares the switches of a profile like `switches`, followed by those of RSCTP.
macro_rules! with_rsctp {
    ($($own:tt)+) => {
        anabranch_settings::switches! {
            $($own)+
            /// Negotiate RSCTP in INIT and INIT ACK. HEARTBEATs then contain a time and a chunk
            /// count, and HEARTBEAT ACKs contain the measurements of the receiver. `congestion =
            /// "rsctp"` and `rsctp_path_switch` use the reports. Without RSCTP at both ends, the
            /// association is plain SCTP.
            rsctp: bool, "ho2008 §3";
            /// Time between HEARTBEATs on the path that carries new data, whether idle or not. In
            /// the paper, an interval of 1 s had the smallest error.
            rsctp_primary_interval: PositiveTime => INTERVAL, "ho2008 §4.2", needs rsctp;
            /// Time between pairs of HEARTBEATs on each path other than that for new data.
            rsctp_secondary_interval: PositiveTime => INTERVAL, "ho2008 §4.2", needs rsctp;
            /// Beta in `cwnd - beta sqrt(cwnd)`, the reduction after a loss attributed to the
            /// radio.
            rsctp_beta: Fraction, "ho2008 §4.2", needs congestion = "rsctp";
            /// Unit of cwnd in the formula of `rsctp_beta`, which the paper does not specify.
            /// `segments`: as the binomial algorithms are defined. `bytes`: as the variables of the
            /// ns-2 module; beta then has hardly any effect.
            rsctp_decrease_unit: DecreaseUnit, "ho2008 §3.5", needs congestion = "rsctp";
            /// When ssthresh is set to estimate x RTT. `each_report`: at each report, unless data
            /// was lost since the previous report, so that a reduction lasts until an interval
            /// without loss. `each_ack`: at each SACK outside of recovery, as in Fig. 3-7, which
            /// undoes the reduction of §3.5.1. `never`: reports do not change ssthresh.
            rsctp_ssthresh: SsthreshRule, "ho2008 §3.5.1", needs congestion = "rsctp";
            /// Minimum ssthresh after congestion, in units of `window_unit`: `two` (§3.5.1), `one`
            /// (Fig. 3-7), or `profile`: `ssthresh_floor`, so that RSCTP and SCTP differ only in
            /// the classification of losses.
            rsctp_congestion_floor: CongestionFloor, "ho2008 §3.5.1", needs congestion = "rsctp";
            /// A report on a standby path sets its cwnd to estimate x RTT.
            rsctp_secondary_cwnd: bool, "ho2008 §3.2", needs congestion = "rsctp";
            /// Size of the second HEARTBEAT of a pair; divided by the time between the two
            /// HEARTBEATs, it gives the bandwidth. `chunk`: the size of the chunk, as in the text
            /// of the paper; the estimate is then half of the bandwidth. `packet`: the size of the
            /// packet, which occupies the bottleneck.
            rsctp_probe_size: ProbeSize, "ho2008 §3.2", needs rsctp;
            /// Change the primary path when its chunk loss rate exceeds `rsctp_max_loss_rate`.
            /// After a loss attributed to congestion, change only to a path with more bandwidth.
            rsctp_path_switch: bool, "ho2008 §3.3", needs rsctp;
            /// MPLR: maximum chunk loss rate of a path, above which the primary path is changed.
            rsctp_max_loss_rate: Fraction, "ho2008 §4.3", needs rsctp,
                not with rsctp_path_switch = false;
            /// Also after a loss attributed to the radio, change only to a path with more
            /// bandwidth. §3.5.1 requires this, but §3.5 and Fig. 3-7 do not.
            rsctp_wireless_switch_needs_bandwidth: bool, "ho2008 §3.5.1", needs rsctp,
                not with rsctp_path_switch = false;
            /// Treatment of a missing answer to a HEARTBEAT on the path that carries data.
            /// `ignored`: it has no effect, because §3.5.1 mentions chunks only. `judged`: it
            /// counts as a loss (Fig. 3-7). If the loss is attributed to the radio, cwnd is
            /// reduced; any such loss may change the path.
            rsctp_heartbeat_loss: HeartbeatLoss, "ho2008 §3.5.1", needs rsctp;
            /// Weight of a new chunk loss rate relative to the previous estimate. 1: each report
            /// replaces the estimate, as in formula (7).
            rsctp_loss_gain: Fraction, "ho2008 §3.3", needs rsctp;
        }
    };
}

/// Profile with these switches and RSCTP turned off; the RSCTP parameters are those of the paper.
macro_rules! without_rsctp {
    ($profile:tt { $($own:tt)+ }) => {
        $profile {
            $($own)+
            rsctp: false,
            rsctp_primary_interval: PositiveTime(SECOND),
            rsctp_secondary_interval: PositiveTime(4 * SECOND),
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
#[non_exhaustive]
pub enum ProbeSize {
    /// Size of the IP packet.
    Packet,
    /// Size of the chunk.
    Chunk,
}
spelled!(ProbeSize: ProbeSize::Packet = "packet", ProbeSize::Chunk = "chunk");

/// See [`Profile::rsctp_heartbeat_loss`](crate::Profile::rsctp_heartbeat_loss).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeartbeatLoss {
    /// The loss changes neither cwnd nor the path.
    Ignored,
    /// The loss is treated like that of a chunk.
    Judged,
}
spelled!(HeartbeatLoss: HeartbeatLoss::Ignored = "ignored", HeartbeatLoss::Judged = "judged");

impl Profile {
    /// Parameters of the congestion control `rsctp`.
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

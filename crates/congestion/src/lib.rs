//! Congestion control algorithms for SCTP and TCP: one trait, one file per algorithm.
//!
//! A sender owns one controller per path. Loss detection is the task of the sender's recovery; a
//! controller is notified of losses and responds with a window. All quantities are bytes as counted
//! by the sender's profile (user data only, or whole chunks), so an algorithm does not depend on
//! the size of headers.
#![forbid(unsafe_code)]

/// Like [`windows_of_base`], for an algorithm that does not use the receiver's reports.
macro_rules! rest_of_base {
    () => {
        fn on_feedback(&mut self, now: ::anabranch_transport::Nanos, feedback: &$crate::Feedback) {
            self.base.on_feedback(now, feedback);
        }

        windows_of_base!();
    };
}

/// For an implementation of [`CongestionControl`] built on a [`WindowControl`] `base_control`: the
/// methods that are forwarded to the base.
macro_rules! windows_of_base {
    () => {
        fn on_idle(
            &mut self,
            now: ::anabranch_transport::Nanos,
            idle_for: ::anabranch_transport::Nanos,
            rto: ::anabranch_transport::Nanos,
        ) {
            self.base.on_idle(now, idle_for, rto);
        }

        fn on_app_limited(&mut self, now: ::anabranch_transport::Nanos) {
            self.base.on_app_limited(now);
        }

        fn on_undo(&mut self, cwnd: f64, ssthresh: u64) {
            self.base.on_undo(cwnd, ssthresh);
        }

        fn on_mtu(&mut self, segment: u64) {
            self.base.on_mtu(segment);
        }

        fn override_cwnd(&mut self, cwnd: f64) {
            self.base.override_cwnd(cwnd);
        }

        fn override_ssthresh(&mut self, ssthresh: f64) {
            self.base.override_ssthresh(ssthresh);
        }

        fn pacing_rate(&self) -> Option<f64> {
            self.base.pacing_rate()
        }

        fn cwnd(&self) -> u64 {
            self.base.cwnd()
        }

        fn cwnd_exact(&self) -> f64 {
            self.base.cwnd_exact()
        }

        fn ssthresh(&self) -> u64 {
            self.base.ssthresh()
        }

        fn partial_bytes_acked(&self) -> u64 {
            self.base.partial_bytes_acked()
        }
    };
}

/// For an implementation of [`CongestionControl`] that wraps another controller, `inner`: the
/// methods that are forwarded unchanged.
macro_rules! rest_of_inner {
    () => {
        fn on_packet_lost(&mut self, lost: &$crate::LostPacket) {
            self.inner.on_packet_lost(lost);
        }

        fn on_coupled_paths(&mut self, coupled: &$crate::CoupledPaths) {
            self.inner.on_coupled_paths(coupled);
        }

        fn between_losses(&self) -> u64 {
            self.inner.between_losses()
        }

        fn override_ssthresh(&mut self, ssthresh: f64) {
            self.inner.override_ssthresh(ssthresh);
        }

        fn wants_rate_samples(&self) -> bool {
            self.inner.wants_rate_samples()
        }

        fn counts_marks(&self) -> bool {
            self.inner.counts_marks()
        }

        fn loss_verdict(&self) -> Option<Option<$crate::rsctp::LossAttribution>> {
            self.inner.loss_verdict()
        }

        fn limits_itself(&self) -> bool {
            self.inner.limits_itself()
        }

        fn cwnd(&self) -> u64 {
            self.inner.cwnd()
        }

        fn cwnd_exact(&self) -> f64 {
            self.inner.cwnd_exact()
        }

        fn ssthresh(&self) -> u64 {
            self.inner.ssthresh()
        }

        fn partial_bytes_acked(&self) -> u64 {
            self.inner.partial_bytes_acked()
        }

        fn name(&self) -> &'static str {
            self.inner.name()
        }

        fn on_app_limited(&mut self, now: ::anabranch_transport::Nanos) {
            self.inner.on_app_limited(now);
        }
    };
}

mod algorithm;
mod base_control;
pub mod bbr;
pub mod bbr1;
mod bbr_settings;
pub mod binomial;
#[cfg(test)]
mod bottleneck;
pub mod careful_resume;
pub mod cmt_rp;
mod coupled_paths;
pub mod cubic;
pub mod dctcp;
pub mod delivery;
pub mod estimator;
mod fractional_window;
pub mod hybla;
pub mod hystart;
pub mod illinois;
pub mod lia;
pub mod olia;
pub mod pacer;
pub mod parameters;
pub mod prague;
pub mod rate_limited;
pub mod rate_sample;
pub mod recovery;
pub mod registry;
pub mod round_counter;
pub mod rsctp;
pub mod sctp_newreno;
pub mod tcp_newreno;
pub mod vegas;
pub mod veno;
pub mod westwood;
pub mod westwood_rate;

use std::fmt::Debug;

use anabranch_transport::Nanos;

use rsctp::LossAttribution;

pub use algorithm::{Algorithm, Base, Factory, Needs, ParameterLookup, Property, Protocol};
pub use careful_resume::CarefulResume;
pub use coupled_paths::{CoupledPath, CoupledPaths};
pub use delivery::{Delivery, DeliveryMeter};
pub use pacer::Pacer;
pub use rate_sample::{LostPacket, RateSample, RateSampler};

/// The information of one acknowledgement about one path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AckSample {
    /// Time of arrival.
    pub now: Nanos,
    /// Bytes newly acknowledged on this path, by the cumulative point and by gap ack blocks.
    pub bytes_acked: u64,
    /// Segments (chunks) newly acknowledged on this path.
    pub segments_acked: u32,
    /// The cumulative acknowledgement point advanced.
    pub cumulative_advanced: bool,
    /// The acknowledgement reports marks (TCP: ECN-Echo). Exact only if the receiver counts marks
    /// (RFC 9768) or echoes each mark, see [`CongestionControl::counts_marks`].
    pub marked: bool,
    /// Number of bytes that it reports as marked: the receiver's count, or all of `bytes_acked`
    /// with ECN-Echo.
    pub bytes_marked: u64,
    /// Bytes outstanding on this path before this acknowledgement.
    pub flightsize_before: u64,
    /// Bytes outstanding on this path after it.
    pub flightsize_after: u64,
    /// The sender was in fast recovery before this acknowledgement, or still is.
    pub in_recovery: bool,
    /// A round-trip time measured by it (subject to Karn's rule), if any.
    pub rtt: Option<Nanos>,
    /// The round-trip time of the latest segment among those newly acknowledged, if it was sent
    /// only once. Measured for each acknowledgement, but only if the controller [requests
    /// it](CongestionControl::wants_latest_rtt).
    pub latest_rtt: Option<Nanos>,
    /// Smoothed round-trip time, once there is one.
    pub srtt: Option<Nanos>,
    /// The delivery of the path in the round trip that this acknowledgement ends, if it ends one.
    pub delivery: Option<Delivery>,
    /// The delivery rate of the path, if the controller [requests
    /// it](CongestionControl::wants_rate_samples).
    pub rate: Option<RateSample>,
}

/// The reason for which the sender considers data lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// Missing reports or duplicate acknowledgements reached the threshold (RFC 9260 §7.2.4, RFC
    /// 5681 §3.2).
    FastRetransmit,
    /// The retransmission timer expired (RFC 9260 §6.3.3, RFC 6298 §5).
    Timeout,
}

/// The receiver's report about the path, if an extension provides one, together with related state
/// of the sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// Available bandwidth measured by the receiver, bytes per second; `None`: unknown.
    pub available_bandwidth: Option<f64>,
    /// Fraction of lost chunks, 0 to 1; `None`: no chunk was sent that could be lost.
    pub loss_rate: Option<f64>,
    /// Smoothed round-trip time at the sender, once measured.
    pub srtt: Option<Nanos>,
    /// New data is sent on this path; otherwise it is a backup path.
    pub carries_data: bool,
    /// The peer's latest advertised receive window, bytes: a larger congestion window is useless.
    pub peer_window: u64,
}

/// A controller whose windows can be set by another algorithm. [`westwood`] and [`binomial`] are
/// built on it, so that slow start, the unit and the rules of growth remain those of the protocol.
pub trait WindowControl: CongestionControl {
    /// Growth of the window per round trip of congestion avoidance, bytes.
    fn unit(&self) -> u64;

    /// Whether the window is in slow start for the next acknowledgement.
    fn in_slow_start(&self) -> bool;

    /// Minimum ssthresh after a loss, bytes.
    fn least_ssthresh(&self) -> u64;

    /// Sets the window, bytes.
    fn set_cwnd(&mut self, cwnd: f64);

    /// Sets the slow-start threshold, bytes.
    fn set_ssthresh(&mut self, ssthresh: f64);

    /// Reduces the window to `left` bytes after a loss, but not below [`Self::least_ssthresh`].
    /// After a timeout only ssthresh is set, because the base has already set the loss window.
    fn reduce_to(&mut self, left: f64, cause: LossCause) {
        let left = left.max(self.least_ssthresh() as f64);
        self.set_ssthresh(left);
        if cause == LossCause::FastRetransmit {
            self.set_cwnd(left);
        }
    }

    /// Limits the window to `most` bytes. This is required after a mark, which must not increase
    /// the window: the minimum ssthresh of the rules for losses may increase a small one.
    fn cap_cwnd(&mut self, most: f64) {
        if self.cwnd_exact() > most {
            self.set_cwnd(most);
        }
    }
}

/// A congestion control algorithm for one path.
pub trait CongestionControl: Debug + Send {
    /// `bytes` were sent; `flightsize` already includes them.
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        let _ = (now, bytes, flightsize);
    }

    /// The application has no more data to send, and the window is not full.
    fn on_app_limited(&mut self, now: Nanos) {
        let _ = now;
    }

    /// An acknowledgement arrived.
    fn on_ack(&mut self, ack: &AckSample);

    /// The receiver reports packets marked with CE. Called once per window of data. The default
    /// responds as to a loss detected by missing reports (RFC 3168 §6.1.2); an implementation must
    /// not increase the window.
    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        self.on_loss(now, LossCause::FastRetransmit, flightsize);
    }

    /// A loss was detected; `flightsize` is the number of bytes that were outstanding before it.
    /// Called once per loss event, which the recovery profile defines.
    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64);

    /// A packet was lost. Called only if the controller requests [rate
    /// samples](Self::wants_rate_samples), for each packet, before [`Self::on_loss`] is called for
    /// the event.
    fn on_packet_lost(&mut self, lost: &LostPacket) {
        let _ = lost;
    }

    /// The last reduction was spurious: the window should be restored to at least `cwnd`, and
    /// ssthresh to `ssthresh`, bytes.
    fn on_undo(&mut self, cwnd: f64, ssthresh: u64) {
        let _ = (cwnd, ssthresh);
    }

    /// A packet that only probes the path (a HEARTBEAT) was lost.
    fn on_heartbeat_lost(&mut self, now: Nanos) {
        let _ = now;
    }

    /// The receiver reported its measurements.
    fn on_feedback(&mut self, now: Nanos, feedback: &Feedback) {
        let _ = (now, feedback);
    }

    /// The state of all paths of the association, including this one, if they are used
    /// concurrently. Called before each acknowledgement and loss.
    fn on_coupled_paths(&mut self, coupled: &CoupledPaths) {
        let _ = coupled;
    }

    /// Bytes acknowledged between two losses, if the algorithm counts them. Used by algorithms that
    /// compare paths ([`CoupledPaths::is_best`]).
    fn between_losses(&self) -> u64 {
        0
    }

    /// No packet was sent on the path for `idle_for`, while the retransmission timeout was `rto`
    /// (RFC 9260 §7.2.1: cwnd is halved per RTO; RFC 5681 §4.1: restart window).
    fn on_idle(&mut self, now: Nanos, idle_for: Nanos, rto: Nanos) {
        let _ = (now, idle_for, rto);
    }

    /// The largest segment changed (path MTU discovery), bytes as the profile counts them.
    fn on_mtu(&mut self, segment: u64) {
        let _ = segment;
    }

    /// Sets the window, bytes, by a rule outside of the algorithm (RFC 9959). An algorithm without
    /// an implementation keeps its window, so that such a rule has no effect.
    fn override_cwnd(&mut self, cwnd: f64) {
        let _ = cwnd;
    }

    /// Sets the slow-start threshold, bytes, by a rule outside of the algorithm (RFC 9959).
    fn override_ssthresh(&mut self, ssthresh: f64) {
        let _ = ssthresh;
    }

    /// The state of Careful Resume, if this controller [is wrapped by it](CarefulResume).
    fn careful_resume(&self) -> Option<&CarefulResume> {
        None
    }

    /// Like [`Self::careful_resume`], to [supply](CarefulResume::resume) saved parameters.
    fn careful_resume_mut(&mut self) -> Option<&mut CarefulResume> {
        None
    }

    /// The cause to which it attributes a loss that occurs now, if the algorithm distinguishes
    /// causes; `Some(None)`: not yet known.
    fn loss_verdict(&self) -> Option<Option<LossAttribution>> {
        None
    }

    /// Whether acknowledgements should carry [the latest round-trip time](AckSample::latest_rtt). A
    /// sender must check this before each acknowledgement.
    fn wants_latest_rtt(&self) -> bool {
        false
    }

    /// Whether acknowledgements should carry [rate samples](AckSample::rate), and each lost packet
    /// should be reported.
    fn wants_rate_samples(&self) -> bool {
        false
    }

    /// Whether the control responds to the fraction of marked bytes: receivers must echo each mark,
    /// until the next packet without one (RFC 8257 §3.2). A sender must check this before it sends
    /// the first packet, and must also echo marks accordingly as a receiver.
    fn counts_marks(&self) -> bool {
        false
    }

    /// The algorithm currently limits its own rate on purpose, so that rate samples do not show the
    /// capacity of the path.
    fn limits_itself(&self) -> bool {
        false
    }

    /// Congestion window, bytes.
    fn cwnd(&self) -> u64;

    /// Congestion window before rounding, bytes; TCP's grows by fractions of a segment.
    fn cwnd_exact(&self) -> f64 {
        self.cwnd() as f64
    }

    /// Slow-start threshold, bytes.
    fn ssthresh(&self) -> u64;

    /// Bytes acknowledged towards the next increase in congestion avoidance (RFC 9260 §7.2.2); 0 if
    /// the algorithm has no such counter.
    fn partial_bytes_acked(&self) -> u64 {
        0
    }

    /// Pacing rate, in bytes per second as counted by the sender's profile; `None`: packets are
    /// sent as the window permits, unless the sender itself spreads a window over the round trip
    /// (see [`Pacer`]).
    fn pacing_rate(&self) -> Option<f64> {
        None
    }

    /// Name in specs and reports.
    fn name(&self) -> &'static str;
}

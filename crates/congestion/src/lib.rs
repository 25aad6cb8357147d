//! Congestion control algorithms for SCTP and TCP: one trait, and one file per algorithm.
//!
//! A sender owns one controller per path. The sender's recovery detects losses, and notifies the
//! controller, which responds with a window. All sizes are bytes as the sender's profile counts
//! them (user data only, or whole chunks), so an algorithm does not depend on the size of headers.
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations, unnameable_types, unreachable_pub)]
#![warn(clippy::use_self)]

/// Like [`windows_of_base`], with further methods, for an algorithm that does not use the
/// receiver's reports.
macro_rules! rest_of_base {
    () => {
        fn on_feedback(&mut self, now: ::anabranch_transport::Nanos, feedback: &$crate::Feedback) {
            self.base.on_feedback(now, feedback);
        }

        windows_of_base!();
    };
}

/// Methods that an implementation of [`CongestionControl`] forwards to its base, a
/// [`WindowControl`] in the field `base`.
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

/// Methods that an implementation of [`CongestionControl`] which wraps another controller, `inner`,
/// forwards unchanged.
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

pub use algorithm::{Algorithm, Base, Factory, ParameterLookup, Property, Protocol, Requirement};
pub use careful_resume::CarefulResume;
pub use coupled_paths::{CoupledPath, CoupledPaths};
pub use delivery::{Delivery, DeliveryMeter};
pub use pacer::Pacer;
pub use rate_sample::{LostPacket, RateSample, RateSampler};

/// Information that one acknowledgement provides about one path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AckSample {
    /// Time at which the acknowledgement arrived, nanoseconds.
    pub now: Nanos,
    /// Bytes newly acknowledged on this path, by the cumulative acknowledgement and by Gap Ack
    /// Blocks.
    pub bytes_acked: u64,
    /// Segments (chunks) newly acknowledged on this path.
    pub segments_acked: u32,
    /// Whether the cumulative acknowledgement point advanced.
    pub cumulative_advanced: bool,
    /// Whether the acknowledgement reports marks (TCP: ECN-Echo). This is exact only if the
    /// receiver counts marks (RFC 9768) or echoes each mark; see
    /// [`CongestionControl::counts_marks`].
    pub marked: bool,
    /// Number of bytes reported as marked: the receiver's count, or with ECN-Echo all of
    /// `bytes_acked`.
    pub bytes_marked: u64,
    /// Bytes outstanding on this path before this acknowledgement.
    pub flightsize_before: u64,
    /// Bytes outstanding on this path after this acknowledgement.
    pub flightsize_after: u64,
    /// Whether the sender was in fast recovery before this acknowledgement, or still is.
    pub in_recovery: bool,
    /// Round-trip time that this acknowledgement measured (subject to Karn's rule), nanoseconds.
    pub rtt: Option<Nanos>,
    /// Round-trip time of the latest segment among those newly acknowledged, if it was sent only
    /// once, nanoseconds. It is measured for each acknowledgement, but only if the controller
    /// [requests it](CongestionControl::wants_latest_rtt).
    pub latest_rtt: Option<Nanos>,
    /// Smoothed round-trip time, nanoseconds; `None` before the first measurement.
    pub srtt: Option<Nanos>,
    /// Delivery of the path in the round trip that this acknowledgement ends; `None` if it ends no
    /// round trip.
    pub delivery: Option<Delivery>,
    /// Delivery rate of the path, if the controller [requests
    /// it](CongestionControl::wants_rate_samples).
    pub rate: Option<RateSample>,
}

/// Reason why the sender considers data lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// Miss indications or duplicate acknowledgements reached the threshold (RFC 9260 §7.2.4, RFC
    /// 5681 §3.2).
    FastRetransmit,
    /// The retransmission timer expired (RFC 9260 §6.3.3, RFC 6298 §5).
    Timeout,
}

/// Report of the receiver about the path, if an extension provides one, with related state of the
/// sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// Available bandwidth that the receiver measured, bytes per second; `None` if unknown.
    pub available_bandwidth: Option<f64>,
    /// Fraction of lost chunks, 0 to 1; `None` if no chunk was sent.
    pub loss_rate: Option<f64>,
    /// Smoothed round-trip time at the sender, nanoseconds; `None` before the first measurement.
    pub srtt: Option<Nanos>,
    /// Whether new data is sent on this path; otherwise it is a backup path.
    pub carries_data: bool,
    /// Latest receive window that the peer advertised, bytes. A larger congestion window would have
    /// no effect.
    pub peer_window: u64,
}

/// Controller whose windows another algorithm can set. [`westwood`] and [`binomial`] are built on
/// such a controller, so that slow start, the unit and the rules of growth remain those of the
/// protocol.
pub trait WindowControl: CongestionControl {
    /// Growth of the window per round trip in congestion avoidance, bytes.
    fn unit(&self) -> u64;

    /// Whether the next acknowledgement is processed in slow start.
    fn in_slow_start(&self) -> bool;

    /// Minimum ssthresh after a loss, bytes.
    fn least_ssthresh(&self) -> u64;

    /// Sets the window, bytes.
    fn set_cwnd(&mut self, cwnd: f64);

    /// Sets the slow-start threshold, bytes.
    fn set_ssthresh(&mut self, ssthresh: f64);

    /// Reduces the window to `left` bytes after a loss, but at least to [`Self::least_ssthresh`].
    /// After a timeout only ssthresh is set, because the base has already set the window to the
    /// loss window.
    fn reduce_to(&mut self, left: f64, cause: LossCause) {
        let left = left.max(self.least_ssthresh() as f64);
        self.set_ssthresh(left);
        if cause == LossCause::FastRetransmit {
            self.set_cwnd(left);
        }
    }

    /// Limits the window to `most` bytes. It must be called after the response to a mark, because a
    /// mark must not increase the window, and the minimum ssthresh of the rules for losses could
    /// increase a small window.
    fn cap_cwnd(&mut self, most: f64) {
        if self.cwnd_exact() > most {
            self.set_cwnd(most);
        }
    }
}

/// Congestion control algorithm for one path.
pub trait CongestionControl: Debug + Send {
    /// Called when `bytes` bytes were sent. `flightsize` includes them.
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        let _ = (now, bytes, flightsize);
    }

    /// Called when the application has no more data to send, and the window is not full.
    fn on_app_limited(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Called for each acknowledgement.
    fn on_ack(&mut self, ack: &AckSample);

    /// Called when the receiver reports packets marked with CE, once per window of data. By default
    /// the response is that to a loss detected by fast retransmit (RFC 3168 §6.1.2). An
    /// implementation must not increase the window.
    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        self.on_loss(now, LossCause::FastRetransmit, flightsize);
    }

    /// Called when a loss is detected. `flightsize` is the number of bytes that were outstanding
    /// before it. It is called once per loss event; the recovery profile defines such an event.
    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64);

    /// Called for each lost packet, before [`Self::on_loss`] is called for the loss event. It is
    /// called only if the controller requests [rate samples](Self::wants_rate_samples).
    fn on_packet_lost(&mut self, lost: &LostPacket) {
        let _ = lost;
    }

    /// Called when the last reduction turns out to be spurious. The window should be restored to at
    /// least `cwnd` bytes, and ssthresh to `ssthresh` bytes.
    fn on_undo(&mut self, cwnd: f64, ssthresh: u64) {
        let _ = (cwnd, ssthresh);
    }

    /// Called when a packet that only probes the path (a HEARTBEAT) was lost.
    fn on_heartbeat_lost(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Called when the receiver has reported its measurements.
    fn on_feedback(&mut self, now: Nanos, feedback: &Feedback) {
        let _ = (now, feedback);
    }

    /// Called with the state of all paths of the association, including this one, if they are used
    /// concurrently. It is called before each acknowledgement and loss.
    fn on_coupled_paths(&mut self, coupled: &CoupledPaths) {
        let _ = coupled;
    }

    /// Number of bytes acknowledged between two losses; 0 if the algorithm does not count them.
    /// Algorithms that compare paths use it ([`CoupledPaths::is_best`]).
    fn between_losses(&self) -> u64 {
        0
    }

    /// Called when no packet was sent on the path for `idle_for` nanoseconds, with a retransmission
    /// timeout of `rto` (RFC 9260 §7.2.1: cwnd is halved per RTO; RFC 5681 §4.1: restart window).
    fn on_idle(&mut self, now: Nanos, idle_for: Nanos, rto: Nanos) {
        let _ = (now, idle_for, rto);
    }

    /// Called when the size of the largest segment has changed (path MTU discovery), in bytes as
    /// the profile counts them.
    fn on_mtu(&mut self, segment: u64) {
        let _ = segment;
    }

    /// Sets the window in bytes, by a rule outside of the algorithm (RFC 9959). An algorithm that
    /// does not implement this function keeps its window, so such a rule has no effect.
    fn override_cwnd(&mut self, cwnd: f64) {
        let _ = cwnd;
    }

    /// Sets the slow-start threshold in bytes, by a rule outside of the algorithm (RFC 9959).
    fn override_ssthresh(&mut self, ssthresh: f64) {
        let _ = ssthresh;
    }

    /// State of Careful Resume, if this controller [is wrapped by it](CarefulResume).
    fn careful_resume(&self) -> Option<&CarefulResume> {
        None
    }

    /// Like [`Self::careful_resume`], for [providing](CarefulResume::resume) saved parameters.
    fn careful_resume_mut(&mut self) -> Option<&mut CarefulResume> {
        None
    }

    /// Cause to which the algorithm would attribute a loss that occurs now. `None` if it does not
    /// distinguish causes, and `Some(None)` if the cause is not yet known.
    fn loss_verdict(&self) -> Option<Option<LossAttribution>> {
        None
    }

    /// Whether the sender should pass [the latest round-trip time](AckSample::latest_rtt) with each
    /// acknowledgement. A sender must check this before each acknowledgement.
    fn wants_latest_rtt(&self) -> bool {
        false
    }

    /// Whether the sender should pass [rate samples](AckSample::rate) with acknowledgements, and
    /// report each lost packet.
    fn wants_rate_samples(&self) -> bool {
        false
    }

    /// Whether the algorithm responds to the fraction of marked bytes. Receivers must then echo
    /// each mark, until the next packet without a mark (RFC 8257 §3.2). A sender must check this
    /// before it sends the first packet, and must then also echo marks in this way as a receiver.
    fn counts_marks(&self) -> bool {
        false
    }

    /// Whether the algorithm currently limits the sending rate on purpose, so that rate samples do
    /// not show the capacity of the path.
    fn limits_itself(&self) -> bool {
        false
    }

    /// Congestion window, bytes.
    fn cwnd(&self) -> u64;

    /// Congestion window before rounding, bytes. TCP's window grows by fractions of a segment.
    fn cwnd_exact(&self) -> f64 {
        self.cwnd() as f64
    }

    /// Slow-start threshold, bytes.
    fn ssthresh(&self) -> u64;

    /// Number of bytes acknowledged towards the next increase in congestion avoidance (RFC 9260
    /// §7.2.2); 0 if the algorithm has no such counter.
    fn partial_bytes_acked(&self) -> u64 {
        0
    }

    /// Pacing rate, in bytes per second as counted by the sender's profile. `None`: packets are
    /// sent as the window permits, unless the sender itself spreads the window over the round trip
    /// (see [`Pacer`]).
    fn pacing_rate(&self) -> Option<f64> {
        None
    }

    /// Name in specs and reports.
    fn name(&self) -> &'static str;
}

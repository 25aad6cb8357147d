//! How much may fly: one trait, one file per algorithm, shared by SCTP and TCP.
//!
//! A sender owns one controller per path. *What* is lost is the recovery's business; a controller hears of it and
//! answers with a window. All quantities are bytes as the sender's profile counts them (user data only, or whole
//! chunks), so an algorithm never needs to know a header's size.
#![forbid(unsafe_code)]

/// As [`windows_of_base`], for an algorithm that has no use for what the receiver reports.
macro_rules! rest_of_base {
    () => {
        fn on_feedback(&mut self, now: ::anabranch_transport::Nanos, feedback: &$crate::Feedback) {
            self.base.on_feedback(now, feedback);
        }

        windows_of_base!();
    };
}

/// Inside an implementation of [`CongestionControl`]: what an algorithm built on an [`Adjustable`] `base` leaves to it.
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

/// Inside an implementation of [`CongestionControl`] that wraps another controller, `inner`: the methods that it
/// passes on unchanged.
macro_rules! rest_of_inner {
    () => {
        fn on_packet_lost(&mut self, lost: &$crate::LostPacket) {
            self.inner.on_packet_lost(lost);
        }

        fn on_pool(&mut self, pool: &$crate::Pool) {
            self.inner.on_pool(pool);
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

        fn loss_verdict(&self) -> Option<Option<$crate::rsctp::Verdict>> {
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
mod base;
pub mod bbr;
pub mod bbr1;
pub mod binomial;
#[cfg(test)]
mod bottleneck;
pub mod careful_resume;
pub mod cmt_rp;
mod credit;
pub mod cubic;
pub mod dctcp;
pub mod delivery;
pub mod estimator;
pub mod hybla;
pub mod hystart;
pub mod illinois;
pub mod lia;
pub mod olia;
pub mod pacer;
mod pool;
pub mod rate_limited;
pub mod rate_sample;
pub mod recovery;
pub mod registry;
pub mod rounds;
pub mod rsctp;
pub mod sctp_newreno;
pub mod tcp_newreno;
pub mod tuning;
pub mod vegas;
pub mod veno;
pub mod westwood;
pub mod westwood_rate;

use std::fmt::Debug;

use anabranch_transport::Nanos;

use rsctp::Verdict;

pub use algorithm::{Algorithm, Base, Factory, Needs, Numbers, Property, Protocol};
pub use careful_resume::CarefulResume;
pub use delivery::{Delivery, DeliveryMeter};
pub use pacer::Pacer;
pub use pool::{Member, Pool};
pub use rate_sample::{LostPacket, RateSample, RateSampler};

/// What one acknowledgement told about one path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AckSample {
    /// When it arrived.
    pub now: Nanos,
    /// Bytes newly acknowledged on this path, by the cumulative point and by gap blocks.
    pub bytes_acked: u64,
    /// Segments (chunks) newly acknowledged on this path.
    pub segments_acked: u32,
    /// The cumulative acknowledgement point advanced.
    pub cumulative_advanced: bool,
    /// It tells of marks (TCP: ECN-Echo). Exact only where the receiver echoes each, see [`CongestionControl::counts_marks`].
    pub marked: bool,
    /// Bytes outstanding on this path before this acknowledgement.
    pub flightsize_before: u64,
    /// Bytes outstanding on this path after it.
    pub flightsize_after: u64,
    /// The sender is in fast recovery (before this acknowledgement was counted, or still).
    pub in_recovery: bool,
    /// A round-trip time measured by it (Karn's rule obeyed), if any.
    pub rtt: Option<Nanos>,
    /// The round-trip time of the newest segment among those newly acknowledged, if it was sent only once. Measured with
    /// each acknowledgement, but only for a controller that [asks for it](CongestionControl::wants_latest_rtt).
    pub latest_rtt: Option<Nanos>,
    /// Smoothed round-trip time, once there is one.
    pub srtt: Option<Nanos>,
    /// What the path delivered in the round trip that it ends, if it ends one.
    pub delivery: Option<Delivery>,
    /// How fast the path delivers, for a controller that [asks for it](CongestionControl::wants_rate_samples).
    pub rate: Option<RateSample>,
}

/// Why the sender believes that something was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// Missing reports or duplicate acknowledgements reached the threshold (RFC 9260 §7.2.4, RFC 5681 §3.2).
    FastRetransmit,
    /// The retransmission timer expired (RFC 9260 §6.3.3, RFC 6298 §5).
    Timeout,
}

/// What the receiver said of the path, where an extension lets it say anything, and what the sender knows beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// Available bandwidth seen by the receiver, bytes per second; `None`: it could not tell.
    pub available_bandwidth: Option<f64>,
    /// Share of chunks lost, 0 to 1; `None`: nothing was sent that could be lost.
    pub loss_rate: Option<f64>,
    /// Smoothed round-trip time at the sender, once measured.
    pub srtt: Option<Nanos>,
    /// New data takes this path; otherwise it stands by.
    pub carries_data: bool,
    /// The receive window that the peer advertised last, bytes: a larger window is of no use.
    pub peer_window: u64,
}

/// A controller whose windows another algorithm may move: what [`westwood`] and [`binomial`] are built on, so that slow
/// start, the unit and the rules of growth stay those of the protocol.
pub trait Adjustable: CongestionControl {
    /// What the window grows by in a round trip of congestion avoidance, bytes.
    fn unit(&self) -> u64;

    /// Whether the next acknowledgement finds the window in slow start.
    fn in_slow_start(&self) -> bool;

    /// The least ssthresh after a loss, bytes.
    fn least_ssthresh(&self) -> u64;

    /// Sets the window, bytes.
    fn set_cwnd(&mut self, cwnd: f64);

    /// Sets the slow-start threshold, bytes.
    fn set_ssthresh(&mut self, ssthresh: f64);

    /// A loss leaves `left` bytes of the window, but no less than [`Self::least_ssthresh`]. After a timeout that is ssthresh
    /// alone: the window is the loss window that the base has set.
    fn fall_to(&mut self, left: f64, cause: LossCause) {
        let left = left.max(self.least_ssthresh() as f64);
        self.set_ssthresh(left);
        if cause == LossCause::FastRetransmit {
            self.set_cwnd(left);
        }
    }

    /// Cuts the window to `most` bytes where it is larger. Marks let no window grow, but the rules of a loss may: they have
    /// a least ssthresh, which lifts a small window.
    fn cap_cwnd(&mut self, most: f64) {
        if self.cwnd_exact() > most {
            self.set_cwnd(most);
        }
    }
}

/// A congestion control algorithm for one path.
pub trait CongestionControl: Debug + Send {
    /// `bytes` were sent; `flightsize` counts them already.
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        let _ = (now, bytes, flightsize);
    }

    /// The application has nothing more to send, and the window has room for more.
    fn on_app_limited(&mut self, now: Nanos) {
        let _ = now;
    }

    /// An acknowledgement arrived.
    fn on_ack(&mut self, ack: &AckSample);

    /// The receiver tells of packets that were marked with CE. Called once for a window of data. The default answers as
    /// to a loss that missing reports show (RFC 3168 §6.1.2); the window must not grow by it.
    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        self.on_loss(now, LossCause::FastRetransmit, flightsize);
    }

    /// A loss was detected; `flightsize` is what was outstanding just before. Called once per loss event, as the
    /// recovery profile defines the event.
    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64);

    /// A packet was found lost, for a controller that asks for [rate samples](Self::wants_rate_samples); each loss is told,
    /// before the event is by [`Self::on_loss`].
    fn on_packet_lost(&mut self, lost: &LostPacket) {
        let _ = lost;
    }

    /// What the last reduction answered was no loss: the window is to be at least `cwnd` again, and ssthresh `ssthresh`, bytes.
    fn on_undo(&mut self, cwnd: f64, ssthresh: u64) {
        let _ = (cwnd, ssthresh);
    }

    /// A packet that only measures the path was lost (a HEARTBEAT).
    fn on_heartbeat_lost(&mut self, now: Nanos) {
        let _ = now;
    }

    /// The receiver reported what it sees.
    fn on_feedback(&mut self, now: Nanos, feedback: &Feedback) {
        let _ = (now, feedback);
    }

    /// How the paths of the association stand, this one included, where it uses them at once; told before each
    /// acknowledgement and loss.
    fn on_pool(&mut self, pool: &Pool) {
        let _ = pool;
    }

    /// Bytes acknowledged between two losses, as far as the algorithm keeps count, for those that compare paths by it
    /// ([`Pool::is_best`]).
    fn between_losses(&self) -> u64 {
        0
    }

    /// Nothing was sent on the path for `idle_for`, while the retransmission timeout was `rto`
    /// (RFC 9260 §7.2.1: cwnd is halved per RTO; RFC 5681 §4.1: restart window).
    fn on_idle(&mut self, now: Nanos, idle_for: Nanos, rto: Nanos) {
        let _ = (now, idle_for, rto);
    }

    /// The largest segment changed (path MTU discovery), bytes as the profile counts them.
    fn on_mtu(&mut self, segment: u64) {
        let _ = segment;
    }

    /// Sets the window, bytes, by a rule outside of the algorithm (RFC 9959). An algorithm that does not
    /// implement it keeps its window, so that such a rule has no effect on it.
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

    /// The same, to [supply it](CarefulResume::resume) with saved parameters.
    fn careful_resume_mut(&mut self) -> Option<&mut CarefulResume> {
        None
    }

    /// What it attributes a loss to that happens now, if it distinguishes causes of losses; `Some(None)`: it cannot tell yet.
    fn loss_verdict(&self) -> Option<Option<Verdict>> {
        None
    }

    /// Whether acknowledgements are to tell [the latest round-trip time](AckSample::latest_rtt). A sender asks before each.
    fn wants_latest_rtt(&self) -> bool {
        false
    }

    /// Whether acknowledgements are to carry [rate samples](AckSample::rate), and losses are to be told one by one.
    fn wants_rate_samples(&self) -> bool {
        false
    }

    /// Whether it answers to the share of marked bytes: receivers are to echo each mark, until the next packet without one
    /// (RFC 8257 §3.2). A sender asks before anything is sent, and does as it says with what it receives itself, too.
    fn counts_marks(&self) -> bool {
        false
    }

    /// It holds the flow back on purpose: rate samples say little of the path.
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

    /// Bytes acknowledged towards the next increase in congestion avoidance (RFC 9260 §7.2.2); 0 where the
    /// algorithm has no such counter.
    fn partial_bytes_acked(&self) -> u64 {
        0
    }

    /// How fast packets are to go, in bytes per second as the sender's profile counts them; `None`: as the window lets
    /// them, unless the sender spreads a window over the round trip on its own (see [`Pacer`]).
    fn pacing_rate(&self) -> Option<f64> {
        None
    }

    /// Name in specs and reports.
    fn name(&self) -> &'static str;
}

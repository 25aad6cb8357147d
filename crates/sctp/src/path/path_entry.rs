//! State of one path, that is, of one destination address.

use anabranch_congestion::estimator::PathEstimator;
use anabranch_congestion::recovery::Prr;
use anabranch_congestion::rsctp::receiver_estimate::ReceiverEstimate;
use anabranch_congestion::{AckSample, CongestionControl, DeliveryMeter, Pacer, RateSampler};
use anabranch_transport::{Nanos, Path, Probe, Trace};
use anabranch_wire::serial::Tsn;

use super::new_path::PathComponents;
use super::rto::RtoEstimator;
use super::{CongestionEvent, Discovery, Heartbeat, LossRatio, PathRack, PathState};
use crate::compact_option::OptionalNanos;
use crate::config::Config;
use crate::profile::{Counts, IdleDecay};

/// Identifies a path of an association by a small number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(
    /// Index among the association's paths.
    pub u8,
);

/// State of the path to one destination address.
#[derive(Debug)]
#[non_exhaustive]
pub struct PathEntry {
    /// Local and remote address.
    pub(crate) path: Path,
    /// Peer's UDP port for UDP encapsulation (RFC 6951 §5.1); 0 without it.
    pub(crate) udp_port: u16,
    /// Path state, which determines whether the path may carry data.
    pub(crate) state: PathState,
    /// Whether the address is known to belong to the peer: it was confirmed by the handshake or a
    /// HEARTBEAT, or given by the user (RFC 9260 §5.4). An address that fails before its
    /// confirmation is inactive and not verified.
    pub(crate) verified: bool,
    /// Whether the address does not belong to the peer: another association's peer has verified it,
    /// or it is missing in the peer's INIT ACK. No packets are sent to the address, and lookups
    /// ignore it.
    pub(crate) disowned: bool,
    /// Path settings changed by the user, in addition to the bounds of the RTO: see
    /// [`Self::settings`].
    pub(super) heartbeat_interval: OptionalNanos,
    pub(super) path_max_retrans: u32,
    pub(super) pf_max_retrans: u32,
    /// Number of consecutive errors (RFC 9260 §8.2).
    pub(crate) error_count: u32,
    /// Retransmission timeout.
    pub(crate) rto: RtoEstimator,
    /// Congestion control.
    pub(crate) cc: Box<dyn CongestionControl>,
    /// Pacer, which determines when the next packet with DATA may be sent; `None` without pacing.
    pub(crate) pacer: Option<Box<Pacer>>,
    /// Meter of the delivery rate.
    pub(crate) delivery: DeliveryMeter,
    /// Rate estimator, if configured.
    pub(crate) estimator: Option<Box<dyn PathEstimator>>,
    /// Reports of the receiver about this path; only with RSCTP.
    pub(crate) receiver: Option<Box<ReceiverEstimate>>,
    /// DATA sent on this path so far.
    pub(crate) carried: Carried,
    /// Ratio of recently lost chunks.
    pub(crate) losses: LossRatio,
    /// Minimum round-trip time of DATA, once measured.
    pub(crate) rtt_min: OptionalNanos,
    /// Bytes in flight as the profile counts them, excluding chunks marked for retransmission.
    pub(crate) flightsize: u64,
    /// Number of bytes in chunks that were last sent on this path and are marked for
    /// retransmission.
    pub(crate) marked_bytes: u64,
    /// Maximum SCTP packet size in bytes, including the common header. Chunks that cannot be
    /// smaller may exceed it and are fragmented by IP.
    pub(crate) max_packet: usize,
    /// Number of bytes of each packet reserved for an AUTH chunk; `max_packet` does not include
    /// them.
    pub(super) reserved: usize,
    /// Path MTU discovery, if enabled.
    pub(crate) discovery: Option<Box<Discovery>>,
    /// Expiration time of T3-rtx; `None` while it is stopped.
    pub t3_deadline: Option<Nanos>,
    /// Time at which new DATA was last sent on this path. Retransmissions do not count, because
    /// they cannot measure a round trip; a path with retransmissions only is idle (RFC 9260 §8.3).
    pub(crate) last_sent: Nanos,
    /// HEARTBEAT state.
    pub(crate) heartbeat: Heartbeat,
    /// TSN of the chunk whose acknowledgment will measure the round-trip time (RFC 9260 §6.3.1 C4).
    pub(crate) timed: Option<Tsn>,
    /// Lower bound of the unacknowledged TSNs last sent on this path. A search for the lowest of
    /// these TSNs starts at the bound, and raises it.
    pub(crate) earliest: Option<Tsn>,
    /// Limit of the bytes in flight that replaces cwnd, if set. After a timeout it is one byte,
    /// which permits one packet at a time until a SACK arrives (RFC 9260 §7.2.1). In a recovery
    /// with `prr` it is the limit of PRR.
    pub(crate) most_in_flight: OptionalNanos,
    /// End of the period in which further ICMP messages count as the same error.
    pub(crate) unreachable_until: OptionalNanos,
    /// Last reduction of cwnd for losses or marks.
    pub(crate) reduction: Option<CongestionEvent>,
    /// Time at which cwnd is next reduced because the path is idle.
    pub(crate) decay_at: OptionalNanos,
    /// RACK state, if enabled.
    pub(crate) rack: Option<Box<PathRack>>,
    /// PRR state during a recovery.
    pub(crate) prr: Option<Box<Prr>>,
    /// Rate sampler, if the congestion control needs it.
    pub(crate) sampler: Option<Box<RateSampler>>,
}

/// DATA sent on a path so far, including retransmissions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carried {
    /// Number of chunks, modulo 2^32.
    pub(crate) chunks: u32,
    /// Bytes of the complete chunks, with header and padding.
    pub(crate) bytes: u64,
}

impl Carried {
    /// Counts `chunks` sent chunks with a total of `bytes` bytes.
    #[inline]
    pub(crate) fn count_all(&mut self, chunks: u32, bytes: u64) {
        self.chunks = self.chunks.wrapping_add(chunks);
        self.bytes += bytes;
    }

    /// Counts one sent chunk with `user_data` bytes of user data.
    #[inline]
    pub(crate) fn count(&mut self, user_data: usize) {
        self.chunks = self.chunks.wrapping_add(1);
        self.bytes += Counts::PaddedChunk.bytes(user_data);
    }
}

impl PathEntry {
    pub(super) fn new(config: &Config, path: Path, state: PathState) -> Self {
        Self::with(config, path, state, PathComponents::of(config, path.remote))
    }

    /// Constructs a path from components that are already allocated. Because nothing can fail after
    /// these allocations, the caller can build the path in place, without a move.
    #[inline(always)]
    pub(super) fn with(
        config: &Config,
        path: Path,
        state: PathState,
        made: PathComponents,
    ) -> Self {
        Self {
            path,
            udp_port: 0,
            state,
            verified: state != PathState::Unconfirmed,
            disowned: false,
            heartbeat_interval: config.heartbeat_interval.into(),
            path_max_retrans: config.path_max_retrans,
            pf_max_retrans: config.pf_max_retrans,
            error_count: 0,
            rto: RtoEstimator::new(config.profile.rto_initial.0, config.rto_min, config.rto_max),
            sampler: made.sampler,
            cc: made.cc,
            pacer: made.pacer,
            delivery: DeliveryMeter::default(),
            estimator: made.estimator,
            receiver: None,
            carried: Carried::default(),
            losses: LossRatio::default(),
            rtt_min: OptionalNanos::NONE,
            flightsize: 0,
            marked_bytes: 0,
            max_packet: made.max_packet,
            reserved: 0,
            discovery: made.discovery,
            t3_deadline: None,
            last_sent: 0,
            heartbeat: Heartbeat::default(),
            timed: None,
            earliest: None,
            most_in_flight: OptionalNanos::NONE,
            unreachable_until: OptionalNanos::NONE,
            reduction: None,
            decay_at: OptionalNanos::NONE,
            rack: made.rack,
            prr: None,
        }
    }

    /// Whether chunks other than HEARTBEAT and HEARTBEAT ACK may be sent here (RFC 9260 §5.4).
    pub fn is_verified(&self) -> bool {
        self.verified && self.state != PathState::Unconfirmed
    }

    /// Whether the address does not belong to the peer, or no longer does, so that no packets are
    /// sent to it.
    pub fn is_disowned(&self) -> bool {
        self.disowned
    }

    /// Records a round-trip time measured by DATA or HEARTBEAT, in nanoseconds.
    pub fn measure_rtt(&mut self, now: Nanos, id: PathId, rtt: Nanos, trace: &mut Trace) {
        self.rto.measure(rtt);
        let seconds = anabranch_transport::time::seconds;
        trace.record(
            now,
            Probe::Srtt,
            id.0.into(),
            self.rto.srtt().map_or(0.0, seconds),
        );
        trace.record(now, Probe::Rto, id.0.into(), seconds(self.rto.rto()));
    }

    /// Passes an acknowledgment to the rate estimator.
    pub(crate) fn estimate(&mut self, id: PathId, ack: &AckSample, trace: &mut Trace) {
        let Some(estimator) = &mut self.estimator else {
            return;
        };
        let before = estimator.rate();
        estimator.on_ack(ack);
        let after = estimator.rate();
        if let (true, Some(rate)) = (before != after, after) {
            trace.record(ack.now, Probe::RateEstimate, id.0.into(), rate);
        }
    }

    /// Whether cwnd allows another packet (RFC 9260 §6.1 B): the flightsize may exceed cwnd by less
    /// than a packet.
    pub(crate) fn has_room(&self) -> bool {
        let limit = match self.most_in_flight.get() {
            Some(most) => most,
            None => self.cc.cwnd(),
        };
        self.flightsize < limit
    }

    /// Records that chunk `tsn`, last sent here, waits for an acknowledgment again.
    pub(crate) fn watch(&mut self, tsn: Tsn) {
        let earliest = self.earliest.filter(|earliest| earliest.lt(tsn));
        self.earliest = Some(earliest.unwrap_or(tsn));
    }

    /// Whether cwnd and pacing allow another packet.
    pub(crate) fn may_go(&self, now: Nanos) -> bool {
        self.has_room() && self.is_paced_for(now)
    }

    /// Whether pacing alone allows another packet.
    #[inline]
    pub(crate) fn is_paced_for(&self, now: Nanos) -> bool {
        self.pacer.as_ref().is_none_or(|pacer| pacer.allows(now))
    }

    /// Time from which pacing allows another packet; 0: immediately.
    pub(crate) fn paced_from(&self) -> Nanos {
        self.pacer.as_ref().map_or(0, |pacer| pacer.opens())
    }

    /// Starts or restarts T3-rtx with the current RTO.
    pub(crate) fn start_t3(&mut self, now: Nanos) {
        self.t3_deadline = Some(now + self.rto.rto());
    }

    /// Reduces cwnd because the path was idle, if a reduction is due at `now`.
    pub(crate) fn decay(&mut self, now: Nanos, rule: IdleDecay) {
        let Some(due) = self.decay_at.get() else {
            return;
        };
        let idle = match rule {
            IdleDecay::Off => return,
            IdleDecay::Drained if self.flightsize + self.marked_bytes > 0 => return,
            IdleDecay::Drained | IdleDecay::SinceLastSend => now,
        };
        if idle >= due {
            let rto = self.rto.rto();
            let spans = (idle - due) / rto + 1;
            self.cc.on_idle(now, spans.saturating_mul(rto), rto);
            self.decay_at = OptionalNanos::some(due.saturating_add(spans.saturating_mul(rto)));
        }
    }
}

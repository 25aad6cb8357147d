//! Trace samples that a transport records at run time. If no probe is enabled, each recording costs
//! only one branch.
//!
//! A protocol calls [`Trace::record`] whenever a probed quantity changes. The driver should drain
//! the samples after each `handle_*` call and write them to aggregates or files, because memory use
//! would otherwise grow with the length of a run.

use crate::time::Nanos;

macro_rules! probes {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal, $unit:literal;)*) => {
        /// A quantity that can be recorded.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Probe { $($(#[doc = $doc])* $variant),* }

        impl Probe {
            /// All probes in the order of their numbers.
            pub const ALL: &'static [Probe] = &[$(Probe::$variant),*];

            /// Name used in specs, series files and figures.
            pub const fn name(self) -> &'static str {
                match self { $(Probe::$variant => $name),* }
            }

            /// Unit of the values: `bytes`, `s`, `bit/s`, `B/s`, `streams`, `segments` for the
            /// number of a segment, or `1` for a share, a state or the number of a path.
            pub const fn unit(self) -> &'static str {
                match self { $(Probe::$variant => $unit),* }
            }

            /// Description with unit. Each line begins with a space.
            pub const fn about(self) -> &'static str {
                match self { $(Probe::$variant => concat!($($doc),*)),* }
            }

            /// The probe with this name.
            pub fn from_name(name: &str) -> Option<Probe> {
                Self::ALL.iter().copied().find(|probe| probe.name() == name)
            }
        }
    };
}

probes! {
    /// Congestion window, bytes. Recorded when it changes.
    Cwnd = "cwnd", "bytes";
    /// Slow-start threshold, bytes. Recorded when it changes.
    Ssthresh = "ssthresh", "bytes";
    /// Outstanding bytes, as the profile counts them. Recorded when the number changes.
    FlightSize = "flightsize", "bytes";
    /// Receive window of the peer as computed by the sender: the advertised window minus
    /// outstanding bytes.
    PeerRwnd = "peer_rwnd", "bytes";
    /// The window this receiver advertises in a SACK or acknowledgement, bytes.
    AdvertisedRwnd = "a_rwnd", "bytes";
    /// Retransmission timeout, seconds.
    Rto = "rto", "s";
    /// Smoothed round-trip time, seconds.
    Srtt = "srtt", "s";
    /// First transmission of a data segment. The value is the number of the segment, counted from 0
    /// for the first segment of the flow.
    Sent = "sent", "segments";
    /// Retransmission of a data segment. The value is its number, counted from 0.
    Retransmitted = "retransmitted", "segments";
    /// Cumulative acknowledgement received. The value is the number of the first segment that it
    /// does not cover, counted from 0.
    CumulativeAck = "cumulative_ack", "segments";
    /// Acknowledgement received that did not advance the cumulative acknowledgement. The value is
    /// the cumulative acknowledgement that it repeats.
    DuplicateAck = "duplicate_ack", "segments";
    /// Fast retransmit entered. The value is the number of the segment.
    FastRetransmit = "fast_retransmit", "segments";
    /// A window was reduced, or not increased, because the peer reported a mark (RFC 3168 §6.1.2).
    /// The value is the number of the first unacknowledged segment (TCP) or of the marked segment
    /// (SCTP).
    EcnResponse = "ecn_response", "segments";
    /// Retransmission timer expired. The value is the number of the earliest outstanding segment.
    Timeout = "timeout", "segments";
    /// Data segment received for the first time. The value is its number, counted from 0.
    Received = "received", "segments";
    /// Data segment received that had been received before. The value is the number of the segment,
    /// counted from 0.
    Duplicate = "duplicate", "segments";
    /// A message (SCTP) or a run of bytes (TCP) was delivered to the application. The value is its
    /// size in bytes.
    Delivered = "delivered", "bytes";
    /// Time that a complete message had to wait for an earlier one before it was delivered,
    /// seconds.
    HolBlockingDelay = "hol_blocking_delay", "s";
    /// Bytes in the receive buffer. Recorded when the number changes. SCTP: index 0 is the whole
    /// buffer, and index n + 1 is the part of stream n. A read by the application is recorded with
    /// the next packet.
    ReceiveBufferUsed = "receive_buffer_used", "bytes";
    /// Number of streams that the sender uses.
    StreamsInUse = "streams_in_use", "streams";
    /// Bandwidth of a path as its receiver reports it (RSCTP), bits per second. Recorded with each
    /// report.
    AvailableBandwidth = "available_bandwidth", "bit/s";
    /// Share of the chunks of a path that were lost, as its receiver reports it (RSCTP), 0 to 1.
    /// Recorded with each report.
    ChunkLossRate = "chunk_loss_rate", "1";
    /// Assumed cause of a loss (RSCTP): 1 congestion, 2 radio, 0 unknown because there is no
    /// measurement yet. An unknown cause is handled as congestion. Recorded before the window is
    /// reduced.
    LossVerdict = "loss_verdict", "1";
    /// A HEARTBEAT or HEARTBEAT ACK was sent. The value is the size of its IP packet, or of the
    /// chunk if it shared a packet.
    HeartbeatBytes = "heartbeat_bytes", "bytes";
    /// From now on new data is sent on another path. The value is the number of that path. The
    /// initial path, 0, is not recorded.
    ActivePath = "active_path", "1";
    /// The state of a path has changed: 0 inactive, 1 active, 2 potentially failed, 3 unconfirmed.
    PathState = "path_state", "1";
    /// Estimate of the bandwidth, bytes per second.
    RateEstimate = "rate_estimate", "B/s";
    /// Number of bytes in the network as estimated by TCP's loss recovery, after an acknowledgement
    /// and before the next transmission.
    Pipe = "pipe", "bytes";
    /// Phase of Careful Resume (RFC 9959) on a path: 0 normal, 1 reconnaissance, 2 unvalidated, 3
    /// validating, 4 safe retreat. Recorded when it changes.
    ResumePhase = "resume_phase", "1";
}

/// A set of probes, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeSet(u64);

impl ProbeSet {
    /// No probe.
    pub const NONE: Self = Self(0);
    /// Every probe.
    pub const ALL: Self = Self(u64::MAX);

    /// This set with `probe` added.
    #[must_use]
    pub const fn with(self, probe: Probe) -> Self {
        Self(self.0 | 1 << probe as u8)
    }

    /// This set without `probe`.
    #[must_use]
    pub const fn without(self, probe: Probe) -> Self {
        Self(self.0 & !(1 << probe as u8))
    }

    /// This set with all of `other` added.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether `probe` is a member.
    pub const fn contains(self, probe: Probe) -> bool {
        self.0 >> probe as u8 & 1 == 1
    }

    /// Whether all members are in `other`.
    pub const fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Whether the set has no members.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// One recorded value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Time of the sample.
    pub at: Nanos,
    /// Recorded quantity.
    pub probe: Probe,
    /// Index of the path (SCTP) or stream; 0 if there is only one.
    pub index: u16,
    /// Value in the unit of the probe. Whole numbers up to 2^53 are exact.
    pub value: f64,
}

/// Buffer for recorded samples.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    wanted: ProbeSet,
    samples: Vec<Sample>,
}

impl Trace {
    /// Creates a buffer that records samples of the probes in `wanted`.
    pub fn new(wanted: ProbeSet) -> Self {
        Self {
            wanted,
            samples: Vec::new(),
        }
    }

    /// Whether `probe` is enabled. Work that is needed only for a sample should be skipped if the
    /// probe is not enabled.
    #[inline]
    pub fn wants(&self, probe: Probe) -> bool {
        self.wanted.contains(probe)
    }

    /// Whether all probes that are enabled are in `set`.
    #[inline]
    pub fn wants_only(&self, set: ProbeSet) -> bool {
        self.wanted.is_within(set)
    }

    /// Records a value if `probe` is enabled.
    #[inline]
    pub fn record(&mut self, at: Nanos, probe: Probe, index: u16, value: f64) {
        if self.wanted.contains(probe) {
            self.samples.push(Sample {
                at,
                probe,
                index,
                value,
            });
        }
    }

    /// Removes and returns all recorded samples, oldest first. The memory of the buffer is kept for
    /// reuse.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Sample> {
        self.samples.drain(..)
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }
}

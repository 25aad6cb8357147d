//! Link probes: samples that are streamed to a recorder. Without a probe no samples are recorded.

use anabranch_transport::{Nanos, time};

use crate::ids::{LinkDirection, LinkId};
use crate::packet::DropReason;

/// Selection of the quantities of a link direction that are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkProbes {
    /// Throughput, averaged over bins of this length in nanoseconds; the first bin begins at
    /// time 0.
    pub throughput: Option<Nanos>,
    /// Number of packets in the queue, at every change.
    pub queue: bool,
    /// Sojourn time of each packet in the queue.
    pub sojourn: bool,
    /// Every dropped packet.
    pub drops: bool,
    /// Every packet in which the queue discipline sets CE.
    pub marks: bool,
}

impl LinkProbes {
    /// The probes that `self` or `others` selects. If both have a bin length, that of `self` is
    /// used.
    #[must_use]
    pub fn union(self, others: Self) -> Self {
        Self {
            throughput: self.throughput.or(others.throughput),
            queue: self.queue || others.queue,
            sojourn: self.sojourn || others.sojourn,
            drops: self.drops || others.drops,
            marks: self.marks || others.marks,
        }
    }
}

/// A recorded quantity of a link direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkProbe {
    /// Bytes per second (IP headers included) that arrived at the far end during the bin that
    /// begins at the sample's time.
    Throughput,
    /// Packets in the queue, including the one in transmission, from the sample's time on.
    QueueLength,
    /// Sojourn time of a packet, recorded when its last bit is sent; the value is the time since it
    /// joined the queue, seconds.
    Sojourn,
    /// Drop of a packet for this reason; the value is the number of such drops so far.
    Dropped(DropReason),
    /// Mark of a packet with CE by the queue discipline; the value is the number of marked packets
    /// so far.
    Marked,
}

/// One recorded value of a link direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSample {
    /// Time of the sample, nanoseconds of simulated time. Samples of one probe are in the order of
    /// time, except for drops in the channel and by outages. These are reported when they are
    /// decided, up to a queueing delay ahead of their time.
    pub at: Nanos,
    /// The link.
    pub link: LinkId,
    /// Direction of the link.
    pub direction: LinkDirection,
    /// The recorded quantity.
    pub probe: LinkProbe,
    /// Value in the unit of the probe.
    pub value: f64,
}

/// The receiver of samples.
pub trait Recorder {
    /// Records a sample.
    fn record(&mut self, sample: LinkSample);
}

/// Any function that takes a sample is a recorder.
impl<F: FnMut(LinkSample)> Recorder for F {
    fn record(&mut self, sample: LinkSample) {
        self(sample);
    }
}

/// Probes of one simplex link, and the samples that the world has not yet fetched.
#[derive(Debug)]
pub(crate) struct SimplexLinkProbes {
    wanted: LinkProbes,
    link: LinkId,
    direction: LinkDirection,
    /// Index of the current bin, and the bytes that arrived in it.
    bin: u64,
    bytes: u64,
    samples: Vec<LinkSample>,
}

impl SimplexLinkProbes {
    pub fn new(wanted: LinkProbes, link: LinkId, direction: LinkDirection) -> Self {
        Self {
            wanted,
            link,
            direction,
            bin: 0,
            bytes: 0,
            samples: Vec::new(),
        }
    }

    fn push(&mut self, at: Nanos, probe: LinkProbe, value: f64) {
        self.samples.push(LinkSample {
            at,
            link: self.link,
            direction: self.direction,
            probe,
            value,
        });
    }

    pub fn queue_length(&mut self, at: Nanos, packets: usize) {
        if self.wanted.queue {
            self.push(at, LinkProbe::QueueLength, packets as f64);
        }
    }

    pub fn sojourn(&mut self, at: Nanos, sojourn: Nanos) {
        if self.wanted.sojourn {
            self.push(at, LinkProbe::Sojourn, time::seconds(sojourn));
        }
    }

    pub fn dropped(&mut self, at: Nanos, reason: DropReason, so_far: u64) {
        if self.wanted.drops {
            self.push(at, LinkProbe::Dropped(reason), so_far as f64);
        }
    }

    pub fn marked(&mut self, at: Nanos, so_far: u64) {
        if self.wanted.marks {
            self.push(at, LinkProbe::Marked, so_far as f64);
        }
    }

    pub fn delivered(&mut self, now: Nanos, size: usize) {
        if self.wanted.throughput.is_some() {
            self.close_bins(now);
            self.bytes += size as u64;
        }
    }

    /// Records the throughput of all bins that ended by `now`.
    pub fn close_bins(&mut self, now: Nanos) {
        let Some(length) = self.wanted.throughput else {
            return;
        };
        while self.bin < now / length {
            let rate = self.bytes as f64 * 1e9 / length as f64;
            self.push(self.bin * length, LinkProbe::Throughput, rate);
            self.bin += 1;
            self.bytes = 0;
        }
    }

    /// Removes and returns the recorded samples; the buffer keeps its allocation.
    pub fn drain(&mut self) -> std::vec::Drain<'_, LinkSample> {
        self.samples.drain(..)
    }
}

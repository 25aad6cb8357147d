//! What a link tells while it runs: samples that stream to a recorder, and nothing at all when no probe is on.

use anabranch_transport::{Nanos, time};

use crate::ids::{Direction, LinkId};
use crate::packet::DropReason;

/// Which quantities of a link direction to record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkProbes {
    /// Throughput, averaged over bins of this length; the first begins at time 0.
    pub throughput: Option<Nanos>,
    /// Packets in the queue, at every change.
    pub queue: bool,
    /// How long each packet was in the queue.
    pub sojourn: bool,
    /// Every drop.
    pub drops: bool,
    /// Every mark.
    pub marks: bool,
}

impl LinkProbes {
    /// These and all of `others`; of two lengths of bins, this one.
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

/// A quantity of a link direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkProbe {
    /// Bytes per second, IP headers included, that arrived at the far end in the bin that begins at the sample's time.
    Throughput,
    /// Packets in the queue, the one in transmission included, from the sample's time on.
    QueueLength,
    /// A packet's last bit was sent; the value is how long ago it joined the queue, seconds.
    Sojourn,
    /// A packet was dropped for this reason; the value is how many were so far.
    Dropped(DropReason),
    /// The queue discipline has set CE in a packet; the value is in how many so far.
    Marked,
}

/// One recorded value of a link direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSample {
    /// When. Samples of one probe are in the order of time, except for drops in the air and by outages, which are told
    /// when they are decided and may lie a queueing delay ahead.
    pub at: Nanos,
    /// The link.
    pub link: LinkId,
    /// Its direction.
    pub direction: Direction,
    /// What.
    pub probe: LinkProbe,
    /// The value, in the probe's unit.
    pub value: f64,
}

/// Where samples go.
pub trait Recorder {
    /// Takes one sample.
    fn record(&mut self, sample: LinkSample);
}

/// Anything that takes a sample is a recorder.
impl<F: FnMut(LinkSample)> Recorder for F {
    fn record(&mut self, sample: LinkSample) {
        self(sample);
    }
}

/// The probes of one lane, and the samples that wait to be fetched by the world.
#[derive(Debug)]
pub(crate) struct LaneProbes {
    wanted: LinkProbes,
    link: LinkId,
    direction: Direction,
    /// Number of the bin being filled, and the bytes in it.
    bin: u64,
    bytes: u64,
    samples: Vec<LinkSample>,
}

impl LaneProbes {
    pub fn new(wanted: LinkProbes, link: LinkId, direction: Direction) -> Self {
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

    /// Tells the bins that are over at `now`.
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

    /// Takes the samples that wait; the buffer is kept.
    pub fn drain(&mut self) -> std::vec::Drain<'_, LinkSample> {
        self.samples.drain(..)
    }
}

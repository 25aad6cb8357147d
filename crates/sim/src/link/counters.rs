//! Counters and probes of a link direction.

use anabranch_transport::Nanos;

use super::LinkStats;
use crate::packet::DropReason;
use crate::probe::SimplexLinkProbes;
use crate::queue::Occupancy;

/// Departure of a packet from the queue: its last bit has been sent, or an outage removed it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub at: Nanos,
    pub admitted: Nanos,
    /// Transmission time in nanoseconds; `None` if an outage removed the packet from the queue.
    pub transmission: Option<Nanos>,
    pub size: usize,
}

impl Departure {
    #[inline]
    pub fn count(self, stats: &mut LinkStats) {
        stats.sojourn += u128::from(self.at - self.admitted);
        if let Some(transmission) = self.transmission {
            stats.transmitted.add(self.size);
            stats.busy += transmission;
        }
    }

    /// Subtracts this packet from the statistics.
    pub fn discount(self, stats: &mut LinkStats) {
        stats.sojourn -= u128::from(self.at - self.admitted);
        if let Some(transmission) = self.transmission {
            stats.transmitted.remove(self.size);
            stats.busy -= transmission;
        }
    }
}

/// Counters, probes, and occupancy of the queue, including the packet in transmission.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub stats: LinkStats,
    pub(super) occupancy: Occupancy,
    pub probes: Option<Box<SimplexLinkProbes>>,
}

impl Counters {
    /// Counts a packet that joins the queue.
    #[inline]
    pub(super) fn admitted(&mut self, at: Nanos, size: usize) {
        self.occupancy.add(size);
        self.stats.longest_queue = self.stats.longest_queue.max(self.occupancy.packets);
        self.tell_queue(at);
    }

    /// Counts a packet that leaves the queue in the statistics and in the occupancy.
    #[inline(always)]
    pub(super) fn departed(&mut self, departure: Departure) {
        departure.count(&mut self.stats);
        self.left(&departure);
    }

    /// Removes a departed packet from the occupancy. Its departure is already included in the
    /// statistics.
    #[inline(always)]
    pub(super) fn left(&mut self, departure: &Departure) {
        self.occupancy.remove(departure.size);
        if let Some(probes) = &mut self.probes {
            if departure.transmission.is_some() {
                probes.sojourn(departure.at, departure.at - departure.admitted);
            }
            probes.queue_length(departure.at, self.occupancy.packets);
        }
    }

    #[inline]
    pub(super) fn dropped(&mut self, at: Nanos, reason: DropReason) {
        self.stats.dropped.add(reason);
        if let Some(probes) = &mut self.probes {
            probes.dropped(at, reason, self.stats.dropped.count(reason));
        }
    }

    /// Counts the packet in transmission as marked: the queue discipline has set CE.
    pub(super) fn marked(&mut self, at: Nanos) {
        self.stats.marked += 1;
        if let Some(probes) = &mut self.probes {
            probes.marked(at, self.stats.marked);
        }
    }

    #[inline]
    pub(super) fn delivered(&mut self, now: Nanos, size: usize) {
        self.stats.delivered.add(size);
        if let Some(probes) = &mut self.probes {
            probes.delivered(now, size);
        }
    }

    #[inline]
    fn tell_queue(&mut self, at: Nanos) {
        if let Some(probes) = &mut self.probes {
            probes.queue_length(at, self.occupancy.packets);
        }
    }
}

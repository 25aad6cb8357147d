//! Pending events of a medium: deadlines of stations, and signal edges at antennas. The earliest
//! deadline and the earliest edge are cached, because every event reads them and few events change
//! them.

use anabranch_transport::Nanos;

use super::dcf::NO_DEADLINE;
use super::frame::Frame;
use super::phy::TransmissionId;

/// A frame on the air. Its signal begins at one listener after the other, in the order of delay,
/// and ends in the same order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transmission {
    pub id: TransmissionId,
    pub frame: Frame,
    pub start: Nanos,
    pub begun: usize,
    pub ended: usize,
    /// Time of the transmission's next edge at a listener.
    pub next: Nanos,
}

/// Deadlines of all stations.
#[derive(Debug)]
pub(super) struct Deadlines {
    of: Vec<Nanos>,
    /// Earliest deadline and the index of its station; the lowest index if several stations have
    /// this deadline.
    pub earliest: (Nanos, usize),
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            of: Vec::new(),
            earliest: (NO_DEADLINE, 0),
        }
    }
}

impl Deadlines {
    /// Adds a station without a deadline.
    pub fn add(&mut self) {
        self.of.push(NO_DEADLINE);
    }

    /// Sets the deadline of a station.
    #[inline]
    pub fn set(&mut self, station: usize, deadline: Nanos) {
        let of = &mut self.of[station];
        if *of == deadline {
            return;
        }
        *of = deadline;
        let new = (deadline, station);
        if new <= self.earliest {
            self.earliest = new;
        } else if station == self.earliest.1 {
            self.earliest = earliest(self.of.iter().copied());
        }
    }

    /// Sets the deadline of a station without updating `earliest`; the caller must call
    /// [`look`](Self::look) afterwards.
    #[inline]
    pub fn put(&mut self, station: usize, deadline: Nanos) {
        self.of[station] = deadline;
    }

    /// Updates `earliest` from all deadlines.
    #[inline]
    pub fn look(&mut self) {
        self.earliest = earliest(self.of.iter().copied());
    }
}

/// Transmissions on the air, in order of their start.
#[derive(Debug)]
pub(super) struct Air {
    pub transmissions: Vec<Transmission>,
    /// Time of the earliest edge and the index of its transmission; the oldest transmission if
    /// several have an edge at this time.
    pub earliest: (Nanos, usize),
}

impl Default for Air {
    fn default() -> Self {
        Self {
            transmissions: Vec::new(),
            earliest: (NO_DEADLINE, 0),
        }
    }
}

impl Air {
    /// Adds a transmission.
    pub fn begin(&mut self, transmission: Transmission) {
        let new = (transmission.next, self.transmissions.len());
        self.earliest = self.earliest.min(new);
        self.transmissions.push(transmission);
    }

    /// Sets the time of a transmission's next edge; `None` removes the transmission.
    #[inline]
    pub fn go_on(&mut self, index: usize, next: Option<Nanos>) {
        match next {
            Some(next) => self.transmissions[index].next = next,
            None => drop(self.transmissions.remove(index)),
        }
        self.earliest = earliest(self.transmissions.iter().map(|it| it.next));
    }
}

/// The minimum of `times` and its index; the lowest index if several times are equal. Without any
/// time, [`NO_DEADLINE`] and 0.
#[inline]
fn earliest(times: impl Iterator<Item = Nanos>) -> (Nanos, usize) {
    let mut earliest = (NO_DEADLINE, 0);
    for (index, time) in times.enumerate() {
        if time < earliest.0 {
            earliest = (time, index);
        }
    }
    earliest
}

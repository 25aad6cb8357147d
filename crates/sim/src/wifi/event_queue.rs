//! Pending events of a medium: the deadlines of stations, and the edges of signals at antennas. The
//! earliest of each is cached, because every event reads it and few change it.

use anabranch_transport::Nanos;

use super::dcf::NO_DEADLINE;
use super::frame::Frame;
use super::phy::TransmissionId;

/// A frame on the air. The signal of a frame begins at one listener after the other, and ends in
/// the same order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transmission {
    pub id: TransmissionId,
    pub frame: Frame,
    pub start: Nanos,
    pub begun: usize,
    pub ended: usize,
    /// Time of its next edge at a listener.
    pub next: Nanos,
}

/// Deadlines of the stations.
#[derive(Debug)]
pub(super) struct Deadlines {
    of: Vec<Nanos>,
    /// Earliest deadline and its station; the first of several with the same deadline.
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

    /// Sets the deadline of a station; [`look`](Self::look) must follow.
    #[inline]
    pub fn put(&mut self, station: usize, deadline: Nanos) {
        self.of[station] = deadline;
    }

    /// Recomputes the earliest deadline.
    #[inline]
    pub fn look(&mut self) {
        self.earliest = earliest(self.of.iter().copied());
    }
}

/// Transmissions on the air, in order of their start.
#[derive(Debug)]
pub(super) struct Air {
    pub transmissions: Vec<Transmission>,
    /// Earliest edge and the index of its transmission; the older of two at the same time.
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

    /// The next edge of a transmission is at `next`; `None` removes it.
    #[inline]
    pub fn go_on(&mut self, index: usize, next: Option<Nanos>) {
        match next {
            Some(next) => self.transmissions[index].next = next,
            None => drop(self.transmissions.remove(index)),
        }
        self.earliest = earliest(self.transmissions.iter().map(|it| it.next));
    }
}

/// First of the earliest times and its index; [`NO_DEADLINE`] if there are none.
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

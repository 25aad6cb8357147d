//! What is due on a medium: stations' deadlines, and signals that begin and end at antennas. The earliest of each is kept, since
//! every event asks for it and few change it.

use anabranch_transport::Nanos;

use super::dcf::NEVER;
use super::frame::Frame;
use super::phy::TransmissionId;

/// A frame on the air: it begins at one listener after the other, and ends so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transmission {
    pub id: TransmissionId,
    pub frame: Frame,
    pub start: Nanos,
    pub begun: usize,
    pub ended: usize,
    /// When it next begins or ends somewhere.
    pub next: Nanos,
}

/// Each station's deadline.
#[derive(Debug)]
pub(super) struct Deadlines {
    of: Vec<Nanos>,
    /// The earliest and its station, the first of those that share it.
    pub earliest: (Nanos, usize),
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            of: Vec::new(),
            earliest: (NEVER, 0),
        }
    }
}

impl Deadlines {
    /// One more station, which waits for nothing.
    pub fn add(&mut self) {
        self.of.push(NEVER);
    }

    /// Sets a station's deadline.
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

    /// Sets a station's deadline; [`look`](Self::look) must follow.
    #[inline]
    pub fn put(&mut self, station: usize, deadline: Nanos) {
        self.of[station] = deadline;
    }

    /// Finds the earliest anew.
    #[inline]
    pub fn look(&mut self) {
        self.earliest = earliest(self.of.iter().copied());
    }
}

/// What is on the air, in order of its start.
#[derive(Debug)]
pub(super) struct Air {
    pub transmissions: Vec<Transmission>,
    /// The earliest beginning or end of a signal somewhere, and its transmission's place; the older of two at once.
    pub earliest: (Nanos, usize),
}

impl Default for Air {
    fn default() -> Self {
        Self {
            transmissions: Vec::new(),
            earliest: (NEVER, 0),
        }
    }
}

impl Air {
    /// A transmission that begins somewhere.
    pub fn begin(&mut self, transmission: Transmission) {
        let new = (transmission.next, self.transmissions.len());
        self.earliest = self.earliest.min(new);
        self.transmissions.push(transmission);
    }

    /// A transmission begins or ends again at `next`, or is over.
    #[inline]
    pub fn go_on(&mut self, index: usize, next: Option<Nanos>) {
        match next {
            Some(next) => self.transmissions[index].next = next,
            None => drop(self.transmissions.remove(index)),
        }
        self.earliest = earliest(self.transmissions.iter().map(|it| it.next));
    }
}

/// The first of the earliest times, and its place; [`NEVER`] where there is none.
#[inline]
fn earliest(times: impl Iterator<Item = Nanos>) -> (Nanos, usize) {
    let mut earliest = (NEVER, 0);
    for (index, time) in times.enumerate() {
        if time < earliest.0 {
            earliest = (time, index);
        }
    }
    earliest
}

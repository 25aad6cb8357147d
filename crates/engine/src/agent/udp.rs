//! UDP as cross traffic: the simulator's own source and sink, counted.

use anabranch_sim::Agent;
use anabranch_sim::udp::UdpSink;
use anabranch_transport::{Ecn, Nanos, Path, Transmit};
use bytes::{Bytes, BytesMut};

use anabranch_sim::workload::{Facts, Made, Offer, Workload};

use super::tally::SharedTally;

/// A workload whose messages are counted as transfers, each one datagram.
pub struct Counted {
    /// The workload.
    pub workload: Made,
    /// Who counts.
    pub tally: SharedTally,
}

impl Workload for Counted {
    fn next(&mut self, now: Nanos) -> Offer {
        let offer = self.workload.next(now);
        if let (Offer::Now(_), Some(transfers)) = (offer, &mut self.tally.borrow_mut().transfers) {
            transfers.count_offered();
        }
        offer
    }

    fn facts(&self) -> Facts {
        self.workload.facts()
    }
}

/// A sink that adds to a tally.
pub struct Sink {
    inner: UdpSink,
    tally: SharedTally,
}

impl Sink {
    /// A sink that has seen nothing.
    pub fn new(tally: SharedTally) -> Self {
        Self {
            inner: UdpSink::new(),
            tally,
        }
    }
}

impl Agent for Sink {
    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        let before = *self.inner.stats();
        self.inner.handle_datagram(now, path, ecn, datagram);
        let after = self.inner.stats();
        if after.received > before.received {
            let mut tally = self.tally.borrow_mut();
            let bytes = after.bytes - before.bytes;
            tally.deliver(now, bytes, 0);
            let stamped = after.stamped > before.stamped;
            let delay = stamped.then(|| (after.delay_sum - before.delay_sum) as Nanos);
            tally.message(now, delay);
            if let Some(delay) = delay {
                tally.datagram(now, delay, bytes);
            }
        }
    }

    fn handle_timeout(&mut self, _: Nanos) {}

    fn poll_transmit(&mut self, _: Nanos, _: &mut BytesMut) -> Option<Transmit> {
        None
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        None
    }
}

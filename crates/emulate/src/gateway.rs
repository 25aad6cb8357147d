//! Agents of the simulated network through which packets enter and leave it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use anabranch_sim::Agent;
use anabranch_transport::{Ecn, Nanos, Path, Transmit};
use bytes::{Bytes, BytesMut};

/// Packets that have crossed the simulated network: time of arrival, and IP payload.
pub(crate) type Crossed = Rc<RefCell<VecDeque<(Nanos, Bytes)>>>;

/// An agent that sends every packet from outside to the other side, and collects the packets that
/// arrive.
pub(crate) struct Gateway {
    /// Path to the gateway of the other side.
    path: Path,
    entering: VecDeque<Bytes>,
    leaving: Crossed,
}

impl Gateway {
    /// Creates a gateway that sends on `path`, and appends received packets to `leaving`.
    pub(crate) fn new(path: Path, leaving: Crossed) -> Self {
        Self {
            path,
            entering: VecDeque::new(),
            leaving,
        }
    }

    /// Queues the IP payload of a packet from outside.
    pub(crate) fn enter(&mut self, payload: Bytes) {
        self.entering.push_back(payload);
    }
}

impl Agent for Gateway {
    fn handle_datagram(&mut self, now: Nanos, _: Path, _: Ecn, datagram: Bytes) {
        self.leaving.borrow_mut().push_back((now, datagram));
    }

    fn handle_timeout(&mut self, _: Nanos) {}

    fn poll_transmit(&mut self, _: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        let payload = self.entering.pop_front()?;
        out.extend_from_slice(&payload);
        Some(Transmit {
            path: self.path,
            len: payload.len(),
            ecn: Ecn::NotEct,
            may_fragment: false,
        })
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        None
    }
}

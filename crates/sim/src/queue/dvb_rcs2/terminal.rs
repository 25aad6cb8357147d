//! A terminal of capacity on demand: its queue, and the capacity that it requests.

use std::collections::VecDeque;

use anabranch_transport::Nanos;

use super::DvbRcs2Config;
use crate::queue::{Fifo, Occupancy, QueuedPacket};

/// A request for capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// RBDC: requested rate in bits per second, which replaces the last requested rate.
    pub rate: Option<u64>,
    /// VBDC: requested bytes, in addition to those requested before.
    pub volume: u64,
}

#[derive(Debug)]
pub(super) struct Terminal {
    waiting: Fifo,
    /// Bytes of the first packet that are already sent.
    sent: u64,
    /// Bytes that have arrived since the last request.
    arrived: u64,
    /// Bytes that each rate request in transit will provide per interval.
    rates: VecDeque<u64>,
    /// Last requested rate, bits per second.
    rate: u64,
    /// Bytes requested by volume whose slots have not begun yet.
    requested: u64,
    /// Time between two requests, nanoseconds.
    interval: Nanos,
    /// Bytes that `cra` provides in this time.
    constant: u64,
    /// Maximum rate in bits per second, and maximum volume in bytes; 0 disables such requests.
    rbdc: u64,
    vbdc: u64,
}

/// Number of bytes that `rate` bits per second transfer in `time` nanoseconds.
fn bytes(rate: u64, time: Nanos) -> u64 {
    let bits = u128::from(rate) * u128::from(time) / 1_000_000_000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX)
}

impl Terminal {
    pub fn new(config: &DvbRcs2Config) -> Self {
        let interval = config.interval() * config.superframe;
        let under_way = config.request_superframes() + config.assignment_superframes();
        let requests = under_way.div_ceil(config.interval()) as usize;
        Self {
            waiting: Fifo::new(),
            sent: 0,
            arrived: 0,
            rates: std::iter::repeat_n(0, requests).collect(),
            rate: 0,
            requested: 0,
            interval,
            constant: bytes(config.cra, interval),
            rbdc: config.rbdc,
            vbdc: config.vbdc,
        }
    }

    pub fn push(&mut self, packet: QueuedPacket) {
        self.arrived += packet.size() as u64;
        self.waiting.push(packet);
    }

    pub fn occupancy(&self) -> Occupancy {
        self.waiting.occupancy()
    }

    /// Sends up to `room` bytes of the first packet, and subtracts the sent bytes from `room`.
    /// Returns the packet if its last byte was sent.
    pub fn take(&mut self, room: &mut u64) -> Option<QueuedPacket> {
        let left = self.waiting.front()?.size() as u64 - self.sent;
        let sent = left.min(*room);
        *room -= sent;
        if sent < left {
            self.sent += sent;
            return None;
        }
        self.sent = 0;
        self.waiting.pop()
    }

    pub fn remove(&mut self) -> Option<QueuedPacket> {
        self.sent = 0;
        self.waiting.pop()
    }

    /// Subtracts `volume` bytes from the requested volume, because their slots begin.
    pub fn assigned(&mut self, volume: u64) {
        self.requested = self.requested.saturating_sub(volume);
    }

    /// Request that the terminal sends now; `None` if it needs nothing.
    pub fn request(&mut self) -> Option<Request> {
        let queue = self.waiting.occupancy().bytes - self.sent;
        let covered: u64 = self.rates.iter().sum();
        let rate = match self.rbdc {
            0 => 0,
            _ => self.needed_rate(queue.saturating_sub(covered)),
        };
        let by_rate = bytes(rate, self.interval);
        let volume = self.needed_volume(queue.saturating_sub(covered + by_rate));
        let last = std::mem::replace(&mut self.rate, rate);
        self.arrived = 0;
        self.requested += volume;
        self.rates.push_back(by_rate);
        self.rates.pop_front();
        let rate = (rate > 0 || last > 0).then_some(rate);
        (rate.is_some() || volume > 0).then_some(Request { rate, volume })
    }

    /// Rate to request, in bits per second, if earlier rate requests do not cover `uncovered` bytes
    /// of the queue. Within one interval, this rate and the constant rate together send these
    /// bytes, or the bytes that arrived since the last request if those are more. This is
    /// `SatRequestManager::DoRbdcLegacy` of SNS3 with a gain of 1, without its factor of 1.1 on the
    /// arrival rate and without the quantised values of the signalling.
    fn needed_rate(&self, uncovered: u64) -> u64 {
        let needed = uncovered.max(self.arrived).saturating_sub(self.constant);
        let bits = u128::from(needed) * 8 * 1_000_000_000;
        let rate = bits.div_ceil(u128::from(self.interval));
        rate.min(u128::from(self.rbdc)) as u64
    }

    /// Volume to request, in bytes, if rate requests do not cover `uncovered` bytes of the queue.
    /// It is reduced by volumes that were requested before, and by the bytes that the constant rate
    /// sends until the next request.
    fn needed_volume(&self, uncovered: u64) -> u64 {
        let covered = self.requested.saturating_add(self.constant);
        let needed = uncovered.saturating_sub(covered);
        needed.min(self.vbdc.saturating_sub(self.requested))
    }
}

//! A terminal: its queue, and the capacity that it requests.

use std::collections::VecDeque;

use anabranch_transport::Nanos;

use super::DvbRcs2Config;
use crate::queue::{Fifo, Occupancy, QueuedPacket};

/// A request for capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// RBDC: bits per second, in place of the last requested rate.
    pub rate: Option<u64>,
    /// VBDC: bytes, in addition to those requested before.
    pub volume: u64,
}

#[derive(Debug)]
pub(super) struct Terminal {
    waiting: Fifo,
    /// Bytes of the first packet that have been sent.
    sent: u64,
    /// Bytes that have arrived since the last request.
    arrived: u64,
    /// Bytes that each of the last requests of a rate stands for, until they are sent.
    rates: VecDeque<u64>,
    /// The last requested rate.
    rate: u64,
    /// Bytes requested by volume for which no slot has begun.
    requested: u64,
    /// Time between two requests.
    interval: Nanos,
    /// Bytes of `cra` in this time.
    constant: u64,
    /// Maximum rate, and maximum volume; 0 for none.
    rbdc: u64,
    vbdc: u64,
}

/// The bytes at `rate` bits per second in `time`.
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

    /// Sends up to `room` bytes of the first packet, and reduces `room` by them. Returns the packet
    /// if that was its end.
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

    /// Slots with `volume` bytes that were requested by volume begin.
    pub fn assigned(&mut self, volume: u64) {
        self.requested = self.requested.saturating_sub(volume);
    }

    /// The request of this moment, if any.
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

    /// The rate to request if earlier requests of a rate do not cover `uncovered` bytes of the
    /// queue: these bytes, or those that arrived since the last request, within one interval, minus
    /// the constant rate (SNS3, `SatRequestManager::DoRbdcLegacy`, with a gain of 1, without its
    /// factor of 1.1 on the rate of arrival, and without the quantised values of the signalling).
    fn needed_rate(&self, uncovered: u64) -> u64 {
        let needed = uncovered.max(self.arrived).saturating_sub(self.constant);
        let bits = u128::from(needed) * 8 * 1_000_000_000;
        let rate = bits.div_ceil(u128::from(self.interval));
        rate.min(u128::from(self.rbdc)) as u64
    }

    /// The volume to request if requests of a rate do not cover `uncovered` bytes of the queue:
    /// these bytes, minus those requested by volume before, and minus those that the constant rate
    /// sends until the next request.
    fn needed_volume(&self, uncovered: u64) -> u64 {
        let covered = self.requested.saturating_add(self.constant);
        let needed = uncovered.saturating_sub(covered);
        needed.min(self.vbdc.saturating_sub(self.requested))
    }
}

//! UDP sender for cross traffic.

use anabranch_transport::{Ecn, Nanos, Path, Transmit};
use bytes::{Bytes, BytesMut};

use super::header::{self, HEADER};
use crate::agent::Agent;
use crate::workload::{NextMessage, Workload};

/// Addresses and ports of a [`UdpSource`].
#[derive(Clone, Copy, Debug)]
pub struct UdpSourceConfig {
    /// Source and destination addresses.
    pub path: Path,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

/// UDP sender that sends each message of its workload immediately, as one datagram of at most
/// 65,507 bytes. It has no window. The workload should have a rate, because a bulk workload would
/// send endlessly at one instant.
pub struct UdpSource {
    config: UdpSourceConfig,
    ecn: Ecn,
    workload: Box<dyn Workload>,
    next: Option<Nanos>,
    stopped: bool,
    sent: u64,
    sent_bytes: u64,
}

/// Maximum payload of a datagram over IPv4, bytes.
const MAX_PAYLOAD: usize = 65_507;

impl UdpSource {
    /// Creates a source that sends `workload`.
    pub fn new(config: UdpSourceConfig, workload: impl Workload + 'static) -> Self {
        Self {
            config,
            ecn: Ecn::NotEct,
            workload: Box::new(workload),
            next: None,
            stopped: true,
            sent: 0,
            sent_bytes: 0,
        }
    }

    /// Sets the ECN field of the datagrams (RFC 3168 §5). The source gets no feedback about marks,
    /// and does not slow down.
    #[must_use]
    pub fn with_ecn(mut self, ecn: Ecn) -> Self {
        self.ecn = ecn;
        self
    }

    /// Number of datagrams sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Number of payload bytes sent.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }
}

impl std::fmt::Debug for UdpSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UdpSource")
            .field("config", &self.config)
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}

impl Agent for UdpSource {
    fn start(&mut self, now: Nanos) {
        self.stopped = false;
        self.next = Some(now);
    }

    fn stop(&mut self, _now: Nanos) {
        self.stopped = true;
        self.next = None;
    }

    fn handle_datagram(&mut self, _now: Nanos, _path: Path, _ecn: Ecn, _datagram: Bytes) {}

    fn handle_timeout(&mut self, _now: Nanos) {}

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        if self.stopped || self.next.is_none_or(|next| next > now) {
            return None;
        }
        match self.workload.next(now) {
            NextMessage::Now(message) => {
                let UdpSourceConfig {
                    path,
                    source_port,
                    destination_port,
                } = self.config;
                let payload = message.size.min(MAX_PAYLOAD);
                let ports = [source_port, destination_port];
                header::write(out, path, ports, [self.sent, now], payload);
                self.sent += 1;
                self.sent_bytes += payload as u64;
                Some(Transmit {
                    path,
                    len: HEADER + payload,
                    ecn: self.ecn,
                    may_fragment: false,
                })
            }
            NextMessage::At(next) => {
                self.next = Some(next);
                None
            }
            // The source sends no more until the workload has a message.
            NextMessage::Waiting | NextMessage::Done => {
                self.next = None;
                None
            }
        }
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.next
    }
}

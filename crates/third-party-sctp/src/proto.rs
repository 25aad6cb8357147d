//! Common code for `rtc-sctp` and `sctp-proto`, which have the same origin: endpoint, association,
//! streams and their events.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_transport::Nanos;
use bytes::Bytes;

use super::differ;
use super::stack::{
    Association, AssociationHandle, DatagramEvent, Endpoint, EndpointConfig, Event,
    PayloadProtocolIdentifier, ReliabilityType, StreamEvent,
};
use crate::adapter::{Adapter, PORT, Role, StackState};
use crate::config::Config;

const PPID: PayloadProtocolIdentifier = PayloadProtocolIdentifier::Binary;
/// Length of the common header and the DATA chunk header, bytes.
const HEADERS: usize = 12 + 16;

struct Proto {
    endpoint: Endpoint,
    association: Option<(AssociationHandle, Association)>,
    /// Origin of the times that are passed to the stack. Only differences to it are used.
    begin: Instant,
    connects: bool,
    unordered: bool,
    /// Streams opened by this end.
    open: BTreeSet<u16>,
    /// Streams with data to read.
    readable: BTreeSet<u16>,
    packets: VecDeque<Bytes>,
    up: bool,
    shut: bool,
    failure: Option<String>,
}

/// Address of the peer inside the stack. Packets on the wire have other addresses.
fn peer() -> SocketAddr {
    ([10, 0, 0, 2], PORT).into()
}

pub(crate) fn open(
    config: &Config,
    packet: usize,
    side: Role,
    now: Nanos,
) -> Result<Box<dyn Adapter>, String> {
    let mut settings = EndpointConfig::new();
    settings.max_payload_size((packet - HEADERS) as u32 & !3);
    let (client, server) = differ::configs(config);
    let server = (side == Role::Responder).then(|| Arc::new(server));
    let mut made = Proto {
        endpoint: differ::endpoint(Arc::new(settings), server),
        association: None,
        begin: origin(),
        connects: side == Role::Initiator,
        unordered: config.unordered,
        open: BTreeSet::new(),
        readable: BTreeSet::new(),
        packets: VecDeque::new(),
        up: false,
        shut: false,
        failure: None,
    };
    if side == Role::Initiator {
        let at = made.at(now);
        let connected = differ::connect(&mut made.endpoint, at, client, peer())?;
        // sctp-proto reads the clock only in this call. The deadline of its first timer shows which
        // time it has read.
        if let Some(due) = connected.1.poll_timeout() {
            made.begin = due - differ::FIRST_TIMEOUT - Duration::from_nanos(now);
        }
        made.association = Some(connected);
    }
    Ok(Box::new(made))
}

/// Returns an arbitrary origin of time. Its value has no effect, because only differences to it are
/// used.
fn origin() -> Instant {
    #[allow(
        clippy::disallowed_methods,
        reason = "the stack counts its time from an instant, and there is no other way to make one"
    )]
    Instant::now()
}

impl Proto {
    fn at(&self, now: Nanos) -> Instant {
        self.begin + Duration::from_nanos(now)
    }

    /// Processes the events of the association.
    fn drain(&mut self) {
        let Some((handle, association)) = &mut self.association else {
            return;
        };
        while let Some(event) = association.poll() {
            match event {
                Event::Connected => self.up = true,
                Event::Stream(StreamEvent::Readable { id }) => {
                    self.readable.insert(id);
                }
                Event::HandshakeFailed { reason } | Event::AssociationLost { reason, .. } => {
                    self.up = false;
                    if !self.shut && self.connects {
                        self.failure = Some(reason.to_string());
                    }
                }
                _ => (),
            }
        }
        while let Some(event) = association.poll_endpoint_event() {
            self.endpoint.handle_event(*handle, event);
        }
    }
}

impl Adapter for Proto {
    fn take(&mut self, now: Nanos, packet: Bytes) {
        let now = self.at(now);
        match differ::handle(&mut self.endpoint, now, peer(), packet) {
            Some((handle, DatagramEvent::NewAssociation(association))) => {
                self.association = Some((handle, association));
            }
            Some((_, DatagramEvent::AssociationEvent(event))) => {
                if let Some((_, association)) = &mut self.association {
                    association.handle_event(event);
                }
            }
            _ => (),
        }
        self.drain();
    }

    fn give(&mut self, now: Nanos) -> Option<Bytes> {
        let now = self.at(now);
        while self.packets.is_empty() {
            let (_, association) = self.association.as_mut()?;
            let transmit = association.poll_transmit(now)?;
            self.packets.extend(differ::packets(transmit));
            self.drain();
        }
        self.packets.pop_front()
    }

    fn is_up(&self) -> bool {
        self.up
    }

    fn buffered(&mut self) -> usize {
        let Some((_, association)) = &mut self.association else {
            return 0;
        };
        let amount = |&id| {
            let stream = association.stream(id);
            stream.and_then(|it| it.buffered_amount()).unwrap_or(0)
        };
        self.open.iter().map(amount).sum()
    }

    fn send(&mut self, now: Nanos, messages: Vec<(u16, Bytes)>) -> Result<(), String> {
        let now = self.at(now);
        let (_, association) = self.association.as_mut().ok_or("it is not connected")?;
        for (id, payload) in messages {
            if self.open.insert(id) {
                let opened = association.open_stream(id, PPID);
                let stream = opened.map_err(|error| error.to_string())?;
                differ::reliable(stream, self.unordered)?;
            }
            let stream = association.stream(id);
            let mut stream = stream.map_err(|error| error.to_string())?;
            differ::write(&mut stream, now, &payload, PPID)?;
        }
        Ok(())
    }

    fn receive(&mut self) -> Option<(u16, Vec<u8>)> {
        let (_, association) = self.association.as_mut()?;
        while let Some(&id) = self.readable.first() {
            let stream = association.stream(id).ok();
            let message = stream.and_then(|mut it| it.read_sctp().ok().flatten());
            if let Some(message) = message {
                let mut whole = vec![0; message.len()];
                let length = message.read(&mut whole).unwrap_or(0);
                whole.truncate(length);
                return Some((id, whole));
            }
            self.readable.pop_first();
        }
        None
    }

    fn shut_down(&mut self, _: Nanos) {
        self.shut = true;
        if let Some((_, association)) = &mut self.association {
            // Fails only if the association has already ended.
            let _ = association.shutdown();
        }
        self.drain();
    }

    fn failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    fn facts(&mut self) -> StackState {
        let Some((_, association)) = &self.association else {
            return StackState::default();
        };
        let mut stats = association.stats();
        let rtt = Nanos::try_from(association.rtt().as_nanos()).ok();
        StackState {
            rtt: rtt.filter(|rtt| *rtt > 0),
            timeouts: stats.get_num_t3timeouts(),
            fast_retransmits: stats.get_num_fast_retrans(),
            ..StackState::default()
        }
    }

    fn deadline(&self) -> Option<Nanos> {
        let (_, association) = self.association.as_ref()?;
        let after = association.poll_timeout()?.duration_since(self.begin);
        u64::try_from(after.as_nanos()).ok()
    }

    fn expire(&mut self, now: Nanos) {
        let now = self.at(now);
        if let Some((_, association)) = &mut self.association {
            association.handle_timeout(now);
        }
        self.drain();
    }
}

/// Reliability in which every chunk is retransmitted until it is acknowledged.
pub(super) const RELIABLE: ReliabilityType = ReliabilityType::Reliable;

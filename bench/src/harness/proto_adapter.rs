//! Adapter for `sctp-proto`, and for `rtc-sctp`, which is derived from it; with one stream. The
//! file that includes this one defines the differences in a module `differ`.
#![allow(
    clippy::disallowed_methods,
    reason = "the stack counts its time from an instant"
)]

use std::collections::VecDeque;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_transport::Nanos;
use bytes::Bytes;

use super::super::{Conditions, End};
use super::differ;
use super::stack::{
    Association, AssociationHandle, Chunks, DatagramEvent, Endpoint, EndpointConfig, Event,
    PayloadProtocolIdentifier,
};

/// Length of the common header and the DATA chunk header, bytes.
const HEADERS: usize = 28;
const STREAM: u16 = 0;
const PPID: PayloadProtocolIdentifier = PayloadProtocolIdentifier::Binary;

/// One end of an association.
pub struct Adapter {
    endpoint: Endpoint,
    association: Option<(AssociationHandle, Association)>,
    remote: SocketAddr,
    begin: Instant,
    connects: bool,
    up: bool,
    send_buffer: usize,
    message: usize,
}

/// Settings of an endpoint, which any number of endpoints can share.
pub fn settings(conditions: &Conditions) -> Arc<EndpointConfig> {
    let mut settings = EndpointConfig::new();
    settings.max_payload_size((conditions.packet - HEADERS) as u32 & !3);
    Arc::new(settings)
}

impl Adapter {
    fn at(&self, now: Nanos) -> Instant {
        self.begin + Duration::from_nanos(now)
    }
}

impl End for Adapter {
    type Packet = Bytes;
    type Message = Chunks;

    fn pair(conditions: &Conditions) -> Result<[Self; 2], Box<dyn Error>> {
        if conditions.streams != 1 {
            return Err("this contestant has one stream".into());
        }
        let begin = Instant::now();
        let settings = settings(conditions);
        let addresses: [SocketAddr; 2] =
            [([10, 0, 0, 1], 5000).into(), ([10, 0, 0, 2], 5000).into()];
        let end = |local: usize, server| Self {
            endpoint: differ::endpoint(addresses[local], Arc::clone(&settings), server),
            association: None,
            remote: addresses[1 - local],
            begin,
            connects: local == 0,
            up: false,
            send_buffer: conditions.window,
            message: conditions.message,
        };
        let (client, server) = differ::configs(conditions);
        let mut ends = [end(0, None), end(1, Some(Arc::new(server)))];
        let remote = ends[0].remote;
        ends[0].association = Some(differ::connect(
            &mut ends[0].endpoint,
            begin,
            client,
            remote,
        )?);
        Ok(ends)
    }

    fn is_up(&self) -> bool {
        self.up
    }

    fn fill<'a>(
        &mut self,
        now: Nanos,
        source: &mut impl FnMut() -> Option<(u16, &'a Bytes)>,
    ) -> Result<(), Box<dyn Error>> {
        let now = self.at(now);
        let (_, association) = self.association.as_mut().ok_or("not connected")?;
        let mut stream = association.stream(STREAM)?;
        // Limited here, because the stack has no limit and would accept more than the send buffer.
        let mut room = self.send_buffer.saturating_sub(stream.buffered_amount()?);
        while room >= self.message
            && let Some((_, payload)) = source()
        {
            room -= differ::write(&mut stream, now, payload, PPID)?;
        }
        Ok(())
    }

    fn take(&mut self, now: Nanos, packet: Bytes) {
        let now = self.at(now);
        match differ::handle(&mut self.endpoint, now, self.remote, packet) {
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
    }

    fn give(&mut self, now: Nanos, wire: &mut VecDeque<Bytes>) {
        let now = self.at(now);
        let Some((handle, association)) = &mut self.association else {
            return;
        };
        while let Some(event) = association.poll() {
            if let Event::Connected = event {
                self.up = true;
                if self.connects {
                    // Fails if the stream was opened by an earlier event.
                    let _ = association.open_stream(STREAM, PPID);
                }
            }
        }
        while let Some(event) = association.poll_endpoint_event() {
            self.endpoint.handle_event(*handle, event);
        }
        while let Some(transmit) = association.poll_transmit(now) {
            wire.extend(differ::packets(transmit));
        }
    }

    fn read(
        &mut self,
        accept: &mut impl FnMut(Chunks) -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        // At the receiver, the stream exists after the first message.
        let association = self.association.as_mut();
        let Some(mut stream) = association.and_then(|(_, it)| it.stream(STREAM).ok()) else {
            return Ok(());
        };
        while let Some(message) = stream.read_sctp()? {
            accept(message)?;
        }
        Ok(())
    }

    fn length(message: &Chunks) -> usize {
        message.len()
    }

    fn contents(message: Chunks) -> Vec<u8> {
        let mut whole = vec![0; message.len()];
        // A message that cannot be read is treated as damaged.
        let length = message.read(&mut whole).unwrap_or(0);
        whole.truncate(length);
        whole
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
    }
}

//! Adapter for this stack.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::error::Error;
use std::mem;
use std::net::IpAddr;
use std::ops::ControlFlow;

use anabranch_sctp::{
    AssociationId, CheckedConfig, Config, Endpoint, Event, ReceivedMessage, SendOptions,
    TransmitOptions,
};
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use bytes::{Bytes, BytesMut};

use super::{Conditions, End};

/// Size of an allocation for packets, bytes.
const BUFFER: usize = 64 * 1024;
/// Size of the IPv4 header, which the MTU of the stack includes, bytes.
const IP_HEADER: usize = 20;
const PORT: u16 = 5000;

thread_local! {
    /// Buffers that no end uses at present. A driver also shares one buffer among its endpoints.
    static SPARE: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
}

/// One end of an association, with or without CRC32c.
pub struct Ours<const CHECKSUM: bool> {
    endpoint: Endpoint,
    association: Option<AssociationId>,
    path: Path,
    up: bool,
    send_buffer: usize,
    message: usize,
    out: BytesMut,
}

/// Configuration of both ends.
pub fn config(conditions: &Conditions, checksum: bool) -> Config {
    Config::default().with(|it| {
        it.mtu = conditions.packet + IP_HEADER;
        it.receive_buffer = conditions.window as u32;
        it.send_buffer = conditions.window;
        it.outbound_streams = conditions.streams;
        it.inbound_streams = conditions.streams;
        it.checksum = checksum;
    })
}

/// Paths of the two ends: local and remote address.
pub fn paths() -> [Path; 2] {
    let [a, z]: [IpAddr; 2] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
    [Path::new(a, z), Path::new(z, a)]
}

impl<const CHECKSUM: bool> Ours<CHECKSUM> {
    #[inline(always)] // avoids moving the result
    fn new(conditions: &Conditions, config: CheckedConfig, path: Path, seed: u8) -> Self {
        Self {
            endpoint: Endpoint::with_shared_config(config, PORT, [seed; 32]),
            association: None,
            path,
            up: false,
            send_buffer: conditions.window,
            message: conditions.message,
            out: SPARE
                .with_borrow_mut(Vec::pop)
                .unwrap_or_else(|| BytesMut::with_capacity(BUFFER)),
        }
    }
}

impl<const CHECKSUM: bool> Drop for Ours<CHECKSUM> {
    fn drop(&mut self) {
        if self.out.capacity() > 0 {
            self.rest();
        }
    }
}

impl<const CHECKSUM: bool> End for Ours<CHECKSUM> {
    type Packet = Bytes;
    type Message = ReceivedMessage;

    #[inline(always)]
    fn pair(conditions: &Conditions) -> Result<[Self; 2], Box<dyn Error>> {
        // The settings are checked and stored once, because both ends share them. They contain no
        // addresses, so each end uses the source addresses of the peer's packets.
        let config = config(conditions, CHECKSUM).checked()?;
        let [a, z] = paths();
        let mut ends = [
            Self::new(conditions, config.clone(), a, 1),
            Self::new(conditions, config, z, 2),
        ];
        ends[0].association = Some(ends[0].endpoint.connect(0, &[a.remote], PORT)?);
        ends[1].endpoint.listen(true);
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
        let id = self.association.ok_or("not connected")?;
        let association = self.endpoint.association_mut(id).ok_or("gone")?;
        let mut options = SendOptions::new();
        while association.send_buffer().unsent() + self.message <= self.send_buffer
            && let Some((stream, payload)) = source()
        {
            options.stream = Some(stream);
            association.send(now, payload.clone(), &options)?;
        }
        Ok(())
    }

    fn take(&mut self, now: Nanos, packet: Bytes) {
        self.endpoint
            .handle_datagram(now, self.path, Ecn::NotEct, packet);
    }

    fn give(&mut self, now: Nanos, wire: &mut VecDeque<Bytes>) {
        let all = TransmitOptions::default();
        self.endpoint
            .poll_transmit_batch(now, all, &mut self.out, |_, out| {
                wire.push_back(out.split().freeze());
                ControlFlow::Continue(())
            });
        while let Some((id, event)) = self.endpoint.poll_event() {
            if let Event::Established { .. } = event {
                self.association = Some(id);
                self.up = true;
            }
        }
    }

    fn read(
        &mut self,
        accept: &mut impl FnMut(ReceivedMessage) -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        let id = self.association;
        let Some(association) = id.and_then(|id| self.endpoint.association_mut(id)) else {
            return Ok(());
        };
        while let Some(message) = association.poll_message() {
            accept(message)?;
        }
        Ok(())
    }

    fn length(message: &ReceivedMessage) -> usize {
        message.payload.len()
    }

    fn contents(message: ReceivedMessage) -> Vec<u8> {
        message.payload.into_bytes().into()
    }

    fn outstanding(&self) -> usize {
        let association = self
            .association
            .and_then(|id| self.endpoint.association(id));
        association.map_or(0, |it| it.status().outstanding_chunks)
    }

    fn rest(&mut self) {
        SPARE.with_borrow_mut(|it| it.push(mem::take(&mut self.out)));
    }

    fn deadline(&self) -> Option<Nanos> {
        self.endpoint.poll_timeout()
    }

    fn expire(&mut self, now: Nanos) {
        self.endpoint.handle_timeout(now);
    }
}

//! Actions of the users.

use anabranch_sctp::profile::WhenFull;
use anabranch_sctp::{AssociationId, SendError, SendOptions};
use anabranch_transport::time::MILLISECOND;
use bytes::Bytes;

use super::{A, PORTS, Scenario, Z, address, endpoint, extensions};

impl Scenario<'_> {
    fn first(&self, host: usize) -> Option<AssociationId> {
        self.endpoints[host].associations().next()
    }

    pub(super) fn send(&mut self, host: usize) {
        let (stream, len) = (self.script.byte(), self.script.word());
        let Some(id) = self.first(host) else { return };
        // A profile that silently drops data without buffer space cannot complete longer messages.
        let most = match self.config.profile.receive_buffer_full {
            WhenFull::Silent => self.config.receive_buffer as usize / 4,
            _ => 8_000,
        };
        let unordered = stream & 0x80 != 0;
        let stream = match self.config.outbound_streams {
            u16::MAX => u16::from(stream).wrapping_mul(517),
            _ => u16::from(stream) % 12,
        };
        let (serial, payload) =
            self.ledger
                .write(host, id, stream, unordered, usize::from(len) % most);
        if let Some(association) = self.endpoints[host].association_mut(id) {
            let options = extensions::terms(&self.config, len)
                .with_ppid(1)
                .with_unordered(unordered);
            let sent = association.send(self.now, payload, &options.with_stream(Some(stream)));
            if sent.is_ok() {
                self.ledger.accepted(serial, stream, unordered);
            }
            assert!(association.send_buffer().unsent() <= self.config.send_buffer + 8_000);
        }
        self.drain(host);
    }

    pub(super) fn read(&mut self, host: usize) {
        let ids: Vec<_> = self.endpoints[host].associations().collect();
        for id in ids {
            if let Some(association) = self.endpoints[host].association_mut(id) {
                while let Some(message) = association.poll_message() {
                    self.ledger.take(host, id, message, self.tampered);
                }
            }
        }
        self.drain(host);
    }

    pub(super) fn close(&mut self, host: usize) {
        let how = self.script.byte();
        let (now, id) = (self.now, self.first(host));
        let Some(association) = id.and_then(|id| self.endpoints[host].association_mut(id)) else {
            return;
        };
        let _ = match how % 4 {
            0 => association.abort(now, Bytes::from(vec![how; 600])),
            _ => association.shutdown(now, None),
        };
        self.drain(host);
    }

    pub(super) fn connect(&mut self, host: usize) {
        let peer = [address(1 - host, 0), address(1 - host, 1)];
        let _ = self.endpoints[host].connect(self.now, &peer[..1], PORTS[1 - host]);
        self.drain(host);
    }

    /// Lets the host lose its state.
    pub(super) fn live_anew(&mut self, host: usize) {
        self.lives = self.lives.wrapping_add(1);
        self.endpoints[host] = endpoint(host, self.homes, &self.config, [self.lives; 32]);
        self.ledger.forget(host);
    }

    pub(super) fn release(&mut self, host: usize) {
        if let Some(id) = self.first(host)
            && self.endpoints[host].release(id)
        {
            self.ledger.released(host, id);
        }
    }

    /// Lets A send ordered messages of one byte to Z on stream 0, until the stream sequence numbers
    /// are about to wrap around.
    pub(super) fn wind_up(&mut self) {
        let Some(id) = self.first(A) else { return };
        let (mut sent, mut idle) = (0, 0);
        while sent < 65_530 && idle < 50 {
            let Some(association) = self.endpoints[A].association_mut(id) else {
                return;
            };
            let before = sent;
            while sent < 65_530 {
                let message = Bytes::from_static(&[0]);
                match association.send(self.now, message, &SendOptions::new().with_ppid(1)) {
                    Ok(()) => sent += 1,
                    Err(SendError::BufferFull) => break,
                    Err(_) => return,
                }
            }
            idle = if sent == before { idle + 1 } else { 0 };
            self.drain(A);
            for _ in 0..200 {
                self.deliver(0);
                self.read(Z);
                if self.wire.is_empty() {
                    break;
                }
            }
            self.pass(20 * MILLISECOND);
        }
    }
}

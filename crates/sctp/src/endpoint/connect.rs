//! Outgoing associations (RFC 9260 §11.1.2).

use std::net::IpAddr;
use std::sync::Arc;

use anabranch_transport::{Nanos, Path};

use super::Endpoint;
use crate::address::{is_unicast, unspecified_like};
use crate::association::{Association, Ports};
use crate::association_id::AssociationId;
use crate::error::ConnectError;
#[cfg(doc)]
use crate::event::Event;

/// Options of a connection attempt. By default the attempt uses SCTP directly over IP, and is not
/// part of a race.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// UDP port of the peer for encapsulated packets (RFC 6951), until the peer sends from another
    /// UDP port; 0: SCTP directly over IP.
    pub udp_port: u16,
    /// Identifies a set of concurrent attempts (RFC 8305); the user chooses the number. After INIT
    /// ACK, only one attempt of the set continues at a time. When one association is established,
    /// the user should abort the other attempts.
    pub race: Option<u64>,
}

impl ConnectOptions {
    /// Options for UDP encapsulation to this port of the peer.
    #[must_use]
    pub const fn over_udp(port: u16) -> Self {
        Self {
            udp_port: port,
            race: None,
        }
    }

    /// Adds the attempt to this race, or to no race.
    #[must_use]
    pub const fn with_race(mut self, race: Option<u64>) -> Self {
        self.race = race;
        self
    }
}

impl Endpoint {
    /// Connects to the peer at `port` and these addresses; the first is the primary (RFC 9260
    /// §11.1.2). [`Event::Established`] or [`Event::Closed`] will report the result.
    ///
    /// # Errors
    /// The addresses or the port are invalid, or there is already an association with that peer.
    pub fn connect(
        &mut self,
        now: Nanos,
        remote: &[IpAddr],
        port: u16,
    ) -> Result<AssociationId, ConnectError> {
        self.begin(now, remote, port, 0)
    }

    /// Like [`Endpoint::connect`], with `options`.
    ///
    /// # Errors
    /// Like [`Endpoint::connect`].
    pub fn connect_with(
        &mut self,
        now: Nanos,
        remote: &[IpAddr],
        port: u16,
        options: ConnectOptions,
    ) -> Result<AssociationId, ConnectError> {
        let id = self.begin(now, remote, port, options.udp_port)?;
        if let Some(race) = options.race {
            self.add_connect_attempt(race, id);
        }
        Ok(id)
    }

    fn begin(
        &mut self,
        now: Nanos,
        remote: &[IpAddr],
        port: u16,
        udp_port: u16,
    ) -> Result<AssociationId, ConnectError> {
        let _ = now;
        let [first, others @ ..] = remote else {
            return Err(ConnectError::NoAddress);
        };
        if port == 0 {
            return Err(ConnectError::Port);
        }
        let first = self.path_to(*first, port)?;
        let others = match others {
            [] => Vec::new(),
            _ => self.paths_to(others, port)?,
        };
        if !self.table.reserve(port, remote) {
            return Err(ConnectError::ExistsElsewhere);
        }
        let tag = self.draw_free_tag();
        let ports = Ports {
            local: self.port,
            remote: port,
        };
        let seed = self.random.key();
        let mut association =
            Association::connecting(Arc::clone(&self.config), ports, tag, first, &others, seed);
        if udp_port != 0 {
            association.set_udp_port(udp_port);
        }
        let id = self.table.insert(association);
        self.table.await_init_ack(id, tag);
        self.table.touch_out_of_line(id.slot);
        Ok(id)
    }

    #[cold]
    #[inline(never)]
    fn paths_to(&mut self, remote: &[IpAddr], port: u16) -> Result<Vec<Path>, ConnectError> {
        let paths = remote.iter().map(|&remote| self.path_to(remote, port));
        paths.collect()
    }

    fn path_to(&mut self, remote: IpAddr, port: u16) -> Result<Path, ConnectError> {
        if !is_unicast(remote) {
            return Err(ConnectError::NotUnicast(remote));
        }
        if let Some(slot) = self.live(port, remote) {
            return Err(ConnectError::Exists(self.table.id_of(slot)));
        }
        let local = match self.config.local_address_for(remote, None) {
            Some(local) => local,
            None if self.config.addresses.is_empty() => unspecified_like(remote),
            None => return Err(ConnectError::Family(remote)),
        };
        Ok(Path::new(local, remote))
    }
}

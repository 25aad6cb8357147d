//! Concurrent associations between two endpoints of the crate `rtc-sctp`, which finds associations
//! by their verification tags.
#![allow(
    clippy::disallowed_methods,
    reason = "the stack counts its time from an instant"
)]
#![allow(
    clippy::disallowed_types,
    reason = "what a user of the stack would take; its order is not looked at"
)]

use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use rtc_sctp::{Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, Event};

use super::Conditions;
use super::gathered::{Gathered, sockets};
use super::rtc_sctp::{differ, settings};

const MAX_PACKETS: usize = 4;

/// An endpoint with its associations, which users of the crate have to store.
struct Side {
    endpoint: Endpoint,
    associations: HashMap<AssociationHandle, Association>,
}

/// Two endpoints with their associations.
pub struct RtcGathered {
    ends: [Side; 2],
    client: ClientConfig,
    begin: Instant,
}

impl Side {
    fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            associations: HashMap::new(),
        }
    }

    /// Processes a packet; returns the association to which it belongs.
    fn take(&mut self, now: Instant, from: SocketAddr, packet: Bytes) -> Option<AssociationHandle> {
        match differ::handle(&mut self.endpoint, now, from, packet)? {
            (handle, DatagramEvent::NewAssociation(association)) => {
                self.associations.insert(handle, association);
                Some(handle)
            }
            (handle, DatagramEvent::AssociationEvent(event)) => {
                self.associations.get_mut(&handle)?.handle_event(event);
                Some(handle)
            }
            _ => None,
        }
    }

    /// Returns whether an association is established, and its outgoing packets.
    fn give(&mut self, now: Instant, handle: AssociationHandle) -> (bool, Vec<Bytes>) {
        let (mut up, mut packets) = (false, Vec::new());
        let Some(association) = self.associations.get_mut(&handle) else {
            return (up, packets);
        };
        while let Some(event) = association.poll() {
            up |= matches!(event, Event::Connected);
        }
        while let Some(event) = association.poll_endpoint_event() {
            self.endpoint.handle_event(handle, event);
        }
        while let Some(transmit) = association.poll_transmit(now) {
            packets.extend(differ::packets(transmit));
        }
        (up, packets)
    }
}

impl Gathered for RtcGathered {
    fn begin(conditions: &Conditions) -> Result<Self, Box<dyn Error>> {
        let settings = settings(conditions);
        let (client, server) = differ::configs(conditions);
        let [a, z] = sockets(0);
        let end = |at, server| Side::new(differ::endpoint(at, Arc::clone(&settings), server));
        Ok(Self {
            ends: [end(a, None), end(z, Some(Arc::new(server)))],
            client,
            begin: Instant::now(),
        })
    }

    fn one_more(&mut self, number: u32) -> Result<(), Box<dyn Error>> {
        let now = self.begin;
        let at = sockets(number);
        let endpoint = &mut self.ends[0].endpoint;
        let (handle, association) = differ::connect(endpoint, now, self.client.clone(), at[1])?;
        self.ends[0].associations.insert(handle, association);
        let mut handles = [Some(handle), None];
        let mut up = [false; 2];
        for _ in 0..MAX_PACKETS {
            for from in [0, 1] {
                let to = 1 - from;
                let Some(handle) = handles[from] else {
                    continue;
                };
                let (told, packets) = self.ends[from].give(now, handle);
                up[from] |= told;
                for packet in packets {
                    handles[to] = self.ends[to].take(now, at[from], packet).or(handles[to]);
                }
            }
            if up == [true; 2] {
                return Ok(());
            }
        }
        Err(format!("association {number} does not come up").into())
    }
}

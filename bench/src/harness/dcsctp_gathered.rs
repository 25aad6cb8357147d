//! Many concurrent associations of one program with the crate `dcsctp` without its packet log. A
//! socket of the crate is a single association without addresses, so a table of sockets by source
//! address serves as the endpoint.
#![allow(
    clippy::disallowed_types,
    reason = "what a user of the stack would take; its order is not looked at"
)]

use std::collections::HashMap;
use std::error::Error;
use std::hash::{BuildHasherDefault, Hasher};
use std::net::IpAddr;

use anabranch_dcsctp_silent::api::{DcSctpSocket, Options, SocketEvent};
use anabranch_dcsctp_silent::new_socket;

use super::Conditions;
use super::dcsctp_silent::options;
use super::gathered::{Gathered, PORT, addresses};

const MAX_PACKETS: usize = 4;

/// IPv4 address and port of a peer.
type From = u64;

/// A hash function of one multiplication, so that the table costs very little. If an attacker could
/// choose the keys, a better one would be needed.
#[derive(Default)]
struct Cheap(u64);

impl Hasher for Cheap {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|it| self.write_u64((*it).into()));
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = (self.0 ^ key)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(26);
    }
}

/// A client program with its sockets in the order of their creation, and a server that finds its
/// sockets by the source of packets.
pub struct DcSctpGathered {
    options: Options,
    calling: Vec<Box<dyn DcSctpSocket>>,
    serving: HashMap<From, Box<dyn DcSctpSocket>, BuildHasherDefault<Cheap>>,
}

fn key(address: IpAddr) -> From {
    match address {
        IpAddr::V4(it) => u64::from(u32::from(it)) << 16 | u64::from(PORT),
        IpAddr::V6(_) => unreachable!("the contest is over IPv4"),
    }
}

/// Passes outgoing packets of a socket to `each`; returns whether the association is established.
fn drain(socket: &mut dyn DcSctpSocket, mut each: impl FnMut(Vec<u8>)) -> bool {
    let mut up = false;
    while let Some(event) = socket.poll_event() {
        match event {
            SocketEvent::SendPacket(packet) => each(packet),
            SocketEvent::OnConnected() => up = true,
            _ => (),
        }
    }
    up
}

impl Gathered for DcSctpGathered {
    fn begin(conditions: &Conditions) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            options: options::<true>(conditions),
            calling: Vec::new(),
            serving: HashMap::default(),
        })
    }

    fn one_more(&mut self, number: u32) -> Result<(), Box<dyn Error>> {
        let from = key(addresses(number)[0]);
        let mut caller = new_socket("a", &self.options);
        caller.connect();
        let mut up = [false; 2];
        for _ in 0..MAX_PACKETS {
            let mut answers = Vec::new();
            up[0] |= drain(&mut *caller, |packet| {
                let new = || new_socket("z", &self.options);
                let server = self.serving.entry(from).or_insert_with(new);
                server.handle_input(&packet);
                up[1] |= drain(&mut **server, |packet| answers.push(packet));
            });
            for packet in answers {
                caller.handle_input(&packet);
            }
            if up == [true; 2] {
                self.calling.push(caller);
                return Ok(());
            }
        }
        Err(format!("association {number} does not come up").into())
    }
}

//! Fuzz case of two endpoints with AUTH and ASCONF (RFC 4895, RFC 5061), and of an insider who has
//! their key. Between their packets the insider sends chunks that are derived from the input,
//! authenticated or not.
//! In every case nothing should panic, no packet should cause many answers, and no endpoint should
//! store more addresses than the limit.

use std::net::IpAddr;

use anabranch_sctp::{AddressChange, SendOptions};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::kind;
use bytes::Bytes;

use crate::common::pair::{Pair, new, old, third};
use crate::common::*;

/// Maximum number of steps per case.
const MAX_ACTS: usize = 200;
/// Maximum number of packets that one received packet may cause: an answer, and a HEARTBEAT to each
/// address that it lists.
const MAX_ANSWERS: usize = 64;
/// Maximum number of addresses of a peer.
const MAX_ADDRESSES: usize = 64;

struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    fn take(&mut self, len: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken.to_vec()
    }
}

/// Appends a chunk or parameter: two bytes, its length and its value.
fn put(out: &mut Vec<u8>, head: [u8; 2], value: &[u8]) {
    out.extend(head);
    out.extend((4 + value.len() as u16).to_be_bytes());
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

struct Scenario<'a> {
    script: Script<'a>,
    pair: Pair,
    /// Serial number of the next ASCONF that A expects from Z.
    expected: u32,
    /// Serial number of the last ASCONF that A has sent, approximately.
    said: u32,
}

/// Creates two established endpoints. Also returns their ASCONF serial numbers, which the insider
/// knows because they begin with the initial TSN (RFC 5061 §5.1).
fn begin() -> (Pair, [u32; 2]) {
    let mut pair = Pair::new();
    pair.world.narrate = false;
    let serials = [pair.z_initial, pair.a_initial.wrapping_sub(1)];
    (pair, serials)
}

/// Runs the case that is derived from `bytes`.
pub fn run(bytes: &[u8]) {
    let (pair, [expected, said]) = begin();
    let script = Script(bytes);
    let mut scenario = Scenario {
        script,
        pair,
        expected,
        said,
    };
    for _ in 0..MAX_ACTS {
        if scenario.script.0.is_empty() {
            break;
        }
        if scenario.pair.a().is_closed() {
            (scenario.pair, [scenario.expected, scenario.said]) = begin();
        }
        scenario.act();
        let room = scenario.pair.a().paths().addresses().count();
        assert!(room <= MAX_ADDRESSES, "{room} addresses");
    }
    scenario.pair.world.run_for(300 * SECOND);
}

impl Scenario<'_> {
    fn act(&mut self) {
        let act = self.script.byte();
        match act % 16 {
            0..=4 => {
                let chunk = self.asconf(kind::ASCONF);
                self.say(act, &chunk);
            }
            5 | 6 => {
                let chunk = self.asconf(kind::ASCONF_ACK);
                self.say(act, &chunk);
            }
            7 => {
                let kind = self.script.byte();
                let len = self.script.byte();
                let value = self.script.take(len.into());
                let mut chunk = Vec::new();
                put(&mut chunk, [kind, 0], &value);
                self.say(act, &chunk);
            }
            8 => {
                // An AUTH with arbitrary fields, and then the chunks that it should authenticate.
                let len = self.script.byte();
                let value = self.script.take(usize::from(len) % 64);
                let mut chunks = Vec::new();
                put(&mut chunks, [kind::AUTH, 0], &value);
                let covered = self.asconf(kind::ASCONF);
                chunks.extend(covered);
                self.hand(old(), &chunks);
            }
            9 | 10 => self.wish(),
            11 => self.send(),
            _ => {
                let span = u64::from(self.script.byte()) * 50 * MILLISECOND;
                self.pair.world.run_for(span);
            }
        }
    }

    /// Builds an ASCONF or ASCONF-ACK with parameters that are derived from the input.
    fn asconf(&mut self, kind: u8) -> Vec<u8> {
        let (how, count) = (self.script.byte(), self.script.byte() % 12);
        let serial = match kind {
            kind::ASCONF => self.expected,
            _ => self.said,
        };
        let delta = i32::from((how & 3) as i8) * i32::from((how & 4) as i8 - 2);
        let serial = serial.wrapping_add_signed(if how & 8 == 0 { 0 } else { delta });
        let mut value = serial.to_be_bytes().to_vec();
        if kind == kind::ASCONF {
            self.put_address(&mut value, how);
            if how & 8 == 0 {
                self.expected = self.expected.wrapping_add(1);
            }
        }
        for id in 0..count {
            let what = self.script.byte();
            let mut request = vec![0, 0, 0, id];
            match what & 0x70 {
                0x70 => {
                    let len = what & 0x0F;
                    request = self.script.take(len.into());
                }
                _ => self.put_address(&mut request, what >> 3),
            }
            put(&mut value, [0xC0, what & 7], &request);
        }
        // The value is truncated because chunk lengths have 16 bits and packets are smaller than
        // that.
        value.truncate(1_200);
        let mut chunk = Vec::new();
        put(&mut chunk, [kind, 0], &value);
        chunk
    }

    /// Appends an address parameter. Its address is known, new, empty, multicast, of another
    /// family, or truncated.
    fn put_address(&mut self, out: &mut Vec<u8>, how: u8) {
        let v4 = |address: IpAddr| match address {
            IpAddr::V4(it) => it.octets(),
            IpAddr::V6(_) => [0; 4],
        };
        let address = match how & 7 {
            0 => v4(address(Z, 0)),
            1 => v4(new()),
            2 => [0; 4],
            3 => [224, 0, 0, self.script.byte()],
            4 => [10, 7, 7, self.script.byte()],
            5 => return put(out, [0, 6], &[self.script.byte(); 16]),
            6 => return put(out, [0, 5], &[10, 0]),
            _ => v4(old()),
        };
        put(out, [0, 5], &address);
    }

    /// Sends chunks. Most of them are authenticated in the same way as those of the endpoints.
    fn say(&mut self, how: u8, chunks: &[u8]) {
        if how & 0x80 == 0 {
            let signed = self.pair.signer.sign(chunks);
            return self.hand(old(), &signed);
        }
        let elsewhere = [new(), third()][usize::from(how >> 6 & 1)];
        match how & 0x20 {
            0 => self.hand(elsewhere, chunks),
            _ => {
                let signed = self.pair.signer.sign(chunks);
                self.hand(elsewhere, &signed);
            }
        }
    }

    fn hand(&mut self, local: IpAddr, chunks: &[u8]) {
        let before = self.pair.world.packets();
        self.pair.say(local, chunks);
        let answers = self.pair.world.packets() - before;
        assert!(answers <= MAX_ANSWERS as u64, "{answers} answers");
    }

    fn wish(&mut self) {
        let what = self.script.byte();
        let address = match what >> 4 {
            0..=4 => new(),
            5..=9 => third(),
            10..=13 => old(),
            _ => [10, 9, 9, what].into(),
        };
        let change = match what % 4 {
            0 => AddressChange::Add(address),
            1 => AddressChange::Remove(address),
            2 => AddressChange::PeerPrimary(address),
            _ => AddressChange::KeepOnly(address),
        };
        // The request is refused if it is impossible, or if the limit of outstanding requests is
        // reached.
        if self.pair.try_change(&[change]).is_ok() {
            self.said = self.said.wrapping_add(1);
        }
    }

    fn send(&mut self) {
        let len = 1 + usize::from(self.script.byte()) * 8;
        let message = Bytes::from(vec![1; len]);
        // Sending fails if the association is closed or its buffer is full.
        let _ = self.pair.a().send(0, message, &SendOptions::new());
        self.pair.world.drain(A);
    }
}

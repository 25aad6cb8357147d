//! What a 1 KiB message costs, both ends on one thread: `cargo run --release -p anabranch-sctp --example cost`.
#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::net::IpAddr;
use std::time::Instant;

use anabranch_sctp::{Config, Endpoint, Message};
use anabranch_transport::time::MILLISECOND;
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use bytes::{Bytes, BytesMut};

const MESSAGES: u64 = 1_000_000;

struct Pipe {
    ends: [Endpoint; 2],
    out: BytesMut,
    packets: u64,
    inbox: [Vec<(Path, Bytes)>; 2],
}

impl Pipe {
    /// Carries packets to and fro until nobody has any.
    fn settle(&mut self, now: Nanos, mut read: impl FnMut(&mut Endpoint)) {
        loop {
            let mut quiet = true;
            for from in 0..2 {
                while let Some(transmit) = self.ends[from].poll_transmit(now, &mut self.out) {
                    self.inbox[1 - from]
                        .push((transmit.path.reversed(), self.out.split().freeze()));
                    quiet = false;
                }
                while self.ends[from].poll_event().is_some() {}
            }
            for to in 0..2 {
                let mut inbox = std::mem::take(&mut self.inbox[to]);
                self.packets += inbox.len() as u64;
                for (path, datagram) in inbox.drain(..) {
                    self.ends[to].handle_datagram(now, path, Ecn::NotEct, datagram);
                    if to == 1 {
                        read(&mut self.ends[1]);
                    }
                }
                self.inbox[to] = inbox;
            }
            if quiet {
                return;
            }
        }
    }
}

fn main() {
    for checksum in [true, false] {
        let [a, z]: [IpAddr; 2] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
        let config = |address| Config {
            addresses: vec![address],
            checksum,
            receive_buffer: 1 << 20,
            send_buffer: 1 << 20,
            ..Config::default()
        };
        let mut ends = [
            Endpoint::new(config(a), 1, [1; 32]).expect("settings"),
            Endpoint::new(config(z), 2, [2; 32]).expect("settings"),
        ];
        ends[1].listen(true);
        let mut now = 0;
        let id = ends[0].connect(now, &[z], 2).expect("free");
        let mut pipe = Pipe {
            ends,
            out: BytesMut::new(),
            packets: 0,
            inbox: [Vec::new(), Vec::new()],
        };
        pipe.settle(now, |_| ());
        let peer = pipe.ends[1].associations().next().expect("up");
        let payload = Bytes::from(vec![7; 1024]);
        let (mut sent, mut received) = (0, 0_u64);
        pipe.packets = 0;
        let began = Instant::now();
        while received < MESSAGES {
            now += MILLISECOND;
            for end in &mut pipe.ends {
                if end.poll_timeout().is_some_and(|at| at <= now) {
                    end.handle_timeout(now);
                }
            }
            let association = pipe.ends[0].association_mut(id).expect("up");
            while sent < MESSAGES
                && association
                    .send(
                        0,
                        Message {
                            ppid: 0,
                            unordered: false,
                            payload: payload.clone(),
                        },
                    )
                    .is_ok()
            {
                sent += 1;
            }
            pipe.settle(now, |end| {
                let association = end.association_mut(peer).expect("up");
                while association.poll_message().is_some() {
                    received += 1;
                }
            });
        }
        let spent = began.elapsed().as_nanos() as f64;
        println!(
            "checksum {checksum}: {:.0} ns per 1 KiB message, {:.0} ns per packet, {:.2} Gbit/s of user data",
            spent / MESSAGES as f64,
            spent / pipe.packets as f64,
            MESSAGES as f64 * 8_192.0 / spent,
        );
    }
}

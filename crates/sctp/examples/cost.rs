//! Processing cost of messages, with both ends on one thread: `cargo run --release -p
//! anabranch-sctp --example cost -- [BYTES] [MESSAGES] [BATCH] [dtls-chunk]`. By default there are
//! a million messages of 1024 bytes, and BATCH is 1. With the last argument the DTLS chunk protects
//! the messages (AES-128-GCM). Each end processes up to BATCH packets before its messages are read
//! and its output is polled.
//!
//! Two runs under `valgrind --tool=callgrind` with different numbers of messages yield the
//! instructions per byte: divide the difference of the instruction counts by the difference of the
//! bytes.
#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::collections::VecDeque;
use std::env;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::time::Instant;

use anabranch_sctp::dtls::preshared::PresharedSettings;
use anabranch_sctp::{
    AssociationId, Config, Endpoint, KeyMethods, Security, SendOptions, TransmitOptions,
    UdpTransmit,
};
use anabranch_transport::time::MILLISECOND;
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use bytes::{Bytes, BytesMut};

/// Size of a buffer in bytes, into which several packets are copied.
const BUFFER: usize = 64 * 1024;

struct Pipe {
    ends: [Endpoint; 2],
    wires: [VecDeque<(Path, Bytes)>; 2],
    out: BytesMut,
    now: Nanos,
    packets: u64,
}

impl Pipe {
    fn new(config: impl Fn(IpAddr) -> Config) -> (Self, [AssociationId; 2]) {
        let [a, z]: [IpAddr; 2] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
        let mut ends = [(a, 1), (z, 2)].map(|(address, port)| {
            Endpoint::new(config(address), port, [port as u8; 32]).expect("settings")
        });
        ends[1].listen(true);
        let id = ends[0].connect(0, &[z], 2).expect("free");
        let mut pipe = Self {
            ends,
            wires: Default::default(),
            out: BytesMut::with_capacity(BUFFER),
            now: 0,
            packets: 0,
        };
        pipe.give(0);
        for _ in 0..8 {
            pipe.turn(1, 1, |_| ());
            pipe.turn(0, 1, |_| ());
        }
        let peer = pipe.ends[1].associations().next().expect("up");
        (pipe, [id, peer])
    }

    /// Moves all packets that end `end` wants to send to the other end.
    fn give(&mut self, end: usize) {
        let wire = &mut self.wires[1 - end];
        let give = |outgoing: UdpTransmit, out: &mut BytesMut| {
            wire.push_back((outgoing.transmit.path.reversed(), out.split().freeze()));
            ControlFlow::Continue(())
        };
        let all = TransmitOptions::default();
        self.ends[end].poll_transmit_batch(self.now, all, &mut self.out, give);
        while self.ends[end].poll_event().is_some() {}
    }

    /// Processes the packets that have arrived at end `end`, at most `batch` at a time.
    fn turn(&mut self, end: usize, batch: usize, mut read: impl FnMut(&mut Endpoint)) {
        let mut left = self.wires[end].len();
        self.packets += left as u64;
        while left > 0 {
            for _ in 0..batch.min(left) {
                let (path, packet) = self.wires[end].pop_front().expect("counted");
                self.ends[end].handle_datagram(self.now, path, Ecn::NotEct, packet);
                left -= 1;
            }
            read(&mut self.ends[end]);
            self.give(end);
        }
    }
}

fn main() {
    let mut all: Vec<String> = env::args().skip(1).collect();
    let protected = all.pop_if(|it| it == "dtls-chunk").is_some();
    let mut arguments = all.iter().map(|text| text.parse().expect("a number"));
    let size: usize = arguments.next().unwrap_or(1024);
    let messages = arguments.next().unwrap_or(1_000_000) as u64;
    let batch = arguments.next().unwrap_or(1);
    let (mut pipe, [id, peer]) = Pipe::new(|address| {
        Config::default().with(|it| {
            it.addresses = vec![address];
            it.mtu = 1220;
            it.receive_buffer = 1 << 20;
            it.send_buffer = 1 << 20;
            if protected {
                it.security = Security::DtlsChunk;
                it.key_methods = KeyMethods::preshared(PresharedSettings::new(b"a secret of both"));
            }
        })
    });
    let (message, options) = (Bytes::from(vec![7; size]), SendOptions::new());
    let (mut sent, mut received, mut most) = (0, 0_u64, 0);
    pipe.packets = 0;
    let is_protected = |it: &Endpoint| {
        it.association(id)
            .is_some_and(|it| it.protection().is_active())
    };
    assert_eq!(is_protected(&pipe.ends[0]), protected);
    let began = Instant::now();
    while received < messages {
        pipe.now += MILLISECOND;
        for end in &mut pipe.ends {
            if end.poll_timeout().is_some_and(|at| at <= pipe.now) {
                end.handle_timeout(pipe.now);
            }
        }
        let association = pipe.ends[0].association_mut(id).expect("up");
        while sent < messages
            && association
                .send(pipe.now, message.clone(), &options)
                .is_ok()
        {
            sent += 1;
        }
        most = most.max(association.status().outstanding_chunks);
        pipe.give(0);
        pipe.turn(1, batch, |end| {
            let association = end.association_mut(peer).expect("up");
            while association.poll_message().is_some() {
                received += 1;
            }
        });
        pipe.give(1);
        pipe.turn(0, batch, |_| ());
    }
    let spent = began.elapsed().as_nanos() as f64;
    println!(
        "{messages} messages of {size} B, batches of {batch}: {:.0} ns a message, {:.0} ns a packet, {:.1} MB/s; \
         {} packets, {most} chunks outstanding at most",
        spent / messages as f64,
        spent / pipe.packets as f64,
        messages as f64 * size as f64 * 1e3 / spent,
        pipe.packets,
    );
}

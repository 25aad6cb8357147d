//! Goodput against receive buffer over a GEO satellite, under the `ns2` profile, beside ns-2.35 itself: the experiment of
//! Atiquzzaman's slides of 2002 (10 + 250 ms, 10 Mb/s, packets of 1500 bytes, bulk data, an application always ready).
//!
//! The numbers of ns-2.35 (Debian's `ns2`, its SCTP with four missing reports) are packets per second over the 399.5 s
//! that follow the start: one run where nothing is lost, since nothing is random then, else the mean of several.

use std::collections::BinaryHeap;
use std::net::IpAddr;

use anabranch_sctp::config::Config;
use anabranch_sctp::profile::Profile;
use anabranch_sctp::tx::allocation::AllocationKind;
use anabranch_sctp::{AssociationId, Endpoint, Message};
use anabranch_transport::time::{self, MILLISECOND, SECOND};
use anabranch_transport::{Nanos, Path, Transport};
use bytes::{Bytes, BytesMut};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};

const PORT: u16 = 5000;
/// User data of a packet of 1500 bytes.
const MESSAGE: usize = 1452;
const IP_HEADER: usize = 20;
const START: Nanos = 500 * MILLISECOND;
const END: Nanos = 400 * SECOND;
/// Bits per second of every link.
const RATE: u64 = 10_000_000;
const SENDER: usize = 0;
const RECEIVER: usize = 1;

/// What one run is about.
#[derive(Clone, Copy, Debug)]
struct Conditions {
    streams: u16,
    /// Packets lost of a million towards the receiver.
    lost_ppm: u64,
    buffer_kib: u32,
    delayed_sack: bool,
}

/// Two links one after the other, each with its own rate and delay; `free` is when each can begin its next packet.
#[derive(Default)]
struct Way {
    free: [Nanos; 2],
}

impl Way {
    const DELAYS: [Nanos; 2] = [10 * MILLISECOND, 250 * MILLISECOND];

    fn carry(&mut self, now: Nanos, ip_bytes: usize, delays: [Nanos; 2]) -> Nanos {
        let mut at = now;
        for (free, delay) in self.free.iter_mut().zip(delays) {
            at = at.max(*free) + ip_bytes as u64 * 8 * SECOND / RATE;
            *free = at;
            at += delay;
        }
        at
    }
}

struct World {
    now: Nanos,
    ends: [Endpoint; 2],
    ways: [Way; 2],
    lost_ppm: u64,
    random: Pcg64Mcg,
    flying: BinaryHeap<std::cmp::Reverse<(Nanos, u64, usize, Bytes)>>,
    sequence: u64,
    sender: AssociationId,
    delivered: u64,
}

fn address(end: usize) -> IpAddr {
    [10, 0, 0, 1 + end as u8].into()
}

fn config(conditions: Conditions) -> Config {
    let mut profile = Profile::ns2();
    profile.missing_reports = 4;
    Config {
        receive_buffer: conditions.buffer_kib * 1024,
        delayed_sack: conditions.delayed_sack,
        outbound_streams: conditions.streams,
        allocation: AllocationKind::Fixed(conditions.streams),
        checksum: false,
        ..Config::new(profile)
    }
}

impl World {
    fn new(conditions: Conditions, seed: u64) -> Self {
        let mut ends = [SENDER, RECEIVER].map(|end| {
            let config = Config {
                addresses: vec![address(end)],
                ..config(conditions)
            };
            Endpoint::new(config, PORT, [end as u8; 32])
        });
        ends[RECEIVER].listen(true);
        let sender = ends[SENDER]
            .connect(START, &[address(RECEIVER)], PORT)
            .expect("no association yet");
        Self {
            now: START,
            ends,
            ways: Default::default(),
            lost_ppm: conditions.lost_ppm,
            random: Pcg64Mcg::seed_from_u64(seed),
            flying: BinaryHeap::new(),
            sequence: 0,
            sender,
            delivered: 0,
        }
    }

    /// Keeps the send buffer full.
    fn offer(&mut self) {
        let payload = Bytes::from_static(&[0; MESSAGE]);
        let Some(association) = self.ends[SENDER].association_mut(self.sender) else {
            return;
        };
        while association.buffered() < 100 * MESSAGE {
            let message = Message {
                ppid: 0,
                unordered: false,
                payload: payload.clone(),
            };
            association.send_spread(message).expect("open, with room");
        }
    }

    fn read(&mut self) {
        let ids: Vec<AssociationId> = self.ends[RECEIVER].associations().collect();
        for id in ids {
            let Some(association) = self.ends[RECEIVER].association_mut(id) else {
                continue;
            };
            while association.poll_message().is_some() {
                self.delivered += 1;
            }
        }
    }

    fn drain(&mut self, end: usize) {
        if end == SENDER {
            self.offer();
        } else {
            self.read();
        }
        let mut out = BytesMut::new();
        while self.ends[end].poll_transmit(self.now, &mut out).is_some() {
            let packet = out.split().freeze();
            if end == SENDER && self.random.next_u64() % 1_000_000 < self.lost_ppm {
                continue;
            }
            let mut delays = Way::DELAYS;
            if end == RECEIVER {
                delays.reverse();
            }
            let at = self.ways[end].carry(self.now, packet.len() + IP_HEADER, delays);
            self.sequence += 1;
            self.flying
                .push(std::cmp::Reverse((at, self.sequence, 1 - end, packet)));
        }
        while self.ends[end].poll_event().is_some() {}
    }

    /// Packets per second that reached the application.
    fn goodput(mut self) -> f64 {
        self.drain(SENDER);
        loop {
            let arrival = self.flying.peek().map(|next| next.0.0);
            let timers = [SENDER, RECEIVER].map(|end| self.ends[end].poll_timeout());
            let next = timers.into_iter().chain([arrival]).flatten().min();
            let Some(next) = next.filter(|next| *next <= END) else {
                return self.delivered as f64 / time::seconds(END - START);
            };
            self.now = self.now.max(next);
            if arrival == Some(next) {
                let Some(std::cmp::Reverse((_, _, end, packet))) = self.flying.pop() else {
                    continue;
                };
                let path = Path::new(address(end), address(1 - end));
                self.ends[end].handle_datagram(self.now, path, packet);
                self.drain(end);
                continue;
            }
            for end in [SENDER, RECEIVER] {
                if timers[end] == Some(next) {
                    self.ends[end].handle_timeout(self.now);
                    self.drain(end);
                }
            }
        }
    }
}

fn mean_goodput(conditions: Conditions, runs: u64) -> f64 {
    let sum: f64 = (1..=runs)
        .map(|seed| World::new(conditions, seed).goodput())
        .sum();
    sum / runs as f64
}

const BUFFERS_KIB: [u32; 12] = [5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60];

#[test]
fn without_loss_goodput_is_the_buffer_in_each_round_trip() {
    let immediate = [
        5.72215, 11.4368, 19.0463, 24.7509, 32.3504, 38.0501, 45.6496, 51.3417, 58.9312, 64.6233,
        72.2128, 77.9049,
    ];
    let delayed = [
        5.07635, 11.4043, 18.9887, 23.7472, 31.3267, 37.9099, 45.4693, 50.2428, 57.8023, 64.3429,
        71.8874, 75.8448,
    ];
    for (delayed_sack, published) in [(false, immediate), (true, delayed)] {
        for (buffer_kib, ns2) in BUFFERS_KIB.into_iter().zip(published) {
            for streams in [1, 4] {
                let conditions = Conditions {
                    streams,
                    lost_ppm: 0,
                    buffer_kib,
                    delayed_sack,
                };
                let ours = mean_goodput(conditions, 1);
                println!(
                    "{conditions:?}: {ours:.4}, ns-2.35 {ns2} ({:+.2} %)",
                    100.0 * (ours / ns2 - 1.0)
                );
            }
        }
    }
}

#[test]
fn with_loss() {
    let one = [
        4.69524, 10.0194, 14.7822, 17.0288, 19.7828, 20.8348, 22.1996, 22.9112, 23.3254, 23.5889,
        23.6646, 23.7685,
    ];
    let four = [
        4.81101, 10.6909, 16.2904, 18.6233, 21.4155, 22.6233, 23.3805, 23.5326, 23.6733, 23.8698,
        23.8448, 23.8411,
    ];
    for (streams, published) in [(1, one), (4, four)] {
        for (buffer_kib, ns2) in BUFFERS_KIB.into_iter().zip(published) {
            let conditions = Conditions {
                streams,
                lost_ppm: 10_000,
                buffer_kib,
                delayed_sack: true,
            };
            let ours = mean_goodput(conditions, 8);
            println!(
                "{conditions:?}: {ours:.4}, ns-2.35 {ns2} ({:+.2} %)",
                100.0 * (ours / ns2 - 1.0)
            );
        }
    }
}

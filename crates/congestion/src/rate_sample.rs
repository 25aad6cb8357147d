//! Delivery-rate samples. Each acknowledgement yields the rate at which the network delivered the
//! data that was sent a round trip before (section on delivery rate samples of the BBR draft, from
//! draft-cheng-iccrg-delivery-rate-estimation).
//!
//! The delivery state at the time of sending is stored with each packet, and is compared with the
//! state when the packet is acknowledged.

use std::collections::VecDeque;

use anabranch_transport::{Nanos, time};

use crate::recovery::RackTransmission;

/// Maximum number of unacknowledged packets that are tracked; if there are more, the oldest is
/// forgotten.
const MAX_PACKETS: usize = 1 << 16;

/// Delivery rate that follows from one acknowledgement (RS).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateSample {
    /// Delivery rate, bytes per second; 0 if the interval was too short.
    pub rate: f64,
    /// Bytes delivered since the latest acknowledged packet was sent.
    pub delivered: u64,
    /// Bytes delivered in total when that packet was sent.
    pub prior_delivered: u64,
    /// Bytes delivered in total so far.
    pub total_delivered: u64,
    /// Bytes in flight when that packet was sent, including the packet.
    pub tx_in_flight: u64,
    /// Bytes considered lost since that packet was sent.
    pub lost: u64,
    /// Bytes newly acknowledged by this acknowledgement.
    pub newly_acked: u64,
    /// Whether the application had no more data to send when that packet was sent, so that the path
    /// may carry more.
    pub app_limited: bool,
}

/// A packet that is considered lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// Size of the packet, bytes.
    pub size: u64,
    /// Bytes in flight when the packet was sent, including the packet.
    pub tx_in_flight: u64,
    /// Bytes considered lost since the packet was sent, including the packet.
    pub lost: u64,
    /// Bytes delivered in total so far.
    pub total_delivered: u64,
    /// Whether the application had no more data to send when the packet was sent.
    pub app_limited: bool,
    /// Whether the packet directly follows the packet that was lost before.
    pub adjacent: bool,
}

/// State that is stored with a packet (P).
#[derive(Clone, Copy, Debug)]
struct Packet {
    sent: RackTransmission,
    /// Number of the first byte or chunk in the packet.
    first: u64,
    size: u64,
    delivered: u64,
    delivered_at: Nanos,
    first_sent_at: Nanos,
    lost: u64,
    tx_in_flight: u64,
    app_limited: bool,
    /// Whether the packet was delivered, or is considered lost.
    settled: bool,
}

/// Computes the rate samples of one path (C). Every transmission should be reported later as
/// delivered or as lost.
#[derive(Clone, Debug, Default)]
pub struct RateSampler {
    packets: VecDeque<Packet>,
    delivered: u64,
    delivered_at: Nanos,
    first_sent_at: Nanos,
    lost: u64,
    /// Number of delivered bytes up to which samples are application-limited; 0 if they are not.
    app_limited: u64,
    least_rtt: Option<Nanos>,
    newest: Option<Packet>,
    newly_acked: u64,
    last_lost: Option<u64>,
}

impl RateSampler {
    /// Records that a packet of `size` bytes was sent, which contains the chunks or bytes with the
    /// numbers from `first` to that of `sent`. `flight` includes the packet.
    pub fn on_sent(&mut self, sent: RackTransmission, first: u64, size: u64, flight: u64) {
        if flight <= size {
            (self.first_sent_at, self.delivered_at) = (sent.sent_at, sent.sent_at);
        }
        if self.packets.len() == MAX_PACKETS {
            self.packets.pop_front();
        }
        self.packets.push_back(Packet {
            sent,
            first,
            size,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            tx_in_flight: flight,
            app_limited: self.app_limited > 0,
            settled: false,
        });
    }

    fn settle(&mut self, sent: RackTransmission) -> Option<Packet> {
        let at = |it: &Packet| it.sent.sent_at;
        let from = self.packets.partition_point(|it| at(it) < sent.sent_at);
        let same = self.packets.range_mut(from..);
        let found = same
            .take_while(|it| it.sent.sent_at == sent.sent_at)
            .find(|it| it.sent == sent && !it.settled)?;
        found.settled = true;
        let packet = *found;
        while self.packets.front().is_some_and(|it| it.settled) {
            self.packets.pop_front();
        }
        Some(packet)
    }

    /// Records that a packet was delivered; the acknowledgement that arrived at `now` is the first
    /// to report it (UpdateRateSample).
    pub fn on_delivered(&mut self, now: Nanos, sent: RackTransmission) {
        let Some(packet) = self.settle(sent) else {
            return;
        };
        self.delivered += packet.size;
        self.newly_acked += packet.size;
        self.delivered_at = now;
        if self.newest.is_none_or(|newest| newest.sent < sent) {
            self.newest = Some(packet);
            self.first_sent_at = sent.sent_at;
        }
    }

    /// Records that a packet is considered lost.
    pub fn on_lost(&mut self, sent: RackTransmission) -> Option<LostPacket> {
        let packet = self.settle(sent)?;
        self.lost += packet.size;
        let before = self.last_lost.replace(packet.sent.number);
        Some(LostPacket {
            size: packet.size,
            tx_in_flight: packet.tx_in_flight,
            lost: self.lost - packet.lost,
            total_delivered: self.delivered,
            app_limited: packet.app_limited,
            adjacent: before.is_some_and(|before| before + 1 == packet.first),
        })
    }

    /// Forgets a packet that will not be reported as delivered or lost.
    pub fn forget(&mut self, sent: RackTransmission) {
        self.settle(sent);
    }

    /// Records that the application has no more data to send, or that the controller limits its
    /// rate, while `flight` bytes are in flight.
    pub fn on_app_limited(&mut self, flight: u64) {
        self.app_limited = (self.delivered + flight).max(1);
    }

    /// Returns the sample of an acknowledgement that was fully processed (GenerateRateSample).
    /// `rtt` is the round-trip time that the acknowledgement measured.
    pub fn take_sample(&mut self, rtt: Option<Nanos>) -> Option<RateSample> {
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        if let Some(rtt) = rtt {
            self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        let newly_acked = std::mem::take(&mut self.newly_acked);
        let newest = self.newest.take()?;
        let sending = newest.sent.sent_at - newest.first_sent_at;
        let arriving = self.delivered_at - newest.delivered_at;
        let interval = sending.max(arriving);
        let delivered = self.delivered - newest.delivered;
        let tells = interval > 0 && self.least_rtt.is_none_or(|least| interval >= least);
        Some(RateSample {
            rate: if tells {
                delivered as f64 / time::seconds(interval)
            } else {
                0.0
            },
            delivered,
            prior_delivered: newest.delivered,
            total_delivered: self.delivered,
            tx_in_flight: newest.tx_in_flight,
            lost: self.lost - newest.lost,
            newly_acked,
            app_limited: newest.app_limited,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::MILLISECOND as MS;

    fn sent(at: Nanos, number: u64) -> RackTransmission {
        RackTransmission {
            sent_at: at * MS,
            number,
        }
    }

    /// Ten packets of 1000 bytes are sent, one every 10 ms, and each is acknowledged 100 ms later:
    /// 100,000 bytes per second.
    #[test]
    fn a_steady_flow_is_measured_at_its_rate() {
        let mut sampler = RateSampler::default();
        let mut samples = Vec::new();
        for number in 0..40 {
            let now = 10 * number;
            if number >= 10 {
                sampler.on_delivered(now * MS, sent(now - 100, number - 10));
                samples.extend(sampler.take_sample(Some(100 * MS)));
            }
            let flight = 1000 * (number + 1).min(10);
            sampler.on_sent(sent(now, number), number, 1000, flight);
        }
        // At the first acknowledgement, one packet was delivered in 100 ms. At the eleventh, ten
        // packets were delivered since the acknowledged packet was sent.
        assert_eq!((samples[0].rate, samples[0].delivered), (10_000.0, 1000));
        let last = samples.last().unwrap();
        assert_eq!((last.rate, last.delivered), (100_000.0, 10_000));
        assert_eq!((last.tx_in_flight, last.newly_acked), (10_000, 1000));
        assert!(!last.app_limited);
    }

    /// If acknowledgements arrive in a bunch, the sample shows the sending rate, and not the rate
    /// of their arrival.
    #[test]
    fn the_longer_of_the_two_intervals_counts() {
        let mut sampler = RateSampler::default();
        (0..10).for_each(|number| {
            sampler.on_sent(sent(20 * number, number), number, 1000, 1000 * (number + 1));
        });
        sampler.on_delivered(300 * MS, sent(0, 0));
        assert_eq!(
            sampler.take_sample(Some(100 * MS)).unwrap().rate,
            1000.0 / 0.3
        );
        (1..10).for_each(|number| sampler.on_delivered(301 * MS, sent(20 * number, number)));
        let sample = sampler.take_sample(None).unwrap();
        // Nine more packets are acknowledged 301 ms after the start, which is longer than the 180
        // ms in which they were sent.
        assert_eq!(sample.rate, 10_000.0 / 0.301);
        assert_eq!(sample.newly_acked, 9000);
    }

    #[test]
    fn losses_and_pauses_are_reported() {
        let mut sampler = RateSampler::default();
        (0..4).for_each(|number| {
            sampler.on_sent(sent(0, number), number, 1000, 1000 * (number + 1));
        });
        sampler.on_delivered(100 * MS, sent(0, 3));
        let first = sampler.on_lost(sent(0, 0)).unwrap();
        let second = sampler.on_lost(sent(0, 1)).unwrap();
        assert_eq!(
            (first.lost, first.tx_in_flight, first.adjacent),
            (1000, 1000, false)
        );
        assert_eq!(
            (second.lost, second.tx_in_flight, second.adjacent),
            (2000, 2000, true)
        );
        assert_eq!(sampler.on_lost(sent(0, 1)), None, "once");
        let sample = sampler.take_sample(None).unwrap();
        assert_eq!((sample.lost, sample.tx_in_flight), (2000, 4000));
        sampler.on_app_limited(1000);
        sampler.on_sent(sent(100, 4), 4, 1000, 2000);
        sampler.on_delivered(200 * MS, sent(100, 4));
        assert!(sampler.take_sample(None).unwrap().app_limited);
        assert_eq!(sampler.take_sample(None), None, "nothing new");
    }

    /// Packets have three chunks each. A packet that is lost after a gap, or that is lost again, is
    /// not adjacent.
    #[test]
    fn only_the_next_packet_is_adjacent() {
        let mut sampler = RateSampler::default();
        for number in [2, 5, 8, 11] {
            sampler.on_sent(sent(0, number), number - 2, 1000, 1000);
        }
        // The first packet is retransmitted later.
        sampler.on_sent(sent(50, 2), 0, 1000, 1000);
        let mut adjacent = |at, number| sampler.on_lost(sent(at, number)).unwrap().adjacent;
        let told = [(0, 2), (0, 5), (0, 11), (0, 8), (50, 2)].map(|(at, of)| adjacent(at, of));
        assert_eq!(told, [false, true, false, false, false]);
    }

    /// Samples are application-limited until more bytes have been delivered than were in flight. A
    /// sample at exactly this number is still limited.
    #[test]
    fn the_application_limits_until_more_has_arrived_than_flew_then() {
        let mut sampler = RateSampler::default();
        sampler.on_sent(sent(0, 0), 0, 1000, 1000);
        sampler.on_app_limited(1000);
        let mut limited = Vec::new();
        for number in 1..4 {
            let now = 100 * number;
            sampler.on_delivered(now * MS, sent(now - 100, number - 1));
            sampler.take_sample(None);
            sampler.on_sent(sent(now, number), number, 1000, 1000);
            limited.push(sampler.packets.back().unwrap().app_limited);
        }
        assert_eq!(limited, [true, false, false]);
    }
}

//! Delivery rate of a path: one sample per round trip, from the bytes acknowledged in the round
//! trip.

use anabranch_transport::{Nanos, time};

/// Delivery of a path in one round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delivery {
    /// Delivery rate, bytes per second: bytes acknowledged in the round divided by its duration.
    pub rate: f64,
    /// Duration of the round, nanoseconds.
    pub span: Nanos,
    /// Whether the application had no data to send in the round while the window was not full, so
    /// that the path may carry more.
    pub app_limited: bool,
}

/// A round, which lasts until all data that was in flight at its start is acknowledged or lost.
#[derive(Clone, Copy, Debug)]
struct Round {
    since: Nanos,
    /// Bytes delivered before the start of the round.
    delivered: u64,
    /// The round ends when all bytes up to this value of the counter of sent bytes are acknowledged
    /// or lost.
    end: u64,
    app_limited: bool,
}

/// Meter of the delivery rate of one path. The sender of a path owns a meter, and notifies it of
/// sent and acknowledged data.
///
/// Rounds are contiguous while data is in flight; a pause does not belong to any round.
#[derive(Clone, Debug, Default)]
pub struct DeliveryMeter {
    sent: u64,
    delivered: u64,
    round: Option<Round>,
}

impl DeliveryMeter {
    /// Records that `bytes` bytes were sent at `now`, including retransmissions. `flightsize`
    /// includes them.
    #[inline]
    pub fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        self.sent += bytes;
        if flightsize <= bytes {
            self.begin(now);
        }
    }

    fn begin(&mut self, now: Nanos) {
        self.round = Some(Round {
            since: now,
            delivered: self.delivered,
            end: self.sent,
            app_limited: false,
        });
    }

    /// Records that the application has no more data to send, and the window is not full.
    #[inline]
    pub fn on_app_limited(&mut self) {
        if let Some(round) = &mut self.round {
            round.app_limited = true;
        }
    }

    /// Records that `bytes` bytes were acknowledged at `now`, with `flightsize` bytes still in
    /// flight. Returns the sample of the round that ends now, if one does.
    #[inline]
    pub fn on_ack(&mut self, now: Nanos, bytes: u64, flightsize: u64) -> Option<Delivery> {
        self.delivered += bytes;
        let round = self.round?;
        let settled = self.sent.saturating_sub(flightsize);
        if settled < round.end || now == round.since {
            return None;
        }
        let span = now - round.since;
        self.begin(now);
        if flightsize == 0 {
            self.round = None;
        }
        Some(Delivery {
            rate: (self.delivered - round.delivered) as f64 / time::seconds(span),
            span,
            app_limited: round.app_limited,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::MILLISECOND as MS;

    /// Ten packets of 1000 bytes are sent at 0. From 100 ms on, one packet is acknowledged every 10
    /// ms, and another is sent at each acknowledgement.
    #[test]
    fn a_full_window_a_round_trip_is_the_rate() {
        let mut meter = DeliveryMeter::default();
        for sent in 1..=10 {
            meter.on_sent(0, 1000, sent * 1000);
        }
        let mut samples = Vec::new();
        for ack in 0..25 {
            let now = (100 + 10 * ack) * MS;
            samples.extend(meter.on_ack(now, 1000, 9000));
            meter.on_sent(now, 1000, 10_000);
        }
        // The first round ends with the first acknowledgement. After that there are 10 packets in
        // flight, or 9 when a sample is taken, so a round has nine acknowledgements in 90 ms.
        assert_eq!(samples[0].rate, 10_000.0);
        assert_eq!(samples[0].span, 100 * MS);
        for sample in &samples[1..] {
            assert_eq!((sample.rate, sample.span), (100_000.0, 90 * MS));
            assert!(!sample.app_limited);
        }
        assert_eq!(samples.len(), 3);
    }

    #[test]
    fn a_pause_is_in_no_round_and_what_is_lost_ends_one() {
        let mut meter = DeliveryMeter::default();
        meter.on_sent(0, 1000, 1000);
        meter.on_sent(0, 1000, 2000);
        meter.on_app_limited();
        let first = meter.on_ack(100 * MS, 1000, 1000).unwrap();
        assert!(first.app_limited);
        // The second packet was lost and is no longer in flight, so no packet was delivered in the
        // round.
        assert_eq!(meter.on_ack(200 * MS, 0, 0).unwrap().rate, 0.0);
        // The next packet is sent after an idle time of one second.
        meter.on_sent(1200 * MS, 1000, 1000);
        let after = meter.on_ack(1300 * MS, 1000, 0).unwrap();
        assert_eq!((after.rate, after.app_limited), (10_000.0, false));
    }
}

//! Delivery rate of a path: one sample per round trip, from the bytes acknowledged in it.

use anabranch_transport::{Nanos, time};

/// The delivery of a path in a round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delivery {
    /// Bytes acknowledged in the round divided by its duration, bytes per second.
    pub rate: f64,
    /// Duration of the round.
    pub span: Nanos,
    /// The application had no data to send in it while the window was not full: the path may carry
    /// more.
    pub app_limited: bool,
}

/// A round: lasts until all data that was in flight at its beginning is acknowledged or lost.
#[derive(Clone, Copy, Debug)]
struct Round {
    since: Nanos,
    /// Bytes delivered at its beginning.
    delivered: u64,
    /// The round ends when this many of the bytes sent are acknowledged or lost.
    end: u64,
    app_limited: bool,
}

/// Measures the delivery rate of one path. The sender of a path owns one and notifies it of sent
/// and acknowledged data.
///
/// Rounds are contiguous while data is in flight; a pause belongs to no round.
#[derive(Clone, Debug, Default)]
pub struct DeliveryMeter {
    sent: u64,
    delivered: u64,
    round: Option<Round>,
}

impl DeliveryMeter {
    /// `bytes` were sent at `now`, including retransmissions; `flightsize` already includes them.
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

    /// The application has no more data to send, and the window is not full.
    #[inline]
    pub fn on_app_limited(&mut self) {
        if let Some(round) = &mut self.round {
            round.app_limited = true;
        }
    }

    /// `bytes` were acknowledged at `now`; `flightsize` are the remaining bytes. Returns the sample
    /// of the round that ends here, if one does.
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

    /// Ten packets of 1000 bytes at 0, acknowledged one every 10 ms from 100 ms on, and each
    /// acknowledgement releases another packet.
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
        // The first round ends with the first acknowledgement. After that 10 packets are in flight,
        // or 9 when the sample is taken: nine acknowledgements, 90 ms.
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
        // The second packet was lost and is no longer in flight; no packet was delivered in the
        // round.
        assert_eq!(meter.on_ack(200 * MS, 0, 0).unwrap().rate, 0.0);
        // After an idle time of one second.
        meter.on_sent(1200 * MS, 1000, 1000);
        let after = meter.on_ack(1300 * MS, 1000, 0).unwrap();
        assert_eq!((after.rate, after.app_limited), (10_000.0, false));
    }
}

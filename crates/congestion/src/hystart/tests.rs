//! Tests with rounds of nine packets of 1000 bytes, each of which is acknowledged separately.

use super::*;
use crate::CongestionControl;
use crate::sctp_newreno::{SctpNewReno, SctpParameters};
use anabranch_transport::time::MILLISECOND as MS;

struct Rig {
    base: SctpNewReno,
    hystart: HyStart,
}

impl Rig {
    fn new(milliseconds: u64) -> Self {
        let base = SctpNewReno::new(SctpParameters {
            unit: 1000,
            initial_cwnd: 10_000,
            growth_needs_full_cwnd: false,
            ..SctpParameters::default()
        });
        let mut hystart = HyStart::default();
        hystart.on_sent(10_000);
        let mut rig = Self { base, hystart };
        rig.ack(milliseconds); // the first round has one packet more
        rig
    }

    fn ack(&mut self, milliseconds: u64) {
        let ack = AckSample {
            bytes_acked: 1000,
            segments_acked: 1,
            cumulative_advanced: true,
            flightsize_before: 10_000,
            flightsize_after: 9000,
            latest_rtt: Some(milliseconds * MS),
            ..AckSample::default()
        };
        let before = self.base.cwnd_exact();
        self.base.on_ack(&ack);
        self.hystart.on_ack(&ack, before, &mut self.base);
        self.hystart.on_sent(1000);
    }

    /// Runs a round with this round-trip time. Returns the growth of the window.
    fn round(&mut self, milliseconds: u64) -> u64 {
        let before = self.base.cwnd();
        (0..9).for_each(|_| self.ack(milliseconds));
        self.base.cwnd() - before
    }
}

/// The threshold is 100 ms + 100 ms / 8 = 112.5 ms, so 112 ms are below and 113 ms above. From the
/// eighth sample on the window grows by a quarter of the usual growth.
#[test]
fn a_longer_round_begins_conservative_slow_start_and_five_rounds_end_it() {
    let mut rig = Rig::new(100);
    assert_eq!(rig.round(100), 9000);
    assert_eq!(rig.round(112), 9000);
    // 126 ms is above 112 + 14 ms: the eighth sample starts conservative slow start, and one
    // acknowledgement follows.
    assert_eq!(rig.round(126), 8250);
    assert!(rig.hystart.conservative.is_some());
    for _ in 0..3 {
        assert_eq!(rig.round(130), 2250);
        assert!(!rig.hystart.is_done());
    }
    rig.round(130);
    assert!(rig.hystart.is_done());
    assert_eq!(rig.base.ssthresh(), rig.base.cwnd());
}

#[test]
fn a_shorter_round_resumes_slow_start() {
    let mut rig = Rig::new(100);
    rig.round(100);
    rig.round(120);
    assert!(rig.hystart.conservative.is_some());
    rig.round(110);
    assert!(
        rig.hystart.conservative.is_none(),
        "less than the baseline of 120 ms"
    );
    assert_eq!(
        rig.base.ssthresh(),
        SctpParameters::default().initial_ssthresh
    );
}

/// One eighth of 20 ms is 2.5 ms, below the minimum threshold of 4 ms. One eighth of 400 ms is 50
/// ms, above the maximum of 16 ms.
#[test]
fn the_threshold_has_bounds() {
    for (before, quiet, sign) in [(20, 23, 24), (400, 415, 416)] {
        for (rtt, found) in [(quiet, false), (sign, true)] {
            let mut rig = Rig::new(before);
            rig.round(before);
            rig.round(before);
            rig.round(rtt);
            assert_eq!(rig.hystart.conservative.is_some(), found, "{before} {rtt}");
        }
    }
}

/// Eight samples per round are required, so the single sample per round trip of RFC 6298 is not
/// sufficient.
#[test]
fn seven_samples_say_nothing() {
    let mut rig = Rig::new(100);
    rig.round(100);
    (0..7).for_each(|_| rig.ack(200));
    assert!(rig.hystart.conservative.is_none());
    rig.ack(200);
    assert!(rig.hystart.conservative.is_some());
}

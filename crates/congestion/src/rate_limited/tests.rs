//! Tests of the example of draft-ietf-ccwg-ratelimited-increase (An Example Using cwnd Represented
//! in Bytes), and of the rules at a reduction and in congestion avoidance.

use super::*;
use crate::tcp_newreno::{Growth, HalvingBasis, TcpNewReno, TcpNewRenoConfig};

struct Sender {
    control: RateLimitedIncrease,
    flight: u64,
}

impl Sender {
    fn new() -> Self {
        let inner = TcpNewReno::new(TcpNewRenoConfig {
            segment: 1000,
            initial_window: 10.0,
            initial_ssthresh: f64::INFINITY,
            restart_window: None,
            growth: Growth::PerByte,
            halving_basis: HalvingBasis::FlightSize,
            integer_halving: false,
            cwnd_floor: true,
            whole_segments: false,
        });
        Self {
            control: RateLimitedIncrease::new(Box::new(inner), 1000),
            flight: 0,
        }
    }

    /// Sends `packets` packets and processes their acknowledgements. Returns the window after each
    /// acknowledgement.
    fn round(&mut self, packets: u64) -> Vec<u64> {
        for _ in 0..packets {
            self.flight += 1000;
            self.control.on_sent(0, 1000, self.flight);
        }
        let ack = |_| {
            let before = self.flight;
            self.flight -= 1000;
            self.control.on_ack(&AckSample {
                bytes_acked: 1000,
                segments_acked: 1,
                cumulative_advanced: true,
                flightsize_before: before,
                flightsize_after: self.flight,
                ..AckSample::default()
            });
            self.control.cwnd()
        };
        (0..packets).map(ack).collect()
    }
}

#[test]
fn the_example_of_the_draft() {
    let mut sender = Sender::new();
    assert_eq!(sender.round(4), [11_000, 12_000, 13_000, 14_000]);
    let second = [
        15_000, 16_000, 17_000, 18_000, 19_000, 20_000, 20_000, 20_000,
    ];
    assert_eq!(sender.round(8), second);
    assert_eq!(sender.round(4), [20_000; 4]);
    let fourth: Vec<u64> = (21..=40).map(|it| it * 1000).collect();
    assert_eq!(sender.round(20), fourth);
}

/// After a loss, maxFS is computed from the next flight on. In congestion avoidance a window of
/// 5,000 bytes does not grow with 3,000 bytes in flight, and grows by one segment with 5,000 bytes.
#[test]
fn a_reduction_resets_the_largest_flight() {
    let mut sender = Sender::new();
    sender.control.on_loss(0, LossCause::FastRetransmit, 10_000);
    assert_eq!(sender.control.cwnd(), 5000);
    for _ in 0..10 {
        sender.round(3);
    }
    assert_eq!(sender.control.cwnd(), 5000);
    for _ in 0..10 {
        sender.round(5);
    }
    assert_eq!(sender.control.cwnd(), 6000);
}

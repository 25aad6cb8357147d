//! Models of 802.11 from the literature, and a saturated medium for comparison with them. Tests and
//! the example share this module.

use anabranch_sim::wifi::{
    AntennaPosition, MacAddress, Medium, MediumCounts, PhyTiming, StationId, StationStats,
    TransmissionOutcome, WifiParameters,
};

/// Size of the IP and UDP headers of a packet, bytes.
pub const UDP_IP: u32 = 28;

/// Throughput of `n` saturated stations according to G. Bianchi, "Performance analysis of the IEEE
/// 802.11 distributed coordination function", JSAC 18(3), 2000, in bit/s of `useful` bytes per
/// packet of `packet` bytes.
///
/// Solves the paper's fixed point and its equation (13), with basic or RTS/CTS access according to
/// the parameters. In the paper T_c ends with DIFS, because EIFS is not modelled. Here T_c is the
/// frame and EIFS, because a station that hears a collision waits for EIFS. A colliding station
/// itself does not hear the collision, and waits for its timeout and DIFS. With the parameters of
/// the standard, its timeout and DIFS together are 92 us shorter than EIFS: the difference is the
/// ACK without its PLCP header, minus a slot. With `rafiq2007` they are 4 us longer than EIFS. The
/// model uses one T_c for all stations. The number of retries is unlimited in the model.
pub fn bianchi(parameters: &WifiParameters, n: u32, packet: u32, useful: u32) -> f64 {
    let timing = PhyTiming::new(parameters);
    let (w, m) = windows(parameters);
    let others = f64::from(n - 1);
    let collision = |tau: f64| 1.0 - (1.0 - tau).powf(others);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let tau = (low + high) / 2.0;
        let p = collision(tau);
        // W (1 + p sum (2p)^i, i < m) is equation (7) without its 0/0 at p = 1/2.
        let mut widened = 0.0;
        let mut power = 1.0;
        for _ in 0..m {
            widened += power;
            power *= 2.0 * p;
        }
        let chosen = 2.0 / (1.0 + w + p * w * widened);
        if chosen > tau { low = tau } else { high = tau }
    }
    let tau = (low + high) / 2.0;
    let any = 1.0 - (1.0 - tau).powf(f64::from(n));
    let one = f64::from(n) * tau * (1.0 - tau).powf(others);
    let (success, failure) = exchanges(parameters, &timing, packet);
    let slot = parameters.slot as f64;
    one * f64::from(useful) * 8e9 / ((1.0 - any) * slot + one * success + (any - one) * failure)
}

/// Closed formula for the throughput of one station that always has a packet (Jun, Peddabachigari
/// and Sichitiu, NCA 2003): DIFS, the mean of the first backoff, and a successful exchange.
pub fn largest_rate(parameters: &WifiParameters, packet: u32, useful: u32) -> f64 {
    let timing = PhyTiming::new(parameters);
    let (w, _) = windows(parameters);
    let (success, _) = exchanges(parameters, &timing, packet);
    f64::from(useful) * 8e9 / (success + (w - 1.0) / 2.0 * parameters.slot as f64)
}

/// W, the number of possible values of the first backoff, and m, the maximum number of doublings.
fn windows(parameters: &WifiParameters) -> (f64, u32) {
    let excluded = parameters.backoff_range == anabranch_sim::wifi::BackoffRange::BelowWindow;
    let w = parameters.cw_min + u32::from(!excluded);
    (
        f64::from(w),
        ((parameters.cw_max + 1) / (parameters.cw_min + 1)).ilog2(),
    )
}

/// Durations in nanoseconds of a successful exchange and of a collision, each including the gap
/// after it.
fn exchanges(parameters: &WifiParameters, timing: &PhyTiming, packet: u32) -> (f64, f64) {
    let data = timing.data(parameters, packet);
    let basic = data + parameters.sifs + timing.ack + timing.difs;
    let wait = match parameters.after_error {
        anabranch_sim::wifi::AfterError::EifsInsteadOfDifs => timing.eifs,
        anabranch_sim::wifi::AfterError::EifsThenDifs => timing.eifs + timing.difs,
    };
    if packet + parameters.data_overhead > parameters.rts_threshold {
        let announced = timing.rts + timing.cts + 2 * parameters.sifs + basic;
        (announced as f64, (timing.rts + wait) as f64)
    } else {
        (basic as f64, (data + wait) as f64)
    }
}

/// Twelve positions, all exactly 10 m from the origin.
pub const CIRCLE: [(f64, f64); 12] = [
    (10.0, 0.0),
    (-10.0, 0.0),
    (0.0, 10.0),
    (0.0, -10.0),
    (6.0, 8.0),
    (-6.0, 8.0),
    (6.0, -8.0),
    (-6.0, -8.0),
    (8.0, 6.0),
    (-8.0, 6.0),
    (8.0, -6.0),
    (-8.0, -6.0),
];

/// Results of a saturated run.
#[allow(dead_code)] // the tests and the example read different parts
pub struct Saturated {
    /// Packets delivered after the warm-up, by sender.
    pub delivered: Vec<u64>,
    /// Measured time after the warm-up, seconds.
    pub seconds: f64,
    /// Packet counts of the whole run.
    pub ledger: MediumCounts,
    /// Frame statistics of each sender, and then of the receiver.
    pub stats: Vec<StationStats>,
    /// Number of events processed.
    pub events: u64,
}

impl Saturated {
    /// Throughput in bit/s, with `useful` bytes in each delivered packet.
    pub fn rate(&self, useful: u32) -> f64 {
        self.delivered.iter().sum::<u64>() as f64 * f64::from(useful) * 8.0 / self.seconds
    }
}

/// Runs senders at `places` that always have a packet of `packet` bytes for a receiver at the
/// origin, for `seconds` after a warm-up of one second.
pub fn saturate(
    parameters: WifiParameters,
    places: &[(f64, f64)],
    packet: u32,
    seconds: u64,
    seed: u64,
) -> Saturated {
    let mut medium = Medium::new(parameters, seed).expect("valid parameters");
    let sink = medium
        .add_station(AntennaPosition::new(0.0, 0.0), MacAddress::default())
        .expect("a finite position");
    let senders: Vec<StationId> = places
        .iter()
        .map(|&(x, y)| {
            medium
                .add_station(AntennaPosition::new(x, y), MacAddress::default())
                .expect("a finite position")
        })
        .collect();
    for &sender in &senders {
        for _ in 0..3 {
            medium
                .enqueue(0, sender, sink, packet, ())
                .expect("room for three");
        }
    }
    const WARM_UP: u64 = 1_000_000_000;
    let end = WARM_UP + seconds * 1_000_000_000;
    let mut delivered = vec![0; senders.len()];
    while let Some(at) = medium.next_event().filter(|&at| at < end) {
        medium.advance(at);
        while let Some(outcome) = medium.poll_outcome() {
            let from = match outcome {
                TransmissionOutcome::Delivered(delivery) => {
                    let index = usize::from(delivery.from.0) - 1;
                    delivered[index] += u64::from(delivery.at >= WARM_UP);
                    delivery.from
                }
                TransmissionOutcome::Dropped(dropped) => dropped.from,
            };
            medium
                .enqueue(at, from, sink, packet, ())
                .expect("room for what has left");
        }
    }
    let stats = senders
        .iter()
        .chain([&sink])
        .map(|&station| medium.stats(station))
        .collect();
    let (ledger, events) = (medium.counts(), medium.events());
    Saturated {
        delivered,
        seconds: seconds as f64,
        ledger,
        stats,
        events,
    }
}

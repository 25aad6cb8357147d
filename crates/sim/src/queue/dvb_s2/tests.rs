use anabranch_transport::Ecn;

use super::super::testing::{MS, QueueTester};
use super::*;
use crate::rng::Seed;

/// Es/N0 is 12 dB under clear sky; with a margin of 1 dB this selects 16APSK 3/4 (2.966728 bits per
/// symbol, minimum Es/N0 10.21 dB). At the configured rate a packet of 1500 bytes then takes 10 ms.
fn config(steps: &[(Nanos, f64)]) -> DvbS2Config {
    DvbS2Config {
        modcods: ModcodTable::S2,
        clear_sky: 12.0,
        attenuation: StepFunction::steps(0.0, steps.iter().copied()).ok(),
        rain_probability: 0.0,
        rain_m: 0.0,
        rain_sigma: 1.0,
        margin: 1.0,
        hysteresis: 0.5,
        measurement_interval: 100 * MS,
        reaction_delay: 200 * MS,
        limit: QueueLimit::Unlimited,
    }
}

fn bench(config: DvbS2Config) -> QueueTester {
    let mut queue = DvbS2::new(config).expect("a queue");
    let mut rate = Some(1_200_000.into());
    queue.take_rate(&mut rate).expect("a rate");
    assert!(rate.is_none());
    QueueTester::new(Box::new(queue), Ecn::NotEct)
}

/// Departure times in microseconds and numbers of 1500-byte packets up to `until`; the queue never
/// becomes empty.
fn departures(bench: &mut QueueTester, until: Nanos) -> Vec<(Nanos, u64)> {
    bench.come(0, 400, 1);
    let mut all = Vec::new();
    for at in (0..=until).step_by(1000) {
        if let Some(packet) = bench.go([at])[0] {
            all.push((at / 1000, packet));
        }
    }
    all
}

/// From 100 ms on Es/N0 is 3 dB lower: 9 dB, which is below the 10.21 dB of 16APSK 3/4. The sender
/// uses this MODCOD until 300 ms, so 20 packets are lost. Then 9 dB minus the margin select 8PSK
/// 3/4 (2.228124 bits per symbol, minimum Es/N0 7.91 dB), and a packet takes 10 ms x 2.966728 /
/// 2.228124 = 13.315 ms.
#[test]
fn packets_are_lost_until_the_modcod_follows() {
    let mut bench = bench(config(&[(100 * MS, 3.0)]));
    let left = departures(&mut bench, 400 * MS);
    let sent: Vec<_> = left.iter().map(|it| it.1).collect();
    assert_eq!(sent, (0..10).chain(30..37).collect::<Vec<_>>());
    assert_eq!(bench.dropped, (10..30).collect::<Vec<_>>());
    let slower = left[11].0 - left[10].0;
    assert!((13_314..=13_316).contains(&slower), "{slower}");
}

/// The sender returns to the faster MODCOD only if Es/N0 exceeds its minimum by margin and
/// hysteresis: 10.21 + 1 + 0.5 = 11.71 dB. It therefore returns at 0.28 dB of attenuation, and not
/// at 0.4 dB.
#[test]
fn the_faster_modcod_needs_the_hysteresis() {
    for (attenuation, faster) in [(0.28, true), (0.4, false)] {
        let mut bench = bench(config(&[(100 * MS, 1.0), (600 * MS, attenuation)]));
        let left = departures(&mut bench, 1500 * MS);
        let last = left[left.len() - 1].0 - left[left.len() - 2].0;
        assert_eq!(last == 10_000, faster, "{attenuation}: {last}");
        assert_eq!(bench.dropped, [0; 0], "1 dB is the margin");
    }
}

/// Below the minimum of all MODCODs (-2.35 dB) all packets are lost, at the lowest rate: a packet
/// takes 10 ms x 2.966728 / 0.490243 = 60.5 ms.
#[test]
fn a_deep_fade_is_an_outage() {
    let mut bench = bench(config(&[(0, 20.0)]));
    assert_eq!(departures(&mut bench, 1000 * MS), []);
    assert_eq!(bench.dropped.len(), 16);
}

#[test]
fn tables_have_their_rows() {
    let s2 = modcods::fastest(&[modcods::S2]);
    // Six of the 28 MODCODs of DVB-S2 are omitted, because a faster MODCOD requires no higher
    // Es/N0: QPSK 8/9, 8PSK 5/6, 8/9 and 9/10, 16APSK 8/9 and 9/10.
    assert_eq!((modcods::S2.len(), s2.len()), (28, 22));
    assert_eq!(choose(&s2, -10.0).efficiency, 0.490243);
    assert_eq!(choose(&s2, 5.5).efficiency, 1.779991);
    assert_eq!(choose(&s2, 99.0).efficiency, 4.453027);
    let both = modcods::fastest(&[modcods::S2, modcods::S2X]);
    assert_eq!(choose(&both, -2.5).efficiency, 0.434841);
    assert_eq!(choose(&both, 99.0).efficiency, 5.900855);
    assert!(both.is_sorted_by(|a, b| a.least < b.least && a.efficiency < b.efficiency));
}

/// The payload of a frame is the bits of its inner code, minus the parity bits of the outer code,
/// minus a header of 80 bits. The frame is sent in slots of 90 symbols, plus one slot for the
/// physical-layer header. The outer code takes 192 bits; with the codes 2/3 and 5/6 of DVB-S2 it
/// takes 160, and with 8/9 and 9/10 it takes 128 (gr-dvbs2, `bbheader_bb_impl.cc`). In DVB-S2X, 2/3
/// of 16APSK and 256APSK is another code, 20/30.
#[test]
fn efficiencies_follow_from_the_lengths_of_the_frames() {
    let efficiency = |bits: u64, (k, n): (u64, u64), parity: u64| {
        let slots = (64_800 / bits).div_ceil(90) + 1;
        (64_800 * k / n - parity - 80) as f64 / (90 * slots) as f64
    };
    let s2_parity = |rate| match rate {
        (2, 3) | (5, 6) => 160,
        (8, 9) | (9, 10) => 128,
        _ => 192,
    };
    let low = [(1, 4), (1, 3), (2, 5), (1, 2)];
    let high = [(3, 5), (2, 3), (3, 4), (4, 5), (5, 6), (8, 9), (9, 10)];
    let psk8 = high.iter().filter(|rate| **rate != (4, 5));
    let s2 = (low.iter().chain(&high).map(|rate| (2, *rate)))
        .chain(psk8.map(|rate| (3, *rate)))
        .chain(high[1..].iter().map(|rate| (4, *rate)))
        .chain(high[2..].iter().map(|rate| (5, *rate)))
        .map(|(bits, rate)| efficiency(bits, rate, s2_parity(rate)));
    let s2x: [(u64, &[(u64, u64)]); 7] = [
        (2, &[(2, 9), (13, 45), (9, 20), (11, 20)]),
        (3, &[(5, 9), (26, 45), (23, 36), (25, 36), (13, 18)]),
        (
            4,
            &[
                (1, 2),
                (8, 15),
                (5, 9),
                (26, 45),
                (3, 5),
                (3, 5),
                (28, 45),
                (23, 36),
                (20, 30),
                (25, 36),
                (13, 18),
                (7, 9),
                (77, 90),
            ],
        ),
        (5, &[(2, 3), (32, 45), (11, 15), (7, 9)]),
        (6, &[(32, 45), (11, 15), (7, 9), (4, 5), (5, 6)]),
        (7, &[(3, 4), (7, 9)]),
        (
            8,
            &[(29, 45), (20, 30), (31, 45), (32, 45), (11, 15), (3, 4)],
        ),
    ];
    let s2x = s2x.iter().flat_map(|(bits, rates)| {
        let of = |rate: &(u64, u64)| efficiency(*bits, *rate, s2_parity(*rate));
        rates.iter().map(of)
    });
    for (table, computed) in [
        (modcods::S2, s2.collect::<Vec<_>>()),
        (modcods::S2X, s2x.collect()),
    ] {
        assert_eq!(table.len(), computed.len());
        for (row, computed) in table.iter().zip(computed) {
            assert!((row.0 - computed).abs() < 1e-6, "{row:?}: {computed}");
        }
    }
}

/// ITU-R P.1853: it rains for 10 % of the time, and the attenuation that is exceeded for 1 % of the
/// time is that of the lognormal distribution minus the offset. The test simulates 40,000 hours.
#[test]
fn rain_has_its_distribution() {
    assert!((rain::upper_quantile(0.1) - 1.281_551_565_545).abs() < 1e-9);
    assert!((rain::upper_quantile(0.01) - 2.326_347_874_041).abs() < 1e-9);
    let (m, sigma) = (-1.0, 1.2);
    let mut rng = Seed::new(3, 0).stream("rain");
    // One sample every 1000 s.
    let mut rain = Rain::new(0.1, [m, sigma], 1_000_000 * MS);
    let samples: Vec<f64> = (0..144_000).map(|_| rain.next(&mut rng)).collect();
    let share =
        |above: f64| samples.iter().filter(|&&it| it > above).count() as f64 / samples.len() as f64;
    let deep = (m + sigma * 2.326_347_874).exp() - (m + sigma * 1.281_551_566).exp();
    assert!((share(0.0) / 0.1 - 1.0).abs() < 0.05, "{}", share(0.0));
    assert!((share(deep) / 0.01 - 1.0).abs() < 0.15, "{}", share(deep));
    // Samples at a distance of 1 s have a correlation of e^-0.0002.
    let mut slow = Rain::new(1.0, [0.0, 1.0], 1000 * MS);
    let logs: Vec<f64> = (0..2000).map(|_| slow.next(&mut rng).ln()).collect();
    let step = logs
        .windows(2)
        .map(|it| (it[1] - it[0]).powi(2))
        .sum::<f64>()
        / 1999.0;
    assert!(
        (step / (2.0 - 2.0 * (-2e-4_f64).exp()) - 1.0).abs() < 0.15,
        "{step}"
    );
}

#[test]
fn parameters_that_cannot_work_are_refused() {
    let dark = DvbS2Config {
        clear_sky: -3.0,
        ..config(&[])
    };
    assert!(DvbS2::new(dark.clone()).is_err());
    let s2x = DvbS2Config {
        modcods: ModcodTable::S2x,
        clear_sky: -2.8,
        ..dark
    };
    assert!(DvbS2::new(s2x.clone()).is_ok());
    assert!(DvbS2::new(s2x).unwrap().take_rate(&mut None).is_err());
}

//! Tests with random positions and random traffic: packets are neither created, delivered twice,
//! reordered, nor lost without being counted, and a run depends only on its seed.

use super::*;
use rand_core::RngCore;
use rand_pcg::Pcg64;

/// Runs a random medium under random load, both derived from the seed. Returns the outcomes and
/// every frame.
fn random_run(seed: u64) -> (Vec<TransmissionOutcome<u32>>, Vec<FrameTrace>) {
    let (outcomes, frame_traces, _) = run(seed, false, true);
    (outcomes, frame_traces)
}

/// Like [`random_run`], and also returns the statistics of the stations and the number of events.
/// Frames are processed `edge_by_edge` or as a whole; if the run is not `observed`, whole exchanges
/// are also processed in one step.
fn run(
    seed: u64,
    edge_by_edge: bool,
    observed: bool,
) -> (Vec<TransmissionOutcome<u32>>, Vec<FrameTrace>, Counted) {
    let mut rng = Pcg64::new(seed.into(), 99);
    let mut below = |bound: u32| rng.next_u32() % bound;
    let mut parameters = if below(2) == 0 {
        WifiParameters::ieee80211b()
    } else {
        WifiParameters::rafiq2007()
    };
    parameters.rts_threshold = [0, 500, 2347][below(3) as usize];
    parameters.queue_limit = 1 + below(20) as usize;
    parameters.link_layer_delay = [0, 25 * US][below(2) as usize];
    let stations = 2 + below(10);
    let side = [20, 400, 1500][below(3) as usize];
    let places: Vec<(f64, f64)> = (0..stations)
        .map(|_| {
            (
                f64::from(below(side * 10)) / 10.0,
                f64::from(below(side * 10)) / 10.0,
            )
        })
        .collect();
    let (mut medium, ids) = medium(parameters, &places);
    medium.observe(observed);
    let mut sent = Vec::new();
    let mut outcomes = Vec::new();
    let mut refused = 0;
    let mut now = 0;
    for number in 0..600 {
        now += u64::from(below(1_500_000));
        let from = below(stations);
        let to = (from + 1 + below(stations - 1)) % stations;
        let (from, to) = (ids[from as usize], ids[to as usize]);
        sent.push((from, to));
        while edge_by_edge && let Some(at) = medium.next_event().filter(|&at| at <= now) {
            medium.advance(at);
        }
        if let Err(dropped) = medium.enqueue(now, from, to, 1 + below(2000), number) {
            assert_eq!(
                (dropped.reason, dropped.payload),
                (WifiDropReason::QueueFull, number),
                "seed {seed}"
            );
            refused += 1;
        }
        assert!(medium.counts().is_balanced(), "seed {seed}");
        outcomes.extend(std::iter::from_fn(|| medium.poll_outcome()));
    }
    outcomes.extend(finish(&mut medium));

    let counts = medium.counts();
    assert!(
        counts.is_balanced() && counts.waiting == 0,
        "seed {seed}: {counts:?}"
    );
    assert_eq!(counts.offered, 600, "seed {seed}");
    assert_eq!(
        outcomes.len() as u64 + refused,
        counts.offered,
        "seed {seed}"
    );
    let mut last = std::collections::BTreeMap::new();
    let mut seen = std::collections::BTreeSet::new();
    let mut time = 0;
    for outcome in &outcomes {
        let (at, from, to, number, arrived) = match outcome {
            TransmissionOutcome::Delivered(d) => (d.at, d.from, d.to, d.payload, true),
            TransmissionOutcome::Dropped(d) => (d.at, d.from, d.to, d.payload, false),
        };
        assert_eq!(sent[number as usize], (from, to), "seed {seed}");
        assert!(seen.insert(number), "seed {seed}: packet {number} twice");
        assert!(at >= time, "seed {seed}: back in time");
        time = at;
        if arrived && let Some(before) = last.insert((from, to), number) {
            assert!(before < number, "seed {seed}: {number} after {before}");
        }
    }
    for &id in &ids {
        let stats = medium.stats(id);
        assert_eq!(medium.queue_length(id), 0, "seed {seed}");
        assert!(
            stats.data_sent >= stats.confirmed + stats.ack_missing,
            "seed {seed}"
        );
    }
    let frame_traces = medium.drain_frame_traces().collect();
    let counted = ids.iter().map(|&id| medium.stats(id)).collect();
    (outcomes, frame_traces, (counted, medium.events()))
}

/// The statistics of each station, and the number of events of the medium.
type Counted = (Vec<StationStats>, u64);

/// Undisturbed frames are processed for all their listeners at once, and exchanges for all their
/// stations; the results equal those of processing each edge.
#[test]
fn whole_frames_and_exchanges_are_as_their_edges() {
    for seed in 0..300 {
        let edges = run(seed, true, true);
        assert_eq!(run(seed, false, true), edges, "seed {seed}");
        let (outcomes, _, counted) = run(seed, false, false);
        assert_eq!((outcomes, counted), (edges.0, edges.2), "seed {seed}");
    }
}

#[test]
fn packets_are_conserved() {
    for seed in 0..150 {
        random_run(seed);
    }
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    for seed in [3, 14, 15] {
        assert_eq!(random_run(seed), random_run(seed), "seed {seed}");
    }
}

/// A station never sends two frames at the same time, and sends CTS and ACK only as responses.
#[test]
fn a_station_sends_one_frame_at_a_time() {
    for seed in 200..230 {
        let (_, frame_traces) = random_run(seed);
        let mut busy_until = std::collections::BTreeMap::new();
        for FrameTrace { at, frame } in frame_traces {
            let until = busy_until
                .insert(frame.from, at + frame.air_time)
                .unwrap_or(0);
            assert!(
                until <= at,
                "seed {seed}: {frame:?} at {at}, busy until {until}"
            );
        }
    }
}

/// A station out of reach of all others changes neither results nor random numbers.
#[test]
fn a_far_station_moves_no_draw() {
    let run = |places: &[(f64, f64)]| {
        let (mut medium, stations) = medium(WifiParameters::ieee80211b(), places);
        for number in 0..40 {
            for sender in 1..3 {
                medium
                    .enqueue(0, stations[sender], stations[0], 1000, number)
                    .unwrap();
            }
        }
        finish(&mut medium);
        told(&mut medium)
    };
    let near = [(0.0, 0.0), (10.0, 0.0), (0.0, 10.0)];
    let with_far = [near[0], near[1], near[2], (5000.0, 0.0)];
    assert_eq!(run(&near), run(&with_far));
}

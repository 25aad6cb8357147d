//! Tests of the medium that compare single frames with their computed times.

mod conservation;
mod exchange;
mod overlap;
mod station;

use anabranch_transport::Nanos;

use super::*;

/// A microsecond.
const US: Nanos = 1_000;

/// A medium with stations at `places`, whose packets are numbers.
fn medium(parameters: WifiParameters, places: &[(f64, f64)]) -> (Medium<u32>, Vec<StationId>) {
    let mut medium = Medium::new(parameters, 1).unwrap();
    let place = |(index, &(x, y)): (usize, &(f64, f64))| {
        medium
            .add_station(
                AntennaPosition::new(x, y),
                MacAddress([2, 0, 0, 0, 0, index as u8]),
            )
            .unwrap()
    };
    let stations = places.iter().enumerate().map(place).collect();
    medium.observe(true);
    (medium, stations)
}

/// A transmitted frame: time, kind, sender, receiver.
type SentFrame = (Nanos, FrameKind, u16, u16);

fn told(medium: &mut Medium<u32>) -> Vec<SentFrame> {
    medium
        .drain_frame_traces()
        .map(|FrameTrace { at, frame }| (at, frame.kind, frame.from.0, frame.to.0))
        .collect()
}

/// Runs until no event is left, and returns the outcomes of the packets.
fn finish(medium: &mut Medium<u32>) -> Vec<TransmissionOutcome<u32>> {
    while let Some(at) = medium.next_event() {
        medium.advance(at);
    }
    std::iter::from_fn(|| medium.poll_outcome()).collect()
}

/// The delivered packets, with their times.
fn delivered(outcomes: &[TransmissionOutcome<u32>]) -> Vec<(Nanos, u32)> {
    let delivery = |outcome: &TransmissionOutcome<u32>| match outcome {
        TransmissionOutcome::Delivered(delivery) => Some((delivery.at, delivery.payload)),
        TransmissionOutcome::Dropped(_) => None,
    };
    outcomes.iter().filter_map(delivery).collect()
}

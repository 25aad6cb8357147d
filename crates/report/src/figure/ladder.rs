//! Packet ladders as data: departure and arrival (or loss) of each segment, and the
//! acknowledgements.

use anabranch_scenario::records::SeriesError;
use anabranch_scenario::records::SeriesRecord;

use super::Maker;
use crate::unit;

/// Two lifelines and the packets between them. Times are in seconds; segments are counted from 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Ladder {
    /// Start and end of the displayed time.
    pub window: (f64, f64),
    /// Name of the flow.
    pub flow: String,
    /// Transmitted segments, in order of departure.
    pub segments: Vec<LadderSegment>,
    /// Acknowledgements, in order of arrival.
    pub acks: Vec<LadderAck>,
    /// Values of cwnd at the sender: time and text with unit.
    pub cwnd: Vec<(f64, String)>,
}

/// A transmission of a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LadderSegment {
    /// Number of the segment.
    pub number: u64,
    /// Time of departure, seconds.
    pub departed: f64,
    /// Outcome of the transmission.
    pub fate: Fate,
    /// Whether the packet is a retransmission.
    pub again: bool,
}

/// Outcome of a transmission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    /// Arrived at this time, seconds.
    Arrived(f64),
    /// Lost.
    Lost,
    /// Unknown: the recording ended before the arrival, or the data had already arrived.
    Unknown,
}

/// A received acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LadderAck {
    /// Number of the last segment that the acknowledgement covers.
    pub covers: u64,
    /// Time of departure in seconds, estimated from the minimum transit time of all
    /// acknowledgements.
    pub departed: f64,
    /// Time of arrival, seconds.
    pub arrived: f64,
    /// Whether it repeats the previous acknowledgement.
    pub duplicate: bool,
}

/// Samples of a series: time and number.
type Marks = Vec<(f64, u64)>;

fn marks(series: Option<SeriesRecord>) -> Marks {
    let samples = series.map_or(Vec::new(), |series| series.samples);
    samples
        .iter()
        .map(|sample| (sample.time, sample.value.max(0.0) as u64))
        .collect()
}

/// Minimum transit time of segments that were sent only once, because for others it is unknown
/// which transmission arrived.
fn shortest_way(sent: &[(f64, u64, bool)], received: &Marks) -> Option<f64> {
    let way = |(at, number): &(f64, u64)| {
        let mut transmissions = sent.iter().filter(|(_, other, _)| other == number);
        let (departed, ..) = transmissions.next()?;
        transmissions.next().is_none().then_some(at - departed)
    };
    received.iter().filter_map(way).min_by(f64::total_cmp)
}

/// Matches each arrival with the last transmission that could have caused it.
fn follow(sent: &[(f64, u64, bool)], received: &Marks) -> Vec<LadderSegment> {
    let Some(shortest) = shortest_way(sent, received) else {
        return sent
            .iter()
            .map(|&(departed, number, again)| LadderSegment {
                number,
                departed,
                fate: Fate::Unknown,
                again,
            })
            .collect();
    };
    let end = received
        .iter()
        .map(|(at, _)| *at)
        .fold(f64::NEG_INFINITY, f64::max);
    let mut segments = Vec::with_capacity(sent.len());
    for (index, &(departed, number, again)) in sent.iter().enumerate() {
        let arrival = received
            .iter()
            .find(|(_, other)| *other == number)
            .map(|(at, _)| *at);
        // The tolerance is one nanosecond, because times were converted to seconds.
        let could = |departed: f64, at: f64| departed + shortest <= at + 1e-9;
        let later = sent[index + 1..]
            .iter()
            .find(|(_, other, _)| *other == number)
            .map(|(at, ..)| *at);
        let fate = match arrival {
            Some(at) if !could(departed, at) => Fate::Unknown,
            Some(at) if later.is_some_and(|later| could(later, at)) => Fate::Lost,
            Some(at) => Fate::Arrived(at),
            None if departed + shortest < end => Fate::Lost,
            None => Fate::Unknown,
        };
        segments.push(LadderSegment {
            number,
            departed,
            fate,
            again,
        });
    }
    segments
}

/// Minimum transit time of acknowledgements, from which their departures are estimated.
fn way_back(arrivals: &[(f64, u64, bool)], received: &Marks) -> Option<f64> {
    let way = |&(at, covers, duplicate): &(f64, u64, bool)| {
        // A new acknowledgement was sent when the last segment that it covers had arrived.
        let covered = received
            .iter()
            .filter(|(_, number)| *number < covers)
            .map(|(time, _)| *time);
        let complete = covered.max_by(f64::total_cmp)?;
        (!duplicate && complete < at).then_some(at - complete)
    };
    arrivals.iter().filter_map(way).min_by(f64::total_cmp)
}

impl Ladder {
    /// The ladder of a flow in a window or, without a window, from the first to the last
    /// transmission. `read` returns the series of a probe. `None` if no packet was sent.
    ///
    /// # Errors
    /// Any error of `read`.
    pub fn of(
        flow: &str,
        window: Option<(f64, f64)>,
        mut read: impl FnMut(&str) -> Result<Option<SeriesRecord>, SeriesError>,
    ) -> Result<Option<Self>, SeriesError> {
        let mut read = |probe: &str| read(probe).map(marks);
        let sent = either(read("sent")?, read("retransmitted")?);
        let received = read("received")?;
        let acks = either(read("cumulative_ack")?, read("duplicate_ack")?);
        let Some(((first, ..), (last, ..))) = sent.first().zip(sent.last()) else {
            return Ok(None);
        };
        let window = window.unwrap_or((*first, *last));
        let back = way_back(&acks, &received).unwrap_or(0.0);
        let shown = |from: f64, to: f64| to >= window.0 && from <= window.1;
        let mut segments = follow(&sent, &received);
        for segment in &mut segments {
            segment.number += 1;
        }
        segments.retain(|s| match s.fate {
            Fate::Arrived(at) => shown(s.departed, at),
            Fate::Lost | Fate::Unknown => shown(s.departed, s.departed),
        });
        let acks = acks
            .into_iter()
            .map(|(arrived, covers, duplicate)| LadderAck {
                covers,
                departed: arrived - back,
                arrived,
                duplicate,
            });
        let acks = acks
            .filter(|ack| shown(ack.departed, ack.arrived))
            .collect();
        Ok(Some(Self {
            window,
            flow: flow.to_owned(),
            segments,
            acks,
            cwnd: Vec::new(),
        }))
    }
}

/// Merges two lists of samples by time. The flag is true for samples of the second list.
fn either(first: Marks, second: Marks) -> Vec<(f64, u64, bool)> {
    let first = first.into_iter().map(|(at, number)| (at, number, false));
    let second = second.into_iter().map(|(at, number)| (at, number, true));
    let mut both: Vec<_> = first.chain(second).collect();
    both.sort_by(|a, b| a.0.total_cmp(&b.0));
    both
}

impl Maker<'_> {
    pub(super) fn ladder(&self) -> Result<Option<Ladder>, SeriesError> {
        let flow = self.spec.flow.as_deref().unwrap_or_default();
        let read = |probe: &str| self.series(flow, self.spec.member, probe);
        let Some(mut ladder) = Ladder::of(flow, self.window(), read)? else {
            return Ok(None);
        };
        ladder.cwnd = self.cwnd(flow, ladder.window)?;
        Ok(Some(ladder))
    }

    /// Values of cwnd in the window.
    fn cwnd(&self, flow: &str, window: (f64, f64)) -> Result<Vec<(f64, String)>, SeriesError> {
        let Some(series) = self.series(flow, self.spec.member, "cwnd")? else {
            return Ok(Vec::new());
        };
        let wanted = self.spec.segment_size.map(|_| "segments");
        let shown = unit::shown("cwnd", wanted, self.spec.segment_size);
        let samples = series
            .samples
            .iter()
            .filter(|s| window.0 <= s.time && s.time <= window.1);
        Ok(samples
            .map(|s| (s.time, crate::compare::digits(s.value / shown.divisor, 4)))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_arrives_only_after_its_retransmission_was_lost_before() {
        // Segment 0 arrives; 1 is lost; 2 arrives; the retransmission of 1 arrives; 3 is still in
        // flight.
        let sent = [
            (1.0, 0, false),
            (1.1, 1, false),
            (1.2, 2, false),
            (1.8, 1, true),
            (2.0, 3, false),
        ];
        let received = vec![(1.25, 0), (1.45, 2), (2.05, 1)];
        let fates: Vec<Fate> = follow(&sent, &received)
            .iter()
            .map(|segment| segment.fate)
            .collect();
        assert_eq!(
            fates,
            [
                Fate::Arrived(1.25),
                Fate::Lost,
                Fate::Arrived(1.45),
                Fate::Arrived(2.05),
                Fate::Unknown
            ]
        );
    }

    #[test]
    fn a_needless_retransmission_does_not_make_the_first_lost() {
        // Segment 0 arrives; 1 arrives late, just after a spurious retransmission of it was sent.
        let sent = [(0.5, 0, false), (1.0, 1, false), (1.2, 1, true)];
        let received = vec![(0.75, 0), (1.3, 1)];
        let fates: Vec<Fate> = follow(&sent, &received)
            .iter()
            .map(|segment| segment.fate)
            .collect();
        assert_eq!(
            fates,
            [Fate::Arrived(0.75), Fate::Arrived(1.3), Fate::Unknown]
        );
    }

    #[test]
    fn the_way_back_is_the_shortest_of_the_advancing_acknowledgements() {
        let received = vec![(1.0, 0), (1.1, 1), (1.3, 2)];
        let arrivals = [(1.27, 1, false), (1.36, 2, false), (1.4, 2, true)];
        let back = way_back(&arrivals, &received).unwrap();
        assert!((back - 0.26).abs() < 1e-12, "{back}");
    }
}

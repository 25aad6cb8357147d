//! A packet ladder as data: which segment left when and arrived when, or was lost, and the acknowledgements back.

use anabranch_scenario::records::Series;
use anabranch_scenario::records::SeriesError;

use super::Maker;
use crate::unit;

/// Two lifelines and what went between them. Times in seconds, segments counted from 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Ladder {
    /// First and last time shown.
    pub window: (f64, f64),
    /// The flow's name.
    pub flow: String,
    /// Segments on their way, in order of departure.
    pub segments: Vec<Segment>,
    /// Acknowledgements, in order of arrival.
    pub acks: Vec<Ack>,
    /// Values that cwnd took at the sender: time and text, unit included.
    pub cwnd: Vec<(f64, String)>,
}

/// A transmission of a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Its number.
    pub number: u64,
    /// When it left.
    pub departed: f64,
    /// What became of it.
    pub fate: Fate,
    /// Whether it was sent before.
    pub again: bool,
}

/// What became of a transmission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    /// It arrived then.
    Arrived(f64),
    /// It never arrived.
    Lost,
    /// The recording ends before it could arrive, or it carried what was there already.
    Unknown,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ack {
    /// The last segment it covers.
    pub covers: u64,
    /// When it left, reckoned from the shortest way back of any.
    pub departed: f64,
    /// When it arrived.
    pub arrived: f64,
    /// Whether it repeats the one before.
    pub duplicate: bool,
}

/// Time and number of each sample.
type Marks = Vec<(f64, u64)>;

fn marks(series: Option<Series>) -> Marks {
    let samples = series.map_or(Vec::new(), |series| series.samples);
    samples
        .iter()
        .map(|sample| (sample.time, sample.value.max(0.0) as u64))
        .collect()
}

/// The shortest time between a receipt and the transmission that made it, over segments that were sent once: only of
/// those is it known which transmission that was.
fn shortest_way(sent: &[(f64, u64, bool)], received: &Marks) -> Option<f64> {
    let way = |(at, number): &(f64, u64)| {
        let mut transmissions = sent.iter().filter(|(_, other, _)| other == number);
        let (departed, ..) = transmissions.next()?;
        transmissions.next().is_none().then_some(at - departed)
    };
    received.iter().filter_map(way).min_by(f64::total_cmp)
}

/// Matches each receipt with the last transmission that could have made it.
fn follow(sent: &[(f64, u64, bool)], received: &Marks) -> Vec<Segment> {
    let Some(shortest) = shortest_way(sent, received) else {
        return sent
            .iter()
            .map(|&(departed, number, again)| Segment {
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
        // A nanosecond of slack for times that were divided into seconds.
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
        segments.push(Segment {
            number,
            departed,
            fate,
            again,
        });
    }
    segments
}

/// When acknowledgements left: the shortest way back of any before they arrived.
fn way_back(arrivals: &[(f64, u64, bool)], received: &Marks) -> Option<f64> {
    let way = |&(at, covers, duplicate): &(f64, u64, bool)| {
        // An advancing acknowledgement left when the last of what it covers had arrived.
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
    /// The ladder of a flow whose series of a probe `read` gives, in a window or, without one, from the first transmission to the last.
    /// `None` where nothing was sent.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn of(
        flow: &str,
        window: Option<(f64, f64)>,
        mut read: impl FnMut(&str) -> Result<Option<Series>, SeriesError>,
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
        let acks = acks.into_iter().map(|(arrived, covers, duplicate)| Ack {
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

/// Marks of two kinds in the order of time, each with whether it is of the second.
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

    /// The values that cwnd took in the window.
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
        // 0 -> arrives; 1 -> lost; 2 -> arrives; 1 again -> arrives; 3 -> still on its way
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
        // 0 -> arrives; 1 -> arrives late; 1 again, just before, for nothing
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

//! Outages of links.

use anabranch_transport::Nanos;

/// A period in which a link is down.
///
/// Packets that are offered during the period are dropped. Packets in the queue and in transmission
/// at its start are dropped too; packets in the channel arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Start of the outage.
    pub from: Nanos,
    /// End of the outage; [`Nanos::MAX`] if the link stays down.
    pub until: Nanos,
}

/// Outages of a direction, queried in the order of time.
#[derive(Debug)]
pub(crate) struct Outages {
    spans: Vec<Outage>,
    over: usize,
}

impl Outages {
    /// `None` if the periods overlap, are empty or out of order.
    pub fn new(spans: Vec<Outage>) -> Option<Self> {
        let sound = spans.iter().all(|span| span.from < span.until)
            && spans.is_sorted_by(|a, b| a.until <= b.from);
        sound.then_some(Self { spans, over: 0 })
    }

    /// Start of the next outage after `now`, or an error if the link is down at `now`.
    /// [`Nanos::MAX`] if there is no further outage.
    #[inline]
    pub fn at(&mut self, now: Nanos) -> Result<Nanos, Down> {
        while let Some(span) = self.spans.get(self.over) {
            if now < span.from {
                return Ok(span.from);
            }
            if now < span.until {
                return Err(Down);
            }
            self.over += 1;
        }
        Ok(Nanos::MAX)
    }
}

/// Error: the link is down.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Down;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_are_half_open_and_checked() {
        let span = |from, until| Outage { from, until };
        let mut outages = Outages::new(vec![span(10, 20), span(20, 30), span(40, 41)]).unwrap();
        assert_eq!(outages.at(9), Ok(10));
        assert_eq!(outages.at(10), Err(Down));
        assert_eq!(outages.at(29), Err(Down));
        assert_eq!(outages.at(30), Ok(40));
        assert_eq!(outages.at(41), Ok(Nanos::MAX));
        assert!(Outages::new(vec![span(5, 5)]).is_none());
        assert!(Outages::new(vec![span(5, 9), span(8, 10)]).is_none());
    }
}

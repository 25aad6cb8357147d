//! Series of values that are computed during a run.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_scenario::quantity::Window;
use anabranch_scenario::records::SeriesSample;
use anabranch_transport::{Nanos, time};

use super::observer::Observer;

/// Buffer of samples for a series file, each with the index of its series in the run.
pub type SampleBuffer = Rc<RefCell<Vec<(u32, SeriesSample)>>>;

/// One value of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesValue {
    /// Time of the value, nanoseconds. The values of a series are in the order of time.
    pub at: Nanos,
    /// Index of the path or stream, if the series has several.
    pub index: u16,
    /// Value in the unit of the series.
    pub value: f64,
}

/// Observer that computes a series.
pub trait SeriesProbe: Observer {
    /// Returns the next known value of the series. It is called after each observation until it
    /// returns `None`.
    fn poll(&mut self) -> Option<SeriesValue>;

    /// Computes all remaining values, because the run ends at `now`.
    fn settle(&mut self, now: Nanos) {
        let _ = now;
    }
}

/// A series that is computed and recorded.
#[derive(Debug)]
pub struct SeriesRecorder {
    /// Observer that computes the series.
    pub series: Box<dyn SeriesProbe>,
    /// If set, only values in this window are kept.
    pub window: Option<Window>,
    /// Index of the series in the list of recorded series of the run.
    pub key: u32,
}

impl SeriesRecorder {
    /// Passes an observation to the series, and stores the values that become known.
    pub fn show(&mut self, out: &SampleBuffer, show: impl FnOnce(&mut dyn SeriesProbe)) {
        show(&mut *self.series);
        while let Some(told) = self.series.poll() {
            if self.window.is_none_or(|window| window.contains(told.at)) {
                let sample = SeriesSample {
                    index: told.index,
                    time: time::seconds(told.at),
                    value: told.value,
                };
                out.borrow_mut().push((self.key, sample));
            }
        }
    }
}

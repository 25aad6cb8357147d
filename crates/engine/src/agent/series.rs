//! Series of a member that are computed during a run.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_scenario::quantity::Window;
use anabranch_scenario::records::SeriesSample;
use anabranch_transport::{Nanos, time};

use super::observer::Observer;

/// Samples to be written to a series file: the index of the series in the run's keys, and the
/// sample.
pub type SampleBuffer = Rc<RefCell<Vec<(u32, SeriesSample)>>>;

/// A value of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesValue {
    /// Time. The values of a series are in order of time.
    pub at: Nanos,
    /// Index of the subject if a series has several: a path, a stream.
    pub index: u16,
    /// The value.
    pub value: f64,
}

/// Computes a series from its observations.
pub trait Series: Observer {
    /// The next known value. Called after each observation until there is none.
    fn poll(&mut self) -> Option<SeriesValue>;

    /// The run ends at `now`, so all remaining values are known.
    fn settle(&mut self, now: Nanos) {
        let _ = now;
    }
}

/// A recorded series.
#[derive(Debug)]
pub struct SeriesRecorder {
    /// The observer that computes it.
    pub series: Box<dyn Series>,
    /// If set, only values in this window are kept.
    pub window: Option<Window>,
    /// Index of the series in the run's keys.
    pub key: u32,
}

impl SeriesRecorder {
    /// Passes an observation to the series, and stores the resulting values.
    pub fn show(&mut self, out: &SampleBuffer, show: impl FnOnce(&mut dyn Series)) {
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

//! Series of a member that are made while a run goes on.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_scenario::quantity::Window;
use anabranch_scenario::records::SeriesSample;
use anabranch_transport::{Nanos, time};

use super::observer::Observer;

/// Samples on their way to a series file: the series' index in the run's keys, and the sample.
pub type SampleBuffer = Rc<RefCell<Vec<(u32, SeriesSample)>>>;

/// A value of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Told {
    /// When. The values of a series are in the order of time.
    pub at: Nanos,
    /// What it is of, where a series is of several: a path, a stream.
    pub index: u16,
    /// The value.
    pub value: f64,
}

/// Makes a series of what it observes.
pub trait Series: Observer {
    /// The next value that is known. It is asked after each thing observed, until there is none.
    fn poll(&mut self) -> Option<Told>;

    /// The run is over at `now`: what is still to be told, is known.
    fn settle(&mut self, now: Nanos) {
        let _ = now;
    }
}

/// A series that is recorded.
#[derive(Debug)]
pub struct Recorded {
    /// Who makes it.
    pub series: Box<dyn Series>,
    /// Only values in this window.
    pub window: Option<Window>,
    /// Index of the series in the run's keys.
    pub key: u32,
}

impl Recorded {
    /// Shows something to the series, and keeps what it tells.
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

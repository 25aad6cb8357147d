//! Parts of a run over which a metric is computed.

use anabranch_scenario::quantity::{TimeSpan, Window};
use anabranch_settings::{FromParameters, KindError, KindParameters, Named};
use anabranch_transport::Nanos;

use super::common_parameters::{CLOCK, Clock, WINDOW, WINDOWS, is_name};
use super::{Life, ResultName, whole};
use crate::agent::observer::Observer;

/// One time window, or several named ones; by default the whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeWindows {
    windows: Vec<(Option<String>, Option<Window>)>,
    clock: Clock,
}

impl FromParameters for TimeWindows {
    /// Reads [`WINDOW`] and [`WINDOWS`], and [`CLOCK`] if the kind has it.
    fn read(parameters: &KindParameters<'_>) -> Result<Self, KindError> {
        let has_clock = parameters.declared().iter().any(|it| it.name == CLOCK.name);
        let clock = match has_clock {
            true => parameters.get(CLOCK.name)?,
            false => Clock::Run,
        };
        let one: Option<(Nanos, Nanos)> = parameters.get(WINDOW.name)?;
        let named: Option<Named<(Nanos, Nanos)>> = parameters.get(WINDOWS.name)?;
        let windows = match (one, named) {
            (Some(_), Some(_)) => {
                let message = "found both `window` and `windows`; a measure has one of them";
                return Err(KindError::together(message));
            }
            (one, None) => vec![(None, one.map(window).transpose()?)],
            (None, Some(Named(named))) => {
                let each = named.into_iter().map(|(name, pair)| {
                    if !is_name(&name) {
                        let message = format!(
                            "found {name:?}; the name of a window is made of letters, digits and `_`"
                        );
                        return Err(KindError::together(message));
                    }
                    Ok((Some(name), Some(window(pair)?)))
                });
                each.collect::<Result<_, _>>()?
            }
        };
        let over = Self { windows, clock };
        if clock == Clock::Flow && over.is_whole() {
            let message = "`clock = \"flow\"` says where the times of `window` or `windows` start, and there are none; set one, or leave `clock` out";
            return Err(KindError::together(message));
        }
        Ok(over)
    }
}

impl TimeWindows {
    /// Whether the only window is the whole run.
    pub fn is_whole(&self) -> bool {
        self.windows.iter().all(|(_, window)| window.is_none())
    }

    /// All windows; `None` is the whole run.
    pub fn windows(&self) -> impl ExactSizeIterator<Item = Option<Window>> + '_ {
        self.windows.iter().map(|(_, window)| *window)
    }

    /// Names of the metric's values, one for each window.
    pub fn names(&self, series: &str, metric: &str, unit: &'static str) -> Vec<ResultName> {
        let named = self.windows.iter().map(|(name, _)| match name {
            None => ResultName::new(series, metric, unit),
            Some(name) => ResultName::new(series, &format!("{metric}_{name}"), unit),
        });
        named.collect()
    }

    /// Creates one observer for each window, for a member with this lifetime.
    pub fn observers<T: Observer>(
        &self,
        life: Life,
        make: impl Fn(Window) -> T,
    ) -> Vec<Box<dyn Observer>> {
        let begin = match self.clock {
            Clock::Run => 0,
            Clock::Flow => life.start,
        };
        let windows = self.windows().map(|window| {
            let Window(ends) = window.unwrap_or(whole(life));
            Window(ends.map(|at| TimeSpan(at.0.saturating_add(begin))))
        });
        windows
            .map(|window| Box::new(make(window)) as Box<dyn Observer>)
            .collect()
    }
}

fn window((begin, end): (Nanos, Nanos)) -> Result<Window, KindError> {
    let [begin, end] = [TimeSpan(begin), TimeSpan(end)];
    if begin >= end {
        return Err(KindError::together(format!(
            "found [\"{begin}\", \"{end}\"]; a window must begin before it ends"
        )));
    }
    Ok(Window([begin, end]))
}

//! Times at which a flow enters and leaves the phases of Careful Resume.

use anabranch_congestion::careful_resume::Phase;
use anabranch_settings::{KindEntry, kind};
use anabranch_transport::{Nanos, Probe, Sample, time};

use super::common_parameters::FLOW;
use super::outcome::mean;
use super::{BoxedMetric, Life, Metric, ResultName, RunData};
use crate::agent::observer::Observer;

kind! {
    /// Parameter of the metric: the flow.
    struct ResumePhases {
        flow: String as FLOW;
    }
    /// Times at which a flow first entered and left each phase of Careful Resume (RFC 9959), s from
    /// its start: mean over the members that were in the phase. Phases that no member entered are
    /// omitted. The names consist of `resume_`, the phase (`reconnaissance`, `unvalidated`,
    /// `validating`, `safe_retreat`), and `_entry` or `_exit`.
    pub(super) static ENTRY: KindEntry<BoxedMetric> = "resume_phases", |it, ()| Ok(Box::new(it));
}

/// The phases that have an entry and an exit.
fn phases() -> impl Iterator<Item = Phase> {
    let all = Phase::ALL.into_iter();
    all.filter(|phase| *phase != Phase::Normal)
}

/// Observer of one member: times of the first entry and exit of each phase, from the start of the
/// member.
#[derive(Debug)]
struct Watched {
    start: Nanos,
    /// Code of the current phase.
    phase: u8,
    times: [[Option<Nanos>; 2]; Phase::ALL.len()],
}

impl Observer for Watched {
    fn probes(&self) -> &[Probe] {
        &[Probe::ResumePhase]
    }

    fn sample(&mut self, sample: &Sample) {
        let phase = sample.value as u8;
        if sample.probe != Probe::ResumePhase || phase == self.phase {
            return;
        }
        let since = sample.at.saturating_sub(self.start);
        if let Some([_, exit]) = self.times.get_mut(usize::from(self.phase)) {
            exit.get_or_insert(since);
        }
        if let Some([entry, _]) = self.times.get_mut(usize::from(phase)) {
            entry.get_or_insert(since);
        }
        self.phase = phase;
    }
}

impl Metric for ResumePhases {
    fn names(&self) -> Vec<ResultName> {
        let of = |phase: Phase| {
            let name = phase.name();
            ["entry", "exit"]
                .map(|end| ResultName::new(&self.flow, &format!("resume_{name}_{end}"), "s"))
        };
        phases().flat_map(of).collect()
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        vec![Box::new(Watched {
            start: life.start,
            phase: Phase::Normal.code(),
            times: Default::default(),
        })]
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let watched: Vec<&Watched> = seen.observers(&self.flow, 0);
        let of = |phase: Phase| {
            let code = usize::from(phase.code());
            [0, 1].map(|end| {
                let times = watched.iter().filter_map(|it| it.times[code][end]);
                mean(times.map(time::seconds))
            })
        };
        phases().flat_map(of).collect()
    }
}

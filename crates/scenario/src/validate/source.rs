//! Data sources of tables, figures and derived experiments.

use crate::derived::Derived;
use crate::spec::{Experiment, Spec, Sweep};
use crate::value::SweepValue;
use crate::vocabulary::{MeasureName, Vocabulary};

/// Data source of a table, figure or curve: an experiment that is run, or a derived one.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Run(&'a Experiment),
    Derived(&'a Derived),
}

impl<'a> Source<'a> {
    pub(super) fn named(spec: &'a Spec, id: &str) -> Option<Self> {
        let run = spec
            .experiments
            .iter()
            .find(|experiment| experiment.id == id);
        let derived = || spec.derived.iter().find(|derived| derived.id() == id);
        run.map(Source::Run)
            .or_else(|| derived().map(Source::Derived))
    }

    pub(super) fn id(self) -> &'a str {
        match self {
            Source::Run(experiment) => &experiment.id,
            Source::Derived(derived) => derived.id(),
        }
    }

    /// Names and units of all measures of the source.
    pub(super) fn measures(self, spec: &'a Spec, vocabulary: &dyn Vocabulary) -> Vec<MeasureName> {
        match self {
            Source::Run(experiment) => {
                let measures = spec.measures.iter().chain(&experiment.measures);
                measures
                    .flat_map(|it| vocabulary.measure_names(it))
                    .collect()
            }
            Source::Derived(derived) => {
                let (series, metric) = derived.names();
                let unit = match derived.unit() {
                    Some(unit) => unit.to_owned(),
                    None => Self::behind(spec, derived)
                        .and_then(|it| it.unit_of(spec, vocabulary, derived.source()))
                        .unwrap_or_default(),
                };
                vec![MeasureName {
                    series,
                    metric,
                    unit,
                }]
            }
        }
    }

    /// Unit of one measure of the source.
    fn unit_of(
        self,
        spec: &'a Spec,
        vocabulary: &dyn Vocabulary,
        (series, metric): (&str, &str),
    ) -> Option<String> {
        let all = self.measures(spec, vocabulary).into_iter();
        let mut named = all.filter(|it| it.metric == metric && is_of(&it.series, series));
        named.next().map(|it| it.unit)
    }

    /// Names of the sweeps of the source.
    pub(super) fn sweeps(self, spec: &'a Spec) -> Vec<&'a str> {
        match self {
            Source::Run(experiment) => experiment.sweeps.iter().filter_map(Sweep::x_name).collect(),
            Source::Derived(derived) => {
                let source = Self::behind(spec, derived);
                let mut all = source.map_or(Vec::new(), |source| source.sweeps(spec));
                all.retain(|name| derived.along() != Some(name));
                all
            }
        }
    }

    /// Experiment from which `derived` is computed.
    fn behind(spec: &'a Spec, derived: &'a Derived) -> Option<Self> {
        let known = known_before(spec, derived).find(|id| *id == derived.experiment());
        known.and_then(|id| Source::named(spec, id))
    }

    /// Experiment that must be run for this source.
    pub(super) fn run(self, spec: &'a Spec) -> Option<&'a Experiment> {
        match self {
            Source::Run(experiment) => Some(experiment),
            Source::Derived(derived) => Self::behind(spec, derived)?.run(spec),
        }
    }

    /// Position of the sweep `name` in the spec, such as `experiment.0.sweep.1`, and its x values.
    /// The sweep of a derived experiment is that of the experiment from which it is derived.
    pub(super) fn points(self, spec: &'a Spec, name: &str) -> Option<(String, Vec<SweepValue>)> {
        match self {
            Source::Run(run) => {
                let at = spec.experiments.iter().position(|it| it.id == run.id)?;
                let named = |sweep: &Sweep| sweep.x_name() == Some(name);
                let index = run.sweeps.iter().position(named)?;
                Some((
                    format!("experiment.{at}.sweep.{index}"),
                    run.sweeps[index].xs(),
                ))
            }
            Source::Derived(derived) => Self::behind(spec, derived)?.points(spec, name),
        }
    }
}

/// Source of a table or figure, if it exists.
pub(super) fn source_of<'a>(
    spec: &'a Spec,
    id: &str,
    named: Option<&String>,
) -> Option<Source<'a>> {
    let first = || spec.experiments.first().map(Source::Run);
    match named {
        Some(name) => Source::named(spec, name),
        None => Source::named(spec, id).or_else(first),
    }
}

/// Ids of the experiments that can be the source of a derived one: those that are run, and earlier
/// derived ones.
pub(super) fn known_before<'a>(
    spec: &'a Spec,
    derived: &'a Derived,
) -> impl Iterator<Item = &'a str> {
    let run = spec
        .experiments
        .iter()
        .map(|experiment| experiment.id.as_str());
    let before = spec.derived.iter().map(Derived::id);
    run.chain(before.take_while(|id| *id != derived.id()))
}

/// Whether both names belong to one series or group of series: `sctp`, `sctp[0]` and `sctp[1]`
/// belong to the group `sctp`.
pub(super) fn is_of(taken: &str, named: &str) -> bool {
    let group = |name: &str| name.split('[').next().map(str::to_owned);
    taken == named || group(taken) == group(named)
}

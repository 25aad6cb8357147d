//! Checks of the measures of a spec.

use crate::checker::Checker;
use crate::kind_choice::KindFamily;
use crate::measure::{Metric, Metrics};
use crate::spec::Spec;
use crate::validate::kind_choice;
use crate::vocabulary::Vocabulary;

/// Checks measures. The names of their results must be unique, also with respect to the measures in
/// `baseline`.
pub(super) fn check_measures(
    c: &mut Checker<'_>,
    spec: &Spec,
    vocabulary: &dyn Vocabulary,
    measures: &[Metric],
    beside: &[Metric],
    path: &str,
) {
    let names = |metric| {
        let names = vocabulary.measure_names(metric).into_iter();
        names.map(|it| (it.series, it.metric))
    };
    let mut named: Vec<(String, String)> = beside.iter().flat_map(names).collect();
    for (index, metric) in measures.iter().enumerate() {
        let path = format!("{path}.{index}");
        let before = c.count();
        kind_choice::check(c, spec, vocabulary.kinds(Metrics::NAME), metric, &path);
        if c.count() > before {
            continue;
        }
        for name in names(metric) {
            if named.contains(&name) {
                let (series, metric) = &name;
                c.problem(
                    &path,
                    format!(
                        "a second measure {metric:?} of {series:?}; results could not tell them apart"
                    ),
                );
            }
            named.push(name);
        }
    }
}

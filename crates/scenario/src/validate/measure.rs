//! Measures that nothing can be measured by.

use crate::checker::Checker;
use crate::chosen::Family;
use crate::measure::{Metric, Metrics};
use crate::spec::Spec;
use crate::validate::chosen;
use crate::vocabulary::Vocabulary;

/// Checks measures, and that results can tell them apart.
pub(super) fn check_measures(
    c: &mut Checker<'_>,
    spec: &Spec,
    vocabulary: &dyn Vocabulary,
    measures: &[Metric],
    path: &str,
) {
    let mut named: Vec<(String, String)> = Vec::new();
    for (index, metric) in measures.iter().enumerate() {
        let path = format!("{path}.{index}");
        let before = c.count();
        chosen::check(c, spec, vocabulary.kinds(Metrics::NAME), metric, &path);
        if c.count() > before {
            continue;
        }
        for name in vocabulary.measure_names(metric) {
            let name = (name.series, name.metric);
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

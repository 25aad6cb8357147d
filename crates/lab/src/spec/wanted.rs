//! What is needed to make one table or figure.

use super::Spec;

/// The ids of all tables and figures.
pub fn ids(spec: &Spec) -> impl Iterator<Item = &str> {
    let tables = spec.tables.iter().map(|table| table.id.as_str());
    tables.chain(spec.figures.iter().map(|figure| figure.id.as_str()))
}

/// The experiments that a table or figure is made of; `None` if there is none of that id.
pub fn experiments_of(spec: &Spec, id: &str) -> Option<Vec<String>> {
    let named_or_own = |named: &Option<String>| {
        let own = || {
            spec.experiments
                .iter()
                .find(|experiment| experiment.id == id)
        };
        let named = named.clone().or_else(|| {
            own()
                .or(spec.experiments.first())
                .map(|experiment| experiment.id.clone())
        });
        named.into_iter()
    };
    if let Some(table) = spec.tables.iter().find(|table| table.id == id) {
        return Some(
            named_or_own(&table.experiment)
                .chain(table.less.clone())
                .collect(),
        );
    }
    let figure = spec.figures.iter().find(|figure| figure.id == id)?;
    let others = figure
        .curves
        .iter()
        .filter_map(|curve| curve.experiment.clone());
    Some(named_or_own(&figure.experiment).chain(others).collect())
}

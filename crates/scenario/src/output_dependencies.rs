//! Dependencies of tables, figures and claims on experiments.

use crate::spec::Spec;

/// Ids of all tables, figures and claims.
pub fn ids(spec: &Spec) -> impl Iterator<Item = &str> {
    let tables = spec.tables.iter().map(|table| table.id.as_str());
    let figures = spec.figures.iter().map(|figure| figure.id.as_str());
    let claims = spec.claims.iter().map(|claim| claim.id.as_str());
    tables.chain(figures).chain(claims)
}

/// Experiments on which a table, figure or claim depends; `None` if the id is unknown.
pub fn experiments_of(spec: &Spec, id: &str) -> Option<Vec<String>> {
    let named_or_own = |named: &Option<String>| {
        let own = || {
            spec.experiments
                .iter()
                .find(|experiment| experiment.id == id)
        };
        let named = named.clone().or_else(|| {
            own()
                .map(|experiment| experiment.id.clone())
                .or_else(|| {
                    spec.derived
                        .iter()
                        .map(|d| d.id().to_owned())
                        .find(|own| own == id)
                })
                .or_else(|| {
                    spec.experiments
                        .first()
                        .map(|experiment| experiment.id.clone())
                })
        });
        named.into_iter()
    };
    if let Some(table) = spec.tables.iter().find(|table| table.id == id) {
        let named = named_or_own(&table.experiment).chain(table.subtract.clone());
        return Some(named.map(|id| run_for(spec, id)).collect());
    }
    if let Some(claim) = spec.claims.iter().find(|claim| claim.id == id) {
        let first = || spec.experiments.first().map(|first| first.id.clone());
        let named = claim
            .experiments()
            .filter_map(|it| it.cloned().or_else(first));
        return Some(named.map(|id| run_for(spec, id)).collect());
    }
    let figure = spec.figures.iter().find(|figure| figure.id == id)?;
    let others = figure
        .curves
        .iter()
        .filter_map(|curve| curve.experiment.clone());
    let named = named_or_own(&figure.experiment).chain(others);
    Some(named.map(|id| run_for(spec, id)).collect())
}

/// Keeps the tables, figures and claims whose id is requested, or whose experiments are all
/// requested. Keeps all if nothing is requested.
pub fn list_only(spec: &mut Spec, only: &[String]) {
    if only.is_empty() {
        return;
    }
    let asked = |id: &str| only.iter().any(|asked| asked == id);
    let ran = |id: &str| {
        let needed = experiments_of(spec, id).unwrap_or_default();
        !needed.is_empty() && needed.iter().all(|experiment| asked(experiment))
    };
    let listed: Vec<String> = ids(spec)
        .filter(|id| asked(id) || ran(id))
        .map(str::to_owned)
        .collect();
    spec.tables.retain(|table| listed.contains(&table.id));
    spec.figures.retain(|figure| listed.contains(&figure.id));
    spec.claims.retain(|claim| listed.contains(&claim.id));
}

/// Experiment that must be run for an experiment id: the source of a derived experiment, or the
/// experiment itself.
fn run_for(spec: &Spec, id: String) -> String {
    // The loop ends, because a derived experiment follows its source in the list.
    let mut id = id.as_str();
    let behind = spec.derived.iter().rev();
    behind.for_each(|derived| {
        if derived.id() == id {
            id = derived.experiment();
        }
    });
    id.to_owned()
}

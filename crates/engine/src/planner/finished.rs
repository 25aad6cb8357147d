//! Spec of runs that are already finished, for the presentation of their results.

use std::collections::BTreeSet;

use anabranch_scenario::diagnostic::{Diagnostic, SpecError};
use anabranch_scenario::sweep::Points;
use anabranch_scenario::tree::SpecNode;
use anabranch_scenario::{Spec, decode, output_dependencies, substitute};

use super::{add_main_experiment, add_plain_tables, check_shape, overrides};
use crate::kinds::Standard;
use crate::network::constellation;
use crate::plan::{Plan, PlanRequest};
use crate::traces;

impl Plan {
    /// Reads the spec of finished runs at their first point, for titles, tables and figures. Names
    /// of kinds are not checked, because the program that made the runs may have added kinds.
    ///
    /// # Errors
    /// [`SpecError`] if the spec cannot be read.
    pub fn finished(request: &PlanRequest) -> Result<Spec, SpecError> {
        let refused =
            |problems| SpecError::new(&request.file, &request.text, &request.overrides, problems);
        SpecNode::parse(&request.text)
            .and_then(|root| read(request, root))
            .map_err(refused)
    }
}

fn read(request: &PlanRequest, mut root: SpecNode) -> Result<Spec, Vec<Diagnostic>> {
    add_main_experiment(&mut root);
    let mut problems = Vec::new();
    let set = overrides::read(&request.overrides, &root, &mut problems);
    let mut tree = overrides::applied(&root, &set);
    check_shape(&tree)?;
    let experiments = tree
        .get("experiment")
        .map(SpecNode::items)
        .unwrap_or_default();
    if let Some(first) = experiments.first().cloned() {
        let path = SpecNode::item_path("experiment", 0, &first);
        let swept = Points::of(&first, &path)?.get(&first, 0).settings;
        let own = overrides::own(&first);
        for setting in own.iter().chain(&set).chain(&swept) {
            problems.extend(setting.apply(&mut tree).err());
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut tree = substitute::substitute(tree, &mut BTreeSet::new())?;
    traces::put_in(&mut tree, &request.files)?;
    let mut spec: Spec = decode::decode(&tree, "")?;
    // Errors are ignored, because they were reported before the runs.
    drop(constellation::complete(
        &mut spec,
        &Standard::default(),
        &tree,
    ));
    let duration = spec.experiments.first().and_then(|it| it.duration);
    spec.world.duration = duration.unwrap_or(spec.world.duration);
    add_plain_tables(&mut spec, &Standard::default());
    output_dependencies::list_only(&mut spec, &request.only);
    Ok(spec)
}

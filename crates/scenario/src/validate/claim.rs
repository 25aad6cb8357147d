//! Checks of claims: the compared measures must exist, and each claim must have exactly the keys
//! that its kind requires or permits.

use super::output::{check_experiment, check_measure, check_point, check_sweeps, check_where};
use super::source::Source;
use super::units;
use crate::checker::Checker;
use crate::claim::{Best, Claim, ClaimKind, ClaimSide, Values};
use crate::spec::Spec;
use crate::vocabulary::Vocabulary;

/// Checks all claims.
pub fn check(c: &mut Checker<'_>, spec: &Spec, vocabulary: &dyn Vocabulary) {
    for (index, claim) in spec.claims.iter().enumerate() {
        let path = format!("claim.{index}");
        check_keys(c, claim, &path);
        let own = check_side(c, spec, vocabulary, claim, &claim.of, &format!("{path}.of"));
        if let Some(than) = &claim.reference {
            check_side(
                c,
                spec,
                vocabulary,
                claim,
                than,
                &format!("{path}.reference"),
            );
        }
        units::of_measure(c, own.as_deref(), claim.unit.as_ref(), &path);
        check_bound(c, spec, claim, own.as_deref(), &path);
        let source = source_of(spec, claim, &claim.of);
        let fixed = claim.at_point.keys().map(String::as_str);
        let of_where = |name: &str| format!("{path}.where.{name}");
        check_sweeps(c, spec, source, fixed, of_where);
        for (name, values) in &claim.at_point {
            for (at, x) in values.all().iter().enumerate() {
                let place = match values {
                    Values::One(_) => of_where(name),
                    Values::Several(_) => format!("{}.{at}", of_where(name)),
                };
                check_point(c, spec, source, (name, x), &place);
            }
        }
        let along = claim.along.iter().map(String::as_str);
        check_sweeps(c, spec, source, along, |_| format!("{path}.along"));
    }
}

/// Experiment of one side of a claim.
fn source_of<'a>(spec: &'a Spec, claim: &Claim, side: &ClaimSide) -> Option<Source<'a>> {
    match side.experiment.as_ref().or(claim.experiment.as_ref()) {
        Some(name) => Source::named(spec, name),
        None => spec.experiments.first().map(Source::Run),
    }
}

fn check_side(
    c: &mut Checker<'_>,
    spec: &Spec,
    vocabulary: &dyn Vocabulary,
    claim: &Claim,
    side: &ClaimSide,
    path: &str,
) -> Option<String> {
    if side.value.is_some() {
        let plain = ClaimSide {
            value: side.value.clone(),
            ..ClaimSide::default()
        };
        if path.ends_with(".of") || *side != plain {
            let message = "`value` is used alone, and only in `reference`";
            c.problem(&format!("{path}.value"), message);
        }
        return None;
    }
    let path_of = |own: bool| match own {
        true => path.to_owned(),
        false => path.rsplit_once('.').map_or("", |(it, _)| it).to_owned(),
    };
    let experiment = side.experiment.as_ref().or(claim.experiment.as_ref());
    let place = path_of(side.experiment.is_some());
    check_experiment(c, spec, experiment, &format!("{place}.experiment"));
    let source = source_of(spec, claim, side);
    let unit = check_measure(
        c,
        spec,
        vocabulary,
        source,
        side.series.as_ref().or(claim.series.as_ref()),
        side.metric.as_ref().or(claim.metric.as_ref()),
        &path_of(side.metric.is_some()),
    );
    check_where(c, spec, source, &side.at_point, path);
    unit
}

/// Checks the bound of a claim about a measure with the unit `own`, at the first x of every sweep.
fn check_bound(c: &mut Checker<'_>, spec: &Spec, claim: &Claim, own: Option<&str>, path: &str) {
    let (Some(bound), Some(own)) = (
        claim.reference.as_ref().and_then(|it| it.value.as_ref()),
        own,
    ) else {
        return;
    };
    let Some(source) = source_of(spec, claim, &claim.of) else {
        return;
    };
    let point = source.sweeps(spec).into_iter().filter_map(|name| {
        let x = source.points(spec, name)?.1.into_iter().next()?;
        Some((name.to_owned(), x))
    });
    let experiment = source.run(spec);
    if let Err(message) = bound.at(spec, experiment, &point.collect(), own) {
        c.problem(&format!("{path}.reference.value"), message);
    }
}

/// Checks that a claim has the keys that its kind requires, and no others.
fn check_keys(c: &mut Checker<'_>, claim: &Claim, path: &str) {
    use ClaimKind::{Crosses, Equal, Falls, Greater, NeverBest, Rises};
    let kind = claim.kind;
    let number = claim
        .reference
        .as_ref()
        .is_some_and(|than| than.value.is_some());
    // For each key: its name, whether it is set, the kinds that require it, and the kinds that
    // permit it.
    let keys: [(&str, bool, &[ClaimKind], &[ClaimKind]); 5] = [
        (
            "reference",
            claim.reference.is_some(),
            &[Greater, Equal, Crosses],
            &[Rises, Falls],
        ),
        (
            "along",
            claim.along.is_some(),
            &[Rises, Falls, Crosses],
            &[],
        ),
        ("within", claim.within.is_some(), &[Equal], &[]),
        ("best", claim.best != Best::Greatest, &[], &[NeverBest]),
        (
            "of.where",
            !claim.of.at_point.is_empty(),
            &[NeverBest],
            &[Greater, Equal, Crosses, Rises, Falls],
        ),
    ];
    for (key, found, needed, allowed) in keys {
        let name = kind.name();
        if needed.contains(&kind) && !found {
            c.problem(path, format!("a claim of kind {name:?} needs `{key}`"));
        } else if found && !needed.contains(&kind) && !allowed.contains(&kind) {
            let message = format!("a claim of kind {name:?} has no `{key}`");
            c.problem(&format!("{path}.{key}"), message);
        }
    }
    if number && matches!(kind, Rises | Falls) {
        let message = "found a constant, which does not change a slope";
        c.problem(&format!("{path}.reference.value"), message);
    }
    if claim
        .within
        .is_some_and(|within| !(within > 0.0 && within < 1.0))
    {
        let message = "the largest difference is a share between 0 and 1, such as 0.05";
        c.problem(&format!("{path}.within"), message);
    }
    for (name, values) in &claim.at_point {
        if values.all().is_empty() {
            let message = "found an empty list; leave the sweep out to take all of its points";
            c.problem(&format!("{path}.where.{name}"), message);
        }
    }
}

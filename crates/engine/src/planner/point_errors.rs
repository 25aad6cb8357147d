//! Errors at single points of an experiment's sweeps. Each error is reported once. The message
//! names the points with the error if the line of the file does not show them.
//!
//! For example, a key that TCP has and SCTP does not is wrong only if a sweep selects SCTP. The
//! message should then name the point, because the line of the key shows TCP.

use std::ops::Range;

use anabranch_scenario::diagnostic::Diagnostic;
use anabranch_scenario::source_span::SourceSpan;
use anabranch_scenario::sweep::SweptPoint;
use anabranch_settings::counted;

/// Combines the errors found at points, in the order of the points. `all` is the number of points,
/// and `path` is that of their experiment.
pub fn told(refused: &[(SweptPoint, Vec<Diagnostic>)], all: usize, path: &str) -> Vec<Diagnostic> {
    let mut told: Vec<(Diagnostic, Vec<&SweptPoint>)> = Vec::new();
    for (point, problems) in refused {
        // A point may have several errors of one key, with different messages.
        let before = told.len();
        for problem in problems {
            let known = told[..before].iter_mut();
            let mut known = known.filter(|(it, _)| is_same(it, problem)).peekable();
            if known.peek().is_none() {
                told.push((problem.clone(), vec![point]));
                continue;
            }
            for (_, points) in known.filter(|(_, points)| points.last() != Some(&point)) {
                points.push(point);
            }
        }
    }
    let told = told.into_iter().map(|(mut problem, points)| {
        let shown = points.iter().any(|point| shows(point, &problem.place));
        if points.len() < all && !shown {
            problem.message += &format!(" (at {} of {path})", named(&points));
        }
        problem
    });
    told.collect()
}

/// Whether two errors concern the same key. Such an error is reported once, even if the value of
/// the key differs between points.
pub fn is_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    one.place == other.place && one.key == other.key
}

/// Whether the source span `place` lies inside a setting of this sweep point, so that the line of
/// the file already shows the point's value.
fn shows(point: &SweptPoint, place: &SourceSpan) -> bool {
    let holds = |of: &SourceSpan| match (of, place) {
        (SourceSpan::File(Range { start, end }), SourceSpan::File(span)) => {
            *start <= span.start && span.end <= *end
        }
        _ => of == place,
    };
    let mut settings = point.settings.iter();
    settings.any(|setting| holds(&setting.key_place) || holds(&setting.node.place))
}

/// Description of points: their common values, or the first point and the number of the others.
fn named(points: &[&SweptPoint]) -> String {
    let Some((first, others)) = points.split_first() else {
        return String::new();
    };
    let common = first.point.iter();
    let common = common.filter(|pair| others.iter().all(|other| other.point.contains(pair)));
    let common: Vec<_> = common.collect();
    let (pairs, more) = match common.as_slice() {
        [] => (
            first.point.iter().collect(),
            format!(" and {}", counted(others.len(), "other point")),
        ),
        _ => (common, String::new()),
    };
    let pairs = pairs
        .iter()
        .map(|(name, x)| format!("{name} {}", x.describe()));
    let pairs: Vec<String> = pairs.collect();
    pairs.join(", ") + &more
}

//! Checks of the units of rows and curves.

use crate::checker::Checker;
use crate::quantity::Size;
use crate::unit::{UNITS, divisor, of_probe, shown_for};

/// Checks the unit of a row or a curve that shows a measure. `own` is the unit of the measure, or
/// `None` if it is unknown.
pub(super) fn of_measure(
    c: &mut Checker<'_>,
    own: Option<&str>,
    wanted: Option<&String>,
    path: &str,
) {
    let Some(wanted) = wanted else { return };
    let path = format!("{path}.unit");
    match own {
        Some(own) if divisor(own, wanted).is_none() => {
            let message = format!("found {wanted:?}, but what is shown is measured in {own:?}");
            c.not_among(&path, &message, wanted, shown_for(own));
        }
        None if !UNITS.contains(&wanted.as_str()) => {
            c.not_among(
                &path,
                &format!("found {wanted:?}"),
                wanted,
                UNITS.iter().copied(),
            );
        }
        _ => {}
    }
}

/// Checks the unit of a row or a curve that shows a probe, and the segment size if the unit is
/// segments.
pub(super) fn of_probe_shown(
    c: &mut Checker<'_>,
    probe: Option<&str>,
    wanted: Option<&String>,
    segment: Option<Size>,
    path: &str,
) {
    let (Some(own), Some(wanted)) = (probe.map(of_probe), wanted) else {
        return of_measure(c, None, wanted, path);
    };
    let path = format!("{path}.unit");
    // A probe in bytes may also be shown in segments.
    let more = (own == "bytes").then_some("segments");
    if more == Some(wanted.as_str()) {
        if segment.is_none() {
            let message =
                "found \"segments\", but no `segment_size`; the probe is recorded in bytes";
            c.problem(&path, message);
        }
    } else if divisor(own, wanted).is_none() {
        let message = format!("found {wanted:?}, but the probe is recorded in {own:?}");
        c.not_among(&path, &message, wanted, shown_for(own).chain(more));
    }
}

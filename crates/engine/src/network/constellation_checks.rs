//! Plausibility checks of constellations: stations that never reach a satellite, inter-satellite
//! links through the Earth, and shells with probably swapped numbers.

use anabranch_orbit::{OrbitConfig, SHELLS, Shells};
use anabranch_scenario::Spec;
use anabranch_scenario::checker::Checker;
use anabranch_scenario::constellation::Constellation;
use anabranch_scenario::diagnostic::Diagnostic;
use anabranch_scenario::tree::SpecNode;
use anabranch_settings::counted;
use anabranch_transport::time;

use super::constellation::{place, shells};
use crate::kinds::Standard;

/// Interval between the times at which satellites in reach of a station are searched, seconds. The
/// search may miss a shorter pass, which would not be useful for a flow.
const STEP: f64 = 20.0;
/// Minimum number of search times in a run.
const MIN_STEPS: u32 = 200;
/// Maximum number of positions computed in a search. With many satellites, the search times of a
/// long run are farther apart. This is sufficient, because a station that reaches one of so many
/// satellites at any time reaches one of them most of the time.
const MAX_POSITIONS: usize = 500_000;

/// Number of search times for a run of `duration` seconds.
fn steps(duration: f64, satellites: usize) -> u32 {
    let most = MAX_POSITIONS / satellites.max(1);
    let steps = (duration / STEP).ceil().min(most as f64) as u32;
    steps.max(MIN_STEPS)
}

/// Checks the constellations of a valid spec: each station should reach a satellite at some time,
/// and at least one inter-satellite link should be usable.
pub fn check(spec: &Spec, kinds: &Standard, root: &SpecNode) -> Vec<Diagnostic> {
    let mut checker = Checker::new(root);
    check_each(&mut checker, spec, kinds);
    checker.into_problems()
}

fn check_each(c: &mut Checker<'_>, spec: &Spec, kinds: &Standard) {
    let duration = time::seconds(spec.world.duration.0);
    for (index, constellation) in spec.constellations.iter().enumerate() {
        let Ok(shells) = shells(constellation, kinds) else {
            continue;
        };
        let start = time::seconds(constellation.start.0);
        if let Some((blocked, all)) = blocked(&shells, start)
            && blocked == all
        {
            let message = format!(
                "all {all} links between satellites of {:?} are longer than the horizon allows: each passes below the clearance (`isl_clearance`); \
                 take more satellites a plane, more planes, or `relay` = \"bent-pipe\"",
                constellation.name
            );
            c.problem(&format!("constellation.{index}.shells"), message);
        }
        let steps = steps(duration, shells.len());
        let at = |step: u32| start + duration * f64::from(step) / f64::from(steps);
        for station in unreached(spec, constellation, &shells, (0..=steps).map(at)) {
            let (ground, number) = station;
            let own = &spec.grounds[ground];
            let message = format!(
                "no satellite of {:?} is in reach of {} at any time of the run; move it, or change `min_elevation`, `max_range` or the shells",
                constellation.name, own.stations[number].at
            );
            c.problem(&format!("ground.{ground}.stations.{number}"), message);
        }
    }
}

/// Number of inter-satellite links that the Earth blocks at `at`, and their total number; `None` if
/// there are none.
fn blocked(shells: &Shells, at: f64) -> Option<(usize, usize)> {
    let isls = shells.isls();
    let mut positions = Vec::new();
    shells.positions(at, &mut positions);
    let blocked = isls.iter();
    let blocked = blocked.filter(|ends| shells.isl_length(**ends, &positions).is_none());
    let count = blocked.count();
    (count > 0).then_some((count, isls.len()))
}

/// Stations that never reach a satellite: index of the ground, and index of the station in it.
fn unreached(
    spec: &Spec,
    constellation: &Constellation,
    shells: &Shells,
    times: impl Iterator<Item = f64>,
) -> Vec<(usize, usize)> {
    let mut open = Vec::new();
    for (ground, own) in spec.grounds.iter().enumerate() {
        if own.uses(&constellation.name) {
            let places = own.stations.iter().enumerate();
            open.extend(
                places.filter_map(|(number, it)| Some((ground, number, place(&it.at).ok()?))),
            );
        }
    }
    let (mut positions, mut found) = (Vec::new(), Vec::new());
    for at in times {
        // Most stations reach a satellite at the first search time, so the search usually ends
        // early.
        if open.is_empty() {
            break;
        }
        shells.positions(at, &mut positions);
        open.retain(|(.., place)| {
            shells.in_reach(*place, &positions, &mut found);
            found.is_empty()
        });
    }
    let open = open.into_iter();
    open.map(|(ground, number, _)| (ground, number)).collect()
}

/// Descriptions of implausible properties of a constellation.
pub fn about(constellation: &Constellation, kinds: &Standard) -> Vec<String> {
    let Ok(shells) = shells(constellation, kinds) else {
        return Vec::new();
    };
    let mut own = Vec::new();
    if let Some((blocked, all)) = blocked(&shells, time::seconds(constellation.start.0)) {
        let links = counted(all as u64, "link");
        own.push(format!(
            "{blocked} of {links} between satellites pass below the clearance at the begin, and are not used while they do"
        ));
    }
    for shell in shells.shells() {
        match shell.catalogue() {
            None => own.extend(swapped(shell.sky())),
            Some(catalogue) => {
                own.push(catalogue.to_string());
                own.extend(catalogue.notes.iter().cloned());
            }
        }
    }
    let place = format!("`constellation.{}`", constellation.name);
    own.iter().map(|note| format!("{place}: {note}")).collect()
}

/// Note about a shell that equals a known one, with planes and satellites per plane swapped.
fn swapped(sky: &OrbitConfig) -> Option<String> {
    if sky.planes == sky.satellites {
        return None;
    }
    let alike = |known: &OrbitConfig| {
        (known.altitude - sky.altitude).abs() < 100.0
            && (known.inclination - sky.inclination).abs() < 2.0
    };
    let of = |planes: u32, satellites: u32| {
        let mut shells = SHELLS.iter();
        shells.find(|shell| {
            let known = shell.sky();
            alike(&known) && (known.planes, known.satellites) == (planes, satellites)
        })
    };
    let known = of(sky.satellites, sky.planes)?;
    of(sky.planes, sky.satellites).is_none().then(|| {
        format!(
            "{} planes of {} satellites; the shell `{}` has {} planes of {}: see that they are not the wrong way round",
            sky.planes, sky.satellites, known.name, sky.satellites, sky.planes
        )
    })
}

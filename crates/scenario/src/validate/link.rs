//! Checks of links.

use crate::checker::Checker;
use crate::kind_choice::{KindChoice, KindFamily};
use crate::quantity::TimeSpan;
use crate::spec::Spec;
use crate::validate::kind_choice;
use crate::validate::names::check_node;
use crate::vocabulary::Vocabulary;
use crate::world::{Directed, Link};

/// Checks a link and each of its directions.
pub(super) fn check_link(
    c: &mut Checker<'_>,
    spec: &Spec,
    vocabulary: &dyn Vocabulary,
    link: &Link,
    path: &str,
) {
    let first = check_node(c, spec, &link.between[0], &format!("{path}.between.0"));
    let second = check_node(c, spec, &link.between[1], &format!("{path}.between.1"));
    if let (Some(first), Some(second)) = (first, second) {
        if link.between[0] == link.between[1] {
            if first == 1 {
                c.problem(
                    &format!("{path}.between"),
                    format!(
                        "joins {:?} with itself; a link joins two nodes, or the members of a group",
                        link.between[0]
                    ),
                );
            }
        } else if first != second && ![first, second].iter().any(|count| *count <= 1) {
            let [a, b] = &link.between;
            let message = format!(
                "joins {first} members of {a:?} with {second} of {b:?}; the counts must be equal, or one of them must be 1"
            );
            c.problem(&format!("{path}.between"), message);
        }
    }
    check_outages(c, link, path);
    check_mtu(c, link, path);
    for (key, there) in [
        (
            "rate",
            [true, false].map(|forward| link.rate.side(forward).is_some()),
        ),
        (
            "delay",
            [true, false].map(|forward| link.delay.side(forward).is_some()),
        ),
    ] {
        for (side, _) in ["forward", "backward"]
            .into_iter()
            .zip(there)
            .filter(|it| !it.1)
        {
            let what = format!("; each direction has a {key}");
            c.missing_key(&format!("{path}.{key}"), side, &what);
        }
    }
    check_each(c, spec, vocabulary, &link.delay, &format!("{path}.delay"));
    check_each(c, spec, vocabulary, &link.queue, &format!("{path}.queue"));
    check_each(c, spec, vocabulary, &link.loss, &format!("{path}.loss"));
}

/// Checks the kind that is chosen for each direction.
fn check_each<F: KindFamily>(
    c: &mut Checker<'_>,
    spec: &Spec,
    vocabulary: &dyn Vocabulary,
    chosen: &Directed<KindChoice<F>>,
    path: &str,
) {
    for (side, forward) in [("forward", true), ("backward", false)] {
        let Some(chosen) = chosen.side(forward) else {
            continue;
        };
        let path = c.side(path, side);
        kind_choice::check(c, spec, vocabulary.kinds(F::NAME), chosen, &path);
    }
}

/// Checks the MTU of a link and its changes.
fn check_mtu(c: &mut Checker<'_>, link: &Link, path: &str) {
    let first = link.mtu.iter().map(|mtu| ("mtu", mtu));
    let later = link.mtu_changes.iter().map(|it| ("mtu_changes", &it.1));
    let mut all = first.chain(later);
    if let Some((key, mtu)) = all.find(|(_, mtu)| !(68..=65_575).contains(&mtu.0)) {
        c.problem(
            &format!("{path}.{key}"),
            format!("found \"{mtu}\"; a link carries 68 B (RFC 791) to 65575 B"),
        );
    }
    if !link.mtu_changes.is_sorted_by_key(|(from, _)| from.0) {
        c.problem(
            &format!("{path}.mtu_changes"),
            "the changes are not in the order of time",
        );
    }
}

/// Checks the times at which a link is up or down.
fn check_outages(c: &mut Checker<'_>, link: &Link, path: &str) {
    for (side, forward) in [("forward", true), ("backward", false)] {
        let (down, up) = (link.down.side(forward), link.up.side(forward));
        if down.is_some() && up.is_some() {
            let path = c.side(&format!("{path}.up"), side);
            let message = "found both `down` and `up` for one direction; use one of them";
            c.problem_once(&path, message);
        }
        for (key, spans) in [("down", down), ("up", up)] {
            let path = c.side(&format!("{path}.{key}"), side);
            check_spans(c, spans.map_or(&[], Vec::as_slice), &path);
        }
    }
}

/// Checks that periods are in order and do not overlap.
pub(super) fn check_spans(c: &mut Checker<'_>, spans: &[[TimeSpan; 2]], path: &str) {
    for (index, [from, to]) in spans.iter().enumerate() {
        let path = format!("{path}.{index}");
        if from >= to {
            c.problem_once(
                &path,
                format!("found [\"{from}\", \"{to}\"]; it must begin before it ends"),
            );
        } else if index > 0 && *from < spans[index - 1][1] {
            c.problem_once(
                &path,
                format!("it begins at \"{from}\", before the one before it is over"),
            );
        }
    }
}

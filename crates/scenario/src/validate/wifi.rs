//! Checks of the wireless cells of a spec.

use crate::checker::Checker;
use crate::quantity::Capacity;
use crate::spec::Spec;
use crate::validate::names::check_node;
use crate::vocabulary::Vocabulary;
use crate::wifi::{Station, Wifi};

/// Checks all cells of a spec.
pub(super) fn check(c: &mut Checker<'_>, spec: &Spec, vocabulary: &dyn Vocabulary) {
    for (index, wifi) in spec.cells.iter().enumerate() {
        let path = format!("wifi.{index}");
        if spec.links.iter().any(|link| link.name == wifi.name) {
            let message = format!("found {:?}, which is the name of a link too", wifi.name);
            c.problem(&format!("{path}.name"), message);
        }
        check_station(c, spec, &wifi.access_point, &format!("{path}.access_point"));
        for (number, station) in wifi.stations.iter().enumerate() {
            let path = format!("{path}.station.{number}");
            check_station(c, spec, station, &path);
            if wifi
                .nodes()
                .take(number + 1)
                .any(|other| other == station.node)
            {
                let message = format!("found {:?} a second time in this cell", station.node);
                c.problem(&format!("{path}.node"), message);
            }
        }
        if wifi.stations.is_empty() {
            c.problem(
                &path,
                "a cell has at least one station in addition to its access point",
            );
        }
        check_queue(c, wifi, &path);
        vocabulary.check_medium(c, wifi, &path);
    }
}

fn check_station(c: &mut Checker<'_>, spec: &Spec, station: &Station, path: &str) {
    let path = format!("{path}.node");
    if check_node(c, spec, &station.node, &path).is_some_and(|count| count > 1) {
        let message = format!(
            "found {:?}, which is a group; a station is one of its members, such as \"{}[0]\"",
            station.node, station.node
        );
        c.problem(&path, message);
    }
}

fn check_queue(c: &mut Checker<'_>, wifi: &Wifi, path: &str) {
    let own = &wifi.parameters;
    let path = format!("{path}.parameters");
    if let Some(queue) = own
        .queue
        .filter(|queue| !matches!(queue, Capacity::Packets(_)))
    {
        let message = format!("found \"{queue}\"; an interface's queue is counted in packets");
        c.problem(&format!("{path}.queue"), message);
    }
}

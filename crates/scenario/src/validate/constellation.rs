//! Checks of constellations and ground stations.

use std::collections::BTreeMap;

use crate::checker::Checker;
use crate::constellation::{Class, Constellation, Ground, LinkTransmitter, Policy, ShellModel};
use crate::kind_choice::{KindChoice, KindFamily};
use crate::kind_families::{LossModel, QueueDiscipline};
use crate::spec::Spec;
use crate::validate::{kind_choice, link};
use crate::vocabulary::Vocabulary;

/// Maximum number of interfaces of a station in one constellation.
const MAX_INTERFACES: u32 = 16;

/// Maximum population of a station.
const MAX_POPULATION: f64 = 1e12;

/// Checks all constellations and grounds, also in combination.
pub(super) fn check(c: &mut Checker<'_>, spec: &Spec, vocabulary: &dyn Vocabulary) {
    if let Some(routing) = &spec.world.routing {
        if spec.constellations.is_empty() {
            let message =
                "found a routing; it has no effect without a [[constellation]]; leave it out";
            c.problem("world.routing", message);
        } else {
            check_kind(c, spec, vocabulary, routing, "world.routing");
        }
    }
    let mut seen = BTreeMap::new();
    let constellations = spec.constellations.iter().map(|it| &it.name);
    let grounds = spec.grounds.iter().map(|it| &it.name);
    let nodes = spec.nodes.iter().map(|node| (String::new(), &node.name));
    let constellations = (0..).zip(constellations);
    let constellations =
        constellations.map(|(at, name)| (format!("constellation.{at}.name"), name));
    let grounds = (0..).zip(grounds);
    let grounds = grounds.map(|(at, name)| (format!("ground.{at}.name"), name));
    for (path, name) in nodes.chain(constellations).chain(grounds) {
        let again = seen.insert(name, ()).is_some();
        if path.is_empty() {
            continue;
        }
        c.name(&path, name);
        if again {
            let message =
                format!("found {name:?}; a node, constellation or ground has this name already");
            c.problem(&path, message);
        }
    }
    for (index, constellation) in spec.constellations.iter().enumerate() {
        let path = format!("constellation.{index}");
        check_constellation(c, spec, vocabulary, constellation, &path);
    }
    for (index, ground) in spec.grounds.iter().enumerate() {
        check_ground(c, spec, ground, &format!("ground.{index}"));
    }
}

fn check_kind<F: KindFamily>(
    c: &mut Checker<'_>,
    spec: &Spec,
    vocabulary: &dyn Vocabulary,
    kind: &KindChoice<F>,
    path: &str,
) {
    kind_choice::check(c, spec, vocabulary.kinds(F::NAME), kind, path);
}

fn check_constellation(
    c: &mut Checker<'_>,
    spec: &Spec,
    vocabulary: &dyn Vocabulary,
    constellation: &Constellation,
    path: &str,
) {
    if constellation.shells.is_empty() {
        c.problem(&format!("{path}.shells"), "found no shell");
    }
    for (index, shell) in constellation.shells.iter().enumerate() {
        check_kind::<ShellModel>(
            c,
            spec,
            vocabulary,
            shell,
            &format!("{path}.shells.{index}"),
        );
    }
    for class in Class::ALL {
        let Some(transmitter) = constellation.transmitter(class) else {
            continue;
        };
        let path = format!("{path}.{}", class.name());
        if let Some(queue) = &transmitter.queue {
            check_kind::<QueueDiscipline>(c, spec, vocabulary, queue, &format!("{path}.queue"));
        }
        if let Some(loss) = &transmitter.loss {
            check_kind::<LossModel>(c, spec, vocabulary, loss, &format!("{path}.loss"));
        }
        link::check_spans(c, &transmitter.down, &format!("{path}.down"));
        check_rates(c, transmitter, class, &path);
        if transmitter.rate_by_load.is_some() {
            check_load(
                c,
                constellation.policy,
                class,
                &format!("{path}.rate_by_load"),
            );
        }
        let name = constellation.link_name(class);
        if spec.links.iter().any(|link| link.name == name) {
            let message = format!("a link is called {name:?}, as the links of a constellation are");
            c.problem(&path, message);
        }
    }
    match (&constellation.isl, constellation.counted.isls) {
        (None, 1..) => c.problem(
            path,
            format!(
                "the key `isl` is missing; {:?} has {} links between satellites",
                constellation.name, constellation.counted.isls
            ),
        ),
        (Some(_), 0) if constellation.counted.satellites > 0 => c.problem(
            &format!("{path}.isl"),
            "it has no effect, since no satellites have links; leave it out",
        ),
        _ => {}
    }
    if constellation.policy == Policy::Any && constellation.handover.is_some() {
        let message = "it has no effect while a station uses any satellite in reach; set `policy`";
        c.problem(&format!("{path}.handover"), message);
    }
    check_changes(c, constellation, path);
    let interfaces = constellation.interfaces.0;
    if interfaces == 0 || interfaces > MAX_INTERFACES {
        let message =
            format!("found {interfaces}; allowed: 1 to {MAX_INTERFACES} interfaces of a station");
        c.problem(&format!("{path}.interfaces"), message);
    }
    if !spec.grounds.iter().any(|it| it.uses(&constellation.name)) {
        let message = format!(
            "no [[ground]] has stations that use {:?}",
            constellation.name
        );
        c.problem(path, message);
    }
}

fn check_rates(c: &mut Checker<'_>, transmitter: &LinkTransmitter, class: Class, path: &str) {
    let by_elevation = !transmitter.rate_by_elevation.is_empty();
    let key = match transmitter.rate_by_load {
        _ if by_elevation => "rate_by_elevation",
        Some(_) => "rate_by_load",
        None => return,
    };
    if by_elevation {
        check_elevations(c, transmitter, class, &format!("{path}.{key}"));
    }
    if class == Class::Isl {
        return;
    }
    if transmitter.rate.steps().len() > 1 {
        let message = format!("found a rate over time; with `{key}` it is constant");
        c.problem(&format!("{path}.rate"), message);
    }
    if transmitter
        .queue
        .as_ref()
        .is_some_and(|it| it.kind != "drop-tail")
    {
        let message = format!(
            "found a queue discipline; with `{key}` a queue is drop-tail, a number of packets or bytes"
        );
        c.problem(&format!("{path}.queue"), message);
    }
}

fn check_elevations(c: &mut Checker<'_>, transmitter: &LinkTransmitter, class: Class, path: &str) {
    let steps = &transmitter.rate_by_elevation;
    if class == Class::Isl {
        let message = "it has no effect on links between satellites; leave it out";
        return c.problem(path, message);
    }
    for (index, &[elevation, share]) in steps.iter().enumerate() {
        let path = format!("{path}.{index}");
        if !((-90.0..=90.0).contains(&elevation) && share > 0.0 && share <= 1.0) {
            let message = format!(
                "found [{elevation}, {share}]; allowed: an elevation from -90 to 90 degrees, and a share above 0, at most 1"
            );
            c.problem(&path, message);
        } else if index > 0 && steps[index - 1][0] >= elevation {
            c.problem(&path, format!("found {elevation}; elevations ascend"));
        }
    }
    if steps.iter().all(|[_, share]| *share == 1.0) {
        let message = "it has no effect with shares of 1 only; leave it out";
        c.problem(path, message);
    }
}

fn check_load(c: &mut Checker<'_>, policy: Policy, class: Class, path: &str) {
    let message = match class {
        Class::Isl => "it has no effect on links between satellites; leave it out",
        Class::Down => {
            "it has no effect on links down, whose stations share a transmitter; leave it out"
        }
        Class::Up if policy == Policy::Any => {
            "it has no effect while a station uses any satellite in reach; set `policy`"
        }
        Class::Up => return,
    };
    c.problem(path, message);
}

fn check_changes(c: &mut Checker<'_>, constellation: &Constellation, path: &str) {
    let Some(changes) = &constellation.changes else {
        return;
    };
    let path = format!("{path}.changes");
    if constellation.policy == Policy::Any {
        let message = "it has no effect while a station uses any satellite in reach; set `policy`";
        return c.problem(&path, message);
    }
    let Some(last) = changes.times.last() else {
        return c.problem(&format!("{path}.times"), "found no time");
    };
    let descends = changes.times.windows(2).position(|pair| pair[0] >= pair[1]);
    if let Some(index) = descends {
        let [one, other] = [index, index + 1].map(|it| changes.times[it]);
        let message = format!("found {one} before {other}; times ascend");
        c.problem(&format!("{path}.times"), message);
    }
    if let Some(repeat) = changes.repeat
        && repeat <= *last
    {
        let message = format!("found {repeat}; allowed: more than the last time, {last}");
        c.problem(&format!("{path}.repeat"), message);
    }
}

fn check_ground(c: &mut Checker<'_>, spec: &Spec, ground: &Ground, path: &str) {
    if spec.constellations.is_empty() {
        c.problem(path, "found stations, but no [[constellation]]");
    }
    if ground.stations.is_empty() {
        c.problem(&format!("{path}.stations"), "found no station");
    }
    for (index, name) in ground.constellations.iter().enumerate() {
        let known = || spec.constellations.iter().map(|it| it.name.as_str());
        if !known().any(|it| it == name) {
            let message = format!("found {name:?}, but no constellation has this name");
            c.not_among(
                &format!("{path}.constellations.{index}"),
                &message,
                name,
                known(),
            );
        }
    }
    let (mut names, mut places) = (BTreeMap::new(), BTreeMap::new());
    for (index, station) in ground.stations.iter().enumerate() {
        let path = format!("{path}.stations.{index}");
        if let Some(population) = station.population
            && !(0.0..=MAX_POPULATION).contains(&population)
        {
            let message =
                format!("found {population}; allowed: a number from 0 to {MAX_POPULATION:e}");
            c.problem(&format!("{path}.population"), message);
        }
        if let Some(name) = &station.name
            && let Some(first) = names.insert(name, index)
        {
            let message = format!("found {name:?} twice, stations {first} and {index}");
            c.problem(&path, message);
        }
        let place: String = station.at.chars().filter(|it| *it != ' ').collect();
        if let Some(first) = places.insert(place, index) {
            let message = format!(
                "stations {first} and {index} stand on one spot, {}; give each its own",
                station.at
            );
            c.problem(&path, message);
        }
    }
}

//! `anabranch satellite-path`: a path over satellites, as table and figure.

mod map;
mod matrix;

use std::fmt::Write as _;
use std::io::{self, Write as _};

use anabranch_orbit::{
    Constellation, ElementsError, Followed, LIGHT, PathSummary, Place, Relay, SHELLS, Stagger,
    Taking, follow_from, great_circle, shell,
};
use anabranch_report::figure::plot::{Axis, Layer, Mark, Plot, PlotPoint};
use anabranch_report::figure::{Content, Figure};
use anabranch_report::terminal::{self, Terminal};
use anabranch_settings::counted;

use crate::arguments::{PathStart, SatellitePath};
use crate::failure::{Failure, unread};
use crate::interrupt::Interruption;
use crate::stderr::note;

/// Maximum number of computed steps.
const MAX_STEPS: f64 = 1e7;

/// Computes a path over satellites, and prints it.
pub fn path(arguments: &SatellitePath) -> Result<(), Failure> {
    let _interruption = Interruption::watch();
    let constellation = constellation(arguments)?;
    if let Some(file) = &arguments.places {
        return matrix::show(arguments, constellation, file);
    }
    // Both are present, because each requires the other.
    let (Some(from), Some(to)) = (arguments.from, arguments.to) else {
        return Ok(());
    };
    let (duration, step) = (arguments.duration.seconds(), arguments.step.seconds());
    if step <= 0.0 || duration / step > MAX_STEPS {
        return Err(Failure::Usage(format!(
            "--step: found {}; allowed: more than 0 s, with at most {MAX_STEPS} steps in --duration {}",
            arguments.step, arguments.duration
        )));
    }
    if let Some(catalogue) = constellation.catalogue() {
        for remark in &catalogue.notes {
            note(format_args!(
                "note: {}",
                remark.replace("`old_elements`", "--old-elements")
            ));
        }
    }
    let begin = start_seconds(arguments);
    let times = (begin, duration, step);
    let followed = follow_from(&constellation, from, to, &arguments.gateway, times);
    if let Some(file) = &arguments.csv {
        let written = std::fs::write(file, csv(&constellation, &followed));
        written
            .map_err(|error| Failure::Net(format!("cannot write {}: {error}", file.display())))?;
    }
    draw(arguments, &constellation, &[from, to])?;
    let summary = followed.summary();
    let mut out = io::stdout().lock();
    out.write_all(words(arguments, [from, to], &constellation, &summary).as_bytes())?;
    if summary.delay.is_some() {
        terminal::show_figure(&figure(&followed), Terminal::detect(), &mut out)?;
    }
    if let Some(file) = &arguments.csv {
        writeln!(
            out,
            "\n{} steps: {}",
            followed.samples.len(),
            file.display()
        )?;
    }
    Ok(())
}

/// Writes the requested map.
fn draw(
    arguments: &SatellitePath,
    constellation: &Constellation,
    places: &[Place],
) -> Result<(), Failure> {
    let Some(file) = &arguments.map else {
        return Ok(());
    };
    let map = map::svg(constellation, places, start_seconds(arguments));
    let written = std::fs::write(file, map);
    written.map_err(|error| Failure::Net(format!("cannot write {}: {error}", file.display())))
}

/// Start of the path, seconds after the epoch.
fn start_seconds(arguments: &SatellitePath) -> f64 {
    match arguments.start {
        Some(PathStart::After(span)) => span.seconds(),
        _ => 0.0,
    }
}

fn constellation(arguments: &SatellitePath) -> Result<Constellation, Failure> {
    let known = shell(&arguments.shell).ok_or_else(|| {
        let names = SHELLS.iter().map(|shell| shell.name);
        Failure::unknown("--shell", &arguments.shell, names)
    })?;
    let mut sky = known.sky();
    if arguments.tle.is_some() {
        // Satellites from orbital elements only relay as bent pipes, because the elements contain
        // no inter-satellite links.
        sky.relay = Relay::BentPipe;
    }
    for setting in &arguments.set {
        let Some((name, value)) = setting.split_once('=') else {
            return Err(Failure::Usage(format!(
                "--set: found {setting:?}; write KEY=VALUE, such as min_elevation=40"
            )));
        };
        let asked = sky.set(name.trim(), value.trim());
        asked.map_err(|error| Failure::Usage(format!("--set: {error}")))?;
    }
    let Some(file) = &arguments.tle else {
        if let Some(PathStart::Date(date)) = arguments.start {
            return Err(Failure::Usage(format!(
                "--start: found the date {date}; a shell has no dates: write a time after its epoch, such as 2h, or name elements by --tle"
            )));
        }
        return Constellation::walker(&sky).map_err(|error| Failure::Usage(error.to_string()));
    };
    let told = |what: String| Failure::Usage(format!("--tle {}: {what}", file.display()));
    let text = std::fs::read_to_string(file)
        .map_err(|error| told(format!("cannot read it: {}", unread(&error))))?;
    let taking = Taking {
        start: match arguments.start {
            Some(PathStart::Date(date)) => Some(date),
            _ => None,
        },
        old: arguments.old_elements,
    };
    Constellation::of_catalogue(&text, &sky, taking).map_err(|error| match error {
        ElementsError::Relay | ElementsError::Config(_) => Failure::Usage(error.to_string()),
        other => told(
            other
                .to_string()
                .replace("`old_elements`", "--old-elements"),
        ),
    })
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.2}", seconds * 1e3)
}

/// Formats a duration in hours, minutes and seconds.
fn span(seconds: f64) -> String {
    let (hours, minutes, rest) = (
        (seconds / 3600.0).floor(),
        (seconds % 3600.0 / 60.0).floor(),
        seconds % 60.0,
    );
    let parts = [(hours, "h"), (minutes, "min"), (rest, "s")];
    let parts = parts.iter().filter(|(number, _)| *number > 0.0);
    let parts: Vec<String> = parts
        .map(|(number, unit)| format!("{number}{unit}"))
        .collect();
    match parts.is_empty() {
        true => "0s".to_owned(),
        false => parts.join(" "),
    }
}

fn words(
    arguments: &SatellitePath,
    [from, to]: [Place; 2],
    constellation: &Constellation,
    summary: &PathSummary,
) -> String {
    let sky = constellation.sky();
    let what = match &arguments.tle {
        Some(file) => {
            let satellites = counted(constellation.len() as u64, "satellite");
            format!("{satellites} of {}", file.display())
        }
        None => {
            let height = match sky.mean_motion {
                Some(a_day) => format!("{a_day} revolutions a day"),
                None => format!("{} km", sky.altitude),
            };
            let stagger = match sky.stagger {
                Stagger::Walker => format!("phasing {}", sky.phasing),
                Stagger::Alternating => "alternating".to_owned(),
            };
            format!(
                "{}: {height}, {}°, {} planes of {}, {stagger}",
                arguments.shell, sky.inclination, sky.planes, sky.satellites
            )
        }
    };
    let circle = great_circle(from, to);
    let duration = span(arguments.duration.seconds());
    let epoch = match constellation.catalogue() {
        Some(catalogue) => catalogue.start.to_string(),
        None => "the epoch".to_owned(),
    };
    let epoch = match arguments.start {
        Some(PathStart::After(after)) => format!("{} after {epoch}", span(after.seconds())),
        _ => epoch,
    };
    let mut text = format!("{from} to {to}, {duration} from {epoch}\n{what}\n");
    if let Some(catalogue) = constellation.catalogue() {
        let _ = writeln!(text, "{catalogue}");
    }
    let _ = writeln!(
        text,
        "great circle {circle:.0} km: {} ms at the speed of light, {} ms in fibre\n",
        milliseconds(circle / LIGHT),
        milliseconds(circle * sky.fibre_detour / (LIGHT * sky.fibre_speed))
    );
    let (Some(delay), Some(satellites)) = (summary.delay, summary.satellites) else {
        text.push_str(
            "There is never a path. Try nearer places, a lower `min_elevation`, or gateways.\n",
        );
        return text;
    };
    let [least, median, most_of, most] = delay.map(milliseconds);
    let [fewest, middle, many] = satellites;
    let _ = writeln!(
        text,
        "{:<28}{:>9}{:>9}{:>9}{:>9}",
        "", "least", "median", "95 %", "most"
    );
    let _ = writeln!(
        text,
        "{:<28}{least:>9}{median:>9}{most_of:>9}{most:>9}",
        "one-way delay (ms)"
    );
    let _ = writeln!(
        text,
        "{:<28}{fewest:>9}{middle:>9}{:>9}{many:>9}",
        "satellites on the path", ""
    );
    let hours = arguments.duration.seconds() / 3600.0;
    let an_hour = |count: usize| match hours > 0.0 {
        true => format!("{count:>9}   {:.0} an hour", count as f64 / hours),
        false => format!("{count:>9}"),
    };
    let _ = writeln!(
        text,
        "{:<28}{}",
        "changes of the path",
        an_hour(summary.changes)
    );
    let _ = writeln!(
        text,
        "{:<28}{}",
        "  of its first satellite",
        an_hour(summary.first)
    );
    let _ = writeln!(text, "{:<28}{}", "  of its last", an_hour(summary.last));
    let _ = writeln!(
        text,
        "{:<28}{:>9}",
        "greatest jump (ms)",
        milliseconds(summary.jump)
    );
    let _ = writeln!(
        text,
        "{:<28}{:>9.2}",
        "time without a path (%)",
        summary.without * 100.0
    );
    text
}

fn csv(constellation: &Constellation, followed: &Followed) -> String {
    let mut text = String::from("time_s,delay_s,satellites,gateway\n");
    for sample in &followed.samples {
        let _ = write!(text, "{}", sample.at);
        let route = sample
            .route
            .and_then(|route| followed.routes[route].1.as_ref());
        let (Some(delay), Some(route)) = (sample.delay, route) else {
            text.push_str(",,,\n");
            continue;
        };
        let names = route
            .satellites
            .iter()
            .map(|&number| constellation.name(number));
        let names: Vec<String> = names.collect();
        let gateway = route
            .gateway
            .map_or(String::new(), |number| (number + 1).to_string());
        let names = names.join(" ").replace(['"', ','], " ");
        let _ = writeln!(text, ",{delay:.9},{names},{gateway}");
    }
    text
}

/// The delay over time: one curve for each period with a path.
fn figure(followed: &Followed) -> Figure {
    let mut layers: Vec<Layer> = Vec::new();
    let mut open = false;
    for sample in &followed.samples {
        let Some(delay) = sample.delay else {
            open = false;
            continue;
        };
        if !open {
            layers.push(Layer {
                label: if layers.is_empty() {
                    "one-way delay".to_owned()
                } else {
                    String::new()
                },
                curve: 0,
                dash: 0,
                mark: Mark::Line,
                points: Vec::new(),
            });
            open = true;
        }
        if let Some(layer) = layers.last_mut() {
            layer
                .points
                .push(PlotPoint::new(sample.at / 60.0, delay * 1e3));
        }
    }
    let end = followed
        .samples
        .last()
        .map_or(1.0, |sample| sample.at / 60.0);
    let delays: Vec<f64> = followed
        .samples
        .iter()
        .filter_map(|sample| sample.delay)
        .collect();
    Figure {
        id: "delay".to_owned(),
        title: "Delay over time".to_owned(),
        place: None,
        caption: None,
        made: String::new(),
        content: Some(Content::Plot(Plot {
            x: Axis::between("time (min)".to_owned(), 0.0, end, 8),
            y: Axis::around(
                "one-way delay (ms)".to_owned(),
                delays.into_iter().map(|it| it * 1e3),
                5,
            ),
            layers,
        })),
    }
}

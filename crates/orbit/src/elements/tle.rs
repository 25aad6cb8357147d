//! Two-line elements, with or without a preceding line for the name.

use super::{Counts, Entries, Entry, Set};
use crate::date::Date;

/// Parses a line with the number of planes and the number of satellites per plane. Generators of
/// constellations, such as Hypatia's satgenpy, write it before the first satellite.
fn counts(line: &str) -> Option<[u64; 2]> {
    let mut words = line.split_whitespace();
    let mut count = || {
        let word = words.next()?;
        let digits = word.bytes().all(|it| it.is_ascii_digit());
        word.parse().ok().filter(|&count| digits && count > 0)
    };
    let both = [count()?, count()?];
    words.next().is_none().then_some(both)
}

pub(super) fn read(text: &str) -> Entries {
    let mut entries = Vec::new();
    let mut name: Option<(usize, &str)> = None;
    let lines = text.lines().enumerate();
    let mut lines = lines
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
        .peekable();
    let mut header = None;
    if let Some(&(at, line)) = lines.peek()
        && let Some([planes, each]) = counts(line)
    {
        let mut rest = lines.clone().skip(1);
        // A line directly before elements is the name of a satellite, and no line of counts.
        if rest.next().is_none_or(|(_, next)| !next.starts_with("1 ")) {
            lines.next();
            header = Some(Counts {
                line: at + 1,
                planes,
                each,
            });
        }
    }
    let odd = |at: usize, what: String| Entry {
        place: format!("line {}", at + 1),
        set: Err(what),
    };
    let no_elements = |line: &str| {
        format!("found {line:?}; expected line 1 of two-line elements, or the name of a satellite")
    };
    while let Some((at, line)) = lines.next() {
        let line = line.trim_end();
        if !line.starts_with("1 ") {
            if name.is_some() {
                entries.push(odd(at, no_elements(line)));
            }
            name = Some((at, line));
            continue;
        }
        let Some((_, second)) = lines.next_if(|(_, next)| next.starts_with("2 ")) else {
            entries.push(odd(
                at,
                "the second line of the elements is missing".to_owned(),
            ));
            name = None;
            continue;
        };
        let title = name.take().map(|(_, name)| name);
        let title = title.map(|name| name.strip_prefix("0 ").unwrap_or(name).trim().to_owned());
        let read = sgp4::Elements::from_tle(title, line.as_bytes(), second.trim_end().as_bytes());
        entries.push(Entry {
            place: format!("line {}", at + 1),
            set: read.map(set).map_err(|error| error.to_string()),
        });
    }
    if let Some((at, line)) = name {
        entries.push(odd(at, no_elements(line)));
    }
    Entries {
        list: entries,
        counts: header,
    }
}

fn set(read: sgp4::Elements) -> Set {
    Set {
        name: read.object_name,
        number: read.norad_id,
        epoch: Date(read.datetime),
        mean_motion: read.mean_motion,
        eccentricity: read.eccentricity,
        inclination: read.inclination,
        node: read.right_ascension,
        perigee: read.argument_of_perigee,
        anomaly: read.mean_anomaly,
        drag: read.drag_term,
    }
}

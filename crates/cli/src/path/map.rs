//! A map of a constellation at one time (equirectangular, SVG): satellites, the links between them
//! with the number of shortest paths over each, and the places.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anabranch_orbit::{Constellation, Place, Shells, Snapshot};

/// Scale of the map, pixels per degree.
const SCALE: f64 = 4.0;

/// Position of a place on the map.
fn point(latitude: f64, longitude: f64) -> [f64; 2] {
    [(longitude + 180.0) * SCALE, (90.0 - latitude) * SCALE]
}

/// Position on the map of the point below a satellite.
fn below([x, y, z]: [f64; 3]) -> [f64; 2] {
    let latitude = z.atan2((x * x + y * y).sqrt());
    point(latitude.to_degrees(), y.atan2(x).to_degrees())
}

/// A line on the map, split in two if it crosses the edge.
fn line(text: &mut String, [from, to]: [[f64; 2]; 2], style: &str) {
    let width = 360.0 * SCALE;
    let over = to[0] - from[0];
    let shift = match over {
        over if over > width / 2.0 => -width,
        over if over < -width / 2.0 => width,
        _ => 0.0,
    };
    for [from, to] in [
        [from, [to[0] + shift, to[1]]],
        [[from[0] - shift, from[1]], to],
    ] {
        let _ = writeln!(
            text,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" {style}/>",
            from[0], from[1], to[0], to[1]
        );
        if shift == 0.0 {
            break;
        }
    }
}

/// Draws the map at a time in seconds after the epoch, with the paths between all pairs of the
/// places.
pub fn svg(constellation: &Constellation, places: &[Place], at: f64) -> String {
    let shells = Shells::new(vec![constellation.clone()]);
    let mut positions = Vec::new();
    shells.positions(at, &mut positions);
    let mut snapshot = Snapshot::new(shells.clone(), places.to_vec());
    snapshot.move_to(at);
    let mut used: BTreeMap<[usize; 2], u32> = BTreeMap::new();
    let mut ground = BTreeMap::new();
    for to in 1..places.len() {
        let from: Vec<usize> = (0..to).collect();
        for (from, path) in from.iter().zip(snapshot.paths(&from, to)) {
            let Some(path) = path else { continue };
            for pair in path.satellites.windows(2) {
                let link = [pair[0].min(pair[1]), pair[0].max(pair[1])];
                *used.entry(link).or_default() += 1;
            }
            let ends = [path.satellites.first(), path.satellites.last()];
            for (place, end) in [*from, to].into_iter().zip(ends) {
                ground.extend(end.map(|end| ((place, *end), ())));
            }
        }
    }
    let (width, height) = (360.0 * SCALE, 180.0 * SCALE);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"10\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for degrees in (-150..180).step_by(30) {
        let x = point(0.0, f64::from(degrees))[0];
        line(&mut text, [[x, 0.0], [x, height]], "stroke=\"#eee\"");
    }
    for degrees in (-60..90).step_by(30) {
        let y = point(f64::from(degrees), 0.0)[1];
        for half in [[0.0, width / 2.0], [width / 2.0, width]] {
            line(&mut text, half.map(|x| [x, y]), "stroke=\"#eee\"");
        }
    }
    let most = used.values().copied().max().unwrap_or(1);
    let there = |number: usize| positions[number].map(below);
    for ends in shells.isls() {
        let ([Some(one), Some(other)], true) = (
            ends.map(there),
            shells.isl_length(ends, &positions).is_some(),
        ) else {
            continue;
        };
        let style = match used.get(&ends) {
            None => "stroke=\"#ddd\" stroke-width=\"0.5\"".to_owned(),
            Some(count) => {
                // Colour from yellow (few paths) to red (many).
                let green = 190 - 190 * count / most;
                format!("stroke=\"rgb(220,{green},0)\" stroke-width=\"2\"")
            }
        };
        line(&mut text, [one, other], &style);
    }
    let on_ground = |place: usize| point(places[place].latitude, places[place].longitude);
    for &(place, satellite) in ground.keys() {
        if let Some(there) = there(satellite) {
            let style = "stroke=\"#06c\" stroke-width=\"1\"";
            line(&mut text, [on_ground(place), there], style);
        }
    }
    let mut dot = |[x, y]: [f64; 2], radius: f64, colour: &str| {
        let _ = writeln!(
            text,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\"/>"
        );
    };
    (0..shells.len())
        .filter_map(there)
        .for_each(|it| dot(it, 1.2, "#888"));
    (0..places.len()).for_each(|place| dot(on_ground(place), 3.0, "#06c"));
    text.push_str("</svg>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_orbit::shell;

    /// At the epoch the first satellite of a shell is above 0° N 0° E, in the middle of the map.
    #[test]
    fn satellites_and_places_are_where_they_are() {
        let sky = shell("kuiper-1").expect("a preset").sky();
        let shell = Constellation::walker(&sky).expect("a shell");
        let places = ["0,0", "30,60"].map(|it| it.parse().expect("a place"));
        let text = svg(&shell, &places, 0.0);
        assert!(text.contains("<circle cx=\"720.0\" cy=\"360.0\" r=\"1.2\""));
        assert!(text.contains("<circle cx=\"960.0\" cy=\"240.0\" r=\"3\""));
        assert!(text.contains("rgb(220,0,0)"), "no link is used");
        assert_eq!(text.matches("r=\"1.2\"").count(), 34 * 34);
    }

    /// A line from 170° E to 170° W spans 20°, and not 340°.
    #[test]
    fn a_line_goes_over_the_edge() {
        let mut text = String::new();
        line(&mut text, [point(0.0, 170.0), point(0.0, -170.0)], "");
        assert!(
            text.contains("x1=\"1400.0\" y1=\"360.0\" x2=\"1480.0\""),
            "{text}"
        );
        assert!(
            text.contains("x1=\"-40.0\" y1=\"360.0\" x2=\"40.0\""),
            "{text}"
        );
    }
}

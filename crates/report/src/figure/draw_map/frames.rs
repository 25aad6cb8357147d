//! Several maps in one SVG document, which its style sheet shows one after the other.

use std::fmt::Write as _;

use super::super::canvas::{self, FAINT, INK, SCALE, colour};
use super::super::map::{Map, MapPlace};
use super::{LOADS, PATHS, TEXT, at, class, line, page, pieces};
use plotters::style::RGBColor;

/// Factor by which the drawing library reduces the size of text.
const FONT: f64 = 1.24;

/// The SVG document with all maps.
pub fn svg(maps: &[Map], title: &str) -> Result<String, String> {
    let labels = maps.first().map_or(&[][..], |map| &map.paths);
    let mut top = 0;
    let mut text = page(title, labels.len(), |page| {
        top = page.top;
        let mut labels = (0..).zip(labels);
        labels.try_for_each(|(index, (label, _))| page.path_sign(index, label))
    })?;
    let end = text.rfind("</svg>").unwrap_or(text.len());
    text.truncate(end);
    let count = maps.len();
    // The number of frames is part of the names, so that a page may contain the rules of several
    // figures.
    let (name, share) = (format!("frame-{count}"), 100.0 / count as f64);
    let _ = write!(
        text,
        "<style>.{name}~.{name}{{visibility:hidden}}\n\
         @keyframes {name}{{0%{{visibility:visible}}{share:.4}%{{visibility:hidden}}}}\n\
         @media (prefers-reduced-motion:no-preference){{.{name}{{visibility:hidden;animation:{name} {count}s step-end infinite}}\n\
         svg:hover .{name}{{animation-play-state:paused}}}}</style>\n"
    );
    for (number, map) in maps.iter().enumerate() {
        let _ = writeln!(
            text,
            "<g class=\"{name}\" style=\"animation-delay:{number}s\">"
        );
        frame(&mut text, map, top);
        text.push_str("</g>\n");
    }
    text.push_str("</svg>\n");
    Ok(text)
}

fn hex(colour: RGBColor) -> String {
    format!("\"#{:02X}{:02X}{:02X}\"", colour.0, colour.1, colour.2)
}

/// Appends the lines, dots and text of one map.
fn frame(text: &mut String, map: &Map, top: i32) {
    for (index, (_, path)) in (0..).zip(&map.paths) {
        let halo = hex(colour(PATHS[index % PATHS.len()]));
        let legs = path.windows(2).map(|pair| [pair[0], pair[1]]);
        let style = format!("stroke={halo} stroke-opacity=\"0.45\" stroke-width=\"14\"");
        lines(text, legs, top, &style);
    }
    for (index, (.., shown)) in LOADS.into_iter().enumerate() {
        let own = map.links.iter();
        let own = own.filter(|(_, load)| class(*load) == index);
        let style = format!("stroke={} stroke-width=\"3\"", hex(colour(shown)));
        lines(text, own.map(|(ends, _)| *ends), top, &style);
    }
    dots(text, &map.satellites, top, (FAINT, 2));
    dots(text, &map.stations, top, (INK, 6));
    let (from, until) = map.window;
    let [time, from, until] = [map.time, from, until].map(|it| (it * 100.0).round() / 100.0);
    let words = format!("positions at {time} s; load from {from} to {until} s");
    let _ = writeln!(
        text,
        "<text x=\"{}\" y=\"{}\" dominant-baseline=\"middle\" font-family=\"sans-serif\" font-size=\"{}\" fill={}>{}</text>",
        12 * SCALE,
        line(top, 0) * SCALE,
        f64::from(TEXT * SCALE) / FONT,
        hex(INK),
        canvas::escaped(&words)
    );
}

fn lines(text: &mut String, all: impl Iterator<Item = [MapPlace; 2]>, top: i32, style: &str) {
    let mut path = String::new();
    for [from, to] in all.flat_map(|ends| pieces(top, ends)) {
        let _ = write!(
            path,
            "M{:.0} {:.0}L{:.0} {:.0}",
            from[0], from[1], to[0], to[1]
        );
    }
    if !path.is_empty() {
        let _ = writeln!(text, "<path d=\"{path}\" fill=\"none\" {style}/>");
    }
}

/// Appends dots as lines of length 0 with round ends.
fn dots(text: &mut String, all: &[MapPlace], top: i32, (colour, radius): (RGBColor, i32)) {
    let mut path = String::new();
    for [x, y] in all.iter().map(|it| at(top, *it)) {
        let _ = write!(path, "M{x:.0} {y:.0}h0");
    }
    let _ = writeln!(
        text,
        "<path d=\"{path}\" fill=\"none\" stroke={} stroke-width=\"{}\" stroke-linecap=\"round\"/>",
        hex(colour),
        2 * radius
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three frames of 10 s. The link in the second frame crosses the edge of the map.
    #[test]
    fn frames_follow_each_other() {
        let map = |time: f64| Map {
            time,
            window: (time, time + 10.0),
            satellites: vec![[0.0, time]],
            paths: vec![("a & b".to_owned(), vec![[0.0, 0.0], [0.0, 90.0]])],
            ..Map::default()
        };
        let mut maps = [0.0, 10.0, 20.0].map(map);
        maps[1].links = vec![([[0.0, 170.0], [0.0, -170.0]], 80.0)];
        let text = svg(&maps, "Title").expect("a drawing");
        assert_eq!(text.matches("<g class=\"frame-3\"").count(), 3);
        assert!(text.contains("animation-delay:2s"), "{text}");
        assert!(text.contains("0%{visibility:visible}33.3333%"), "{text}");
        let top = 14 + super::super::LINE * 3;
        let y = (top + super::super::WIDE / 4) * SCALE;
        assert!(
            text.contains(&format!("M840 {y}L864 {y}M16 {y}L40 {y}")),
            "{text}"
        );
        assert!(text.contains(&format!("M440 {y}h0")), "{text}");
        assert_eq!(text.matches("load from 10 to 20 s").count(), 1);
        assert_eq!(text.matches("a &amp; b").count(), 1);
        assert!(text.ends_with("</svg>\n"));
    }
}

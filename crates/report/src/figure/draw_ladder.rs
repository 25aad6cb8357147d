//! Draws packet ladders: the lifeline of the sender is on the left, that of the receiver on the
//! right, and time increases downwards.

use plotters::prelude::*;
use plotters::style::FontStyle;

use super::canvas::{
    self, DrawResult, FAINT, INK, SCALE, Sheet, TextAlignment, colour, failed, stroke, style,
    width_of,
};
use super::draw::{HEADLINE, wrapped};
use super::ladder::{Fate, Ladder, LadderAck, LadderSegment};

/// All figures have this width, so that their letters have the same size on a narrow page.
const WIDTH: i32 = 440;
/// x positions of the lifelines, displayed pixels.
const SENDER: i32 = 236;
const RECEIVER: i32 = 342;
const TOP: i32 = 168;
/// Height of a label line, its font size, and its maximum number of characters.
const ROW: i32 = 18;
const TEXT: i32 = 17;
const NOTE: usize = 23;
/// Displayed pixels per second, and the minimum and maximum distance between consecutive events.
/// With a uniform scale, a burst of segments would be a single line, and a round trip an empty
/// page.
const SECOND: f64 = 600.0;
const MIN_STEP: f64 = 12.0;
const MAX_STEP: f64 = 46.0;
/// Distance between lifeline and label.
const LEADER: i32 = 20;

/// The ladder as an SVG document.
pub fn svg(ladder: &Ladder, title: &str) -> Result<String, String> {
    let (left, right) = (sender_notes(ladder), receiver_notes(ladder));
    let page = Page {
        ladder,
        scale: scale(ladder),
    };
    let height = page.height();
    canvas::sheet(title, WIDTH as u32, (TOP + height + 64) as u32, |sheet| {
        let head = bold(style(TEXT + 1, INK, TextAlignment::After));
        for (line, text) in (0..).zip(wrapped(title, HEADLINE)) {
            canvas::write(sheet, &text, (12, 20 + 22 * line), &head)?;
        }
        legend(sheet)?;
        page.lifelines(sheet)?;
        ladder
            .acks
            .iter()
            .try_for_each(|ack| page.ack(sheet, ack))?;
        ladder
            .segments
            .iter()
            .try_for_each(|segment| page.segment(sheet, segment))?;
        page.notes(sheet, &left, SENDER, -1)?;
        page.notes(sheet, &right, RECEIVER, 1)
    })
}

fn bold(style: TextStyle<'_>) -> TextStyle<'_> {
    TextStyle {
        font: style.font.style(FontStyle::Bold),
        ..style
    }
}

/// Vertical positions of all events as `(time, height)`, both ascending; the height is in displayed
/// pixels from the top.
fn scale(ladder: &Ladder) -> Vec<(f64, f64)> {
    let mut times = vec![ladder.window.0, ladder.window.1];
    times.extend(
        ladder
            .acks
            .iter()
            .flat_map(|ack| [ack.departed, ack.arrived]),
    );
    for segment in &ladder.segments {
        times.push(segment.departed);
        if let Fate::Arrived(at) = segment.fate {
            times.push(at);
        }
    }
    times.retain(|time| (ladder.window.0..=ladder.window.1).contains(time));
    times.sort_by(f64::total_cmp);
    times.dedup_by(|later, earlier| same(*later, *earlier));
    let mut heights: Vec<(f64, f64)> = Vec::with_capacity(times.len());
    for time in times {
        let height = match heights.last() {
            None => 0.0,
            Some((before, height)) => height + ((time - before) * SECOND).clamp(MIN_STEP, MAX_STEP),
        };
        heights.push((time, height));
    }
    heights
}

/// Label for the events at one time at one end.
struct Note {
    time: f64,
    /// Lines from top to bottom.
    lines: Vec<String>,
    strong: bool,
}

/// Joins parts into lines that fit next to a lifeline. A part that is too long gets its own line.
fn lines(parts: Vec<String>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 2 + part.chars().count() <= NOTE => {
                line.push_str("; ");
                line.push_str(&part);
            }
            _ => lines.push(part),
        }
    }
    lines
}

/// Combines events at the same time (to a microsecond) into one label: acknowledgement, cwnd, and
/// the segments that were sent in response.
fn sender_notes(ladder: &Ladder) -> Vec<Note> {
    let mut times: Vec<f64> = ladder.acks.iter().map(|ack| ack.arrived).collect();
    times.extend(ladder.segments.iter().map(|segment| segment.departed));
    times.sort_by(f64::total_cmp);
    times.dedup_by(|later, earlier| same(*later, *earlier));
    times.retain(|time| (ladder.window.0..=ladder.window.1).contains(time));
    times
        .into_iter()
        .map(|time| sender_note(ladder, time))
        .collect()
}

fn same(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-6
}

fn sender_note(ladder: &Ladder, time: f64) -> Note {
    let mut parts = Vec::new();
    for ack in ladder.acks.iter().filter(|ack| same(ack.arrived, time)) {
        let repeats = |other: &&LadderAck| {
            other.duplicate && other.covers == ack.covers && other.arrived <= ack.arrived
        };
        let count = ladder.acks.iter().filter(repeats).count();
        parts.push(if ack.duplicate {
            format!("SACK {} again ({count})", ack.covers)
        } else {
            format!("SACK {}", ack.covers)
        });
    }
    if let Some((_, cwnd)) = ladder.cwnd.iter().rev().find(|(at, _)| same(*at, time)) {
        parts.push(format!("cwnd {cwnd}"));
    }
    let departing = || {
        ladder
            .segments
            .iter()
            .filter(|segment| same(segment.departed, time))
    };
    let numbers: Vec<String> = departing()
        .map(|segment| segment.number.to_string())
        .collect();
    if !numbers.is_empty() {
        let again = if departing().any(|segment| segment.again) {
            " again"
        } else {
            ""
        };
        parts.push(format!("sends {}{again}", numbers.join(", ")));
    }
    let strong = departing().any(|segment| segment.again || segment.fate == Fate::Lost);
    Note {
        time,
        lines: lines(parts),
        strong,
    }
}

fn receiver_notes(ladder: &Ladder) -> Vec<Note> {
    let arrival = |segment: &LadderSegment| match segment.fate {
        Fate::Arrived(at) if at <= ladder.window.1 && at >= ladder.window.0 => Some(Note {
            time: at,
            lines: vec![segment.number.to_string()],
            strong: segment.again,
        }),
        _ => None,
    };
    let mut notes: Vec<Note> = ladder.segments.iter().filter_map(arrival).collect();
    notes.sort_by(|a, b| a.time.total_cmp(&b.time));
    notes
}

/// Places labels close to their heights and at least `row` apart, so that the sum of squared shifts
/// is minimal: labels that would collide share their mean shift.
fn spread(heights: &[f64], row: f64) -> Vec<f64> {
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (index, height) in heights.iter().enumerate() {
        let mut block = (height - index as f64 * row, 1);
        while let Some(&(mean, count)) = blocks.last() {
            if mean <= block.0 {
                break;
            }
            blocks.pop();
            let total = count + block.1;
            block = (
                (mean * count as f64 + block.0 * block.1 as f64) / total as f64,
                total,
            );
        }
        blocks.push(block);
    }
    let shifts = blocks
        .iter()
        .flat_map(|&(mean, count)| std::iter::repeat_n(mean, count));
    shifts
        .enumerate()
        .map(|(index, shift)| shift + index as f64 * row)
        .collect()
}

fn legend(sheet: &Sheet<'_>) -> DrawResult {
    let entries = [
        ("segment", stroke(colour(0), 14)),
        ("segment sent again", stroke(colour(1), 20)),
        ("SACK", stroke(colour(2), 9)),
        ("SACK that repeats the one before", stroke(colour(4), 9)),
    ];
    let mut pen = (12, 82);
    for (text, line) in entries {
        let (left, y) = place(&mut pen, 35 + width_of(text, TEXT));
        let ends = [(left, y), (left + 28, y)].map(|(x, y)| (x * SCALE, y * SCALE));
        sheet.draw(&PathElement::new(ends, line)).map_err(failed)?;
        canvas::write(
            sheet,
            text,
            (left + 35, y),
            &style(TEXT, INK, TextAlignment::After),
        )?;
    }
    let (left, y) = place(&mut pen, 50);
    cross(sheet, ((left + 6) * SCALE, y * SCALE))?;
    canvas::write(
        sheet,
        "lost",
        (left + 20, y),
        &style(TEXT, INK, TextAlignment::After),
    )
}

/// Position for an entry of this width, on the next line if it does not fit the current one.
/// Advances the pen.
fn place(pen: &mut (i32, i32), width: i32) -> (i32, i32) {
    if pen.0 + width > WIDTH {
        *pen = (12, pen.1 + ROW + 6);
    }
    let at = *pen;
    pen.0 += width + 12;
    at
}

fn cross(sheet: &Sheet<'_>, (x, y): (i32, i32)) -> DrawResult {
    let (arm, pen) = (6 * SCALE, stroke(colour(1), 26));
    for (dx, dy) in [(arm, arm), (arm, -arm)] {
        sheet
            .draw(&PathElement::new(
                vec![(x - dx, y - dy), (x + dx, y + dy)],
                pen,
            ))
            .map_err(failed)?;
    }
    Ok(())
}

/// A ladder with its vertical scale.
struct Page<'a> {
    ladder: &'a Ladder,
    scale: Vec<(f64, f64)>,
}

impl Page<'_> {
    /// Height of the whole ladder, displayed pixels.
    fn height(&self) -> i32 {
        self.scale
            .last()
            .map_or(0, |(_, height)| height.ceil() as i32)
    }

    /// Vertical position of a time in drawn pixels, interpolated between the neighbouring events,
    /// or at the uniform scale outside of them.
    fn y(&self, time: f64) -> f64 {
        let above = self.scale.partition_point(|(at, _)| *at <= time);
        let height = match (
            above.checked_sub(1).map(|index| self.scale[index]),
            self.scale.get(above),
        ) {
            (Some((t0, y0)), Some((t1, y1))) => y0 + (time - t0) / (t1 - t0) * (y1 - y0),
            (Some((t0, y0)), None) => y0 + (time - t0) * SECOND,
            (None, Some((t1, y1))) => y1 - (t1 - time) * SECOND,
            (None, None) => 0.0,
        };
        (f64::from(TOP) + height) * f64::from(SCALE)
    }

    fn lifelines(&self, sheet: &Sheet<'_>) -> DrawResult {
        let bottom = TOP + self.height() + 8;
        for (x, name) in [(SENDER, "sender"), (RECEIVER, "receiver")] {
            let name = format!("{} {name}", self.ladder.flow);
            canvas::write(
                sheet,
                &name,
                (x, TOP - 22),
                &style(TEXT, INK, TextAlignment::Over),
            )?;
            let ends = vec![(x * SCALE, (TOP - 10) * SCALE), (x * SCALE, bottom * SCALE)];
            sheet
                .draw(&PathElement::new(ends, stroke(INK, 16)))
                .map_err(failed)?;
        }
        let remark = [
            "times in seconds; bursts are drawn apart",
            "and idle stretches short",
        ];
        let faint = style(TEXT, FAINT, TextAlignment::Over);
        (0..).zip(remark).try_for_each(|(line, text)| {
            canvas::write(sheet, text, (WIDTH / 2, bottom + 24 + ROW * line), &faint)
        })
    }

    /// Draws an arrow between the lifelines, cut at the window. It has an arrowhead if its end is
    /// inside the window.
    fn arrow(
        &self,
        sheet: &Sheet<'_>,
        from: (i32, f64),
        to: (i32, f64),
        pen: (RGBColor, u32),
    ) -> DrawResult {
        let (top, bottom) = (
            f64::from(TOP * SCALE),
            f64::from((TOP + self.height()) * SCALE),
        );
        let start = (f64::from(from.0 * SCALE), self.y(from.1));
        let end = (f64::from(to.0 * SCALE), self.y(to.1));
        let at = |y: f64| start.0 + (end.0 - start.0) * (y - start.1) / (end.1 - start.1);
        let first = if start.1 < top { (at(top), top) } else { start };
        let last = if end.1 > bottom {
            (at(bottom), bottom)
        } else {
            end
        };
        let pixel = |(x, y): (f64, f64)| (x.round() as i32, y.round() as i32);
        sheet
            .draw(&PathElement::new(
                vec![pixel(first), pixel(last)],
                stroke(pen.0, pen.1),
            ))
            .map_err(failed)?;
        if last != end {
            return Ok(());
        }
        let (dx, dy) = (end.0 - start.0, end.1 - start.1);
        let length = (dx * dx + dy * dy).sqrt().max(1.0);
        let (ux, uy) = (
            dx / length * f64::from(8 * SCALE),
            dy / length * f64::from(8 * SCALE),
        );
        let corner =
            |side: f64| pixel((end.0 - ux - side * uy * 0.38, end.1 - uy + side * ux * 0.38));
        sheet
            .draw(&Polygon::new(
                vec![pixel(end), corner(1.0), corner(-1.0)],
                pen.0.filled(),
            ))
            .map_err(failed)
    }

    fn segment(&self, sheet: &Sheet<'_>, segment: &LadderSegment) -> DrawResult {
        let pen = if segment.again {
            (colour(1), 20)
        } else {
            (colour(0), 14)
        };
        let (sender, receiver) = (SENDER, RECEIVER);
        match segment.fate {
            Fate::Arrived(at) => self.arrow(sheet, (sender, segment.departed), (receiver, at), pen),
            Fate::Unknown => Ok(()),
            Fate::Lost => {
                // The arrow of a lost segment ends in the middle, because the place of the loss is
                // unknown.
                let middle = (sender + receiver) / 2;
                let end = self.y(segment.departed + self.typical_way());
                let at = (self.y(segment.departed) + end) / 2.0;
                let ends = vec![
                    (sender * SCALE, self.y(segment.departed).round() as i32),
                    (middle * SCALE, at.round() as i32),
                ];
                sheet
                    .draw(&PathElement::new(ends, stroke(colour(1), 16)))
                    .map_err(failed)?;
                cross(sheet, (middle * SCALE, at.round() as i32))?;
                let text = format!("{} lost", segment.number);
                let place = (middle + 6, at.round() as i32 / SCALE - 14);
                canvas::write(sheet, &text, place, &style(TEXT, INK, TextAlignment::After))
            }
        }
    }

    /// Transit time of the first segment that has arrived.
    fn typical_way(&self) -> f64 {
        let way = |segment: &LadderSegment| match segment.fate {
            Fate::Arrived(at) => Some(at - segment.departed),
            Fate::Lost | Fate::Unknown => None,
        };
        self.ladder.segments.iter().find_map(way).unwrap_or(0.1)
    }

    fn ack(&self, sheet: &Sheet<'_>, ack: &LadderAck) -> DrawResult {
        let colour = if ack.duplicate { colour(4) } else { colour(2) };
        self.arrow(
            sheet,
            (RECEIVER, ack.departed),
            (SENDER, ack.arrived),
            (colour, 9),
        )
    }

    /// Draws labels next to a lifeline, on its left (`direction` -1) or right (1). The time is next
    /// to the lifeline.
    fn notes(&self, sheet: &Sheet<'_>, notes: &[Note], line: i32, direction: i32) -> DrawResult {
        let row = f64::from(ROW * SCALE);
        // The lines of a label are centred at the time of the label.
        let wanted = notes.iter().flat_map(|note| {
            let (height, above) = (self.y(note.time), (note.lines.len() - 1) as f64 / 2.0);
            (0..note.lines.len()).map(move |line| height + (line as f64 - above) * row)
        });
        let wanted: Vec<f64> = wanted.collect();
        // Lines that are shifted upwards must not reach the names of the lifelines.
        let least = |line: usize| f64::from(TOP * SCALE) + line as f64 * row;
        let places = spread(&wanted, row).into_iter().enumerate();
        let mut places = places.map(|(line, place)| place.max(least(line)));
        let side = if direction < 0 {
            TextAlignment::Before
        } else {
            TextAlignment::After
        };
        for note in notes {
            let own: Vec<f64> = places.by_ref().take(note.lines.len()).collect();
            let (Some(first), Some(last)) = (own.first(), own.last()) else {
                continue;
            };
            let middle = (first + last) / 2.0;
            let height = self.y(note.time).round() as i32;
            let (from, to) = (line * SCALE, (line + direction * (LEADER - 5)) * SCALE);
            let leader = vec![
                (from, height),
                (from + direction * 6 * SCALE, height),
                (to, middle.round() as i32),
            ];
            sheet
                .draw(&PathElement::new(leader, stroke(FAINT, 5)))
                .map_err(failed)?;
            let time = format!("{:.3}", note.time);
            let at = line + direction * LEADER;
            let y = middle.round() as i32 / SCALE;
            canvas::write(sheet, &time, (at, y), &style(TEXT, FAINT, side))?;
            let at = at + direction * (width_of(&time, TEXT) + 4);
            let plain = style(TEXT, INK, side);
            let ink = match note.strong {
                true => bold(plain),
                false => plain,
            };
            for (words, place) in note.lines.iter().zip(&own) {
                let y = place.round() as i32 / SCALE;
                canvas::write(sheet, words, (at, y), &ink)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_note_goes_over_several_lines() {
        let parts = ["SACK 7 again (4)", "cwnd 4.5", "sends 8 again"];
        let of = |parts: &[&str]| lines(parts.iter().map(|it| (*it).to_owned()).collect());
        assert_eq!(of(&parts), ["SACK 7 again (4)", "cwnd 4.5; sends 8 again"]);
        assert_eq!(
            of(&["SACK 4", "cwnd 6", "sends 9"]),
            ["SACK 4; cwnd 6; sends 9"]
        );
    }

    #[test]
    fn labels_that_would_collide_share_their_shift() {
        assert_eq!(spread(&[0.0, 100.0, 200.0], 10.0), [0.0, 100.0, 200.0]);
        assert_eq!(spread(&[100.0, 102.0, 104.0], 10.0), [92.0, 102.0, 112.0]);
        let placed = spread(&[0.0, 1.0, 2.0, 50.0, 51.0], 10.0);
        assert!(
            placed
                .windows(2)
                .all(|pair| pair[1] - pair[0] >= 10.0 - 1e-9),
            "{placed:?}"
        );
        assert!(spread(&[], 10.0).is_empty());
    }
}

//! The SVG drawing area of figures: size, colours, text, and postprocessing of the document.
//!
//! The library places everything at whole pixels, so figures are drawn at [`SCALE`] times the
//! displayed size. No font is embedded, so that the sans-serif font of the viewer is used. Text
//! should therefore be placed so that its exact width matters little.

use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Number of drawn pixels per displayed pixel.
pub const SCALE: i32 = 2;

/// Colour of text and axes.
pub const INK: RGBColor = RGBColor(0x1f, 0x23, 0x28);
/// Colour of secondary text.
pub const FAINT: RGBColor = RGBColor(0x6a, 0x73, 0x7d);
/// Colour of grid lines.
pub const GRID: RGBColor = RGBColor(0xe3, 0xe6, 0xea);
/// Background colour.
pub const PAPER: RGBColor = RGBColor(0xfe, 0xfe, 0xfe);

/// Colours that are distinguishable for colour-blind readers (after Okabe and Ito), each with a
/// contrast of at least 3:1 on white and on the dark page. Further curves repeat these colours.
const PALETTE: [RGBColor; 6] = [
    RGBColor(0x0a, 0x7a, 0xc0),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x92, 0x6b),
    RGBColor(0xc0, 0x5f, 0x96),
    RGBColor(0x9a, 0x78, 0x10),
    RGBColor(0x7a, 0x6f, 0xd0),
];

/// Colour of a curve by its index.
pub fn colour(index: usize) -> RGBColor {
    PALETTE[index % PALETTE.len()]
}

/// Result of a drawing operation; the error is the message of the library.
pub type DrawResult = Result<(), String>;

/// Drawing area.
pub type Sheet<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Converts an error of the drawing library to text.
pub fn failed(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Draws on an empty area with the displayed size; returns the document.
pub fn sheet(
    title: &str,
    width: u32,
    height: u32,
    draw: impl FnOnce(&Sheet<'_>) -> DrawResult,
) -> Result<String, String> {
    let mut text = String::new();
    {
        let size = (width * SCALE as u32, height * SCALE as u32);
        let sheet = SVGBackend::with_string(&mut text, size).into_drawing_area();
        sheet.fill(&PAPER).map_err(failed)?;
        draw(&sheet)?;
        sheet.present().map_err(failed)?;
    }
    Ok(finish(&text, title, width, height))
}

/// Sets the displayed size of the document, and a title for screen readers.
fn finish(text: &str, title: &str, width: u32, height: u32) -> String {
    let size = |scale: u32| format!("width=\"{}\" height=\"{}\"", width * scale, height * scale);
    let head = format!("{} role=\"img\" aria-label=\"{}\"", size(1), escaped(title));
    let mut text = text.replacen(&size(SCALE as u32), &head, 1);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// The drawing for embedding in a page: text, grid and background use the colours of the page, so
/// that it is readable in dark and light mode.
pub fn for_page(svg: &str) -> String {
    let hex = |colour: RGBColor| format!("\"#{:02X}{:02X}{:02X}\"", colour.0, colour.1, colour.2);
    svg.replace(&hex(INK), "\"currentColor\"")
        .replace(&hex(FAINT), "\"var(--faint)\"")
        .replace(&hex(GRID), "\"var(--grid)\"")
        .replace(&hex(PAPER), "\"var(--paper)\"")
}

/// Escapes the five special characters of markup.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Horizontal alignment of a text relative to its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextAlignment {
    /// The text begins at the position.
    After,
    /// The text ends at the position.
    Before,
    /// The text is centred at the position.
    Over,
}

/// Text style with a font size in displayed pixels.
pub fn style(size: i32, colour: RGBColor, side: TextAlignment) -> TextStyle<'static> {
    let h = match side {
        TextAlignment::After => HPos::Left,
        TextAlignment::Before => HPos::Right,
        TextAlignment::Over => HPos::Center,
    };
    ("sans-serif", size * SCALE)
        .into_font()
        .color(&colour)
        .pos(Pos::new(h, VPos::Center))
}

/// Draws a text at a position in displayed pixels.
pub fn write(sheet: &Sheet<'_>, text: &str, at: (i32, i32), style: &TextStyle<'_>) -> DrawResult {
    sheet
        .draw_text(text, style, (at.0 * SCALE, at.1 * SCALE))
        .map_err(failed)
}

/// Approximate width of a text with this font size, displayed pixels.
pub fn width_of(text: &str, size: i32) -> i32 {
    (text.chars().count() as i32 * size * 53) / 100
}

/// Line style with a width in tenths of a displayed pixel.
pub fn stroke(colour: RGBColor, tenths: u32) -> ShapeStyle {
    colour.stroke_width((tenths * SCALE as u32).div_ceil(10).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance (WCAG 2.1).
    fn luminance(colour: RGBColor) -> f64 {
        let part = |value: u8| match f64::from(value) / 255.0 {
            low if low <= 0.040_45 => low / 12.92,
            high => ((high + 0.055) / 1.055).powf(2.4),
        };
        0.2126 * part(colour.0) + 0.7152 * part(colour.1) + 0.0722 * part(colour.2)
    }

    fn contrast(a: RGBColor, b: RGBColor) -> f64 {
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        a.max(b) / a.min(b)
    }

    /// Background colours of the style sheet for light and dark mode.
    fn papers() -> Vec<RGBColor> {
        let css = include_str!("../page.css");
        let papers = css.split("--paper: #").skip(1);
        let byte = |text: &str, at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hex");
        papers
            .map(|it| RGBColor(byte(it, 0), byte(it, 2), byte(it, 4)))
            .collect()
    }

    #[test]
    fn colours_stand_out_by_day_and_by_night() {
        assert!((contrast(BLACK, WHITE) - 21.0).abs() < 1e-9);
        assert_eq!(papers().len(), 2);
        for paper in papers() {
            for colour in PALETTE {
                let contrast = contrast(colour, paper);
                assert!(contrast >= 3.0, "{colour:?} on {paper:?}: {contrast}");
            }
        }
    }

    /// Colours of the style sheet for light and dark mode.
    fn themes() -> Vec<std::collections::BTreeMap<&'static str, RGBColor>> {
        let css = include_str!("../page.css");
        let theme = |part: &'static str| {
            let part = part.split('}').next().unwrap_or_default();
            let colours = part
                .split("--")
                .skip(1)
                .filter_map(|it| it.split_once(": #"));
            let byte =
                |text: &str, at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hex");
            colours
                .map(|(name, hex)| (name, RGBColor(byte(hex, 0), byte(hex, 2), byte(hex, 4))))
                .collect()
        };
        css.split(":root {").skip(1).map(theme).collect()
    }

    #[test]
    fn text_can_be_read_by_day_and_by_night() {
        let themes = themes();
        assert_eq!(themes.len(), 2);
        let pairs = [
            ("ink", "paper"),
            ("ink", "panel"),
            ("faint", "paper"),
            ("link", "paper"),
            ("good", "good-paper"),
            ("link", "fair-paper"),
            ("bad", "bad-paper"),
            ("bad", "paper"),
            ("open", "open-paper"),
        ];
        for theme in &themes {
            for (text, paper) in pairs {
                let contrast = contrast(theme[text], theme[paper]);
                assert!(contrast >= 4.5, "{text} on {paper}: {contrast}");
            }
        }
    }
}

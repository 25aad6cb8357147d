//! Parser for the subset of XML that messages use: elements with text. Attributes, comments,
//! declarations and namespaces are ignored.

use super::Entry;
use super::message::{Message, entry};

/// A part of an XML document.
enum Part<'t> {
    Open(&'t str),
    Close(&'t str),
    /// Text, and whether it contains entity references.
    Text(&'t str, bool),
}

/// Splits a text at the next occurrence of `end`.
fn cut<'t>(text: &'t str, end: &str) -> (&'t str, &'t str) {
    match text.find(end) {
        Some(at) => (&text[..at], &text[at + end.len()..]),
        None => (text, ""),
    }
}

/// Returns the next part, and removes it from the remaining document.
fn next<'t>(left: &mut &'t str) -> Option<Part<'t>> {
    loop {
        if left.is_empty() {
            return None;
        }
        let Some(tag) = left.strip_prefix('<') else {
            let end = left.find('<').unwrap_or(left.len());
            let (text, rest) = left.split_at(end);
            *left = rest;
            return Some(Part::Text(text, true));
        };
        if let Some(comment) = tag.strip_prefix("!--") {
            *left = cut(comment, "-->").1;
        } else if let Some(plain) = tag.strip_prefix("![CDATA[") {
            let (text, rest) = cut(plain, "]]>");
            *left = rest;
            return Some(Part::Text(text, false));
        } else if tag.starts_with(['?', '!']) {
            *left = cut(tag, ">").1;
        } else {
            let (inner, rest) = cut(tag, ">");
            *left = rest;
            let name = |text: &'t str| {
                let end = text.find(|c: char| c.is_whitespace() || c == '/');
                let name = &text[..end.unwrap_or(text.len())];
                name.rsplit(':').next().unwrap_or(name)
            };
            match inner.strip_prefix('/') {
                Some(closed) => return Some(Part::Close(name(closed))),
                None if inner.ends_with('/') => {} // an element without text
                None => return Some(Part::Open(name(inner))),
            }
        }
    }
}

/// Replaces the entity references in a text.
fn plain(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    let mut left = text;
    while let Some(at) = left.find('&') {
        all.push_str(&left[..at]);
        let (name, rest) = cut(&left[at + 1..], ";");
        left = rest;
        let number = || {
            let digits = name.strip_prefix('#')?;
            let code = match digits.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => digits.parse().ok()?,
            };
            char::from_u32(code)
        };
        match name {
            "amp" => all.push('&'),
            "lt" => all.push('<'),
            "gt" => all.push('>'),
            "quot" => all.push('"'),
            "apos" => all.push('\''),
            _ => all.extend(number()),
        }
    }
    all + left
}

/// Messages of a document, each of which is an element `omm`.
pub(super) fn messages(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut left = text;
    let mut open: Option<(String, Message)> = None;
    let mut leaf: Option<(&str, String)> = None;
    // Line numbers are counted incrementally from message to message, so that the text is read only
    // once.
    let (mut line, mut counted) = (1, 0);
    loop {
        let at = text.len() - left.len();
        let Some(part) = next(&mut left) else { break };
        match part {
            Part::Open(name) if name.eq_ignore_ascii_case("omm") => {
                line += text[counted..at].matches('\n').count();
                counted = at;
                open = Some((format!("line {line}"), Message::new()));
            }
            Part::Open(name) => leaf = Some((name, String::new())),
            Part::Text(piece, references) => {
                if let Some((_, all)) = &mut leaf {
                    match references {
                        true => all.push_str(&plain(piece)),
                        false => all.push_str(piece),
                    }
                }
            }
            Part::Close(name) if name.eq_ignore_ascii_case("omm") => {
                if let Some((place, message)) = open.take() {
                    entries.push(entry(place, &message));
                }
            }
            Part::Close(name) => {
                if let Some((opened, value)) = leaf.take()
                    && opened == name
                    && let Some((_, message)) = &mut open
                {
                    message.insert(name.to_ascii_uppercase(), value.trim().to_owned());
                }
            }
        }
    }
    if let Some((place, _)) = open {
        entries.push(Entry {
            place,
            set: Err("the message does not end".to_owned()),
        });
    }
    entries
}

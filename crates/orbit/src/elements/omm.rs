//! Orbit Mean-Elements Messages (CCSDS 502.0-B): keywords and values in XML, KVN, CSV or JSON. Only
//! the values that SGP4 requires are read.

use super::message::{Message, entry};
use super::{Entry, xml};

/// Form of a file of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Xml,
    Json,
    Kvn,
    Csv,
}

/// Keywords that identify a message; each message contains at least one of them.
const SIGNS: [&str; 4] = [
    "CCSDS_OMM_VERS",
    "MEAN_MOTION",
    "NORAD_CAT_ID",
    "ARG_OF_PERICENTER",
];

impl Form {
    /// Detects the form of a text; `None` if it has none of these forms.
    pub fn of(text: &str) -> Option<Self> {
        let begin = text.trim_start();
        let first = begin.lines().next().unwrap_or_default();
        let has_sign = |line: &str| {
            SIGNS
                .iter()
                .any(|sign| line.to_ascii_uppercase().contains(sign))
        };
        match begin.chars().next()? {
            '<' => Some(Form::Xml),
            '[' | '{' => Some(Form::Json),
            _ if first.contains(',') && has_sign(first) => Some(Form::Csv),
            _ => {
                let mut keywords = text.lines().filter_map(|line| line.split_once('='));
                keywords
                    .any(|(keyword, _)| SIGNS.contains(&keyword.trim()))
                    .then_some(Form::Kvn)
            }
        }
    }
}

/// Splits a text into messages.
///
/// # Errors
/// The text cannot be parsed: the place and the fault.
pub(super) fn read(text: &str, form: Form) -> Result<Vec<Entry>, (String, String)> {
    match form {
        Form::Xml => Ok(xml::messages(text)),
        Form::Json => json(text),
        Form::Kvn => Ok(kvn(text)),
        Form::Csv => csv(text),
    }
}

/// Parses lines `KEYWORD = value [unit]`. A new message starts at the keyword of its version, or at
/// a keyword that is repeated.
fn kvn(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut open: Option<(usize, Message)> = None;
    let mut close = |open: &mut Option<(usize, Message)>| {
        if let Some((line, message)) = open.take() {
            entries.push(entry(format!("line {line}"), &message));
        }
    };
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        let Some((keyword, value)) = line.split_once('=') else {
            continue; // comments, and lines between sections
        };
        let keyword = keyword.trim().to_ascii_uppercase();
        if keyword.starts_with("COMMENT") {
            continue;
        }
        let is_again = open.as_ref().is_some_and(|(_, message)| {
            keyword == "CCSDS_OMM_VERS" || message.contains_key(&keyword) && keyword == "EPOCH"
        });
        if is_again {
            close(&mut open);
        }
        let value = match value.rsplit_once('[') {
            Some((value, unit)) if unit.trim_end().ends_with(']') => value,
            _ => value,
        };
        let (_, message) = open.get_or_insert_with(|| (number, Message::new()));
        message.insert(keyword, value.trim().to_owned());
    }
    close(&mut open);
    entries
}

fn csv(text: &str) -> Result<Vec<Entry>, (String, String)> {
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.trim_start().as_bytes());
    let failed = |error: csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        (format!("line {line}"), error.to_string())
    };
    let titles = reader.headers().map_err(failed)?;
    let titles: Vec<String> = titles.iter().map(str::to_ascii_uppercase).collect();
    // Lines before the header row must be counted, too.
    let before = text.len() - text.trim_start().len();
    let before = text[..before].matches('\n').count() as u64;
    let mut entries = Vec::new();
    for record in reader.records() {
        let record = record.map_err(failed)?;
        let line = record.position().map_or(0, csv::Position::line) + before;
        let place = format!("line {line}");
        if record.len() == titles.len() {
            let values = record.iter().map(str::to_owned);
            entries.push(entry(place, &titles.iter().cloned().zip(values).collect()));
        } else {
            let (found, allowed) = (record.len(), titles.len());
            let what = format!("found {found} fields; the first line has {allowed}");
            entries.push(Entry {
                place,
                set: Err(what),
            });
        }
    }
    Ok(entries)
}

fn json(text: &str) -> Result<Vec<Entry>, (String, String)> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| {
        let what = error.to_string();
        let what = what
            .split(" at line ")
            .next()
            .unwrap_or_default()
            .to_owned();
        (format!("line {}", error.line()), what)
    })?;
    let mut entries = Vec::new();
    messages(&value, &mut entries);
    Ok(entries)
}

/// Collects the messages from all tables with elements, at any depth.
fn messages(value: &serde_json::Value, entries: &mut Vec<Entry>) {
    use serde_json::Value;
    let place = format!("message {}", entries.len() + 1);
    match value {
        Value::Array(items) => {
            for item in items {
                messages(item, entries);
            }
        }
        Value::Object(table) => {
            let mut message = Message::new();
            leaves(table, &mut message);
            let is_message = message.keys().any(|key| SIGNS.contains(&key.as_str()));
            let nested = table.values().any(Value::is_array);
            if is_message || !nested {
                entries.push(entry(place, &message));
            } else {
                table.values().for_each(|value| messages(value, entries));
            }
        }
        other => entries.push(Entry {
            place,
            set: Err(format!("found {other}; expected a table of keywords")),
        }),
    }
}

/// Collects the values of a table and of its nested tables.
fn leaves(table: &serde_json::Map<String, serde_json::Value>, message: &mut Message) {
    use serde_json::Value;
    for (key, value) in table {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Object(table) => {
                leaves(table, message);
                continue;
            }
            _ => continue,
        };
        message.insert(key.to_ascii_uppercase(), text);
    }
}

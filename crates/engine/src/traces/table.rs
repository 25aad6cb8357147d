//! Rows of a trace file: fields separated by commas, with an optional header row.

use super::header_row::TraceColumn;

/// A row of a trace: its line number, its fields, and for each field the unit of a plain number.
pub(super) struct Row<'t> {
    pub line: usize,
    pub fields: &'t [&'t str],
    units: &'t [&'static str],
}

impl Row<'_> {
    /// The field as written in a spec: a plain number is followed by the unit of its column.
    pub fn with_unit(&self, index: usize) -> String {
        let (field, unit) = (self.fields[index], self.units[index]);
        match field.parse::<f64>() {
            Ok(_) => format!("{field}{unit}"),
            Err(_) => field.to_owned(),
        }
    }

    /// The field as a number, if it is a plain number in a column without units.
    pub fn plain(&self, index: usize) -> Option<f64> {
        let number = self.fields[index].parse().ok()?;
        self.units[index].is_empty().then_some(number)
    }
}

/// Whether a field begins like a number.
fn is_value(field: &str) -> bool {
    field.starts_with(|c: char| c.is_ascii_digit() || c == '.')
}

/// Calls `take` with each row of `text`, until it returns false. Each row must have a value in each
/// of the first `least` columns. `form` is the description of a valid line for error messages.
///
/// # Errors
/// The first invalid line: its number, the text found, and the allowed forms.
pub(super) fn read(
    text: &str,
    columns: &[TraceColumn],
    least: usize,
    form: &str,
    mut take: impl FnMut(Row<'_>) -> Result<bool, String>,
) -> Result<(), String> {
    let units_of = |fields: &[&str]| -> Result<Vec<&'static str>, String> {
        let columns = columns.iter().zip(fields);
        columns.map(|(column, title)| column.unit(title)).collect()
    };
    let mut units: Vec<&'static str> = columns.iter().map(|it| it.quantity.without()).collect();
    let mut titles: Option<(usize, Vec<&str>)> = None;
    let mut begun = false;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        let fields_of = |line| -> Vec<&str> {
            let fields = str::split(line, ',');
            fields.map(|field| field.trim().trim_matches('"')).collect()
        };
        if let Some(comment) = line.strip_prefix('#') {
            // A comment may be the header row, because some programs write it as a comment. Any
            // other comment is ignored.
            let fields = fields_of(comment);
            let may_be = !begun && titles.is_none();
            if may_be
                && (least..=columns.len()).contains(&fields.len())
                && let Ok(found) = units_of(&fields)
            {
                units[..found.len()].copy_from_slice(&found);
            }
            continue;
        }
        if line.is_empty() {
            continue;
        }
        let fields = fields_of(line);
        let wrong = || format!("line {number}: found {line:?}; {form}");
        if !(least..=columns.len()).contains(&fields.len()) {
            return Err(wrong());
        }
        if !begun && titles.is_none() && !fields.iter().any(|field| is_value(field)) {
            titles = Some((number, fields));
            continue;
        }
        if let Some((line, titles)) = titles.take() {
            let found = units_of(&titles).map_err(|error| format!("line {line}: {error}"))?;
            units[..found.len()].copy_from_slice(&found);
        }
        begun = true;
        if let Some(empty) = fields[..least].iter().position(|field| field.is_empty()) {
            let which = empty + 1;
            return Err(format!(
                "line {number}: found {line:?}, without a value in column {which}; {form}"
            ));
        }
        let (needed, others) = fields.split_at(least);
        let others = others.iter().filter(|field| !field.is_empty());
        if !needed.iter().chain(others).all(|field| is_value(field)) {
            return Err(wrong());
        }
        let row = Row {
            line: number,
            fields: &fields,
            units: &units,
        };
        if !take(row)? {
            return Ok(());
        }
    }
    Ok(())
}

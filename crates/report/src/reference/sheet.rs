//! A CSV file as rows with positions, so that errors can name a cell.

use anabranch_scenario::suggest::nearest;

/// Error in a CSV file: its position, the text found, and the values allowed.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("{file}:{line}:{column}: {what}")]
pub struct ReferenceError {
    /// Name of the file.
    pub file: String,
    /// Line, counted from 1.
    pub line: u64,
    /// Character in the line, counted from 1.
    pub column: u64,
    /// Description of the error.
    pub what: String,
}

/// A column that a file may have.
pub(super) struct Column {
    name: &'static str,
    required: bool,
}

impl Column {
    pub const fn required(name: &'static str) -> Self {
        let required = true;
        Self { name, required }
    }

    pub const fn optional(name: &'static str) -> Self {
        let required = false;
        Self { name, required }
    }
}

/// A line of a file with its cells in the order of the declared columns. Cells of missing columns
/// are empty.
pub(super) struct Row {
    /// Line in the file, counted from 1.
    pub line: u64,
    cells: Vec<String>,
}

impl Row {
    /// Contents of the cells.
    pub fn fields<const N: usize>(&self) -> [String; N] {
        std::array::from_fn(|at| self.cells.get(at).cloned().unwrap_or_default())
    }
}

/// A CSV file with a known set of columns.
pub(super) struct Sheet<'a> {
    file: &'a str,
    text: &'a str,
    columns: &'a [Column],
    /// Index of each declared column in the file; `None` if the file lacks it.
    places: Vec<Option<usize>>,
    /// Rows after the heading.
    pub rows: Vec<Row>,
}

fn names(columns: &[Column], wanted: impl Fn(&Column) -> bool) -> String {
    let names = columns.iter().filter(|it| wanted(it)).map(|it| it.name);
    names.collect::<Vec<_>>().join(", ")
}

/// Position of the first character of a cell in its line, counted from 1.
fn column_of(text: &str, line: u64, cell: usize) -> u64 {
    let source = text.lines().nth(line as usize - 1).unwrap_or_default();
    let (mut quoted, mut left) = (false, cell);
    for (at, character) in source.chars().enumerate() {
        if left == 0 {
            return at as u64 + 1;
        }
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => left -= 1,
            _ => {}
        }
    }
    if left == 0 && cell > 0 {
        source.chars().count() as u64 + 1
    } else {
        1
    }
}

impl<'a> Sheet<'a> {
    pub fn read(
        file: &'a str,
        text: &'a str,
        columns: &'a [Column],
    ) -> Result<Self, ReferenceError> {
        let mut sheet = Self {
            file,
            text,
            columns,
            places: Vec::new(),
            rows: Vec::new(),
        };
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(text.as_bytes());
        let mut records = reader.records();
        let bad = |error: csv::Error| {
            let line = error.position().map_or(1, csv::Position::line);
            sheet_error(file, line, 1, error.to_string())
        };
        let heading = match records.next() {
            Some(heading) => heading.map_err(bad)?,
            None => {
                let all = names(columns, |_| true);
                let what = format!("found no line; the first line names the columns: {all}");
                return Err(sheet.wrong(1, None, what));
            }
        };
        sheet.places = sheet.place(&heading)?;
        for record in records {
            let record = record.map_err(bad)?;
            let line = record.position().map_or(1, csv::Position::line);
            if record.len() != heading.len() {
                let (found, wanted) = (record.len(), heading.len());
                let what = format!("found {found} cells; the first line has {wanted} columns");
                return Err(sheet.wrong(line, None, what));
            }
            let cell = |place: &Option<usize>| place.and_then(|place| record.get(place));
            let cells = sheet.places.iter().map(cell);
            let cells = cells.map(|it| it.unwrap_or_default().to_owned()).collect();
            sheet.rows.push(Row { line, cells });
        }
        Ok(sheet)
    }

    /// Finds the index of each declared column in the heading.
    fn place(&self, heading: &csv::StringRecord) -> Result<Vec<Option<usize>>, ReferenceError> {
        // A byte order mark before the first name is removed, because some editors insert one.
        let heading: Vec<&str> = heading
            .iter()
            .map(|name| name.trim_start_matches('\u{feff}').trim())
            .collect();
        for (at, name) in heading.iter().enumerate() {
            if self.columns.iter().all(|it| it.name != *name) {
                let known = self.columns.iter().map(|it| it.name);
                let hint = nearest(name, known)
                    .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                let all = names(self.columns, |_| true);
                let what = format!("found column {name:?}; allowed: {all}{hint}");
                return Err(self.wrong(1, Some(at), what));
            }
            if heading[..at].contains(name) {
                return Err(self.wrong(1, Some(at), format!("found column `{name}` twice")));
            }
        }
        let mut places = Vec::new();
        for column in self.columns {
            let place = heading.iter().position(|name| *name == column.name);
            if place.is_none() && column.required {
                let needed = names(self.columns, |it| it.required);
                let name = column.name;
                let what = format!("found no column `{name}`; needed are {needed}");
                return Err(self.wrong(1, None, what));
            }
            places.push(place);
        }
        Ok(places)
    }

    fn wrong(&self, line: u64, cell: Option<usize>, what: String) -> ReferenceError {
        let column = cell.map_or(1, |cell| column_of(self.text, line, cell));
        sheet_error(self.file, line, column, what)
    }

    /// Error for a cell with an invalid value.
    pub fn wrong_cell(&self, row: &Row, column: usize, allowed: &str) -> ReferenceError {
        let (name, found) = (self.columns[column].name, &row.cells[column]);
        let what = format!("column `{name}`: found {found:?}; allowed: {allowed}");
        self.wrong(row.line, self.places[column], what)
    }

    /// Parses a number.
    pub fn number(&self, row: &Row, column: usize) -> Result<f64, ReferenceError> {
        let number = row.cells[column].parse::<f64>().ok();
        let number = number.filter(|number| number.is_finite());
        number.ok_or_else(|| self.wrong_cell(row, column, "a number, such as 12.5"))
    }

    /// Parses one of several words. An empty cell means the first one.
    pub fn one_of<T: Copy>(
        &self,
        row: &Row,
        column: usize,
        words: &[(&str, T)],
    ) -> Result<T, ReferenceError> {
        let cell = &row.cells[column];
        let meant =
            |(at, (word, _)): &(usize, &(&str, T))| *word == cell || cell.is_empty() && *at == 0;
        let found = words.iter().enumerate().find(meant);
        found.map(|(_, (_, one))| *one).ok_or_else(|| {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let allowed = format!("{}, or nothing for {}", names.join(", "), names[0]);
            self.wrong_cell(row, column, &allowed)
        })
    }

    /// Parses the half width of an interval.
    pub fn half_width(&self, row: &Row, column: usize) -> Result<f64, ReferenceError> {
        let number = self.number(row, column).ok();
        let number = number.filter(|number| *number >= 0.0);
        let allowed = "a number of at least 0, or nothing for a single run";
        number.ok_or_else(|| self.wrong_cell(row, column, allowed))
    }

    /// Parses a tolerance: a number in the unit of the value, or a share of the value in percent.
    pub fn tolerance(&self, row: &Row, column: usize, value: f64) -> Result<f64, ReferenceError> {
        let cell = row.cells[column].as_str();
        let number = match cell.strip_suffix('%') {
            Some(share) => share
                .trim()
                .parse()
                .ok()
                .map(|it: f64| it / 100.0 * value.abs()),
            None => cell.parse().ok(),
        };
        let number = number.filter(|it: &f64| it.is_finite() && *it >= 0.0);
        let allowed = "a number of at least 0 in the unit of the value, a share of it such as 3 %, or nothing for the rounding";
        number.ok_or_else(|| self.wrong_cell(row, column, allowed))
    }

    /// Parses a number of replications.
    pub fn count(&self, row: &Row, column: usize) -> Result<u32, ReferenceError> {
        let number = row.cells[column].parse().ok();
        let number = number.filter(|number| *number > 0);
        number.ok_or_else(|| self.wrong_cell(row, column, "a whole number from 1 on"))
    }
}

fn sheet_error(file: &str, line: u64, column: u64, what: String) -> ReferenceError {
    ReferenceError {
        file: file.to_owned(),
        line,
        column,
        what,
    }
}

//! What the papers printed and what ns-2.35 gives, as data with provenance. Only the comparison reads it; nothing that
//! measures may.

use std::sync::OnceLock;

/// One number that a paper printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The paper, as in the spec's `name`.
    pub paper: String,
    /// Table, figure or section.
    pub place: String,
    /// Series, as in [`anabranch_scenario::records::Measure::series`].
    pub series: String,
    /// Name of the independent variable.
    pub x_name: String,
    /// Its value, as printed.
    pub x: String,
    /// Metric.
    pub metric: String,
    /// The number.
    pub value: f64,
    /// The digits as printed: they say how far it was rounded.
    pub printed: String,
    /// Its unit.
    pub unit: String,
}

impl Published {
    /// Half a unit of the last digit that was printed: how far the number may lie from what was rounded. Trailing
    /// zeros count after a decimal point (2.880) and not before one (1500 stands for "about 1500").
    pub fn half_unit(&self) -> f64 {
        half_unit(&self.printed)
    }
}

fn half_unit(printed: &str) -> f64 {
    let exponent = match printed.split_once('.') {
        Some((_, decimals)) => -(decimals.len() as i32),
        None => {
            let digits = printed.trim_start_matches('-');
            let significant = digits.trim_end_matches('0');
            if significant.is_empty() {
                0
            } else {
                (digits.len() - significant.len()) as i32
            }
        }
    };
    0.5 * 10f64.powi(exponent)
}

/// One mean over runs of ns-2.35.
#[derive(Clone, Debug, PartialEq)]
pub struct Ns2 {
    /// The paper whose experiment was run.
    pub paper: String,
    /// Table or figure.
    pub place: String,
    /// Variant of the experiment and its x, such as `era n=2`.
    pub condition: String,
    /// Metric, in the words of that file.
    pub metric: String,
    /// Mean over its replications.
    pub mean: f64,
    /// Half the width of its 95 % interval; `None` for a single run.
    pub confidence: Option<f64>,
    /// Replications.
    pub replications: u32,
}

/// Reference data, ready to be asked.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    /// Texts of `published.csv` and of `ns2.csv` that a program carries. They are read when they are first asked for:
    /// most runs compare with nothing.
    carried: [&'static [&'static str]; 2],
    published: OnceLock<Vec<Published>>,
    ns2: OnceLock<Vec<Ns2>>,
}

/// A reference file with a row that cannot be read.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("{file}, line {line}: {what}")]
pub struct ReferenceError {
    file: &'static str,
    line: usize,
    what: String,
}

impl Reference {
    /// Reference data that a program carries: the texts of its `published.csv` and of its `ns2.csv`.
    pub const fn carried(published: &'static [&'static str], ns2: &'static [&'static str]) -> Self {
        Self {
            carried: [published, ns2],
            published: OnceLock::new(),
            ns2: OnceLock::new(),
        }
    }

    /// Everything that papers printed, in the order of the files.
    pub fn all_published(&self) -> &[Published] {
        self.published.get_or_init(|| {
            let read = |text: &&str| read_published(text).unwrap_or_default();
            self.carried[0].iter().flat_map(read).collect()
        })
    }

    /// Every mean of ns-2.35, in the order of the files.
    pub fn all_ns2(&self) -> &[Ns2] {
        self.ns2.get_or_init(|| {
            let read = |text: &&str| read_ns2(text).unwrap_or_default();
            self.carried[1].iter().flat_map(read).collect()
        })
    }

    /// Reference data from the text of files in the same form.
    ///
    /// # Errors
    /// The first row that lacks a field or has no number where one belongs.
    pub fn read(published: &str, ns2: &str) -> Result<Reference, ReferenceError> {
        Ok(Reference {
            carried: [&[]; 2],
            published: read_published(published)?.into(),
            ns2: read_ns2(ns2)?.into(),
        })
    }

    /// Everything a paper printed at a place (`Table II`), in the order of the file.
    pub fn published<'a>(
        &'a self,
        paper: &'a str,
        place: &'a str,
    ) -> impl Iterator<Item = &'a Published> + 'a {
        self.all_published()
            .iter()
            .filter(move |row| row.paper == paper && row.place == place)
    }

    /// The one ns-2.35 mean of a metric under a condition.
    pub fn ns2(&self, paper: &str, place: &str, condition: &str, metric: &str) -> Option<&Ns2> {
        self.all_ns2().iter().find(|row| {
            row.paper == paper
                && row.place == place
                && row.condition == condition
                && row.metric == metric
        })
    }
}

fn rows(
    file: &'static str,
    text: &str,
    columns: &[&str],
) -> Result<Vec<Vec<String>>, ReferenceError> {
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let bad = |line: usize, what: String| ReferenceError { file, line, what };
    let header = reader
        .headers()
        .map_err(|error| bad(1, error.to_string()))?;
    if header.iter().ne(columns.iter().copied()) {
        return Err(bad(1, format!("the columns must be {}", columns.join(","))));
    }
    let mut all = Vec::new();
    for (index, record) in reader.records().enumerate() {
        let record = record.map_err(|error| bad(index + 2, error.to_string()))?;
        all.push(record.iter().map(str::to_owned).collect());
    }
    Ok(all)
}

fn number(file: &'static str, index: usize, text: &str) -> Result<f64, ReferenceError> {
    text.parse().map_err(|_| ReferenceError {
        file,
        line: index + 2,
        what: format!("`{text}` is not a number"),
    })
}

fn read_published(text: &str) -> Result<Vec<Published>, ReferenceError> {
    const FILE: &str = "published.csv";
    let columns = [
        "paper", "where", "series", "x_name", "x", "metric", "value", "unit",
    ];
    let mut all = Vec::new();
    for (index, row) in rows(FILE, text, &columns)?.into_iter().enumerate() {
        let value = number(FILE, index, &row[6])?;
        let [paper, place, series, x_name, x, metric, printed, unit] = take(row);
        all.push(Published {
            paper,
            place,
            series,
            x_name,
            x,
            metric,
            value,
            printed,
            unit,
        });
    }
    Ok(all)
}

fn read_ns2(text: &str) -> Result<Vec<Ns2>, ReferenceError> {
    const FILE: &str = "ns2.csv";
    let columns = [
        "paper",
        "where",
        "condition",
        "metric",
        "mean",
        "ci95",
        "replications",
    ];
    let mut all = Vec::new();
    for (index, row) in rows(FILE, text, &columns)?.into_iter().enumerate() {
        let mean = number(FILE, index, &row[4])?;
        let confidence = if row[5].is_empty() {
            None
        } else {
            Some(number(FILE, index, &row[5])?)
        };
        let replications = number(FILE, index, &row[6])? as u32;
        let [paper, place, condition, metric, ..] = take::<7>(row);
        all.push(Ns2 {
            paper,
            place,
            condition,
            metric,
            mean,
            confidence,
            replications,
        });
    }
    Ok(all)
}

/// The row as an array; the reader has already refused rows of another length.
fn take<const N: usize>(row: Vec<String>) -> [String; N] {
    let mut fields = row.into_iter();
    std::array::from_fn(|_| fields.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_digits_say_the_rounding() {
        for (printed, half) in [
            ("23.9", 0.05),
            ("19.24", 0.005),
            ("2.880", 0.0005),
            ("96", 0.5),
            ("1500", 50.0),
            ("7", 0.5),
            ("0", 0.5),
        ] {
            assert!(
                (half_unit(printed) - half).abs() < 1e-12,
                "{printed}: {} is not {half}",
                half_unit(printed)
            );
        }
    }

    #[test]
    fn a_bad_row_is_named() {
        let text =
            "paper,where,condition,metric,mean,ci95,replications\na,b,c,d,1,,1\na,b,c,d,fast,,1\n";
        let error =
            Reference::read("paper,where,series,x_name,x,metric,value,unit\n", text).unwrap_err();
        assert_eq!(error.to_string(), "ns2.csv, line 3: `fast` is not a number");
    }
}

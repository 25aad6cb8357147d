//! Reference values with their provenance: published numbers, and results of independent programs.
//! They must be used only for comparison, and never in measurements.
//!
//! Both kinds of values are read from CSV files whose first line names the columns, in any order:
//!
//! - published values: `series`, `metric`, `value`; optional: `where`, `x_name`, `x`, `unit`,
//!   `printed`, `tolerance`, `same_as`, `not_compared`.
//! - means of an independent program: `condition`, `metric`, `mean`; optional: `where`, `ci95`,
//!   `replications`, `unit`.

mod sheet;

use anabranch_scenario::unit::factor;

use sheet::{Column, Sheet};

use crate::statistics::Interval;

pub use sheet::ReferenceError;

/// A published number.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Line in the file, counted from 1.
    pub line: u64,
    /// Table, figure or section of the paper. If empty, the number applies to every table that has
    /// such a row.
    pub place: String,
    /// Series, as in [`anabranch_scenario::records::Measure::series`].
    pub series: String,
    /// Name of the independent variable.
    pub x_name: String,
    /// Value of the independent variable, as printed.
    pub x: String,
    /// Metric.
    pub metric: String,
    /// The published number.
    pub value: f64,
    /// Digits as printed, which show the precision of the number.
    pub printed: String,
    /// Unit; empty if it is the unit of the measure.
    pub unit: String,
    /// How the number was shortened to the printed digits.
    pub rest: Rounding,
    /// Tolerance of a value that was read off a figure, in the unit of the value. It replaces the
    /// rounding.
    pub tolerance: Option<f64>,
    /// Line of the first occurrence of the value: its own line, unless it repeats an earlier value.
    pub first: u64,
    /// Reason why the value is not compared; empty if it is compared.
    pub not_compared: String,
}

/// How a number was shortened to its printed digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounding {
    /// The last printed digit was rounded.
    #[default]
    Rounded,
    /// The remaining digits were cut off.
    Truncated,
}

impl Rounding {
    /// The words allowed in the column `printed`.
    const ALL: [(&str, Rounding); 2] = [
        ("rounded", Rounding::Rounded),
        ("truncated", Rounding::Truncated),
    ];
}

impl Published {
    /// Range of the numbers that could be printed in this way. 23.9 means 23.85 to 23.95 if it was
    /// rounded, and 23.9 to 24.0 if it was truncated. Trailing zeros of a rounded number are
    /// significant after a decimal point (2.880), but not before one (1500 means "about 1500"). All
    /// digits of a truncated number are significant. A stated tolerance replaces this range.
    pub fn range(&self) -> Interval {
        if let Some(tolerance) = self.tolerance {
            return Interval::around(self.value, tolerance);
        }
        let negative = self.printed.starts_with('-');
        match self.rest {
            Rounding::Rounded => {
                Interval::around(self.value, unit_of_last(&self.printed, false) / 2.0)
            }
            Rounding::Truncated => {
                let unit = unit_of_last(&self.printed, true);
                // Truncation is towards 0.
                let shift = if negative { -unit / 2.0 } else { unit / 2.0 };
                Interval::around(self.value + shift, unit / 2.0)
            }
        }
    }

    /// Half width of the range relative to the value: 0.5 for "1000". Infinite for a rounded 0.
    pub fn spread(&self) -> f64 {
        match self.range().half_width() {
            0.0 => 0.0,
            half => half / self.value.abs(),
        }
    }

    /// Factor that converts the unit of this value to `unit`; `None` if it cannot be converted.
    pub fn factor(&self, unit: &str) -> Option<f64> {
        match self.unit.is_empty() {
            true => Some(1.0),
            false => factor(&self.unit, unit),
        }
    }

    /// The number in another unit; `None` if it cannot be converted.
    pub fn value_in(&self, unit: &str) -> Option<f64> {
        Some(self.value * self.factor(unit)?)
    }

    /// Whether the number repeats an earlier one: as the value of the same metric, or as the x of
    /// another value, such as the time of a step.
    fn repeats(&self, before: &Published) -> bool {
        let again = |name: &str, text: &str, tolerance: Option<f64>| {
            let number = text.parse().ok();
            let earlier = number.map(|value| Published {
                value,
                printed: text.to_owned(),
                tolerance,
                ..before.clone()
            });
            // The range is widened slightly, because decimal digits are not exact in binary.
            let holds = |it: Published| it.range().widened(1e-9).contains(self.value);
            name == self.metric && earlier.is_some_and(holds)
        };
        again(&before.metric, &before.printed, before.tolerance)
            || again(&before.x_name, &before.x, None)
    }
}

/// Unit of the last digit of a printed number. Zeros before the decimal point count as digits only
/// if `every` is set.
fn unit_of_last(printed: &str, every: bool) -> f64 {
    let (mantissa, power) = printed.split_once(['e', 'E']).unwrap_or((printed, "0"));
    let exponent = match mantissa.split_once('.') {
        Some((_, decimals)) => -(decimals.len() as i32),
        None if every => 0,
        None => {
            let digits = mantissa.trim_start_matches(['-', '+']);
            let significant = digits.trim_end_matches('0');
            if significant.is_empty() {
                0
            } else {
                (digits.len() - significant.len()) as i32
            }
        }
    };
    10f64.powi(exponent + power.parse::<i32>().unwrap_or(0))
}

/// A mean over the runs of an independent program.
#[derive(Clone, Debug, PartialEq)]
pub struct Mean {
    /// Line in the file, counted from 1.
    pub line: u64,
    /// Table or figure.
    pub place: String,
    /// Variant of the experiment and its x, such as `era n=2`.
    pub condition: String,
    /// Metric, by its name in that file.
    pub metric: String,
    /// Mean over the replications.
    pub mean: f64,
    /// Half width of its 95 % interval; `None` for a single run.
    pub confidence: Option<f64>,
    /// Number of replications.
    pub replications: u32,
    /// Unit; empty if it is the unit of the table.
    pub unit: String,
}

impl Mean {
    /// The mean in a unit that is larger by the factor `divisor`.
    #[must_use]
    pub fn divided_by(&self, divisor: f64) -> Mean {
        Mean {
            mean: self.mean / divisor,
            confidence: self.confidence.map(|half| half / divisor),
            ..self.clone()
        }
    }
}

/// Results of an independent program: its means.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    /// Key of the program in `[reference]`.
    pub name: String,
    /// The file from which they were read.
    pub file: String,
    /// Means, in the order of the file.
    pub means: Vec<Mean>,
}

impl Baseline {
    /// The mean of a metric for a place and condition.
    pub fn mean(&self, place: &str, condition: &str, metric: &str) -> Option<&Mean> {
        self.means.iter().find(|row| {
            (row.place == place || row.place.is_empty())
                && row.condition == condition
                && row.metric == metric
        })
    }
}

/// All reference values for one spec.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reference {
    /// The file from which published values were read.
    pub file: String,
    /// All published values, in the order of the file.
    pub published: Vec<Published>,
    /// Independent programs, in the order of the spec.
    pub baselines: Vec<Baseline>,
}

impl Reference {
    /// Reads the published values from the text of a CSV file with this name.
    ///
    /// # Errors
    /// The first invalid line, with its position, the text found, and the values allowed.
    pub fn read_published(&mut self, file: &str, text: &str) -> Result<(), ReferenceError> {
        self.published = read_published(file, text)?;
        file.clone_into(&mut self.file);
        Ok(())
    }

    /// Reads the means of an independent program from the text of a CSV file.
    ///
    /// # Errors
    /// The first invalid line, with its position, the text found, and the values allowed.
    pub fn read_baseline(
        &mut self,
        name: &str,
        file: &str,
        text: &str,
    ) -> Result<(), ReferenceError> {
        self.baselines.push(Baseline {
            name: name.to_owned(),
            file: file.to_owned(),
            means: read_means(file, text)?,
        });
        Ok(())
    }

    /// All values that were published at a place (such as `Table II`) or without a place, in the
    /// order of the file.
    pub fn published<'a>(&'a self, place: &'a str) -> impl Iterator<Item = &'a Published> + 'a {
        let here = move |row: &&Published| row.place == place || row.place.is_empty();
        self.published.iter().filter(here)
    }

    /// The independent program with this key.
    pub fn baseline(&self, name: &str) -> Option<&Baseline> {
        self.baselines.iter().find(|it| it.name == name)
    }
}

fn read_published(file: &str, text: &str) -> Result<Vec<Published>, ReferenceError> {
    const COLUMNS: [Column; 11] = [
        Column::optional("where"),
        Column::required("series"),
        Column::optional("x_name"),
        Column::optional("x"),
        Column::required("metric"),
        Column::required("value"),
        Column::optional("unit"),
        Column::optional("printed"),
        Column::optional("tolerance"),
        Column::optional("same_as"),
        Column::optional("not_compared"),
    ];
    let sheet = Sheet::read(file, text, &COLUMNS)?;
    let row = |row: &sheet::Row| {
        let value = sheet.number(row, 5)?;
        let rest = sheet.one_of(row, 7, &Rounding::ALL)?;
        let [
            place,
            series,
            x_name,
            x,
            metric,
            printed,
            unit,
            _,
            tolerance,
            _,
            not_compared,
        ] = row.fields();
        let tolerance = match tolerance.is_empty() {
            true => None,
            false => Some(sheet.tolerance(row, 8, value)?),
        };
        if tolerance.is_some() && rest == Rounding::Truncated {
            let allowed =
                "nothing where `printed` says truncated, which is about digits of the paper";
            return Err(sheet.wrong_cell(row, 8, allowed));
        }
        Ok(Published {
            line: row.line,
            place,
            series,
            x_name,
            x,
            metric,
            value,
            printed,
            unit,
            rest,
            tolerance,
            first: row.line,
            not_compared,
        })
    };
    let mut all: Vec<Published> = sheet.rows.iter().map(row).collect::<Result<_, _>>()?;
    for (at, row) in sheet.rows.iter().enumerate() {
        let [.., place, _] = row.fields::<11>();
        if place.is_empty() {
            continue;
        }
        let before = |it: &&Published| it.place == place && all[at].repeats(it);
        let found: Vec<u64> = all.iter().filter(before).map(|it| it.line).collect();
        let [first] = found[..] else {
            let value = &all[at].printed;
            let count = found.len();
            let allowed = format!(
                "a place that printed {value} once, under the same metric or as an x of that name; it is there {count} times"
            );
            return Err(sheet.wrong_cell(row, 9, &allowed));
        };
        all[at].first = first;
    }
    Ok(all)
}

fn read_means(file: &str, text: &str) -> Result<Vec<Mean>, ReferenceError> {
    const COLUMNS: [Column; 7] = [
        Column::optional("where"),
        Column::required("condition"),
        Column::required("metric"),
        Column::required("mean"),
        Column::optional("ci95"),
        Column::optional("replications"),
        Column::optional("unit"),
    ];
    let sheet = Sheet::read(file, text, &COLUMNS)?;
    let row = |row: &sheet::Row| {
        let [place, condition, metric, _, ci95, replications, unit] = row.fields();
        Ok(Mean {
            line: row.line,
            place,
            condition,
            metric,
            mean: sheet.number(row, 3)?,
            confidence: match ci95.is_empty() {
                true => None,
                false => Some(sheet.half_width(row, 4)?),
            },
            replications: match replications.is_empty() {
                true => 1,
                false => sheet.count(row, 5)?,
            },
            unit,
        })
    };
    sheet.rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Published {
        let mut reference = Reference::default();
        let text = format!("series,metric,value,printed\ns,m,{line}\n");
        reference.read_published("mine.csv", &text).unwrap();
        reference.published[0].clone()
    }

    #[test]
    fn truncated_values_are_at_least_the_printed_value() {
        for (line, low, high) in [
            ("23.9,", 23.85, 23.95),
            ("23.9,rounded", 23.85, 23.95),
            ("211.49,truncated", 211.49, 211.50),
            ("100,truncated", 100.0, 101.0),
            ("100,rounded", 50.0, 150.0),
            ("-0.5,truncated", -0.6, -0.5),
        ] {
            let range = one(line).range();
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
            assert!(
                near(range.low, low) && near(range.high, high),
                "{line}: {range:?}"
            );
        }
    }

    #[test]
    fn a_reading_tolerance_takes_the_place_of_the_rounding() {
        let read = |cells: &str| {
            let mut reference = Reference::default();
            let text = format!("series,metric,value,tolerance,printed\ns,m,{cells}\n");
            let read = reference.read_published("mine.csv", &text);
            read.map(|()| reference.published[0].range())
                .map_err(|error| error.to_string())
        };
        assert_eq!(read("1000,20,"), Ok(Interval::around(1000.0, 20.0)));
        assert_eq!(read("1000,5 %,"), Ok(Interval::around(1000.0, 50.0)));
        assert_eq!(read("-8,25%,"), Ok(Interval::around(-8.0, 2.0)));
        for (cells, found) in [("1000,-1,", "-1"), ("1000,5 kbit/s,", "5 kbit/s")] {
            let allowed = "a number of at least 0 in the unit of the value, a share of it such as 3 %, or nothing for the rounding";
            assert_eq!(
                read(cells),
                Err(format!(
                    "mine.csv:2:10: column `tolerance`: found {found:?}; allowed: {allowed}"
                ))
            );
        }
        assert!(
            read("1000,20,truncated")
                .unwrap_err()
                .contains("allowed: nothing")
        );
    }

    #[test]
    fn a_value_may_repeat_one_printed_elsewhere() {
        let read = |lines: &str| {
            let mut reference = Reference::default();
            let text = format!("where,series,x_name,x,metric,value,printed,same_as\n{lines}");
            let read = reference.read_published("mine.csv", &text);
            let firsts = |reference: Reference| {
                let lines = reference.published.iter().map(|it| it.first);
                lines.collect::<Vec<u64>>()
            };
            read.map(|()| firsts(reference))
                .map_err(|error| error.to_string())
        };
        // The time of an event is also the time of a step.
        assert_eq!(
            read(
                "Fig. 8,tcp,time,2.880,cwnd,4,,\nFig. 8,tcp,time,3.413,cwnd,4.25,,\nFig. 10,tcp,event,sent again,time,2.880,,Fig. 8\n"
            ),
            Ok(vec![2, 3, 2])
        );
        // One mean with two precisions. The shorter number was truncated; if it was rounded, it
        // would be 211.50.
        let mean = |how: &str| {
            read(&format!(
                "Table 1,sctp,,,delay,211.49,{how},\nAppendix,sctp,,,delay,211.499704,,Table 1\n"
            ))
        };
        assert_eq!(mean("truncated"), Ok(vec![2, 2]));
        assert_eq!(
            mean("rounded"),
            Err("mine.csv:3:35: column `same_as`: found \"Table 1\"; allowed: a place that printed 211.499704 once, under the same metric or as an x of that name; it is there 0 times".to_owned())
        );
    }

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
            ("-20", 5.0),
            ("1.5e6", 5e4),
            ("2E-3", 5e-4),
        ] {
            let found = unit_of_last(printed, false) / 2.0;
            let near = (found / half - 1.0).abs() < 1e-12;
            assert!(near, "{printed}: {found} is not {half}");
        }
    }

    fn wrong_published(text: &str) -> String {
        let mut reference = Reference::default();
        let error = reference.read_published("mine.csv", text).unwrap_err();
        assert_eq!(reference, Reference::default());
        error.to_string()
    }

    fn wrong_means(text: &str) -> String {
        let mut reference = Reference::default();
        let error = reference.read_baseline("ns3", "ns3.csv", text);
        error.unwrap_err().to_string()
    }

    #[test]
    fn a_wrong_cell_is_named_by_line_and_column() {
        assert_eq!(
            wrong_published("series,metric,value\nsctp,goodput,1\nsctp,goodput,fast\n"),
            "mine.csv:3:14: column `value`: found \"fast\"; allowed: a number, such as 12.5"
        );
        // A value with an unquoted comma shifts the cells after it.
        assert_eq!(
            wrong_published(
                "where,series,metric,value\n\"a\nb\",sctp,goodput,1\n,\"a,b\",goodput,\n"
            ),
            "mine.csv:4:16: column `value`: found \"\"; allowed: a number, such as 12.5"
        );
        assert_eq!(
            wrong_published("series,metric,value,printed\nsctp,goodput,1,cut\n"),
            "mine.csv:2:16: column `printed`: found \"cut\"; allowed: rounded, truncated, or nothing for rounded"
        );
        assert_eq!(
            wrong_published("series,metric,value\nsctp,goodput,NaN\n"),
            "mine.csv:2:14: column `value`: found \"NaN\"; allowed: a number, such as 12.5"
        );
        let means =
            |row: &str| wrong_means(&format!("condition,metric,mean,ci95,replications\n{row}\n"));
        assert_eq!(
            means("a,b,1,-2,3"),
            "ns3.csv:2:7: column `ci95`: found \"-2\"; allowed: a number of at least 0, or nothing for a single run"
        );
        assert_eq!(
            means("a,b,1,,0"),
            "ns3.csv:2:8: column `replications`: found \"0\"; allowed: a whole number from 1 on"
        );
    }

    #[test]
    fn a_wrong_form_is_named() {
        assert_eq!(
            wrong_published("series,metrics,value\n"),
            "mine.csv:1:8: found column \"metrics\"; allowed: where, series, x_name, x, metric, value, unit, printed, tolerance, same_as, not_compared; did you mean `metric`?"
        );
        assert_eq!(
            wrong_published("series,value\n"),
            "mine.csv:1:1: found no column `metric`; needed are series, metric, value"
        );
        assert_eq!(
            wrong_published("series,metric,series,value\n"),
            "mine.csv:1:15: found column `series` twice"
        );
        assert_eq!(
            wrong_published("series,metric,value\na,b\n"),
            "mine.csv:2:1: found 2 cells; the first line has 3 columns"
        );
        assert_eq!(
            wrong_published(""),
            "mine.csv:1:1: found no line; the first line names the columns: where, series, x_name, x, metric, value, unit, printed, tolerance, same_as, not_compared"
        );
    }

    #[test]
    fn columns_stand_in_any_order_and_some_may_be_missing() {
        let mut reference = Reference::default();
        reference
            .read_published("mine.csv", "value,series,metric\n1.50,sctp,goodput\n")
            .unwrap();
        let [row] = &reference.published[..] else {
            panic!("{reference:?}")
        };
        assert_eq!(
            (row.value, row.printed.as_str(), row.line),
            (1.5, "1.50", 2)
        );
        assert_eq!(reference.published("anywhere").count(), 1);
        reference
            .read_baseline(
                "ns3",
                "ns3.csv",
                "mean,condition,metric,where\n2,c,m,Table 1\n",
            )
            .unwrap();
        let ns3 = reference.baseline("ns3").unwrap();
        let mean = ns3.mean("Table 1", "c", "m").unwrap();
        assert_eq!(
            (mean.mean, mean.confidence, mean.replications),
            (2.0, None, 1)
        );
        assert!(ns3.mean("Table 2", "c", "m").is_none() && reference.baseline("ns2").is_none());
    }
}

//! The last benchmark results in `bench/scoreboard.json`, with their goals and limits.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;

use serde::{Deserialize, Serialize};

use crate::page;

/// Result of one quantity.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BenchResult {
    /// Name of the quantity with its unit.
    pub unit: String,
    /// Value at commit 3763e40, if it was measured.
    pub before: Option<f64>,
    /// Value of the last run.
    pub now: f64,
    /// Goal for the value.
    pub goal: f64,
    /// Theoretical limit of the value, if it was measured in the same run.
    pub limit: Option<f64>,
    /// True if larger values are better, and false if smaller values are.
    pub more: bool,
    /// Date of the run, and load of the machine.
    pub run: String,
}

impl BenchResult {
    /// Result for instructions per payload byte; the goal is half of the earlier value.
    pub fn instructions(now: f64, before: Option<f64>, limit: f64) -> Self {
        Self {
            unit: "instructions a byte".to_string(),
            before,
            now,
            goal: before.unwrap_or(f64::NAN) / 2.0,
            limit: Some(limit),
            more: false,
            run: String::new(),
        }
    }

    /// Result for the ratio of this stack's rate to another rate in the same round.
    pub fn ratio(now: f64, before: Option<f64>, goal: f64) -> Self {
        Self {
            unit: "times as fast".to_string(),
            before,
            now,
            goal,
            limit: None,
            more: true,
            run: String::new(),
        }
    }

    /// Whether the value reaches the goal.
    pub fn is_met(&self) -> bool {
        if self.more {
            self.now >= self.goal
        } else {
            self.now <= self.goal
        }
    }
}

/// All results by name.
///
/// # Errors
/// The file cannot be read.
pub fn figures() -> Result<BTreeMap<String, BenchResult>, Box<dyn Error>> {
    let path = page::folder().join("scoreboard.json");
    if !path.exists() {
        return Ok(BTreeMap::new());
    }
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

/// Adds or replaces results in the file.
///
/// # Errors
/// The file cannot be read or written.
pub fn note(fresh: Vec<(String, BenchResult)>) -> Result<(), Box<dyn Error>> {
    let run = page::circumstances()?;
    let mut all = figures()?;
    for (what, figure) in fresh {
        let run = run.clone();
        all.insert(what, BenchResult { run, ..figure });
    }
    let text = serde_json::to_string_pretty(&all)?;
    Ok(fs::write(
        page::folder().join("scoreboard.json"),
        text + "\n",
    )?)
}

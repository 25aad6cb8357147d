//! Where the project stands: what the benches measured last, beside the goal and the limit, in `bench/standing.json`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;

use serde::{Deserialize, Serialize};

use crate::page;

/// One figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// What of, in words.
    pub unit: String,
    /// At commit 3763e40, where it was measured.
    pub before: Option<f64>,
    /// At the last run.
    pub now: f64,
    /// What it shall be.
    pub goal: f64,
    /// What it cannot be better than, where that was measured in the same run.
    pub limit: Option<f64>,
    /// Whether more of it is better; else less is.
    pub more: bool,
    /// When, and how busy the machine was.
    pub run: String,
}

impl Figure {
    /// Instructions by payload byte: the goal is half of what it was.
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

    /// Our rate by another's in the same round.
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

    /// Whether the goal is reached.
    pub fn is_met(&self) -> bool {
        if self.more {
            self.now >= self.goal
        } else {
            self.now <= self.goal
        }
    }
}

/// All figures, by what they are of.
///
/// # Errors
/// The file cannot be read.
pub fn figures() -> Result<BTreeMap<String, Figure>, Box<dyn Error>> {
    let path = page::folder().join("standing.json");
    if !path.exists() {
        return Ok(BTreeMap::new());
    }
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

/// Notes a run's figures beside those of the other benches.
///
/// # Errors
/// The file cannot be read or written.
pub fn note(fresh: Vec<(String, Figure)>) -> Result<(), Box<dyn Error>> {
    let run = page::circumstances()?;
    let mut all = figures()?;
    for (what, figure) in fresh {
        let run = run.clone();
        all.insert(what, Figure { run, ..figure });
    }
    let text = serde_json::to_string_pretty(&all)?;
    Ok(fs::write(
        page::folder().join("standing.json"),
        text + "\n",
    )?)
}

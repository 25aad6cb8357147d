//! Tables and figures: what is made of the runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Short name; `tables/<id>.csv` is made of it.
    pub id: String,
    /// Head line.
    pub title: String,
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Short name; `figures/<id>.svg` is made of it.
    pub id: String,
    /// Head line.
    pub title: String,
}

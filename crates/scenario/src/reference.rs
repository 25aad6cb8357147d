//! Reference data of a spec: files with published results, or results of other programs. Only the
//! comparison of results reads these files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// Files with results for comparison, relative to the spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ReferenceFiles {
    /// CSV file of published values, with which tables are compared. Columns: `where`, `series`,
    /// `x_name`, `x`, `metric`, `value`, `unit`, `printed`, `tolerance`, `same_as`, `not_compared`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// CSV files of the mean results of other programs, each with a name (`ns2 = "ns2.csv"`), to
    /// which tables refer by `baseline.NAME`. Columns: `where`, `condition`, `metric`, `mean`,
    /// `ci95`, `replications`, `unit`.
    #[serde(flatten)]
    pub baselines: BTreeMap<String, String>,
}

/// Key of the file with published values.
pub const PUBLISHED: &str = "published";

/// Implemented by hand, because the derived implementation would lose the position of an invalid
/// value.
impl<'de> Deserialize<'de> for ReferenceFiles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut baselines = BTreeMap::<String, String>::deserialize(deserializer)?;
        let published = baselines.remove(PUBLISHED);
        Ok(Self {
            published,
            baselines,
        })
    }
}

impl ReferenceFiles {
    /// All keys with their files.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        let published = self.published.iter().map(|file| (PUBLISHED, file.as_str()));
        let baselines = self.baselines.iter();
        published.chain(baselines.map(|(name, file)| (name.as_str(), file.as_str())))
    }
}

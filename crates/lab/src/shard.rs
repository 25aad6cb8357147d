//! Shards of a plan for several machines. Each machine executes one shard. Afterwards the
//! directories of the shards are merged.
//!
//! Shard `i` of `n` has every n-th run of the plan, starting with the i-th, so that slow points are
//! distributed evenly. The directory of a shard contains its runs, as every results directory does,
//! and a file `shard.json` that identifies the plan.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anabranch_engine::plan::{Plan, PlannedRun};
use anabranch_engine::runner::Runner;
use anabranch_scenario::records::Manifest;
use serde::{Deserialize, Serialize};

use crate::atomic_write::Durability;
use crate::plain;
use crate::store::{self, Store, StoreError};

/// File in a directory that identifies the shard.
pub const FILE: &str = "shard.json";

/// Number of a shard, and number of shards of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ShardSpec {
    index: u32,
    count: u32,
}

impl ShardSpec {
    /// Maximum number of shards of a plan.
    pub const MAX: u32 = 10_000;

    /// Whether the run with this index in the plan belongs to the shard.
    pub fn has(self, place: usize) -> bool {
        place as u64 % u64::from(self.count) == u64::from(self.index - 1)
    }
}

impl fmt::Display for ShardSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for ShardSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let parts = parts.and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((index, count)) if index >= 1 && index <= count && count <= Self::MAX => {
                Ok(Self { index, count })
            }
            _ => Err(format!(
                "found {text:?}; write i/n, shard i of n: 1/4 to 4/4, with n at most {}",
                Self::MAX
            )),
        }
    }
}

/// Contents of `shard.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardContents {
    /// Number of the shard.
    pub share: ShardSpec,
    /// Fingerprint of the code that executes the runs.
    pub code: String,
    /// Description of the plan, in which `runs` and `packet_hops` are 0.
    pub plan: Manifest,
    /// Experiments that run on real sockets.
    #[serde(default)]
    pub live: Vec<String>,
}

/// Error of merging shards, or of starting one in a directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// The directory contains another shard.
    #[error("{directory} holds shard {found}; shard {wanted} needs a directory of its own", directory = directory.display())]
    Another {
        /// The directory.
        directory: PathBuf,
        /// Shard in the directory.
        found: ShardSpec,
        /// Expected shard.
        wanted: ShardSpec,
    },
    /// The directory does not contain a shard.
    #[error("{directory} is not a shard: it has no {FILE}; `run --shard i/n --out DIR` makes one", directory = directory.display())]
    NoShard {
        /// The directory.
        directory: PathBuf,
    },
    /// Two shards belong to different plans.
    #[error("{first} and {second} are shards of different plans: {what}", first = first.display(), second = second.display())]
    Differ {
        /// First directory.
        first: PathBuf,
        /// Second directory.
        second: PathBuf,
        /// Description of the difference.
        what: String,
    },
    /// The shard was executed by other code than that of this program.
    #[error("{directory} was made by other code ({found}) than this program's ({own}); merge with the version that made it", directory = directory.display(), own = store::CODE)]
    Code {
        /// The directory.
        directory: PathBuf,
        /// Fingerprint of the code of the shard.
        found: String,
    },
    /// Two directories contain the same shard.
    #[error("{first} and {second} both hold shard {share}", first = first.display(), second = second.display())]
    Twice {
        /// First directory.
        first: PathBuf,
        /// Second directory.
        second: PathBuf,
        /// The shard.
        share: ShardSpec,
    },
    /// Some shards are missing.
    #[error("missing: shard {shares}")]
    Missing {
        /// Numbers of the missing shards.
        shares: String,
    },
    /// A shard is not complete.
    #[error("{directory}: shard {share} lacks {lacks} of its {runs} runs; repeat the command that made it to continue", directory = directory.display())]
    Unfinished {
        /// The directory.
        directory: PathBuf,
        /// The shard.
        share: ShardSpec,
        /// Number of missing runs.
        lacks: usize,
        /// Number of runs in the shard.
        runs: usize,
    },
    /// A directory cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ShardContents {
    /// The description of a shard of a plan.
    pub fn of(plan: &Plan, share: ShardSpec, live: &[String]) -> Self {
        Self {
            share,
            code: store::CODE.to_owned(),
            plan: store::manifest(plan, &[]),
            live: live.to_vec(),
        }
    }

    /// Reads the description of the shard in a directory; `None` if it has no [`FILE`].
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn read(directory: &Path) -> Result<Option<Self>, ShardError> {
        let path = directory.join(FILE);
        let text = match plain::text(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StoreError::Read { path, source }.into()),
        };
        let read = serde_json::from_str::<Self>(&text).map_err(|error| error.to_string());
        let shard = read.and_then(|shard| {
            shard.share.to_string().parse::<ShardSpec>()?;
            Ok(shard)
        });
        let shard = shard.map_err(|reason| StoreError::Damaged { path, reason })?;
        Ok(Some(shard))
    }

    /// Writes the description into a results directory.
    ///
    /// # Errors
    /// The directory contains another shard, or cannot be written.
    pub fn begin(&self, store: &Store) -> Result<(), ShardError> {
        let directory = store.directory().to_owned();
        match Self::read(&directory)? {
            Some(found) if found.share != self.share => Err(ShardError::Another {
                directory,
                found: found.share,
                wanted: self.share,
            }),
            _ => Ok(store::write_json(
                &directory.join(FILE),
                Durability::Synced,
                self,
            )?),
        }
    }

    /// A difference between two shards that prevents merging; `None` if they belong to the same
    /// plan.
    fn difference(&self, other: &Self) -> Option<String> {
        let (a, b) = (&self.plan, &other.plan);
        let text = |what: &str, a: &dyn fmt::Debug, b: &dyn fmt::Debug| {
            let (a, b) = (format!("{a:?}"), format!("{b:?}"));
            (a != b).then(|| format!("{what} {a} and {b}"))
        };
        None.or_else(|| text("spec", &a.name, &b.name))
            .or_else(|| text("seed", &a.seed, &b.seed))
            .or_else(|| text("--set", &a.overrides, &b.overrides))
            .or_else(|| text("--only", &a.only, &b.only))
            .or_else(|| text("replications", &a.replications, &b.replications))
            .or_else(|| text("number of shards", &self.share.count, &other.share.count))
            .or_else(|| text("--record-all", &a.record_all, &b.record_all))
            .or_else(|| text("--live", &self.live, &other.live))
            .or_else(|| text("code", &self.code, &other.code))
            .or_else(|| (a.files != b.files).then(|| "the files that they name differ".to_owned()))
            .or_else(|| (a.spec != b.spec).then(|| "the texts of their specs differ".to_owned()))
    }
}

/// A complete set of shards of one plan.
#[derive(Clone, Debug)]
pub struct CompleteShards {
    /// Common description of the shards.
    pub shard: ShardContents,
    /// The plan.
    pub plan: Plan,
    directories: BTreeMap<ShardSpec, PathBuf>,
}

impl CompleteShards {
    /// Reads the shards in these directories.
    ///
    /// # Errors
    /// Shards belong to different plans or were executed by other code; or a shard is duplicated or
    /// missing.
    pub fn read(directories: &[PathBuf]) -> Result<Self, ShardError> {
        let mut first: Option<(&PathBuf, ShardContents)> = None;
        let mut found: BTreeMap<ShardSpec, PathBuf> = BTreeMap::new();
        for directory in directories {
            let shard = ShardContents::read(directory)?.ok_or_else(|| ShardError::NoShard {
                directory: directory.clone(),
            })?;
            let share = shard.share;
            if let Some((known, first)) = &first
                && let Some(what) = first.difference(&shard)
            {
                return Err(ShardError::Differ {
                    first: (*known).clone(),
                    second: directory.clone(),
                    what,
                });
            }
            if shard.code != store::CODE {
                return Err(ShardError::Code {
                    directory: directory.clone(),
                    found: shard.code,
                });
            }
            if let Some(known) = found.insert(share, directory.clone()) {
                return Err(ShardError::Twice {
                    first: known,
                    second: directory.clone(),
                    share,
                });
            }
            first.get_or_insert((directory, shard));
        }
        let Some((_, shard)) = first else {
            let shares = "1 of 1".to_owned();
            return Err(ShardError::Missing { shares });
        };
        let count = shard.share.count;
        let all = (1..=count).map(|index| ShardSpec { index, count });
        let missing: Vec<ShardSpec> = all.filter(|share| !found.contains_key(share)).collect();
        if !missing.is_empty() {
            let shares = listed(&missing);
            return Err(ShardError::Missing { shares });
        }
        let plan = store::plan_of(&shard.plan)?;
        Ok(Self {
            shard,
            plan,
            directories: found,
        })
    }

    /// Directories in the order of their shards.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.directories.values().map(PathBuf::as_path)
    }

    /// Copies the runs of all shards to a results directory. `runner` is the runner that has
    /// executed them.
    ///
    /// # Errors
    /// A shard lacks a run, or a file cannot be copied. Nothing is copied until all runs were
    /// found.
    pub fn copy(&self, into: &Store, runner: &impl Runner) -> Result<(), ShardError> {
        let units = PlannedRun::all(&self.plan);
        let mut stores = Vec::new();
        for (share, directory) in &self.directories {
            let store = Store::create(directory)?;
            let places = units.iter().enumerate();
            let own: Vec<&PlannedRun<'_>> = places
                .filter(|(place, _)| share.has(*place))
                .map(|(_, unit)| unit)
                .collect();
            let finished = |unit: &&&PlannedRun<'_>| store.finished(unit, runner).is_some();
            let lacks = own.len() - own.iter().filter(finished).count();
            if lacks > 0 {
                return Err(ShardError::Unfinished {
                    directory: directory.clone(),
                    share: *share,
                    lacks,
                    runs: own.len(),
                });
            }
            stores.push((store, own));
        }
        for (store, own) in stores {
            for unit in own {
                into.take(&store, unit, runner)?;
            }
        }
        Ok(())
    }
}

/// List of shards for a message: all, or only the first if there are many.
fn listed(shares: &[ShardSpec]) -> String {
    const MAX_LISTED: usize = 8;
    let names: Vec<String> = shares
        .iter()
        .take(MAX_LISTED)
        .map(ShardSpec::to_string)
        .collect();
    match shares.len().saturating_sub(MAX_LISTED) {
        0 => names.join(", "),
        more => format!("{}, and {more} more", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_shares_are_not_all_named() {
        let of = |count| {
            (1..=count)
                .map(|index| ShardSpec { index, count })
                .collect::<Vec<_>>()
        };
        let eight = "1/8, 2/8, 3/8, 4/8, 5/8, 6/8, 7/8, 8/8";
        assert_eq!(listed(&of(8)), eight);
        assert_eq!(
            listed(&of(1000)),
            format!("{}, and 992 more", eight.replace("/8", "/1000"))
        );
    }

    #[test]
    fn each_run_belongs_to_one_share() {
        for count in 1..7 {
            let shares: Vec<ShardSpec> = (1..=count)
                .map(|index| ShardSpec { index, count })
                .collect();
            for place in 0..50 {
                let having = shares.iter().filter(|share| share.has(place)).count();
                assert_eq!(having, 1, "{place} of {count}");
            }
        }
    }

    #[test]
    fn shares_are_written_as_i_of_n() {
        assert_eq!(
            "2/3".parse::<ShardSpec>().map(|share| share.to_string()),
            Ok("2/3".to_owned())
        );
        for wrong in [
            "", "2", "0/3", "4/3", "1/0", "-1/2", "1/2/3", "1/10001", "a/b",
        ] {
            assert!(wrong.parse::<ShardSpec>().is_err(), "{wrong}");
        }
    }
}

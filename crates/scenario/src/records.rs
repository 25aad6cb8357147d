//! Results of runs: scalar measures, series of samples, and a manifest.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::spec::Spec;
use crate::value::Point;

/// A scalar result of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Subject of the measure: a flow group (`sctp`), one flow of it (`sctp[1]`), a link
    /// (`satellite`), a comparison (`sctp over tcp`), or `all`.
    pub series: String,
    /// Name of the metric, as in `published.csv`: `throughput_increase`, `link_utilization`, ...
    pub metric: String,
    /// Value in `unit`. It is never NaN, because a measure that cannot be computed is omitted.
    pub value: f64,
    /// Unit of the value: `%`, `1`, `segments`, `bytes`, `bit/s`, `s`, ...
    pub unit: String,
}

/// All scalar results of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Id of the experiment.
    pub experiment: String,
    /// x values of the point.
    pub point: Point,
    /// Number of the replication, from 0. Runs with the same number share the random streams of
    /// components with the same name, so their differences can be paired.
    pub replication: u32,
    /// Measures, in the order of the flows, links and `measure` entries of the spec.
    pub metrics: Vec<Measure>,
    /// Number of events that the simulator processed.
    pub events: u64,
    /// Number of packets that reached the far end of a link; a packet counts once per link.
    pub packet_hops: u64,
    /// Simulated time, seconds.
    pub simulated: f64,
    /// Flows that failed: the transport ended early, there was no route, or no data was delivered.
    /// Each entry has the name and the reason: `sctp[1]: the peer cannot be reached any more`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

impl RunRecord {
    /// Value of a metric for a series, if the record contains it.
    pub fn value(&self, series: &str, metric: &str) -> Option<f64> {
        self.metrics
            .iter()
            .find(|measure| measure.series == series && measure.metric == metric)
            .map(|measure| measure.value)
    }
}

/// One recorded sample of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesSample {
    /// Index of the path or stream; 0 if there is only one.
    pub index: u16,
    /// Time since the start of the run, seconds.
    pub time: f64,
    /// Value in the unit of the probe (see [`anabranch_transport::Probe`]; link probes:
    /// `throughput` in bit/s, `queue` in packets, `drop` as a count).
    pub value: f64,
}

/// Samples of one probe of one flow or link in one run, in the order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesRecord {
    /// Id of the experiment.
    pub experiment: String,
    /// x values of the point.
    pub point: Point,
    /// Number of the replication, from 0.
    pub replication: u32,
    /// Name of the flow group or link in the spec.
    pub entity: String,
    /// Number of the member in the group, from 0.
    pub member: u32,
    /// Name of the probe.
    pub probe: String,
    /// Samples in the order of time.
    pub samples: Vec<SeriesSample>,
}

/// Query for recorded series; `None` matches any value.
#[derive(Clone, Copy, Debug, Default)]
pub struct SeriesQuery<'a> {
    /// Id of the experiment.
    pub experiment: &'a str,
    /// Name of the flow group or link.
    pub entity: Option<&'a str>,
    /// Number of the member in the group.
    pub member: Option<u32>,
    /// Name of the probe.
    pub probe: Option<&'a str>,
    /// Number of the replication.
    pub replication: Option<u32>,
}

impl SeriesQuery<'_> {
    /// Whether the query matches a series with these keys.
    pub fn matches(
        &self,
        experiment: &str,
        entity: &str,
        member: u32,
        probe: &str,
        replication: u32,
    ) -> bool {
        self.experiment == experiment
            && self.entity.is_none_or(|wanted| wanted == entity)
            && self.member.is_none_or(|wanted| wanted == member)
            && self.probe.is_none_or(|wanted| wanted == probe)
            && self.replication.is_none_or(|wanted| wanted == replication)
    }
}

/// Error of reading or writing series.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {source}")]
pub struct SeriesError {
    /// Location of the error, such as the path of a file.
    pub place: String,
    /// Cause of the error.
    pub source: Box<dyn Error + Send + Sync>,
}

/// Store of recorded series: files, memory, or another store that a program provides.
pub trait SeriesSource: fmt::Debug + Send + Sync {
    /// Returns the series that match a query, ordered by (point, replication, entity, member,
    /// probe) as recorded. The result is empty for an experiment without recordings.
    ///
    /// # Errors
    /// [`SeriesError`] if the store cannot be read.
    fn read(&self, query: &SeriesQuery<'_>) -> Result<Vec<SeriesRecord>, SeriesError>;
}

/// A store of series in memory.
impl SeriesSource for Vec<SeriesRecord> {
    fn read(&self, query: &SeriesQuery<'_>) -> Result<Vec<SeriesRecord>, SeriesError> {
        let wanted = |s: &&SeriesRecord| {
            query.matches(&s.experiment, &s.entity, s.member, &s.probe, s.replication)
        };
        Ok(self.iter().filter(wanted).cloned().collect())
    }
}

/// Key of a series within a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesKey {
    /// Name of the flow group or link.
    pub entity: String,
    /// Number of the member in the group, from 0.
    pub member: u32,
    /// Name of the probe.
    pub probe: &'static str,
}

/// Manifest: description of finished runs. It contains no data of the machine, such as the time of
/// day or paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the program that ran the spec.
    pub version: String,
    /// Commit from which the program was built, if known.
    pub commit: Option<String>,
    /// Name of the spec.
    pub name: String,
    /// Text of the spec (TOML) as it was read, before `--set`.
    pub spec: String,
    /// Overrides as `key=value`, in order.
    pub overrides: Vec<String>,
    /// Ids of the selected experiments, tables or figures; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// Contents of the files to which the spec refers, such as traces, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// SHA-256 of the resolved spec, as hex digits.
    pub spec_hash: String,
    /// Seed of all runs.
    pub seed: u64,
    /// Whether samples of all replications were stored, regardless of the records in the spec.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub record_all: bool,
    /// Kinds that a program added to those of this project, such as a congestion control written in
    /// Python.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Ids of the experiments that ran on real sockets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live: Vec<String>,
    /// Number of replications of each experiment that was run: `(id, replications)`.
    pub replications: Vec<(String, u32)>,
    /// Number of runs.
    pub runs: u64,
    /// Number of packets that reached the far end of a link, over all runs; a packet counts once
    /// per link.
    pub packet_hops: u64,
}

/// Results of a spec, from which tables and figures are generated.
#[derive(Clone, Debug)]
pub struct Results {
    /// Description of the runs.
    pub manifest: Manifest,
    /// Spec, decoded with its default parameters; `spec.tables` and `spec.figures` list the
    /// outputs.
    pub spec: Spec,
    /// Records of all runs, ordered by (experiment, point, replication) as in the spec.
    pub records: Vec<RunRecord>,
    /// Recorded series.
    pub series: Arc<dyn SeriesSource>,
}

/// Failures of several flows or runs with the same cause.
struct Failure<'a> {
    experiment: &'a str,
    /// Name of the flow.
    group: &'a str,
    /// Text of the failure after the name.
    why: &'a str,
    members: BTreeSet<u32>,
    runs: usize,
    /// Whether the text differs between runs or members, in times or counts.
    differs: bool,
}

impl Failure<'_> {
    fn text(&self) -> String {
        let (group, why) = (self.group, self.why);
        let rest = if self.differs {
            ", the others with other numbers,"
        } else {
            ""
        };
        match (self.members.first(), self.members.last()) {
            (Some(first), Some(last)) if first < last => {
                let count = self.members.len();
                format!("{group}[{first}] to {group}[{last}] ({count} members){why}{rest}")
            }
            (Some(only), _) => format!("{group}[{only}]{why}{rest}"),
            (None, _) => format!("{group}{why}{rest}"),
        }
    }
}

/// Whether two texts differ only in numbers.
fn is_alike(one: &str, other: &str) -> bool {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let words = |text: &str| {
        let words = text.split(is_number).filter(|it| !it.is_empty());
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    words(one) == words(other)
}

/// Splits a failure such as `sctp[1]: the peer is gone` into the flow, the member if there is one,
/// and the other text.
fn member_of(failure: &str) -> (&str, Option<u32>, &str) {
    let (name, why) = failure.split_at(failure.find(':').unwrap_or(failure.len()));
    let member = name.strip_suffix(']').and_then(|it| it.rsplit_once('['));
    match member.and_then(|(group, number)| Some((group, number.parse().ok()?))) {
        Some((group, number)) => (group, Some(number), why),
        None => (name, None, why),
    }
}

impl Results {
    /// Failures of all runs, one line for each cause, with the number of affected runs of the
    /// experiment. Members of a group with the same failure are combined in one line.
    pub fn failures(&self) -> Vec<String> {
        let mut all: Vec<Failure<'_>> = Vec::new();
        for record in &self.records {
            let mut counted: Vec<usize> = Vec::new();
            for failure in &record.failures {
                let (group, member, why) = member_of(failure);
                let is_same = |it: &Failure<'_>| {
                    (it.experiment, it.group) == (&*record.experiment, group)
                        && (it.why == why || is_alike(it.why, why))
                };
                let at = all.iter().position(is_same).unwrap_or_else(|| {
                    all.push(Failure {
                        experiment: &record.experiment,
                        group,
                        why,
                        members: BTreeSet::new(),
                        runs: 0,
                        differs: false,
                    });
                    all.len() - 1
                });
                all[at].differs |= all[at].why != why;
                all[at].members.extend(member);
                if !counted.contains(&at) {
                    counted.push(at);
                    all[at].runs += 1;
                }
            }
        }
        let line = |it: &Failure<'_>| {
            let runs = self.experiment(it.experiment).count();
            format!(
                "{} in {} of {runs} runs of {}",
                it.text(),
                it.runs,
                it.experiment
            )
        };
        all.iter().map(line).collect()
    }

    /// Notes about results that are correct but possibly not intended: experiments whose
    /// replications are all identical. Two replications alone may be identical by chance, if losses
    /// are rare.
    pub fn notes(&self) -> Vec<String> {
        let repeated = self.manifest.replications.iter().filter(|(id, count)| {
            let records: Vec<&RunRecord> = self.experiment(id).collect();
            let mut points = records.chunk_by(|one, other| one.point == other.point);
            // Runs on real sockets count no events, so they are not compared.
            let is_same = |one: &&RunRecord, other: &&RunRecord| {
                let counts = |it: &RunRecord| (it.events, it.packet_hops);
                one.events > 0 && counts(one) == counts(other) && one.metrics == other.metrics
            };
            *count > 2
                && !records.is_empty()
                && points.all(|runs| runs.windows(2).all(|it| is_same(&it[0], &it[1])))
        });
        let note = |(id, count): &(String, u32)| {
            format!(
                "all {count} replications of {id} are equal: nothing random in the spec had an effect, and their intervals say nothing"
            )
        };
        repeated.map(note).collect()
    }

    /// Records of one experiment, in order.
    pub fn experiment<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a RunRecord> + 'a {
        self.records
            .iter()
            .filter(move |record| record.experiment == id)
    }

    /// Reads the series that match a query, ordered by (point, replication, entity, member, probe)
    /// as recorded.
    ///
    /// # Errors
    /// [`SeriesError`] if a file cannot be read or is not a series file.
    pub fn series(&self, query: &SeriesQuery<'_>) -> Result<Vec<SeriesRecord>, SeriesError> {
        self.series.read(query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;

    #[derive(Debug)]
    struct Nothing;

    impl SeriesSource for Nothing {
        fn read(&self, _: &SeriesQuery<'_>) -> Result<Vec<SeriesRecord>, SeriesError> {
            Ok(Vec::new())
        }
    }

    /// A group of forty flows with the same failure should cause one line and not forty.
    #[test]
    fn members_that_fail_alike_share_a_line() {
        let record = |replication: u32, failures: Vec<String>| RunRecord {
            experiment: "e".to_owned(),
            point: Point::new(),
            replication,
            metrics: Vec::new(),
            events: 1,
            packet_hops: 0,
            simulated: 1.0,
            failures,
        };
        let of = |member: u32| format!("f[{member}]: it delivered nothing");
        let late = |member: u32| format!("g[{member}]: no way at its start, 0.{member} s");
        let first = (2..40).map(of).chain((0..3).map(late)).collect();
        let spec =
            "anabranch = 1\nname = \"x\"\nnode = []\nflow = []\nworld = { duration = \"1 s\" }";
        let root = crate::tree::SpecNode::parse(spec).unwrap();
        let results = Results {
            manifest: serde_json::from_str(
                r#"{"version":"","commit":null,"name":"x","spec":"","overrides":[],"spec_hash":"","seed":1,"replications":[],"runs":2,"packet_hops":0}"#,
            )
            .unwrap(),
            spec: crate::decode::decode::<Spec>(&root, "").unwrap(),
            records: vec![
                record(0, first),
                record(1, vec![of(2), "wire: it is down".to_owned()]),
            ],
            series: Arc::new(Nothing),
        };
        assert_eq!(
            results.failures(),
            [
                "f[2] to f[39] (38 members): it delivered nothing in 2 of 2 runs of e",
                "g[0] to g[2] (3 members): no way at its start, 0.0 s, the others with other numbers, in 1 of 2 runs of e",
                "wire: it is down in 1 of 2 runs of e",
            ]
        );
    }
}

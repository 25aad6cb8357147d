//! `--capture` and `--trace`: records an endpoint's packets and samples.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_engine::live::Observed;
use anabranch_net::sctp::AssociationId;
use anabranch_net::{Direction, ObservedPacket, Observer};
use anabranch_scenario::Transport;
use anabranch_sim::{CapturedPacket, PacketFile, Way};
use anabranch_transport::{Nanos, Probe, ProbeSet, Sample};

use super::arguments::NetOptions;
use super::sample_writer::{Numbered, SampleWriter};
use super::trace;
use crate::failure::Failure;
use crate::stderr::note;

/// Maximum number of stored samples of an association, with 24 bytes each. A longer trace is
/// truncated, with a note. Of all other associations together, at most this many samples are
/// written to `samples.csv`.
const MAX_SAMPLES: usize = 20_000_000;

/// Key of an association: the number of its endpoint, and its identifier.
type Key = (usize, AssociationId);

/// State of a recording.
#[derive(Default)]
struct RecorderState {
    capture: Option<PacketFile<BufWriter<File>>>,
    /// Number of each association, in the order of their starts.
    numbers: BTreeMap<Key, u32>,
    /// The first association, which the results directory describes. Of later associations only
    /// samples are written, because there may be many.
    first: Option<(Key, Observed)>,
    /// Associations over which this end sends data although its service receives, so that their
    /// incoming messages are only control messages.
    senders: BTreeSet<Key>,
    /// Number of samples of associations other than the first.
    others: usize,
    /// Samples that the sample writer has not written yet.
    unwritten: Vec<Numbered>,
}

impl RecorderState {
    /// Records a sample of an association.
    fn take(&mut self, key: Key, sample: Sample) {
        let first = self.first.as_ref().map(|(first, _)| *first);
        if first.is_none_or(|first| key < first) {
            let start = sample.at;
            let observed = Observed {
                start,
                ..Observed::default()
            };
            self.first = Some((key, observed));
        }
        match &mut self.first {
            Some((first, observed)) if *first == key => {
                if observed.samples.len() == MAX_SAMPLES {
                    return;
                }
                if sample.probe == Probe::Delivered {
                    observed.deliveries.push((sample.at, sample.value as u64));
                }
                observed.samples.push(sample);
            }
            _ if self.others == MAX_SAMPLES => return,
            _ => self.others += 1,
        }
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        self.unwritten.push((number, sample));
    }
}

/// Handle that records that this end sends data over an association, although its service receives.
pub struct SendMarker {
    kept: Arc<Mutex<RecorderState>>,
    key: Key,
}

impl SendMarker {
    /// Records that this end sends data over the association.
    pub fn tell(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Associations that are not recorded are ignored.
        if kept.numbers.contains_key(&self.key) {
            kept.senders.insert(self.key);
        }
    }
}

/// Observer of one endpoint, which records its packets and samples.
pub struct RecordingObserver {
    kept: Arc<Mutex<RecorderState>>,
    endpoint: usize,
    /// Time at which the endpoint was bound, nanoseconds since 1970.
    epoch: Nanos,
    probes: ProbeSet,
    sent: u16,
}

/// The recording, for the command that writes the results at the end.
pub struct Recording {
    kept: Arc<Mutex<RecorderState>>,
    capture: Option<PathBuf>,
    trace: Option<(PathBuf, SampleWriter)>,
}

impl RecordingObserver {
    /// Opens the outputs that `wire` requests. `None` instead of an observer if none is requested.
    pub fn new(wire: &NetOptions) -> Result<(Option<Self>, Recording), Failure> {
        let mut kept = RecorderState::default();
        if let Some(path) = &wire.capture {
            let cannot = |error| {
                Failure::Usage(format!(
                    "cannot write the capture {}: {error}",
                    path.display()
                ))
            };
            let file = File::create(path).map_err(cannot)?;
            kept.capture = Some(PacketFile::new(BufWriter::new(file), ["sctp"]).map_err(cannot)?);
        }
        let kept = Arc::new(Mutex::new(kept));
        let trace = match &wire.trace {
            Some(path) => Some((path.clone(), start_sample_writer(path, &kept)?)),
            None => None,
        };
        let watched = Recording {
            kept: Arc::clone(&kept),
            capture: wire.capture.clone(),
            trace,
        };
        let wanted = wire.capture.is_some() || wire.trace.is_some();
        let watch = wanted.then(|| RecordingObserver {
            kept,
            endpoint: 0,
            epoch: epoch(),
            probes: if wire.trace.is_some() {
                ProbeSet::ALL
            } else {
                ProbeSet::NONE
            },
            sent: 0,
        });
        Ok((watch, watched))
    }

    /// An observer of the same recording for another endpoint on the same sockets.
    pub fn of_endpoint(&self, endpoint: usize) -> Self {
        Self {
            kept: Arc::clone(&self.kept),
            endpoint,
            ..*self
        }
    }

    fn lock(&self) -> MutexGuard<'_, RecorderState> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a capture of real packets has real times"
)]
fn epoch() -> Nanos {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as Nanos)
}

impl Observer for RecordingObserver {
    fn packet(&mut self, seen: &ObservedPacket<'_>) {
        self.sent = self.sent.wrapping_add(1);
        let (id, at) = (self.sent, self.epoch + seen.at.as_nanos() as Nanos);
        let (way, source, destination) = match seen.direction {
            Direction::Out => (Way::Out, seen.local, seen.remote),
            Direction::In => (Way::In, seen.remote, seen.local),
        };
        if let Some(file) = &mut self.lock().capture {
            file.write(&CapturedPacket {
                at,
                interface: 0,
                way,
                source,
                destination,
                protocol: anabranch_sim::ip::SCTP,
                id,
                ecn: seen.ecn,
                hops_left: 64,
                payload: seen.packet,
            });
        }
    }

    fn probes(&self) -> ProbeSet {
        self.probes
    }

    fn sample(&mut self, association: AssociationId, sample: Sample) {
        self.lock().take((self.endpoint, association), sample);
    }
}

/// Starts to write the samples to `samples.csv` in the directory of a trace.
fn start_sample_writer(
    directory: &Path,
    kept: &Arc<Mutex<RecorderState>>,
) -> Result<SampleWriter, Failure> {
    trace::check(directory)?;
    let kept = Arc::clone(kept);
    let take = move || {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut kept.unwritten)
    };
    SampleWriter::begin(directory, take).map_err(|error| {
        let directory = directory.display();
        Failure::Usage(format!(
            "cannot write the trace {directory}/samples.csv: {error}"
        ))
    })
}

impl Recording {
    /// Creates the [`SendMarker`] of an association.
    pub fn sends(&self, endpoint: usize, association: AssociationId) -> SendMarker {
        SendMarker {
            kept: Arc::clone(&self.kept),
            key: (endpoint, association),
        }
    }

    /// Ends the recording, and writes the results directory of the first association. `receives`:
    /// its service receives data, unless its [`SendMarker`] recorded otherwise. `failed`: why the
    /// association did not end gracefully, if so.
    pub fn finish(
        self,
        transport: &Transport,
        receives: bool,
        failed: Option<String>,
    ) -> Result<(), Failure> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(mut file), Some(path)) = (kept.capture.take(), &self.capture) {
            file.finish().map_err(|error| {
                Failure::Net(format!(
                    "cannot write the capture {}: {error}",
                    path.display()
                ))
            })?;
        }
        let Some((directory, mut sample_writer)) = self.trace else {
            return Ok(());
        };
        let Some((key, mut observed)) = kept.first.take() else {
            return Err(Failure::Net(format!(
                "no association was established, so {} has no series",
                directory.display()
            )));
        };
        let sends = kept.senders.contains(&key);
        drop(kept);
        let full = observed.samples.len() == MAX_SAMPLES;
        observed.failed = failed;
        if sends || !receives {
            observed.deliveries.clear();
        }
        if full {
            note(format_args!("the trace ends after {MAX_SAMPLES} samples"));
        }
        let written = sample_writer.end();
        trace::write(&directory, transport, observed)?;
        written
            .and_then(|()| sample_writer.remove())
            .map_err(|error| {
                let directory = directory.display();
                Failure::Net(format!(
                    "cannot write the trace {directory}/samples.csv: {error}"
                ))
            })
    }
}

#[cfg(test)]
mod tests {
    use anabranch_net::sctp::{Config, Endpoint};

    use super::*;

    /// Creates identifiers of associations, in order.
    fn ids(count: u8) -> Vec<AssociationId> {
        let endpoint = Endpoint::new(Config::default(), 5001, [1; 32]);
        let mut endpoint = endpoint.expect("an endpoint");
        let peer = |last| [[192, 0, 2, last].into()];
        let connect = |last| endpoint.connect(0, &peer(last), 5001);
        (1..=count)
            .map(connect)
            .map(|id| id.expect("an association"))
            .collect()
    }

    #[test]
    fn only_of_the_first_association_more_is_kept_than_is_written() {
        let ids = ids(9);
        let mut kept = RecorderState::default();
        let sample = |at| Sample {
            at,
            probe: Probe::Delivered,
            index: 0,
            value: 7.0,
        };
        // An association of the second endpoint starts first.
        let order = [(1, 0), (0, 1), (0, 0), (0, 8), (1, 3), (0, 0)];
        for (at, (endpoint, id)) in (0..).zip(order) {
            kept.take((endpoint, ids[id]), sample(at));
        }
        for at in 100..1_000 {
            kept.take((0, ids[2 + at as usize % 7]), sample(at));
            let (key, observed) = kept.first.as_ref().expect("a first");
            assert_eq!(*key, (0, ids[0]));
            let times: Vec<Nanos> = observed.samples.iter().map(|it| it.at).collect();
            assert_eq!((observed.start, times), (2, vec![2, 5]));
            assert_eq!(observed.deliveries, [(2, 7), (5, 7)]);
        }
        let written: Vec<u32> = kept.unwritten.iter().map(|(number, _)| *number).collect();
        assert_eq!(written[..7], [0, 1, 2, 3, 4, 2, 5]);
        assert_eq!(written.len(), 906);
    }
}

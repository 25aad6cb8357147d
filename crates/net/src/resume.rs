//! Careful Resume (RFC 9959) on real sockets: congestion control parameters that an association
//! saved for a path, and that a later association starts from.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anabranch_congestion::CarefulResume;
pub use anabranch_congestion::careful_resume::Phase as ResumePhase;
use anabranch_congestion::careful_resume::{SavedParameters, SavedPaths};
use anabranch_sctp::{Association, AssociationId, Endpoint};
use anabranch_transport::time::SECOND;
use anabranch_transport::{Nanos, Path};
use thiserror::Error;

use crate::clock::unix_time;
use crate::time::nanos;

/// Interval at which the parameters of open associations are saved.
const OBSERVE_EVERY: Nanos = SECOND;

/// Saved congestion control parameters by path, for [Careful Resume] (RFC 9959). An association
/// that starts on a path jumps to half of the window that an earlier association measured there, if
/// the round-trip time is still about the same. Clones share the same cache, which the
/// [configurations](crate::Config::resume_cache) of several endpoints may share.
///
/// Each path of a multihomed association has its own set of parameters, which applies when data is
/// first sent on that path: at the start, or after a failover. One association at a time uses a
/// set. A set is updated while an association is open and when it ends. It is deleted after its
/// lifetime, or when an association finds that the path has changed.
///
/// A program can store the sets and load them at its next start:
///
/// ```
/// use anabranch_net::{Config, ResumeCache, SavedPath};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let stored = "";
/// let cache = ResumeCache::default();
/// for line in stored.lines() {
///     cache.insert(line.parse::<SavedPath>()?);
/// }
/// let config = Config::default().with(|it| it.resume_cache = Some(cache.clone()));
/// // An endpoint with this configuration, and its associations.
/// let paths = cache.saved_paths();
/// let stored: String = paths.iter().map(|path| format!("{path}\n")).collect();
/// # Ok(())
/// # }
/// ```
///
/// [Careful Resume]: https://www.rfc-editor.org/rfc/rfc9959
#[derive(Clone)]
pub struct ResumeCache(Arc<Cache>);

struct Cache {
    /// Saved sets by path; expiry times are nanoseconds since 1970.
    saved: Mutex<SavedPaths<Path>>,
    lifetime: Duration,
}

impl ResumeCache {
    /// Creates an empty cache for at most `max_paths` paths, at least one. A set of parameters
    /// expires `lifetime` after it was measured.
    pub fn new(lifetime: Duration, max_paths: usize) -> Self {
        let saved = Mutex::new(SavedPaths::new(max_paths));
        Self(Arc::new(Cache { saved, lifetime }))
    }

    /// The sets that have not expired, sorted by path, for storage.
    pub fn saved_paths(&self) -> Vec<SavedPath> {
        let now = unix_time();
        let saved = self.lock();
        let current = saved.iter().filter(|(_, it)| it.expires > now);
        current.map(|(path, it)| SavedPath::of(path, it)).collect()
    }

    /// Adds a set that was stored earlier, and replaces that of the same path. The set expires
    /// after the lifetime of this cache at the latest. Returns false if it has expired already.
    pub fn insert(&self, path: SavedPath) -> bool {
        let now = unix_time();
        let until = path.expires.duration_since(UNIX_EPOCH);
        let expires = until.map_or(0, nanos).min(self.expiry(now));
        if expires <= now {
            return false;
        }
        let parameters = SavedParameters {
            cwnd: path.cwnd,
            rtt: nanos(path.rtt),
            expires,
        };
        let key = Path::new(path.local, path.remote);
        self.lock().save(key, parameters);
        true
    }

    /// Deletes all sets. Should be called after this host was attached to another network.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, SavedPaths<Path>> {
        self.0.saved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Expiry time of a set that is measured at `now`.
    fn expiry(&self, now: Nanos) -> Nanos {
        now.saturating_add(nanos(self.0.lifetime))
    }
}

impl Default for ResumeCache {
    /// A cache with a lifetime of one hour, for 4,096 paths.
    fn default() -> Self {
        Self::new(Duration::from_secs(3_600), 4_096)
    }
}

impl fmt::Debug for ResumeCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResumeCache")
            .field("lifetime", &self.0.lifetime)
            .finish_non_exhaustive()
    }
}

/// Saved congestion control parameters of one path. The text form of a set is one line of five
/// words: both addresses, the window in bytes, the round-trip time in nanoseconds, and the expiry
/// time in seconds since 1970.
///
/// ```
/// let line = "192.0.2.1 198.51.100.7 250000 600000000 1798761600";
/// let path: anabranch_net::SavedPath = line.parse()?;
/// assert_eq!((path.cwnd, path.rtt.as_millis()), (250_000, 600));
/// assert_eq!(path.to_string(), line);
/// # Ok::<_, anabranch_net::SavedPathError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedPath {
    /// Address of this host; unspecified if the system selects it.
    pub local: IpAddr,
    /// Address of the peer.
    pub remote: IpAddr,
    /// `saved_cwnd`: bytes that the path can deliver in `rtt`.
    pub cwnd: u64,
    /// `saved_rtt`: the minimum round-trip time that was measured.
    pub rtt: Duration,
    /// Time at which the set expires.
    pub expires: SystemTime,
}

impl SavedPath {
    fn of(path: &Path, saved: &SavedParameters) -> Self {
        Self {
            local: path.local,
            remote: path.remote,
            cwnd: saved.cwnd,
            rtt: Duration::from_nanos(saved.rtt),
            expires: UNIX_EPOCH + Duration::from_nanos(saved.expires),
        }
    }
}

impl fmt::Display for SavedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expires = self.expires.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (local, remote, cwnd) = (self.local, self.remote, self.cwnd);
        let (rtt, expires) = (nanos(self.rtt), expires.as_secs());
        write!(f, "{local} {remote} {cwnd} {rtt} {expires}")
    }
}

/// Error of parsing a [`SavedPath`] from text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{part} of a saved path: found {found:?}; allowed: {allowed}")]
pub struct SavedPathError {
    part: &'static str,
    found: String,
    allowed: &'static str,
}

impl FromStr for SavedPath {
    type Err = SavedPathError;

    fn from_str(text: &str) -> Result<Self, SavedPathError> {
        const ADDRESS: &str = "an IP address";
        const NUMBER: &str = "a whole number from 1";
        const SECONDS: &str = "seconds since 1970, at most 9999999999";
        let error = |part, found: &str, allowed| SavedPathError {
            part,
            found: found.to_owned(),
            allowed,
        };
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let Ok([local, remote, cwnd, rtt, expires]) = <[&str; 5]>::try_from(words) else {
            let allowed = "LOCAL REMOTE CWND RTT EXPIRES";
            return Err(error("the line", text, allowed));
        };
        let address = |part, word: &str| word.parse().map_err(|_| error(part, word, ADDRESS));
        let number = |part, word: &str| match word.parse::<u64>() {
            Ok(value @ 1..) => Ok(value),
            _ => Err(error(part, word, NUMBER)),
        };
        let seconds = match expires.parse::<u64>() {
            Ok(seconds @ 0..=9_999_999_999) => seconds,
            _ => return Err(error("EXPIRES", expires, SECONDS)),
        };
        Ok(Self {
            local: address("LOCAL", local)?,
            remote: address("REMOTE", remote)?,
            cwnd: number("CWND", cwnd)?,
            rtt: Duration::from_nanos(number("RTT", rtt)?),
            expires: UNIX_EPOCH + Duration::from_secs(seconds),
        })
    }
}

/// Careful Resume of an endpoint: its cache, and the paths of its associations.
#[derive(Debug)]
pub(crate) struct Resuming {
    cache: ResumeCache,
    /// Paths of open associations; true if the association uses the saved set of the path.
    paths: BTreeMap<AssociationId, BTreeMap<Path, bool>>,
    /// Time at which all open associations are saved next.
    due: Nanos,
}

impl Resuming {
    pub(crate) fn new(cache: ResumeCache) -> Self {
        Self {
            cache,
            paths: BTreeMap::new(),
            due: 0,
        }
    }

    /// Supplies saved parameters to the new paths of an association. Must be called before data is
    /// sent on them.
    pub(crate) fn supply(&mut self, now: Nanos, id: AssociationId, association: &mut Association) {
        let known = self.paths.entry(id).or_default();
        let all = association.paths().iter();
        let theirs = all.filter(|(_, it)| !it.is_disowned());
        let new: Vec<Path> = theirs
            .map(|(_, it)| it.path())
            .filter(|&path| !known.contains_key(&path))
            .collect();
        for path in new {
            let unix_now = unix_time();
            let mut cache = self.cache.lock();
            let saved = cache.take(unix_now, &path);
            let used = saved.is_some_and(|saved| {
                let expires = now.saturating_add(saved.expires - unix_now);
                let used = association.resume(path.remote, SavedParameters { expires, ..saved });
                if !used {
                    cache.release(&path, false);
                }
                used
            });
            known.insert(path, used);
        }
    }

    /// Saves the parameters of all open associations, if the interval is over.
    pub(crate) fn observe_all(&mut self, now: Nanos, endpoint: &Endpoint) {
        if now < self.due {
            return;
        }
        self.due = now.saturating_add(OBSERVE_EVERY);
        let Self { cache, paths, .. } = self;
        for (&id, theirs) in paths {
            let Some(association) = endpoint.association(id) else {
                continue;
            };
            // The association may have lost the path, because the peer may remove addresses (RFC
            // 5061).
            theirs.retain(|&path, used| {
                let stays = observe(cache, association, path, used);
                if !stays {
                    release(cache, path, *used);
                }
                stays
            });
        }
    }

    /// Saves the parameters of an association that has ended, and releases its sets for other
    /// associations.
    pub(crate) fn end(&mut self, id: AssociationId, association: &Association) {
        for (path, mut used) in self.paths.remove(&id).unwrap_or_default() {
            observe(&self.cache, association, path, &mut used);
            release(&self.cache, path, used);
        }
    }
}

impl Drop for Resuming {
    fn drop(&mut self) {
        for (&path, &used) in self.paths.values().flatten() {
            release(&self.cache, path, used);
        }
    }
}

fn release(cache: &ResumeCache, path: Path, used: bool) {
    if used {
        cache.lock().release(&path, false);
    }
}

/// Saves the parameters of one path of an association. Returns false if the association no longer
/// has that path.
fn observe(cache: &ResumeCache, association: &Association, path: Path, used: &mut bool) -> bool {
    let all = association.paths().iter();
    let entry = all.map(|(_, it)| it).find(|it| it.path() == path);
    if let Some(state) = entry.and_then(|it| it.careful_resume()) {
        observe_path(cache, path, state, used);
    }
    entry.is_some()
}

/// Saves the parameters of a path's controller. If the controller found that the set from which it
/// started is wrong, deletes that set.
fn observe_path(cache: &ResumeCache, path: Path, state: &CarefulResume, used: &mut bool) {
    let mut saved = cache.lock();
    if state.is_refuted() && std::mem::take(used) {
        saved.release(&path, true);
    }
    let expires = cache.expiry(unix_time());
    if let (ResumePhase::Normal, Some(observed)) = (state.phase(), state.observation(expires)) {
        saved.save(path, observed);
    }
}

#[cfg(test)]
mod tests;

//! Table of an association's paths, and path selection (RFC 9260 §6.4, §8.2).

use std::net::IpAddr;

use anabranch_transport::{Nanos, Path, Probe, Trace};

use super::new_path::PathComponents;
use super::path_entry::{PathEntry, PathId};
use super::path_list::PathList;
use super::{PathState, SwitchRules, mtu};
use crate::address::MAX_PATHS;
use crate::config::Config;
use crate::profile::{DormantPath, RetransmissionPath};

/// All paths of an association. There is always at least one path, and one path is the primary.
#[derive(Debug)]
pub struct Paths {
    pub(super) entries: PathList,
    primary: PathId,
    /// Cached minimum of [`PathEntry::max_user_data`] over all paths; `None` if the path MTUs may
    /// change.
    pub(super) max_user_data: Option<usize>,
    retransmission: RetransmissionPath,
    dormant: DormantPath,
    /// Whether no data may be sent before all paths are verified, including the primary.
    confirm_paths_before_data: bool,
    /// Whether paths can be potentially failed.
    potentially_failed: bool,
    /// RSCTP's path switch rules, if RSCTP was negotiated.
    pub(crate) switch_rules: Option<SwitchRules>,
    /// Peer's UDP port, used for new paths.
    udp_port: u16,
    /// Bytes reserved for an AUTH chunk in each packet.
    pub(super) reserved: usize,
}

impl Paths {
    /// Maximum number of paths of an association; further peer addresses are not used.
    pub const MAX: usize = MAX_PATHS;

    /// Creates the path table of a new association. The primary path is `first`, in state `state`.
    pub fn new(config: &Config, first: Path, state: PathState) -> Self {
        Self::with(
            config,
            first,
            state,
            PathComponents::of(config, first.remote),
        )
    }

    /// Like [`Self::new`], with components that are already allocated. Because nothing can fail
    /// after these allocations, the caller can build the table in place, without a move.
    #[inline(always)]
    pub(crate) fn with(
        config: &Config,
        first: Path,
        state: PathState,
        made: PathComponents,
    ) -> Self {
        let entry = PathEntry::with(config, first, state, made);
        Self {
            max_user_data: (!config.path_mtu_discovery).then(|| entry.max_user_data()),
            entries: PathList::new(entry),
            primary: PathId(0),
            retransmission: config.profile.retransmission_path,
            dormant: match config.profile.dormant_path {
                // RFC 7829 §4 requires this choice if paths can be potentially failed.
                DormantPath::Last if config.profile.potentially_failed => DormantPath::FewestErrors,
                other => other,
            },
            confirm_paths_before_data: config.profile.confirm_paths_before_data,
            potentially_failed: config.profile.potentially_failed,
            switch_rules: None,
            udp_port: 0,
            reserved: 0,
        }
    }

    /// Adds a path. Returns the existing path if the remote address is known, or `None` if there
    /// are too many paths.
    pub fn add(&mut self, config: &Config, path: Path, state: PathState) -> Option<PathId> {
        if let Some(known) = self.find(path.remote) {
            return Some(known);
        }
        if self.entries.len() == Self::MAX {
            return None;
        }
        let mut entry = PathEntry::new(config, path, state);
        entry.udp_port = self.udp_port;
        entry.reserved = self.reserved;
        entry.max_packet = mtu::less_reserved(entry.max_packet, self.reserved);
        if let Some(least) = &mut self.max_user_data {
            *least = entry.max_user_data().min(*least);
        }
        self.entries.push(entry);
        Some(PathId(self.entries.len() as u8 - 1))
    }

    /// Primary path (RFC 9260 §6.4).
    pub fn primary(&self) -> PathId {
        self.primary
    }

    /// Makes `id` the primary path.
    pub fn set_primary(&mut self, id: PathId) {
        if usize::from(id.0) < self.entries.len() {
            self.primary = id;
        }
    }

    /// Path with this number. Every number is valid, because it comes from this table, which never
    /// removes a path.
    pub fn get(&self, id: PathId) -> &PathEntry {
        self.entries.at(usize::from(id.0))
    }

    /// Mutable path with this number.
    pub fn get_mut(&mut self, id: PathId) -> &mut PathEntry {
        self.entries.at_mut(usize::from(id.0))
    }

    /// Path to this remote address.
    #[inline]
    pub fn find(&self, remote: IpAddr) -> Option<PathId> {
        let first = self.entries.at(0);
        let is_first = first.path.remote == remote && !first.disowned;
        (is_first.then_some(PathId(0))).or_else(|| self.find_among_all(remote))
    }

    #[inline(never)]
    fn find_among_all(&self, remote: IpAddr) -> Option<PathId> {
        let wanted = |entry: &PathEntry| entry.path.remote == remote && !entry.disowned;
        (self.entries.position(wanted)).map(|index| PathId(index as u8))
    }

    /// Entry of the path to this remote address.
    pub fn to(&self, remote: IpAddr) -> Option<&PathEntry> {
        Some(self.get(self.find(remote)?))
    }

    /// Sets the peer's UDP port on every path; 0 disables UDP encapsulation (RFC 6951 §5.1).
    #[inline(never)]
    pub fn set_udp_port(&mut self, udp_port: u16) {
        self.udp_port = udp_port;
        for entry in self.entries.iter_mut() {
            entry.udp_port = udp_port;
        }
    }

    /// Records that a packet with a valid verification tag arrived from `remote` and this UDP port.
    /// Replies are sent to this port from now on (RFC 6951 §5.4).
    #[inline(never)] // shared by all callers
    pub fn follow_udp_port(&mut self, remote: IpAddr, udp_port: u16) {
        if let Some(entry) = self
            .entries
            .iter_mut()
            .find(|entry| entry.path.remote == remote)
        {
            entry.udp_port = udp_port;
        }
    }

    /// Peer's UDP port at `remote`; 0 without UDP encapsulation.
    pub fn udp_port_to(&self, remote: IpAddr) -> u16 {
        self.find(remote)
            .map_or(self.udp_port, |id| self.get(id).udp_port)
    }

    /// Peer's UDP port of path `id`; 0 without UDP encapsulation.
    #[inline]
    pub(crate) fn udp_port_of(&self, id: PathId) -> u16 {
        let entry = self.get(id);
        if entry.disowned {
            return self.udp_port_to(entry.path.remote);
        }
        entry.udp_port
    }

    /// Number of paths.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Always false.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// All paths with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (PathId, &PathEntry)> + Clone {
        self.entries
            .iter()
            .enumerate()
            .map(|(index, entry)| (PathId(index as u8), entry))
    }

    /// All paths with their numbers, mutable.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (PathId, &mut PathEntry)> {
        self.entries
            .iter_mut()
            .enumerate()
            .map(|(index, entry)| (PathId(index as u8), entry))
    }

    /// Path for new data: the primary path if it is active and verified, else the next active path
    /// (RFC 9260 §5.4, §6.4.1, RFC 7829 §3).
    pub fn choose_for_new_data(&self) -> PathId {
        match self.get(self.primary).state {
            PathState::Active => self.primary,
            PathState::Unconfirmed if self.confirm_paths_before_data => self.primary,
            _ => self.alternate_to(self.primary),
        }
    }

    /// Path for the retransmission of a chunk that was last sent on `last` (RFC 9260 §6.4).
    /// `timed_out`: the chunk is retransmitted because of T3-rtx, and not by fast retransmit.
    pub fn choose_for_retransmission(&self, last: PathId, timed_out: bool) -> PathId {
        let alternate = match self.retransmission {
            RetransmissionPath::Same => false,
            RetransmissionPath::Alternate => true,
            RetransmissionPath::AlternateOnTimeout => timed_out,
            policy => return self.best_for_retransmission(last, policy),
        };
        if !alternate && self.get(last).state == PathState::Active {
            last
        } else {
            self.alternate_to(last)
        }
    }

    /// Next active path after `id` in round-robin order; else `id` if it is active; else the
    /// potentially failed path with the fewest errors (RFC 7829 §3). If all are inactive, the
    /// profile decides.
    pub fn alternate_to(&self, id: PathId) -> PathId {
        let count = self.entries.len();
        let in_turn = (1..=count).map(|step| PathId(((usize::from(id.0) + step) % count) as u8));
        let is = |id: PathId, state| self.get(id).state == state;
        in_turn
            .clone()
            .find(|&other| is(other, PathState::Active))
            .or_else(|| {
                in_turn
                    .filter(|&other| is(other, PathState::PotentiallyFailed))
                    .min_by_key(|&other| self.get(other).error_count)
            })
            .unwrap_or_else(|| self.when_dormant(id))
    }

    /// Path choice if no path is active or potentially failed. Unverified addresses are not
    /// selected (RFC 9260 §5.4); the first address of an association is always verified.
    fn when_dormant(&self, id: PathId) -> PathId {
        let count = self.entries.len();
        let mut in_turn = (1..=count)
            .map(|step| PathId(((usize::from(id.0) + step) % count) as u8))
            .filter(|&other| self.get(other).is_verified());
        let wished = match self.dormant {
            DormantPath::Last => Some(id),
            DormantPath::Primary => Some(self.primary),
            DormantPath::Hop => in_turn.clone().next(),
            DormantPath::FewestErrors => in_turn.clone().min_by_key(|&it| self.get(it).error_count),
        };
        wished
            .filter(|&wished| self.get(wished).is_verified())
            .or_else(|| in_turn.next())
            .unwrap_or(id)
    }

    /// Returns `id` if it is verified, else the path for new data. Only HEARTBEAT and HEARTBEAT ACK
    /// may be sent to an unverified address, because it may not belong to the peer (RFC 9260 §5.4).
    pub fn verified(&self, id: PathId) -> PathId {
        if self.get(id).is_verified() {
            id
        } else {
            self.choose_for_new_data()
        }
    }

    /// Records an error on `id`: a timeout of T3-rtx or of a HEARTBEAT (RFC 9260 §8.2). Returns
    /// `true` if the path's state changed. If the primary path has more errors than PSMR, the path
    /// for new data becomes the primary (RFC 7829 §5). The caller counts the errors of the
    /// association (§8.1).
    pub fn record_error(
        &mut self,
        now: Nanos,
        id: PathId,
        config: &Config,
        trace: &mut Trace,
    ) -> bool {
        let settings = self.get(id).settings();
        let pf_max_retrans = self.potentially_failed.then_some(settings.pf_max_retrans);
        let most = self.most_errors(settings.path_max_retrans, config);
        let entry = self.get_mut(id);
        if entry.state != PathState::Inactive || entry.error_count < most {
            entry.error_count = entry.error_count.saturating_add(1);
        }
        let (errors, before) = (entry.error_count, entry.state);
        let state = match before {
            PathState::Inactive => PathState::Inactive,
            _ if errors > settings.path_max_retrans => PathState::Inactive,
            PathState::Active if pf_max_retrans.is_some_and(|most| errors > most) => {
                PathState::PotentiallyFailed
            }
            state => state,
        };
        entry.state = state;
        if state != before {
            trace.record(now, Probe::PathState, id.0.into(), state.code());
        }
        let spent = config
            .primary_switchover_max_retrans
            .is_some_and(|most| errors > most.max(settings.least_primary_switch(pf_max_retrans)));
        if spent && id == self.primary {
            // RFC 7829 §5, rule 3: the current path for new data becomes the primary.
            self.primary = self.choose_for_new_data();
        }
        state != before
    }

    /// Maximum error count of an inactive path: the count that made it inactive (RFC 9260 §8.3).
    /// The limit is ten times this count, or more, if inactive paths are ranked by their errors or
    /// a switch of the primary path needs higher counts (RFC 7829 §4.1, §5).
    fn most_errors(&self, path_max_retrans: u32, config: &Config) -> u32 {
        let least = path_max_retrans.saturating_add(1);
        let told_apart = self.dormant == DormantPath::FewestErrors;
        match config.primary_switchover_max_retrans {
            Some(most) => least.saturating_mul(10).max(most.saturating_add(1)),
            None if told_apart => least.saturating_mul(10),
            None => least,
        }
    }

    /// Records an answer on path `id`, which clears its errors (RFC 9260 §8.2, §8.3). Returns
    /// `true` if the path became active again.
    pub fn record_answer(&mut self, now: Nanos, id: PathId, trace: &mut Trace) -> bool {
        let entry = self.get_mut(id);
        if entry.disowned {
            return false; // late answers change nothing
        }
        entry.error_count = 0;
        let back = matches!(
            entry.state,
            PathState::Inactive | PathState::PotentiallyFailed
        );
        if back {
            entry.state = PathState::Active;
            trace.record(now, Probe::PathState, id.0.into(), PathState::Active.code());
        }
        back
    }

    /// Number of bytes in flight on all paths, excluding chunks marked for retransmission.
    pub fn total_flightsize(&self) -> u64 {
        self.entries.iter().map(|entry| entry.flightsize).sum()
    }
}

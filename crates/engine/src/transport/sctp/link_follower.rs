//! Address changes (ASCONF) that follow the links of a host.

use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_sctp::{AddressChange, Association, AssociationState};
use anabranch_transport::Nanos;

use super::super::FlowMember;

/// Follows the links at one end of a flow, and changes the addresses of its association.
#[derive(Debug, Default)]
pub struct Follower {
    /// Addresses at the start of the run.
    first: Vec<IpAddr>,
    /// Later sets of addresses with the times at which they apply; in each set the address that was
    /// added last is first.
    steps: VecDeque<(Nanos, Vec<IpAddr>)>,
    /// Set of addresses that the association should have and that was not requested yet.
    wanted: Option<Vec<IpAddr>>,
}

impl Follower {
    /// Follows the links at one `end` of a member. The host notices changes after the delay
    /// `after`; `None`: never.
    pub fn new(member: &FlowMember<'_>, end: usize, after: Option<Nanos>) -> Self {
        let all = member.addresses(end);
        let Some(after) = after else {
            return Self {
                first: all,
                ..Self::default()
            };
        };
        let outages = |address: IpAddr| {
            let paths = member.paths.iter().zip(member.outages);
            let own = paths.filter(move |(path, _)| path[end] == address);
            own.flat_map(move |(_, outages)| outages[end].iter().copied())
        };
        let mut times: Vec<Nanos> = all.iter().flat_map(|&it| outages(it)).flatten().collect();
        times.retain(|&at| at > 0 && at < Nanos::MAX);
        times.sort_unstable();
        times.dedup();
        let up = |at: Nanos| {
            let is_up = |address: &IpAddr| {
                !outages(*address).any(|[from, until]| (from..until).contains(&at))
            };
            let since = |address: IpAddr| {
                let ended = outages(address).map(|[_, until]| until);
                ended.filter(|&until| until <= at).max().unwrap_or(0)
            };
            let mut up: Vec<_> = all.iter().copied().filter(is_up).collect();
            up.sort_by_key(|&address| std::cmp::Reverse(since(address)));
            up
        };
        let begins = up(0);
        Self {
            first: if begins.is_empty() {
                all.clone()
            } else {
                begins
            },
            steps: times
                .iter()
                .map(|&at| (at.saturating_add(after), up(at)))
                .collect(),
            wanted: None,
        }
    }

    /// Removes and returns the addresses at the start of the run.
    pub fn take_first(&mut self) -> Vec<IpAddr> {
        std::mem::take(&mut self.first)
    }

    /// Time at which the host notices the next change.
    pub fn deadline(&self) -> Option<Nanos> {
        self.steps.front().map(|&(at, _)| at)
    }

    /// Whether [`Self::follow`] has a change to request.
    #[inline]
    pub fn is_due(&mut self, now: Nanos) -> bool {
        // Checked first, because most hosts have no changes.
        let follows = !self.steps.is_empty() || self.wanted.is_some();
        follows && self.has_come(now)
    }

    #[inline(never)]
    fn has_come(&mut self, now: Nanos) -> bool {
        while self.deadline().is_some_and(|at| at <= now) {
            self.wanted = self.steps.pop_front().map(|(_, addresses)| addresses);
        }
        self.wanted.is_some()
    }

    /// Requests from the association the address changes that are due, if it supports such changes.
    /// A host without any working link keeps its addresses until a link comes up.
    pub fn follow(&mut self, now: Nanos, association: &mut Association) {
        let Some(wanted) = self
            .wanted
            .take_if(|_| association.state() == AssociationState::Established)
        else {
            return;
        };
        let Some(&newest) = wanted.first() else {
            return;
        };
        let has = association.requested_addresses();
        let new = wanted.iter().filter(|it| !has.contains(it));
        let gone = has.iter().filter(|it| !wanted.contains(it));
        let changes: Vec<_> = new
            .map(|&it| AddressChange::Add(it))
            .chain([AddressChange::PeerPrimary(newest)])
            .chain(gone.map(|&it| AddressChange::Remove(it)))
            .collect();
        // The result is ignored, because an error means that the association is closing, or that
        // the peer does not support ASCONF.
        let _ = association.change_addresses(now, &changes);
    }
}

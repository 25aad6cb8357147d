//! Coupled congestion windows: passes the state of all paths to algorithms that need it (`cmt_rp`,
//! `lia`, `olia`).

use anabranch_congestion::{CoupledPath, CoupledPaths};
use anabranch_transport::time;

use crate::path::{PathEntry, PathId, PathState, Paths};
use crate::tx::Sender;

impl Sender {
    /// Passes the state of all active paths to the congestion control of `id`.
    pub(in crate::tx) fn couple(&self, id: PathId, paths: &mut Paths) {
        if self.cmt.is_none() {
            return;
        }
        let used = |&(other, entry): &(PathId, &PathEntry)| {
            other == id || entry.state == PathState::Active
        };
        let members = paths.iter().filter(used).map(|(_, entry)| member(entry));
        let coupled = CoupledPaths::of(member(paths.get(id)), members);
        paths.get_mut(id).cc.on_coupled_paths(&coupled);
    }
}

fn member(entry: &PathEntry) -> CoupledPath {
    CoupledPath {
        cwnd: entry.cc.cwnd_exact(),
        ssthresh: entry.cc.ssthresh() as f64,
        rtt: entry.rto.srtt().map(time::seconds),
        between_losses: entry.cc.between_losses(),
    }
}

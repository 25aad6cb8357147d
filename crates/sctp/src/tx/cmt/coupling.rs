//! Coupled windows: algorithms that go by all paths of an association (`cmt_rp`, `lia`) are told of them.

use anabranch_congestion::Pool;
use anabranch_transport::time;

use crate::path::{PathId, PathState, Paths};
use crate::tx::Sender;

impl Sender {
    /// Tells the controller of `id` how the active paths stand.
    pub(in crate::tx) fn couple(&self, id: PathId, paths: &mut Paths) {
        if self.cmt.is_none() {
            return;
        }
        let mut pool = Pool::default();
        for (other, entry) in paths.iter() {
            if other == id || entry.state == PathState::Active {
                let rtt = entry.rto.srtt().map(time::seconds);
                pool.add(entry.cc.cwnd_exact(), entry.cc.ssthresh() as f64, rtt);
            }
        }
        paths.get_mut(id).cc.on_pool(&pool);
    }
}

//! Routes over moving nodes in a divided world: each part computes a share of the tables of an
//! interval, and copies the other tables from the parts that computed them.

use anabranch_orbit::Tree;
use anabranch_transport::Nanos;

use super::{MadeBy, NOWHERE, Router};
use crate::topology::Topology;

/// Routing tables that one part of a divided world has computed for all parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteTables {
    /// Target interface of each table.
    targets: Vec<u32>,
    /// Next hops of all tables, concatenated.
    next: Vec<u32>,
}

impl Router {
    /// Whether nodes move and the routes change at or before `now`.
    pub fn is_due(&self, now: Nanos) -> bool {
        self.next_change() <= now && matches!(self.made_by, MadeBy::Moving(..))
    }

    /// Targets of the tables from the number `first` on, if nodes move.
    pub fn targets_from(&self, first: usize) -> &[u32] {
        match self.made_by {
            MadeBy::Moving(..) => &self.targets[first..],
            MadeBy::FewestLinks(_) => &[],
        }
    }

    /// Computes the tables of `targets`, after [`Self::follow_lazily`], and replaces `tables` by
    /// them.
    pub fn compute(
        &mut self,
        topology: &Topology,
        targets: impl Iterator<Item = u32>,
        tables: &mut RouteTables,
    ) {
        tables.targets.clear();
        tables.next.clear();
        for target in targets {
            let table = self.current_table(topology, target) as usize;
            let next = &self.next[table * self.nodes..][..self.nodes];
            tables.targets.push(target);
            tables.next.extend_from_slice(next);
        }
    }

    /// Copies the tables that another part has computed and that this part needs.
    pub fn accept(&mut self, tables: &RouteTables) {
        let all = tables.next.chunks(self.nodes.max(1));
        for (&target, next) in tables.targets.iter().zip(all) {
            let table = self.tables[target as usize];
            if table == NOWHERE {
                continue;
            }
            let index = table as usize;
            self.next[index * self.nodes..][..self.nodes].copy_from_slice(next);
            self.current[index] = self.changes;
            if let MadeBy::Moving(_, trees) = &mut self.made_by {
                // The part that computes the table has its tree.
                trees[index] = Tree::default();
            }
        }
    }

    /// Computes the tables that are not current, after [`Self::follow_lazily`].
    pub fn complete(&mut self, topology: &Topology) {
        for table in 0..self.targets.len() {
            if self.current[table] != self.changes {
                self.current_table(topology, self.targets[table]);
            }
        }
    }
}

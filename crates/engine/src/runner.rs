//! Runners, which produce the record of a run.

use anabranch_scenario::records::RunRecord;

use crate::plan::PlannedRun;
use crate::sink::Sink;
use crate::world::WorldError;

/// Produces the record of a run: by simulation, on real sockets, or, in tests, by a faster method.
pub trait Runner: Sync {
    /// Runs one unit of a plan with this seed. Samples that the unit records are written to `sink`.
    ///
    /// # Errors
    /// [`WorldError`].
    fn run(
        &self,
        unit: &PlannedRun<'_>,
        seed: u64,
        sink: &mut dyn Sink,
    ) -> Result<RunRecord, WorldError>;

    /// Kind of the unit's record. A stored record is used only for the same kind, so that results
    /// of real sockets are never mixed with simulated ones.
    fn kind(&self, _unit: &PlannedRun<'_>) -> &'static str {
        "simulated"
    }

    /// Kinds of the units that are not part of this project, because a program has added them.
    fn added(&self) -> Vec<String> {
        Vec::new()
    }

    /// Ids of the experiments that are run on real sockets.
    fn live(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether the unit must be run even if a record of it exists.
    fn wants(&self, _unit: &PlannedRun<'_>) -> bool {
        false
    }
}

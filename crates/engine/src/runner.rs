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

    /// Kind of the run's record, such as `simulated`. A stored record is used again only if its
    /// kind is the same, so that results of real sockets are never mixed with simulated results.
    fn kind(&self, _unit: &PlannedRun<'_>) -> &'static str {
        "simulated"
    }

    /// Kinds that a program has added to those of this project, such as a congestion control, and
    /// that the runs may use.
    fn added(&self) -> Vec<String> {
        Vec::new()
    }

    /// Ids of the experiments that are run on real sockets.
    fn live(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether the run must be executed even if its record exists.
    fn wants(&self, _unit: &PlannedRun<'_>) -> bool {
        false
    }
}

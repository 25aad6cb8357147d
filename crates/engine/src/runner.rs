//! Runners, which produce the record of a unit.

use anabranch_scenario::records::RunRecord;

use crate::plan::Unit;
use crate::sink::Sink;
use crate::world::WorldError;

/// Produces the record of a unit: by simulation, on real sockets, or in tests by a faster method.
pub trait Runner: Sync {
    /// Runs one unit of a plan with this seed; its samples, if it records any, go to `sink`.
    ///
    /// # Errors
    /// [`WorldError`].
    fn run(&self, unit: &Unit<'_>, seed: u64, sink: &mut dyn Sink)
    -> Result<RunRecord, WorldError>;

    /// The class of a unit's record. A record of one class is never used for another: results of
    /// real sockets are kept apart from simulated ones.
    fn kind(&self, _unit: &Unit<'_>) -> &'static str {
        "simulated"
    }

    /// The kinds in its units that are not part of this project.
    fn added(&self) -> Vec<String> {
        Vec::new()
    }

    /// The experiments that it runs on real sockets.
    fn live(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether a unit must be run even if its record exists.
    fn wants(&self, _unit: &Unit<'_>) -> bool {
        false
    }
}

//! What makes a record of a unit.

use anabranch_scenario::records::RunRecord;

use crate::plan::Unit;
use crate::sink::Sink;
use crate::world::WorldError;

/// Makes a record of a unit: by simulation, by real sockets, or, in tests, by something quicker.
pub trait Runner: Sync {
    /// Runs one unit of a plan with this seed; its samples, if it records any, go to `sink`.
    ///
    /// # Errors
    /// [`WorldError`].
    fn run(&self, unit: &Unit<'_>, seed: u64, sink: &mut dyn Sink)
    -> Result<RunRecord, WorldError>;

    /// Of what kind a unit's record is. One kind never stands in for another: what real sockets gave is kept apart from what
    /// the simulator gives.
    fn kind(&self, _unit: &Unit<'_>) -> &'static str {
        "simulated"
    }

    /// The kinds among those that its units name that are no part of this project.
    fn added(&self) -> Vec<String> {
        Vec::new()
    }

    /// The experiments that it runs on real sockets.
    fn live(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether a unit must be run although its record is there.
    fn wants(&self, _unit: &Unit<'_>) -> bool {
        false
    }
}

//! Queue disciplines, which decide the packets that are queued, sent next, dropped or marked.

mod assignments;
mod codel;
mod discipline;
mod drop_tail;
mod dualpi2;
mod dvb_rcs2;
mod dvb_s2;
mod fq_codel;
mod leo_access;
mod limit;
mod pie;
mod priority;
mod red;
mod step;
#[cfg(test)]
mod testing;
pub(crate) mod timed;
mod token_bucket;

use anabranch_settings::{Kind, KindEntry, Registry, Setting, SettingValue};

pub use assignments::Assignments;
pub use codel::{CoDel, CoDelConfig};
pub use discipline::{EnqueueError, QueueDiscipline, QueuedPacket, TransmitterView};
pub use drop_tail::{DropTail, Fifo};
pub use dualpi2::{DualPi2, DualPi2Config};
pub use dvb_rcs2::{DvbRcs2, DvbRcs2Config};
pub use dvb_s2::{DvbS2, DvbS2Config};
pub use fq_codel::{FqCoDel, FqCoDelConfig};
pub use leo_access::{LeoAccess, LeoAccessConfig};
pub use limit::{Occupancy, QueueLimit};
pub use pie::{Pie, PieConfig};
pub use priority::{Priority, PriorityClass};
pub use red::{Red, RedConfig};
pub use step::{Step, StepConfig};
pub use token_bucket::{TokenBucket, TokenBucketConfig};

/// All queue disciplines. Each entry refers to the declaration in the module of the discipline.
pub const KINDS: &[&KindEntry<Box<dyn QueueDiscipline>>] = &[
    &drop_tail::ENTRY,
    &codel::ENTRY,
    &fq_codel::ENTRY,
    &pie::ENTRY,
    &red::ENTRY,
    &step::ENTRY,
    &token_bucket::ENTRY,
    &dualpi2::ENTRY,
    &priority::ENTRY,
    &dvb_rcs2::ENTRY,
    &dvb_s2::ENTRY,
    &leo_access::ENTRY,
];

/// The registry of [`KINDS`], to which a program may add its own disciplines.
pub fn kinds() -> Registry<Box<dyn QueueDiscipline>> {
    Registry::new(KINDS)
}

/// The `limit` parameter, which most disciplines share.
const LIMIT: Setting = Setting::new(
    "limit",
    " Capacity in packets or bytes, including the packet in transmission. Default: unlimited.",
    QueueLimit::KIND,
)
.optional();

/// Value kind of a time above 0.
const TIME: Kind = Kind::duration(1, 3_600_000_000_000);

/// Value kind of an update interval. It has a minimum, because memory and work grow with the number
/// of intervals.
const PERIOD: Kind = Kind::duration(1_000_000, 3_600_000_000_000);

/// Value kind of a number above 0, up to `most`.
const fn above_zero(most: f64) -> Kind {
    Kind::Number {
        least: 0.0,
        most,
        above: true,
        step: 0.0,
    }
}

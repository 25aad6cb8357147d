//! Queue disciplines: who waits for a transmitter, who goes next, and who is dropped or marked instead.

mod codel;
mod discipline;
mod drop_tail;

pub use codel::{CoDel, CoDelConfig};
pub use discipline::{Occupancy, QueueDiscipline, Queued, Refused, Transmitter};
pub use drop_tail::{DropTail, Fifo, Limit};

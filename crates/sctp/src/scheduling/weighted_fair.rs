//! Weighted fair queueing (RFC 8260 §3.6): bytes of each stream in proportion to its value, which is 1 at first. 0 is taken as 1.

use super::virtual_time::{ByValue, VirtualTime};

/// Streams weigh what their values are.
pub(crate) type WeightedFair = VirtualTime<ByValue>;

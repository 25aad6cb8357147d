//! Weighted fair queueing (RFC 8260 §3.6): bytes of each stream in proportion to its value. A
//! stream without a value, or with value 0, has weight 1.

use super::virtual_time::{ByValue, VirtualTime};

/// Streams are weighted by their values.
pub(crate) type WeightedFair = VirtualTime<ByValue>;

//! Fair capacity (RFC 8260 §3.5): an equal number of bytes of each stream, independent of message
//! size.

use super::virtual_time::{Equal, VirtualTime};

/// Every stream has the same weight.
pub(crate) type FairCapacity = VirtualTime<Equal>;

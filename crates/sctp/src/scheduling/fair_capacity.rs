//! Fair capacity (RFC 8260 §3.5): as many bytes of each stream, whatever the size of its messages.

use super::virtual_time::{Equal, VirtualTime};

/// Every stream weighs the same.
pub(crate) type FairCapacity = VirtualTime<Equal>;

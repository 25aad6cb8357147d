//! As much as the transport takes: ns-2's FTP.

use anabranch_transport::Nanos;

use super::{Message, Offer, Workload};

/// Messages of one size without pause.
#[derive(Clone, Debug)]
pub struct Bulk {
    message: usize,
    left: Option<u64>,
}

impl Bulk {
    /// Messages of `message` bytes for ever.
    pub const fn endless(message: usize) -> Self {
        Self {
            message,
            left: None,
        }
    }

    /// `total` bytes in messages of `message` bytes, the last one shorter if need be.
    pub const fn of(total: u64, message: usize) -> Self {
        Self {
            message,
            left: Some(total),
        }
    }
}

impl Workload for Bulk {
    fn next(&mut self, _now: Nanos) -> Offer {
        let mut size = self.message;
        if let Some(left) = &mut self.left {
            size = size.min(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= size as u64;
        }
        if size == 0 {
            Offer::Done
        } else {
            Offer::Now(Message { size, stream: None })
        }
    }
}

//! Bulk workload: as much data as the transport accepts, like ns-2's FTP.

use anabranch_settings::{KindEntry, kind};
use anabranch_transport::Nanos;

use super::{BoxedWorkload, Context, Facts, Message, NextMessage, SIZE, Workload};

kind! {
    /// The parameters of [`Bulk`].
    struct BulkConfig {
        /// Size of a message (SCTP) or of a write (TCP). Default: a message that fills a packet.
        message: Option<usize> = none, SIZE;
        /// Total size of the data. Default: unlimited.
        total: Option<u64> = none, SIZE;
    }
    /// Greedy sender that always has data to send.
    pub(super) static ENTRY: KindEntry<BoxedWorkload, Context> = "bulk", |config, context: Context| {
        let message = config.message.unwrap_or(context.packet);
        Ok(Box::new(match config.total {
            Some(total) => Bulk::of(total, message),
            None => Bulk::endless(message),
        }))
    };
}

/// Workload of messages of constant size without pauses.
#[derive(Clone, Debug)]
pub struct Bulk {
    message: usize,
    left: Option<u64>,
}

impl Bulk {
    /// Messages of `message` bytes without a limit.
    pub const fn endless(message: usize) -> Self {
        Self {
            message,
            left: None,
        }
    }

    /// `total` bytes in messages of `message` bytes; the last one may be shorter.
    pub const fn of(total: u64, message: usize) -> Self {
        Self {
            message,
            left: Some(total),
        }
    }
}

impl Workload for Bulk {
    fn next(&mut self, _now: Nanos) -> NextMessage {
        let mut size = self.message;
        if let Some(left) = &mut self.left {
            size = size.min(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= size as u64;
        }
        if size == 0 {
            NextMessage::Done
        } else {
            NextMessage::Now(Message::new(size))
        }
    }

    fn facts(&self) -> Facts {
        Facts {
            sizes: [self.message as u64; 2],
            paced: false,
            endless: self.left.is_none(),
            ..Facts::default()
        }
    }
}

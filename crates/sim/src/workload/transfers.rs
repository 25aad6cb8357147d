//! Open-loop workload: transfers that arrive whether or not earlier ones are complete.

use anabranch_settings::{KindEntry, NestedKind, Setting, SettingValue, kind, spelled};
use anabranch_transport::Nanos;

use super::size::{self, Sizes};
use super::{
    BoxedWorkload, COUNT, Context, Facts, INTERVAL, Message, NextMessage, PeriodLength, SIZE,
    Workload,
};
use crate::error::BuildError;
use crate::rng::Rng;

/// Distribution of the times between arrivals.
enum Gaps {
    Poisson,
    Fixed,
}
spelled!(Gaps: Gaps::Poisson = "poisson", Gaps::Fixed = "fixed");

kind! {
    /// The parameters of [`OpenLoop`].
    struct TransfersConfig {
        /// Times between arrivals. `poisson`: exponentially distributed; `fixed`: constant.
        arrivals: Gaps = "poisson", Gaps::KIND;
        /// Mean time between two arrivals.
        every: Nanos, INTERVAL;
        /// Size of a transfer.
        size: NestedKind, size::SIZES;
        /// Total number of transfers. Default: unlimited.
        count: Option<u64> = none, COUNT;
        message: Option<usize> as MAX_MESSAGE;
    }
    idle {
        message: |_, context: &Context| context.no_messages();
    }
    /// Transfers that arrive whether or not earlier ones are complete, for example the pages of
    /// many users over one connection. The first arrives after one interval. Over SCTP a transfer
    /// is sent in messages of at most `message` bytes, all on one stream: the number of the
    /// transfer modulo the number of streams.
    pub(super) static ENTRY: KindEntry<BoxedWorkload, Context> = "transfers", |config, context: Context| {
        let arrivals = Arrivals {
            gaps: PeriodLength::new(config.every, matches!(config.arrivals, Gaps::Poisson)),
            count: config.count,
        };
        let piece = config.message.unwrap_or(context.packet);
        let sizes = size::make(&config.size)?;
        Ok(Box::new(OpenLoop::new(arrivals, sizes, piece, context.rng)?))
    };
}

/// The `message` parameter: maximum size of the messages that carry parts of a transfer.
pub(super) const MAX_MESSAGE: Setting = Setting::new(
    "message",
    " Over SCTP: largest message that carries part of a transfer. Default: a message that fills a packet.",
    SIZE,
)
.optional();

/// Arrival process of transfers: times and number.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals {
    /// Distribution of the times between arrivals.
    pub gaps: PeriodLength,
    /// Number of arrivals; `None`: unlimited.
    pub count: Option<u64>,
}

/// Workload of transfers in an open loop.
pub struct OpenLoop {
    arrivals: Arrivals,
    sizes: Box<dyn Sizes>,
    piece: usize,
    rng: Rng,
    /// Time of the next arrival, nanoseconds; `None` before the first call.
    due: Option<Nanos>,
    offered: u64,
}

impl OpenLoop {
    /// Transfers with the size distribution `sizes`. Over a transport that preserves messages they
    /// are sent in messages of at most `piece` bytes. Arrival times and sizes are drawn from `rng`.
    ///
    /// # Errors
    /// [`BuildError::Workload`] if the mean time between arrivals or `piece` is 0.
    pub fn new(
        arrivals: Arrivals,
        sizes: Box<dyn Sizes>,
        piece: usize,
        rng: Rng,
    ) -> Result<Self, BuildError> {
        if arrivals.gaps.mean() == 0 {
            return Err(BuildError::Workload("gaps longer than 0 ns"));
        }
        if piece == 0 {
            return Err(BuildError::Workload("messages of at least one byte"));
        }
        Ok(Self {
            arrivals,
            sizes,
            piece,
            rng,
            due: None,
            offered: 0,
        })
    }

    fn gap_after(&mut self, last: Nanos) -> Nanos {
        last.saturating_add(self.arrivals.gaps.draw(&mut self.rng))
    }
}

impl Workload for OpenLoop {
    fn next(&mut self, now: Nanos) -> NextMessage {
        if self.arrivals.count == Some(self.offered) {
            return NextMessage::Done;
        }
        let due = match self.due {
            Some(due) => due,
            None => self.gap_after(now),
        };
        self.due = Some(due);
        if due > now {
            return NextMessage::At(due);
        }
        let size = self.sizes.draw(&mut self.rng);
        self.due = Some(self.gap_after(due));
        self.offered += 1;
        NextMessage::Now(Message {
            piece: Some(self.piece),
            ..Message::new(usize::try_from(size).unwrap_or(usize::MAX)).due(due)
        })
    }

    fn facts(&self) -> Facts {
        Facts {
            sizes: self.sizes.range(),
            piece: Some(self.piece as u64),
            gap: Some(self.arrivals.gaps.mean()),
            messages: self.arrivals.count,
            ..Facts::default()
        }
    }
}

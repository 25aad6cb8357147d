//! Ingress of a link direction: MTU, outages, and losses before the queue.

use std::collections::VecDeque;

use anabranch_transport::Nanos;

use super::outage::{Down, Outages};
use super::{DirectionConfig, PlacedLoss};
use crate::error::BuildError;
use crate::loss::{Loss, LossPosition};
use crate::packet::{DropReason, Packet};
use crate::rng::{Rng, Seed};

/// A loss model with its random stream.
pub(super) struct Losing {
    model: Box<dyn Loss>,
    rng: Rng,
}

/// Whether at least one of the models drops the packet. Every model is evaluated, so that the
/// random draws of one model do not depend on the result of another.
#[inline]
pub(super) fn lost(losses: &mut [Losing], at: Nanos, packet: &Packet) -> bool {
    let mut lost = false;
    for Losing { model, rng } in losses {
        lost |= model.takes(at, packet, rng);
    }
    lost
}

/// Like `lost`, for several models; a separate function keeps the hot path of a single model small.
#[cold]
#[inline(never)]
fn any_lost(losses: &mut [Losing], at: Nanos, packet: &Packet) -> bool {
    lost(losses, at, packet)
}

/// Splits the loss models of a direction: those before its queue, and those in the channel.
pub(super) fn losses(losses: Vec<PlacedLoss>, name: &str, seed: Seed) -> [Vec<Losing>; 2] {
    let (mut before_queue, mut after_queue) = (Vec::new(), Vec::new());
    for (index, loss) in losses.into_iter().enumerate() {
        let PlacedLoss {
            place,
            model,
            stream,
        } = loss;
        let stream = stream.unwrap_or_else(|| format!("{name} loss {index}"));
        let losing = Losing {
            model,
            rng: seed.stream(&stream),
        };
        match place {
            LossPosition::BeforeQueue => before_queue.push(losing),
            LossPosition::AfterQueue => after_queue.push(losing),
        }
    }
    [before_queue, after_queue]
}

/// Ingress of a link direction.
pub(super) struct Ingress {
    mtu: usize,
    mtu_changes: VecDeque<(Nanos, usize)>,
    outages: Outages,
    /// Whether packets of any size may enter at any time.
    open: bool,
    losses: Vec<Losing>,
}

/// A packet that has passed the checks of MTU and outages.
pub(super) struct Entered {
    /// Size on the wire, bytes.
    pub size: usize,
    /// Start of the next outage, nanoseconds; [`Nanos::MAX`] if there is none.
    pub until: Nanos,
}

impl Ingress {
    /// Moves the parts of the ingress out of `config`.
    pub fn new(
        config: &mut DirectionConfig,
        losses: Vec<Losing>,
        link: &str,
    ) -> Result<Self, BuildError> {
        let always_up = config.outages.is_empty();
        let outages = Outages::new(std::mem::take(&mut config.outages))
            .ok_or_else(|| BuildError::Outages(link.to_owned()))?;
        let mtu_changes: VecDeque<_> = std::mem::take(&mut config.mtu_changes).into();
        Ok(Self {
            mtu: config.mtu.unwrap_or(usize::MAX),
            open: always_up && config.mtu.is_none() && mtu_changes.is_empty(),
            mtu_changes,
            outages,
            losses,
        })
    }

    /// Whether packets of any size may enter at any time, so that [`Ingress::enter`] need not be
    /// called.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Checks that the link is up and that its MTU permits the packet or its fragments. Otherwise
    /// returns the drop reason and the size of the packet.
    #[inline(never)]
    pub fn enter(
        &mut self,
        now: Nanos,
        packet: &mut Packet,
    ) -> Result<Entered, (usize, DropReason)> {
        let fits = self.fits(now, packet);
        let size = packet.wire_size();
        if !fits {
            return Err((size, DropReason::TooBig));
        }
        let until = self.next_outage(now).map_err(|reason| (size, reason))?;
        Ok(Entered { size, until })
    }

    /// Whether there are loss models before the queue.
    pub fn has_losses(&self) -> bool {
        !self.losses.is_empty()
    }

    /// Whether a loss model before the queue drops a packet that has entered.
    #[inline]
    pub fn loses(&mut self, now: Nanos, packet: &Packet) -> bool {
        match &mut self.losses[..] {
            [Losing { model, rng }] => model.takes(now, packet, rng),
            losses => any_lost(losses, now, packet),
        }
    }

    /// Maximum packet size at `now`, bytes.
    pub fn mtu(&self, now: Nanos) -> usize {
        let begun = self.mtu_changes.iter().take_while(|(from, _)| *from <= now);
        begun.last().map_or(self.mtu, |&(_, mtu)| mtu)
    }

    fn fits(&mut self, now: Nanos, packet: &mut Packet) -> bool {
        while let Some(&(from, mtu)) = self.mtu_changes.front()
            && from <= now
        {
            self.mtu = mtu;
            self.mtu_changes.pop_front();
        }
        packet.fits(self.mtu)
    }

    /// Start of the next outage, or the drop reason if the link is down.
    #[inline]
    pub fn next_outage(&mut self, now: Nanos) -> Result<Nanos, DropReason> {
        self.outages.at(now).map_err(|Down| DropReason::LinkDown)
    }
}

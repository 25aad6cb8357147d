//! What stands before the queue of a direction: its MTU, its outages, and the losses placed there.

use std::collections::VecDeque;

use anabranch_transport::Nanos;

use super::outage::{Down, Outages};
use super::{DirectionConfig, PlacedLoss};
use crate::error::BuildError;
use crate::loss::{Loss, Place};
use crate::packet::{DropReason, Packet};
use crate::rng::{Rng, Seed};

/// A loss model with its random stream.
pub(super) struct Losing {
    model: Box<dyn Loss>,
    rng: Rng,
}

/// Whether one of the models takes the packet. All are asked, so that no model's draws depend on another's.
#[inline]
pub(super) fn lost(losses: &mut [Losing], at: Nanos, packet: &Packet) -> bool {
    let mut lost = false;
    for Losing { model, rng } in losses {
        lost |= model.takes(at, packet, rng);
    }
    lost
}

/// The same where there are several, apart from the way of one.
#[cold]
#[inline(never)]
fn any_lost(losses: &mut [Losing], at: Nanos, packet: &Packet) -> bool {
    lost(losses, at, packet)
}

/// The losses of a direction, before its queue and in the air.
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
            Place::BeforeQueue => before_queue.push(losing),
            Place::AfterQueue => after_queue.push(losing),
        }
    }
    [before_queue, after_queue]
}

/// See the module's text.
pub(super) struct Entrance {
    mtu: usize,
    mtu_changes: VecDeque<(Nanos, usize)>,
    outages: Outages,
    /// Any size may enter at any time.
    open: bool,
    losses: Vec<Losing>,
}

/// A packet that may come to the losses before the queue.
pub(super) struct Entered {
    /// Bytes of it on the wire.
    pub size: usize,
    /// When the link goes down next; [`Nanos::MAX`] for never.
    pub until: Nanos,
}

impl Entrance {
    /// Takes its parts out of `config`.
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

    /// Whether a packet of any size may enter at any time: [`Entrance::enter`] need not be asked.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Whether the link is up, and carries the packet or what is made of it; else why not, and the size.
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

    /// Whether there are losses.
    pub fn has_losses(&self) -> bool {
        !self.losses.is_empty()
    }

    /// Whether one of the losses takes a packet that has entered.
    #[inline]
    pub fn loses(&mut self, now: Nanos, packet: &Packet) -> bool {
        match &mut self.losses[..] {
            [Losing { model, rng }] => model.takes(now, packet, rng),
            losses => any_lost(losses, now, packet),
        }
    }

    /// The largest packet that the link carries at `now`.
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

    /// When the link goes down next, or that it is down.
    #[inline]
    pub fn next_outage(&mut self, now: Nanos) -> Result<Nanos, DropReason> {
        self.outages.at(now).map_err(|Down| DropReason::LinkDown)
    }
}

//! Admission of new peers when the maximum number of associations is reached.
//!
//! A host at a single verified address could occupy and keep all slots, at the cost of a few
//! packets for each slot. Therefore no new peer is refused while some address has more than its
//! share of the slots; instead, one association of that address is removed. A silent association is
//! preferred, which has received no packet since the handshake and did not answer a HEARTBEAT. A
//! new peer at that same address replaces only a silent association. While slots are free, one
//! address may use all of them.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

use anabranch_transport::Nanos;
use anabranch_transport::time::MILLISECOND;
use anabranch_wire::cause::Cause;

use super::Endpoint;
use super::association_event::Input;
use crate::event::CloseReason;

/// Number of shares into which the slots are divided: the share of one address is one eighth.
const SHARES: usize = 8;
/// Maximum number of removal candidates found by one scan, and minimum time between two scans. Both
/// bound the work that peers can cause.
const MAX_NOTED: usize = 64;
const SCAN_INTERVAL: Nanos = 100 * MILLISECOND;
/// Maximum time to wait for a HEARTBEAT ACK of a silent association. It is less than RTO.Initial (1
/// s), after which the new peer retransmits its COOKIE ECHO by T1-cookie.
const ANSWER: Nanos = 900 * MILLISECOND;

/// Whether a new association can get a slot in a full table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// A slot was freed.
    Made,
    /// A slot may be available soon.
    Soon,
    /// No slot is available.
    None,
}

/// Association that may be removed.
#[derive(Clone, Copy, Debug)]
struct Noted {
    slot: u32,
    generation: u32,
    of: IpAddr,
    /// Time at which a HEARTBEAT was requested, if the association is silent.
    asked: Option<Nanos>,
}

/// Removal candidates and counts, present while no slot is free.
#[derive(Debug, Default)]
pub(super) struct Shares {
    /// Candidates, in the order of removal.
    may_go: VecDeque<Noted>,
    /// Number of associations by address, counted by the last scan and updated by removals.
    counts: BTreeMap<IpAddr, usize>,
    looked: Option<Nanos>,
    /// Whether the last scan found any candidate.
    found: bool,
    /// Slot after which the next scan begins. Slots are filled in about ascending order, so the
    /// oldest associations are removed first.
    last: u32,
}

/// Address whose associations are counted together: the IPv4 address, or the /64 prefix of an IPv6
/// address, because a host usually controls a whole /64.
fn holder(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
    }
}

impl Endpoint {
    /// Whether a slot is available, or may soon be, for a peer at this address.
    #[cold]
    #[inline(never)]
    pub(super) fn may_have_room_for(&mut self, now: Nanos, address: IpAddr) -> bool {
        let mut shares = self.shares.take().unwrap_or_default();
        let found = self.one_to_go(&mut shares, now, holder(address));
        self.shares = Some(shares);
        found != Err(Room::None)
    }

    /// Frees a slot for an association with a peer at the verified address `address`.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room_for(&mut self, now: Nanos, address: IpAddr) -> Room {
        let of = holder(address);
        let mut shares = self.shares.take().unwrap_or_default();
        let found = self.one_to_go(&mut shares, now, of);
        let goes = found.map(|place| shares.may_go.remove(place));
        if let Ok(Some(goes)) = goes {
            let mut change = |of, more| {
                let count: &mut usize = shares.counts.entry(of).or_default();
                *count = count.saturating_add_signed(more);
            };
            change(goes.of, -1);
            change(of, 1);
            shares.last = goes.slot;
            match self.table.get_mut(goes.slot) {
                Some(association) => {
                    association.abort_with(Cause::OutOfResource, CloseReason::Displaced);
                    self.table.touch(goes.slot);
                }
                None => self.table.forward(goes.slot, Input::Displace),
            }
        }
        self.shares = Some(shares);
        match goes {
            Ok(_) => Room::Made,
            Err(room) => room,
        }
    }

    /// Index of the candidate to remove for a new association of the address `of`.
    fn one_to_go(&mut self, shares: &mut Shares, now: Nanos, of: IpAddr) -> Result<usize, Room> {
        let looked_lately = shares
            .looked
            .is_some_and(|at| now < at.saturating_add(SCAN_INTERVAL));
        // Drop candidates that were closed or have received a packet; the next scan examines them
        // again.
        shares.may_go.retain(|it| {
            let same = self.table.id_of(it.slot).generation == it.generation;
            same && match self.table.get(it.slot) {
                Some(kept) => !kept.is_closed() && (it.asked.is_none() || kept.is_silent()),
                None => self.table.view(it.slot).is_some(),
            }
        });
        if shares.may_go.is_empty() && !looked_lately {
            self.look(shares, now);
            shares.looked = Some(now);
            shares.found = !shares.may_go.is_empty();
        }
        if shares.may_go.is_empty() && shares.found {
            // All candidates have received packets; the next scan will find others.
            return Err(Room::Soon);
        }
        let own = shares.counts.get(&of).copied().unwrap_or(0);
        let below = own < self.share();
        let fits = |it: &&Noted| below || it.asked.is_some() && it.of == of;
        let may_answer = |it: &Noted| it.asked.is_some_and(|at| now < at.saturating_add(ANSWER));
        let place = |which: &dyn Fn(&Noted) -> bool| {
            let mut all = shares.may_go.iter();
            all.position(|it| fits(&it) && which(it))
        };
        if let Some(silent) = place(&|it| it.asked.is_some() && !may_answer(it)) {
            return Ok(silent);
        }
        match place(&may_answer) {
            Some(_) => Err(Room::Soon),
            None => place(&|it| it.asked.is_none()).ok_or(Room::None),
        }
    }

    fn share(&self) -> usize {
        (self.max_associations / SHARES).max(1)
    }

    /// Counts associations by address, and collects candidates of addresses that exceed their
    /// share. Silent associations come first; a HEARTBEAT is requested for each of them.
    fn look(&mut self, shares: &mut Shares, now: Nanos) {
        // Slot, address, and whether the association is silent; a detached association never counts
        // as silent.
        let all = || {
            self.table
                .slots()
                .filter_map(|slot| match self.table.get(slot) {
                    Some(it) if it.is_closed() => None,
                    Some(it) => Some((slot, holder(it.primary_remote()), it.is_silent())),
                    None => (self.table.view(slot)).map(|it| (slot, holder(it.primary), false)),
                })
        };
        shares.counts.clear();
        for (_, of, _) in all() {
            *shares.counts.entry(of).or_default() += 1;
        }
        let mut left = shares.counts.clone();
        let share = self.share();
        let last = shares.last;
        for silent in [true, false] {
            let behind = all().filter(|it| it.0 > last);
            let before = all().filter(|it| it.0 <= last);
            for (slot, of, is_silent) in behind.chain(before) {
                let count = left.entry(of).or_default();
                let full = shares.may_go.len() == MAX_NOTED;
                if is_silent == silent && *count > share && !full {
                    *count -= 1;
                    shares.may_go.push_back(Noted {
                        slot,
                        generation: self.table.id_of(slot).generation,
                        of,
                        asked: silent.then_some(now),
                    });
                }
            }
        }
        for asked in shares.may_go.iter().filter(|it| it.asked.is_some()) {
            if let Some(association) = self.table.get_mut(asked.slot) {
                association.request_heartbeat(association.paths().primary());
                self.table.touch(asked.slot);
            }
        }
    }
}

//! Users who wait for an association to have room for what they send. It is looked at when the association was asked what it sends, as it is after
//! all that may make room; the others are not.

use std::collections::BTreeMap;

use super::Endpoint;
use crate::association::Association;
use crate::association_id::AssociationId;
use crate::seldom::Blank;

/// Who waits, and who has room.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    /// Bytes of the smallest message that waits.
    waiting: BTreeMap<AssociationId, usize>,
    /// To be told.
    ready: Vec<AssociationId>,
}

impl Rooms {
    const fn new() -> Self {
        Self {
            waiting: BTreeMap::new(),
            ready: Vec::new(),
        }
    }

    /// That association is gone.
    pub fn forget(&mut self, id: AssociationId) {
        self.waiting.remove(&id);
    }
}

impl Blank for Rooms {
    const BLANK: &'static Self = &Self::new();

    fn is_blank(&self) -> bool {
        self.waiting.is_empty() && self.ready.is_empty()
    }
}

/// Whether there is much room, not only that for the next packet: half of the buffer, and as much as a message of `size` bytes has to have.
/// Messages may hold twice the buffer until they are acknowledged ([`Association::held_to_send`]).
fn has_much_room(association: &Association, size: usize, buffer: usize) -> bool {
    let (queued, held) = (association.buffered(), association.held_to_send());
    let most_queued = (buffer / 2).min(buffer.saturating_sub(size));
    let most_held = (buffer + buffer / 2).min((2 * buffer).saturating_sub(size));
    queued <= most_queued && (held <= most_held || (queued == 0 && held <= buffer))
}

impl Endpoint {
    /// Lets [`Endpoint::poll_room`] give that association once it has much room to send (half of its send buffer), and room for a message of
    /// `size` bytes, or is closed. Of several wishes the smallest counts. Afterwards drain `poll_transmit`, and then it.
    pub fn ask_for_room(&mut self, id: AssociationId, size: usize) {
        let Some(slot) = self.table.slot_of(id) else {
            return;
        };
        let least = self.rooms.make().waiting.entry(id).or_insert(size);
        *least = size.min(*least);
        self.table.touch(slot);
    }

    /// The next association that has the room that was asked for, once.
    pub fn poll_room(&mut self) -> Option<AssociationId> {
        self.rooms.change(|it| it.ready.pop()).flatten()
    }

    /// Whether [`Endpoint::poll_room`] has something to give.
    pub(super) fn has_room_to_tell(&self) -> bool {
        !self.rooms.ready.is_empty()
    }

    /// Looks whether the association there has the room that was asked for.
    #[cold]
    #[inline(never)]
    pub(super) fn look_for_room(&mut self, slot: u32) {
        crate::work::count(1);
        let id = self.table.id_of(slot);
        let (association, buffer) = (self.table.get(slot), self.config.send_buffer);
        self.rooms.change(|rooms| {
            let Some(&size) = rooms.waiting.get(&id) else {
                return;
            };
            let waits =
                association.is_some_and(|it| !it.is_closed() && !has_much_room(it, size, buffer));
            if !waits {
                rooms.waiting.remove(&id);
                rooms.ready.push(id);
            }
        });
    }
}

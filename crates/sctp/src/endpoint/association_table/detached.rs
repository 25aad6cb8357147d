//! Detached associations in the table: a view of each, and a queue of events for them.

use std::net::IpAddr;

use super::{AssociationTable, Key};
use crate::association::Association;
use crate::association_id::AssociationId;
use crate::endpoint::association_event::{AssociationEvent, Input};
use crate::endpoint::association_view::AssociationView;

impl AssociationTable {
    /// Updates the lookup keys of a detached association according to its current view.
    #[cold]
    #[inline(never)]
    pub(super) fn index_detached(&mut self, slot: u32) {
        let Some(view) = self.view(slot).cloned() else {
            return;
        };
        self.forget_lost_keys(slot, |_, address| {
            view.address(address).is_some_and(|it| it.verified)
        });
        let port = view.remote_port;
        for it in view.addresses.iter().filter(|it| !it.disowned) {
            let address = it.remote;
            let tags = [view.local_tag, view.peer_tag];
            self.index_address(slot, Key { port, address }, it.verified, tags);
        }
    }

    /// Removes an address that belongs to another peer from the view, and notifies the association
    /// by `input`.
    #[cold]
    pub(super) fn disown_detached(&mut self, slot: u32, address: IpAddr, input: Input) {
        self.detached.change(|it| {
            if let Some(view) = it.views.get_mut(&slot) {
                view.disown(address);
            }
        });
        self.forward(slot, input);
    }

    /// Removes the association from its slot and stores `view` in its place.
    pub(in crate::endpoint) fn take_out(
        &mut self,
        slot: u32,
        view: AssociationView,
    ) -> Option<Box<Association>> {
        self.way = None;
        let association = self.slots.get_mut(slot)?.association.take()?;
        self.detached.make().views.insert(slot, view);
        Some(association)
    }

    /// View of the association in the slot, if it is detached.
    #[cold]
    #[inline(never)]
    pub(in crate::endpoint) fn view(&self, slot: u32) -> Option<&AssociationView> {
        self.detached.views.get(&slot)
    }

    /// Slot of a detached association with this identifier.
    pub(in crate::endpoint) fn detached_slot_of(&self, id: AssociationId) -> Option<u32> {
        let entry = self.slots.get(id.slot)?;
        (entry.generation == id.generation && self.view(id.slot).is_some()).then_some(id.slot)
    }

    /// Replaces the view of a detached association. The caller must index the association next.
    pub(in crate::endpoint) fn set_view(&mut self, slot: u32, view: AssociationView) {
        self.detached.make().views.insert(slot, view);
    }

    /// Removes a detached association completely.
    pub(in crate::endpoint) fn remove_detached(&mut self, slot: u32) {
        self.remove_keys(slot);
        let gone = self.detached.change(|it| it.views.remove(&slot)).flatten();
        if gone.is_some()
            && let Some(entry) = self.slots.get_mut(slot)
        {
            entry.generation = entry.generation.wrapping_add(1);
            self.free.make().push(slot);
        }
    }

    /// Number of events for detached associations that the driver has not polled.
    pub(in crate::endpoint) fn forwarded(&self) -> usize {
        self.detached.events.len()
    }

    /// Queues an event for a detached association.
    #[cold]
    #[inline(never)]
    pub(in crate::endpoint) fn forward(&mut self, slot: u32, input: Input) {
        if self.view(slot).is_some() {
            let event = AssociationEvent(input);
            let id = self.id_of(slot);
            self.detached.make().events.push_back((id, event));
        }
    }

    /// Next event for a detached association.
    pub(in crate::endpoint) fn next_forwarded(
        &mut self,
    ) -> Option<(AssociationId, AssociationEvent)> {
        self.detached.change(|it| it.events.pop_front()).flatten()
    }
}

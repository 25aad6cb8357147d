//! Output of associations: wakes users that wait for messages and events, and handles the events
//! that concern the driver.

use anabranch_sctp::{Association, AssociationId, Event, Interest, Output};
use anabranch_transport::Nanos;

use super::{DriverLocal, record_primary_sender};
use crate::deferred_wakeups::{DeferredWakeups, EVENT, PHASE, WRITERS};
use crate::endpoint_state::{AssociationEntry, EndpointShared, EndpointState, Phase};
use crate::event::log;
use crate::receipt::DeliveryError;
use crate::receive_queue::FairReceiveQueue;

impl DriverLocal {
    /// Examines the associations that have new output; messages and events remain queued for the
    /// users. Returns true if this may have created packets to send.
    pub(super) fn drain_output(
        &mut self,
        shared: &EndpointShared,
        state: &mut EndpointState,
        receive_queue: &mut FairReceiveQueue,
        now: Nanos,
    ) -> bool {
        let mut caused = false;
        while let Some((id, association)) = state.endpoint.poll_ready() {
            let is_new = !state.entries.contains_key(&id);
            let entry = state.entries.entry(id);
            let entry = entry.or_insert_with(|| {
                let entry = AssociationEntry::new(Phase::Up, 0, shared.span_of(id));
                tracing::debug!(parent: &entry.span, "a peer began an association");
                entry
            });
            let established = self.examine(now, id, association, entry, &mut state.deferred);
            let is_open = !association.is_closed();
            if let Some(resuming) = &mut state.resuming {
                match is_open {
                    true => resuming.supply(now, id, association),
                    false => resuming.end(id, association),
                }
            }
            // A peer whose key agreement failed is closed already, and is not offered to the
            // application.
            let is_offered = is_new && (established || is_open);
            let held = is_offered || entry.handles > 0 || state.waiting.contains(&id);
            if is_offered {
                register_incoming(state, id, now);
                caused = true;
            }
            if established {
                record_primary_sender(state, receive_queue, id);
            }
            if !held && is_open {
                state.close_without_handles(id, now);
                caused = true;
            }
        }
        caused
    }

    /// Examines the new output of one association; returns true if it reports that the association
    /// was established.
    fn examine(
        &mut self,
        now: Nanos,
        id: AssociationId,
        association: &mut Association,
        entry: &mut AssociationEntry,
        deferred: &mut DeferredWakeups,
    ) -> bool {
        let mut established = false;
        for event in association.unseen_events() {
            match event {
                // A user who is the key management exchanges messages in order to obtain keys.
                Event::Established { .. } | Event::KeysRequired(_) => {
                    tracing::info!(parent: &entry.span, "association up");
                    entry.phase = Phase::Up;
                    deferred.notify(&entry.signals, PHASE);
                    established = true;
                }
                Event::Closed(reason) => {
                    tracing::info!(parent: &entry.span, ?reason, "association ended");
                    if self.ended.is_empty() {
                        self.since = now;
                    }
                    self.ended.push((id, reason.clone()));
                }
                event => {
                    if matches!(event, Event::Restarted { .. }) {
                        deferred.answer(entry.receipts.answer_all(&DeliveryError::Restarted));
                    }
                    log(&entry.span, event);
                    deferred.notify(&entry.signals, EVENT);
                }
            }
        }
        while let Some(Output::Event(Event::Receipt { number, delivery })) =
            association.poll_output(Interest::RECEIPTS)
        {
            deferred.answer(entry.receipts.answer(number, delivery));
        }
        if association.poll_output(Interest::WRITABLE).is_some() {
            deferred.notify(&entry.signals, WRITERS);
        }
        deferred.wake_readers(&entry.signals);
        established
    }
}

/// Creates the entry of an association that a peer has started, and queues it for `accept`.
fn register_incoming(state: &mut EndpointState, id: AssociationId, now: Nanos) {
    state.watch(id);
    if !state.accepts {
        // The endpoint stopped accepting after the handshake had begun.
        return state.close_without_handles(id, now);
    }
    state.waiting.push_back(id);
    state.listen();
    state.deferred.notify_acceptable();
}

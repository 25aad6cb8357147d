//! Peer restart: keeps the unread data of the previous association (RFC 9260 §5.2.4.1).
//! A peer may restart any number of times, at a cost of about 100 bytes each. A restart should
//! therefore not scan the kept data. Data that cannot be kept is released first, one step per item,
//! and the remaining data is moved as a whole.

use std::collections::BTreeSet;

use super::ready_queue::ReadyQueue;
use super::window::ReceiveWindow;
use super::{ReceivedPart, Receiver};

impl Receiver {
    /// Moves the unread data of `former`, the receiver before the restart, to this receiver. The
    /// data continues to occupy the buffer, so that a peer cannot multiply the buffer by restarts.
    /// Data of messages that can no longer be completed is dropped.
    pub(crate) fn take_over_unread(&mut self, former: &mut Self) {
        former.let_go_of_waiting();
        while former.poll_key_message().is_some() {}
        if !self.window.has_memory_for_all(&former.window) {
            former.drop_last_unread(&self.window);
        }
        self.window.take_over_all(&former.window);
        self.ready = std::mem::take(&mut former.ready);
        self.ready.restart_count(former.statistics.messages);
        std::mem::swap(&mut self.assembly, &mut former.assembly);
    }

    /// Releases all data that is not readable, and the readable parts of messages that will not be
    /// completed.
    fn let_go_of_waiting(&mut self) {
        while let Some(message) = self.order.drop_highest() {
            for part in message.payload.parts() {
                self.let_go(message.stream, part.len());
            }
        }
        let mut endless: BTreeSet<u16> = self.ready.streams_of_parts().collect();
        while let Some(given_up) = self.reassembly.drop_first() {
            endless.extend(self.forget_pieces(given_up).map(|it| it.stream));
        }
        endless.into_iter().for_each(|it| self.forget_endless(it));
    }

    /// Releases readable messages from the end until the remaining data fits into the receive
    /// window `next`. If the last part of a message is released, its other parts are released as
    /// well. The data can exceed the window only if a single message was larger than the buffer, or
    /// if the buffer is smaller now.
    #[cold]
    fn drop_last_unread(&mut self, next: &ReceiveWindow) {
        let (mut kept, mut endless) = (ReadyQueue::default(), BTreeSet::new());
        for readable in std::mem::take(&mut self.ready).drain(..).rev() {
            let ReceivedPart {
                stream,
                begins,
                ends,
                ..
            } = readable.part;
            if readable.is_nothing() {
                continue;
            }
            let fits = next.has_memory_for_all(&self.window);
            if ends {
                endless.remove(&stream);
            }
            if fits && !endless.contains(&stream) {
                kept.push_front(readable);
                continue;
            }
            match begins {
                true => endless.remove(&stream),
                false => endless.insert(stream),
            };
            self.is_taken(&readable.part, readable.bytes);
        }
        self.ready = kept;
        endless.iter().for_each(|it| self.assembly.forget(*it));
    }
}

#[cfg(test)]
mod tests;

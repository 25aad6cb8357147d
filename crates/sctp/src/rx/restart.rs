//! A peer that restarts: what the user has not read of its former life stays (RFC 9260 §5.2.4.1).
//!
//! A peer may restart as often as it likes, each time by some hundred bytes. So what stays is not walked: all that cannot stay is let go of first, which is
//! done once for each piece of it, and the rest goes over as one.

use std::collections::BTreeSet;

use super::ready_queue::ReadyQueue;
use super::window::ReceiveWindow;
use super::{ReceivedPart, Receiver};

impl Receiver {
    /// Takes over what the user has not read of the peer's former life. It counts as before: a peer that restarts again and
    /// again has the one receive buffer. Of messages that will never end nothing is kept.
    pub(crate) fn inherit(&mut self, former: &mut Self) {
        former.let_go_of_waiting();
        if !self.window.has_memory_for_all(&former.window) {
            former.drop_last_unread(&self.window);
        }
        self.window.take_over_all(&former.window);
        self.ready = std::mem::take(&mut former.ready);
        self.ready.count_anew(former.statistics.messages);
        std::mem::swap(&mut self.assembly, &mut former.assembly);
    }

    /// Lets go of all that cannot be read, and of what can be of messages that will not end.
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
        // Of those nothing is left, and what was gathered of a stream now is of an earlier message.
        for forgotten in self.drop_unfinished() {
            endless.remove(&forgotten.stream);
        }
        self.drop_waiting();
        endless.into_iter().for_each(|it| self.forget_endless(it));
    }

    /// Lets go of the last that can be read until the rest has room in the buffer of the `next` life, and of what is left of messages whose ends went with
    /// it. So much is held only where a message was alone, or where the buffer is smaller now.
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

//! Messages that an association does not deliver: it ends, or the peer begins it again, before they were acknowledged.
//!
//! Their user gets each of them back, whole (RFC 9260 §11.2 B; SCTP_SEND_FAILED_EVENT, RFC 6458 §6.1.11). The beginning of a message may have been
//! acknowledged and let go of before its end was: such parts are kept until the end is acknowledged, too. They are slices of what the user gave, as
//! the other parts are, so that this takes no further memory for user data.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};

use super::receipts::Delivery;
use super::send_queue::{Fragment, Unsent};
use super::{Outstanding, Sender, SendingHalf};
use crate::partial::MessageId;

/// A message that was not acknowledged: see [`UndeliveredMessage`](crate::UndeliveredMessage).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Returned {
    pub stream: Option<u16>,
    pub ppid: u32,
    pub unordered: bool,
    pub payload: Bytes,
    pub context: u32,
    pub sent: bool,
}

/// The parts of messages that the cumulative point has passed, whose ends it has not.
#[derive(Debug, Default)]
pub(super) struct Passed {
    /// Of the only one there can be.
    parts: Vec<Bytes>,
    /// Of each, where messages are interleaved.
    each: Option<BTreeMap<MessageId, Vec<Bytes>>>,
}

/// Parts that there is room for while there are none.
const KEPT: usize = 64;

impl Passed {
    /// Messages are interleaved from now on, or are not.
    pub fn interleave(&mut self, on: bool) {
        self.each = on.then(BTreeMap::new);
    }

    /// The cumulative point passes a chunk.
    #[inline(always)]
    pub fn pass(&mut self, fragment: Fragment) {
        if self.each.is_some() {
            self.pass_interleaved(fragment);
        } else if !fragment.ending {
            self.parts.push(fragment.user_data);
        } else if !self.parts.is_empty() {
            self.parts.clear();
            if self.parts.capacity() > KEPT {
                self.parts.shrink_to(KEPT);
            }
        }
    }

    #[inline(never)]
    fn pass_interleaved(&mut self, fragment: Fragment) {
        let Some(each) = &mut self.each else { return };
        if fragment.ending {
            each.remove(&fragment.message());
        } else {
            let parts = each.entry(fragment.message()).or_default();
            parts.push(fragment.user_data);
        }
    }

    /// Those of a message.
    fn take(&mut self, message: MessageId) -> Vec<Bytes> {
        match &mut self.each {
            None => std::mem::take(&mut self.parts),
            Some(each) => each.remove(&message).unwrap_or_default(),
        }
    }
}

/// A message of which something was sent, as far as its parts are put together.
struct Begun {
    message: MessageId,
    ppid: u32,
    context: u32,
    parts: Vec<Bytes>,
}

/// Those that were begun, in the order of their first chunks that are not acknowledged.
#[derive(Default)]
struct AllBegun {
    places: BTreeMap<MessageId, usize>,
    all: Vec<Begun>,
}

impl AllBegun {
    /// The next part of a message, which `passed` may have the first ones of.
    fn add(&mut self, part: Fragment, passed: &mut Passed) {
        let message = part.message();
        let place = *self.places.entry(message).or_insert_with(|| {
            let parts = match part.beginning {
                true => Vec::new(),
                false => passed.take(message),
            };
            self.all.push(Begun {
                message,
                ppid: part.ppid,
                context: part.context,
                parts,
            });
            self.all.len() - 1
        });
        self.all[place].parts.push(part.user_data);
    }
}

impl Begun {
    fn whole(self) -> Returned {
        let (stream, unordered, _) = self.message;
        Returned {
            stream: Some(stream),
            ppid: self.ppid,
            unordered,
            payload: join(self.parts),
            context: self.context,
            sent: true,
        }
    }
}

/// The parts of a message as one; a copy, if there are several.
fn join(mut parts: Vec<Bytes>) -> Bytes {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let mut whole = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
    parts.iter().for_each(|part| whole.extend_from_slice(part));
    whole.freeze()
}

impl Unsent {
    fn undelivered(self) -> Returned {
        Returned {
            stream: self.stream,
            ppid: self.message.ppid,
            unordered: self.message.unordered,
            payload: self.message.payload,
            context: self.context,
            sent: false,
        }
    }
}

impl Sender {
    /// Forgets what is queued on streams from `streams` on, which the peer did not agree to; returns how many messages.
    pub(super) fn forget_streams_from(&mut self, streams: u16) -> usize {
        let forgotten = self.queue.forget_streams_from(streams);
        let receipts = forgotten.iter().filter_map(|it| it.receipt);
        self.answer_all(receipts, Delivery::NoSuchStream);
        let count = forgotten.len();
        if count > 0 {
            self.not_granted.make().extend(forgotten);
        }
        count
    }
}

impl SendingHalf {
    /// Messages on streams that the peer did not grant, once.
    pub(crate) fn take_not_granted(&mut self) -> impl Iterator<Item = Returned> {
        let unsent = self.get_mut().map(|it| it.not_granted.take());
        let unsent = unsent.unwrap_or_default();
        unsent.into_iter().map(Unsent::undelivered)
    }

    /// Ends it: all that it holds is not delivered any more. Those that were given up before are left out, which were told.
    pub(crate) fn take_undelivered(&mut self) -> impl Iterator<Item = Returned> + use<> {
        let (mut begun, mut unsent) = (AllBegun::default(), Vec::new());
        let sender = self.get_mut().filter(|it| !it.is_drained());
        if let Some(sender) = sender {
            let outstanding = std::mem::replace(
                &mut sender.outstanding,
                Outstanding::new(sender.initial_tsn),
            );
            let (chunks, mut passed) = outstanding.into_parts();
            chunks.for_each(|it| begun.add(it, &mut passed));
            for rest in sender.queue.take_begun_rests() {
                match rest.beginning {
                    true => unsent.push(Unsent::of(rest)),
                    false => begun.add(rest, &mut passed),
                }
            }
            // In the order in which they would have been sent; then those that wait behind a reset.
            unsent.extend(std::iter::from_fn(|| sender.queue.drop_next()));
            unsent.extend(sender.queue.withdraw());
        }
        let begun = begun.all.into_iter().map(Begun::whole);
        begun.chain(unsent.into_iter().map(Unsent::undelivered))
    }
}

#[cfg(test)]
mod tests;

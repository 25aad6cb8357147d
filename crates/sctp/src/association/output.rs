//! Output of an association to its user: messages and events in one common order, and notifications
//! about sent data and free buffer space.

use anabranch_wire::cause::Cause;

use super::Association;
use crate::event::{CloseReason, Event};
use crate::output::{Interest, Output};
use crate::rx::{ReceivedMessage, ReceivedPart, Receiver, TooLong};

impl Association {
    /// Next output in which the reader is interested, in the order of delivery: an event follows
    /// the messages that were readable before it occurred, and precedes later messages. Outputs of
    /// other kinds stay queued. Taking a message opens the receive window. Outputs can be read
    /// after the association was closed.
    pub fn poll_output(&mut self, interest: Interest) -> Option<Output> {
        if self.dtls.is_some() && !self.may_read() {
            return None;
        }
        if interest.writable() && self.events.take_writable() {
            return Some(Output::Writable);
        }
        if interest.sent()
            && let Some(stream) = self.tx.get_mut().and_then(|it| it.next_sent())
        {
            return Some(Output::Sent { stream });
        }
        if let Some(stream) = interest.stream() {
            return self.poll_stream(stream, interest);
        }
        if let Some(event) = self.poll_event_in_order(interest) {
            return Some(Output::Event(event));
        }
        if interest.messages() {
            let message = self.poll_message_before(interest).map(Output::Message);
            // There is no message if an event precedes it, or if it was too long and has closed the
            // association. Return the event instead.
            return message.or_else(|| self.poll_event_in_order(interest).map(Output::Event));
        }
        if interest.parts() {
            return self.poll_part().map(Output::of_part);
        }
        None
    }

    /// Next message (RFC 9260 §11.1.7), even if events precede it. Messages can be read after the
    /// association was closed.
    ///
    /// This method reassembles a message larger than the receive buffer from its parts, outside of
    /// the buffer. A message larger than [`Config::max_message`](crate::Config::max_message) ends
    /// the association with [`CloseReason::MessageTooLong`]; such messages should be read by
    /// [`Association::poll_part`].
    pub fn poll_message(&mut self) -> Option<ReceivedMessage> {
        if self.dtls.is_some() && !self.may_read() {
            return None;
        }
        let rx = self.rx.as_deref_mut()?;
        if let Some(message) = rx.poll_whole() {
            return Some(message);
        }
        if rx.has_nothing() {
            self.readable_notified = false;
            return None;
        }
        self.poll_assembled(|_| false)
    }

    /// Like [`Self::poll_message`], if no complete message is queued.
    #[inline(never)]
    fn poll_assembled(&mut self, stops: impl Fn(u32) -> bool) -> Option<ReceivedMessage> {
        self.assembled(|rx| rx.poll_assembled(&stops))
    }

    /// Returns the message from `next`. If a message is too long, aborts the association and calls
    /// `next` again.
    fn assembled(
        &mut self,
        next: impl Fn(&mut Receiver) -> Result<Option<ReceivedMessage>, TooLong>,
    ) -> Option<ReceivedMessage> {
        let message = loop {
            match next(self.rx.as_deref_mut()?) {
                Ok(message) => break message,
                // In a closed association, later messages stay readable and no ABORT is sent.
                Err(TooLong) if self.is_closed() => {}
                Err(TooLong) => {
                    let most = self.config.max_message;
                    self.abort_with(Cause::OutOfResource, CloseReason::MessageTooLong { most });
                }
            }
        };
        if message.is_none() {
            self.readable_notified = false;
        }
        message
    }

    /// Next message, or part of an incomplete message (partial flag, RFC 9260 §11.1.7, §6.9), even
    /// if events precede it. This method is for users that process data before a message is
    /// complete, or accept messages of any length.
    ///
    /// Parts of one message are returned in order. Between the parts no other data of the same
    /// stream is returned, but data of other streams may be. Messages are returned in parts if they
    /// fill the receive buffer, or are longer than
    /// [`Config::partial_delivery_point`](crate::Config::partial_delivery_point).
    /// [`Event::PartialDeliveryAborted`] reports a message that will not be completed.
    ///
    /// Calls may be mixed with [`Association::poll_message`], which skips the remaining parts of a
    /// message whose first part this method has returned. If `poll_message` has collected data of a
    /// message, that data is the first part.
    #[inline]
    pub fn poll_part(&mut self) -> Option<ReceivedPart> {
        if self.dtls.is_some() && !self.may_read() {
            return None;
        }
        let rx = self.rx.as_deref_mut()?;
        if rx.has_no_part() {
            self.readable_notified = false;
            return None;
        }
        self.next_part()
    }

    #[inline(never)]
    fn next_part(&mut self) -> Option<ReceivedPart> {
        let part = self.rx.as_deref_mut()?.poll_part();
        if part.is_none() {
            self.readable_notified = false;
        }
        part
    }

    /// Events since the last call, except [`Event::Receipt`]. The events stay queued: a driver can
    /// examine them here, and the user reads them in order later.
    pub fn unseen_events(&mut self) -> impl Iterator<Item = &Event> {
        self.events.unseen()
    }

    /// Requests [`Output::Writable`], which is returned once half of the send buffer is free and
    /// there is space for a message of `size` bytes, or the association is closed. If several sizes
    /// were requested, the smallest counts. The caller should drain `poll_transmit` afterwards.
    pub fn wait_writable(&mut self, size: usize) {
        self.events.want_room(size);
    }

    /// Requests [`Output::Sent`], which lists the streams of sent data, for users that track the
    /// unsent data of each stream.
    pub fn report_sent(&mut self) {
        self.events.report_sent();
        self.sender().report_sent();
    }

    /// Next event, even if messages precede it.
    #[inline]
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        if self.withholds_events() {
            return None;
        }
        self.events.pop_front()
    }

    /// Whether [`Self::poll_event`] returns an event.
    #[inline(always)]
    pub(crate) fn has_event(&self) -> bool {
        !self.events.is_empty() && !self.withholds_events()
    }

    /// Whether there is new output about which the driver was not notified.
    #[inline(always)]
    pub(crate) fn has_news(&self) -> bool {
        self.events.has_news() && !self.withholds_events()
    }

    /// Clears the pending notification of the driver; returns whether there was one.
    pub(crate) fn take_news(&mut self) -> bool {
        !self.withholds_events() && self.events.take_news()
    }

    /// Called after packets were sent. Checks whether a requested [`Output::Writable`] or
    /// [`Output::Sent`] is now due.
    #[inline(always)]
    pub(crate) fn note_sending(&mut self) {
        if self.events.follows_sending() {
            self.look_for_room();
        }
    }

    #[cold]
    #[inline(never)]
    fn look_for_room(&mut self) {
        if self.tx.get().is_some_and(|it| it.has_sent()) {
            self.events.note_news();
        }
        if let Some(size) = self.events.wanted_room() {
            crate::work_counter::count(1);
            if self.is_closed() || self.has_much_room(size) {
                self.events.has_room();
            }
        }
    }

    /// Whether half of the send buffer is free, and there is space for a message of `size` bytes.
    /// Half of the buffer must be free, so that the user does not wake up for every packet. Queued
    /// and unacknowledged messages together may use twice the buffer
    /// ([`SendBuffer::used`](super::SendBuffer::used)).
    fn has_much_room(&self, size: usize) -> bool {
        let buffer = self.config.send_buffer;
        let (queued, held) = (self.send_buffer().unsent(), self.send_buffer().used());
        let most_queued = (buffer / 2).min(buffer.saturating_sub(size));
        let most_held = (buffer + buffer / 2).min((2 * buffer).saturating_sub(size));
        queued <= most_queued && (held <= most_held || (queued == 0 && held <= buffer))
    }

    /// Next event in which the reader is interested, if no message of interest precedes it.
    #[inline]
    fn poll_event_in_order(&mut self, interest: Interest) -> Option<Event> {
        if self.events.is_empty() {
            return None;
        }
        self.next_event(interest)
    }

    #[inline(never)]
    fn next_event(&mut self, interest: Interest) -> Option<Event> {
        if !interest.events() {
            return interest.receipts().then(|| self.events.pop_receipt())?;
        }
        let reads = interest.messages() || interest.parts() || interest.stream().is_some();
        let preceding = match (reads, &self.rx) {
            (true, Some(rx)) => rx.preceding_events(),
            _ => None,
        };
        let receipts = interest.receipts();
        if preceding.is_some_and(|count| !self.events.has_before(count, receipts)) {
            return None;
        }
        match receipts {
            true => self.events.pop_front(),
            false => self.events.pop_event(),
        }
    }

    /// Next complete message, if no event of interest precedes it.
    fn poll_message_before(&mut self, interest: Interest) -> Option<ReceivedMessage> {
        if !interest.events() || self.events.is_empty() {
            return self.poll_message();
        }
        // A complete message at the front of the ready queue precedes all events.
        if let Some(message) = self.rx.as_deref_mut()?.poll_whole() {
            return Some(message);
        }
        let first = self.events.first_number(interest.receipts());
        self.poll_assembled(|preceding| {
            first.is_some_and(|first| crate::event_queue::is_before(first, preceding))
        })
    }

    /// Like [`Self::poll_output`], for an interest whose messages are [restricted](Interest::on) to
    /// `stream`.
    #[cold]
    fn poll_stream(&mut self, stream: u16, interest: Interest) -> Option<Output> {
        if interest.events() {
            let preceding = self
                .rx
                .as_ref()
                .and_then(|it| it.preceding_events_on(stream));
            let aborted = self.events.pop_where(preceding, |event| {
                matches!(event, Event::PartialDeliveryAborted { stream: it, .. } if *it == stream)
            });
            let event = aborted.or_else(|| self.poll_event_in_order(interest));
            if let Some(event) = event {
                return Some(Output::Event(event));
            }
        }
        if interest.messages() {
            let message = self.assembled(|rx| rx.poll_message_on(stream));
            return message.map(Output::Message);
        }
        if !interest.parts() {
            return None;
        }
        let part = self.rx.as_deref_mut()?.poll_part_on(stream);
        if part.is_none() {
            self.readable_notified = false;
        }
        part.map(Output::of_part)
    }
}

impl Output {
    #[inline]
    fn of_part(part: ReceivedPart) -> Self {
        if part.begins && part.ends {
            return Self::Message(part.into_message());
        }
        Self::MessagePart(part)
    }
}

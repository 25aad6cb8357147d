//! What an association gives its user: messages and events in one order, and what was sent or can be.

use anabranch_wire::cause::Cause;

use super::Association;
use crate::event::{CloseReason, Event};
use crate::output::{Interest, Output};
use crate::rx::{ReceivedMessage, ReceivedPart, TooLong};

impl Association {
    /// The next output in which the reader is interested, in the order of delivery: an event comes behind the messages that could be read
    /// before it occurred, and before those that could be later. What others are interested in stays. Taking a message opens the receive
    /// window. Outputs can be taken after the association closed.
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
            // An event may have stopped it, or be the end that a message too long has brought about.
            return message.or_else(|| self.poll_event_in_order(interest).map(Output::Event));
        }
        if interest.parts() {
            return self.poll_part().map(Output::of_part);
        }
        None
    }

    /// The next message (RFC 9260 §11.1.7), also after the association closed, whatever events are before it.
    ///
    /// One too long for the receive buffer is put together of parts here, outside of it. One longer than
    /// [`Config::max_message`](crate::Config::max_message) ends the association with [`CloseReason::MessageTooLong`]; to read such, use
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
            self.readable_told = false;
            return None;
        }
        self.poll_assembled(|_| false)
    }

    /// As [`Self::poll_message`], where no message waits whole.
    #[inline(never)]
    fn poll_assembled(&mut self, stops: impl Fn(u32) -> bool) -> Option<ReceivedMessage> {
        let message = match self.rx.as_deref_mut()?.poll_assembled(stops) {
            Ok(message) => message,
            Err(TooLong) => {
                let most = self.config.max_message;
                self.abort_with(Cause::OutOfResource, CloseReason::MessageTooLong { most });
                None
            }
        };
        if message.is_none() {
            self.readable_told = false;
        }
        message
    }

    /// The next message, or part of a message whose end has not come (RFC 9260 §11.1.7 and its partial flag, §6.9), whatever events are
    /// before it: for who can use the beginning before the end is there, or takes messages of any length.
    ///
    /// Parts of one message come in order; until its end nothing else of its stream does, but whole messages and parts of
    /// other streams come between. Which messages come in parts: those that fill the receive buffer, and those longer
    /// than [`Config::partial_delivery_point`](crate::Config::partial_delivery_point). Where one will not end,
    /// [`Event::PartialDeliveryAborted`] tells.
    ///
    /// May be mixed with [`Association::poll_message`], which skips the rest of a message that was begun here; what that has
    /// gathered of a message is the first part here.
    #[inline]
    pub fn poll_part(&mut self) -> Option<ReceivedPart> {
        if self.dtls.is_some() && !self.may_read() {
            return None;
        }
        let rx = self.rx.as_deref_mut()?;
        if rx.has_no_part() {
            self.readable_told = false;
            return None;
        }
        self.next_part()
    }

    #[inline(never)]
    fn next_part(&mut self) -> Option<ReceivedPart> {
        let part = self.rx.as_deref_mut()?.poll_part();
        if part.is_none() {
            self.readable_told = false;
        }
        part
    }

    /// The events since the last call, without receipts. They stay in the output: for a driver that has to act on them, while its users
    /// read them in order.
    pub fn unseen_events(&mut self) -> impl Iterator<Item = &Event> {
        self.events.unseen()
    }

    /// [`Output::Writable`] comes once there is much room to send (half of the send buffer) and room for a message of `size` bytes, or the
    /// association is closed. Of several wishes the smallest counts. Afterwards drain `poll_transmit`.
    pub fn wait_writable(&mut self, size: usize) {
        self.events.want_room(size);
    }

    /// [`Output::Sent`] tells of which streams data is sent from now on: for who keeps account of what waits for each.
    pub fn report_sent(&mut self) {
        self.events.report_sent();
        self.sender().report_sent();
    }

    /// The next event, whatever messages are before it.
    #[inline]
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        if self.withholds_events() {
            return None;
        }
        self.events.pop_front()
    }

    /// Whether there is output that the driver has not been told of.
    #[inline(always)]
    pub(crate) fn has_news(&self) -> bool {
        self.events.has_news() && !self.withholds_events()
    }

    /// The driver is told; whether there was news.
    pub(crate) fn take_news(&mut self) -> bool {
        !self.withholds_events() && self.events.take_news()
    }

    /// It was asked what it sends: users may wait for that.
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
            crate::work::count(1);
            if self.is_closed() || self.has_much_room(size) {
                self.events.has_room();
            }
        }
    }

    /// Whether there is much room, not only that for the next packet: half of the buffer, and as much as a message of `size` bytes has to
    /// have. Messages may hold twice the buffer until they are acknowledged ([`Association::held_to_send`]).
    fn has_much_room(&self, size: usize) -> bool {
        let buffer = self.config.send_buffer;
        let (queued, held) = (self.buffered(), self.held_to_send());
        let most_queued = (buffer / 2).min(buffer.saturating_sub(size));
        let most_held = (buffer + buffer / 2).min((2 * buffer).saturating_sub(size));
        queued <= most_queued && (held <= most_held || (queued == 0 && held <= buffer))
    }

    /// The next event of interest, if no message of interest comes before it.
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

    /// The next whole message, if no event of interest comes before it.
    fn poll_message_before(&mut self, interest: Interest) -> Option<ReceivedMessage> {
        if !interest.events() || self.events.is_empty() {
            return self.poll_message();
        }
        // It is the first, and no event is before it.
        if let Some(message) = self.rx.as_deref_mut()?.poll_whole() {
            return Some(message);
        }
        let first = self.events.first_number(interest.receipts());
        self.poll_assembled(|preceding| {
            first.is_some_and(|first| crate::event_queue::is_before(first, preceding))
        })
    }

    /// The next output of one stream.
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
        if !interest.messages() && !interest.parts() {
            return None;
        }
        let part = self.rx.as_deref_mut()?.poll_part_on(stream);
        if part.is_none() {
            self.readable_told = false;
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

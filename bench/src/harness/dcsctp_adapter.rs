//! Adapter for `dcsctp`, whose packets are vectors. No logger is installed.

use std::collections::VecDeque;
use std::error::Error;
use std::time::Duration;

use super::super::{Conditions, End};
use super::stack;
use super::stack::api::{
    DcSctpSocket, Message, Options, PpId, SendOptions, SocketEvent, SocketTime, StreamId,
    ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_LOWER_LAYER_DTLS,
    ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_NONE,
};
use anabranch_transport::Nanos;
use bytes::Bytes;

/// One end of an association, with or without CRC32c.
pub struct DcSctp<const CHECKSUM: bool> {
    socket: Box<dyn DcSctpSocket>,
    up: bool,
    send_buffer: usize,
    message: usize,
    options: SendOptions,
    /// Time of the last call of the stack's `advance`.
    now: Nanos,
}

/// Options of a socket.
pub fn options<const CHECKSUM: bool>(conditions: &Conditions) -> Options {
    Options {
        mtu: conditions.packet,
        max_message_size: conditions.message,
        max_receiver_window_buffer_size: conditions.window,
        max_send_buffer_size: conditions.window,
        per_stream_send_queue_limit: conditions.window,
        announced_maximum_incoming_streams: conditions.streams,
        announced_maximum_outgoing_streams: conditions.streams,
        disable_checksum_verification: !CHECKSUM,
        zero_checksum_alternate_error_detection_method: if CHECKSUM {
            ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_NONE
        } else {
            ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_LOWER_LAYER_DTLS
        },
        ..Options::default()
    }
}

impl<const CHECKSUM: bool> DcSctp<CHECKSUM> {
    /// Passes the time to the stack, if it has advanced.
    fn advance(&mut self, now: Nanos) {
        if self.now != now {
            self.now = now;
            let time = SocketTime::zero() + Duration::from_nanos(now);
            self.socket.advance_time(time);
        }
    }
}

impl<const CHECKSUM: bool> End for DcSctp<CHECKSUM> {
    type Packet = Vec<u8>;
    type Message = Message;

    fn pair(conditions: &Conditions) -> Result<[Self; 2], Box<dyn Error>> {
        if conditions.streams != 1 {
            return Err("this contestant has one stream".into());
        }
        let options = options::<CHECKSUM>(conditions);
        let end = |name| Self {
            socket: stack::new_socket(name, &options),
            up: false,
            send_buffer: conditions.window,
            message: conditions.message,
            now: 0,
            options: SendOptions::default(),
        };
        let mut ends = [end("a"), end("z")];
        ends[0].socket.connect();
        Ok(ends)
    }

    fn is_up(&self) -> bool {
        self.up
    }

    fn fill<'a>(
        &mut self,
        _: Nanos,
        source: &mut impl FnMut() -> Option<(u16, &'a Bytes)>,
    ) -> Result<(), Box<dyn Error>> {
        // The stack reports the buffered bytes per stream; here all messages use one stream.
        let buffered = self.socket.buffered_amount(StreamId(0));
        let mut room = self.send_buffer.saturating_sub(buffered);
        let mut messages = Vec::new();
        while room >= self.message
            && let Some((stream, payload)) = source()
        {
            messages.push(Message::new(StreamId(stream), PpId(0), payload.to_vec()));
            room -= self.message;
        }
        // Unlike `send`, `send_many` bundles several messages in a packet.
        let sent = self.socket.send_many(messages, &self.options);
        sent.map_err(|error| format!("{error:?}"))?;
        Ok(())
    }

    fn take(&mut self, now: Nanos, packet: Vec<u8>) {
        self.advance(now);
        self.socket.handle_input(&packet);
    }

    fn give(&mut self, now: Nanos, wire: &mut VecDeque<Vec<u8>>) {
        self.advance(now);
        while let Some(event) = self.socket.poll_event() {
            match event {
                SocketEvent::SendPacket(packet) => wire.push_back(packet),
                SocketEvent::OnConnected() => self.up = true,
                _ => (),
            }
        }
    }

    fn read(
        &mut self,
        accept: &mut impl FnMut(Message) -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        while let Some(message) = self.socket.get_next_message() {
            accept(message)?;
        }
        Ok(())
    }

    fn length(message: &Message) -> usize {
        message.payload.len()
    }

    fn contents(message: Message) -> Vec<u8> {
        message.payload
    }

    fn deadline(&self) -> Option<Nanos> {
        let after = self.socket.poll_timeout() - SocketTime::zero();
        u64::try_from(after.as_nanos()).ok()
    }

    fn expire(&mut self, now: Nanos) {
        self.advance(now);
    }
}

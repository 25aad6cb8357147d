//! The crate `dcsctp`. It takes and gives vectors; no logger is installed.

use std::collections::VecDeque;
use std::error::Error;
use std::time::Duration;

use anabranch_transport::Nanos;
use bytes::Bytes;
use dcsctp::api::{
    DcSctpSocket, Message, Options, PpId, SendOptions, SocketEvent, SocketTime, StreamId,
    ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_LOWER_LAYER_DTLS,
    ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_NONE,
};

use super::{Conditions, End};

/// One end, with or without CRC32c.
pub struct DcSctp<const CHECKSUM: bool> {
    socket: Box<dyn DcSctpSocket>,
    up: bool,
    send_buffer: usize,
    options: SendOptions,
}

impl<const CHECKSUM: bool> End for DcSctp<CHECKSUM> {
    type Packet = Vec<u8>;
    type Message = Message;

    fn pair(conditions: &Conditions) -> Result<[Self; 2], Box<dyn Error>> {
        let options = Options {
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
        };
        let end = |name| Self {
            socket: dcsctp::new_socket(name, &options),
            up: false,
            send_buffer: conditions.window,
            options: SendOptions::default(),
        };
        let mut ends = [end("a"), end("z")];
        ends[0].socket.connect();
        Ok(ends)
    }

    fn is_up(&self) -> bool {
        self.up
    }

    fn send(&mut self, _: Nanos, stream: u16, payload: &Bytes) -> bool {
        let stream = StreamId(stream);
        if self.socket.buffered_amount(stream) + payload.len() > self.send_buffer {
            return false;
        }
        let message = Message::new(stream, PpId(0), payload.to_vec());
        self.socket.send(message, &self.options).is_ok()
    }

    fn take(&mut self, now: Nanos, packet: Vec<u8>) {
        self.socket.advance_time(time(now));
        self.socket.handle_input(&packet);
    }

    fn give(&mut self, now: Nanos, wire: &mut VecDeque<Vec<u8>>) {
        self.socket.advance_time(time(now));
        while let Some(event) = self.socket.poll_event() {
            match event {
                SocketEvent::SendPacket(packet) => wire.push_back(packet),
                SocketEvent::OnConnected() => self.up = true,
                _ => (),
            }
        }
    }

    fn read(&mut self) -> Option<Message> {
        self.socket.get_next_message()
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
        self.socket.advance_time(time(now));
    }
}

fn time(now: Nanos) -> SocketTime {
    SocketTime::zero() + Duration::from_nanos(now)
}

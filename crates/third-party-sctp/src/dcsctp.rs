//! Adapter of the crate `dcsctp`, which counts time from 0 and represents packets as vectors.

use std::collections::VecDeque;
use std::time::Duration;

use anabranch_transport::Nanos;
use bytes::Bytes;
use dcsctp::api::{
    DcSctpSocket, Message, Options, PpId, SendOptions, SocketEvent, SocketTime, StreamId,
};

use crate::adapter::{Adapter, PORT, Role, StackState};
use crate::config::Config;

struct DcSctp {
    socket: Box<dyn DcSctpSocket>,
    streams: u16,
    options: SendOptions,
    packets: VecDeque<Bytes>,
    up: bool,
    failure: Option<String>,
}

pub(crate) fn open(
    config: &Config,
    packet: usize,
    side: Role,
    now: Nanos,
) -> Result<Box<dyn Adapter>, String> {
    let buffer = config.receive_buffer as usize;
    let options = Options {
        local_port: PORT,
        remote_port: PORT,
        mtu: packet,
        max_message_size: buffer,
        max_receiver_window_buffer_size: buffer,
        // The user of this crate should decide how much data to buffer. The limit of the stack is
        // therefore raised.
        max_send_buffer_size: usize::MAX / 2,
        per_stream_send_queue_limit: usize::MAX / 2,
        announced_maximum_incoming_streams: config.streams,
        announced_maximum_outgoing_streams: config.streams,
        ..Options::default()
    };
    let name = match side {
        Role::Initiator => "a",
        Role::Responder => "z",
    };
    let mut made = DcSctp {
        socket: dcsctp::new_socket(name, &options),
        streams: config.streams,
        options: SendOptions {
            unordered: config.unordered,
            ..SendOptions::default()
        },
        packets: VecDeque::new(),
        up: false,
        failure: None,
    };
    made.advance(now);
    if side == Role::Initiator {
        made.socket.connect();
        made.drain();
    }
    Ok(Box::new(made))
}

impl DcSctp {
    fn advance(&mut self, now: Nanos) {
        self.socket
            .advance_time(SocketTime::zero() + Duration::from_nanos(now));
    }

    /// Processes the events of the socket.
    fn drain(&mut self) {
        while let Some(event) = self.socket.poll_event() {
            match event {
                SocketEvent::SendPacket(packet) => self.packets.push_back(packet.into()),
                SocketEvent::OnConnected() => self.up = true,
                SocketEvent::OnClosed() => self.up = false,
                SocketEvent::OnAborted(kind, text) => {
                    self.up = false;
                    self.failure = Some(format!("{kind:?}: {text}"));
                }
                _ => (),
            }
        }
    }
}

impl Adapter for DcSctp {
    fn take(&mut self, now: Nanos, packet: Bytes) {
        self.advance(now);
        self.socket.handle_input(&packet);
        self.drain();
    }

    fn give(&mut self, now: Nanos) -> Option<Bytes> {
        if self.packets.is_empty() {
            self.advance(now);
            self.drain();
        }
        self.packets.pop_front()
    }

    fn is_up(&self) -> bool {
        self.up
    }

    fn buffered(&mut self) -> usize {
        // The stack reports the unsent bytes of each stream. It reports unacknowledged data only as
        // a number of chunks.
        let waiting = (0..self.streams).map(|id| self.socket.buffered_amount(StreamId(id)));
        let flying = self
            .socket
            .get_metrics()
            .map_or(0, |it| it.unack_data_count);
        waiting.sum::<usize>() + flying
    }

    fn send(&mut self, now: Nanos, messages: Vec<(u16, Bytes)>) -> Result<(), String> {
        self.advance(now);
        let messages = messages.into_iter();
        let messages = messages
            .map(|(stream, payload)| Message::new(StreamId(stream), PpId(0), payload.to_vec()));
        // Unlike `send`, this bundles several messages in a packet.
        let sent = self.socket.send_many(messages.collect(), &self.options);
        self.drain();
        sent.map_err(|error| format!("{error:?}"))
    }

    fn receive(&mut self) -> Option<(u16, Vec<u8>)> {
        let message = self.socket.get_next_message()?;
        Some((message.stream_id.0, message.payload))
    }

    fn shut_down(&mut self, now: Nanos) {
        self.advance(now);
        self.socket.shutdown();
        self.drain();
    }

    fn failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    fn facts(&mut self) -> StackState {
        let metrics = self.socket.get_metrics();
        metrics.map_or_else(StackState::default, |it| StackState {
            cwnd: Some(it.cwnd_bytes as u64),
            rtt: Nanos::try_from(it.srtt.as_nanos()).ok(),
            ..StackState::default()
        })
    }

    fn deadline(&self) -> Option<Nanos> {
        let due = self.socket.poll_timeout();
        if due == SocketTime::infinite_future() {
            return None;
        }
        u64::try_from((due - SocketTime::zero()).as_nanos()).ok()
    }

    fn expire(&mut self, now: Nanos) {
        self.advance(now);
        self.drain();
    }
}

//! Peer program with dcsctp. It sends plain UDP datagrams between two fixed ports.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anabranch_interop::extension::Extension;
use anabranch_interop::programs::receive_room;
use anabranch_interop::workload::{Arguments, Checker, MAX_MESSAGE, Plan, Received, STREAMS};
use dcsctp::api::{
    DcSctpSocket, ErrorKind, LifecycleId, Message, Options, PpId, SendError, SendOptions,
    SocketEvent, SocketTime, StreamId,
};

/// Maximum time to wait for a datagram, after which the send queue is refilled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

struct Peer {
    arguments: Arguments,
    udp: UdpSocket,
    remote: SocketAddr,
    sctp: Box<dyn DcSctpSocket>,
    begin: Instant,
    /// Messages that the stack has not accepted yet; `waiting` has already been taken from `plan`.
    plan: Plan,
    waiting: Option<Message>,
    waiting_options: SendOptions,
    established: bool,
    sent: bool,
    checker: Checker,
    closed: bool,
    extension: Extension,
    /// A reset of all streams is in progress.
    resetting: bool,
    has_reset: bool,
    /// Number of messages that the stack has reported as delivered or abandoned.
    delivered: u64,
}

impl Peer {
    fn new(arguments: Arguments) -> Result<Self, String> {
        let address = |end: &str| {
            let ip = arguments.text(end);
            let ip = ip.parse().map_err(|_| format!("not an address: {ip}"))?;
            let port = arguments.number(&format!("{end}-udp"))?;
            Ok::<_, String>(SocketAddr::new(ip, port))
        };
        if arguments.text("transport") != "plain" {
            return Err("this peer has transport=plain".into());
        }
        let udp = UdpSocket::bind(address("local")?).map_err(|e| e.to_string())?;
        receive_room(&udp);
        let port = arguments.number("port")?;
        let mut options = Options {
            local_port: port,
            remote_port: port,
            max_message_size: MAX_MESSAGE as usize,
            max_retransmissions: None,
            ..Options::default()
        };
        let extension = arguments.extension()?;
        options.enable_message_interleaving = extension == Extension::Interleaving;
        match arguments.number("rto-min")? {
            0 => (),
            ms => {
                options.rto_min = Duration::from_millis(ms);
                options.min_rtt_variance = Duration::from_millis(ms / 2);
            }
        }
        let count = arguments.number("messages")?;
        Ok(Self {
            remote: address("remote")?,
            udp,
            sctp: dcsctp::new_socket("peer", &options),
            begin: now(),
            plan: Plan::new(arguments.number("seed")?, count),
            waiting: None,
            waiting_options: SendOptions::default(),
            established: false,
            sent: false,
            delivered: 0,
            checker: Checker::of(&arguments)?,
            extension,
            resetting: false,
            has_reset: false,
            closed: false,
            arguments,
        })
    }

    fn run(&mut self) -> Result<(), String> {
        println!("ready");
        if self.arguments.connects {
            self.sctp.connect();
        }
        let mut shut = false;
        while !self.closed {
            self.sctp
                .advance_time(SocketTime::zero() + self.begin.elapsed());
            if self.established && !self.sent && !self.resetting {
                self.send()?;
            }
            // The stack sends SHUTDOWN as soon as nothing is in flight, even if it must still send
            // or retransmit messages. Therefore all messages must be delivered before the shutdown.
            let delivered =
                self.sent && self.delivered == self.arguments.number::<u64>("messages")?;
            if self.arguments.connects && delivered && self.checker.complete() && !shut {
                self.sctp.shutdown();
                shut = true;
            }
            self.events()?;
            self.messages()?;
            self.receive()?;
        }
        self.checker.conclude();
        match self.checker.complete() {
            true => Ok(()),
            false => Err(format!("over after {} messages", self.checker.total().0)),
        }
    }

    /// Passes messages to the stack until it accepts no more.
    fn send(&mut self) -> Result<(), String> {
        loop {
            let Some(message) = self.waiting.take().or_else(|| self.next()) else {
                self.sent = true;
                println!("sent messages={}", self.arguments.text("messages"));
                return Ok(());
            };
            if self.extension == Extension::Resets && self.is_half_sent() && !self.has_reset {
                // The stack discards messages that are queued on a reset stream.
                if self.delivered < self.arguments.number::<u64>("messages")? / 2 {
                    self.waiting = Some(message);
                    return Ok(());
                }
                self.has_reset = true;
                self.resetting = true;
                self.waiting = Some(message);
                let all: Vec<_> = (0..STREAMS).map(StreamId).collect();
                return self
                    .sctp
                    .reset_streams(&all)
                    .map_err(|error| format!("reset: {error:?}"));
            }
            let again = Message::new(message.stream_id, message.ppid, message.payload.clone());
            match self.sctp.send(message, &self.waiting_options) {
                Ok(()) => (),
                Err(SendError::ResourceExhaustion) => {
                    self.waiting = Some(again);
                    return Ok(());
                }
                Err(error) => return Err(format!("send: {error}")),
            }
        }
    }

    /// Whether the waiting message is the first of the second half.
    fn is_half_sent(&self) -> bool {
        let index = self.waiting_options.lifecycle_id;
        let half = self.arguments.number::<u64>("messages").unwrap_or(0) / 2;
        index == LifecycleId::new(half + 1)
    }

    fn next(&mut self) -> Option<Message> {
        let message = self.plan.next()?;
        self.waiting_options.unordered = message.unordered;
        let gives_up = self.extension == Extension::Partial && message.is_expendable();
        self.waiting_options.max_retransmissions = gives_up.then_some(0);
        self.waiting_options.lifecycle_id = LifecycleId::new(u64::from(message.index) + 1);
        let (stream, ppid) = (StreamId(message.stream), PpId(message.ppid()));
        Some(Message::new(stream, ppid, message.compose()))
    }

    fn events(&mut self) -> Result<(), String> {
        while let Some(event) = self.sctp.poll_event() {
            match event {
                SocketEvent::SendPacket(packet) => match self.udp.send_to(&packet, self.remote) {
                    // The peer may not have started yet, or may have ended.
                    Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => {
                        return Err(error.to_string());
                    }
                    _ => (),
                },
                SocketEvent::OnConnected() => {
                    self.established = true;
                    println!("established");
                }
                SocketEvent::OnLifecycleMessageDelivered(_)
                | SocketEvent::OnLifecycleMessageExpired(_)
                | SocketEvent::OnLifecycleMessageMaybeExpired(_) => self.delivered += 1,
                SocketEvent::OnStreamsResetPerformed(_) => self.resetting = false,
                SocketEvent::OnStreamsResetFailed(streams) => {
                    return Err(format!("reset of {streams:?} failed"));
                }
                SocketEvent::OnClosed() => self.closed = true,
                SocketEvent::OnAborted(kind, text) => {
                    return Err(format!("aborted: {kind:?}: {text}"));
                }
                // The result of `send` reports the same error.
                SocketEvent::OnError(ErrorKind::ResourceExhaustion, _) => (),
                // A peer without RFC 3758 may report the unknown parameter in an ERROR (RFC 9260
                // §3.2.1); the association continues.
                SocketEvent::OnError(ErrorKind::PeerReported, text) => println!("event: {text}"),
                SocketEvent::OnError(kind, text) => return Err(format!("{kind:?}: {text}")),
                SocketEvent::OnConnectionRestarted() => return Err("restarted".into()),
                _ => (),
            }
        }
        Ok(())
    }

    fn messages(&mut self) -> Result<(), String> {
        while let Some(message) = self.sctp.get_next_message() {
            self.checker.check(Received {
                stream: message.stream_id.0,
                ppid: message.ppid.0,
                unordered: None,
                data: &message.payload,
            })?;
        }
        Ok(())
    }

    /// Waits for a datagram, or until a timer expires.
    fn receive(&mut self) -> Result<(), String> {
        let mut datagram = [0; 65536];
        let until = self.sctp.poll_timeout() - SocketTime::zero();
        let wait = until
            .saturating_sub(self.begin.elapsed())
            .min(POLL_INTERVAL);
        let wait = wait.max(Duration::from_micros(100));
        self.udp
            .set_read_timeout(Some(wait))
            .map_err(|e| e.to_string())?;
        match self.udp.recv_from(&mut datagram) {
            Ok((length, from)) if from == self.remote => {
                self.sctp.handle_input(&datagram[..length])
            }
            Ok(_) => (),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::ConnectionRefused => (),
                _ => return Err(error.to_string()),
            },
        }
        Ok(())
    }
}

#[allow(clippy::disallowed_methods)] // a real peer needs a real clock
fn now() -> Instant {
    Instant::now()
}

fn main() {
    let outcome = Arguments::from_command_line()
        .and_then(Peer::new)
        .and_then(|mut peer| peer.run());
    match outcome {
        Ok(()) => {
            println!("closed");
            loop {
                std::thread::park(); // until it is stopped
            }
        }
        Err(error) => {
            println!("error: {error}");
            std::process::exit(1);
        }
    }
}

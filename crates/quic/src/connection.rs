//! One end of a connection. It has the driver interface of all transports in this project.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_transport::{Ecn, Nanos, Path, Transmit, Transport};
use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, ConnectionError, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint,
    Event as QuinnEvent, ServerConfig, StreamEvent, StreamId, VarInt, WriteError,
};

use crate::config::Config;
use crate::ids::{Identifiers, NoTokens};
use crate::null_crypto::NullCrypto;

/// Zeros to send. All payload slices refer to this array, so that they need no additional memory.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Events that a connection reports to its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete: streams can be opened.
    Connected,
    /// The connection failed, with the reason.
    Failed(String),
    /// The connection was closed by the peer or locally.
    Closed,
}

/// Counters and the state of congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Smoothed round-trip time, nanoseconds.
    pub rtt: Nanos,
    /// Number of packets declared lost.
    pub lost: u64,
    /// Number of window reductions.
    pub congestion_events: u64,
    /// Number of packets sent.
    pub sent: u64,
}

/// One end of a QUIC connection. Its packets are the payloads of UDP datagrams.
pub struct Connection {
    endpoint: Endpoint,
    /// Origin of the times that are passed to quinn-proto. Only differences to it are used.
    origin: Instant,
    ports: [u16; 2],
    /// Path to the peer; `None` for a server without a client.
    path: Option<Path>,
    inner: Option<(ConnectionHandle, quinn_proto::Connection)>,
    /// Packets with which the endpoint responds to datagrams that belong to no connection.
    answers: VecDeque<Bytes>,
    buffer: Vec<u8>,
    /// Streams of this end, by index.
    own: Vec<StreamId>,
    /// Streams of the peer that may have data to read.
    readable: BTreeSet<StreamId>,
    /// Streams whose buffer had too little space at the last write.
    blocked: BTreeMap<StreamId, ()>,
    events: VecDeque<Event>,
    closed_here: bool,
    deadline: Option<Nanos>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("path", &self.path)
            .field("ports", &self.ports)
            .finish_non_exhaustive()
    }
}

/// Returns an arbitrary origin of time. Its value has no effect, because only differences to it are
/// used.
fn origin() -> Instant {
    #[allow(
        clippy::disallowed_methods,
        reason = "quinn counts its time from an instant, and there is no other way to make one"
    )]
    Instant::now()
}

impl Connection {
    /// Creates a client of the server at `path.remote`. `ports` are the local port and that of the
    /// server. The first packet is returned by the next poll.
    ///
    /// # Errors
    /// Fails if quinn-proto rejects the configuration or the address.
    pub fn connect(
        now: Nanos,
        config: &Config,
        path: Path,
        ports: [u16; 2],
        seed: [u8; 32],
    ) -> Result<Self, String> {
        let payload = config.payload(path.remote.is_ipv6());
        let mut connection = Self::new(payload, None, ports, seed);
        let mut client = ClientConfig::new(Arc::new(NullCrypto));
        let first = Identifiers::new(seed.map(|byte| !byte)).next();
        client
            .transport_config(Arc::new(config.transport(payload)))
            .initial_dst_cid_provider(Arc::new(move || first));
        let (at, remote) = (
            connection.instant(now),
            SocketAddr::new(path.remote, ports[1]),
        );
        let made = connection.endpoint.connect(at, client, remote, "server");
        connection.inner = Some(made.map_err(|error| error.to_string())?);
        connection.path = Some(path);
        connection.settle(now);
        Ok(connection)
    }

    /// Creates a server that accepts one client at `port`, over IPv6 or IPv4.
    pub fn listen(config: &Config, is_ipv6: bool, port: u16, seed: [u8; 32]) -> Self {
        let payload = config.payload(is_ipv6);
        let mut server = ServerConfig::new(Arc::new(NullCrypto), Arc::new(NoTokens));
        server
            .transport_config(Arc::new(config.transport(payload)))
            .migration(false)
            .validation_token_config({
                let mut none = quinn_proto::ValidationTokenConfig::default();
                none.sent(0);
                none
            });
        Self::new(payload, Some(Arc::new(server)), [port, 0], seed)
    }

    fn new(
        payload: u16,
        server: Option<Arc<ServerConfig>>,
        ports: [u16; 2],
        seed: [u8; 32],
    ) -> Self {
        Self {
            endpoint: Endpoint::new(
                Arc::new(Config::endpoint(payload, seed)),
                server,
                false,
                None,
            ),
            origin: origin(),
            ports,
            path: None,
            inner: None,
            answers: VecDeque::new(),
            buffer: Vec::new(),
            own: Vec::new(),
            readable: BTreeSet::new(),
            blocked: BTreeMap::new(),
            events: VecDeque::new(),
            closed_here: false,
            deadline: None,
        }
    }

    fn instant(&self, now: Nanos) -> Instant {
        self.origin + Duration::from_nanos(now)
    }

    /// Local port and port of the peer.
    pub fn ports(&self) -> [u16; 2] {
        self.ports
    }

    /// Sets the source port of the next datagram that will be handled. A server must learn the port
    /// of its client this way.
    pub fn set_peer_port(&mut self, port: u16) {
        self.ports[1] = port;
    }

    /// Whether the handshake is complete and the connection open.
    pub fn is_up(&self) -> bool {
        let inner = self.inner.as_ref();
        inner.is_some_and(|(_, it)| !it.is_handshaking() && !it.is_closed())
    }

    /// Writes up to `count` zeros to the stream of this end with index `stream`. Returns the number
    /// of bytes that were accepted. This stream and all streams before it are opened if necessary.
    pub fn write_zeros(&mut self, stream: u16, count: u64) -> u64 {
        let Some(id) = self.stream(stream) else {
            return 0;
        };
        let Some((_, inner)) = &mut self.inner else {
            return 0;
        };
        let mut left = count;
        while left > 0 {
            let piece = (ZEROS.len() as u64).min(left) as usize;
            let mut chunk = [Bytes::from_static(&ZEROS[..piece])];
            match inner.send_stream(id).write_chunks(&mut chunk) {
                Ok(written) => left -= written.bytes as u64,
                Err(WriteError::Blocked) => {
                    self.blocked.insert(id, ());
                    break;
                }
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => break,
            }
        }
        count - left
    }

    /// Whether a write to a stream may succeed: true unless the stream has refused a write and has
    /// not become writable since.
    pub fn is_writable(&self, stream: u16) -> bool {
        let id = self.own.get(usize::from(stream));
        id.is_none_or(|id| !self.blocked.contains_key(id))
    }

    fn stream(&mut self, number: u16) -> Option<StreamId> {
        let (_, inner) = self.inner.as_mut()?;
        while self.own.len() <= usize::from(number) {
            self.own.push(inner.streams().open(Dir::Uni)?);
        }
        self.own.get(usize::from(number)).copied()
    }

    /// Finishes all streams of this end. The peer gets their end after all data that was written.
    pub fn finish(&mut self) {
        if let Some((_, inner)) = &mut self.inner {
            for &id in &self.own {
                // Finishing a stream twice has no effect.
                let _ = inner.send_stream(id).finish();
            }
        }
    }

    /// Number of streams of this end that are open, or that the peer has not acknowledged
    /// completely.
    pub fn unfinished(&mut self) -> usize {
        let inner = self.inner.as_mut();
        inner.map_or(0, |(_, inner)| inner.streams().send_streams())
    }

    /// Closes the connection immediately.
    pub fn close(&mut self, now: Nanos) {
        self.closed_here = true;
        let at = self.instant(now);
        if let Some((_, inner)) = &mut self.inner {
            inner.close(at, VarInt::from_u32(0), Bytes::new());
        }
        self.settle(now);
    }

    /// Reads the next bytes of any stream of the peer in order. Returns the index of the stream and
    /// the number of bytes.
    pub fn read(&mut self) -> Option<(u16, u64)> {
        let (_, inner) = self.inner.as_mut()?;
        while let Some(&id) = self.readable.first() {
            let mut stream = inner.recv_stream(id);
            let mut bytes = 0;
            if let Ok(mut chunks) = stream.read(true) {
                while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                    bytes += chunk.bytes.len() as u64;
                }
                // The result states whether flow control credit should be sent. The result is not
                // needed, because the next poll sends the credit anyway.
                let _ = chunks.finalize();
            }
            self.readable.remove(&id);
            if bytes > 0 {
                return Some((id.index() as u16, bytes));
            }
        }
        None
    }

    /// The oldest event since the last call.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Current statistics.
    pub fn stats(&self) -> Stats {
        let Some((_, inner)) = &self.inner else {
            return Stats::default();
        };
        let path = inner.stats().path;
        Stats {
            cwnd: path.cwnd,
            rtt: nanos(path.rtt),
            lost: path.lost_packets,
            congestion_events: path.congestion_events,
            sent: path.sent_packets,
        }
    }

    /// Exchanges events between the endpoint and the connection, processes them, and updates the
    /// timer.
    fn settle(&mut self, now: Nanos) {
        let Some((handle, inner)) = &mut self.inner else {
            return;
        };
        while let Some(event) = inner.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                inner.handle_event(event);
            }
        }
        while let Some(event) = inner.poll() {
            match event {
                QuinnEvent::Connected => self.events.push_back(Event::Connected),
                QuinnEvent::ConnectionLost { reason } => self.events.push_back(match reason {
                    ConnectionError::ApplicationClosed(_) | ConnectionError::LocallyClosed => {
                        Event::Closed
                    }
                    _ if self.closed_here => Event::Closed,
                    other => Event::Failed(other.to_string()),
                }),
                QuinnEvent::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = inner.streams().accept(dir) {
                        self.readable.insert(id);
                    }
                }
                QuinnEvent::Stream(StreamEvent::Readable { id }) => {
                    self.readable.insert(id);
                }
                QuinnEvent::Stream(StreamEvent::Writable { id }) => {
                    self.blocked.remove(&id);
                }
                _ => {}
            }
        }
        let origin = self.origin;
        let due = inner.poll_timeout();
        self.deadline = due.map(|at| nanos(at.saturating_duration_since(origin)).max(now));
    }
}

fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}

fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    EcnCodepoint::from_bits(ecn.bits())
}

impl Transport for Connection {
    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        let at = self.instant(now);
        let remote = SocketAddr::new(path.remote, self.ports[1]);
        let local: Option<IpAddr> = Some(path.local);
        let data = BytesMut::from(&datagram[..]);
        self.buffer.clear();
        let event = self
            .endpoint
            .handle(at, remote, local, codepoint(ecn), data, &mut self.buffer);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some((own, inner)) = &mut self.inner
                    && *own == handle
                {
                    inner.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                if self.inner.is_some() {
                    self.endpoint.ignore(incoming);
                } else {
                    let made = self.endpoint.accept(incoming, at, &mut self.buffer, None);
                    self.path = Some(path);
                    match made {
                        Ok(made) => self.inner = Some(made),
                        Err(refused) => {
                            let answer = refused.response.map(|it| it.size);
                            self.answer(answer);
                        }
                    }
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                self.path.get_or_insert(path);
                self.answer(Some(transmit.size));
            }
            None => {}
        }
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Nanos) {
        let at = self.instant(now);
        if let Some((_, inner)) = &mut self.inner {
            inner.handle_timeout(at);
        }
        self.settle(now);
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        let path = self.path?;
        if let Some(answer) = self.answers.pop_front() {
            out.extend_from_slice(&answer);
            return Some(transmit(path, answer.len(), Ecn::NotEct));
        }
        let at = self.instant(now);
        self.buffer.clear();
        let (_, inner) = self.inner.as_mut()?;
        let Some(sent) = inner.poll_transmit(at, 1, &mut self.buffer) else {
            self.settle(now);
            return None;
        };
        let bytes = &self.buffer[..sent.size];
        out.extend_from_slice(bytes);
        let ecn = sent.ecn.map_or(Ecn::NotEct, |it| Ecn::from_bits(it as u8));
        Some(transmit(path, sent.size, ecn))
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.deadline
    }
}

impl Connection {
    /// Queues a packet of `size` bytes that the endpoint has written to the buffer.
    fn answer(&mut self, size: Option<usize>) {
        let written = size.and_then(|size| self.buffer.get(..size));
        self.answers.extend(written.map(Bytes::copy_from_slice));
    }
}

fn transmit(path: Path, len: usize, ecn: Ecn) -> Transmit {
    Transmit {
        path,
        len,
        ecn,
        may_fragment: false,
    }
}

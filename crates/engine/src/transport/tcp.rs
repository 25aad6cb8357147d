//! TCP: its settings in specs, a source that connects and writes, and a sink that reads.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use anabranch_scenario::Transport as Written;
use anabranch_scenario::addresses::IpVersion;
use anabranch_scenario::transport::TransportKind;
use anabranch_settings::SettingError;
use anabranch_sim::Agent;
use anabranch_sim::workload::Facts;
use anabranch_tcp::{Config, Connection, Event, Ports, Profile, State};
use anabranch_transport::{Ecn, Nanos, Path, Probe, Trace, Transmit, Transport as _};
use anabranch_wire::tcp::{Flags, HEADER};
use bytes::{Bytes, BytesMut};

use super::{
    FlowMember, InvalidSetting, PacketLimit, SharedTransport, Transport, TransportEntry,
    TransportInput, ip_header,
};
use crate::agent::Feed;
use crate::agent::client::{Client, ClientTransport};
use crate::agent::flow_stats::SharedFlowStats;
use crate::agent::inspect::PacketContent;
use crate::agent::resume::Resuming;
use crate::agent::transfers::Key;

/// IP protocol number of TCP.
pub(crate) const PROTOCOL: u8 = 6;

/// Probes of TCP.
const PROBES: &[Probe] = &[
    Probe::Cwnd,
    Probe::Ssthresh,
    Probe::FlightSize,
    Probe::Pipe,
    Probe::AdvertisedRwnd,
    Probe::Rto,
    Probe::Srtt,
    Probe::Sent,
    Probe::Retransmitted,
    Probe::CumulativeAck,
    Probe::DuplicateAck,
    Probe::FastRetransmit,
    Probe::EcnResponse,
    Probe::Timeout,
    Probe::Received,
    Probe::Duplicate,
    Probe::Delivered,
    Probe::ReceiveBufferUsed,
    Probe::ResumePhase,
];

/// Registry entry of TCP.
pub static ENTRY: TransportEntry = TransportEntry {
    kind: TransportKind {
        profiles: Profile::NAMES,
        settings: &[Config::SETTINGS],
        switches: Profile::SWITCHES,
        fallback: Config::fallback,
        messages: false,
        one_stream: true,
        window: true,
        answers: true,
        probes: Some(PROBES),
        ..TransportKind::new("tcp", "TCP (RFC 9293).")
    },
    build,
};

fn build(given: &TransportInput<'_>) -> Result<SharedTransport, Vec<InvalidSetting>> {
    let config = config(given.written, given.ip);
    match config.check() {
        Ok(()) => Ok(Arc::new(Tcp {
            config,
            headers: HEADER as u64 + ip_header(given.ip),
        })),
        Err(error) => Err(vec![InvalidSetting::new(error.setting(), error.what())]),
    }
}

/// Checks each setting, their combination, and that each has an effect.
///
/// # Errors
/// The first problem that is found.
pub(crate) fn check(config: &Config) -> Result<(), SettingError> {
    config.check()?;
    config.check_effects()
}

/// Configuration of a checked TCP transport for an IP version; the default configuration for any
/// other transport.
pub fn config(written: &Written, ip: IpVersion) -> Config {
    let profile = written.profile().and_then(Profile::by_name);
    let mut config = Config::new(profile.unwrap_or_default());
    if ip == IpVersion::Ipv6 {
        // The packet size stays the same, because the IPv6 header has 20 more bytes.
        config.mss -= 20;
    }
    if written.protocol == ENTRY.kind.name {
        for (setting, datum) in written.values(&ENTRY.kind) {
            // The result is ignored, because all values of a checked transport are valid.
            let _ = config.assign(setting.name, &datum);
        }
    }
    config
}

/// TCP transport of a flow.
#[derive(Debug)]
struct Tcp {
    config: Config,
    /// Size of the IP and TCP headers, bytes.
    headers: u64,
}

impl Transport for Tcp {
    fn protocol(&self) -> u8 {
        PROTOCOL
    }

    fn idle(&self, _: [usize; 2]) -> Option<InvalidSetting> {
        let error = self.config.check_effects().err()?;
        Some(InvalidSetting::new(error.setting(), error.what()))
    }

    fn packet(&self) -> usize {
        self.config.mss.into()
    }

    fn segment(&self) -> u64 {
        self.config.mss.into()
    }

    fn receive_buffer(&self) -> u64 {
        self.config.receive_bytes()
    }

    fn largest_packet(&self, _: &Facts) -> Option<PacketLimit> {
        Some(PacketLimit {
            bytes: self.segment() + self.headers,
            setting: "mss",
            beside: self.headers,
            instead: "",
        })
    }

    fn resumes(&self) -> bool {
        true
    }

    fn ends(&self, member: FlowMember<'_>) -> [Box<dyn Agent>; 2] {
        let mut config = self.config.clone();
        config.checksum = member.checksum;
        config.careful_resume = member.resume.as_ref().map(|it| it.parameters);
        let [near, far] = [0, 1].map(|end| member.resuming(end));
        let mut rng = member.rng(ENTRY.kind.name);
        let [local, remote] = member.ports;
        let boundaries = member
            .delays
            .then(|| Rc::new(RefCell::new(VecDeque::new())));
        let facts = member.workload.facts();
        let source_config = SourceConfig {
            path: member.path(),
            ports: Ports { local, remote },
            isn: rng.bits() as u32,
            endless: facts.endless && !member.delays,
            ahead: if facts.paced {
                config.send_buffer
            } else {
                config.receive_bytes() * 2
            },
        };
        let receiver = Sink::new(
            config.clone(),
            remote,
            rng.bits() as u32,
            boundaries.clone(),
            Rc::clone(&member.flow_stats),
            far,
        );
        let feed = Feed::new(member.workload);
        let sender = Source::new(
            config,
            source_config,
            facts.answered,
            boundaries,
            member.flow_stats,
            near,
        );
        [Box::new(Client::new(sender, feed)), Box::new(receiver)]
    }

    fn has_separate_ends(&self) -> bool {
        true
    }

    fn inspect(&self, packet: &[u8]) -> PacketContent {
        let Some(header) = packet.first_chunk::<HEADER>() else {
            return PacketContent::NoData;
        };
        let &[_, _, _, _, a, b, c, d, ..] = header;
        let sequence = u32::from_be_bytes([a, b, c, d]);
        if Flags(header[13].into()).contains(Flags::SYN) {
            return PacketContent::Begins(sequence.wrapping_add(1));
        }
        match packet.len() > usize::from(header[12] >> 4) * 4 {
            true => PacketContent::Data(sequence),
            false => PacketContent::NoData,
        }
    }

    fn sequence_step(&self) -> u32 {
        self.config.mss.into()
    }
}

/// End positions of messages in the byte stream, with their offer times. Both ends share this list,
/// because TCP does not preserve message boundaries.
type Boundaries = Rc<RefCell<VecDeque<(u64, Nanos)>>>;

/// Configuration of a source, in addition to that of TCP.
struct SourceConfig {
    /// Addresses of the connection. If the local address is unspecified, the world chooses it.
    path: Path,
    /// Ports of the connection.
    ports: Ports,
    /// Initial sequence number.
    isn: u32,
    /// Whether the workload never ends and its messages are not tracked, so that an endless stream
    /// of zeros is written.
    endless: bool,
    /// Maximum number of bytes that are written in advance of acknowledgement.
    ahead: u64,
}

/// Client that writes the workload of a flow.
struct Source {
    tcp: Config,
    config: SourceConfig,
    /// Whether the sink writes answers.
    answered: bool,
    written: u64,
    /// Bytes of answers that were received.
    delivered: u64,
    boundaries: Option<Boundaries>,
    shut: bool,
    flow_stats: SharedFlowStats,
    resuming: Option<Resuming>,
}

impl Source {
    /// Creates a source. With `boundaries`, it records the ends of its messages.
    fn new(
        tcp: Config,
        config: SourceConfig,
        answered: bool,
        boundaries: Option<Boundaries>,
        flow_stats: SharedFlowStats,
        resuming: Option<Resuming>,
    ) -> Self {
        Self {
            tcp,
            config,
            answered,
            written: 0,
            delivered: 0,
            boundaries,
            shut: false,
            flow_stats,
            resuming,
        }
    }
}

impl ClientTransport for Source {
    type Connection = Connection;

    fn connect(&mut self, now: Nanos) -> Option<Connection> {
        let SourceConfig {
            path, ports, isn, ..
        } = self.config;
        let mut connection = Connection::connect(self.tcp.clone(), path, ports, isn);
        *connection.trace_mut() = Trace::new(self.flow_stats.borrow().sender_probes());
        resume(now, self.resuming.as_mut(), &mut connection);
        // Data of answers is counted but not read.
        connection.set_discard(self.answered);
        // Before the SYN is acknowledged, only the SYN may be outstanding, which counts as one
        // segment.
        self.flow_stats
            .borrow_mut()
            .first_window(now, f64::from(self.tcp.mss));
        if self.config.endless {
            // The result is ignored, because a new connection accepts any amount.
            let _ = connection.write_zeros(u64::MAX);
        }
        Some(connection)
    }

    #[inline]
    fn top_up(&mut self, now: Nanos, connection: &mut Connection, feed: &mut Feed) {
        if !self.config.endless || feed.is_over() {
            self.hand_over(now, connection, feed);
        }
    }

    #[inline]
    fn observe(&mut self, now: Nanos, connection: &mut Connection, feed: &mut Feed) {
        // Checked first, because after most packets there is nothing to report.
        if self.answered || connection.has_events() {
            self.tell(now, connection, feed);
        }
        if let Some(resuming) = &mut self.resuming {
            observe(now, resuming, connection);
        }
    }
}

impl Source {
    /// Writes messages while there is buffer space, and closes the connection after the last one.
    #[inline(never)]
    fn hand_over(&mut self, now: Nanos, connection: &mut Connection, feed: &mut Feed) {
        while let Some(message) = feed.peek(now) {
            if connection.unacknowledged() >= self.config.ahead {
                break;
            }
            if connection.write_zeros(message.size as u64).is_err() {
                break;
            }
            feed.take();
            self.flow_stats
                .borrow_mut()
                .begin(now, Key::Stream(0), &message);
            self.written += message.size as u64;
            if let Some(boundaries) = &self.boundaries {
                boundaries.borrow_mut().push_back((self.written, now));
            }
        }
        // A CLOSE before the end of the handshake would discard the written data (RFC 9293
        // §3.10.4).
        if feed.is_over() && !self.shut && connection.state() != State::SynSent {
            self.shut = true;
            if self.config.endless {
                connection.close_discarding_unsent();
            } else {
                connection.close();
            }
        }
    }

    #[inline(never)]
    fn tell(&mut self, now: Nanos, connection: &mut Connection, feed: &mut Feed) {
        let mut flow_stats = self.flow_stats.borrow_mut();
        if self.answered {
            let delivered = connection.stats().bytes_delivered;
            let bytes = delivered - self.delivered;
            self.delivered = delivered;
            if bytes > 0 && flow_stats.arrive(now, Key::Stream(0), bytes).complete {
                feed.answered(now);
            }
        }
        while let Some(event) = connection.poll_event() {
            if let Event::Failed(failure) = event {
                flow_stats.failed = Some(failure.to_string());
            }
        }
        for sample in connection.trace_mut().drain() {
            flow_stats.sample(sample);
        }
    }
}

/// Passes saved parameters to a connection as soon as its path is known.
fn resume(now: Nanos, resuming: Option<&mut Resuming>, connection: &mut Connection) {
    if let (Some(resuming), Some(path)) = (resuming, connection.path())
        && let Some(saved) = resuming.take(now, 0, path)
    {
        connection.resume(saved);
    }
}

/// Saves what the controller of a connection has observed, until the connection is closed.
fn observe(now: Nanos, resuming: &mut Resuming, connection: &Connection) {
    if let (Some(path), Some(state)) = (connection.path(), connection.careful_resume()) {
        resuming.observe(now, 0, path, state);
    }
    if matches!(connection.state(), State::TimeWait | State::Closed) {
        resuming.end();
    }
}

/// Server that accepts one connection and receives its data.
struct Sink {
    connection: Connection,
    delivered: u64,
    boundaries: Option<Boundaries>,
    flow_stats: SharedFlowStats,
    resuming: Option<Resuming>,
}

impl Sink {
    /// Creates a sink at `port`. With `boundaries`, it detects messages and their delays.
    fn new(
        tcp: Config,
        port: u16,
        isn: u32,
        boundaries: Option<Boundaries>,
        flow_stats: SharedFlowStats,
        resuming: Option<Resuming>,
    ) -> Self {
        let mut connection = Connection::listen(tcp, port, isn);
        connection.set_discard(true);
        let probes = flow_stats.borrow().receiver_probes();
        *connection.trace_mut() = Trace::new(probes);
        Self {
            connection,
            delivered: 0,
            boundaries,
            flow_stats,
            resuming,
        }
    }

    fn take(&mut self, now: Nanos) {
        resume(now, self.resuming.as_mut(), &mut self.connection);
        if let Some(resuming) = &mut self.resuming {
            observe(now, resuming, &self.connection);
        }
        let mut flow_stats = self.flow_stats.borrow_mut();
        let mut peer_closed = false;
        let has_events = self.connection.has_events();
        if has_events {
            while let Some(event) = self.connection.poll_event() {
                peer_closed |= event == Event::PeerClosed;
            }
        }
        let delivered = self.connection.stats().bytes_delivered;
        if delivered > self.delivered {
            let bytes = delivered - self.delivered;
            self.delivered = delivered;
            if flow_stats.is_unwatched() {
                flow_stats.count(bytes, 0, 0);
            } else {
                flow_stats.deliver(now, bytes, 0);
            }
            if let Some(answer) = flow_stats.arrive(now, Key::Stream(0), bytes).asked {
                // The result is ignored, because an error means that the connection has ended,
                // which the source reports.
                let _ = self.connection.write_zeros(answer);
            }
        }
        if let Some(boundaries) = &self.boundaries {
            let mut boundaries = boundaries.borrow_mut();
            while let Some((_, offered)) = boundaries
                .front()
                .copied()
                .filter(|(end, _)| *end <= delivered)
            {
                boundaries.pop_front();
                flow_stats.message(now, Some(now.saturating_sub(offered)));
            }
        }
        if has_events {
            for sample in self.connection.trace_mut().drain() {
                flow_stats.sample(sample);
            }
        }
        if peer_closed {
            self.connection.close();
        }
    }
}

impl Agent for Sink {
    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        self.connection.handle_datagram(now, path, ecn, datagram);
        self.take(now);
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.connection.handle_timeout(now);
        self.take(now);
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        if self.connection.is_idle() {
            return None;
        }
        self.connection.poll_transmit(now, out)
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.connection.poll_timeout()
    }
}

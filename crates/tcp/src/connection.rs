//! One end of a TCP connection: the public type that joins its sender and receiver, and the driver
//! interface.

pub(crate) mod accurate_ecn;
mod ecn;
mod fast_path;
mod handshake;
mod receive;
mod transmit;

use std::collections::VecDeque;

use anabranch_congestion::CarefulResume;
use anabranch_congestion::careful_resume::SavedParameters;
use anabranch_transport::{Ecn, Nanos, Path, Trace, Transmit, Transport};
use anabranch_wire::tcp::Header;
use bytes::{Bytes, BytesMut};
use thiserror::Error;

use crate::config::Config;
use crate::event::{Event, Failure};
use crate::rx::Receiver;
use crate::state::State;
use crate::stats::Stats;
use crate::time::or_never;
use crate::tx::Sender;

/// Port numbers of a connection, from the viewpoint of this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Port of this end.
    pub local: u16,
    /// Port of the peer.
    pub remote: u16,
}

/// Reason why [`Connection::write`] accepted no data.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// The data does not fit in the send buffer.
    #[error("the send buffer has room for {room} bytes only")]
    Full {
        /// Free space in the send buffer, bytes; see [`Connection::writable`].
        room: u64,
    },
    /// This end was closed, or the connection has ended.
    #[error("the connection is closed for writing")]
    Closed,
}

/// Options of most segments after the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SegmentForm {
    /// None.
    #[default]
    Plain,
    /// Only timestamps.
    Timestamps,
    /// The options vary, because accurate ECN is in use.
    Variable,
}

/// Results of the negotiation: options that both SYNs carried.
#[derive(Clone, Copy, Debug, Default)]
struct Negotiated {
    sack: bool,
    timestamps: bool,
    form: SegmentForm,
    /// Both ends scale their windows.
    scaled: bool,
    /// Left shift of the windows that this end advertises, and of the windows that the peer
    /// advertises.
    local_shift: u8,
    peer_shift: u8,
    /// The smaller of the two ends' maximum segment sizes, bytes.
    mss: u16,
}

/// One end of one TCP connection (RFC 9293), without I/O.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    state: State,
    /// Addresses of the two ends; `None` while listening.
    path: Option<Path>,
    ports: Ports,
    /// Initial sequence numbers of this end and of the peer.
    isn: u32,
    peer_isn: u32,
    passive: bool,
    negotiated: Negotiated,
    ecn: ecn::Agreement,
    sender: Sender,
    receiver: Receiver,
    /// `SND.WL1` and `SND.WL2` as offsets: sequence and acknowledgment number of the segment that
    /// last updated the peer's window.
    window_from: (u64, u64),
    /// Timestamp of the peer that the next segment echoes, and the last acknowledgment number sent
    /// (RFC 7323 §4.3).
    recent_timestamp: Option<u32>,
    acknowledged_to: u64,
    /// A SYN or SYN-ACK must be sent by the next poll.
    syn_owed: bool,
    syns_sent: u32,
    /// RST that the next poll sends, and the path to send it on.
    reset: Option<(Path, Header)>,
    /// Acknowledgement of earlier data that must be sent before the acknowledgement of the last
    /// packet received.
    early_ack: Option<Header>,
    time_wait_until: Option<Nanos>,
    /// Earliest time of the next challenge ACK.
    next_challenge: Nanos,
    /// Polls can be skipped: no segment can be sent until the user writes or reads, a segment
    /// arrives, or a timer expires.
    quiet: bool,
    events: VecDeque<Event>,
    stats: Stats,
    trace: Trace,
}

/// # Opening
impl Connection {
    /// Starts a connection to the peer at `path.remote`; the next poll returns the SYN. `isn` is
    /// the initial sequence number, which must be hard to guess outside of simulations (RFC 9293
    /// §3.4.1).
    pub fn connect(config: Config, path: Path, ports: Ports, isn: u32) -> Self {
        let mut connection = Self::new(config, State::SynSent, ports, isn);
        connection.path = Some(path);
        connection.syn_owed = true;
        connection
    }

    /// Listens on `local_port` for a single connection.
    pub fn listen(config: Config, local_port: u16, isn: u32) -> Self {
        let mut connection = Self::new(
            config,
            State::Listen,
            Ports {
                local: local_port,
                remote: 0,
            },
            isn,
        );
        connection.passive = true;
        connection
    }

    /// Returns to LISTEN after a failed passive open (RFC 9293 §3.10.7.4, RST). Data written in the
    /// meantime is discarded; a pending RST is still sent.
    fn listen_again(&mut self) {
        let fresh = Self::listen(self.config.clone(), self.ports.local, self.isn);
        let old = std::mem::replace(self, fresh);
        (self.stats, self.trace, self.events) = (old.stats, old.trace, old.events);
        self.reset = old.reset;
    }

    fn new(config: Config, state: State, ports: Ports, isn: u32) -> Self {
        let mss = u64::from(config.mss.max(1));
        let buffer = config.receive_bytes();
        Self {
            state,
            path: None,
            ports,
            isn,
            peer_isn: 0,
            passive: false,
            negotiated: Negotiated::default(),
            ecn: ecn::Agreement::default(),
            sender: Sender::new(&config, mss),
            receiver: Receiver::new(&config.profile, buffer, mss),
            window_from: (0, 0),
            recent_timestamp: None,
            acknowledged_to: 0,
            syn_owed: false,
            syns_sent: 0,
            reset: None,
            early_ack: None,
            time_wait_until: None,
            next_challenge: 0,
            quiet: false,
            events: VecDeque::new(),
            stats: Stats::default(),
            trace: Trace::default(),
            config,
        }
    }
}

/// # Data transfer
impl Connection {
    /// Appends `bytes` to the send buffer without copying them.
    ///
    /// # Errors
    /// The buffer has too little space, or the connection is closed; no data was accepted.
    pub fn write(&mut self, bytes: Bytes) -> Result<(), WriteError> {
        self.quiet = false;
        if !self.open_for_writing() {
            return Err(WriteError::Closed);
        }
        let room = self.writable();
        if bytes.len() as u64 > room {
            return Err(WriteError::Full { room });
        }
        self.sender.write(bytes);
        Ok(())
    }

    /// Appends `count` zeros to the data to send; they use no memory and do not count toward the
    /// limit of the send buffer. With `u64::MAX`, the connection becomes a source that never runs
    /// out of data.
    ///
    /// # Errors
    /// The connection is closed.
    pub fn write_zeros(&mut self, count: u64) -> Result<(), WriteError> {
        self.quiet = false;
        if !self.open_for_writing() {
            return Err(WriteError::Closed);
        }
        self.sender.write_zeros(count);
        Ok(())
    }

    fn open_for_writing(&self) -> bool {
        !self.sender.is_closing() && !matches!(self.state, State::Closed | State::TimeWait)
    }

    /// Number of bytes that [`Connection::write`] would accept now.
    pub fn writable(&self) -> u64 {
        self.config
            .send_buffer
            .saturating_sub(self.sender.buffered())
    }

    /// Number of bytes written but not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.sender.buffered()
    }

    /// Returns the next received bytes in order, as a slice of the datagram that carried them.
    pub fn read(&mut self) -> Option<Bytes> {
        self.quiet = false;
        self.receiver.read()
    }

    /// Number of bytes that can be [read](Connection::read) now.
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    /// Makes this end a sink: data is counted ([`Stats::bytes_delivered`]) and dropped as soon as
    /// it is in order, so the receive window is always fully open.
    pub fn set_discard(&mut self, discard: bool) {
        self.receiver.set_discard(discard);
    }

    /// Closes the sending direction of this end: a FIN follows after all written data (RFC 9293
    /// §3.10.4). The peer may continue to send.
    pub fn close(&mut self) {
        self.quiet = false;
        match self.state {
            State::Listen | State::SynSent => {
                self.shut();
                self.events.push_back(Event::Closed);
            }
            State::SynReceived => self.sender.close(),
            State::Established => {
                self.sender.close();
                self.state = State::FinWait1;
            }
            State::CloseWait => {
                self.sender.close();
                self.state = State::LastAck;
            }
            _ => {}
        }
    }

    /// Closes this end like [`Self::close`], but discards data that was written and never sent.
    pub fn close_discarding_unsent(&mut self) {
        self.sender.discard_unsent();
        self.close();
    }

    /// Aborts the connection and sends a RST to the peer (RFC 9293 §3.10.5).
    pub fn abort(&mut self) {
        self.quiet = false;
        if self.state == State::Closed {
            return;
        }
        if self.state.is_synchronized() || self.state == State::SynReceived {
            self.schedule_reset();
        }
        self.fail(Failure::Aborted);
    }

    /// Whether an event can be [polled](Connection::poll_event) or the trace has samples.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty() || !self.trace.is_empty()
    }

    /// Whether all written data is acknowledged and no acknowledgement is due.
    /// [`Transport::poll_transmit`] then has no segment to send until the user writes, a segment
    /// arrives, or a timer expires. This is a cheap check; `false` does not imply that a segment
    /// can be sent.
    pub fn is_idle(&self) -> bool {
        self.sender.is_idle()
            && !self.receiver.acks().is_due()
            && !self.syn_owed
            && self.early_ack.is_none()
            && self.reset.is_none()
    }

    /// Like [`Self::is_idle`], but exact: `true` whenever no segment can be sent. This is more
    /// expensive.
    fn has_nothing(&self) -> bool {
        let sends = self.state.sends() && self.sender.plan().is_some();
        let acknowledges = self.receiver.acks().is_due() && self.state.is_synchronized();
        let waits = self.syn_owed || self.early_ack.is_some() || self.path.is_none();
        let some = sends || acknowledges || waits;
        self.reset.is_none() && (!some || self.path.is_none())
    }

    /// Removes and returns the oldest event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

/// # State and statistics
impl Connection {
    /// Current state of the connection.
    pub fn state(&self) -> State {
        self.state
    }

    /// Counters of this end.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Addresses of the two ends; `None` while listening.
    pub fn path(&self) -> Option<Path> {
        self.path
    }

    /// Port numbers of the two ends; the remote port is 0 while listening.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// Congestion window in bytes, before it is rounded to whole bytes or segments.
    pub fn cwnd(&self) -> f64 {
        self.sender.flow.control.cwnd_exact()
    }

    /// State of Careful Resume (RFC 9959), if the configuration enables it.
    pub fn careful_resume(&self) -> Option<&CarefulResume> {
        self.sender.flow.control.careful_resume()
    }

    /// Supplies parameters that were saved for this peer (RFC 9959). This must be called before
    /// data is sent. Returns `false`, without effect, if data was sent or the configuration does
    /// not enable it.
    pub fn resume(&mut self, saved: SavedParameters) -> bool {
        self.sender.resume(saved)
    }

    /// Slow-start threshold, bytes.
    pub fn ssthresh(&self) -> u64 {
        self.sender.flow.control.ssthresh()
    }

    /// Bytes sent and not acknowledged cumulatively.
    pub fn flightsize(&self) -> u64 {
        self.sender.flow.flightsize()
    }

    /// Data bytes in a full segment, as negotiated in the handshake.
    pub fn segment(&self) -> u64 {
        self.sender.flow.mss
    }

    /// Current retransmission timeout, nanoseconds.
    pub fn rto(&self) -> Nanos {
        self.sender.rto.rto()
    }

    /// Smoothed round-trip time in nanoseconds; `None` before the first measurement.
    pub fn srtt(&self) -> Option<Nanos> {
        self.sender.rto.srtt()
    }

    /// Whether loss recovery is in progress.
    pub fn recovering(&self) -> bool {
        self.sender.recovering()
    }

    /// Trace to which this end adds its samples. The driver should set it to enable probes, and
    /// drain it after each `handle_*` call.
    pub fn trace_mut(&mut self) -> &mut Trace {
        &mut self.trace
    }
}

/// # Closing
impl Connection {
    /// Ends the connection. From now on only RSTs are sent, in response to segments.
    fn shut(&mut self) {
        self.state = State::Closed;
        self.sender.stop();
        self.receiver.acks_mut().stop();
        self.syn_owed = false;
        self.early_ack = None;
        self.time_wait_until = None;
    }

    fn fail(&mut self, failure: Failure) {
        self.shut();
        self.events.push_back(Event::Failed(failure));
    }

    fn enter_time_wait(&mut self, now: Nanos) {
        if self.state != State::TimeWait {
            self.state = State::TimeWait;
            self.sender.stop();
            self.events.push_back(Event::Closed);
        }
        self.time_wait_until = Some(now + self.config.time_wait);
    }
}

impl Transport for Connection {
    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        self.receive(now, path, ecn, datagram);
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.quiet = false;
        self.receiver.acks_mut().handle_timeout(now);
        if self.time_wait_until.is_some_and(|at| at <= now) {
            self.shut();
            return;
        }
        if matches!(self.state, State::SynSent | State::SynReceived) {
            self.syn_timeout(now);
        } else if self.state.sends()
            && self
                .sender
                .handle_timeout(now, &mut self.stats, &mut self.trace)
        {
            self.schedule_reset();
            self.fail(Failure::TimedOut);
        }
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        if self.quiet {
            debug_assert!(self.has_nothing(), "that was found out");
            return None;
        }
        self.transmit(now, out)
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        let receives = or_never(self.receiver.acks().deadline());
        let earliest = (self.sender.deadline())
            .min(receives)
            .min(or_never(self.time_wait_until));
        (earliest != Nanos::MAX).then_some(earliest)
    }
}

//! Status and counters of an association, under the names of RFC 6458.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use anabranch_sctp::stats::AssociationStatistics;
use anabranch_sctp::{Association, AssociationState, DiscardCounts, PathState};
use bytes::Bytes;

use crate::resume::ResumePhase;
use crate::socket_errors::SocketError;

/// Status of an association: `struct sctp_status` of RFC 6458 §8.2.1, without the prefix `sstat_`
/// of its fields, and counters.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Status {
    /// The state (RFC 9260 §4).
    pub state: AssociationState,
    /// The peer's SCTP port.
    pub peer_port: u16,
    /// Estimate of the peer's remaining receive window, bytes.
    pub rwnd: u64,
    /// Number of DATA chunks that were sent and are not acknowledged.
    pub unackdata: usize,
    /// Bytes of user data that were accepted and not sent yet. (RFC 6458 counts chunks pending
    /// receipt; bytes are more useful.)
    pub penddata: usize,
    /// Number of streams on which the peer may send.
    pub instrms: u16,
    /// Number of streams on which this side may send.
    pub outstrms: u16,
    /// Maximum size of a message that fits one DATA chunk, bytes.
    pub fragmentation_point: usize,
    /// The primary path.
    pub primary: PathStatus,
    /// The path to which new data is sent: the primary path, or another one after a failover (RFC
    /// 9260 §6.4.1).
    pub in_use: PathStatus,
    /// All paths, including the primary path.
    pub paths: Vec<PathStatus>,
    /// Number of streams over which messages without a stream are distributed at present.
    pub streams_in_use: u16,
    /// Maximum size of a message that may be sent, bytes
    /// ([`Config::max_message_size`](crate::Config::max_message_size)).
    pub max_message_size: usize,
    /// Text in the peer's ABORT: the reason of its application (User-Initiated Abort, RFC 9260
    /// §3.3.10.12), or the violation that its stack detected (Protocol Violation, §3.3.10.13).
    pub abort_reason: Option<Bytes>,
    /// Counters of the data transfer.
    pub counters: AssociationStatistics,
}

/// Status of a path: `struct sctp_paddrinfo` of RFC 6458 §8.2.2, without the prefix `spinfo_` of
/// its fields.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PathStatus {
    /// The peer's address.
    pub address: IpAddr,
    /// The local address of this path; unspecified if the system selects it.
    pub local: IpAddr,
    /// The UDP source port of the peer's last packets; 0 over raw IP.
    pub udp_port: u16,
    /// Whether the path is active, potentially failed, inactive or unconfirmed.
    pub state: PathState,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow-start threshold, bytes.
    pub ssthresh: u64,
    /// Bytes in flight.
    pub flightsize: u64,
    /// Smoothed round-trip time; `None` before the first measurement.
    pub srtt: Option<Duration>,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Maximum size of an SCTP packet, bytes. (RFC 6458 reports the path MTU, which includes the
    /// headers below SCTP.)
    pub mtu: usize,
    /// Number of consecutive errors.
    pub error_count: u32,
    /// Bytes of DATA chunks that were sent over this path since the association started, including
    /// retransmissions.
    pub bytes_sent: u64,
    /// Phase of Careful Resume (RFC 9959), if [configured](crate::Config::resume_cache).
    pub resume: Option<ResumePhase>,
}

impl PathStatus {
    /// An active path without traffic and with a path MTU of 1,500 bytes, for tests of programs
    /// that display paths.
    pub fn new(address: IpAddr, local: IpAddr) -> Self {
        Self {
            address,
            local,
            udp_port: 0,
            state: PathState::Active,
            cwnd: 0,
            ssthresh: 0,
            flightsize: 0,
            srtt: None,
            rto: Duration::ZERO,
            mtu: 1_500,
            error_count: 0,
            bytes_sent: 0,
            resume: None,
        }
    }

    /// Returns a copy modified by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl Status {
    /// An established association with one path and one stream, on which nothing was sent, for
    /// tests of programs that display it.
    pub fn new(path: PathStatus) -> Self {
        Self {
            state: AssociationState::Established,
            peer_port: 0,
            rwnd: 0,
            unackdata: 0,
            penddata: 0,
            instrms: 1,
            outstrms: 1,
            fragmentation_point: 1_400,
            primary: path.clone(),
            in_use: path.clone(),
            paths: vec![path],
            streams_in_use: 1,
            max_message_size: 1 << 20,
            abort_reason: None,
            counters: AssociationStatistics::default(),
        }
    }

    /// Returns a copy modified by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn of(association: &Association, max_message_size: usize) -> Self {
        let all = association.paths();
        let path = |id| {
            let entry = all.get(id);
            PathStatus {
                address: entry.path().remote,
                local: entry.path().local,
                udp_port: entry.udp_port(),
                state: entry.state(),
                cwnd: entry.cwnd(),
                ssthresh: entry.ssthresh(),
                flightsize: entry.flightsize(),
                srtt: entry.rto().srtt().map(Duration::from_nanos),
                rto: Duration::from_nanos(entry.rto().rto()),
                mtu: entry.max_packet(),
                error_count: entry.error_count(),
                bytes_sent: entry.bytes_sent(),
                resume: entry.careful_resume().map(|it| it.phase()),
            }
        };
        // Addresses that turned out not to belong to the peer are not listed as its paths.
        let theirs = all.iter().filter(|(_, entry)| !entry.is_disowned());
        let paths = theirs.map(|(id, _)| path(id)).collect();
        let [primary, in_use] = [all.primary(), all.choose_for_new_data()].map(path);
        let status = association.status();
        Self {
            state: association.state(),
            peer_port: status.remote_port,
            rwnd: status.peer_rwnd,
            unackdata: status.outstanding_chunks,
            penddata: association.send_buffer().unsent(),
            instrms: status.inbound_streams,
            outstrms: status.outbound_streams,
            fragmentation_point: status.fragmentation_point,
            primary,
            in_use,
            paths,
            streams_in_use: status.streams_in_use,
            max_message_size,
            abort_reason: status.abort_reason,
            counters: association.stats(),
        }
    }
}

/// Counters of an endpoint. The counters of sending, `receive_calls` and `packets_dropped` belong
/// to the sockets, which other endpoints may share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStatistics {
    /// Packets passed to sockets.
    pub packets_sent: u64,
    /// Number of send calls, which is less than the number of packets if a call sends several
    /// packets (GSO).
    pub send_calls: u64,
    /// Packets that the system refused to send; the protocol treats them as lost.
    pub send_errors: u64,
    /// Receive calls that returned an error.
    pub receive_errors: u64,
    /// Socket errors by reason: at most 16 reasons.
    pub socket_errors: Vec<SocketError>,
    /// Packets received.
    pub packets_received: u64,
    /// Receive calls that returned packets.
    pub receive_calls: u64,
    /// Received packets that were dropped because the receive queue was full: only packets of the
    /// sender with the most queued data.
    pub packets_dropped: u64,
    /// Packets for this shard that another shard has received: see [`Shard`](crate::Shard).
    pub packets_handed_over: u64,
    /// Datagrams that were dropped before the protocol, because they were truncated or came from
    /// the wrong UDP port.
    pub foreign: u64,
    /// Packets and chunks that the protocol dropped, by reason.
    pub discards: DiscardCounts,
}

impl fmt::Display for EndpointStatistics {
    /// Lists the counters that are not zero, by name, then the socket errors and the packets
    /// dropped by the protocol, by reason.
    ///
    /// `packets_sent 12, send_calls 9, packets_received 11, receive_calls 7, discarded: checksum 2`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = [
            ("packets_sent", self.packets_sent),
            ("send_calls", self.send_calls),
            ("send_errors", self.send_errors),
            ("receive_errors", self.receive_errors),
            ("packets_received", self.packets_received),
            ("receive_calls", self.receive_calls),
            ("packets_dropped", self.packets_dropped),
            ("packets_handed_over", self.packets_handed_over),
            ("foreign", self.foreign),
        ];
        for (name, count) in counters.iter().filter(|(_, count)| *count > 0) {
            write!(f, "{name} {count}, ")?;
        }
        for error in &self.socket_errors {
            write!(f, "{error}, ")?;
        }
        write!(f, "discarded: {}", self.discards)
    }
}

#[cfg(test)]
mod tests {
    use anabranch_sctp::{Config, Endpoint, SendOptions};
    use anabranch_transport::{Ecn, Nanos, Path, Transport};
    use bytes::BytesMut;

    use super::*;

    #[test]
    fn counters_are_shown_by_name_and_zero_ones_left_out() {
        let mut statistics = EndpointStatistics::default();
        assert_eq!(statistics.to_string(), "discarded: none");
        (statistics.packets_sent, statistics.foreign) = (3, 1);
        let shown = "packets_sent 3, foreign 1, discarded: none";
        assert_eq!(statistics.to_string(), shown);
    }

    fn host(number: u8) -> [IpAddr; 2] {
        [0, 1].map(|network| [10, 0, network, number].into())
    }

    /// Two hosts with two addresses each; packets between them arrive immediately.
    struct Hosts {
        endpoints: [Endpoint; 2],
        now: Nanos,
        /// Packets to and from this address are lost.
        cut: Option<IpAddr>,
    }

    impl Hosts {
        fn exchange(&mut self) {
            let mut quiet = false;
            while !std::mem::replace(&mut quiet, true) {
                for from in [0, 1] {
                    let mut out = BytesMut::new();
                    while let Some(transmit) =
                        self.endpoints[from].poll_transmit(self.now, &mut out)
                    {
                        quiet = false;
                        let packet = out.split_to(transmit.len).freeze();
                        let Path { local, remote } = transmit.path;
                        if [Some(local), Some(remote)].contains(&self.cut) {
                            continue;
                        }
                        let back = Path::new(remote, local);
                        self.endpoints[1 - from].handle_datagram(
                            self.now,
                            back,
                            Ecn::NotEct,
                            packet,
                        );
                    }
                }
            }
        }

        /// Advances to the next timeout of either endpoint.
        fn step(&mut self) {
            let next = self.endpoints.iter().filter_map(Transport::poll_timeout);
            self.now = next.min().expect("a timer runs");
            for endpoint in &mut self.endpoints {
                endpoint.handle_timeout(self.now);
            }
            self.exchange();
        }
    }

    /// After a failover the status shows the window and RTT of the path in use, not those of the
    /// failed primary path.
    #[test]
    fn after_a_failover_the_path_in_use_is_another_than_the_primary() {
        let endpoint = |number| {
            let config = Config::default().with(|it| it.addresses = host(number).to_vec());
            Endpoint::new(config, 7, [number; 32]).expect("settings")
        };
        let mut hosts = Hosts {
            endpoints: [endpoint(1), endpoint(2)],
            now: 0,
            cut: None,
        };
        hosts.endpoints[1].listen(true);
        let [first, second] = host(2);
        let id = hosts.endpoints[0].connect(0, &[first, second], 7);
        let id = id.expect("an address");
        hosts.exchange();
        // Waits until a HEARTBEAT has confirmed the second address.
        let status = |hosts: &Hosts| Status::of(hosts.endpoints[0].association(id).expect("up"), 1);
        while status(&hosts).paths[1].state != PathState::Active {
            hosts.step();
        }
        let before = status(&hosts);
        assert_eq!(
            (before.primary.address, before.in_use.address),
            (first, first)
        );
        hosts.cut = Some(first);
        let association = hosts.endpoints[0].association_mut(id).expect("up");
        let message = vec![1; 1_000].into();
        let sent = association.send(hosts.now, message, &SendOptions::new());
        sent.expect("room");
        hosts.exchange();
        while status(&hosts).paths[0].state == PathState::Active {
            hosts.step();
        }
        let after = status(&hosts);
        assert_eq!(
            (after.primary.address, after.in_use.address),
            (first, second)
        );
    }
}

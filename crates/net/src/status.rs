//! Live figures of an association, under the names of RFC 6458.

use std::net::IpAddr;

use anabranch_sctp::stats::AssociationStatistics;
use anabranch_sctp::{Association, Discards, PathState, StateName};
use anabranch_transport::Nanos;

/// What RFC 6458 §8.2.1 has as `struct sctp_status`, without its prefix `sstat_`; and counters since the beginning.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The state (RFC 9260 §4).
    pub state: StateName,
    /// What is believed to be left of the peer's receive window, bytes.
    pub rwnd: u64,
    /// DATA chunks sent and not acknowledged.
    pub unackdata: usize,
    /// Bytes of user data accepted and not yet sent. (RFC 6458 counts chunks pending receipt; bytes say more here.)
    pub penddata: usize,
    /// Streams the peer may send on.
    pub instrms: u16,
    /// Streams this side may send on.
    pub outstrms: u16,
    /// The largest message that goes in one DATA chunk, bytes.
    pub fragmentation_point: usize,
    /// The primary path.
    pub primary: PathStatus,
    /// Every path, the primary among them.
    pub paths: Vec<PathStatus>,
    /// Streams that messages without a stream are spread over now.
    pub streams_in_use: u16,
    /// Counters of the data transfer.
    pub counters: AssociationStatistics,
}

/// What RFC 6458 §8.2.2 has as `struct sctp_paddrinfo`, without its prefix `spinfo_`.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStatus {
    /// The peer's address.
    pub address: IpAddr,
    /// Our address on this path; unspecified where the system chooses it.
    pub local: IpAddr,
    /// The peer's UDP port, as followed; 0 over raw IP.
    pub udp_port: u16,
    /// Whether it may carry data.
    pub state: PathState,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow-start threshold, bytes.
    pub ssthresh: u64,
    /// Bytes in flight.
    pub flightsize: u64,
    /// Smoothed round-trip time, nanoseconds; `None` before the first measurement.
    pub srtt: Option<Nanos>,
    /// Retransmission timeout, nanoseconds.
    pub rto: Nanos,
    /// The largest SCTP packet, bytes. (RFC 6458 has the path MTU, which is this and the headers below.)
    pub mtu: usize,
    /// Errors in a row.
    pub error_count: u32,
}

impl Status {
    pub(crate) fn of(association: &Association) -> Self {
        let paths: Vec<PathStatus> = association
            .paths()
            .iter()
            .map(|(_, entry)| PathStatus {
                address: entry.path.remote,
                local: entry.path.local,
                udp_port: entry.udp_port,
                state: entry.state,
                cwnd: entry.cc.cwnd(),
                ssthresh: entry.cc.ssthresh(),
                flightsize: entry.flightsize,
                srtt: entry.rto.srtt(),
                rto: entry.rto.rto(),
                mtu: entry.max_packet,
                error_count: entry.error_count,
            })
            .collect();
        let primary = usize::from(association.paths().primary().0);
        Self {
            state: association.state(),
            rwnd: association.peer_rwnd(),
            unackdata: association.outstanding_chunks(),
            penddata: association.buffered(),
            instrms: association.inbound_streams(),
            outstrms: association.outbound_streams(),
            fragmentation_point: association.fragmentation_point(),
            primary: paths[primary].clone(),
            paths,
            streams_in_use: association.streams_in_use(),
            counters: association.stats(),
        }
    }
}

/// Counters of an endpoint. Those of sending, `receive_calls` and `packets_dropped` are its sockets', which others may share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointStatistics {
    /// Packets handed to sockets.
    pub packets_sent: u64,
    /// Calls that handed them over: fewer, where runs of packets go at once.
    pub send_calls: u64,
    /// Packets that the system refused to send; to the protocol they are lost.
    pub send_errors: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Calls that brought them.
    pub receive_calls: u64,
    /// Datagrams thrown away before the protocol saw them: of another UDP port than the fixed one, or cut short.
    pub foreign: u64,
    /// What the protocol threw away, by reason.
    pub discards: Discards,
    /// Packets received and dropped since too many waited to be handled: only those of the sender with the most waiting.
    pub packets_dropped: u64,
}

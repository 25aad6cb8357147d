//! Counters of a connection.

/// Counters since the start of the connection. "Segments" means segments with data or a FIN, unless
/// noted otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Segments sent, including retransmissions and probes.
    pub segments_sent: u64,
    /// Data bytes sent, including retransmissions.
    pub bytes_sent: u64,
    /// Segments retransmitted.
    pub segments_retransmitted: u64,
    /// Data bytes retransmitted.
    pub bytes_retransmitted: u64,
    /// Data bytes acknowledged cumulatively.
    pub bytes_acknowledged: u64,
    /// Pure acknowledgements sent: segments without data, SYN or FIN.
    pub acknowledgements_sent: u64,
    /// Acknowledgements received that did not advance the cumulatively acknowledged offset and that
    /// loss recovery counted as duplicates.
    pub duplicate_acknowledgements: u64,
    /// Loss recoveries started by duplicate acknowledgements or SACK.
    pub fast_retransmits: u64,
    /// Retransmission timeouts, excluding those of the handshake.
    pub timeouts: u64,
    /// SYNs and SYN-ACKs retransmitted.
    pub syn_retransmissions: u64,
    /// Window reductions undone because no segment had been lost (RFC 4015).
    pub reductions_undone: u64,
    /// Undone reductions that a timeout had caused.
    pub spurious_timeouts: u64,
    /// Number of times that ECN marks reduced the window or paused sending (RFC 3168 §6.1.2).
    pub reductions_by_mark: u64,
    /// Packets that the peer reported as marked; requires `accurate_ecn` (RFC 9768 §3.2: s.cep).
    pub marked_packets_reported: u64,
    /// Data bytes that the peer reported as marked; requires `accurate_ecn` (s.ceb). If the peer
    /// sends no option, they are estimated from the marked packets.
    pub marked_bytes_reported: u64,
    /// Data bytes that the peer received with ECT(0); requires `accurate_ecn` (s.e0b).
    pub ect0_bytes_reported: u64,
    /// Data bytes that the peer received with ECT(1); requires `accurate_ecn` (s.e1b).
    pub ect1_bytes_reported: u64,
    /// Tail loss probes sent (RFC 8985 §7.3).
    pub tail_probes: u64,
    /// Zero-window probes sent.
    pub window_probes: u64,
    /// Segments of any kind received, including dropped ones.
    pub segments_received: u64,
    /// Segments with data or a FIN received in packets marked CE.
    pub marks_received: u64,
    /// Data bytes that became readable, in order.
    pub bytes_delivered: u64,
    /// Segments with data that contained no new data.
    pub duplicates_received: u64,
    /// Segments received whose data was after a gap.
    pub out_of_order_received: u64,
    /// Segments dropped on receipt, by reason.
    pub dropped: DroppedSegments,
}

/// Segments dropped on receipt, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedSegments {
    /// The segment is shorter than a header, or has an invalid data offset or option.
    pub malformed: u64,
    /// The checksum is wrong.
    pub checksum: u64,
    /// The addresses or ports are those of another connection.
    pub misdirected: u64,
    /// The segment is entirely outside the receive window (RFC 9293 §3.10.7.4, first check).
    pub outside_window: u64,
    /// The timestamp is older than the last valid one (RFC 7323 §5).
    pub old_timestamp: u64,
    /// The segment acknowledges data that was never sent, or its acknowledgment number is far too
    /// old (RFC 5961 §5).
    pub bad_acknowledgement: u64,
    /// A RST or SYN that was answered with a challenge ACK (RFC 5961 §3, §4), or a segment without
    /// the mandatory ACK flag.
    pub suspicious: u64,
    /// The segment is out of order, and the limit of buffered slices was reached.
    pub no_room: u64,
    /// The segment was received after the connection was closed.
    pub closed: u64,
}

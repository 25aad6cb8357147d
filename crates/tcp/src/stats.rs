//! Connection counters.

/// Counters since the start of the connection. Unless noted otherwise, segments are those with data
/// or a FIN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Segments sent, retransmissions and probes included.
    pub segments_sent: u64,
    /// Data bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Segments retransmitted.
    pub segments_retransmitted: u64,
    /// Data bytes retransmitted.
    pub bytes_retransmitted: u64,
    /// Data bytes acknowledged cumulatively.
    pub bytes_acknowledged: u64,
    /// Pure acknowledgements sent (segments without data, SYN and FIN).
    pub acknowledgements_sent: u64,
    /// Acknowledgements received without cumulative progress, counted as duplicates by loss
    /// recovery.
    pub duplicate_acknowledgements: u64,
    /// Loss recoveries started by duplicate acknowledgements or SACK.
    pub fast_retransmits: u64,
    /// Retransmission timeouts, without those of the handshake.
    pub timeouts: u64,
    /// SYNs and SYN-ACKs retransmitted.
    pub syn_retransmissions: u64,
    /// Window reductions undone because no segment had been lost (RFC 4015).
    pub reductions_undone: u64,
    /// Undone reductions that were caused by timeouts.
    pub spurious_timeouts: u64,
    /// Number of times that the window was reduced, or sending was paused, because of ECN marks
    /// (RFC 3168 §6.1.2).
    pub reductions_by_mark: u64,
    /// Packets that the peer reported as marked, with `accurate_ecn` (RFC 9768 §3.2: s.cep).
    pub marked_packets_reported: u64,
    /// Data bytes that the peer reported as marked, with `accurate_ecn` (s.ceb); estimated from the
    /// packets where it sends no option.
    pub marked_bytes_reported: u64,
    /// Data bytes that the peer received with ECT(0), with `accurate_ecn` (s.e0b).
    pub ect0_bytes_reported: u64,
    /// Data bytes that the peer received with ECT(1), with `accurate_ecn` (s.e1b).
    pub ect1_bytes_reported: u64,
    /// Tail loss probes (RFC 8985 §7.3).
    pub tail_probes: u64,
    /// Zero-window probes.
    pub window_probes: u64,
    /// Segments of any kind received, dropped ones included.
    pub segments_received: u64,
    /// Segments with data or a FIN received in packets marked CE.
    pub marks_received: u64,
    /// Data bytes that became readable in order.
    pub bytes_delivered: u64,
    /// Segments with data that contained no new data.
    pub duplicates_received: u64,
    /// Segments with data received out of order.
    pub out_of_order_received: u64,
    /// Segments dropped on receipt, by reason.
    pub dropped: Dropped,
}

/// Segments dropped on receipt, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// Shorter than a header, or with an invalid data offset or option.
    pub malformed: u64,
    /// Wrong checksum.
    pub checksum: u64,
    /// Addresses or ports of another connection.
    pub misdirected: u64,
    /// Entirely outside the receive window (RFC 9293 §3.10.7.4, first check).
    pub outside_window: u64,
    /// An old timestamp (RFC 7323 §5).
    pub old_timestamp: u64,
    /// Acknowledges data never sent, or is far too old (RFC 5961 §5).
    pub bad_acknowledgement: u64,
    /// A RST or SYN that was answered with a challenge ACK (RFC 5961 §3, §4), or a segment without
    /// the mandatory acknowledgement.
    pub suspicious: u64,
    /// Out of order while the limit of buffered slices was reached.
    pub no_room: u64,
    /// Received after the connection was closed.
    pub closed: u64,
}

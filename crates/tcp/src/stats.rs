//! What a connection counts.

/// Counters since the connection began. Segments are those with text or a FIN unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Segments sent, retransmissions and probes included.
    pub segments_sent: u64,
    /// Bytes of text sent, retransmissions included.
    pub bytes_sent: u64,
    /// Segments sent again.
    pub segments_retransmitted: u64,
    /// Bytes of text sent again.
    pub bytes_retransmitted: u64,
    /// Bytes of text acknowledged cumulatively.
    pub bytes_acknowledged: u64,
    /// Segments without text, SYN or FIN sent: bare acknowledgements.
    pub acknowledgements_sent: u64,
    /// Acknowledgements received that told nothing new cumulatively, as the recovery counts duplicates.
    pub duplicate_acknowledgements: u64,
    /// Recoveries begun by duplicates or SACK.
    pub fast_retransmits: u64,
    /// Retransmission timeouts, the handshake's not included.
    pub timeouts: u64,
    /// SYNs and SYN-ACKs sent again.
    pub syn_retransmissions: u64,
    /// Reductions undone, since nothing had been lost (RFC 4015).
    pub reductions_undone: u64,
    /// Those of them that were timeouts.
    pub spurious_timeouts: u64,
    /// Times that the window was reduced, or held back, for marks (RFC 3168 §6.1.2).
    pub reductions_by_mark: u64,
    /// Probes of a silent tail (RFC 8985 §7.3).
    pub tail_probes: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
    /// Segments of any kind received, dropped ones included.
    pub segments_received: u64,
    /// Segments with text or a FIN that came in packets marked with CE.
    pub marks_received: u64,
    /// Bytes of text that became deliverable in order.
    pub bytes_delivered: u64,
    /// Segments with text that brought nothing new.
    pub duplicates_received: u64,
    /// Segments with text that lay beyond a hole.
    pub out_of_order_received: u64,
    /// Why segments were dropped.
    pub dropped: Dropped,
}

/// Segments dropped on receipt, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// Shorter than a header, a bad data offset or a bad option.
    pub malformed: u64,
    /// Wrong checksum.
    pub checksum: u64,
    /// For another connection: addresses or ports differ.
    pub misdirected: u64,
    /// Wholly outside the receive window (RFC 9293 §3.10.7.4, first check).
    pub outside_window: u64,
    /// An old timestamp (RFC 7323 §5).
    pub old_timestamp: u64,
    /// Acknowledges what was never sent, or what is far too old (RFC 5961 §5).
    pub bad_acknowledgement: u64,
    /// A RST or SYN that was answered by a challenge (RFC 5961 §3, §4), or has no acknowledgement where one must be.
    pub suspicious: u64,
    /// Out of order, and too many pieces were waiting already.
    pub no_room: u64,
    /// For a closed connection.
    pub closed: u64,
}

//! Counters of the data transfer of an association. Counters never decrease, and cost one addition
//! each.

/// Counters of an association since its start, or since the restart of its peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssociationStatistics {
    /// Counters of the sender.
    pub sender: SenderStatistics,
    /// Counters of the receiver.
    pub receiver: ReceiverStatistics,
    /// Counters of control chunks.
    pub control: ControlStatistics,
}

/// HEARTBEATs and other control chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ControlStatistics {
    /// RE-CONFIGs with requests sent (RFC 6525 §5.1).
    pub re_configs: u64,
    /// ASCONFs sent, including retransmissions (RFC 5061 §5.1).
    pub asconfs: u64,
    /// HEARTBEATs sent.
    pub heartbeats: u64,
    /// HEARTBEAT ACKs sent.
    pub heartbeat_acks: u64,
    /// Bytes of both as IP packets; without IP and common header if a HEARTBEAT ACK was bundled.
    pub heartbeat_bytes: u64,
    /// ICMP messages that had an effect (RFC 9260 §10).
    pub icmp: u64,
    /// Path MTU probes sent.
    pub pmtu_probes: u64,
    /// Packets received with CE.
    pub marks_received: u64,
    /// Changes of the primary path not made by the user.
    pub primary_changes: u64,
}

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SenderStatistics {
    /// DATA chunks sent for the first time.
    pub chunks_sent: u64,
    /// Bytes of user data in them.
    pub bytes_sent: u64,
    /// Bytes of user data acknowledged cumulatively, which the peer cannot renege.
    pub bytes_acknowledged: u64,
    /// DATA chunks retransmitted.
    pub chunks_retransmitted: u64,
    /// Bytes of user data in them.
    pub bytes_retransmitted: u64,
    /// Chunks detected as lost by missing reports.
    pub fast_retransmits: u64,
    /// Expirations of T3-rtx.
    pub timeouts: u64,
    /// Tail loss probes sent (RFC 8985 §7.3).
    pub tail_probes: u64,
    /// Reductions of cwnd that were undone, because no data had been lost.
    pub reductions_undone: u64,
    /// Undone reductions after timeouts (RFC 5682).
    pub spurious_timeouts: u64,
    /// Reductions of cwnd after ECN marks (RFC 4960 Appendix A).
    pub reductions_by_mark: u64,
    /// SACKs processed.
    pub sacks: u64,
    /// SACKs older than the current state.
    pub stale_sacks: u64,
    /// SACKs that acknowledged unsent data.
    pub impossible_sacks: u64,
    /// Chunks sent to probe a closed window.
    pub window_probes: u64,
    /// Messages abandoned before any transmission (RFC 7496 §4.4).
    pub abandoned_unsent: u64,
    /// Messages abandoned after a partial or complete transmission.
    pub abandoned_sent: u64,
    /// FORWARD TSNs sent (RFC 3758 §3.5).
    pub forward_tsns: u64,
    /// Changes of the number of streams in use.
    pub stream_changes: u64,
    /// Occasions on which the stream allocation wanted more streams than negotiated.
    pub streams_refused: u64,
}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiverStatistics {
    /// DATA chunks received for the first time.
    pub chunks: u64,
    /// Bytes of user data in them.
    pub bytes: u64,
    /// Duplicate chunks.
    pub duplicates: u64,
    /// Chunks dropped because the buffer was full.
    pub dropped_full: u64,
    /// Chunks reneged to make space for a missing earlier one (RFC 9260 §6.2); they count again
    /// when they are retransmitted.
    pub withdrawn: u64,
    /// Chunks too far beyond the cumulative TSN.
    pub out_of_reach: u64,
    /// Chunks refused: nonexistent stream, no user data, or a contradiction.
    pub refused: u64,
    /// Messages delivered completely.
    pub messages: u64,
    /// Messages whose delivery began before their end had arrived.
    pub partial_messages: u64,
    /// SACKs sent.
    pub sacks: u64,
}

/// Declares counters in their internal form: counters that nearly every association uses, and a
/// separate allocation for the others, which exists once one of these is not 0.
macro_rules! counters {
    ($(#[$doc:meta])+ $name:ident of $all:ident: $($often:ident),+) => {
        $(#[$doc])+
        #[derive(Debug, Default)]
        pub(crate) struct $name {
            $(pub(crate) $often: u64,)+
            seldom: Option<Box<$all>>,
        }

        impl $name {
            /// Rare counters, to be incremented.
            #[cold]
            pub(crate) fn seldom(&mut self) -> &mut $all {
                self.seldom.get_or_insert_default()
            }

            /// All counters.
            pub(crate) fn told(&self) -> $all {
                $all {
                    $($often: self.$often,)+
                    ..self.seldom.as_deref().copied().unwrap_or_default()
                }
            }
        }
    };
}

counters! {
    /// As [`ControlStatistics`].
    ControlCounters of ControlStatistics: heartbeats, heartbeat_acks, heartbeat_bytes
}
counters! {
    /// As [`SenderStatistics`].
    SenderCounters of SenderStatistics: chunks_sent, bytes_sent, bytes_acknowledged, sacks
}
counters! {
    /// As [`ReceiverStatistics`].
    ReceiverCounters of ReceiverStatistics: chunks, bytes, messages, sacks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_two_places_are_reported_together() {
        let mut counters = SenderCounters::default();
        assert_eq!(counters.told(), SenderStatistics::default());
        counters.sacks += 2;
        assert!(counters.seldom.is_none());
        counters.seldom().timeouts += 1;
        counters.seldom().timeouts += 1;
        counters.sacks += 1;
        let expected = SenderStatistics {
            sacks: 3,
            timeouts: 2,
            ..SenderStatistics::default()
        };
        assert_eq!(counters.told(), expected);
    }
}

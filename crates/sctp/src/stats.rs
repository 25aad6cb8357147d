//! Statistics of an association. Counters never decrease, and each counted event costs one
//! addition.

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

/// Counters of control chunks, probes and ICMP messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ControlStatistics {
    /// Sent RE-CONFIG chunks that contain requests (RFC 6525 §5.1).
    pub re_configs: u64,
    /// ASCONF chunks sent, including retransmissions (RFC 5061 §5.1).
    pub asconfs: u64,
    /// HEARTBEATs sent.
    pub heartbeats: u64,
    /// HEARTBEAT ACKs sent.
    pub heartbeat_acks: u64,
    /// Bytes of the IP packets with HEARTBEATs and HEARTBEAT ACKs. If such a chunk was bundled with
    /// others, only the bytes of the chunk count.
    pub heartbeat_bytes: u64,
    /// ICMP messages that had an effect (RFC 9260 §10).
    pub icmp: u64,
    /// Path MTU probes sent.
    pub pmtu_probes: u64,
    /// Packets received with an ECN mark (CE).
    pub marks_received: u64,
    /// Changes of the primary path that the user did not request.
    pub primary_changes: u64,
}

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SenderStatistics {
    /// DATA chunks sent for the first time.
    pub chunks_sent: u64,
    /// Bytes of user data in chunks sent for the first time.
    pub bytes_sent: u64,
    /// Bytes of user data acknowledged by the cumulative TSN, on which the peer cannot renege.
    pub bytes_acknowledged: u64,
    /// DATA chunks retransmitted.
    pub chunks_retransmitted: u64,
    /// Bytes of user data in retransmitted chunks.
    pub bytes_retransmitted: u64,
    /// Chunks that were considered lost because of missing reports.
    pub fast_retransmits: u64,
    /// Expirations of T3-rtx.
    pub timeouts: u64,
    /// Tail loss probes sent (RFC 8985 §7.3).
    pub tail_probes: u64,
    /// Reductions of cwnd that were undone, because no data was lost.
    pub reductions_undone: u64,
    /// Reductions of cwnd after spurious timeouts that were undone (RFC 5682).
    pub spurious_timeouts: u64,
    /// Reductions of cwnd after ECN marks (RFC 4960 Appendix A).
    pub reductions_by_mark: u64,
    /// SACKs processed.
    pub sacks: u64,
    /// SACKs that were older than the current state.
    pub stale_sacks: u64,
    /// SACKs that acknowledged unsent data.
    pub impossible_sacks: u64,
    /// Chunks sent to probe a closed window.
    pub window_probes: u64,
    /// Messages abandoned before any transmission (RFC 7496 §4.4).
    pub abandoned_unsent: u64,
    /// Messages abandoned after at least one chunk was sent.
    pub abandoned_sent: u64,
    /// FORWARD TSNs sent (RFC 3758 §3.5).
    pub forward_tsns: u64,
    /// Changes of the number of streams in use.
    pub stream_changes: u64,
    /// Number of times that the stream allocation wanted more streams than were negotiated.
    pub streams_refused: u64,
}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiverStatistics {
    /// DATA chunks received for the first time.
    pub chunks: u64,
    /// Bytes of user data in chunks received for the first time.
    pub bytes: u64,
    /// Duplicates of DATA chunks that were received before.
    pub duplicates: u64,
    /// Chunks dropped because the buffer was full.
    pub dropped_full: u64,
    /// Chunks that were reneged to make space for an earlier missing chunk (RFC 9260 §6.2). When
    /// their retransmissions arrive, `chunks` and `bytes` count them again.
    pub withdrawn: u64,
    /// Chunks whose TSN was too far ahead of the cumulative TSN.
    pub out_of_reach: u64,
    /// Chunks that were refused: nonexistent stream, no user data, or contradictory fragments.
    pub refused: u64,
    /// Messages of which all data was delivered.
    pub messages: u64,
    /// Messages whose delivery started before their last fragment had arrived.
    pub partial_messages: u64,
    /// SACKs sent.
    pub sacks: u64,
}

/// Declares the internal form of a statistics structure. Counters that nearly every association
/// needs are stored inline; the others are allocated when one of them is first incremented.
macro_rules! counters {
    ($(#[$doc:meta])+ $name:ident of $all:ident: $($often:ident),+) => {
        $(#[$doc])+
        #[derive(Debug, Default)]
        pub(crate) struct $name {
            $(pub(crate) $often: u64,)+
            rare: Option<Box<$all>>,
        }

        impl $name {
            /// Mutable access to the rare counters.
            #[cold]
            pub(crate) fn rare(&mut self) -> &mut $all {
                self.rare.get_or_insert_default()
            }

            /// All counters, for the user.
            pub(crate) fn told(&self) -> $all {
                $all {
                    $($often: self.$often,)+
                    ..self.rare.as_deref().copied().unwrap_or_default()
                }
            }
        }
    };
}

counters! {
    /// Internal form of [`ControlStatistics`].
    ControlCounters of ControlStatistics: heartbeats, heartbeat_acks, heartbeat_bytes
}
counters! {
    /// Internal form of [`SenderStatistics`].
    SenderCounters of SenderStatistics: chunks_sent, bytes_sent, bytes_acknowledged, sacks
}
counters! {
    /// Internal form of [`ReceiverStatistics`].
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
        assert!(counters.rare.is_none());
        counters.rare().timeouts += 1;
        counters.rare().timeouts += 1;
        counters.sacks += 1;
        let expected = SenderStatistics {
            sacks: 3,
            timeouts: 2,
            ..SenderStatistics::default()
        };
        assert_eq!(counters.told(), expected);
    }
}

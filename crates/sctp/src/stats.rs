//! Counters of an association's data transfer. They only grow, and cost an addition each.

/// Counters of an association: since it began, or since its peer restarted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssociationStatistics {
    /// What was sent.
    pub sender: SenderStatistics,
    /// What was received.
    pub receiver: ReceiverStatistics,
    /// What watching the paths took.
    pub control: ControlStatistics,
}

/// HEARTBEATs and what they led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ControlStatistics {
    /// RE-CONFIGs with requests sent (RFC 6525 §5.1).
    pub re_configs: u64,
    /// ASCONFs sent, again or for the first time (RFC 5061 §5.1).
    pub asconfs: u64,
    /// HEARTBEATs sent.
    pub heartbeats: u64,
    /// HEARTBEAT ACKs sent.
    pub heartbeat_acks: u64,
    /// Bytes of both as IP packets; without IP and common header where a HEARTBEAT ACK shared a packet.
    pub heartbeat_bytes: u64,
    /// ICMP messages that had an effect (RFC 9260 §10).
    pub icmp: u64,
    /// Probes of path MTUs sent.
    pub pmtu_probes: u64,
    /// Packets received with CE.
    pub marks_received: u64,
    /// Changes of the primary path that the user did not make.
    pub primary_changes: u64,
}

/// What a sender did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SenderStatistics {
    /// DATA chunks sent for the first time.
    pub chunks_sent: u64,
    /// User data in them, bytes.
    pub bytes_sent: u64,
    /// User data that the cumulative TSN has passed, bytes: the peer cannot take that back.
    pub bytes_acknowledged: u64,
    /// DATA chunks sent again.
    pub chunks_retransmitted: u64,
    /// User data in them, bytes.
    pub bytes_retransmitted: u64,
    /// Chunks found lost by missing reports.
    pub fast_retransmits: u64,
    /// Expiries of T3-rtx.
    pub timeouts: u64,
    /// Probes of a silent tail sent (RFC 8985 §7.3).
    pub tail_probes: u64,
    /// Reductions of a window that were undone, since nothing had been lost.
    pub reductions_undone: u64,
    /// Those of them that were for timeouts (RFC 5682).
    pub spurious_timeouts: u64,
    /// Times that a window was reduced for marks (RFC 4960 Appendix A).
    pub reductions_by_mark: u64,
    /// SACKs taken.
    pub sacks: u64,
    /// SACKs older than what was known.
    pub stale_sacks: u64,
    /// SACKs that acknowledged what was never sent.
    pub impossible_sacks: u64,
    /// Chunks sent into a closed window, to probe it.
    pub window_probes: u64,
    /// Messages given up of which nothing was sent (RFC 7496 §4.4).
    pub abandoned_unsent: u64,
    /// Messages given up of which some was sent.
    pub abandoned_sent: u64,
    /// FORWARD TSNs sent (RFC 3758 §3.5).
    pub forward_tsns: u64,
    /// Changes of the number of streams in use.
    pub stream_changes: u64,
    /// Times that the stream allocation wanted more streams than were negotiated.
    pub streams_refused: u64,
}

/// What a receiver saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiverStatistics {
    /// DATA chunks received for the first time.
    pub chunks: u64,
    /// User data in them, bytes.
    pub bytes: u64,
    /// Chunks received again.
    pub duplicates: u64,
    /// Chunks dropped for want of room.
    pub dropped_full: u64,
    /// Chunks taken and dropped again to make room for one that was missing before them (RFC 9260 §6.2); they count once
    /// more when they come again.
    pub withdrawn: u64,
    /// Chunks too far past the cumulative point.
    pub out_of_reach: u64,
    /// Chunks refused: no such stream, no user data, or a contradiction.
    pub refused: u64,
    /// Messages delivered to the end.
    pub messages: u64,
    /// Messages that began to be delivered before their end had come.
    pub partial_messages: u64,
    /// SACKs sent.
    pub sacks: u64,
}

/// Declares counters as they are kept: those of nearly every association, and a block for the others, which is there once one of them is not 0.
macro_rules! counters {
    ($(#[$doc:meta])+ $name:ident of $all:ident: $($often:ident),+) => {
        $(#[$doc])+
        #[derive(Debug, Default)]
        pub(crate) struct $name {
            $(pub(crate) $often: u64,)+
            seldom: Option<Box<$all>>,
        }

        impl $name {
            /// Those that most have no use for, to count in.
            #[cold]
            pub(crate) fn seldom(&mut self) -> &mut $all {
                self.seldom.get_or_insert_default()
            }

            /// All of them.
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
    fn what_is_counted_in_two_places_is_told_as_one() {
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

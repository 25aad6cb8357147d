//! Discarded packets and chunks, counted by reason.

use std::fmt;

macro_rules! discards {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// Why a packet or chunk was discarded.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum DiscardReason { $($(#[$doc])* $variant),* }

        impl DiscardReason {
            /// All reasons in numerical order.
            pub const ALL: &'static [DiscardReason] = &[$(DiscardReason::$variant),*];

            /// Name used in reports.
            pub const fn name(self) -> &'static str {
                match self { $(DiscardReason::$variant => $name),* }
            }
        }
    };
}

discards! {
    /// A packet that is shorter than a common header, or contains no chunk.
    Malformed = "malformed",
    /// The checksum is wrong (RFC 9260 §6.8).
    Checksum = "checksum",
    /// A packet without a required checksum: it contains an INIT or COOKIE ECHO, or belongs to an
    /// association for which this end has not announced that it accepts packets without a checksum
    /// (RFC 9653 §5.2, §5.3).
    ZeroChecksum = "zero_checksum",
    /// Source or destination port 0 (RFC 9260 §3.1), or another endpoint's port.
    Port = "port",
    /// Source or destination is not a unicast address (RFC 9260 §8.4, rule 1).
    NotUnicast = "not_unicast",
    /// The verification tag is not that of the association (RFC 9260 §8.5).
    VerificationTag = "verification_tag",
    /// Verification tag 0 in a packet that is not a single INIT (RFC 9260 §8.5.1 A).
    ZeroTag = "zero_tag",
    /// INIT, INIT ACK or SHUTDOWN COMPLETE together with another chunk (RFC 9260 §6.10).
    ForbiddenBundle = "forbidden_bundle",
    /// An out of the blue packet that is not answered (RFC 9260 §8.4, rules 2, 6 and 7), or data
    /// that arrived late for an association that was closed by SHUTDOWN.
    OutOfTheBlue = "out_of_the_blue",
    /// A chunk whose length field is shorter than its header or longer than the packet; the rest of
    /// the packet is also discarded.
    ChunkLength = "chunk_length",
    /// A chunk whose fields contradict its length.
    ChunkFields = "chunk_fields",
    /// A chunk of an unknown type (RFC 9260 §3.2); it may have been reported to the peer.
    UnknownChunk = "unknown_chunk",
    /// A chunk that has no meaning in the association's state.
    WrongState = "wrong_state",
    /// An INIT or INIT ACK that violates RFC 9260 §3.3.2 or §3.3.3.
    BadInit = "bad_init",
    /// A restart that adds new addresses (RFC 9260 §5.2.2).
    RestartNewAddress = "restart_new_address",
    /// A restart from another UDP port (draft-tuexen-tsvwg-sctp-udp-encaps-cons §4).
    RestartNewPort = "restart_new_port",
    /// An INIT ACK for one connection attempt while another attempt of the same race has already
    /// continued.
    SupersededAttempt = "superseded_attempt",
    /// A State Cookie that this endpoint did not create, or that does not match its packet (RFC
    /// 9260 §5.1.5).
    InvalidCookie = "invalid_cookie",
    /// A State Cookie older than its lifespan (RFC 9260 §5.2.6).
    StaleCookie = "stale_cookie",
    /// A State Cookie that arrived too late (RFC 9260 §5.2.4, action C and "no other").
    LateCookie = "late_cookie",
    /// A retransmitted COOKIE ECHO of a peer about which the user has not decided yet (RFC 9260
    /// §5.1 C).
    Undecided = "undecided",
    /// An ABORT or SHUTDOWN COMPLETE whose tag matches neither end (RFC 9260 §8.5.1 B, C).
    BadTagAbort = "bad_tag_abort",
    /// A HEARTBEAT ACK that answers no HEARTBEAT of this end, or an expired HEARTBEAT.
    HeartbeatNonce = "heartbeat_nonce",
    /// A HEARTBEAT ACK of RSCTP with an impossible bandwidth or loss rate; it still shows that the
    /// path is alive.
    HeartbeatReport = "heartbeat_report",
    /// An acknowledgment of data that was never sent.
    BadSack = "bad_sack",
    /// An ECNE for a TSN that was never sent, or was sent too long ago (RFC 4960 Appendix A).
    BadEcne = "bad_ecne",
    /// A FORWARD TSN that is outdated or too far ahead, or contains a nonexistent stream or an
    /// outdated stream sequence number (RFC 3758 §3.6).
    BadForwardTsn = "bad_forward_tsn",
    /// A RE-CONFIG with an invalid combination of parameters, an unreadable parameter, or an
    /// unexpected request number, or a response that matches no request (RFC 6525 §5.2).
    BadReConfig = "bad_re_config",
    /// An ASCONF that is unreadable, or whose serial number is neither the next nor a recent one;
    /// or an ASCONF-ACK that matches no ASCONF (RFC 5061 §5.2, §5.3).
    BadAsconf = "bad_asconf",
    /// An unauthenticated chunk of a type that must be authenticated (RFC 4895 §6.3).
    Unauthenticated = "unauthenticated",
    /// An AUTH with a wrong HMAC, an unknown key or algorithm, or a second AUTH in one packet. All
    /// chunks after it are discarded, too (RFC 4895 §6.3).
    BadAuth = "bad_auth",
    /// An unprotected packet of an association that requires the DTLS chunk
    /// (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.2).
    Unprotected = "unprotected",
    /// An INIT that does not offer the DTLS chunk, which is required here, or whose offer is
    /// incompatible (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.1).
    DtlsOffer = "dtls_offer",
    /// A DTLS chunk bundled with another chunk; the packet is discarded
    /// (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.2).
    BundledDtls = "bundled_dtls",
    /// A DTLS chunk whose record has a wrong format, or for which there is no key.
    BadDtls = "bad_dtls",
    /// A DTLS chunk whose record is not authentic.
    ForgedDtls = "forged_dtls",
    /// A DTLS chunk whose record was opened before, or is older than the replay window (RFC 9147
    /// §4.5.1).
    ReplayedDtls = "replayed_dtls",
    /// A second SACK of one packet: a receiver sends at most one per packet (RFC 9260 §6.2).
    SecondSack = "second_sack",
    /// DATA that is a duplicate, does not fit into the buffer, or has a nonexistent stream.
    Data = "data",
    /// An ICMP message of a type that has no effect on SCTP, or has none in the current state (RFC
    /// 9260 §10, ICMP1 to ICMP4).
    IcmpIgnored = "icmp_ignored",
    /// An ICMP message that does not quote an SCTP packet, or quotes too little of it.
    IcmpQuote = "icmp_quote",
    /// An ICMP message about a packet of no association (ICMP5).
    IcmpNoAssociation = "icmp_no_association",
    /// An ICMP message whose quoted packet does not have the association's tag (ICMP6).
    IcmpTag = "icmp_tag",
    /// A reply that exceeded the queue limit, or a chunk beyond the maximum number of control
    /// chunks per packet.
    RateLimited = "rate_limited",
}

/// Number of discards by reason. Allocated at the first discarded packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiscardCounts(Option<Box<[u64; DiscardReason::ALL.len()]>>);

impl DiscardCounts {
    /// Counts a discard. Marked as cold, so that the compiler keeps this code out of the fast path.
    #[cold]
    #[inline(never)]
    pub(crate) fn count(&mut self, reason: DiscardReason) {
        let none = || Box::new([0; DiscardReason::ALL.len()]);
        self.0.get_or_insert_with(none)[reason as usize] += 1;
    }

    /// Number of discards with this `reason`.
    pub fn of(&self, reason: DiscardReason) -> u64 {
        self.0.as_ref().map_or(0, |counts| counts[reason as usize])
    }

    /// Total number of discards.
    pub fn total(&self) -> u64 {
        self.0.as_ref().map_or(0, |counts| counts.iter().sum())
    }

    /// Reasons that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (DiscardReason, u64)> + '_ {
        DiscardReason::ALL
            .iter()
            .map(|&reason| (reason, self.of(reason)))
            .filter(|&(_, count)| count > 0)
    }
}

impl fmt::Display for DiscardCounts {
    /// Prints the reasons that occurred with their counts, such as `checksum 2, data 1`, or `none`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (reason, count) in self.iter() {
            write!(f, "{separator}{} {count}", reason.name())?;
            separator = ", ";
        }
        match separator {
            "" => f.write_str("none"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_occurred_are_shown_by_name() {
        let mut discards = DiscardCounts::default();
        assert_eq!(discards.to_string(), "none");
        discards.count(DiscardReason::Data);
        discards.count(DiscardReason::Checksum);
        discards.count(DiscardReason::Checksum);
        assert_eq!(discards.to_string(), "checksum 2, data 1");
    }
}

//! Packets and chunks that were thrown away, counted by reason.

use std::fmt;

macro_rules! discards {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// Why a packet, or a chunk of one, had no effect.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Discard { $($(#[$doc])* $variant),* }

        impl Discard {
            /// Every reason, in the order of their numbers.
            pub const ALL: &'static [Discard] = &[$(Discard::$variant),*];

            /// The name used in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Discard::$variant => $name),* }
            }
        }
    };
}

discards! {
    /// Shorter than a common header, or no chunk at all.
    Malformed = "malformed",
    /// The checksum is wrong (RFC 9260 §6.8).
    Checksum = "checksum",
    /// No checksum at all, in a packet that must have one: with an INIT or COOKIE ECHO, or of no association whose peer was told that
    /// it may go without (RFC 9653 §5.2, §5.3).
    ZeroChecksum = "zero_checksum",
    /// Source or destination port 0 (RFC 9260 §3.1), or another endpoint's port.
    Port = "port",
    /// Source or destination is no unicast address (RFC 9260 §8.4, rule 1).
    NotUnicast = "not_unicast",
    /// The verification tag is not the association's (RFC 9260 §8.5).
    VerificationTag = "verification_tag",
    /// Verification tag 0 on anything but a lone INIT (RFC 9260 §8.5.1 A).
    ZeroTag = "zero_tag",
    /// INIT, INIT ACK or SHUTDOWN COMPLETE together with another chunk (RFC 9260 §6.10).
    ForbiddenBundle = "forbidden_bundle",
    /// Out of the blue, and to be left without an answer (RFC 9260 §8.4, rules 2, 6 and 7), or late for an association that ended by SHUTDOWN.
    OutOfTheBlue = "out_of_the_blue",
    /// A chunk whose length field is shorter than its header or longer than the packet; the rest of the packet goes too.
    ChunkLength = "chunk_length",
    /// A chunk whose fields contradict its length.
    ChunkFields = "chunk_fields",
    /// A chunk of a type not known here (RFC 9260 §3.2); it may have been reported to the peer.
    UnknownChunk = "unknown_chunk",
    /// A chunk that means nothing in the association's state.
    Unexpected = "unexpected",
    /// An INIT or INIT ACK that breaks a rule of RFC 9260 §3.3.2 or §3.3.3.
    BadInit = "bad_init",
    /// A restart that brings new addresses (RFC 9260 §5.2.2).
    RestartNewAddress = "restart_new_address",
    /// A restart from another UDP port (draft-tuexen-tsvwg-sctp-udp-encaps-cons §4).
    RestartNewPort = "restart_new_port",
    /// An INIT ACK of an attempt while another of the same race is further.
    Outrun = "outrun",
    /// A State Cookie that this endpoint did not make, or that does not fit the packet around it (RFC 9260 §5.1.5).
    ForgedCookie = "forged_cookie",
    /// A State Cookie older than its lifespan (RFC 9260 §5.2.6).
    StaleCookie = "stale_cookie",
    /// A State Cookie that arrived too late to matter (RFC 9260 §5.2.4, action C and "no other").
    LateCookie = "late_cookie",
    /// A COOKIE ECHO again, of a peer that waits for the user to decide (RFC 9260 §5.1 C).
    Undecided = "undecided",
    /// An ABORT or SHUTDOWN COMPLETE whose tag fits neither end (RFC 9260 §8.5.1 B, C).
    BlindEnd = "blind_end",
    /// A HEARTBEAT ACK that answers no HEARTBEAT sent from here, or an old one.
    HeartbeatNonce = "heartbeat_nonce",
    /// A HEARTBEAT ACK of RSCTP whose bandwidth or loss rate cannot be true; that the path is alive still counts.
    HeartbeatReport = "heartbeat_report",
    /// An acknowledgement of data never sent.
    BadSack = "bad_sack",
    /// An ECNE for a TSN that was never sent, or far too long ago (RFC 4960 Appendix A).
    BadEcne = "bad_ecne",
    /// A FORWARD TSN out of date or too far on; or a stream in it that does not exist, or has come further (RFC 3758 §3.6).
    BadForwardTsn = "bad_forward_tsn",
    /// A RE-CONFIG whose parameters do not go together or cannot be read, a request under a number that was not next, or an answer
    /// to nothing that was asked (RFC 6525 §5.2).
    BadReConfig = "bad_re_config",
    /// An ASCONF whose serial number is neither the next nor that of one answered lately, or that cannot be read; an ASCONF-ACK to
    /// nothing that was asked (RFC 5061 §5.2, §5.3).
    BadAsconf = "bad_asconf",
    /// A chunk that is taken only if it is authenticated, and is not (RFC 4895 §6.3).
    Unauthenticated = "unauthenticated",
    /// An AUTH whose HMAC is wrong, whose key or algorithm is not known, or that is the second of its packet; all behind it goes,
    /// too (RFC 4895 §6.3).
    BadAuth = "bad_auth",
    /// A packet that is not protected, of an association that requires the DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.2).
    Unprotected = "unprotected",
    /// A DTLS chunk beside another chunk; the packet goes (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.2).
    BundledDtls = "bundled_dtls",
    /// A DTLS chunk whose record has a wrong format, or for which there is no key.
    BadDtls = "bad_dtls",
    /// A DTLS chunk whose record is not authentic.
    ForgedDtls = "forged_dtls",
    /// A DTLS chunk whose record was opened before, or is older than the replay window (RFC 9147 §4.5.1).
    ReplayedDtls = "replayed_dtls",
    /// A second SACK of one packet: a receiver sends one for a packet at most (RFC 9260 §6.2).
    SecondSack = "second_sack",
    /// DATA that was received before, found no room, or names a stream that does not exist.
    Data = "data",
    /// An ICMP message of a kind that means nothing to SCTP, or nothing now (RFC 9260 §10, ICMP1 to ICMP4).
    IcmpIgnored = "icmp_ignored",
    /// An ICMP message that quotes no SCTP packet, or too little of it.
    IcmpQuote = "icmp_quote",
    /// An ICMP message about a packet of no association here (ICMP5).
    IcmpStranger = "icmp_stranger",
    /// An ICMP message whose quoted packet has not the association's tag (ICMP6).
    IcmpTag = "icmp_tag",
    /// An answer that found no room among those waiting to be sent, or a chunk of a packet that has too many beside user data.
    Overload = "overload",
}

/// How often each reason occurred. Takes memory once one did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discards(Option<Box<[u64; Discard::ALL.len()]>>);

impl Discards {
    /// Counts one. It is seldom called: who calls it keeps that out of the way of what is common.
    #[cold]
    #[inline(never)]
    pub(crate) fn count(&mut self, reason: Discard) {
        let none = || Box::new([0; Discard::ALL.len()]);
        self.0.get_or_insert_with(none)[reason as usize] += 1;
    }

    /// How often `reason` occurred.
    pub fn of(&self, reason: Discard) -> u64 {
        self.0.as_ref().map_or(0, |counts| counts[reason as usize])
    }

    /// How often any reason occurred.
    pub fn total(&self) -> u64 {
        self.0.as_ref().map_or(0, |counts| counts.iter().sum())
    }

    /// Reasons that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Discard, u64)> + '_ {
        Discard::ALL
            .iter()
            .map(|&reason| (reason, self.of(reason)))
            .filter(|&(_, count)| count > 0)
    }
}

impl fmt::Display for Discards {
    /// Reasons that occurred, by name, with their counts: `checksum 2, data 1`; or `none`.
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
        let mut discards = Discards::default();
        assert_eq!(discards.to_string(), "none");
        discards.count(Discard::Data);
        discards.count(Discard::Checksum);
        discards.count(Discard::Checksum);
        assert_eq!(discards.to_string(), "checksum 2, data 1");
    }
}

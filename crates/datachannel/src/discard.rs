//! Counters of discarded input by reason.

macro_rules! discards {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Reasons for which input is discarded.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum DiscardReason { $($(#[$doc])* $variant),* }

        impl DiscardReason {
            /// Name of the reason.
            pub const fn name(self) -> &'static str {
                match self { $(DiscardReason::$variant => $name),* }
            }
        }
    };
}

discards! {
    /// A datagram that is neither STUN nor DTLS (RFC 7983 §7).
    NotOurs = "neither STUN nor DTLS",
    /// STUN that cannot be decoded, or is not a Binding request.
    Stun = "no Binding request",
    /// A Binding request with a wrong username or password.
    StunCredentials = "wrong name or password",
    /// DTLS from an address that has sent no valid Binding request.
    UncheckedAddress = "unchecked address",
    /// A DTLS record that cannot be decoded or used in the current state: unknown type, version or
    /// epoch, invalid length, or encrypted before the handshake is complete and not decipherable.
    DtlsRecord = "DTLS record",
    /// A fragment of an unencrypted handshake message that is not expected.
    DtlsMessage = "DTLS handshake message",
    /// A ClientHello that DTLS does not accept, or that exceeds the limit on their number.
    DtlsHello = "DTLS ClientHello",
    /// A certificate that does not match the offer.
    DtlsCertificate = "DTLS certificate",
    /// An unencrypted alert, which is not trusted, because any host can send it.
    DtlsAlert = "DTLS alert without protection",
    /// An encrypted record before keys are available, beyond the few that are buffered.
    DtlsEarly = "DTLS record before there are keys",
    /// DTLS input after the connection has ended.
    Late = "after the connection ended",
    /// A DCEP message that cannot be decoded.
    Dcep = "DCEP message",
    /// A DATA_CHANNEL_OPEN for a stream that is in use, or that the peer may not open (RFC 8832
    /// §6).
    OpenRefused = "DATA_CHANNEL_OPEN for a stream that is not free",
    /// A DATA_CHANNEL_OPEN beyond [`Config::max_channels`](crate::Config::max_channels), or beyond
    /// the limit on names.
    TooManyChannels = "too many channels",
    /// A DATA_CHANNEL_ACK without a pending DATA_CHANNEL_OPEN.
    AckUnexpected = "DATA_CHANNEL_ACK that was not asked for",
    /// A message on a stream without a channel, or with a closing channel.
    NoChannel = "message without a channel",
    /// A message whose PPID is not for data, or a text that is not UTF-8 (RFC 8831 §8).
    Payload = "message of no known kind",
}

/// Discard counters by reason.
#[derive(Clone, Debug, Default)]
pub struct DiscardCounts(std::collections::BTreeMap<DiscardReason, u64>);

impl DiscardCounts {
    pub(crate) fn count(&mut self, reason: DiscardReason) {
        *self.0.entry(reason).or_default() += 1;
    }

    /// The count for this reason.
    pub fn of(&self, reason: DiscardReason) -> u64 {
        self.0.get(&reason).copied().unwrap_or_default()
    }

    /// All reasons with a count above 0.
    pub fn iter(&self) -> impl Iterator<Item = (DiscardReason, u64)> + '_ {
        self.0.iter().map(|(&reason, &count)| (reason, count))
    }
}

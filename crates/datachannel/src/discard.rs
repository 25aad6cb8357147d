//! What was thrown away, by reason.

/// Why something that arrived was thrown away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Discard {
    /// A datagram that is neither STUN nor DTLS (RFC 7983 §7).
    NotOurs,
    /// STUN that cannot be read, or is no Binding request.
    Stun,
    /// A Binding request without the right name and password.
    StunCredentials,
    /// DTLS from an address that no Binding request came from.
    UncheckedAddress,
    /// A DTLS record that cannot be read, or can be of no use where the connection is: of an unknown kind, version or epoch, of a length
    /// that does not fit, or one that cannot be deciphered before the handshake is done.
    DtlsRecord,
    /// A piece of a plain handshake message that is not waited for.
    DtlsMessage,
    /// A ClientHello that DTLS does not take, or one of too many.
    DtlsHello,
    /// A certificate that is not the one of the offer.
    DtlsCertificate,
    /// An alert without protection: anybody can send it.
    DtlsAlert,
    /// A protected record before there are keys, beyond the few that are kept.
    DtlsEarly,
    /// DTLS after the connection ended.
    Late,
    /// A DCEP message that cannot be read.
    Dcep,
    /// A DATA_CHANNEL_OPEN for a stream that is in use, or is not the peer's to open (RFC 8832 §6).
    OpenRefused,
    /// A DATA_CHANNEL_OPEN beyond [`Config::max_channels`](crate::Config::max_channels), or whose names are too long together.
    TooManyChannels,
    /// A DATA_CHANNEL_ACK that nothing was asked for.
    AckUnexpected,
    /// A message on a stream without a channel, or on one that is being closed.
    NoChannel,
    /// A message with a PPID of no data, or a text that is not UTF-8 (RFC 8831 §8).
    Payload,
}

impl Discard {
    /// It in words.
    pub const fn name(self) -> &'static str {
        match self {
            Discard::NotOurs => "neither STUN nor DTLS",
            Discard::Stun => "no Binding request",
            Discard::StunCredentials => "wrong name or password",
            Discard::UncheckedAddress => "unchecked address",
            Discard::DtlsRecord => "DTLS record",
            Discard::DtlsMessage => "DTLS handshake message",
            Discard::DtlsHello => "DTLS ClientHello",
            Discard::DtlsCertificate => "DTLS certificate",
            Discard::DtlsAlert => "DTLS alert without protection",
            Discard::DtlsEarly => "DTLS record before there are keys",
            Discard::Late => "after the connection ended",
            Discard::Dcep => "DCEP message",
            Discard::OpenRefused => "DATA_CHANNEL_OPEN for a stream that is not free",
            Discard::TooManyChannels => "too many channels",
            Discard::AckUnexpected => "DATA_CHANNEL_ACK that was not asked for",
            Discard::NoChannel => "message without a channel",
            Discard::Payload => "message of no known kind",
        }
    }
}

/// How many were thrown away for each reason.
#[derive(Clone, Debug, Default)]
pub struct Discards(std::collections::BTreeMap<Discard, u64>);

impl Discards {
    pub(crate) fn count(&mut self, reason: Discard) {
        *self.0.entry(reason).or_default() += 1;
    }

    /// How many for this reason.
    pub fn of(&self, reason: Discard) -> u64 {
        self.0.get(&reason).copied().unwrap_or_default()
    }

    /// Every reason that there was, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (Discard, u64)> + '_ {
        self.0.iter().map(|(&reason, &count)| (reason, count))
    }
}

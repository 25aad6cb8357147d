//! What was thrown away, by reason.

macro_rules! discards {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Why something that arrived was thrown away.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Discard { $($(#[$doc])* $variant),* }

        impl Discard {
            /// It in words.
            pub const fn name(self) -> &'static str {
                match self { $(Discard::$variant => $name),* }
            }
        }
    };
}

discards! {
    /// A datagram that is neither STUN nor DTLS (RFC 7983 §7).
    NotOurs = "neither STUN nor DTLS",
    /// STUN that cannot be read, or is no Binding request.
    Stun = "no Binding request",
    /// A Binding request without the right name and password.
    StunCredentials = "wrong name or password",
    /// DTLS from an address that no Binding request came from.
    UncheckedAddress = "unchecked address",
    /// A DTLS record that cannot be read, or can be of no use where the connection is: of an unknown kind, version or epoch, of a length
    /// that does not fit, or one that cannot be deciphered before the handshake is done.
    DtlsRecord = "DTLS record",
    /// A piece of a plain handshake message that is not waited for.
    DtlsMessage = "DTLS handshake message",
    /// A ClientHello that DTLS does not take, or one of too many.
    DtlsHello = "DTLS ClientHello",
    /// A certificate that is not the one of the offer.
    DtlsCertificate = "DTLS certificate",
    /// An alert without protection: anybody can send it.
    DtlsAlert = "DTLS alert without protection",
    /// A protected record before there are keys, beyond the few that are kept.
    DtlsEarly = "DTLS record before there are keys",
    /// DTLS after the connection ended.
    Late = "after the connection ended",
    /// A DCEP message that cannot be read.
    Dcep = "DCEP message",
    /// A DATA_CHANNEL_OPEN for a stream that is in use, or is not the peer's to open (RFC 8832 §6).
    OpenRefused = "DATA_CHANNEL_OPEN for a stream that is not free",
    /// A DATA_CHANNEL_OPEN beyond [`Config::max_channels`](crate::Config::max_channels), or whose names are too long together.
    TooManyChannels = "too many channels",
    /// A DATA_CHANNEL_ACK that nothing was asked for.
    AckUnexpected = "DATA_CHANNEL_ACK that was not asked for",
    /// A message on a stream without a channel, or on one that is being closed.
    NoChannel = "message without a channel",
    /// A message with a PPID of no data, or a text that is not UTF-8 (RFC 8831 §8).
    Payload = "message of no known kind",
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

//! SCTP extensions beyond RFC 9260 that the test cases use.

use std::fmt;

/// SCTP extension that both peers of a case offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extension {
    /// No extensions, except those that the stacks use by default.
    #[default]
    None,
    /// I-DATA (RFC 8260).
    Interleaving,
    /// Partial reliability (RFC 3758, RFC 7496): messages of every second stream are never
    /// retransmitted.
    Partial,
    /// RE-CONFIG (RFC 6525): after half of its messages, each peer resets all its streams.
    Resets,
    /// AUTH (RFC 4895): each peer requires that all chunks with user data are authenticated with
    /// the empty key.
    Authentication,
    /// ASCONF (RFC 5061): after half of its messages, a peer changes its address. The peer adds the
    /// new address, requests that the other peer uses it as primary, and removes the old address.
    Addresses,
}

impl Extension {
    /// All variants.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::Interleaving,
        Self::Partial,
        Self::Resets,
        Self::Authentication,
        Self::Addresses,
    ];

    /// Returns the extension with this name, as [`Display`](fmt::Display) prints it.
    ///
    /// # Errors
    ///
    /// The name is unknown.
    pub fn by_name(name: &str) -> Result<Self, String> {
        let all = Self::ALL.into_iter();
        all.clone()
            .find(|it| it.to_string() == name)
            .ok_or_else(|| {
                format!(
                    "speaks={name}: it is one of {:?}",
                    all.map(|it| it.to_string())
                )
            })
    }
}

impl fmt::Display for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Interleaving => "interleaving",
            Self::Partial => "partial",
            Self::Resets => "resets",
            Self::Authentication => "authentication",
            Self::Addresses => "addresses",
        })
    }
}

//! What a case speaks beyond RFC 9260.

use std::fmt;

/// An extension that both peers offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extension {
    /// None but what the stacks speak by themselves.
    #[default]
    None,
    /// I-DATA (RFC 8260).
    Interleaving,
    /// Partial reliability (RFC 3758, RFC 7496): the messages of every second stream are never sent again.
    Partial,
    /// RE-CONFIG (RFC 6525): after half of its messages each peer resets all its streams.
    Resets,
    /// AUTH (RFC 4895): each peer demands that all chunks with user data are authenticated, with the empty key.
    Authentication,
    /// ASCONF (RFC 5061): after half of its messages a peer moves to another address. It adds that, asks the other peer to send there, and
    /// removes the first.
    Addresses,
}

impl Extension {
    /// What the peers are told.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::Interleaving,
        Self::Partial,
        Self::Resets,
        Self::Authentication,
        Self::Addresses,
    ];

    /// The one of that name.
    ///
    /// # Errors
    ///
    /// There is none.
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

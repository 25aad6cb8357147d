//! Type of socket behind a descriptor, encoded in the host's address.

use crate::PREFIX;

/// Number of associations that a socket can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A one-to-one socket (SOCK_STREAM).
    OneToOne,
    /// Many (SOCK_SEQPACKET).
    OneToMany,
    /// A socket with one association that was peeled off a one-to-many socket (`sctp_peeloff`).
    PeeledOff,
}

/// Type of a socket: address family and style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketType {
    /// AF_INET6.
    pub v6: bool,
    /// One-to-one or one-to-many.
    pub style: Style,
}

impl SocketType {
    /// All socket types.
    pub const ALL: [Self; 6] = [
        Self::new(false, Style::OneToOne),
        Self::new(false, Style::OneToMany),
        Self::new(false, Style::PeeledOff),
        Self::new(true, Style::OneToOne),
        Self::new(true, Style::OneToMany),
        Self::new(true, Style::PeeledOff),
    ];

    /// Creates a socket type.
    pub const fn new(v6: bool, style: Style) -> Self {
        Self { v6, style }
    }

    /// Two-letter code.
    pub(crate) const fn letters(self) -> [u8; 2] {
        let family = if self.v6 { b'6' } else { b'4' };
        let style = match self.style {
            Style::OneToOne => b'o',
            Style::OneToMany => b'm',
            Style::PeeledOff => b'p',
        };
        [family, style]
    }

    /// Type of the sockets that are connected to this abstract Unix address; `None`: it is not a
    /// host's address.
    pub fn of(address: &[u8]) -> Option<Self> {
        let rest = address.strip_prefix(PREFIX)?;
        Self::ALL.into_iter().find(|socket_type| {
            rest.starts_with(&socket_type.letters()) && rest.get(2) == Some(&b':')
        })
    }

    /// Whether the socket can have many associations.
    pub fn is_one_to_many(self) -> bool {
        self.style == Style::OneToMany
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_what_socket_it_is() {
        for socket_type in SocketType::ALL {
            assert_eq!(
                SocketType::of(&crate::address("here", socket_type)),
                Some(socket_type)
            );
        }
        assert_eq!(SocketType::of(&crate::control_address("here")), None);
        assert_eq!(SocketType::of(b"\0anabranch-sctp:4x:here"), None);
        assert_eq!(SocketType::of(b"/tmp/other"), None);
    }
}

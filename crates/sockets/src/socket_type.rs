//! Type of the socket behind a descriptor, which is encoded in the host's address.

use crate::PREFIX;

/// Style of a socket: the number of associations that it can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketStyle {
    /// One-to-one (SOCK_STREAM): a single association.
    OneToOne,
    /// One-to-many (SOCK_SEQPACKET): any number of associations.
    OneToMany,
    /// Peeled off a one-to-many socket (`sctp_peeloff`): a single association.
    PeeledOff,
}

/// Type of a socket: address family and style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketType {
    /// True if the address family is AF_INET6.
    pub v6: bool,
    /// Style of the socket.
    pub style: SocketStyle,
}

impl SocketType {
    /// All socket types.
    pub const ALL: [Self; 6] = [
        Self::new(false, SocketStyle::OneToOne),
        Self::new(false, SocketStyle::OneToMany),
        Self::new(false, SocketStyle::PeeledOff),
        Self::new(true, SocketStyle::OneToOne),
        Self::new(true, SocketStyle::OneToMany),
        Self::new(true, SocketStyle::PeeledOff),
    ];

    /// Creates a socket type.
    pub const fn new(v6: bool, style: SocketStyle) -> Self {
        Self { v6, style }
    }

    /// Two-letter code of the type, which is part of the address.
    pub(crate) const fn letters(self) -> [u8; 2] {
        let family = if self.v6 { b'6' } else { b'4' };
        let style = match self.style {
            SocketStyle::OneToOne => b'o',
            SocketStyle::OneToMany => b'm',
            SocketStyle::PeeledOff => b'p',
        };
        [family, style]
    }

    /// Type of the sockets that are connected to this abstract Unix address; `None` if it is not
    /// the address of a host.
    pub fn of(address: &[u8]) -> Option<Self> {
        let rest = address.strip_prefix(PREFIX)?;
        Self::ALL.into_iter().find(|socket_type| {
            rest.starts_with(&socket_type.letters()) && rest.get(2) == Some(&b':')
        })
    }

    /// Whether the socket can have many associations.
    pub fn is_one_to_many(self) -> bool {
        self.style == SocketStyle::OneToMany
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

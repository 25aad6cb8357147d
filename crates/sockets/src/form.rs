//! What socket a descriptor is, which its host's address says.

use crate::PREFIX;

/// How many associations a socket has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// One (SOCK_STREAM).
    OneToOne,
    /// Many (SOCK_SEQPACKET).
    OneToMany,
    /// One that was taken off a socket with many (`sctp_peeloff`).
    PeeledOff,
}

/// What socket it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// AF_INET6.
    pub v6: bool,
    /// How many associations it has.
    pub style: Style,
}

impl Form {
    /// Every form.
    pub const ALL: [Form; 6] = [
        Form::new(false, Style::OneToOne),
        Form::new(false, Style::OneToMany),
        Form::new(false, Style::PeeledOff),
        Form::new(true, Style::OneToOne),
        Form::new(true, Style::OneToMany),
        Form::new(true, Style::PeeledOff),
    ];

    /// A form.
    pub const fn new(v6: bool, style: Style) -> Self {
        Self { v6, style }
    }

    /// Two letters for it.
    pub(crate) const fn letters(self) -> [u8; 2] {
        let family = if self.v6 { b'6' } else { b'4' };
        let style = match self.style {
            Style::OneToOne => b'o',
            Style::OneToMany => b'm',
            Style::PeeledOff => b'p',
        };
        [family, style]
    }

    /// The form of sockets that are connected to this abstract Unix address; `None`: it is no host's.
    pub fn of(address: &[u8]) -> Option<Self> {
        let rest = address.strip_prefix(PREFIX)?;
        Self::ALL
            .into_iter()
            .find(|form| rest.starts_with(&form.letters()) && rest.get(2) == Some(&b':'))
    }

    /// Whether it has many associations.
    pub fn is_one_to_many(self) -> bool {
        self.style == Style::OneToMany
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_what_socket_it_is() {
        for form in Form::ALL {
            assert_eq!(Form::of(&crate::address("here", form)), Some(form));
        }
        assert_eq!(Form::of(&crate::control_address("here")), None);
        assert_eq!(Form::of(b"\0anabranch-sctp:4x:here"), None);
        assert_eq!(Form::of(b"/tmp/other"), None);
    }
}

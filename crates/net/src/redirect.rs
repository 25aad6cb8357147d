//! Abort reasons that redirect a client to another peer.

use std::fmt;
use std::net::IpAddr;

use crate::peer::Peer;

/// First word of a redirecting abort reason.
const WORD: &str = "redirect";
/// Maximum number of addresses in a reason, equal to the number that a peer may list in INIT.
const MAX_ADDRESSES: usize = 8;

impl fmt::Display for Peer {
    /// For example `192.0.2.1,2001:db8::1 port 5001`, followed by `udp 9899` if the peer has its
    /// own UDP port.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}")?,
            None => write_addresses(f, &self.addresses)?,
        }
        write_ports(f, self)
    }
}

fn write_addresses(f: &mut impl fmt::Write, addresses: &[IpAddr]) -> fmt::Result {
    let mut separator = "";
    for address in addresses {
        write!(f, "{separator}{address}")?;
        separator = ",";
    }
    Ok(())
}

fn write_ports(f: &mut impl fmt::Write, peer: &Peer) -> fmt::Result {
    write!(f, " port {}", peer.port)?;
    match peer.udp_port {
        Some(port) => write!(f, " udp {port}"),
        None => Ok(()),
    }
}

impl Peer {
    /// The abort reason that redirects to this peer.
    pub(crate) fn to_redirect(&self) -> String {
        let first = self.addresses.len().min(MAX_ADDRESSES);
        let mut reason = format!("{WORD} ");
        // Writing to a string cannot fail.
        let _ = write_addresses(&mut reason, &self.addresses[..first]);
        let _ = write_ports(&mut reason, self);
        reason
    }

    /// The peer that an abort reason redirects to; `None` for other reasons.
    pub(crate) fn of_redirect(reason: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(reason).ok()?.split(' ');
        let addresses = (words.next()? == WORD).then(|| words.next())??;
        let addresses: Result<Vec<IpAddr>, _> = addresses.split(',').map(str::parse).collect();
        let addresses = addresses.ok().filter(|it| it.len() <= MAX_ADDRESSES)?;
        let port = (words.next()? == "port").then(|| words.next())??;
        let peer = Self::new(addresses, port.parse().ok().filter(|&port| port != 0)?);
        let peer = match words.next() {
            None => peer,
            Some("udp") => peer.over_udp(words.next()?.parse().ok().filter(|&port| port != 0)?),
            Some(_) => return None,
        };
        words.next().is_none().then_some(peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_comes_back_as_it_was_named() {
        let addresses: Vec<IpAddr> = vec![[192, 0, 2, 1].into(), [0x2001; 8].into()];
        let over_ip = Peer::new(addresses, 5_001);
        for peer in [over_ip.clone(), over_ip.over_udp(9_899)] {
            let reason = peer.to_redirect();
            assert_eq!(Peer::of_redirect(reason.as_bytes()), Some(peer), "{reason}");
        }
        let many = Peer::new(vec![IpAddr::from([192, 0, 2, 1]); 20], 7);
        let named = Peer::of_redirect(many.to_redirect().as_bytes());
        assert_eq!(named.map(|it| it.addresses.len()), Some(8));
    }

    #[test]
    fn other_abort_reasons_are_not_redirections() {
        for reason in [
            "",
            "redirect",
            "redirect 192.0.2.1",
            "redirect 192.0.2.1 port 0",
            "redirect 192.0.2.1 port 70000",
            "redirect host port 7",
            "redirect 192.0.2.1, port 7",
            "redirect 192.0.2.1 port 7 udp",
            "redirect 192.0.2.1 port 7 udp 0",
            "redirect 192.0.2.1 port 7 udp 9 more",
            "redirected 192.0.2.1 port 7",
        ] {
            assert_eq!(Peer::of_redirect(reason.as_bytes()), None, "{reason}");
        }
        assert_eq!(Peer::of_redirect(&[0xff; 40]), None);
    }
}

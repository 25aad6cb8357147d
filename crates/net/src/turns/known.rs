//! Senders of whom an association has taken a packet.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

/// So many are remembered. Whoever is forgotten is known again by the next packet that an association takes.
const MAX_KNOWN: usize = 4_096;

/// The latest of them.
#[derive(Debug, Default)]
pub(super) struct Known {
    senders: BTreeSet<SocketAddr>,
    /// The longest known first.
    order: VecDeque<SocketAddr>,
}

impl Known {
    pub fn contains(&self, sender: &SocketAddr) -> bool {
        self.senders.contains(sender)
    }

    /// Remembers a sender. Where too many are, one of its own address is forgotten, or else the one that is known longest: who
    /// sends from ever new ports does not make the others strangers.
    pub fn insert(&mut self, sender: SocketAddr) {
        if self.senders.contains(&sender) {
            return;
        }
        if self.senders.len() >= MAX_KNOWN {
            let [least, most] = [0, u16::MAX].map(|port| SocketAddr::new(sender.ip(), port));
            let own = self.senders.range(least..=most).next().copied();
            match own.or(self.order.front().copied()) {
                Some(forgotten) => self.forget(forgotten),
                None => return,
            }
        }
        self.senders.insert(sender);
        self.order.push_back(sender);
    }

    fn forget(&mut self, sender: SocketAddr) {
        self.senders.remove(&sender);
        if let Some(place) = self.order.iter().position(|it| *it == sender) {
            self.order.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_forgets_its_own_ports_first() {
        let mut known = Known::default();
        let quiet = SocketAddr::from(([192, 0, 2, 1], 9_899));
        known.insert(quiet);
        let loud = |port| SocketAddr::from(([192, 0, 2, 2], port));
        (1..=60_000).for_each(|port| known.insert(loud(port)));
        assert!(known.contains(&quiet) && known.contains(&loud(60_000)));
        assert_eq!(
            (known.senders.len(), known.order.len()),
            (MAX_KNOWN, MAX_KNOWN)
        );
    }

    #[test]
    fn of_many_addresses_the_longest_known_is_forgotten() {
        let mut known = Known::default();
        let sender = |number: u32| SocketAddr::from((number.to_be_bytes(), 9_899));
        (0..=MAX_KNOWN as u32).for_each(|number| known.insert(sender(number)));
        assert!(!known.contains(&sender(0)) && known.contains(&sender(1)));
    }
}

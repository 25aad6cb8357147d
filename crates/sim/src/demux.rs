//! Demultiplexer of a node: finds the agent that receives a datagram.

use crate::agent::Binding;
use crate::packet::Packet;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Protocol and port of the binding as one search key. Bindings to every port have the largest
    /// key of their protocol, and are searched linearly.
    group: u32,
    binding: Binding,
    /// Whether the binding restricts only the port, so that every packet to this port matches.
    whole: bool,
    agent: u32,
}

impl Entry {
    /// Rank of the binding within its group: the remote port counts more than the local address.
    fn detail(&self) -> u8 {
        let Binding {
            address,
            remote_port,
            ..
        } = self.binding;
        u8::from(remote_port.is_some()) * 2 + u8::from(address.is_some())
    }

    #[inline(always)]
    fn fits(&self, packet: &Packet, remote_port: Option<u16>) -> bool {
        let Binding {
            address,
            remote_port: wanted,
            ..
        } = self.binding;
        address.is_none_or(|address| address == packet.destination)
            && (wanted.is_none() || wanted == remote_port)
    }
}

/// Number of low bits of the destination port that index `hints`.
const HINT_BITS: u32 = 4;

/// Index in `hints` of a port: its lowest [`HINT_BITS`] bits.
fn hint(port: u16) -> usize {
    usize::from(port) & ((1 << HINT_BITS) - 1)
}

fn group(protocol: u8, port: Option<u16>) -> u32 {
    u32::from(protocol) << 17 | port.map_or(1 << 16, u32::from)
}

/// The bindings of one node.
#[derive(Debug, Default)]
pub(crate) struct Demux {
    /// Bindings sorted by group; within a group the more specific binding comes first.
    entries: Vec<Entry>,
    /// For each value of a port's lowest bits, the index of the first entry with such a port.
    hints: [u32; 1 << HINT_BITS],
}

/// Error: another agent already has this binding.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BindingConflict;

impl Demux {
    pub fn has(&self, protocol: u8, binding: Binding) -> bool {
        let mut entries = self.entries.iter();
        let group = group(protocol, binding.port);
        entries.any(|entry| entry.group == group && entry.binding == binding)
    }

    pub fn add(
        &mut self,
        protocol: u8,
        binding: Binding,
        agent: u32,
    ) -> Result<(), BindingConflict> {
        if self.has(protocol, binding) {
            return Err(BindingConflict);
        }
        let entry = Entry {
            group: group(protocol, binding.port),
            whole: binding == Binding::port(binding.port.unwrap_or(0)),
            binding,
            agent,
        };
        let rank = |entry: &Entry| (entry.group, u8::MAX - entry.detail());
        let place = self
            .entries
            .partition_point(|other| rank(other) <= rank(&entry));
        self.entries.insert(place, entry);
        for (place, entry) in self.entries.iter().enumerate().rev() {
            if let Some(port) = entry.binding.port {
                self.hints[hint(port)] = place as u32;
            }
        }
        Ok(())
    }

    /// Fast path of [`Demux::find`]: the receiving agent, if the first entry with the port's hint
    /// matches the port and is not restricted further. This is the usual case, because most agents
    /// receive all packets to a port and few ports of a node share a hint.
    #[inline(always)] // Called where packets are delivered.
    pub fn likely(&self, packet: &Packet) -> Option<u32> {
        let &[_, _, high, low] = packet.bytes.first_chunk()?;
        let port = u16::from_be_bytes([high, low]);
        let entry = self.entries.get(self.hints[hint(port)] as usize)?;
        let fits = entry.whole && entry.group == group(packet.protocol, Some(port));
        (fits && packet.header == 0).then_some(entry.agent)
    }

    /// The agent that receives `packet`.
    #[inline(never)]
    pub fn find(&self, packet: &Packet) -> Option<u32> {
        let ports = packet.ports();
        let remote = ports.map(|p| u16::from_be_bytes([p[0], p[1]]));
        let local = ports.map(|p| u16::from_be_bytes([p[2], p[3]]));
        let named = local.and_then(|port| self.search(packet, Some(port), remote));
        named.or_else(|| self.search(packet, None, remote))
    }

    #[inline(always)]
    fn search(&self, packet: &Packet, port: Option<u16>, remote: Option<u16>) -> Option<u32> {
        let group = group(packet.protocol, port);
        let first = self.entries.partition_point(|e| e.group < group);
        let entries = &self.entries[first..];
        let mut members = entries.iter().take_while(|e| e.group == group);
        let fitting = members.find(|e| e.fits(packet, remote));
        fitting.map(|entry| entry.agent)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use anabranch_transport::Ecn;
    use bytes::Bytes;

    use super::*;
    use crate::ip::{HOP_LIMIT, SCTP, TCP};
    use crate::rng::Seed;

    fn packet(protocol: u8, ports: &[u8], host: u8) -> Packet {
        Packet {
            bytes: Bytes::copy_from_slice(ports),
            id: 0,
            source: IpAddr::V4(Ipv4Addr::LOCALHOST),
            destination: IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)),
            target: 0,
            receiver: 0,
            sent: 0,
            departed: 0,
            added: 0,
            ecn: Ecn::NotEct,
            may_fragment: false,
            fragment: 0,
            header: 0,
            protocol,
            hops_left: HOP_LIMIT,
        }
    }

    #[test]
    fn the_binding_that_names_more_wins() {
        let here = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
        let mut demux = Demux::default();
        let any = Binding {
            address: None,
            port: None,
            remote_port: None,
        };
        demux.add(TCP, any, 0).unwrap();
        demux.add(TCP, Binding::port(80), 1).unwrap();
        demux.add(TCP, Binding::port(80).at(here), 2).unwrap();
        demux.add(TCP, Binding::port(80).from_port(5), 3).unwrap();
        demux.add(SCTP, Binding::port(80), 4).unwrap();
        assert_eq!(demux.add(SCTP, Binding::port(80), 9), Err(BindingConflict));
        let find = |protocol, ports: [u8; 4], host| {
            let packet = packet(protocol, &ports, host);
            let found = demux.find(&packet);
            // The fast path must give the same result.
            assert!(demux.likely(&packet).is_none_or(|it| Some(it) == found));
            found
        };
        assert_eq!(find(TCP, [0, 5, 0, 80], 1), Some(3));
        assert_eq!(find(TCP, [0, 6, 0, 80], 1), Some(2));
        assert_eq!(find(TCP, [0, 6, 0, 80], 2), Some(1));
        assert_eq!(find(TCP, [0, 6, 0, 81], 2), Some(0));
        assert_eq!(find(SCTP, [0, 6, 0, 80], 2), Some(4));
        assert_eq!(find(SCTP, [0, 6, 0, 81], 2), None);
        assert_eq!(demux.find(&packet(TCP, &[0, 6], 2)), Some(0));
        assert_eq!(demux.find(&packet(SCTP, &[], 2)), None);
    }

    #[test]
    fn the_demultiplexer_equals_a_linear_search() {
        for seed in 0..40 {
            let mut rng = Seed::new(seed, 0).stream("bindings");
            let mut demux = Demux::default();
            // Random bindings, of which many share a hint, a group or both.
            for agent in 0..rng.below(30) as u32 {
                let mut binding = Binding::port(rng.below(40) as u16);
                if rng.below(4) == 0 {
                    binding = binding.from_port(rng.below(3) as u16);
                }
                if rng.below(5) == 0 {
                    binding.port = None;
                }
                let _ = demux.add([TCP, SCTP][rng.below(2) as usize], binding, agent);
            }
            let mut plain = 0;
            for port in 0..40 {
                for remote in 0..3 {
                    for protocol in [TCP, SCTP] {
                        let packet = packet(protocol, &[0, remote, 0, port], 1);
                        if let Some(likely) = demux.likely(&packet) {
                            assert_eq!(Some(likely), demux.find(&packet), "seed {seed}");
                            plain += 1;
                        }
                    }
                }
            }
            assert!(plain > 0 || demux.entries.iter().all(|it| !it.whole));
        }
    }
}

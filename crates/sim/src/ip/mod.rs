//! IP headers as real bytes, in packets from outside the world.

mod header;
mod icmp;

pub(crate) use header::{Header, has_ports, rewritten};
pub(crate) use icmp::{Complaint, complain};

//! Associations between a connecting and a listening endpoint that are established one after the
//! other, and stay established, as on a server. Each client has its own address.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};

use anabranch_sctp::{Endpoint, Event};
use anabranch_transport::{Ecn, Path, Transport};
use bytes::{Bytes, BytesMut};

use super::Conditions;
use super::ours::config;

pub(super) const PORT: u16 = 5000;
/// Maximum number of packets in each direction until an association is established.
const MAX_PACKETS: usize = 4;

/// Two endpoints with their associations.
pub trait Gathered: Sized {
    /// Creates the endpoints, without associations.
    ///
    /// # Errors
    /// The stack rejects the conditions.
    fn begin(conditions: &Conditions) -> Result<Self, Box<dyn Error>>;

    /// Establishes another association; `number` is the number of existing ones.
    ///
    /// # Errors
    /// The association was not established.
    fn one_more(&mut self, number: u32) -> Result<(), Box<dyn Error>>;
}

/// Establishes `many` associations between two endpoints, one after the other.
///
/// # Errors
/// An association was not established.
pub fn gathered<G: Gathered>(conditions: &Conditions, many: u64) -> Result<(), Box<dyn Error>> {
    let mut both = G::begin(conditions)?;
    (0..u32::try_from(many)?).try_for_each(|number| both.one_more(number))
}

/// Addresses of the client and the server of an association.
pub(super) fn addresses(number: u32) -> [IpAddr; 2] {
    let [_, high, middle, low] = number.to_be_bytes();
    [[10, high, middle, low], [11, high, middle, low]].map(IpAddr::from)
}

pub(super) fn sockets(number: u32) -> [SocketAddr; 2] {
    addresses(number).map(|it| SocketAddr::new(it, PORT))
}

/// Implementation for this stack.
pub struct OursGathered {
    ends: [Endpoint; 2],
    out: BytesMut,
}

impl OursGathered {
    /// Transfers packets from one end to the other; returns whether the receiver has reported the
    /// association as established.
    fn carry(&mut self, from: usize, path: Path) -> bool {
        let [a, z] = &mut self.ends;
        let (sender, receiver) = if from == 0 { (a, z) } else { (z, a) };
        while sender.poll_transmit(0, &mut self.out).is_some() {
            let packet: Bytes = self.out.split().freeze();
            receiver.handle_datagram(0, path, Ecn::NotEct, packet);
        }
        let mut up = false;
        while let Some((_, event)) = receiver.poll_event() {
            up |= matches!(event, Event::Established { .. });
        }
        up
    }
}

impl Gathered for OursGathered {
    fn begin(conditions: &Conditions) -> Result<Self, Box<dyn Error>> {
        // Neither end lists addresses in its handshake, so each end uses the source addresses of
        // the peer's packets.
        let settings = config(conditions, true).checked()?;
        let end = |seed| Endpoint::with_shared_config(settings.clone(), PORT, [seed; 32]);
        let mut ends = [end(1), end(2)];
        ends[1].listen(true);
        Ok(Self {
            ends,
            out: BytesMut::with_capacity(64 * 1024),
        })
    }

    fn one_more(&mut self, number: u32) -> Result<(), Box<dyn Error>> {
        let [a, z] = addresses(number);
        self.ends[0].connect(0, &[z], PORT)?;
        let mut up = [false; 2];
        for _ in 0..MAX_PACKETS {
            up[1] |= self.carry(0, Path::new(z, a));
            up[0] |= self.carry(1, Path::new(a, z));
            if up == [true; 2] {
                return Ok(());
            }
        }
        Err(format!("association {number} does not come up").into())
    }
}

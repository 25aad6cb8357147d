//! Associations between one endpoint that calls and one that listens, each begun anew while all before it stay up: what a server
//! does. The peer of each has an address of its own.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};

use anabranch_sctp::{Endpoint, Event};
use anabranch_transport::{Ecn, Path, Transport};
use bytes::{Bytes, BytesMut};

use super::Conditions;
pub use super::dcsctp_gathered::DcSctpGathered;
use super::ours::config;
pub use super::rtc_gathered::RtcGathered;

pub(super) const PORT: u16 = 5000;
/// Packets that cross for one association, each way, before it must be up.
const MOST: usize = 4;

/// Two endpoints and their associations.
pub trait Gathered: Sized {
    /// Before the first.
    ///
    /// # Errors
    /// The stack refuses the conditions.
    fn begin(conditions: &Conditions) -> Result<Self, Box<dyn Error>>;

    /// One more, until both ends are told that it is up; `number`: how many there are.
    ///
    /// # Errors
    /// It does not come up.
    fn one_more(&mut self, number: u32) -> Result<(), Box<dyn Error>>;
}

/// Lets so many associations of two endpoints come up, one after the other.
///
/// # Errors
/// One does not.
pub fn gathered<G: Gathered>(conditions: &Conditions, many: u64) -> Result<(), Box<dyn Error>> {
    let mut both = G::begin(conditions)?;
    (0..u32::try_from(many)?).try_for_each(|number| both.one_more(number))
}

/// Where the ends of an association are: who calls, and who listens.
pub(super) fn addresses(number: u32) -> [IpAddr; 2] {
    let [_, high, middle, low] = number.to_be_bytes();
    [[10, high, middle, low], [11, high, middle, low]].map(IpAddr::from)
}

pub(super) fn sockets(number: u32) -> [SocketAddr; 2] {
    addresses(number).map(|it| SocketAddr::new(it, PORT))
}

/// This project's own.
pub struct OursGathered {
    ends: [Endpoint; 2],
    out: BytesMut,
}

impl OursGathered {
    /// Carries what an end has to send to the other; whether that is told that the association is up.
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
        // Neither lists its addresses: they are those that packets come from.
        let settings = config(conditions, true).checked()?;
        let end = |seed| Endpoint::sharing(settings.clone(), PORT, [seed; 32]);
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
        for _ in 0..MOST {
            up[1] |= self.carry(0, Path::new(z, a));
            up[0] |= self.carry(1, Path::new(a, z));
            if up == [true; 2] {
                return Ok(());
            }
        }
        Err(format!("association {number} does not come up").into())
    }
}

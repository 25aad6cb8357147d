//! Queue disciplines that a question may name: those whose parameters have defaults or are derived
//! from the path.

use anabranch_scenario::document::SpecTable;
use anabranch_scenario::quantity::{Capacity, Rate, Size, TimeSpan};
use anabranch_settings::{Fallback, Kind, Variant};
use anabranch_sim::queue;
use anabranch_transport::time::SECOND;

/// Default queue discipline.
pub const DROP_TAIL: &str = "drop-tail";
/// Name of the parameter for the capacity.
const LIMIT: &str = "limit";
/// Name of the parameter for the transmission time of a packet.
const PACKET_TIME: &str = "packet_time";

/// Names of the parameters that are derived from the path.
const OF_A_PATH: [&str; 2] = [LIMIT, PACKET_TIME];

fn all() -> Vec<Variant> {
    let fits = |variant: &Variant| {
        let mut needed = variant.parameters.iter();
        needed.all(|it| !matches!(it.fallback, Fallback::Required) || OF_A_PATH.contains(&it.name))
    };
    let mut all = queue::kinds().variants();
    all.retain(fits);
    all
}

/// Names of the disciplines.
pub fn names() -> Vec<&'static str> {
    all().iter().map(|variant| variant.name).collect()
}

/// Properties of the link from which parameters are derived.
#[derive(Clone, Copy, Debug)]
pub struct LinkProperties {
    /// Rate of the link.
    pub rate: Rate,
    /// Maximum packet size.
    pub mtu: Size,
    /// Capacity of the queue.
    pub queue: Capacity,
}

/// The discipline with this name for a link, as a table of a spec. Parameters that are not derived
/// from the link have their defaults.
pub fn table(link: LinkProperties, name: &str) -> SpecTable {
    let all = all();
    let variant = all.iter().find(|variant| variant.name == name);
    let parameters = variant.map_or(&[][..], |variant| variant.parameters);
    let mut table = SpecTable::new().with("kind", name);
    for parameter in parameters {
        table = match (parameter.name, parameter.kind) {
            // This discipline counts packets, so a capacity in bytes is converted.
            (LIMIT, Kind::Count { .. }) => {
                let packets = match link.queue {
                    Capacity::Packets(packets) => packets,
                    other => other.bytes(link.mtu.0) / link.mtu.0,
                };
                table.with(LIMIT, packets.max(1))
            }
            (LIMIT, _) => table.with(LIMIT, link.queue),
            (PACKET_TIME, _) => {
                let bits = u128::from(link.mtu.0) * 8 * u128::from(SECOND);
                let time = bits / u128::from(link.rate.0.max(1));
                table.with(PACKET_TIME, TimeSpan((time as u64).max(1)))
            }
            _ => table,
        };
    }
    table
}

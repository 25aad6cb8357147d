//! Conversion of a spec's wireless cells to the simulator's media.

use anabranch_scenario::Spec;
use anabranch_scenario::names::member_name;
use anabranch_scenario::wifi::{Station, Wifi};
use anabranch_sim::wifi::AntennaPosition;
use anabranch_sim::{BuildError, LinkId, MediumConfig, NodeId, Topology};

use super::end;
use crate::medium;

/// Adds a cell: its medium, its stations, and a link from the access point to each other station.
pub fn add_cell(
    topology: &mut Topology,
    spec: &Spec,
    cell: &Wifi,
) -> Result<Vec<LinkId>, BuildError> {
    let medium = topology.add_medium(MediumConfig {
        name: cell.name.clone(),
        parameters: medium::parameters(cell),
    })?;
    let station = |topology: &mut Topology, station: &Station| -> Result<NodeId, BuildError> {
        let node = end(topology, spec, &station.node, 0)?;
        let [x, y] = station.at.map(|length| length.0);
        topology.add_station(medium, node, AntennaPosition::new(x, y))?;
        Ok(node)
    };
    let access_point = station(topology, &cell.access_point)?;
    let count = cell.stations.len() as u32;
    let mut links = Vec::with_capacity(cell.stations.len());
    for (other, index) in cell.stations.iter().zip(0..) {
        let between = [access_point, station(topology, other)?];
        let name = member_name(&cell.name, count, index);
        links.push(topology.add_wireless_link(name, between, medium)?);
    }
    Ok(links)
}

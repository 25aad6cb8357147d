//! Wireless media of a topology: their stations with positions, and the links between stations.
//!
//! A wireless link joins two stations of one medium like a wired link: it has an interface with
//! addresses at each end, and packets are routed over it. All links of a medium share the channel,
//! and all links of a station share its interface queue. A station that is at one end of every link
//! of the medium, and also has wired links, is an access point.

use super::Topology;
use crate::error::BuildError;
use crate::ids::{LinkId, MediumId, NodeId};
use crate::link::{DirectionConfig, LinkConfig};
use crate::wifi::{AntennaPosition, WifiParameters};

/// Configuration of an 802.11 medium, without its stations.
#[derive(Clone, Debug)]
pub struct MediumConfig {
    /// Name, unique among media; also the name of the random stream of its backoffs.
    pub name: String,
    /// Parameters shared by all stations of the medium.
    pub parameters: WifiParameters,
}

/// A medium and its stations.
#[derive(Debug)]
pub(crate) struct WirelessMedium {
    pub config: MediumConfig,
    /// Nodes and positions of the stations, in the order of their station numbers.
    pub stations: Vec<(NodeId, AntennaPosition)>,
}

/// Wireless media and links of a topology.
#[derive(Debug, Default)]
pub(crate) struct Wireless {
    pub media: Vec<WirelessMedium>,
    /// Wireless links with their media.
    pub links: Vec<(LinkId, MediumId)>,
}

impl Wireless {
    /// The medium of `link`, if it is wireless.
    pub fn medium_of(&self, link: LinkId) -> Option<MediumId> {
        let (_, medium) = self.links.iter().find(|(wireless, _)| *wireless == link)?;
        Some(*medium)
    }
}

impl Topology {
    /// Adds a wireless medium.
    ///
    /// # Errors
    /// [`BuildError::DuplicateMedium`]; [`BuildError::Medium`] if its parameters contradict each
    /// other.
    pub fn add_medium(&mut self, config: MediumConfig) -> Result<MediumId, BuildError> {
        let media = &mut self.wireless.media;
        if media.iter().any(|air| air.config.name == config.name) {
            return Err(BuildError::DuplicateMedium(config.name));
        }
        if let Err(error) = config.parameters.validate() {
            let medium = config.name;
            return Err(BuildError::Medium { medium, error });
        }
        media.push(WirelessMedium {
            config,
            stations: Vec::new(),
        });
        Ok(MediumId(media.len() as u32 - 1))
    }

    /// Makes a node a station of a medium, at the given position.
    ///
    /// # Errors
    /// [`BuildError::UnknownMedium`], [`BuildError::UnknownNode`], [`BuildError::StationTwice`].
    pub fn add_station(
        &mut self,
        medium: MediumId,
        node: NodeId,
        position: AntennaPosition,
    ) -> Result<(), BuildError> {
        self.check(node)?;
        let air = self.air(medium)?;
        if air.stations.iter().any(|(station, _)| *station == node) {
            return Err(BuildError::StationTwice {
                medium: air.config.name.clone(),
                node: self.node_name(node).to_owned(),
            });
        }
        self.wireless.media[medium.index()]
            .stations
            .push((node, position));
        Ok(())
    }

    /// Adds a link between two stations of a medium. The link has an interface at each end, like
    /// any link.
    ///
    /// # Errors
    /// [`BuildError::UnknownMedium`], [`BuildError::NoStation`], and those of
    /// [`Topology::add_link`].
    pub fn add_wireless_link(
        &mut self,
        name: impl Into<String>,
        between: [NodeId; 2],
        medium: MediumId,
    ) -> Result<LinkId, BuildError> {
        let air = self.air(medium)?;
        for node in between {
            self.check(node)?;
            if !air.stations.iter().any(|(station, _)| *station == node) {
                return Err(BuildError::NoStation {
                    medium: air.config.name.clone(),
                    node: self.node_name(node).to_owned(),
                });
            }
        }
        // Rate, delay and queue are those of the medium, so the values given here are not used.
        let link = self.add_link(LinkConfig {
            name: name.into(),
            between,
            forward: DirectionConfig::instant(0),
            backward: DirectionConfig::instant(0),
        })?;
        self.wireless.links.push((link, medium));
        Ok(link)
    }

    /// The medium named `name`.
    pub fn medium(&self, name: &str) -> Option<MediumId> {
        let mut media = self.wireless.media.iter();
        let index = media.position(|air| air.config.name == name)?;
        Some(MediumId(index as u32))
    }

    fn air(&self, medium: MediumId) -> Result<&WirelessMedium, BuildError> {
        let media = &self.wireless.media;
        media
            .get(medium.index())
            .ok_or(BuildError::UnknownMedium(medium.index()))
    }
}

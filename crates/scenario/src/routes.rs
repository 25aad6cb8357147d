//! Static routes of a spec, which replace computed ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// At a node, packets for another node leave by a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// The node that has the route; each member of a group.
    pub node: String,
    /// Where the packets go: a node, by whichever of its addresses; each member of a group.
    pub to: String,
    /// The link by which they leave: one of the node's own. Given routes do not follow the state of links.
    pub via: String,
}

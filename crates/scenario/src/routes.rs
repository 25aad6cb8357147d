//! Static routes of a spec, which replace computed ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A static route: the link by which a node sends packets for another node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Node that has the route; each member of a group.
    pub node: String,
    /// Destination node, with any of its addresses; each member of a group.
    pub to: String,
    /// Outgoing link, which must be one of the node. Static routes do not depend on the state of
    /// links.
    pub via: String,
}

//! Static routes of a spec, which take precedence over computed routes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A static route: the link by which a node sends packets for another node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Node that has the route; for a group, each member.
    pub node: String,
    /// Destination node, reached by any of its addresses; for a group, each member.
    pub to: String,
    /// Outgoing link, which must be attached to the node. Static routes do not change when a link
    /// goes down.
    pub via: String,
}

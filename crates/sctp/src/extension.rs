//! What an extension is.

use anabranch_wire::parameter::Parameter;

use crate::config::Config;

/// An extension that is used where both ends offer it.
#[derive(Debug)]
pub(crate) struct Extension {
    /// Whether an endpoint with these settings offers it.
    pub(crate) wanted: fn(&Config) -> bool,
    /// Its own parameter of INIT and INIT ACK, if it has one.
    pub(crate) parameter: fn() -> Option<Parameter>,
    /// The types of its chunks: the parameter Supported Extensions lists them (RFC 5061 §4.2.7).
    pub(crate) chunks: &'static [u8],
}

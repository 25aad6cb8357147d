//! Descriptor of a protocol extension: its setting, parameters and chunk types.

use anabranch_wire::parameter::Parameter;

use crate::config::Config;

/// Protocol extension, which an association uses if both ends offer it.
#[derive(Debug)]
pub(crate) struct Extension {
    /// Whether an endpoint with these settings offers the extension.
    pub(crate) wanted: fn(&Config) -> bool,
    /// Extension-specific parameter of INIT and INIT ACK, if there is one.
    pub(crate) parameter: fn() -> Option<Parameter>,
    /// Chunk types listed in the Supported Extensions parameter (RFC 5061 §4.2.7).
    pub(crate) chunks: &'static [u8],
}

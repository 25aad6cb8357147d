//! Addresses that change, which [`crate::address_changes`] tells of.

use anabranch_wire::chunk::kind;

use super::AUTH;
use crate::extension::Extension;

/// Off unless the setting `address_changes` is on, and never without AUTH (RFC 5061 §4.2.7).
pub(crate) static ASCONF: Extension = Extension {
    wanted: |config| config.address_changes && (AUTH.wanted)(config),
    parameter: || None,
    chunks: &[kind::ASCONF, kind::ASCONF_ACK],
};

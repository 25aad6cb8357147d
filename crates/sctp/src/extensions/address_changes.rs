//! Addresses that change, which [`crate::address_changes`] tells of.

use anabranch_wire::chunk::kind;

use super::AUTH;
use crate::extension::Extension;

/// Off unless the setting `address_changes` is on, and never without AUTH (RFC 5061 §4.2.7) but by the switch
/// `asconf_without_auth`.
pub(crate) static ASCONF: Extension = Extension {
    wanted: |config| {
        let without = config.profile.asconf_without_auth && !config.bare_init;
        config.address_changes && (without || (AUTH.wanted)(config))
    },
    parameter: || None,
    chunks: &[kind::ASCONF, kind::ASCONF_ACK],
};

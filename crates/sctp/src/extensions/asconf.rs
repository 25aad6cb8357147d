//! ASCONF extension; see [`crate::asconf`].

use anabranch_wire::chunk::kind;

use super::AUTH;
use crate::extension_descriptor::Extension;

/// Offered if the setting `address_changes` is on, and only together with AUTH (RFC 5061 §4.2.7),
/// unless the switch `asconf_without_auth` is on.
pub(crate) static ASCONF: Extension = Extension {
    wanted: |config| {
        let without = config.profile.asconf_without_auth && !config.minimal_init;
        config.address_changes && (without || (AUTH.wanted)(config))
    },
    parameter: || None,
    chunks: &[kind::ASCONF, kind::ASCONF_ACK],
};

//! AUTH extension; see [`crate::authentication`].

use anabranch_wire::chunk::kind;

use crate::authentication::Authentication;
use crate::extension_descriptor::Extension;

/// Offered if the setting `authentication` is on. AUTH is negotiated by separate parameters; its
/// entry in the list of chunks has no meaning.
pub(crate) static AUTH: Extension = Extension {
    wanted: |config| config.authentication != Authentication::Off && !config.minimal_init,
    parameter: || None,
    chunks: &[kind::AUTH],
};

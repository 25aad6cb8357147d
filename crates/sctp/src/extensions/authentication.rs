//! AUTH extension; see [`crate::authentication`].

use anabranch_wire::chunk::kind;

use crate::authentication::Authentication;
use crate::extension_descriptor::Extension;

/// The extension AUTH, offered if the setting `authentication` is on. AUTH is negotiated by
/// separate parameters, so listing it in Supported Extensions has no effect.
pub(crate) static AUTH: Extension = Extension {
    wanted: |config| config.authentication != Authentication::Off && !config.minimal_init,
    parameter: || None,
    chunks: &[kind::AUTH],
};

//! Authenticated chunks, which [`crate::authentication`] tells of.

use anabranch_wire::chunk::kind;

use crate::authentication::Authentication;
use crate::extension::Extension;

/// Off unless the setting `authentication` is on. It is offered by parameters of its own; that its chunk is listed tells nothing.
pub(crate) static AUTH: Extension = Extension {
    wanted: |config| config.authentication != Authentication::Off && !config.bare_init,
    parameter: || None,
    chunks: &[kind::AUTH],
};

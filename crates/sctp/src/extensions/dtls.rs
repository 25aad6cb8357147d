//! DTLS chunk extension; see [`crate::dtls_chunk`].

use crate::dtls_chunk::Security;
use crate::extension_descriptor::Extension;

/// The DTLS chunk, offered in a separate parameter by the setting `security`. No chunk types are
/// listed here, because DTLS chunks contain other chunks and are processed before them.
pub(crate) static DTLS: Extension = Extension {
    wanted: |config| config.security != Security::Off,
    parameter: || None,
    chunks: &[],
};

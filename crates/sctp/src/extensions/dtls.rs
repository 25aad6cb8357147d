//! The DTLS chunk ([`crate::dtls_chunk`]).

use crate::dtls_chunk::Security;
use crate::extension_descriptor::Extension;

/// Offered by the setting `security`, with a separate parameter. The DTLS chunk is not processed
/// like chunks of other extensions, because it contains these chunks.
pub(crate) static DTLS: Extension = Extension {
    wanted: |config| config.security != Security::Off,
    parameter: || None,
    chunks: &[],
};

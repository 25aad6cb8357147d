//! The DTLS chunk ([`crate::dtls_chunk`]).

use crate::dtls_chunk::Security;
use crate::extension_descriptor::Extension;

/// Offered by the setting `security`, with a separate parameter. Its chunk is not processed like
/// those of other extensions, because it contains them.
pub(crate) static DTLS: Extension = Extension {
    wanted: |config| config.security != Security::Off,
    parameter: || None,
    chunks: &[],
};

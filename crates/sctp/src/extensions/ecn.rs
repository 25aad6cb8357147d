//! Explicit congestion notification as an extension (RFC 4960 Appendix A).

use anabranch_wire::parameter::Parameter;

use crate::extension::Extension;

/// Its chunks, ECNE and CWR, are known to everybody and in no list.
pub(crate) static ECN: Extension = Extension {
    wanted: |config| config.profile.ecn,
    parameter: || Some(Parameter::EcnCapable),
    chunks: &[],
};

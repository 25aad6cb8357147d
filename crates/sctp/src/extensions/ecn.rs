//! ECN extension (RFC 4960 Appendix A).

use anabranch_wire::parameter::Parameter;

use crate::extension_descriptor::Extension;

/// The extension ECN, offered if the switch `ecn` is on. ECNE and CWR are not listed in Supported
/// Extensions, because they are part of the base protocol.
pub(crate) static ECN: Extension = Extension {
    wanted: |config| config.profile.ecn,
    parameter: || Some(Parameter::EcnCapable),
    chunks: &[],
};

//! Alternate error detection methods for packets with a zero checksum (RFC 9653).

use anabranch_settings::spelled;

/// Error detection method that replaces the checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ZeroChecksum {
    /// No method: every packet has its CRC32c.
    #[default]
    Off,
    /// SCTP over DTLS (RFC 8261, RFC 9653 §6).
    Dtls,
}
spelled!(ZeroChecksum: ZeroChecksum::Off = "off", ZeroChecksum::Dtls = "dtls");

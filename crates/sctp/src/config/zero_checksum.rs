//! What makes up for the checksum of packets that go without one (RFC 9653).

use anabranch_settings::spelled;

/// What finds damaged packets in place of the checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ZeroChecksum {
    /// Nothing: every packet has its CRC32c.
    #[default]
    Off,
    /// DTLS, which SCTP runs over (RFC 8261, RFC 9653 §6).
    Dtls,
}
spelled!(ZeroChecksum: ZeroChecksum::Off = "off", ZeroChecksum::Dtls = "dtls");

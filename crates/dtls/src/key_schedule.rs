//! HKDF-Expand-Label of DTLS 1.3 (RFC 8446 §7.1, RFC 9147 §5.9).

use hkdf::Hkdf;
use sha2::{Sha256, Sha384};

use crate::suite::Suite;

/// Prefix of labels, which replaces "tls13 " of TLS (RFC 9147 §5.9).
const PREFIX: &[u8] = b"dtls13";

/// Fills `out` with HKDF-Expand-Label(secret, label, context, length), using the hash of `suite`.
///
/// # Panics
/// Panics if `label` has more than 249 bytes, `context` more than 255 bytes, or `out` is longer
/// than 255 hashes. Callers should pass constants.
pub fn expand_label(suite: Suite, secret: &[u8], label: &str, context: &[u8], out: &mut [u8]) {
    let length = u16::try_from(out.len()).expect("a key is short");
    let label_len = u8::try_from(PREFIX.len() + label.len()).expect("a label is short");
    let context_len = u8::try_from(context.len()).expect("a context is a hash");
    let info = [
        &length.to_be_bytes()[..],
        &[label_len],
        PREFIX,
        label.as_bytes(),
        &[context_len],
        context,
    ];
    let done = if suite.is_sha384() {
        Hkdf::<Sha384>::from_prk(secret).and_then(|it| {
            it.expand_multi_info(&info, out)
                .map_err(|_| hkdf::InvalidPrkLength)
        })
    } else {
        Hkdf::<Sha256>::from_prk(secret).and_then(|it| {
            it.expand_multi_info(&info, out)
                .map_err(|_| hkdf::InvalidPrkLength)
        })
    };
    done.expect("the secret is a hash at least, and the key is short");
}

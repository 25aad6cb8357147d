//! The Internet checksum (RFC 1071).

/// Ones' complement sum of `sum` and the 16-bit words of `bytes`; its complement is the Internet
/// checksum.
pub(crate) fn sum(bytes: &[u8], sum: u16) -> u16 {
    let mut total = u64::from(sum);
    let mut words = bytes.chunks_exact(2);
    for word in &mut words {
        total += u64::from(u16::from_be_bytes([word[0], word[1]]));
    }
    if let [last] = words.remainder() {
        total += u64::from(*last) << 8;
    }
    fold(total)
}

/// Folds the carries of a sum into 16 bits.
pub(crate) fn fold(mut total: u64) -> u16 {
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

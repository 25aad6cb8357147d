//! CRC32c (RFC 9260 Appendix A) of a packet in one pass.
//!
//! The crate `crc-fast` computes it on processors with 512-bit carry-less multiplication
//! (VPCLMULQDQ) and on all that are not x86-64. Other x86-64 processors use the loop below, which
//! needs half as many instructions for a packet as that crate. The loop divides the packet into
//! three streams and processes eight bytes of each in turn, because each CRC instruction must wait
//! for the previous result of its stream.

use crc_fast::{CrcAlgorithm, Digest};
#[cfg(target_arch = "x86_64")]
use multiversion::{multiversion, target::match_target};

/// CRC32c of `bytes`.
#[cfg(target_arch = "x86_64")]
#[multiversion(targets(
    "x86_64+sse4.2+pclmulqdq+avx512f+avx512vl+vpclmulqdq",
    "x86_64+sse4.2+pclmulqdq"
))]
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    match_target! {
        "x86_64+sse4.2+pclmulqdq+avx512f+avx512vl+vpclmulqdq" => crc_fast::crc32_iscsi(bytes),
        "x86_64+sse4.2+pclmulqdq" => x86::crc32c(bytes),
        _ => crc_fast::crc32_iscsi(bytes),
    }
}

/// CRC32c of `bytes`, computed as if the four bytes at `field` were zero.
#[cfg(target_arch = "x86_64")]
#[multiversion(targets(
    "x86_64+sse4.2+pclmulqdq+avx512f+avx512vl+vpclmulqdq",
    "x86_64+sse4.2+pclmulqdq"
))]
pub(super) fn crc32c_without(bytes: &[u8], field: usize) -> u32 {
    match_target! {
        "x86_64+sse4.2+pclmulqdq+avx512f+avx512vl+vpclmulqdq" => crc_fast::crc32_iscsi(bytes) ^ x86::share(bytes, field),
        "x86_64+sse4.2+pclmulqdq" => x86::crc32c_without(bytes, field),
        _ => in_parts(bytes, field),
    }
}

/// CRC32c of `bytes`.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// CRC32c of `bytes`, computed as if the four bytes at `field` were zero.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn crc32c_without(bytes: &[u8], field: usize) -> u32 {
    in_parts(bytes, field)
}

fn in_parts(bytes: &[u8], field: usize) -> u32 {
    let (head, rest) = bytes.split_at(field.min(bytes.len()));
    let (value, rest) = rest.split_at(rest.len().min(4));
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(head);
    digest.update([0; 4].get(..value.len()).unwrap_or_default());
    digest.update(rest);
    digest.finalize() as u32
}

/// CRC32c with the instructions of SSE4.2 and PCLMULQDQ. Remainders have the coefficient of x^0 in
/// the highest bit, because these instructions require it.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64,
        _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_xor_si128,
    };

    /// The polynomial without its highest term.
    const POLYNOMIAL: u32 = 0x82F6_3B78;
    /// Maximum number of eight-byte words per stream before the results of the three streams are
    /// combined.
    const MAX_WORDS: usize = 64;
    /// Minimum number of words per stream. With fewer words, combining the results would take
    /// longer than a single stream.
    const MIN_WORDS: usize = 4;
    const TIMES_WORDS: [u32; 2 * MAX_WORDS + 1] = powers(64);
    const TIMES_BYTES: [u32; 256] = powers(8);
    const TIMES_PAGES: [u32; 257] = powers(8 * 256);

    /// Entry `n` is the factor by which [`product`] and [`reduced`] shift a remainder by `n` times
    /// `bits` bits: x^(n * bits - 33).
    const fn powers<const N: usize>(bits: usize) -> [u32; N] {
        let mut powers = [0; N];
        // x^-33 is found by stepping backwards. It is one step before x^-32 = x^0 / x^32.
        let mut power: u32 = 1 << 31;
        let mut place = 0;
        while place < 33 {
            // Multiplication by x^-1. A term x^0 must stem from the highest term of the polynomial.
            power = if power >> 31 == 1 {
                (power ^ POLYNOMIAL) << 1 | 1
            } else {
                power << 1
            };
            place += 1;
        }
        let mut number = 0;
        while number < N {
            powers[number] = power;
            let mut bit = 0;
            while bit < bits {
                power = power >> 1 ^ if power & 1 == 1 { POLYNOMIAL } else { 0 };
                bit += 1;
            }
            number += 1;
        }
        powers
    }

    #[target_feature(enable = "sse4.2,pclmulqdq")]
    #[inline]
    fn product(remainder: u64, power: u32) -> __m128i {
        let remainder = _mm_cvtsi64_si128(remainder as i64);
        let power = _mm_cvtsi64_si128(i64::from(power));
        _mm_clmulepi64_si128::<0>(remainder, power)
    }

    /// Remainder of a 64-bit product of two remainders. The CRC instruction also multiplies by
    /// x^33.
    #[target_feature(enable = "sse4.2,pclmulqdq")]
    #[inline]
    fn reduced(product: __m128i) -> u64 {
        _mm_crc32_u64(0, _mm_cvtsi128_si64(product) as u64)
    }

    #[target_feature(enable = "sse4.2,pclmulqdq")]
    #[inline]
    pub(super) fn crc32c(bytes: &[u8]) -> u32 {
        !after(u64::from(u32::MAX), bytes)
    }

    /// CRC32c of `bytes` with zeros in place of the four bytes at offset `field`. For the offset 8
    /// of an SCTP checksum, the zeros are inserted while the CRC is computed.
    #[target_feature(enable = "sse4.2,pclmulqdq")]
    #[inline]
    pub(super) fn crc32c_without(bytes: &[u8], field: usize) -> u32 {
        if field == 8
            && let Some((before, rest)) = bytes.split_first_chunk::<8>()
            && let Some((_, rest)) = rest.split_first_chunk::<4>()
        {
            let crc = _mm_crc32_u64(u64::from(u32::MAX), u64::from_le_bytes(*before));
            return !after(_mm_crc32_u32(crc as u32, 0).into(), rest);
        }
        crc32c(bytes) ^ share(bytes, field)
    }

    /// Remainder after `bytes`, given the remainder `crc` before them.
    #[target_feature(enable = "sse4.2,pclmulqdq")]
    #[inline]
    fn after(mut crc: u64, bytes: &[u8]) -> u32 {
        let (mut words, rest) = bytes.as_chunks::<8>();
        while words.len() >= 3 * MIN_WORDS {
            let each = (words.len() / 3).min(MAX_WORDS);
            let (first, others) = words.split_at(each);
            let (second, others) = others.split_at(each);
            let (third, others) = others.split_at(each);
            words = others;
            let mut crcs = [crc, 0, 0];
            let eights = [first, second, third].map(<[_]>::as_chunks::<8>);
            let [(a, x), (b, y), (c, z)] = eights;
            for ((a, b), c) in a.iter().zip(b).zip(c) {
                for ((a, b), c) in a.iter().zip(b).zip(c) {
                    crcs = three(crcs, [a, b, c]);
                }
            }
            for ((x, y), z) in x.iter().zip(y).zip(z) {
                crcs = three(crcs, [x, y, z]);
            }
            let first = product(crcs[0], TIMES_WORDS[2 * each]);
            let second = product(crcs[1], TIMES_WORDS[each]);
            crc = reduced(_mm_xor_si128(first, second)) ^ crcs[2];
        }
        for word in words {
            crc = _mm_crc32_u64(crc, u64::from_le_bytes(*word));
        }
        let (fours, rest) = rest.as_chunks::<4>();
        let crc = fours.iter().fold(crc as u32, |crc, four| {
            _mm_crc32_u32(crc, u32::from_le_bytes(*four))
        });
        rest.iter().fold(crc, |crc, &byte| _mm_crc32_u8(crc, byte))
    }

    #[target_feature(enable = "sse4.2,pclmulqdq")]
    #[inline]
    fn three(crcs: [u64; 3], words: [&[u8; 8]; 3]) -> [u64; 3] {
        let [a, b, c] = words.map(|it| u64::from_le_bytes(*it));
        [
            _mm_crc32_u64(crcs[0], a),
            _mm_crc32_u64(crcs[1], b),
            _mm_crc32_u64(crcs[2], c),
        ]
    }

    /// Difference that the four bytes at `field` make to the CRC32c of `bytes` (a CRC is linear); 0
    /// if `bytes` does not contain all four.
    #[target_feature(enable = "sse4.2,pclmulqdq")]
    #[inline]
    pub(super) fn share(bytes: &[u8], field: usize) -> u32 {
        let from = bytes.get(field..).unwrap_or_default();
        let Some(value) = from.first_chunk() else {
            return 0;
        };
        let mut share = u64::from(u32::from_le_bytes(*value));
        let mut length = from.len();
        while length > 0 {
            let step = length.min(256 * 256);
            share = reduced(product(share, TIMES_BYTES[step % 256]));
            share = reduced(product(share, TIMES_PAGES[step / 256]));
            length -= step;
        }
        share as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CRC32c of `bytes`, with and without the four bytes at `field`. Always computed by the loop,
    /// even if this processor would use `crc-fast`.
    #[cfg(target_arch = "x86_64")]
    #[multiversion(targets("x86_64+sse4.2+pclmulqdq"))]
    fn by_the_loop(bytes: &[u8], field: usize) -> [u32; 2] {
        match_target! {
            "x86_64+sse4.2+pclmulqdq" => {
                [x86::crc32c(bytes), x86::crc32c_without(bytes, field)]
            }
            _ => [crc_fast::crc32_iscsi(bytes), in_parts(bytes, field)],
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn by_the_loop(bytes: &[u8], field: usize) -> [u32; 2] {
        [crc32c(bytes), crc32c_without(bytes, field)]
    }

    #[test]
    fn every_length_has_the_same_by_each_way() {
        let byte = |number: u32| (number.wrapping_mul(2_654_435_761) >> 13) as u8;
        let bytes: Vec<u8> = (0..70_001).map(byte).collect();
        let long = [65_535, 65_536, 65_543, 65_544, 65_545, 70_000];
        for length in (0..4_000).chain(long) {
            // The start is tested with and without alignment to eight bytes.
            for from in [0, 1] {
                let bytes = &bytes[from..from + length];
                let mut zeroed = bytes.to_vec();
                zeroed.iter_mut().skip(8).take(4).for_each(|it| *it = 0);
                let slow = [bytes, &zeroed].map(crc_fast::crc32_iscsi);
                assert_eq!(in_parts(bytes, 8), slow[1], "{length} bytes in parts");
                if length >= 12 {
                    assert_eq!(by_the_loop(bytes, 8), slow, "{length} bytes by the loop");
                    assert_eq!(crc32c_without(bytes, 8), slow[1], "{length} bytes");
                }
                assert_eq!(
                    by_the_loop(bytes, 8)[0],
                    slow[0],
                    "{length} bytes by the loop"
                );
                assert_eq!(crc32c(bytes), slow[0], "{length} bytes");
            }
        }
    }
}

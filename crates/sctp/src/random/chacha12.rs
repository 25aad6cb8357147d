//! Computation of two adjacent blocks of ChaCha12, for the random numbers of endpoints and
//! associations. On x86-64 with AVX2 one register holds a row of both blocks. The second block
//! takes no additional time, because the processor would otherwise be idle while each step waits
//! for the result of the previous step. With AVX-512 a rotation is one instruction instead of
//! three. Other processors compute the words one by one; the time of that was not measured. The
//! output is that of the crate `rand_chacha`, which computes four blocks at a time and takes twice
//! as long as the function for AVX2 here. The other functions were not compared with that crate.

#[cfg(target_arch = "x86_64")]
use multiversion::{multiversion, target::match_target};

/// Number of words per block.
pub(super) const BLOCK: usize = 16;

/// Number of rounds, alternately along columns and diagonals. The loop over the rounds is not
/// unrolled: unrolled code is six times as large, and the processor loses more time by fetching it
/// than it saves by the missing loop.
const ROUNDS: usize = 12;

/// Two blocks, as words in stream order.
pub(super) type BlockPair = [[u8; 4]; 2 * BLOCK];

/// Computes block `number` of the stream of `seed`, and the next block.
#[cfg(target_arch = "x86_64")]
#[multiversion(targets("x86_64+avx2+avx512f+avx512vl", "x86_64+avx2"))]
pub(super) fn two(seed: &[u8; 32], number: u64) -> BlockPair {
    match_target! {
        "x86_64+avx2+avx512f+avx512vl" => x86::two_by_rotations(seed, number),
        "x86_64+avx2" => x86::two(seed, number),
        _ => by_words(seed, number),
    }
}

/// Computes block `number` of the stream of `seed`, and the next block.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn two(seed: &[u8; 32], number: u64) -> BlockPair {
    by_words(seed, number)
}

/// Computes the blocks on any processor.
fn by_words(seed: &[u8; 32], number: u64) -> BlockPair {
    let mut two = [[0; 4]; 2 * BLOCK];
    let (blocks, _) = two.as_chunks_mut::<BLOCK>();
    for (number, block) in (0..).map(|at| number.wrapping_add(at)).zip(blocks) {
        block_by_words(seed, number, block);
    }
    two
}

fn block_by_words(seed: &[u8; 32], number: u64, block: &mut [[u8; 4]; BLOCK]) {
    let mut begin = [0_u32; BLOCK];
    let number = number.to_le_bytes();
    let bytes = b"expand 32-byte k".iter().chain(seed).chain(&number);
    for (at, &byte) in bytes.enumerate() {
        begin[at / 4] |= u32::from(byte) << (8 * (at % 4));
    }
    let mut now = begin;
    for _ in 0..ROUNDS / 2 {
        for column in 0..4 {
            quarter(&mut now, [column, 4 + column, 8 + column, 12 + column]);
        }
        for column in 0..4 {
            let diagonal = [1, 2, 3].map(|row| 4 * row + (column + row) % 4);
            quarter(&mut now, [column, diagonal[0], diagonal[1], diagonal[2]]);
        }
    }
    for ((word, begin), now) in block.iter_mut().zip(begin).zip(now) {
        *word = begin.wrapping_add(now).to_le_bytes();
    }
}

/// A quarter round (RFC 8439 §2.1) of the words with these indices.
fn quarter(state: &mut [u32; BLOCK], [a, b, c, d]: [usize; 4]) {
    for (x, y) in [(16, 12), (8, 7)] {
        state[a] = state[a].wrapping_add(state[b]);
        state[d] = (state[d] ^ state[a]).rotate_left(x);
        state[c] = state[c].wrapping_add(state[d]);
        state[b] = (state[b] ^ state[c]).rotate_left(y);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_cvtsi128_si64, _mm_extract_epi64, _mm_set_epi64x, _mm256_add_epi32,
        _mm256_add_epi64, _mm256_broadcastsi128_si256, _mm256_castsi256_si128,
        _mm256_extracti128_si256, _mm256_or_si256, _mm256_rol_epi32, _mm256_set_epi64x,
        _mm256_shuffle_epi8, _mm256_shuffle_epi32, _mm256_slli_epi32, _mm256_srli_epi32,
        _mm256_xor_si256,
    };
    use std::hint::black_box;

    use super::{BLOCK, BlockPair, ROUNDS};

    /// The four rows of both blocks; the first block is in the lower halves.
    type Rows = [__m256i; 4];

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn two(seed: &[u8; 32], number: u64) -> BlockPair {
        let begin = rows(seed, number);
        let mut now = begin;
        for _ in 0..black_box(ROUNDS / 2) {
            now = columns(quarters(diagonals(quarters(now))));
        }
        written(begin, now)
    }

    /// Computes the same blocks with one instruction per rotation (AVX-512).
    #[target_feature(enable = "avx2,avx512f,avx512vl")]
    #[inline]
    pub(super) fn two_by_rotations(seed: &[u8; 32], number: u64) -> BlockPair {
        let begin = rows(seed, number);
        let mut now = begin;
        for _ in 0..black_box(ROUNDS / 2) {
            now = columns(quarters_by_rotations(diagonals(quarters_by_rotations(now))));
        }
        written(begin, now)
    }

    /// Initial state of both blocks: constants, seed, and block number.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn rows(seed: &[u8; 32], number: u64) -> Rows {
        let (halves, _) = seed.as_chunks();
        let number = _mm256_set_epi64x(0, number as i64, 0, number as i64);
        [
            in_both(b"expand 32-byte k"),
            in_both(&halves[0]),
            in_both(&halves[1]),
            _mm256_add_epi64(number, _mm256_set_epi64x(0, 1, 0, 0)),
        ]
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn in_both(row: &[u8; 16]) -> __m256i {
        let row = u128::from_le_bytes(*row);
        _mm256_broadcastsi128_si256(_mm_set_epi64x((row >> 64) as i64, row as i64))
    }

    /// Rotates the rows so that the diagonals become columns. The second row stays in place because
    /// it is ready last; the other rows are rotated relative to it.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn diagonals([a, b, c, d]: Rows) -> Rows {
        [
            _mm256_shuffle_epi32::<0b10_01_00_11>(a),
            b,
            _mm256_shuffle_epi32::<0b00_11_10_01>(c),
            _mm256_shuffle_epi32::<0b01_00_11_10>(d),
        ]
    }

    /// Reverts [`diagonals`].
    #[target_feature(enable = "avx2")]
    #[inline]
    fn columns([a, b, c, d]: Rows) -> Rows {
        [
            _mm256_shuffle_epi32::<0b00_11_10_01>(a),
            b,
            _mm256_shuffle_epi32::<0b10_01_00_11>(c),
            _mm256_shuffle_epi32::<0b01_00_11_10>(d),
        ]
    }

    /// Applies a quarter round to each column.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn quarters([a, b, c, d]: Rows) -> Rows {
        // A rotation by whole bytes is a single shuffle instruction.
        let (high, low) = (0x0d0c_0f0e_0908_0b0a, 0x0504_0706_0100_0302);
        let by_16 = _mm256_set_epi64x(high, low, high, low);
        let (high, low) = (0x0e0d_0c0f_0a09_080b, 0x0605_0407_0201_0003);
        let by_8 = _mm256_set_epi64x(high, low, high, low);
        let a = _mm256_add_epi32(a, b);
        let d = _mm256_shuffle_epi8(_mm256_xor_si256(d, a), by_16);
        let c = _mm256_add_epi32(c, d);
        let b = _mm256_xor_si256(b, c);
        let b = _mm256_or_si256(_mm256_slli_epi32::<12>(b), _mm256_srli_epi32::<20>(b));
        let a = _mm256_add_epi32(a, b);
        let d = _mm256_shuffle_epi8(_mm256_xor_si256(d, a), by_8);
        let c = _mm256_add_epi32(c, d);
        let b = _mm256_xor_si256(b, c);
        let b = _mm256_or_si256(_mm256_slli_epi32::<7>(b), _mm256_srli_epi32::<25>(b));
        [a, b, c, d]
    }

    #[target_feature(enable = "avx2,avx512f,avx512vl")]
    #[inline]
    fn quarters_by_rotations([a, b, c, d]: Rows) -> Rows {
        let a = _mm256_add_epi32(a, b);
        let d = _mm256_rol_epi32::<16>(_mm256_xor_si256(d, a));
        let c = _mm256_add_epi32(c, d);
        let b = _mm256_rol_epi32::<12>(_mm256_xor_si256(b, c));
        let a = _mm256_add_epi32(a, b);
        let d = _mm256_rol_epi32::<8>(_mm256_xor_si256(d, a));
        let c = _mm256_add_epi32(c, d);
        let b = _mm256_rol_epi32::<7>(_mm256_xor_si256(b, c));
        [a, b, c, d]
    }

    /// Adds initial and final state, and writes one block after the other.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn written(begin: Rows, end: Rows) -> BlockPair {
        let mut two = [[0; 4]; 2 * BLOCK];
        let (first, second) = two.split_at_mut(BLOCK);
        for at in 0..begin.len() {
            let row = _mm256_add_epi32(begin[at], end[at]);
            put(&mut first[4 * at..], _mm256_castsi256_si128(row));
            put(&mut second[4 * at..], _mm256_extracti128_si256::<1>(row));
        }
        two
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn put(words: &mut [[u8; 4]], row: __m128i) {
        let (low, high) = words[..4].as_flattened_mut().split_at_mut(8);
        low.copy_from_slice(&_mm_cvtsi128_si64(row).to_le_bytes());
        high.copy_from_slice(&_mm_extract_epi64::<1>(row).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha12Rng;
    use rand_core::{RngCore, SeedableRng};

    use super::*;

    fn by_crate(seed: &[u8; 32], number: u64) -> BlockPair {
        let mut generator = ChaCha12Rng::from_seed(*seed);
        generator.set_word_pos(u128::from(number) * BLOCK as u128);
        let mut two = [[0; 4]; 2 * BLOCK];
        generator.fill_bytes(two.as_flattened_mut());
        two
    }

    /// Computes the blocks without AVX-512, even if this processor supports it.
    #[cfg(target_arch = "x86_64")]
    #[multiversion(targets("x86_64+avx2"))]
    fn by_shifts(seed: &[u8; 32], number: u64) -> BlockPair {
        match_target! {
            "x86_64+avx2" => x86::two(seed, number),
            _ => by_words(seed, number),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn by_shifts(seed: &[u8; 32], number: u64) -> BlockPair {
        by_words(seed, number)
    }

    /// Some of the block numbers cause a carry into the second word of the block number, or a
    /// wrap-around.
    #[test]
    fn blocks_are_the_same_by_each_way() {
        let mut seeds = ChaCha12Rng::from_seed([9; 32]);
        for turn in 0..500 {
            let mut seed = [0; 32];
            seeds.fill_bytes(&mut seed);
            let near = [0, 1 << 32, 1 << 33, 1 << 63, 0][turn % 5];
            let number = u64::wrapping_add(near, seeds.next_u64() % 5).wrapping_sub(2);
            for number in [number, seeds.next_u64()] {
                let expected = by_crate(&seed, number);
                assert_eq!(two(&seed, number), expected, "from {number} on");
                assert_eq!(by_shifts(&seed, number), expected, "from {number} on");
                assert_eq!(by_words(&seed, number), expected, "from {number} on");
            }
        }
    }
}

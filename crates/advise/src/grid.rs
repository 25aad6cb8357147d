//! Grid of tested buffers with four steps per octave: 2 KiB, 2.5 KiB, 3 KiB, 3.5 KiB, 4 KiB, 5 KiB,
//! ... 256 MiB.
//!
//! Each buffer is 14 to 25 % larger than the previous one. A finer grid would require more runs
//! without more information, because goodput varies more between runs than between adjacent
//! buffers.

/// Number of steps from a buffer to its double.
pub const OCTAVE: usize = 4;

/// Largest tested buffer, bytes.
pub const MAX_BUFFER: u64 = 256 << 20;

/// Buffer size that means unlimited, bytes. No simulation should fill it.
pub const UNLIMITED: u64 = 1 << 30;

/// Buffers from `least` bytes up, in ascending order; never empty.
pub fn buffers(least: u64) -> Vec<u64> {
    let octaves = (0..)
        .map(|octave| 512_u64 << octave)
        .take_while(|unit| unit * 4 <= MAX_BUFFER);
    let all = octaves.flat_map(|unit| (4..8).map(move |part| part * unit));
    all.filter(|&buffer| buffer <= MAX_BUFFER && (buffer >= least || buffer == MAX_BUFFER))
        .collect()
}

/// Index of the first buffer of at least `bytes` bytes, or of the last buffer if there is none.
pub fn place_of(grid: &[u64], bytes: u64) -> usize {
    grid.partition_point(|&buffer| buffer < bytes)
        .min(grid.len().saturating_sub(1))
}

/// Formats a buffer size: `2.5 KiB`, `96 KiB`, `1.25 MiB`.
pub fn readable(bytes: u64) -> String {
    let (unit, name) = if bytes >= 1 << 20 {
        (1 << 20, "MiB")
    } else {
        (1 << 10, "KiB")
    };
    let number = format!("{:.2}", bytes as f64 / unit as f64);
    format!(
        "{} {name}",
        number.trim_end_matches('0').trim_end_matches('.')
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_to_an_octave_and_no_step_above_a_quarter() {
        let grid = buffers(1500);
        assert_eq!(grid[..6], [2048, 2560, 3072, 3584, 4096, 5120]);
        assert_eq!(grid.last(), Some(&MAX_BUFFER));
        assert!(
            grid.windows(2)
                .all(|pair| pair[0] < pair[1] && pair[1] * 4 <= pair[0] * 5)
        );
        assert!((OCTAVE..grid.len()).all(|place| grid[place] == 2 * grid[place - OCTAVE]));
    }

    #[test]
    fn a_least_buffer_cuts_the_grid() {
        assert_eq!(buffers(10_000)[0], 10_240);
        assert_eq!(buffers(MAX_BUFFER + 1), [MAX_BUFFER]);
    }

    #[test]
    fn a_place_holds_the_bytes() {
        let grid = buffers(1500);
        assert_eq!(grid[place_of(&grid, 5000)], 5120);
        assert_eq!(place_of(&grid, 1), 0);
        assert_eq!(place_of(&grid, u64::MAX), grid.len() - 1);
    }

    #[test]
    fn buffers_read_well() {
        assert_eq!(
            [2560, 98_304, 1_310_720].map(readable),
            ["2.5 KiB", "96 KiB", "1.25 MiB"]
        );
    }
}

//! Numbers with a noun in singular or plural.

use std::fmt::Display;

/// A number with its noun, such as `1 packet` or `2 packets`. The plural is formed by adding an s.
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let plural = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_alone_is_singular() {
        assert_eq!(counted(0_u64, "packet"), "0 packets");
        assert_eq!(counted(1_u16, "stream"), "1 stream");
        assert_eq!(counted(2_usize, "run"), "2 runs");
    }
}

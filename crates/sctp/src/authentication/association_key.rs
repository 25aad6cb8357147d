//! Association shared key (RFC 4895 §6.1).

use std::cmp::Ordering;

/// Compares two byte vectors as numbers in network byte order; of equal numbers, the shorter vector
/// is the smaller.
fn compare(one: &[u8], other: &[u8]) -> Ordering {
    let digits = |vector: &[u8]| {
        let zeros = vector.iter().take_while(|&&byte| byte == 0).count();
        vector[zeros..].to_vec()
    };
    let (a, b) = (digits(one), digits(other));
    let as_numbers = a.len().cmp(&b.len()).then_with(|| a.cmp(&b));
    as_numbers.then(one.len().cmp(&other.len()))
}

/// Association shared key: the endpoint pair shared key, the smaller key vector, then the larger
/// key vector. The order of the arguments does not matter, so both ends compute the same key.
pub(crate) fn association_key(secret: &[u8], one: &[u8], other: &[u8]) -> Vec<u8> {
    let (small, large) = match compare(one, other) {
        Ordering::Greater => (other, one),
        _ => (one, other),
    };
    [secret, small, large].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_compared_as_numbers_and_then_by_length() {
        use Ordering::{Equal, Greater, Less};
        let cases: [(&[u8], &[u8], Ordering); 9] = [
            (&[1, 2, 3], &[1, 2, 4], Less),
            (&[2, 0, 0], &[1, 255, 255], Greater),
            // A longer vector is the larger number, unless it has leading zeros.
            (&[1, 0, 0, 0], &[255, 255, 255], Greater),
            (&[0, 1, 2, 3], &[1, 2, 4], Less),
            (&[0, 1, 2, 4], &[1, 2, 3], Greater),
            (&[0, 1, 2, 3], &[1, 2, 3], Greater),
            (&[0, 0], &[0], Greater),
            (&[], &[0], Less),
            (&[7, 7], &[7, 7], Equal),
        ];
        for (one, other, expected) in cases {
            assert_eq!(compare(one, other), expected, "{one:?} {other:?}");
            assert_eq!(compare(other, one), expected.reverse(), "{other:?} {one:?}");
        }
    }

    #[test]
    fn the_key_is_the_secret_the_smaller_and_the_larger() {
        for (one, other) in [(&[3_u8, 1][..], &[2_u8, 9][..]), (&[2, 9], &[3, 1])] {
            assert_eq!(association_key(b"k", one, other), [b'k', 2, 9, 3, 1]);
        }
        assert_eq!(association_key(b"", &[0, 5], &[5]), [5, 0, 5]);
    }
}

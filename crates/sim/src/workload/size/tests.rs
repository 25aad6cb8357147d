//! Tests that compare draws with their distributions, and fix the first draws of each distribution.

use super::*;
use crate::rng::Seed;

fn drawn(sizes: &mut dyn Sizes, count: usize) -> Vec<u64> {
    let mut rng = Seed::new(5, 0).stream("sizes");
    (0..count).map(|_| sizes.draw(&mut rng)).collect()
}

/// The fraction of draws above `size`.
fn above(draws: &[u64], size: u64) -> f64 {
    draws.iter().filter(|&&drawn| drawn > size).count() as f64 / draws.len() as f64
}

#[test]
fn pareto_falls_as_its_exponent_says() {
    let draws = drawn(&mut Pareto::new(1000, 1.2, MAX_SIZE).unwrap(), 100_000);
    assert!(draws.iter().all(|&size| size >= 1000));
    // P(X > 10 min) = 10^-1.2 = 0.0631 and P(X > 100 min) = 0.003981, with three standard
    // deviations of 0.0023 and 0.0006.
    assert!((above(&draws, 10_000) - 0.063_1).abs() < 0.002_3);
    assert!((above(&draws, 100_000) - 0.003_981).abs() < 0.000_6);
}

#[test]
fn a_bounded_pareto_stays_within_its_bounds() {
    let draws = drawn(&mut Pareto::new(1000, 0.5, 4000).unwrap(), 100_000);
    assert!(draws.iter().all(|size| (1000..=4000).contains(size)));
    // P(X > 2000) = (2^-0.5 - 4^-0.5) / (1 - 4^-0.5) = 0.41421, with three standard deviations of
    // 0.0047.
    assert!((above(&draws, 2000) - 0.414_21).abs() < 0.004_7);
    assert!(Pareto::new(5, 1.0, 4).is_err());
    assert!(Pareto::new(1, 0.0, 4).is_err());
}

#[test]
fn lognormal_has_its_median_and_its_spread() {
    let draws = drawn(&mut LogNormal::new(10_000, 1.5, MAX_SIZE).unwrap(), 100_000);
    assert!((above(&draws, 10_000) - 0.5).abs() < 0.004_8);
    // At one standard deviation above the median, 10000 e^1.5 = 44817, P(Z > 1) = 0.15866.
    assert!((above(&draws, 44_817) - 0.158_66).abs() < 0.003_5);
    let cut = drawn(&mut LogNormal::new(10_000, 3.0, 10_000).unwrap(), 10_000);
    assert!(cut.iter().all(|size| (1..=10_000).contains(size)));
    assert_eq!(drawn(&mut LogNormal::new(7, 0.0, 7).unwrap(), 2), [7, 7]);
    assert!(LogNormal::new(8, 1.0, 7).is_err());
}

#[test]
fn a_list_is_drawn_by_its_shares() {
    let cdf = [(1000, 0.5), (2000, 0.9), (1_000_000, 1.0)];
    let draws = drawn(&mut Empirical::new(&cdf, false).unwrap(), 100_000);
    assert!(
        draws
            .iter()
            .all(|size| cdf.iter().any(|(known, _)| known == size))
    );
    assert!((above(&draws, 1000) - 0.5).abs() < 0.004_8);
    assert!((above(&draws, 2000) - 0.1).abs() < 0.002_9);
    let draws = drawn(&mut Empirical::new(&cdf, true).unwrap(), 100_000);
    assert!(draws.iter().all(|size| (1000..=1_000_000).contains(size)));
    // Sizes above 1500 B: half of the interval from 1000 to 2000 B (0.2) and all larger sizes
    // (0.1).
    assert!((above(&draws, 1500) - 0.3).abs() < 0.004_4);
    for wrong in [
        &[][..],
        &[(0, 1.0)],
        &[(1, 0.5)],
        &[(2, 0.5), (1, 1.0)],
        &[(1, 1.0), (2, 1.0)],
    ] {
        assert!(Empirical::new(wrong, true).is_err(), "{wrong:?}");
    }
}

#[test]
fn draws_are_the_same_for_ever() {
    // These values must not change, because published results depend on them.
    let first = |sizes: &mut dyn Sizes| drawn(sizes, 4);
    let cdf = [(1000, 0.5), (2000, 0.9), (1_000_000, 1.0)];
    assert_eq!(
        first(&mut Pareto::new(1000, 1.2, MAX_SIZE).unwrap()),
        PARETO
    );
    assert_eq!(
        first(&mut LogNormal::new(10_000, 1.5, MAX_SIZE).unwrap()),
        LOGNORMAL
    );
    assert_eq!(first(&mut Empirical::new(&cdf, true).unwrap()), LISTED);
}

const PARETO: [u64; 4] = [5431, 1246, 1037, 15117];
const LOGNORMAL: [u64; 4] = [4775, 6678, 15834, 20311];
const LISTED: [u64; 4] = [1000, 1670, 571_183, 1000];

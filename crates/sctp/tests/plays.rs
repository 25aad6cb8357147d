//! Plays of random bytes, and those that once ended badly. The fuzz target `association` searches for more.

mod play;

use rand_core::{RngCore, SeedableRng};

/// `CASE=seed` plays one alone, `CASES=number` so many.
#[test]
fn random_plays_end_well() {
    let seeds = match std::env::var("CASE") {
        Ok(seed) => {
            let seed: u64 = seed.parse().expect("CASE=number");
            seed..seed + 1
        }
        Err(_) => {
            let cases = std::env::var("CASES").ok();
            0..cases.map_or(150, |cases| cases.parse().expect("CASES=number"))
        }
    };
    for seed in seeds {
        println!("CASE={seed}");
        let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
        let mut bytes = vec![0; 200 + (seed as usize * 37) % 3_000];
        random.fill_bytes(&mut bytes);
        play::play(&bytes);
    }
}

/// The seeds of the fuzz target.
#[test]
fn plays_of_the_corpus_end_well() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/association");
    let mut played = 0;
    for entry in std::fs::read_dir(corpus).expect("the corpus") {
        let path = entry.expect("readable").path();
        println!("{}", path.display());
        play::play(&std::fs::read(path).expect("readable"));
        played += 1;
    }
    assert!(played >= 10, "{played}");
}

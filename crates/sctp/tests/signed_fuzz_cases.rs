//! Runs fuzz cases of random bytes against endpoints with AUTH and ASCONF. The fuzz target `signed`
//! searches for more cases.

use crate::common;
use crate::signed_fuzz_case;

use common::seeds;
use rand_core::{RngCore, SeedableRng};

#[test]
fn random_sequences_end_well() {
    seeds::each(300, |seed| {
        let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
        let mut bytes = vec![0; 40 + random.next_u32() as usize % 1_000];
        random.fill_bytes(&mut bytes);
        signed_fuzz_case::run(&bytes);
    });
}

/// Runs the cases in the corpus of the fuzzer.
#[test]
fn the_corpus_ends_well() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/signed");
    let mut scenarios = 0;
    for entry in std::fs::read_dir(corpus).expect(corpus) {
        let bytes = std::fs::read(entry.expect(corpus).path()).expect(corpus);
        signed_fuzz_case::run(&bytes);
        scenarios += 1;
    }
    assert!(scenarios > 3, "{scenarios} scenarios in {corpus}");
}

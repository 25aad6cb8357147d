//! Random scenarios for channels, random offers, and the corpus of the fuzz targets `channels` and
//! `offer`.

mod channel_scenario;
#[path = "channel_scenario/offer.rs"]
mod offer;
#[path = "../../sctp/tests/common/seeds.rs"]
#[allow(dead_code, reason = "each test has its part")]
mod seeds;

#[test]
fn random_sequences_end_well() {
    seeds::each(2_000, |seed| {
        let mut state = seed + 1;
        let mut byte = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 40) as u8
        };
        // The first step establishes the association, because other steps would have no effect
        // before.
        let mut bytes = vec![byte(), 9, 200, 0];
        bytes.extend((0..2_000).map(|_| byte()));
        channel_scenario::run(&bytes);
    });
}

fn corpus(name: &str, check: fn(&[u8])) {
    let corpus = format!("{}/../../fuzz/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut files = 0;
    for entry in std::fs::read_dir(&corpus).expect(&corpus) {
        check(&std::fs::read(entry.expect(&corpus).path()).expect(&corpus));
        files += 1;
    }
    assert!(files > 3, "{files} files in {corpus}");
}

#[test]
fn the_corpus_ends_well() {
    corpus("channels", channel_scenario::run);
    corpus("offer", offer::check);
}

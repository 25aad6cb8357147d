//! What the papers printed and what ns-2.35 gives, as this program carries it.

use anabranch_report::reference::Reference;

/// The embedded files: one pair for each paper.
const PUBLISHED: &[&str] = &[
    include_str!("../../../reference/alamgir2002/published.csv"),
    include_str!("../../../reference/ho2008/published.csv"),
    include_str!("../../../reference/rafiq2007/published.csv"),
];
const NS2: &[&str] = &[
    include_str!("../../../reference/alamgir2002/ns2.csv"),
    include_str!("../../../reference/atiquzzaman2002/ns2.csv"),
    include_str!("../../../reference/rafiq2007/ns2.csv"),
    include_str!("../../../reference/tsunoda2007/ns2.csv"),
    include_str!("../../../reference/ho2008/ns2.csv"),
];

/// The reference data that this program carries.
pub fn embedded() -> &'static Reference {
    static EMBEDDED: Reference = Reference::carried(PUBLISHED, NS2);
    &EMBEDDED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_files_are_whole() {
        let header = |text: &str| text.lines().next().expect("a header").to_owned();
        let (published, ns2) = (PUBLISHED[0], NS2[0]);
        // ho2008 prints 19 values.
        for text in PUBLISHED {
            let read = Reference::read(text, &header(ns2)).expect("published.csv");
            let rows = read.all_published().len();
            assert_eq!(rows, text.lines().count() - 1);
            assert!(rows >= 19, "{rows}");
        }
        for text in NS2 {
            let read = Reference::read(&header(published), text).expect("ns2.csv");
            let rows = read.all_ns2().len();
            assert_eq!(rows, text.lines().count() - 1);
            assert!(rows > 170, "{rows}");
        }
    }

    #[test]
    fn a_table_and_an_ns2_mean_are_found() {
        let reference = embedded();
        let increases: Vec<f64> = reference
            .published("alamgir2002", "Table II")
            .filter(|row| row.metric == "throughput_increase")
            .map(|row| row.value)
            .collect();
        assert_eq!(increases, [23.9, 26.1, 19.24, 21.6]);
        let fairness = reference
            .ns2("alamgir2002", "Table II", "era n=4", "Jain fairness")
            .unwrap();
        assert_eq!(
            (fairness.mean, fairness.confidence, fairness.replications),
            (0.988606, Some(0.00196), 20)
        );
        let single = reference
            .ns2(
                "alamgir2002",
                "Figs. 8-11",
                "both_scaled_access2_hbshift",
                "TCP cwnd 4.25 (cumulative SACK) (s)",
            )
            .unwrap();
        assert_eq!((single.mean, single.confidence), (3.4163, None));
    }
}

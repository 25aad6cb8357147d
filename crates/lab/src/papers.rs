//! The papers and examples that this program carries.

/// A paper.
#[derive(Clone, Copy, Debug)]
pub struct KnownPaper {
    /// Its short name.
    pub name: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// Its spec.
    pub spec: &'static str,
}

/// All of them, in the order of their years.
pub const PAPERS: &[KnownPaper] = &[
    KnownPaper {
        name: "alamgir2002",
        title: "TCP and SCTP over a GEO satellite link",
        spec: include_str!("../../../papers/alamgir2002.toml"),
    },
    KnownPaper {
        name: "atiquzzaman2002",
        title: "Multistreaming and the receive buffer over a satellite path",
        spec: include_str!("../../../papers/atiquzzaman2002.toml"),
    },
    KnownPaper {
        name: "rafiq2007",
        title: "SCTP and TCP SACK in heterogeneous networks",
        spec: include_str!("../../../papers/rafiq2007.toml"),
    },
    KnownPaper {
        name: "tsunoda2007",
        title: "Adaptive multistreaming over LEO satellite networks",
        spec: include_str!("../../../papers/tsunoda2007.toml"),
    },
    KnownPaper {
        name: "ho2008",
        title: "RSCTP: congestion control by the receiver's estimate of the available bandwidth",
        spec: include_str!("../../../papers/ho2008.toml"),
    },
];

/// Specs that the program carries beside those of papers, each by its name.
pub const EXAMPLES: &[(&str, &str)] = &[
    ("own", include_str!("../../../examples/own.toml")),
    ("failover", include_str!("../../../examples/failover.toml")),
];

/// The example of a name.
pub fn example(name: &str) -> Option<&'static str> {
    let named = EXAMPLES.iter().find(|(known, _)| *known == name);
    named.map(|(_, text)| *text)
}

/// The paper of a name.
pub fn paper(name: &str) -> Option<&'static KnownPaper> {
    PAPERS.iter().find(|paper| paper.name == name)
}

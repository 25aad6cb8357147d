//! The papers this program knows, and how far each can be reproduced.

/// A paper.
#[derive(Clone, Copy, Debug)]
pub struct KnownPaper {
    /// Its short name.
    pub name: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// Its spec, where it can be reproduced.
    pub spec: Option<&'static str>,
    /// What is still missing, where it cannot.
    pub missing: &'static str,
}

/// All of them, in the order of their years.
pub const PAPERS: &[KnownPaper] = &[
    KnownPaper {
        name: "alamgir2002",
        title: "TCP and SCTP over a GEO satellite link",
        spec: Some(include_str!("../../../papers/alamgir2002.toml")),
        missing: "",
    },
    KnownPaper {
        name: "atiquzzaman2002",
        title: "Multistreaming and the receive buffer over a satellite path",
        spec: Some(include_str!("../../../papers/atiquzzaman2002.toml")),
        missing: "",
    },
    KnownPaper {
        name: "rafiq2007",
        title: "SCTP and TCP SACK in heterogeneous networks",
        spec: Some(include_str!("../../../papers/rafiq2007.toml")),
        missing: "",
    },
    KnownPaper {
        name: "tsunoda2007",
        title: "Adaptive multistreaming over LEO satellite networks",
        spec: Some(include_str!("../../../papers/tsunoda2007.toml")),
        missing: "",
    },
    KnownPaper {
        name: "ho2008",
        title: "RSCTP: congestion control by the receiver's estimate of the available bandwidth",
        spec: Some(include_str!("../../../papers/ho2008.toml")),
        missing: "",
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

//! A part of a thing that is itself one of several kinds: the size of a workload's transfers.

use crate::datum::Datum;
use crate::setting::Kind;
use crate::value::Value;

/// The kind that was chosen for a part, and the parameters that were given for it. A [`Registry`](crate::Registry) of its
/// kinds makes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Which kind.
    pub kind: String,
    /// Its parameters, in the order in which they were given.
    pub parameters: Vec<(String, Datum)>,
}

impl Value for Part {
    /// Each declaration says which kinds there are, by [`Kind::Variant`].
    const KIND: Kind = Kind::Variant(Vec::new);

    fn from_datum(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::Variant { kind, parameters } => Some(Self {
                kind: kind.clone(),
                parameters: parameters.clone(),
            }),
            _ => None,
        }
    }

    fn to_datum(&self) -> Datum {
        Datum::Variant {
            kind: self.kind.clone(),
            parameters: self.parameters.clone(),
        }
    }
}

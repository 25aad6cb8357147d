//! A nested kind: a parameter that is itself one of several kinds, such as the size of a workload's
//! transfers.

use crate::datum::Datum;
use crate::setting::Kind;
use crate::value::Value;

/// The kind that was chosen for a parameter, and its given parameters. A
/// [`Registry`](crate::Registry) of its kinds builds it.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedKind {
    /// Name of the kind.
    pub kind: String,
    /// Parameters, in the given order.
    pub parameters: Vec<(String, Datum)>,
}

impl Value for NestedKind {
    /// Each declaration lists the kinds by [`Kind::Variant`].
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

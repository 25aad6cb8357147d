//! Nested kind: a parameter whose value is itself one of several kinds, such as the size
//! distribution of a workload's transfers.

use crate::datum::Datum;
use crate::setting::Kind;
use crate::value::SettingValue;

/// A kind that was chosen as the value of a parameter, with its own parameters. A
/// [`Registry`](crate::Registry) builds the kind from this name and these parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedKind {
    /// Name of the kind.
    pub kind: String,
    /// Parameters with their values, in the order in which they were given.
    pub parameters: Vec<(String, Datum)>,
}

impl SettingValue for NestedKind {
    /// Empty here, because each declaration lists its kinds by [`Kind::Variant`].
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

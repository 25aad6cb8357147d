//! Declarations of settings: name, effect and reason, type with unit and range, clause, and
//! default.
//!
//! A setting is declared once, next to the code that it affects. [`settings!`](crate::settings)
//! declares a structure whose fields are settings. [`switches!`](crate::switches) declares a
//! profile, which contains the choices in which RFCs and implementations differ. Command lines,
//! specs, JSON Schema, help and the manual are derived from the declarations ([`Setting`]).
//!
//! A kind that a spec can name, such as a loss model, is declared by [`kind!`](crate::kind): its
//! parameters with the structure that holds them, its name and description ([`Variant`]), and its
//! constructor ([`KindEntry`]).
#![forbid(unsafe_code)]

mod datum;
mod effect;
mod error;
pub mod expression;
#[cfg(feature = "json")]
mod json;
mod kinds;
mod macros;
mod manual;
mod nested_kind;
mod partner_check;
mod plural;
pub mod quantity;
mod registry;
mod renamed;
mod setting;
mod suggest;
pub mod units;
mod value;

pub use datum::Datum;
pub use effect::{Effect, idle_if};
pub use error::{InvalidValue, SettingError};
pub use kinds::{Declared, FromParameters};
#[doc(hidden)]
pub use kinds::{build_kind, joined, judged, read_table, total};
pub use macros::{check, find, look_up, read, take};
pub use manual::Section;
pub use nested_kind::NestedKind;
pub use partner_check::{check_partners, without_effect};
pub use plural::counted;
pub use registry::{KindEntry, KindError, KindParameters, Kinds, Prepared, Registry, names_of};
pub use renamed::{NameCategory, RENAMED, Renamed, hint, renamed};
pub use setting::{Choice, Fallback, Kind, OFF, Partner, Partners, Setting, Variant, Words};
pub use suggest::nearest;
pub use value::{
    Factor, Fraction, Named, Pause, PositiveTime, RetryLimit, SettingValue, WindowSize,
};

#[cfg(test)]
mod tests;

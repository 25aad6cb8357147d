//! Macro that declares a kind: its parameters, the structure that holds them, its name and its
//! constructor.

use crate::datum::Datum;
use crate::effect::Effect;
use crate::registry::{KindError, KindParameters};
use crate::setting::{Kind, Setting};

/// A value that is read from the parameters of a kind: the whole structure, or a field that is
/// built from several parameters.
pub trait FromParameters: Sized {
    /// Reads the value from parameters.
    ///
    /// # Errors
    /// A parameter is missing or out of its range, or parameters contradict each other.
    fn read(parameters: &KindParameters<'_>) -> Result<Self, KindError>;
}

/// A structure that [`kind!`](crate::kind) declares; each field is a parameter.
pub trait Declared: FromParameters {
    /// Parameters, in the order of declaration.
    const PARAMETERS: &'static [Setting];

    /// Creates the structure with the default of each parameter.
    ///
    /// # Panics
    /// If a parameter has no default.
    fn defaults() -> Self {
        let parameters = KindParameters::new("", Self::PARAMETERS, &[]);
        match Self::read(&parameters) {
            Ok(defaults) => defaults,
            Err(refusal) => panic!("no default: {refusal}"),
        }
    }
}

/// Builds a kind from its parameters. This function exists to fix the type of `build`, so that the
/// compiler can check the closure.
#[doc(hidden)]
pub fn build_kind<P: FromParameters, C, T>(
    parameters: &KindParameters<'_>,
    context: C,
    build: fn(P, C) -> Result<T, KindError>,
) -> Result<T, KindError> {
    build(P::read(parameters)?, context)
}

/// Reads a declared structure from a table.
#[doc(hidden)]
pub fn read_table<T: Declared>(datum: &Datum) -> Option<T> {
    let Datum::Table(entries) = datum else {
        return None;
    };
    T::read(&KindParameters::new("", T::PARAMETERS, entries)).ok()
}

/// Effect of one parameter, according to the rule of its kind.
#[doc(hidden)]
pub fn judged<P, C>(
    (key, redundant): (&'static str, bool),
    config: &P,
    context: &C,
    rule: fn(&P, &C) -> Option<String>,
) -> Effect {
    Effect {
        key,
        idle: rule(config, context),
        redundant,
    }
}

/// Total length of several lists of settings.
#[doc(hidden)]
pub const fn total(lists: &[&[Setting]]) -> usize {
    let (mut sum, mut index) = (0, 0);
    while index < lists.len() {
        sum += lists[index].len();
        index += 1;
    }
    sum
}

/// Concatenation of several lists of settings.
#[doc(hidden)]
pub const fn joined<const N: usize>(lists: &[&[Setting]]) -> [Setting; N] {
    const NONE: Setting = Setting::new("", "", Kind::Flag).optional();
    let mut all = [NONE; N];
    let (mut list, mut item, mut at) = (0, 0, 0);
    while list < lists.len() {
        if item < lists[list].len() {
            all[at] = lists[list][item];
            (at, item) = (at + 1, item + 1);
        } else {
            (list, item) = (list + 1, 0);
        }
    }
    all
}

#[cfg(test)]
mod tests;

/// Declares the parameters of a kind, the structure that holds them, and the
/// [`KindEntry`](crate::KindEntry) with the name of the kind in specs.
///
/// ```
/// use anabranch_settings::{Kind, KindEntry, KindError, Registry, idle_if, kind};
///
/// /// A number of packets.
/// const PACKETS: Kind = Kind::count(1, 100);
///
/// kind! {
///     /// The parameters of the queue.
///     #[derive(Clone, Debug, PartialEq)]
///     pub struct QueueConfig: Default {
///         /// Number of packets from which packets are dropped at random.
///         from: u64 = 5, PACKETS, "Floyd and Jacobson 1993, §4";
///         /// Number of packets from which each is dropped. No limit if left out.
///         limit: Option<u64> = none, PACKETS;
///         /// Drop each packet above `from`.
///         harsh: bool = false, Kind::Flag;
///     }
///     idle {
///         harsh: |it, ()| idle_if(it.limit == Some(it.from), "with `limit` at `from`");
///     }
///     /// Drops packets at random before it is full.
///     static EARLY: KindEntry<QueueConfig> = "early", |config, ()| match config.limit {
///         Some(limit) if limit < config.from => {
///             Err(KindError::together("`limit` is below `from`"))
///         }
///         _ => Ok(config),
///     };
/// }
///
/// let queue = Registry::new(&[&EARLY]).build("early", &[], ()).unwrap();
/// assert_eq!(queue, QueueConfig { from: 5, limit: None, harsh: false });
/// assert_eq!(queue, QueueConfig::default());
/// ```
///
/// An entry consists of the parameter's text as a doc comment, and `field: type = default, kind,
/// "clause";`. The default is a literal that [`Kind::parse`](crate::Kind::parse) accepts. With
/// `none` the parameter is optional, and the type defines the value (`None`, an empty list).
/// Without a default the parameter is required. A parameter that several kinds share is a constant
/// `SHARED` of type [`Setting`](crate::Setting): `field: type as SHARED;` uses its kind and default
/// with the name of the field. It also uses its text, unless the entry has a doc comment. `field:
/// type as [A, B];` is a field that [`FromParameters`] builds from several shared parameters; `as
/// (LIST)` uses a list of parameters.
///
/// With `: Default` the structure implements `Default`, with the defaults of all parameters.
///
/// A block `idle` lists the parameters that have no effect in combination with some values of the
/// others. The rule for each is a function of the structure and of the context in which the kind is
/// built. A parameter is listed in a block `redundant` if its value then still describes the actual
/// behaviour.
///
/// Several kinds may share one structure; each is a `static` with its own text.
#[macro_export]
macro_rules! kind {
    (
        $(#[$meta:meta])*
        $vis:vis struct $owner:ident $(: $default:ident)? {
            $($(#[doc = $doc:literal])* $field:ident : $type:ty $(as $shared:tt)? $(= $fallback:tt)?
                $(, $kind:expr $(, $clause:literal)?)?;)*
        }
        $(idle { $($idle:ident : $idle_rule:expr;)+ })?
        $(redundant { $($redundant:ident : $redundant_rule:expr;)+ })?
        $($(#[doc = $about:literal])+ $entry_vis:vis static $entry:ident : $made:ty = $name:literal, $build:expr;)+
    ) => {
        $crate::kind!(@structure $(#[$meta])* $vis struct $owner {
            $($(#[doc = $doc])* $field : $type $(as $shared)? $(= $fallback)? $(, $kind $(, $clause)?)?;)*
        });

        $(impl $default for $owner {
            fn default() -> Self {
                <Self as $crate::Declared>::defaults()
            }
        })?

        $crate::kind!(
            @entries $owner [[$($($idle $idle_rule;)+)?] [$($($redundant $redundant_rule;)+)?]]
            $($(#[doc = $about])+ $entry_vis static $entry: $made = $name, $build;)+
        );
    };
    (
        @entries $owner:ident $rules:tt
        $($(#[doc = $about:literal])+ $entry_vis:vis static $entry:ident : $made:ty = $name:literal, $build:expr;)+
    ) => {
        $($(#[doc = $about])+
        $entry_vis static $entry: $made = $crate::KindEntry {
            variant: $crate::Variant {
                name: $name,
                about: concat!($($about, "\n"),+),
                parameters: <$owner as $crate::Declared>::PARAMETERS,
            },
            build: |parameters, context| $crate::build_kind::<$owner, _, _>(parameters, context, $build),
            effects: $crate::kind!(@effects $owner $rules),
        };)+
    };
    (
        @structure
        $(#[$meta:meta])*
        $vis:vis struct $owner:ident {
            $($(#[doc = $doc:literal])* $field:ident : $type:ty $(as $shared:tt)? $(= $fallback:tt)?
                $(, $kind:expr $(, $clause:literal)?)?;)*
        }
    ) => {
        $(#[$meta])*
        $vis struct $owner {
            $(#[doc = $crate::kind!(@doc $field [$($doc)*])] pub $field: $type,)*
        }

        impl $crate::FromParameters for $owner {
            fn read(parameters: &$crate::KindParameters<'_>) -> Result<Self, $crate::KindError> {
                let _ = parameters;
                Ok(Self { $($field: $crate::kind!(@read parameters $field {$($shared)?}),)* })
            }
        }

        impl $crate::Declared for $owner {
            const PARAMETERS: &'static [$crate::Setting] = {
                const LISTS: &[&[$crate::Setting]] = &[
                    $($crate::kind!(@settings $field {$($shared)?} [$($doc)*] [$($fallback)?] $($kind $(, $clause)?)?)),*
                ];
                const ALL: [$crate::Setting; $crate::total(LISTS)] = $crate::joined(LISTS);
                &ALL
            };
        }
    };
    (@effects $owner:ident [[] []]) => { |_, _| Ok(Vec::new()) };
    (@effects $owner:ident [[$($idle:ident $idle_rule:expr;)*] [$($redundant:ident $rule:expr;)*]]) => {
        |parameters, context| {
            let config = <$owner as $crate::FromParameters>::read(parameters)?;
            Ok(vec![
                $($crate::judged((stringify!($idle), false), &config, context, $idle_rule),)*
                $($crate::judged((stringify!($redundant), true), &config, context, $rule),)*
            ])
        }
    };
    (@doc $field:ident []) => { concat!(" The parameter `", stringify!($field), "`, which kinds share.") };
    (@doc $field:ident [$($doc:literal)+]) => { concat!($($doc, "\n"),+) };
    // Reading of a field from one parameter, or from several.
    (@read $parameters:ident $field:ident {[$($shared:ident),*]}) => { $crate::FromParameters::read($parameters)? };
    (@read $parameters:ident $field:ident {($shared:expr)}) => { $crate::FromParameters::read($parameters)? };
    (@read $parameters:ident $field:ident {$($shared:ident)?}) => { $parameters.get(stringify!($field))? };
    // Parameters of a field.
    (@settings $field:ident {[$($shared:ident),*]} [$($doc:literal)*] []) => { &[$($shared),*] };
    (@settings $field:ident {($shared:expr)} [$($doc:literal)*] []) => { $shared };
    (@settings $field:ident {$shared:ident} [] []) => {
        &[$crate::Setting { name: stringify!($field), ..$shared }]
    };
    (@settings $field:ident {$shared:ident} [$($doc:literal)+] []) => {
        &[$crate::Setting { name: stringify!($field), about: concat!($($doc, "\n"),+), ..$shared }]
    };
    (@settings $field:ident {} [$($doc:literal)+] [$($fallback:tt)?] $kind:expr $(, $clause:literal)?) => {
        &[$crate::Setting::new(stringify!($field), concat!($($doc, "\n"),+), $kind)
            .clause(concat!($($clause)?))
            .fallback($crate::kind!(@fallback $($fallback)?))]
    };
    (@fallback) => { $crate::Fallback::Required };
    (@fallback none) => { $crate::Fallback::Nothing };
    (@fallback $text:tt) => { $crate::Fallback::Is(concat!($text)) };
}

/// Declares a table of a spec and the structure that holds it, for a parameter that is a list of
/// tables. Entries have the same form as in [`kind!`](crate::kind).
#[macro_export]
macro_rules! table {
    (
        $(#[$meta:meta])*
        $vis:vis struct $owner:ident {
            $($(#[doc = $doc:literal])+ $field:ident : $type:ty $(= $fallback:tt)?, $kind:expr $(, $clause:literal)?;)+
        }
    ) => {
        $crate::kind!(@structure $(#[$meta])* $vis struct $owner {
            $($(#[doc = $doc])+ $field : $type $(= $fallback)?, $kind $(, $clause)?;)+
        });

        impl $crate::SettingValue for $owner {
            const KIND: $crate::Kind = $crate::Kind::Table(<Self as $crate::Declared>::PARAMETERS);

            fn from_datum(datum: &$crate::Datum) -> Option<Self> {
                $crate::read_table(datum)
            }

            fn to_datum(&self) -> $crate::Datum {
                $crate::Datum::Table(vec![
                    $((stringify!($field).to_owned(), $crate::SettingValue::to_datum(&self.$field))),+
                ])
            }
        }
    };
}

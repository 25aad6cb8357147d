//! Rust types of settings, for any protocol.

use anabranch_transport::{Nanos, Probe};

use crate::datum::Datum;
use crate::setting::{Choice, Kind, OFF};

/// A Rust type for the value of a setting.
pub trait SettingValue: Sized {
    /// Kind of the value, if the declaration does not specify one.
    const KIND: Kind;

    /// Converts a value that is in the range of its kind; `None` if it is of another kind.
    fn from_datum(datum: &Datum) -> Option<Self>;

    /// Converts the value of a parameter that may be missing; `None` if it is of another kind, or
    /// if it is missing and required.
    fn from_parameter(datum: Option<&Datum>) -> Option<Self> {
        Self::from_datum(datum?)
    }

    /// Converts the Rust value to a datum.
    fn to_datum(&self) -> Datum;

    /// Whether the value is obviously in the range of `kind`. If the result is false, the caller
    /// should use [`Kind::check`] with the datum, which takes ten times as long.
    fn plainly_fits(&self, kind: &Kind) -> bool {
        let _ = kind;
        false
    }
}

/// Maximum of a duration, nanoseconds: a million seconds.
const MAX_TIME: Nanos = 1_000_000 * 1_000_000_000;

impl SettingValue for bool {
    const KIND: Kind = Kind::Flag;

    fn from_datum(datum: &Datum) -> Option<Self> {
        datum.flag()
    }

    fn to_datum(&self) -> Datum {
        Datum::Flag(*self)
    }

    #[inline]
    fn plainly_fits(&self, kind: &Kind) -> bool {
        matches!(kind, Kind::Flag)
    }
}

/// Implements [`SettingValue`] for an integer type.
macro_rules! whole {
    ($($name:ty: $least:literal to $most:expr;)+) => {$(
        impl SettingValue for $name {
            const KIND: Kind = Kind::Count { least: $least, most: $most };

            fn from_datum(datum: &Datum) -> Option<Self> {
                Self::try_from(datum.whole()?).ok()
            }

            fn to_datum(&self) -> Datum {
                Datum::Whole(*self as u64)
            }

            #[inline]
            fn plainly_fits(&self, kind: &Kind) -> bool {
                kind.has_whole(*self as u64)
            }
        }
    )+};
}

whole! {
    u16: 1 to u16::MAX as u64;
    u32: 1 to 1_000_000;
    u64: 1 to 1 << 40;
    usize: 1 to 1 << 40;
}

impl SettingValue for f64 {
    const KIND: Kind = Kind::Number {
        least: 0.0,
        most: f64::INFINITY,
        above: false,
        step: 0.0,
    };

    fn from_datum(datum: &Datum) -> Option<Self> {
        datum.number()
    }

    fn to_datum(&self) -> Datum {
        Datum::Real(*self)
    }

    #[inline]
    fn plainly_fits(&self, kind: &Kind) -> bool {
        kind.has_number(*self)
    }
}

impl<T: SettingValue> SettingValue for Option<T> {
    const KIND: Kind = Kind::Either(OFF, &T::KIND);

    fn from_datum(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::Word(word) if word == OFF[0].name => Some(None),
            other => T::from_datum(other).map(Some),
        }
    }

    /// A missing parameter is `None`.
    fn from_parameter(datum: Option<&Datum>) -> Option<Self> {
        match datum {
            Some(datum) => T::from_datum(datum)
                .map(Some)
                .or_else(|| Self::from_datum(datum)),
            None => Some(None),
        }
    }

    fn to_datum(&self) -> Datum {
        self.as_ref()
            .map_or_else(|| Datum::word(OFF[0].name), T::to_datum)
    }

    #[inline]
    fn plainly_fits(&self, kind: &Kind) -> bool {
        match (kind, self) {
            (Kind::Either(_, other), Some(value)) => value.plainly_fits(other),
            (Kind::Either(words, _), None) => {
                std::ptr::eq(*words, OFF) || words.iter().any(|it| it.name == OFF[0].name)
            }
            _ => false,
        }
    }
}

impl SettingValue for String {
    const KIND: Kind = Kind::Text("any text");

    fn from_datum(datum: &Datum) -> Option<Self> {
        datum.text().map(str::to_owned)
    }

    fn to_datum(&self) -> Datum {
        Datum::word(self)
    }
}

/// Implements [`SettingValue`] for a probe of a flow, which is written as its name.
impl SettingValue for Probe {
    const KIND: Kind =
        Kind::Registered(|| Probe::ALL.iter().map(|it| Choice::new(it.name())).collect());

    fn from_datum(datum: &Datum) -> Option<Self> {
        Probe::from_name(datum.text()?)
    }

    fn to_datum(&self) -> Datum {
        Datum::word(self.name())
    }
}

/// A list of two values, such as `["10 s", 0.05]`.
impl<A: SettingValue, B: SettingValue> SettingValue for (A, B) {
    const KIND: Kind = Kind::Tuple(&[A::KIND, B::KIND]);

    fn from_datum(datum: &Datum) -> Option<Self> {
        match datum.items() {
            [a, b] => Some((A::from_datum(a)?, B::from_datum(b)?)),
            _ => None,
        }
    }

    fn to_datum(&self) -> Datum {
        Datum::List(vec![self.0.to_datum(), self.1.to_datum()])
    }
}

impl<T: SettingValue> SettingValue for Vec<T> {
    const KIND: Kind = Kind::List(&T::KIND);

    fn from_datum(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::List(items) => items.iter().map(T::from_datum).collect(),
            _ => None,
        }
    }

    /// A missing list is empty.
    fn from_parameter(datum: Option<&Datum>) -> Option<Self> {
        datum.map_or(Some(Self::new()), Self::from_datum)
    }

    fn to_datum(&self) -> Datum {
        Datum::List(self.iter().map(T::to_datum).collect())
    }
}

/// Names that a spec chooses, each with a value: `{ early = ["0 s", "5 s"] }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T>(
    /// Names with their values, in the order of the spec.
    pub Vec<(String, T)>,
);

impl<T: SettingValue> SettingValue for Named<T> {
    const KIND: Kind = Kind::Named(&T::KIND);

    fn from_datum(datum: &Datum) -> Option<Self> {
        let Datum::Table(entries) = datum else {
            return None;
        };
        let entries = entries.iter();
        let entries = entries.map(|(name, datum)| Some((name.clone(), T::from_datum(datum)?)));
        entries.collect::<Option<_>>().map(Self)
    }

    fn to_datum(&self) -> Datum {
        let entries = self.0.iter();
        Datum::Table(
            entries
                .map(|(name, value)| (name.clone(), value.to_datum()))
                .collect(),
        )
    }
}

/// Implements [`SettingValue`] for a structure that contains one number.
macro_rules! wrapper {
    ($name:ident, $get:ident, $put:ident, $fits:ident, $kind:expr) => {
        impl SettingValue for $name {
            const KIND: Kind = $kind;

            fn from_datum(datum: &Datum) -> Option<Self> {
                datum.$get()?.try_into().ok().map($name)
            }

            fn to_datum(&self) -> Datum {
                Datum::$put(self.0.into())
            }

            #[inline]
            fn plainly_fits(&self, kind: &Kind) -> bool {
                kind.$fits(self.0.into())
            }
        }
    };
}

/// Maximum number of retransmissions; 0 means unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryLimit(
    /// The number.
    pub u32,
);
wrapper!(
    RetryLimit,
    whole,
    Whole,
    has_whole,
    Kind::Count {
        least: 0,
        most: 1_000_000
    }
);

/// A duration above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PositiveTime(
    /// Duration, nanoseconds.
    pub Nanos,
);
wrapper!(
    PositiveTime,
    whole,
    Whole,
    has_whole,
    Kind::Duration {
        least: 1,
        most: MAX_TIME
    }
);

/// A duration that may be 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pause(
    /// Duration, nanoseconds.
    pub Nanos,
);
wrapper!(
    Pause,
    whole,
    Whole,
    has_whole,
    Kind::Duration {
        least: 0,
        most: MAX_TIME
    }
);

/// A factor: a number above 0 and at most 1000.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor(
    /// The number.
    pub f64,
);
wrapper!(
    Factor,
    number,
    Real,
    has_number,
    Kind::Number {
        least: 0.0,
        most: 1_000.0,
        above: true,
        step: 0.0
    }
);

/// A number above 0 and at most 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fraction(
    /// The number.
    pub f64,
);
wrapper!(
    Fraction,
    number,
    Real,
    has_number,
    Kind::Number {
        least: 0.0,
        most: 1.0,
        above: true,
        step: 0.0
    }
);

/// Size of a window or of ssthresh, in bytes or in full segments (chunks) of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowSize {
    /// Number of bytes.
    Bytes(u64),
    /// Number of full segments.
    Segments(u64),
}

impl WindowSize {
    /// The size in bytes, for segments of `segment` bytes.
    pub const fn bytes(self, segment: u64) -> u64 {
        match self {
            WindowSize::Bytes(bytes) => bytes,
            WindowSize::Segments(count) => count.saturating_mul(segment),
        }
    }

    /// The size in whole segments of `segment` bytes, rounded down.
    pub const fn segments(self, segment: u64) -> u64 {
        match self {
            WindowSize::Bytes(bytes) => bytes / segment,
            WindowSize::Segments(count) => count,
        }
    }
}

impl SettingValue for WindowSize {
    const KIND: Kind = Kind::Amount {
        segments: [1, 1_000_000],
        bytes: [1, 1 << 40],
        counted: "segments",
    };

    fn from_datum(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::Whole(bytes) => Some(WindowSize::Bytes(*bytes)),
            Datum::Segments(count) => Some(WindowSize::Segments(*count)),
            _ => None,
        }
    }

    fn to_datum(&self) -> Datum {
        match self {
            WindowSize::Bytes(bytes) => Datum::Whole(*bytes),
            WindowSize::Segments(count) => Datum::Segments(*count),
        }
    }

    #[inline]
    fn plainly_fits(&self, kind: &Kind) -> bool {
        match *self {
            WindowSize::Bytes(number) => kind.has_bytes(number),
            WindowSize::Segments(number) => kind.has_segments(number),
        }
    }
}

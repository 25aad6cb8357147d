//! Type of a setting: the accepted forms, units and ranges.

use anabranch_transport::Nanos;

use crate::datum::Datum;
use crate::error::InvalidValue;
use crate::expression::{Shown, constant, is_compound};
use crate::quantity;
use crate::units::{self, PACKETS, RATE, SEGMENTS, SIZE, TIME, Unit};

use super::{Choice, Fallback, Setting, Variant};

/// Key that contains the name of a table's variant.
pub(crate) const TAG: &str = "kind";

/// Keys of a step function.
pub(crate) const STEPS: &str = "steps";
#[cfg(feature = "json")]
pub(crate) const REPEAT: &str = "repeat";

/// Kind of the time of a step.
#[cfg(feature = "json")]
pub(crate) const STEP_TIME: Kind = Kind::Duration {
    least: 0,
    most: Nanos::MAX,
};

/// Type of a setting with its range.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// An integer without a unit.
    Count {
        /// Minimum value.
        least: u64,
        /// Maximum value.
        most: u64,
    },
    /// A real number without a unit.
    Number {
        /// Minimum value.
        least: f64,
        /// Maximum value.
        most: f64,
        /// Whether the minimum itself is excluded.
        above: bool,
        /// Value of which the number must be a multiple; 0 permits any number.
        step: f64,
    },
    /// A duration, such as `"250 ms"`.
    Duration {
        /// Minimum, nanoseconds.
        least: Nanos,
        /// Maximum, nanoseconds.
        most: Nanos,
    },
    /// A size, such as `"64 KiB"`.
    Bytes {
        /// Minimum, bytes.
        least: u64,
        /// Maximum, bytes.
        most: u64,
    },
    /// A rate, such as `"2 Mbit/s"`.
    Rate {
        /// Minimum, bits per second.
        least: u64,
        /// Maximum, bits per second.
        most: u64,
    },
    /// A size, or a number of full segments (packets, chunks), such as `"10 segments"`.
    Amount {
        /// Minimum and maximum number of segments.
        segments: [u64; 2],
        /// Minimum and maximum number of bytes.
        bytes: [u64; 2],
        /// Unit that is counted: `"segments"` of the flow, or `"packets"`.
        counted: &'static str,
    },
    /// One of these words.
    Choice(&'static [Choice]),
    /// One of the words of a registry, to which words may be added.
    Registered(fn() -> Vec<Choice>),
    /// Free text, with a description of its content.
    Text(&'static str),
    /// One of these words, or a value of another kind.
    Either(&'static [Choice], &'static Kind),
    /// A list of values of this kind.
    List(&'static Kind),
    /// A list of one value of each of these kinds, in this order: `["10 s", 0.05]`.
    Tuple(&'static [Kind]),
    /// A table with these keys: `{ flow = "web", number = 8 }`.
    Table(&'static [Setting]),
    /// A constant of this kind, or a step function: `{ steps = [["0 s", VALUE], ["10 s", VALUE]],
    /// repeat = "20 s" }`.
    StepFunction(&'static Kind),
    /// Name of a `flow`, a `link` or a `node` of the spec. The caller must check that it exists.
    Name(&'static str),
    /// A table whose keys are arbitrary names, each with a value of this kind: `{ early = ["0 s",
    /// "5 s"] }`.
    Named(&'static Kind),
    /// A table with the key `kind` and the parameters of the variant with this name.
    Variant(fn() -> Vec<Variant>),
}

impl Kind {
    /// Kind of integers.
    pub const fn count(least: u64, most: u64) -> Self {
        Kind::Count { least, most }
    }

    /// Kind of real numbers from `least` to `most`.
    pub const fn number(least: f64, most: f64) -> Self {
        Kind::Number {
            least,
            most,
            above: false,
            step: 0.0,
        }
    }

    /// Kind of durations, with bounds in nanoseconds.
    pub const fn duration(least: Nanos, most: Nanos) -> Self {
        Kind::Duration { least, most }
    }

    /// Kind of sizes, with bounds in bytes.
    pub const fn bytes(least: u64, most: u64) -> Self {
        Kind::Bytes { least, most }
    }

    /// Kind of rates, with bounds in bits per second.
    pub const fn rate(least: u64, most: u64) -> Self {
        Kind::Rate { least, most }
    }

    /// Parses a value as written on a command line.
    ///
    /// # Errors
    /// The value is not of this kind, or is out of its range.
    pub fn parse(&self, text: &str) -> Result<Datum, InvalidValue> {
        let text = text.trim();
        let datum = match self {
            Kind::Flag => text.parse().ok().map(Datum::Flag),
            Kind::Count { .. } | Kind::Number { .. } if is_compound(text) => computed(text),
            Kind::Count { .. } => text.parse().ok().map(Datum::Whole),
            Kind::Number { .. } => text.parse().ok().map(Datum::Real),
            Kind::Duration { .. } | Kind::Bytes { .. } | Kind::Rate { .. } => {
                self.quantity(text)?
            }
            Kind::Amount { .. } => self.amount(text)?,
            Kind::Choice(_) | Kind::Text(_) | Kind::Name(_) => Some(Datum::word(text)),
            Kind::Registered(words) => {
                let known = words().iter().any(|known| known.name == text);
                known.then(|| Datum::word(text))
            }
            Kind::Either(words, other) => {
                return match words.iter().find(|word| word.name == text) {
                    Some(word) => Ok(Datum::word(word.name)),
                    None => other.parse(text).map_err(|inner| InvalidValue {
                        allowed: either(words, inner.allowed),
                        ..self.invalid_value(inner.found)
                    }),
                };
            }
            Kind::List(item) => {
                let items = text.split(',').map(|text| item.parse(text));
                return items.collect::<Result<_, _>>().map(Datum::List);
            }
            Kind::Variant(_) => Some(Datum::Variant {
                kind: text.to_owned(),
                parameters: Vec::new(),
            }),
            Kind::Tuple(_) | Kind::Table(_) | Kind::Named(_) => None,
            Kind::StepFunction(inner) => return inner.parse(text),
        };
        let invalid_value = || self.invalid_value(format!("{text:?}"));
        let datum = datum.ok_or_else(invalid_value)?;
        if self.holds(&datum) {
            Ok(datum)
        } else {
            Err(invalid_value())
        }
    }

    /// Parses a value with a unit, and rounds it to the base unit.
    fn quantity(&self, text: &str) -> Result<Option<Datum>, InvalidValue> {
        match quantity::whole(text, "it", "", self.families()) {
            Ok(whole) => Ok(Some(Datum::Whole(whole.number))),
            Err(_) => Err(self.unread(text)),
        }
    }

    /// Creates the error for a text that is not a number with a unit.
    fn unread(&self, text: &str) -> InvalidValue {
        InvalidValue {
            allowed: format!("{}; units: {}", self.allowed(), self.unit()),
            ..self.invalid_value(format!("{text:?}"))
        }
    }

    fn amount(&self, text: &str) -> Result<Option<Datum>, InvalidValue> {
        let whole =
            quantity::whole(text, "it", "", self.families()).map_err(|_| self.unread(text))?;
        Ok(whole.exact.then(|| match whole.unit.as_bytes()[0] {
            b'p' | b's' => Datum::Segments(whole.number),
            _ => Datum::Whole(whole.number),
        }))
    }

    /// Checks that a value is of this kind and in its range.
    ///
    /// # Errors
    /// The value is of another kind, or out of range.
    pub fn check(&self, datum: &Datum) -> Result<(), InvalidValue> {
        if self.holds(datum) {
            Ok(())
        } else {
            Err(self.invalid_value(self.show(datum)))
        }
    }

    /// Whether this is a kind of integers, and `number` is in its range.
    #[inline]
    pub(crate) fn has_whole(&self, number: u64) -> bool {
        match self {
            Kind::Count { least, most }
            | Kind::Duration { least, most }
            | Kind::Bytes { least, most }
            | Kind::Rate { least, most } => (*least..=*most).contains(&number),
            _ => false,
        }
    }

    /// Whether this is a kind of real numbers, and `number` is in its range.
    #[inline]
    pub(crate) fn has_number(&self, number: f64) -> bool {
        match self {
            Kind::Number {
                least,
                most,
                above,
                step,
            } => {
                number.is_finite()
                    && number <= *most
                    && (number > *least || (number == *least && !above))
                    && (*step == 0.0 || (number / step).fract() == 0.0)
            }
            _ => false,
        }
    }

    /// Whether this is a kind of amounts, and `number` bytes are in its range.
    #[inline]
    pub fn has_bytes(&self, number: u64) -> bool {
        matches!(self, Kind::Amount { bytes, .. } if (bytes[0]..=bytes[1]).contains(&number))
    }

    /// Whether this is a kind of amounts, and `number` segments are in its range.
    #[inline]
    pub fn has_segments(&self, number: u64) -> bool {
        matches!(self, Kind::Amount { segments, .. } if (segments[0]..=segments[1]).contains(&number))
    }

    /// Whether the kind contains the word `word`.
    pub fn has_word(&self, word: &str) -> bool {
        matches!(self, Kind::Choice(words) if words.iter().any(|known| known.name == word))
    }

    /// Whether both kinds refer to the same list of words, so that they obviously accept the same
    /// words.
    #[inline]
    pub fn has_words_of(&self, other: &Kind) -> bool {
        matches!((self, other), (Kind::Choice(words), Kind::Choice(others)) if std::ptr::eq(*words, *others))
    }

    fn holds(&self, datum: &Datum) -> bool {
        match (self, datum) {
            // Any word is accepted, because a program may use a value that is not in the registry.
            (Kind::Flag, Datum::Flag(_))
            | (Kind::Text(_) | Kind::Name(_) | Kind::Registered(_), Datum::Word(_)) => true,
            (
                Kind::Count { .. } | Kind::Duration { .. } | Kind::Bytes { .. } | Kind::Rate { .. },
                Datum::Whole(number),
            ) => self.has_whole(*number),
            (Kind::Amount { .. }, Datum::Whole(number)) => self.has_bytes(*number),
            (Kind::Amount { .. }, Datum::Segments(number)) => self.has_segments(*number),
            (Kind::Number { .. }, _) => {
                datum.number().is_some_and(|number| self.has_number(number))
            }
            (Kind::Choice(_), Datum::Word(word)) => self.has_word(word),
            (Kind::Either(words, other), _) => {
                let is_word = |word: &str| words.iter().any(|known| known.name == word);
                datum.text().is_some_and(is_word) || other.holds(datum)
            }
            (Kind::List(item), Datum::List(items)) => items.iter().all(|datum| item.holds(datum)),
            (Kind::Tuple(kinds), Datum::List(items)) => {
                let mut pairs = kinds.iter().zip(items);
                kinds.len() == items.len() && pairs.all(|(kind, datum)| kind.holds(datum))
            }
            (Kind::StepFunction(inner), Datum::Table(_)) => {
                let mut steps = datum.key(STEPS).map_or(&[][..], Datum::items).iter();
                let fits = |step: &Datum| match step.items() {
                    [Datum::Whole(_), value] => inner.holds(value),
                    _ => false,
                };
                steps.len() > 0 && steps.all(fits)
            }
            (Kind::StepFunction(inner), _) => inner.holds(datum),
            (Kind::Table(settings), Datum::Table(entries)) => {
                let known = |name: &str| settings.iter().find(|known| known.name == name);
                let given = |name: &str| entries.iter().any(|(given, _)| given == name);
                let fits = |(name, datum): &(String, Datum)| {
                    known(name).is_some_and(|known| known.kind.holds(datum))
                };
                let mut required = settings.iter();
                entries.iter().all(fits)
                    && required.all(|key| key.fallback != Fallback::Required || given(key.name))
            }
            (Kind::Named(item), Datum::Table(entries)) => {
                entries.iter().all(|(_, datum)| item.holds(datum))
            }
            (Kind::Variant(variants), Datum::Variant { kind, parameters }) => {
                let variants = variants();
                let variant = variants.iter().find(|known| known.name == kind);
                variant.is_some_and(|variant| variant.holds(parameters))
            }
            _ => false,
        }
    }

    /// Creates the error for the value `found`.
    pub fn invalid_value(&self, found: String) -> InvalidValue {
        InvalidValue {
            found,
            allowed: self.allowed(),
            range: self.range(),
            words: self.words(),
            parameter: None,
        }
    }

    /// Converts a value to text that [`Kind::parse`] accepts.
    pub fn show(&self, datum: &Datum) -> String {
        match (self, datum) {
            (Kind::Either(_, other), Datum::Whole(_) | Datum::Segments(_) | Datum::Real(_)) => {
                other.show(datum)
            }
            (Kind::Duration { .. }, Datum::Whole(span)) => units::show_time(*span),
            (Kind::Bytes { .. } | Kind::Amount { .. }, Datum::Whole(bytes)) => {
                units::show_size(*bytes)
            }
            (Kind::Rate { .. }, Datum::Whole(rate)) => units::show_rate(*rate),
            (Kind::StepFunction(_), Datum::Table(_)) => "steps over time".to_owned(),
            (Kind::StepFunction(inner), _) => inner.show(datum),
            (Kind::List(item), Datum::List(items)) => {
                let items: Vec<String> = items.iter().map(|datum| item.show(datum)).collect();
                items.join(", ")
            }
            (Kind::Tuple(kinds), Datum::List(items)) => {
                let items = kinds.iter().zip(items);
                let items: Vec<String> = items.map(|(kind, datum)| kind.show(datum)).collect();
                items.join(", ")
            }
            (Kind::Amount { counted, .. }, Datum::Segments(number)) => {
                crate::counted(*number, counted.trim_end_matches('s'))
            }
            (_, Datum::Flag(flag)) => flag.to_string(),
            (_, Datum::Whole(number)) => number.to_string(),
            (_, Datum::Real(number)) => number.to_string(),
            (_, Datum::Segments(number)) => crate::counted(*number, "segment"),
            (_, Datum::Word(word)) => word.clone(),
            (_, Datum::List(items)) => crate::counted(items.len(), "value"),
            (_, Datum::Variant { kind, .. }) => kind.clone(),
            (_, Datum::Table(_)) => "a table".to_owned(),
        }
    }

    /// Name of the type: `flag`, `count`, `duration`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Kind::Flag => "flag",
            Kind::Count { .. } => "count",
            Kind::Number { .. } => "number",
            Kind::Duration { .. } => "duration",
            Kind::Bytes { .. } => "size",
            Kind::Rate { .. } => "rate",
            Kind::Amount { .. } => "amount",
            Kind::Choice(_) | Kind::Registered(_) => "choice",
            Kind::Text(_) | Kind::Name(_) => "text",
            Kind::Either(_, other) | Kind::StepFunction(other) => other.type_name(),
            Kind::List(_) | Kind::Tuple(_) => "list",
            Kind::Variant(_) | Kind::Table(_) | Kind::Named(_) => "table",
        }
    }

    /// Units in which a value of this kind is parsed.
    pub(crate) fn families(&self) -> &'static [&'static [Unit]] {
        match self {
            Kind::Duration { .. } => &[TIME],
            Kind::Bytes { .. } => &[SIZE],
            Kind::Rate { .. } => &[RATE],
            Kind::Amount { .. } => &[PACKETS, SEGMENTS, SIZE],
            _ => &[],
        }
    }

    /// Units that a value may have, such as `s, ms, us, ns, min, h`; empty if it has none.
    pub fn unit(&self) -> String {
        let units: &[&[Unit]] = match self {
            Kind::Amount {
                counted: "packets", ..
            } => &[&PACKETS[..1], SIZE],
            Kind::Amount { .. } => &[&SEGMENTS[..1], SIZE],
            Kind::Either(_, other)
            | Kind::List(other)
            | Kind::StepFunction(other)
            | Kind::Named(other) => {
                return other.unit();
            }
            _ => self.families(),
        };
        let names = units.iter().flat_map(|family| family.iter());
        names.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    /// Example of a value, for errors and schemas; empty if the words are sufficient.
    pub fn example(&self) -> &'static str {
        match self {
            Kind::Duration { .. } => "250 ms",
            Kind::Bytes { .. } => "64 KiB",
            Kind::Rate { .. } => "2 Mbit/s",
            Kind::Amount {
                counted: "packets", ..
            } => "10 packets",
            Kind::Amount { .. } => "10 segments",
            Kind::Either(_, other)
            | Kind::List(other)
            | Kind::StepFunction(other)
            | Kind::Named(other) => other.example(),
            _ => "",
        }
    }

    /// Range or words: `1 ms to 60 s`, `1 to 65535`, `"off", or 1 to 10`.
    pub fn range(&self) -> String {
        let between = |least: &u64, most: &u64, show: fn(u64) -> String| match *most {
            u64::MAX => format!("at least {}", show(*least)),
            most => format!("{} to {}", show(*least), show(most)),
        };
        match self {
            Kind::Flag => "true or false".to_owned(),
            Kind::Count { least, most } => between(least, most, |number| number.to_string()),
            Kind::Number {
                least,
                most,
                above,
                step,
            } => {
                if *least == f64::MIN && *most == f64::MAX {
                    return "any number".to_owned();
                }
                let range = match (*above, *most == f64::INFINITY) {
                    (true, true) => format!("above {least}"),
                    (true, false) => format!("above {least}, at most {most}"),
                    (false, true) => format!("at least {least}"),
                    (false, false) => format!("{least} to {most}"),
                };
                match step {
                    0.0 => range,
                    step => format!("{range}, a multiple of {step}"),
                }
            }
            Kind::Duration { least, most } => between(least, most, units::show_time),
            Kind::Bytes { least, most } => between(least, most, units::show_size),
            Kind::Rate { least, most } => between(least, most, units::show_rate),
            Kind::Amount {
                segments,
                bytes,
                counted,
            } => {
                let [least, most] = segments;
                let bytes = between(&bytes[0], &bytes[1], units::show_size);
                format!("{least} to {most} {counted}, or {bytes}")
            }
            Kind::Choice(_) | Kind::Registered(_) | Kind::Variant(_) => quoted(&self.words()),
            Kind::Text(what) => (*what).to_owned(),
            Kind::Either(words, other) => either(words, other.range()),
            Kind::List(item) | Kind::Named(item) => each(item),
            Kind::Tuple(kinds) => {
                let ranges: Vec<String> = kinds.iter().map(Kind::range).collect();
                format!("[{}]", ranges.join("; "))
            }
            Kind::Table(settings) => {
                let keys = settings.iter();
                let keys: Vec<String> = keys
                    .map(|key| format!("`{}`: {}", key.name, key.kind.range()))
                    .collect();
                keys.join("; ")
            }
            Kind::Name(what) => format!("the name of a {what}"),
            Kind::StepFunction(inner) => format!("{}, or steps over time", inner.range()),
        }
    }

    /// Allowed values as text for users.
    pub fn allowed(&self) -> String {
        let range = self.range();
        match self {
            Kind::Count { .. } => format!("a whole number, {range}"),
            Kind::Number { .. } => format!("a number, {range}"),
            Kind::Duration { .. } => format!("a time with its unit, {range}, such as \"250 ms\""),
            Kind::Bytes { .. } => format!("a size with its unit, {range}, such as \"64 KiB\""),
            Kind::Rate { .. } => format!("a rate with its unit, {range}, such as \"2 Mbit/s\""),
            Kind::Amount { .. } => {
                let example = self.example();
                format!("an amount, {range}, such as {example:?} or \"64 KiB\"")
            }
            Kind::Either(words, other) => either(words, other.allowed()),
            Kind::List(item) => format!("a list, each item {}", item.allowed()),
            Kind::StepFunction(inner) => {
                format!(
                    "{}, or {{ {STEPS} = [[\"0 s\", ...], ...] }}",
                    inner.allowed()
                )
            }
            Kind::Tuple(kinds) => {
                let items: Vec<String> = kinds.iter().map(Kind::allowed).collect();
                format!("a list of {}: {}", kinds.len(), items.join("; "))
            }
            Kind::Table(settings) => {
                let keys: Vec<&str> = settings.iter().map(|key| key.name).collect();
                format!("a table of {}", keys.join(", "))
            }
            Kind::Named(item) => format!("a table of names, each with {}", item.allowed()),
            Kind::Variant(variants) => {
                let forms: Vec<String> = variants().iter().map(Variant::form).collect();
                forms.join(", ")
            }
            Kind::Flag | Kind::Choice(_) | Kind::Registered(_) | Kind::Text(_) | Kind::Name(_) => {
                range
            }
        }
    }

    /// Accepted words.
    pub fn words(&self) -> Vec<String> {
        let names = |words: &[Choice]| words.iter().map(|word| word.name.to_owned()).collect();
        match self {
            Kind::Flag => vec!["true".to_owned(), "false".to_owned()],
            Kind::Choice(words) => names(words),
            Kind::Registered(words) => names(&words()),
            Kind::Either(words, other) => {
                let mut all: Vec<String> = names(words);
                all.extend(other.words());
                all
            }
            Kind::Variant(variants) => {
                let variants = variants();
                variants.iter().map(|known| known.name.to_owned()).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Result of an expression; `None` if the text is no valid expression.
fn computed(text: &str) -> Option<Datum> {
    match constant(text).ok()?.show().ok()? {
        Shown::Whole(number) => u64::try_from(number).ok().map(Datum::Whole),
        Shown::Real(number) => Some(Datum::Real(number)),
        Shown::Text(_) => None,
    }
}

/// Description of alternatives: one of these words, or another allowed value.
fn either(words: &[Choice], other: String) -> String {
    let words: Vec<String> = words.iter().map(|word| word.name.to_owned()).collect();
    format!("{}, or {other}", quoted(&words))
}

/// Description of the range of each item of a list.
fn each(item: &Kind) -> String {
    let range = item.range();
    match item {
        Kind::Choice(_) | Kind::Registered(_) | Kind::Variant(_) => format!("each one of {range}"),
        Kind::Table(_) => format!("each a table of {range}"),
        Kind::Tuple(_) => format!("each a list {range}"),
        _ => format!("each {range}"),
    }
}

fn quoted(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    words.join(", ")
}

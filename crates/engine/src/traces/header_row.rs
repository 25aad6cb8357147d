//! Header row of a trace: the titles of its columns, which may contain a unit, as in `time
//! (ms),rate_mbps`.
//!
//! If a number were read in another unit than that of its title, the world would silently be wrong.
//! Therefore a title that is not fully understood is an error.

/// Quantity of the values in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Times, in seconds by default.
    Time,
    /// Rates, in bits per second by default.
    Rate,
    /// Sizes, in bytes by default.
    Size,
    /// Shares from 0 to 1, without a unit.
    Share,
    /// Numbers without a unit.
    Number,
}

/// A column that a trace may have.
#[derive(Debug)]
pub struct TraceColumn {
    /// Quantity of the values in the column.
    pub quantity: Quantity,
    /// Words that the title of the column may contain in addition to a unit, separated by spaces.
    pub names: &'static str,
}

/// Column of times.
pub const TIME: TraceColumn = TraceColumn {
    quantity: Quantity::Time,
    names: "time t at timestamp ts when times elapsed relative rel offset since from the start \
            begin beginning sent send sending arrival in of",
};

/// Column of the rates of a link.
pub const RATE: TraceColumn = TraceColumn {
    quantity: Quantity::Rate,
    names: "rate throughput bandwidth capacity bitrate speed value goodput datarate data bit bw \
            tput link available measured mean average avg downlink uplink download upload dl ul \
            down up forward backward in of the",
};

/// Column of the delays of a link.
pub const DELAY: TraceColumn = TraceColumn {
    quantity: Quantity::Time,
    names: "delay latency owd value one way oneway propagation link measured mean average avg \
            downlink uplink dl ul forward backward in of the",
};

/// Column of shares, such as loss probabilities.
pub const SHARE: TraceColumn = TraceColumn {
    quantity: Quantity::Share,
    names: "loss probability share ratio fraction rate value losses lost packet packets plr prob \
            p drop error measured mean average avg forward backward of the",
};

/// Column of the attenuations of a channel, in dB.
pub const ATTENUATION: TraceColumn = TraceColumn {
    quantity: Quantity::Number,
    names: "attenuation fade fading depth rain excess db total value measured mean link path of the",
};

/// Column of message sizes.
pub const SIZE: TraceColumn = TraceColumn {
    quantity: Quantity::Size,
    names: "size length payload message value len sizes msg packet pkt frame data in of the",
};

/// Column of the streams of messages.
pub const STREAM: TraceColumn = TraceColumn {
    quantity: Quantity::Number,
    names: "stream sid id identifier number no nr",
};

/// Spellings of time units in titles, each with the spelling in specs.
const TIMES: &[(&[&str], &str)] = &[
    (&["s", "sec", "secs", "second", "seconds"], " s"),
    (
        &[
            "ms",
            "msec",
            "msecs",
            "millis",
            "millisec",
            "millisecs",
            "millisecond",
            "milliseconds",
        ],
        " ms",
    ),
    (
        &[
            "us",
            "usec",
            "usecs",
            "micros",
            "microsec",
            "microsecs",
            "microsecond",
            "microseconds",
        ],
        " us",
    ),
    (
        &[
            "ns",
            "nsec",
            "nsecs",
            "nanos",
            "nanosec",
            "nanosecs",
            "nanosecond",
            "nanoseconds",
        ],
        " ns",
    ),
    (&["min", "mins", "minute", "minutes"], " min"),
    (&["h", "hr", "hrs", "hour", "hours"], " h"),
];

/// Prefixes of rate units in titles, each with the unit in specs.
const RATES: &[(&[&str], &str)] = &[
    (&[""], " bit/s"),
    (&["k", "kilo"], " kbit/s"),
    (&["m", "mega"], " Mbit/s"),
    (&["g", "giga"], " Gbit/s"),
];

/// Prefixes of size units in titles, each with the unit in specs.
const SIZES: &[(&[&str], &str)] = &[
    (&[""], " B"),
    (&["k", "kilo"], " kB"),
    (&["m", "mega"], " MB"),
    (&["g", "giga"], " GB"),
    (&["ki", "kibi"], " KiB"),
    (&["mi", "mebi"], " MiB"),
    (&["gi", "gibi"], " GiB"),
];

/// Prefixes of units that specs do not support.
const OTHERS: &[&str] = &["t", "tera", "ti", "tebi", "p", "peta"];

/// Words that scale a number, and therefore must not be ignored as part of a name.
const FACTORS: &[&str] = &[
    "x",
    "ten",
    "tens",
    "hundred",
    "hundreds",
    "thousand",
    "thousands",
    "million",
    "millions",
    "billion",
    "billions",
    "kilo",
    "mega",
    "giga",
    "tera",
    "milli",
    "micro",
    "nano",
    "log",
    "log2",
    "log10",
    "ln",
    "inverse",
];

/// Units that are also short words, and count as units only at the end of a title.
const SHORT: &[&str] = &["s", "h", "b", "min", "bit", "bits"];

/// A unit found in a title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// A unit that specs support.
    Is(Quantity, &'static str),
    /// Bits without a time. In the title of a rate they mean bits per second; in the title of a
    /// size they are an error, because sizes are in bytes.
    Bits(&'static str),
    /// `kb` in lower case, which means kilobytes for a size but is ambiguous for a rate.
    Unclear(&'static str),
    /// Bytes per second.
    ByteRate,
    /// A unit that specs do not support.
    Foreign,
}

/// Unit that a word such as `Mbit` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    Bits,
    Bytes,
    /// Bits or bytes: a lower-case `b`.
    Either,
}

impl Quantity {
    /// Unit of a plain number of this quantity, if no title specifies another.
    pub fn without(self) -> &'static str {
        match self {
            Quantity::Time => " s",
            Quantity::Rate => " bit/s",
            Quantity::Size => " B",
            Quantity::Share | Quantity::Number => "",
        }
    }

    fn units(self) -> &'static [(&'static [&'static str], &'static str)] {
        match self {
            Quantity::Time => TIMES,
            Quantity::Rate => RATES,
            Quantity::Size => SIZES,
            Quantity::Share | Quantity::Number => &[],
        }
    }

    fn allowed(self) -> String {
        let units: Vec<&str> = self.units().iter().map(|(_, unit)| unit.trim()).collect();
        match self {
            Quantity::Share => "none, shares are from 0 to 1".to_owned(),
            Quantity::Number => "none".to_owned(),
            _ => units.join(", "),
        }
    }
}

impl TraceColumn {
    /// Unit of plain numbers in this column, according to its title.
    ///
    /// # Errors
    /// The title is unknown: the message has the title, and the allowed words and units.
    pub fn unit(&self, title: &str) -> Result<&'static str, String> {
        let fault = match self.read(&tokens(title)) {
            Ok(unit) => return Ok(unit),
            Err(fault) => fault,
        };
        let split = tokens(&camel(title));
        self.read(&split).map_err(|_| {
            let names: Vec<&str> = self.names.split(' ').take(6).collect();
            let names = names.join(", ");
            let mut allowed = self.quantity.allowed();
            if allowed != "none" {
                allowed = format!("units: {allowed}");
            }
            match self.quantity {
                Quantity::Number => format!("found the title {title:?}{fault}; allowed: {names}"),
                _ => format!(
                    "found the title {title:?}{fault}; a title is a name ({names}), with or without a unit; allowed {allowed}"
                ),
            }
        })
    }

    /// Returns the unit of a title, or the reason why the title is rejected.
    fn read(&self, tokens: &[String]) -> Result<&'static str, &'static str> {
        let mut unit: Option<Unit> = None;
        let mut at = 0;
        let mut rest: Vec<&str> = Vec::new();
        let mut known = true;
        while at < tokens.len() {
            match unit_at(&tokens[at..]) {
                Some((found, length)) => {
                    let number = |at: usize| tokens.get(at).is_some_and(|it| is_number(it));
                    if number(at + length) || at.checked_sub(1).is_some_and(number) {
                        return Err(", with a number next to the unit");
                    }
                    if unit.is_some_and(|it| it != found) {
                        return Err(", with two units");
                    }
                    unit = Some(found);
                    at += length;
                }
                None => {
                    rest.push(&tokens[at]);
                    at += 1;
                }
            }
        }
        for word in rest {
            let lower = word.to_lowercase();
            if FACTORS.contains(&lower.as_str()) || word == "/" || word == "?" {
                return Err("");
            }
            known &= self.names.split(' ').any(|name| name == lower);
        }
        match (unit, self.quantity) {
            (None, quantity) if known => Ok(quantity.without()),
            (Some(Unit::Is(of, unit)), quantity) if of == quantity => Ok(unit),
            (Some(Unit::Bits(prefix)), Quantity::Rate) => spelled(RATES, prefix).ok_or(""),
            (Some(Unit::Unclear(prefix)), Quantity::Size) => spelled(SIZES, prefix).ok_or(""),
            (Some(Unit::ByteRate | Unit::Is(Quantity::Size, _)), Quantity::Rate) => {
                Err(", which is in bytes")
            }
            (Some(Unit::Bits(_)), Quantity::Size) => Err(", which is in bits"),
            _ => Err(""),
        }
    }
}

fn is_number(token: &str) -> bool {
    token.chars().all(|c| c.is_ascii_digit())
}

/// Splits a title into words. `/` and `per` become `/`, and a character that is not allowed in
/// titles becomes `?`.
fn tokens(title: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut open = false;
    for c in title.chars() {
        let c = if matches!(c, '\u{b5}' | '\u{3bc}') {
            'u'
        } else {
            c
        };
        if c.is_alphanumeric() {
            match all.last_mut().filter(|_| open) {
                Some(word) => word.push(c),
                None => all.push(c.to_string()),
            }
            open = true;
            continue;
        }
        open = false;
        match c {
            '/' | '%' => all.push(c.to_string()),
            ' ' | '\t' | '_' | '-' | '.' | ',' | ':' | ';' | '(' | ')' | '[' | ']' | '"' | '\''
            | '#' => {}
            _ => all.push("?".to_owned()),
        }
    }
    let per = |it: String| {
        if it.eq_ignore_ascii_case("per") {
            "/".to_owned()
        } else {
            it
        }
    };
    all.into_iter().map(per).collect()
}

/// Inserts a space before each capital that follows a lower-case letter: `rateMbps` becomes `rate
/// Mbps`.
fn camel(title: &str) -> String {
    let mut text = String::with_capacity(title.len() + 4);
    let mut small = false;
    for c in title.chars() {
        if small && c.is_uppercase() {
            text.push(' ');
        }
        small = c.is_lowercase();
        text.push(c);
    }
    text
}

fn spelled(units: &[(&[&str], &'static str)], prefix: &str) -> Option<&'static str> {
    let mut units = units.iter();
    let found = units.find(|(spellings, _)| spellings.contains(&prefix));
    found.map(|(_, unit)| *unit)
}

/// Unit at the start of `tokens`, and the number of tokens of which it consists.
fn unit_at(tokens: &[String]) -> Option<(Unit, usize)> {
    let word = |at: usize| tokens.get(at).map_or("", String::as_str);
    let is_second = |at: usize| spelled(TIMES, &word(at).to_lowercase()) == Some(" s");
    // A prefix as a separate word, as in "mega bits".
    let lower = word(0).to_lowercase();
    let apart = ["k", "kilo", "m", "mega", "g", "giga"].contains(&lower.as_str());
    let joined = match apart {
        true => format!("{}{}", word(0), word(1)),
        false => String::new(),
    };
    for (text, length) in [(joined.as_str(), 2), (word(0), 1)] {
        let Some((prefix, counts)) = counted(text) else {
            continue;
        };
        let each_second = match word(length) {
            "/" if is_second(length + 1) => 2,
            "/" => return Some((Unit::Foreign, length + 1)),
            _ if is_second(length) && counts != Counts::Bytes => 1,
            _ => 0,
        };
        if each_second > 0 {
            return Some((rate(prefix, counts), length + each_second));
        }
        let rest = &tokens[length..];
        if SHORT.contains(&text.to_lowercase().as_str()) && !rest.is_empty() {
            return None;
        }
        return Some((plain(prefix, counts, text), length));
    }
    if SHORT.contains(&lower.as_str()) && tokens.len() > 1 {
        return None;
    }
    if let Some(unit) = spelled(TIMES, &lower) {
        return Some((Unit::Is(Quantity::Time, unit), 1));
    }
    if let Some((text, end)) = word(0).split_at_checked(word(0).len().saturating_sub(2))
        && end.eq_ignore_ascii_case("ps")
        && let Some((prefix, counts)) = counted(text)
    {
        return Some((rate(prefix, counts), 1));
    }
    matches!(
        lower.as_str(),
        "%" | "percent" | "pct" | "percentage" | "permille" | "pps"
    )
    .then_some((Unit::Foreign, 1))
}

/// Prefix of a word for bits or bytes, and the unit that the word counts.
fn counted(word: &str) -> Option<(&'static str, Counts)> {
    let lower = word.to_lowercase();
    if lower.len() != word.len() {
        return None;
    }
    let endings = [
        ("bits", Counts::Bits),
        ("bit", Counts::Bits),
        ("bytes", Counts::Bytes),
        ("byte", Counts::Bytes),
        ("octets", Counts::Bytes),
        ("octet", Counts::Bytes),
        ("b", Counts::Either),
    ];
    let (prefix, counts) = endings
        .iter()
        .find_map(|(ending, counts)| Some((lower.strip_suffix(ending)?, *counts)))?;
    let mut known = SIZES.iter().flat_map(|(spellings, _)| *spellings);
    let mut all = known.by_ref().chain(OTHERS);
    let prefix = *all.find(|it| **it == prefix)?;
    let counts = match counts {
        Counts::Either if word.ends_with('B') => Counts::Bytes,
        counts => counts,
    };
    Some((prefix, counts))
}

/// Unit of bits or bytes per second.
fn rate(prefix: &str, counts: Counts) -> Unit {
    match (counts, spelled(RATES, prefix)) {
        (Counts::Bytes, _) => Unit::ByteRate,
        (_, Some(unit)) => Unit::Is(Quantity::Rate, unit),
        (_, None) => Unit::Foreign,
    }
}

/// Unit of bits or bytes without a time.
fn plain(prefix: &'static str, counts: Counts, word: &str) -> Unit {
    match (counts, spelled(SIZES, prefix)) {
        (Counts::Bits, Some(_)) => Unit::Bits(prefix),
        (Counts::Bytes, Some(unit)) => Unit::Is(Quantity::Size, unit),
        (Counts::Either, Some(_)) if word.chars().all(char::is_lowercase) && word.len() > 1 => {
            Unit::Unclear(prefix)
        }
        _ => Unit::Foreign,
    }
}

#[cfg(test)]
mod tests;

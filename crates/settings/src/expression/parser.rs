//! Parser of expressions, which evaluates an expression while it parses it.

use std::cmp::Ordering;
use std::ops::Range;

use super::ratio::Ratio;
use super::value::{self, Dimension, DimensionedValue, unit_names};
use super::{ExpressionError, Lookup};

/// Maximum nesting depth of parentheses and signs.
const MAX_DEPTH: usize = 64;

/// Names of the functions.
const FUNCTIONS: [&str; 6] = ["min", "max", "round", "floor", "ceil", "sqrt"];

/// Parser that reads a text from left to right.
pub(super) struct Parser<'t, 'l, 'f> {
    text: &'t str,
    at: usize,
    depth: usize,
    lookup: &'l mut Lookup<'f>,
}

impl<'t, 'l, 'f> Parser<'t, 'l, 'f> {
    pub fn new(text: &'t str, lookup: &'l mut Lookup<'f>) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            lookup,
        }
    }

    /// Evaluates the whole text.
    pub fn whole(mut self) -> Result<DimensionedValue, ExpressionError> {
        let value = self.sum()?;
        match self.peek() {
            None => Ok(value),
            Some(_) => Err(self.unexpected("an operator (+ - * /) or the end")),
        }
    }

    /// Skips blanks and returns the next character.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    /// Consumes a character if it is the next one; returns whether it was.
    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    /// Consumes all following characters of a class.
    fn word(&mut self, is_part: fn(char) -> bool) -> &'t str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn unexpected(&self, wanted: &str) -> ExpressionError {
        let rest = &self.text[self.at..];
        let found = match rest.chars().next() {
            Some(found) if found.is_alphanumeric() => {
                let word = rest.split(|c: char| !c.is_alphanumeric()).next();
                word.unwrap_or_default().to_owned()
            }
            Some(found) => found.to_string(),
            None => {
                let message = format!("found the end of {:?}; expected {wanted}", self.text);
                return ExpressionError::new(self.at..self.at, message);
            }
        };
        let at = self.at..self.at + found.len();
        let message = format!("found `{found}` in {:?}; expected {wanted}", self.text);
        ExpressionError::new(at, message)
    }

    fn sum(&mut self) -> Result<DimensionedValue, ExpressionError> {
        let begin = self.at;
        let mut left = self.product()?;
        loop {
            let sign = match self.peek() {
                Some(sign @ ('+' | '-')) => sign,
                _ => return Ok(left),
            };
            let at = self.at..self.at + 1;
            self.at += 1;
            let right = self.product()?;
            same_kind(&format!("`{sign}`"), &left, &right, &at)?;
            let number = match sign {
                '+' => left.number.plus(right.number),
                _ => right.number.negative().and_then(|it| left.number.plus(it)),
            };
            left = self.checked(number, left.dimension, begin)?;
        }
    }

    fn product(&mut self) -> Result<DimensionedValue, ExpressionError> {
        self.peek();
        let begin = self.at;
        let mut left = self.factor()?;
        loop {
            let divides = match self.peek() {
                Some('*') => false,
                Some('/') => true,
                _ => return Ok(left),
            };
            self.at += 1;
            self.peek();
            let from = self.at;
            let mut right = self.factor()?;
            if divides {
                if right.number.is_zero() {
                    let message = format!("found a division by 0 in {:?}", self.text);
                    return Err(ExpressionError::new(from..self.at, message));
                }
                right.dimension = right.dimension.map(|power| -power);
            }
            let number = match divides {
                true => right.number.inverse().and_then(|it| left.number.times(it)),
                false => left.number.times(right.number),
            };
            let dimension = product_of(left.dimension, right.dimension);
            let dimension = dimension.ok_or_else(|| self.too_large(begin))?;
            left = self.checked(number, dimension, begin)?;
        }
    }

    fn factor(&mut self) -> Result<DimensionedValue, ExpressionError> {
        self.peek();
        let begin = self.at;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message =
                format!("found more than {MAX_DEPTH} parentheses or signs within one another");
            return Err(ExpressionError::new(begin..self.at + 1, message));
        }
        let value = match self.peek() {
            Some('-') => {
                self.at += 1;
                let value = self.factor()?;
                self.checked(value.number.negative(), value.dimension, begin)
            }
            Some('(') => {
                self.at += 1;
                let value = self.sum()?;
                self.close()?;
                Ok(value)
            }
            Some('$') => self.parameter(),
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() => self.function(),
            _ => Err(self.unexpected("a number, `$` and a parameter's name, a function or `(`")),
        };
        self.depth -= 1;
        value
    }

    fn close(&mut self) -> Result<(), ExpressionError> {
        match self.take(')') {
            true => Ok(()),
            false => {
                self.peek();
                Err(self.unexpected("an operator (+ - * /) or `)`"))
            }
        }
    }

    fn parameter(&mut self) -> Result<DimensionedValue, ExpressionError> {
        let begin = self.at;
        self.at += 1;
        let name = self.word(|c| c.is_alphanumeric() || c == '_');
        if name.is_empty() {
            return Err(self.unexpected("a parameter's name after `$` (write `$$` for a dollar)"));
        }
        (self.lookup)(name, begin..self.at)
    }

    fn number(&mut self) -> Result<DimensionedValue, ExpressionError> {
        let begin = self.at;
        let rest = &self.text[begin..];
        let bytes = rest.as_bytes();
        let digits = |from: usize| {
            let end = bytes[from..].iter();
            from + end
                .take_while(|b| b.is_ascii_digit() || **b == b'_' || **b == b'.')
                .count()
        };
        let mut end = digits(0);
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let signed = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
            let after = end + 1 + signed;
            if bytes.get(after).is_some_and(u8::is_ascii_digit) {
                end = digits(after);
            }
        }
        self.at += end;
        let text = &rest[..end];
        let Some(number) = Ratio::decimal(text) else {
            let message = format!("found {text}, which is no number or one too large");
            return Err(ExpressionError::new(begin..self.at, message));
        };
        match self.unit()? {
            None => Ok(DimensionedValue::number(number)),
            Some(unit) => {
                let value = DimensionedValue::with_unit(number, unit);
                value.ok_or_else(|| self.too_large(begin))
            }
        }
    }

    /// The unit after a number, if there is one: `Mbit/s`, `ms`.
    fn unit(&mut self) -> Result<Option<&'t str>, ExpressionError> {
        if !self.peek().is_some_and(char::is_alphabetic) {
            return Ok(None);
        }
        let begin = self.at;
        self.word(char::is_alphanumeric);
        // `bit/s` is one unit. In `5 B/s` too, the `s` is part of the unit, and not a value by
        // which the size is divided.
        let rest = &self.text[self.at..];
        if let Some(after) = rest.strip_prefix("/s")
            && !after.starts_with(char::is_alphanumeric)
        {
            self.at += 2;
        }
        let found = &self.text[begin..self.at];
        if unit_names().any(|name| name == found) {
            return Ok(Some(found));
        }
        let message = format!("found the unit `{found}` in {:?}", self.text);
        Err(ExpressionError::new(begin..self.at, message).among(found, unit_names()))
    }

    fn function(&mut self) -> Result<DimensionedValue, ExpressionError> {
        let begin = self.at;
        let name = self.word(|c| c.is_alphanumeric() || c == '_');
        let at = begin..self.at;
        if !FUNCTIONS.contains(&name) {
            let message = format!(
                "found `{name}` in {:?}; a parameter is written `$name`, and a function is one of those allowed",
                self.text
            );
            return Err(ExpressionError::new(at, message).among(name, FUNCTIONS));
        }
        if !self.take('(') {
            return Err(self.unexpected(&format!("`(` after {name}")));
        }
        let mut values = vec![self.sum()?];
        while self.take(',') {
            values.push(self.sum()?);
        }
        self.close()?;
        self.call(name, &values, at)
    }

    fn call(
        &self,
        name: &str,
        values: &[DimensionedValue],
        at: Range<usize>,
    ) -> Result<DimensionedValue, ExpressionError> {
        let to_whole: fn(Ratio) -> i128 = match name {
            "round" => Ratio::round,
            "floor" => Ratio::floor,
            "ceil" => Ratio::ceil,
            "sqrt" => return self.root(one(name, values, &at)?, at),
            _ => return self.extreme(name, values, at),
        };
        let value = one(name, values, &at)?;
        let rounded = value.rounded(to_whole);
        rounded.ok_or_else(|| self.too_large(at.start))
    }

    /// Square root, with the precision of a 64-bit float.
    fn root(
        &self,
        value: &DimensionedValue,
        at: Range<usize>,
    ) -> Result<DimensionedValue, ExpressionError> {
        let even = value.dimension.iter().all(|power| power % 2 == 0);
        if value.number.is_negative() || !even {
            let message = match even {
                true => "found a number below 0, which has no square root".to_owned(),
                false => format!(
                    "found {}, of which the square root has no unit",
                    value.kind()
                ),
            };
            return Err(ExpressionError::new(at, message));
        }
        let root = Ratio::decimal(&value.number.real().sqrt().to_string());
        self.checked(root, value.dimension.map(|power| power / 2), at.start)
    }

    /// Minimum or maximum of values of the same kind.
    fn extreme(
        &self,
        name: &str,
        values: &[DimensionedValue],
        at: Range<usize>,
    ) -> Result<DimensionedValue, ExpressionError> {
        let mut values = values.iter();
        let mut chosen = *values.next().ok_or_else(|| self.too_large(at.start))?;
        let wanted = match name {
            "min" => Ordering::Less,
            _ => Ordering::Greater,
        };
        for value in values {
            same_kind(name, &chosen, value, &at)?;
            let order = value.number.compare(chosen.number);
            if order.ok_or_else(|| self.too_large(at.start))? == wanted {
                chosen = *value;
            }
        }
        Ok(chosen)
    }

    fn checked(
        &self,
        number: Option<Ratio>,
        dimension: Dimension,
        begin: usize,
    ) -> Result<DimensionedValue, ExpressionError> {
        let number = number.ok_or_else(|| self.too_large(begin))?;
        Ok(DimensionedValue { number, dimension })
    }

    fn too_large(&self, begin: usize) -> ExpressionError {
        let message = format!(
            "found a number in {:?} that is too large to compute with",
            self.text
        );
        ExpressionError::new(begin..self.at, message)
    }
}

/// Returns the argument of a function that takes one, or an error if the number of arguments
/// differs.
fn one<'v>(
    name: &str,
    values: &'v [DimensionedValue],
    at: &Range<usize>,
) -> Result<&'v DimensionedValue, ExpressionError> {
    match values {
        [value] => Ok(value),
        _ => {
            let message = format!("found {} values; {name} takes one", values.len());
            Err(ExpressionError::new(at.clone(), message))
        }
    }
}

fn same_kind(
    of: &str,
    left: &DimensionedValue,
    right: &DimensionedValue,
    at: &Range<usize>,
) -> Result<(), ExpressionError> {
    if left.dimension == right.dimension {
        return Ok(());
    }
    let [left, right] = [left, right].map(|value| value::name(value.dimension));
    let message = format!("found {left} and {right}; {of} takes two values of one kind");
    Err(ExpressionError::new(at.clone(), message))
}

fn product_of(left: Dimension, right: Dimension) -> Option<Dimension> {
    let mut all = left;
    for (power, other) in all.iter_mut().zip(right) {
        *power = power.checked_add(other)?;
    }
    Some(all)
}

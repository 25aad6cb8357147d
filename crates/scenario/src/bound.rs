//! Bound of a claim, with which a measure is compared: a plain number, a quantity with a unit, or
//! an expression over the values at a point.

use anabranch_settings::expression::{self, DimensionedValue as Quantity, ExpressionError, Shown};

use crate::claim::Bound;
use crate::quantity::{Capacity, Rate, Size, TimeSpan};
use crate::spec::{Experiment, Spec, Sweep};
use crate::unit::factor;
use crate::value::{Point, SweepValue};

/// Maximum depth of parameters that refer to other parameters.
const MAX_DEPTH: usize = 32;

impl Bound {
    /// Value of the bound in the given unit, at a point of an experiment. A name in the expression
    /// stands for the value of a parameter, or for the x of a sweep, at this point.
    ///
    /// # Errors
    /// The expression is invalid, or its result has the wrong kind.
    pub fn at(
        &self,
        spec: &Spec,
        experiment: Option<&Experiment>,
        point: &Point,
        unit: &str,
    ) -> Result<f64, String> {
        let text = match self {
            Bound::Number(number) => return Ok(*number),
            Bound::Text(text) => text,
        };
        let names = Names {
            spec,
            experiment,
            point,
        };
        let value = names.evaluate(text, 0).map_err(|fault| fault.message)?;
        let shown = value
            .show()
            .map_err(|message| format!("found {text:?}: {message}"))?;
        in_unit(&shown, unit).ok_or_else(|| {
            let (kind, unit) = (value.kind(), named(unit));
            format!("found {text:?}, which is {kind}; the measure is in {unit}")
        })
    }
}

fn named(unit: &str) -> String {
    match unit {
        "1" | "" => "plain numbers".to_owned(),
        unit => format!("{unit:?}"),
    }
}

/// Converts a value to the unit of a measure. A number without a unit is already in this unit.
fn in_unit(shown: &Shown, unit: &str) -> Option<f64> {
    let text = match shown {
        Shown::Whole(number) => return Some(*number as f64),
        Shown::Real(number) => return Some(*number),
        Shown::Text(text) => text,
    };
    let convert = |number: f64, own: &str| Some(number * factor(own, unit)?);
    if let Ok(TimeSpan(nanos)) = text.parse() {
        return convert(nanos as f64 / 1e9, "s");
    }
    if let Ok(Rate(bits)) = text.parse() {
        return convert(bits as f64, "bit/s");
    }
    if let Ok(Size(bytes)) = text.parse() {
        return convert(bytes as f64, "bytes");
    }
    match text.parse() {
        Ok(Capacity::Packets(packets)) => convert(packets as f64, "packets"),
        Ok(Capacity::Segments(segments)) => convert(segments as f64, "segments"),
        Ok(Capacity::Bytes(bytes)) => convert(bytes as f64, "bytes"),
        Err(_) => None,
    }
}

/// Resolves the names in the expression of a bound.
struct Names<'a> {
    spec: &'a Spec,
    experiment: Option<&'a Experiment>,
    point: &'a Point,
}

impl Names<'_> {
    fn evaluate(&self, text: &str, depth: usize) -> Result<Quantity, ExpressionError> {
        expression::evaluate(text, &mut |name, at| {
            if depth >= MAX_DEPTH {
                let message = format!("found ${name} more than {MAX_DEPTH} parameters deep");
                return Err(ExpressionError::new(at, message));
            }
            self.value(name, depth + 1)
                .unwrap_or_else(|| Err(ExpressionError::new(at, self.unknown(name))))
        })
    }

    /// Value of a name; `None` if the name is unknown.
    fn value(&self, name: &str, depth: usize) -> Option<Result<Quantity, ExpressionError>> {
        let sweeps = || self.experiment.iter().flat_map(|it| &it.sweeps);
        let x_of = |sweep: &Sweep| {
            let x_name = sweep.x_name()?;
            let found = self.point.iter().find(|(known, _)| known == x_name);
            found.map(|(_, x)| x)
        };
        let set = sweeps().find_map(|sweep| {
            let x = x_of(sweep)?;
            let point = sweep.points.iter().find(|point| point.x.is_same(x))?;
            point.parameters.get(name)
        });
        if let Some(set) = set {
            return self.json(set, depth);
        }
        let by_parameter = sweeps().find(|sweep| sweep.parameter.as_deref() == Some(name));
        let by_name = || {
            let found = self.point.iter().find(|(known, _)| known == name);
            found.map(|(_, x)| x)
        };
        if let Some(x) = by_parameter.and_then(x_of).or_else(by_name) {
            return Some(match x {
                SweepValue::Text(text) => self.evaluate(text, depth),
                SweepValue::Integer(number) => real(*number as f64),
                SweepValue::Float(number) => real(*number),
                SweepValue::Boolean(_) => Err(no_number(&x.to_string())),
            });
        }
        let own = self.experiment.and_then(|it| it.parameters.0.get(name));
        self.json(own.or_else(|| self.spec.parameters.0.get(name))?, depth)
    }

    fn json(
        &self,
        value: &serde_json::Value,
        depth: usize,
    ) -> Option<Result<Quantity, ExpressionError>> {
        Some(match value {
            serde_json::Value::String(text) => self.evaluate(text, depth),
            serde_json::Value::Number(number) => real(number.as_f64()?),
            other => Err(no_number(&other.to_string())),
        })
    }

    fn unknown(&self, name: &str) -> String {
        let sweeps = self.point.iter().map(|(name, _)| name.as_str());
        let parameters = self.spec.parameters.0.keys().map(String::as_str);
        let known: Vec<String> = sweeps
            .chain(parameters)
            .map(|name| format!("${name}"))
            .collect();
        let near = crate::suggest::nearest(&format!("${name}"), known.iter().map(String::as_str));
        let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        format!(
            "found `${name}`, but no sweep and no parameter has this name; allowed: {}{hint}",
            known.join(", ")
        )
    }
}

fn real(number: f64) -> Result<Quantity, ExpressionError> {
    Quantity::real(number).ok_or_else(|| no_number(&number.to_string()))
}

fn no_number(found: &str) -> ExpressionError {
    ExpressionError::new(
        0..0,
        format!("found {found}; expected a number or a quantity"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::SpecNode;

    const SPEC: &str = r#"anabranch = 1
name = "x"
node = []
flow = []
world = { duration = "1 s" }
parameters = { loss = 0.1, rate = "10 Mbit/s", rtt = "100 ms", bdp = "$rate * $rtt", buffer = "1 KiB" }

[[experiment]]
id = "e"
sweep = [
    { name = "p", parameter = "loss", values = [0.1, 0.2] },
    { name = "buffer", points = [{ x = 64, buffer = "64 KiB" }] },
]
"#;

    #[test]
    fn an_expression_is_of_the_point() {
        let spec: Spec = crate::decode::decode(&SpecNode::parse(SPEC).unwrap(), "").unwrap();
        let point = vec![
            ("p".to_owned(), SweepValue::Float(0.2)),
            ("buffer".to_owned(), SweepValue::Integer(64)),
        ];
        let at = |text: &str, unit: &str| {
            Bound::Text(text.to_owned()).at(&spec, spec.experiments.first(), &point, unit)
        };
        assert_eq!(at("$rate * (1 - $loss)", "bit/s"), Ok(8e6));
        assert_eq!(at("$rate * (1 - $p)", "Mbit/s"), Ok(8.0));
        assert_eq!(at("$bdp", "bytes"), Ok(125_000.0));
        // A value that the point sets takes precedence over the x of the point.
        assert_eq!(at("$buffer / 2", "bytes"), Ok(32_768.0));
        assert_eq!(at("96.5 Mbit/s", "bit/s"), Ok(96.5e6));
        assert_eq!(at("sqrt($loss * 0.8)", "1"), Ok(0.4));
        assert_eq!(Bound::Number(3.0).at(&spec, None, &point, "s"), Ok(3.0));
        let wrong = at("$rate", "s").unwrap_err();
        assert_eq!(
            wrong,
            "found \"$rate\", which is a rate; the measure is in \"s\""
        );
        let unknown = at("$los", "1").unwrap_err();
        assert!(unknown.ends_with("did you mean `$loss`?"), "{unknown}");
    }
}

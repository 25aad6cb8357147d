//! Matching of published values with measured ones. If a published value matches no measured one,
//! its row in the file has a name or an x that no point has.

use anabranch_scenario::suggest::nearest;

use crate::reference::Published;

/// Maximum number of names in a message; further ones are only counted.
const NAMED: usize = 8;

/// The reason why no point of a row has the x of a published value. `axes` contains the names and x
/// values of the row's points. `None` if the row has no points.
pub(super) fn reason(printed: &Published, axes: &[(String, String)]) -> Option<String> {
    let (x_name, _) = axes.first()?;
    let line = printed.line;
    if sorted(&printed.x_name) != sorted(x_name) {
        let hint = nearest(&printed.x_name, [x_name.as_str()]);
        let hint = hint.map_or(String::new(), |near| format!("; did you mean {near:?}?"));
        let several = match x_name.contains(", ") {
            true => format!(
                ", as {:?}; or `where` of the row chooses",
                axes.first().map_or("", |(_, x)| x)
            ),
            false => String::new(),
        };
        return Some(match (printed.x_name.is_empty(), x_name.is_empty()) {
            (_, true) => format!(
                "line {line}: x_name is {:?}, but the row has one value, and no sweep is left open",
                printed.x_name
            ),
            (true, _) => format!(
                "line {line}: x_name is missing; the row has values along {x_name:?}{several}"
            ),
            (false, _) => format!(
                "line {line}: x_name is {:?}; the row has values along {x_name:?}{several}{hint}",
                printed.x_name
            ),
        });
    }
    if axes.iter().any(|(name, x)| is_at(printed, name, x)) {
        let at = crate::unit::coordinates(x_name, &printed.x);
        return Some(format!(
            "line {line}: a line before it has a value at {at}, too; the row has one at each x"
        ));
    }
    let known: Vec<&str> = axes.iter().map(|(_, x)| x.as_str()).collect();
    let named = known.iter().take(NAMED).copied().collect::<Vec<_>>();
    let rest = match known.len() - named.len() {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    let split = if x_name.contains(", ") { "; " } else { ", " };
    Some(format!(
        "line {line}: x is {:?}; the row has values at {x_name} {}{rest}",
        printed.x,
        named.join(split)
    ))
}

/// Whether a value was published for this x. The names and values of several sweeps may be in any
/// order: `loss, policy` and `0.01, same`.
pub(super) fn is_at(printed: &Published, x_name: &str, x: &str) -> bool {
    if printed.x_name == x_name {
        return super::same_x(&printed.x, x) || same_all(&printed.x, x);
    }
    let pairs = |names: &str, values: &str| {
        let names: Vec<String> = names.split(',').map(|it| it.trim().to_owned()).collect();
        let values: Vec<String> = values.split(',').map(|it| it.trim().to_owned()).collect();
        let mut pairs: Vec<(String, String)> = names.into_iter().zip(values).collect();
        pairs.sort();
        pairs
    };
    let [one, other] = [pairs(&printed.x_name, &printed.x), pairs(x_name, x)];
    one.len() > 1
        && one.len() == other.len()
        && one
            .iter()
            .zip(&other)
            .all(|(one, other)| one.0 == other.0 && super::same_x(&one.1, &other.1))
}

/// Whether two lists of x values are permutations of each other.
fn same_all(left: &str, right: &str) -> bool {
    let [left, right] = [left, right].map(|it| it.split(',').map(str::trim).collect::<Vec<_>>());
    left.len() > 1
        && left.len() == right.len()
        && left
            .iter()
            .zip(&right)
            .all(|(left, right)| super::same_x(left, right))
}

/// Names of sweeps, sorted so that lists in different orders compare as equal.
fn sorted(names: &str) -> Vec<&str> {
    let mut names: Vec<&str> = names.split(',').map(str::trim).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::Reference;

    fn told(x_name: &str, x: &str, axes: &[(&str, &str)]) -> Option<String> {
        let mut reference = Reference::default();
        let text = format!("series,x_name,x,metric,value\ns,\"{x_name}\",\"{x}\",m,1\n");
        reference.read_published("mine.csv", &text).unwrap();
        let axes: Vec<(String, String)> = axes
            .iter()
            .map(|(name, x)| ((*name).to_owned(), (*x).to_owned()))
            .collect();
        reason(&reference.published[0], &axes)
    }

    #[test]
    fn a_name_or_an_x_that_no_point_has_is_reported() {
        let loss = [("loss", "0.001"), ("loss", "0.01")];
        assert_eq!(
            told("los", "0.01", &loss).as_deref(),
            Some(
                "line 2: x_name is \"los\"; the row has values along \"loss\"; did you mean \"loss\"?"
            )
        );
        assert_eq!(
            told("loss", "0.1", &loss).as_deref(),
            Some("line 2: x is \"0.1\"; the row has values at loss 0.001, 0.01")
        );
        assert_eq!(
            told("loss", "0.01", &[("policy, loss", "same, 0.01")]).as_deref(),
            Some(
                "line 2: x_name is \"loss\"; the row has values along \"policy, loss\", as \"same, 0.01\"; or `where` of the row chooses"
            )
        );
        assert_eq!(
            told("loss", "0.01", &[("", "")]).as_deref(),
            Some(
                "line 2: x_name is \"loss\", but the row has one value, and no sweep is left open"
            )
        );
        let twice = told("loss", "0.010", &loss).unwrap();
        assert!(
            twice.starts_with("line 2: a line before it has a value at loss 0.010"),
            "{twice}"
        );
        // Without points there is no reason.
        assert_eq!(told("los", "0.01", &[]), None);
    }

    #[test]
    fn two_sweeps_may_stand_in_any_order() {
        let printed = |x_name: &str, x: &str| {
            let mut reference = Reference::default();
            let text = format!("series,x_name,x,metric,value\ns,\"{x_name}\",\"{x}\",m,1\n");
            reference.read_published("mine.csv", &text).unwrap();
            reference.published[0].clone()
        };
        for (x_name, x, wanted) in [
            ("policy, loss", "same, 0.01", true),
            ("loss, policy", "0.010,same", true),
            ("policy, loss", "same, 0.02", false),
            ("policy", "same", false),
        ] {
            let found = is_at(&printed(x_name, x), "policy, loss", "same, 0.01");
            assert_eq!(found, wanted, "{x_name} {x}");
        }
    }
}

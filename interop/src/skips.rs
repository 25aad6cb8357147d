//! Cases that are known to fail, each with a reason (`skips.toml`). These cases are still run: if
//! such a case passes, its entry is stale, and the test fails.

use std::collections::BTreeMap;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    skip: Vec<Skip>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Skip {
    case: String,
    reason: String,
}

/// Map from the name of a case to the reason why it fails.
#[derive(Debug, Default)]
pub struct Skips(BTreeMap<String, String>);

impl Skips {
    /// Parses the text of `skips.toml`. Every case in it must be in `known`.
    ///
    /// # Errors
    ///
    /// The text is not TOML, a case is unknown or duplicated, or a reason is empty.
    pub fn read(text: &str, known: &[String]) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| format!("skips.toml: {error}"))?;
        let mut skips = BTreeMap::new();
        for Skip { case, reason } in file.skip {
            if !known.contains(&case) {
                return Err(format!("skips.toml: there is no case {case}"));
            }
            if reason.trim().len() < 20 {
                return Err(format!("skips.toml: {case}: the reason says nothing"));
            }
            if skips.insert(case.clone(), reason).is_some() {
                return Err(format!("skips.toml: {case} is there twice"));
            }
        }
        Ok(Self(skips))
    }

    /// The reason why this case is expected to fail; `None`: it should pass.
    pub fn reason(&self, case: &str) -> Option<&str> {
        self.0.get(case).map(String::as_str)
    }

    /// Evaluates the outcome of a case. If the case is listed, its failure is accepted, and its
    /// success is an error.
    ///
    /// # Errors
    ///
    /// The failure of a case that is not listed, or a message that the entry is stale.
    pub fn judge<T>(&self, case: &str, outcome: Result<T, String>) -> Result<Option<T>, String> {
        match (self.reason(case), outcome) {
            (None, outcome) => outcome.map(Some),
            (Some(_), Err(_)) => Ok(None),
            (Some(reason), Ok(_)) => Err(format!(
                "the skip is stale, the case passes; it says: {reason}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "[[skip]]\ncase = \"a\"\nreason = \"the peer does not know the chunk\"\n";

    #[test]
    fn a_skip_that_has_become_stale_fails() {
        let skips = Skips::read(ONE, &["a".into(), "b".into()]).unwrap();
        assert!(skips.judge("a", Ok(())).unwrap_err().contains("stale"));
        assert_eq!(skips.judge::<()>("a", Err("as known".into())), Ok(None));
        assert_eq!(skips.judge("b", Ok(1)), Ok(Some(1)));
        assert_eq!(skips.judge::<()>("b", Err("new".into())), Err("new".into()));
    }

    #[test]
    fn a_skip_of_no_case_or_without_a_reason_is_refused() {
        let known = ["a".to_owned()];
        assert!(Skips::read(ONE, &[]).unwrap_err().contains("no case a"));
        let twice = format!("{ONE}{ONE}");
        assert!(Skips::read(&twice, &known).unwrap_err().contains("twice"));
        let empty = ONE.replace("the peer does not know the chunk", "later");
        assert!(
            Skips::read(&empty, &known)
                .unwrap_err()
                .contains("says nothing")
        );
        assert!(Skips::read(&ONE.replace("reason", "why"), &known).is_err());
    }
}

//! Lists of links between satellites: the numbers of two on each line.

/// A list that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IslsError {
    /// A line that is no link.
    #[error("line {line}: found {found:?}; a line has the numbers of two satellites")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What it says.
        found: String,
    },
    /// A link to a satellite that is not there, or of one with itself.
    #[error(
        "line {line}: found the link {one} {other}; allowed: two of the satellites 0 to {last}"
    )]
    Number {
        /// Its number, from 1.
        line: usize,
        /// One end.
        one: usize,
        /// The other.
        other: usize,
        /// The greatest number of a satellite.
        last: usize,
    },
    /// A link that is there twice.
    #[error("line {line}: found the link {one} {other} a second time")]
    Twice {
        /// Its number, from 1.
        line: usize,
        /// One end.
        one: usize,
        /// The other.
        other: usize,
    },
}

/// Reads a list of links between `satellites`, each with the lower number first, in the order of
/// numbers. Empty lines and lines that begin with `#` count for nothing.
pub(crate) fn read(text: &str, satellites: usize) -> Result<Vec<[usize; 2]>, IslsError> {
    let mut all: Vec<[usize; 2]> = Vec::new();
    let mut known = std::collections::BTreeSet::new();
    for (line, found) in (1..).zip(text.lines()) {
        let found = found.trim();
        if found.is_empty() || found.starts_with('#') {
            continue;
        }
        let wrong = || IslsError::Line {
            line,
            found: found.to_owned(),
        };
        let mut numbers = found.split(|c: char| c == ',' || c.is_whitespace());
        let mut numbers = numbers.by_ref().filter(|it| !it.is_empty());
        let mut number = || numbers.next().and_then(|it| it.parse().ok());
        let (one, other): (usize, usize) =
            (number().ok_or_else(wrong)?, number().ok_or_else(wrong)?);
        if numbers.next().is_some() {
            return Err(wrong());
        }
        if one == other || one.max(other) >= satellites {
            let last = satellites.saturating_sub(1);
            return Err(IslsError::Number {
                line,
                one,
                other,
                last,
            });
        }
        let link = [one.min(other), one.max(other)];
        if !known.insert(link) {
            return Err(IslsError::Twice { line, one, other });
        }
        all.push(link);
    }
    all.sort_unstable();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read_and_checked() {
        let read = |text: &str| read(text, 4);
        assert_eq!(read("1 0\n# one more\n\n2,3\n"), Ok(vec![[0, 1], [2, 3]]));
        for (text, wanted) in [
            ("0 1\n0", "line 2: found \"0\""),
            ("0 1 2", "line 1: found \"0 1 2\""),
            ("0 4", "two of the satellites 0 to 3"),
            ("2 2", "two of the satellites"),
            ("0 1\n1 0", "a second time"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }
}

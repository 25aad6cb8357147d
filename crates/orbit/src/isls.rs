//! Lists of inter-satellite links: each line has the numbers of two satellites.

/// Error: a list of links is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IslsError {
    /// A line is no link.
    #[error("line {line}: found {found:?}; a line has the numbers of two satellites")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// Contents of the line.
        found: String,
    },
    /// A link ends at a satellite that does not exist, or connects a satellite to itself.
    #[error(
        "line {line}: found the link {one} {other}; allowed: two of the satellites 0 to {last}"
    )]
    Number {
        /// Line number, from 1.
        line: usize,
        /// Number of the satellite at one end.
        one: usize,
        /// Number of the satellite at the other end.
        other: usize,
        /// Largest number of a satellite.
        last: usize,
    },
    /// A link is listed twice.
    #[error("line {line}: found the link {one} {other} a second time")]
    Twice {
        /// Line number, from 1.
        line: usize,
        /// Number of the satellite at one end.
        one: usize,
        /// Number of the satellite at the other end.
        other: usize,
    },
}

/// Parses a list of links between `satellites` satellites. The links are returned with the lower
/// number first, in ascending order. Empty lines and lines that begin with `#` are ignored.
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

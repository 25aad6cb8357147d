//! Which module of a crate names which: the text of its files, read for `crate::`, `super::` and `use`. Tests are left out.
//!
//! A module is what stands at the top of a crate: `world` is `world.rs` and all files below `world/`. What a crate's root
//! passes on (`pub use spec::Spec`) counts as the module that it comes from.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The modules of a crate, each with those that it names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modules {
    /// By name.
    pub names: BTreeMap<String, BTreeSet<String>>,
}

impl Modules {
    /// Reads the sources below a crate's `src`.
    ///
    /// # Errors
    /// What the file system says.
    pub fn read(src: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        for path in sources(src)? {
            let text = fs::read_to_string(&path)?;
            let below = path.strip_prefix(src).unwrap_or(&path);
            files.push((module_of(below), without_tests(&plain(&text))));
        }
        Ok(Self::of(&files))
    }

    /// The modules of files, each given by its path of modules and its text without comments, strings and tests.
    pub fn of(files: &[(Vec<String>, String)]) -> Self {
        let tops: BTreeSet<&String> = files.iter().filter_map(|(path, _)| path.first()).collect();
        let root = files.iter().filter(|(path, _)| path.is_empty());
        let passed_on: BTreeMap<String, String> =
            root.flat_map(|(_, text)| passed_on(text)).collect();
        let mut names: BTreeMap<String, BTreeSet<String>> = tops
            .iter()
            .map(|top| ((*top).clone(), BTreeSet::new()))
            .collect();
        for (path, text) in files {
            let Some(own) = path.first() else { continue };
            for named in named(text, path) {
                let module = passed_on.get(&named).unwrap_or(&named);
                if module != own && tops.contains(module) {
                    names.entry(own.clone()).or_default().insert(module.clone());
                }
            }
        }
        Self { names }
    }

    /// All modules that one names, itself or through others.
    fn reached<'a>(&'a self, from: &'a str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut open = vec![from];
        while let Some(next) = open.pop().and_then(|module| self.names.get(module)) {
            open.extend(
                next.iter()
                    .map(String::as_str)
                    .filter(|name| found.insert(*name)),
            );
        }
        found
    }

    /// The circles: sets of modules of which each reaches each other.
    pub fn circles(&self) -> Vec<Vec<&str>> {
        let reached: BTreeMap<&str, BTreeSet<&str>> = self
            .names
            .keys()
            .map(|name| (name.as_str(), self.reached(name)))
            .collect();
        let mut circles: Vec<Vec<&str>> = Vec::new();
        for (name, reaches) in &reached {
            if circles.iter().any(|circle| circle.contains(name)) {
                continue;
            }
            let back = |other: &&str| reached.get(other).is_some_and(|it| it.contains(name));
            let circle: Vec<&str> = reaches.iter().copied().filter(back).collect();
            if circle.len() > 1 {
                circles.push(circle);
            }
        }
        circles
    }
}

/// The Rust files below a directory, those of tests left out.
///
/// # Errors
/// What the file system says.
pub fn sources(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default();
        if stem == "tests" || stem == "snapshots" {
            continue;
        }
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The path of modules of a file below `src`; empty for the crate's root.
fn module_of(file: &Path) -> Vec<String> {
    let parts = file.with_extension("");
    let mut parts: Vec<String> = parts
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if parts.last().is_some_and(|last| last == "mod")
        || matches!(&parts[..], [one] if one == "lib" || one == "main")
    {
        parts.pop();
    }
    parts
}

/// A text without comments and without what stands in strings and characters.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(raw) = raw_string(rest) {
            raw
        } else if first == '"' {
            string(rest)
        } else if let Some(character) = character(rest) {
            character
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        out.push(' ');
        rest = &rest[skipped..];
    }
    out
}

/// The length of a string that begins here.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a character in quotes, if one begins here; a lifetime is none.
fn character(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('\'')?;
    if let Some(escaped) = inner.strip_prefix('\\') {
        let end = escaped.char_indices().skip(1).find(|(_, c)| *c == '\'')?.0;
        return Some(2 + end + 1);
    }
    let length = inner.chars().next()?.len_utf8();
    inner[length..].starts_with('\'').then_some(length + 2)
}

/// The length of a raw string, if one begins here.
fn raw_string(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('r')?;
    let hashes = inner.len() - inner.trim_start_matches('#').len();
    inner[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let begin = 2 + hashes;
    Some(
        text[begin..]
            .find(&end)
            .map_or(text.len(), |at| begin + at + end.len()),
    )
}

/// A plain text up to its tests, which stand last.
fn without_tests(text: &str) -> String {
    let tests = text.match_indices("#[cfg(test)]").find(|(at, attribute)| {
        let after = text[at + attribute.len()..].trim_start();
        after.starts_with("mod ") || after.starts_with("pub mod ")
    });
    tests.map_or(text, |(at, _)| &text[..at]).to_owned()
}

/// The first names of all paths that begin at the crate's root, as a module at `path` writes them.
fn named(text: &str, path: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (word, root) in [("crate", true), ("super", false)] {
        for (at, _) in text.match_indices(word) {
            let before = text[..at].chars().next_back();
            let Some(mut rest) = text[at + word.len()..].trim_start().strip_prefix("::") else {
                continue;
            };
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
                continue;
            }
            let mut parent = if root {
                &path[..0]
            } else {
                &path[..path.len().saturating_sub(1)]
            };
            while let Some(further) = rest.trim_start().strip_prefix("super") {
                let Some(further) = further.trim_start().strip_prefix("::") else {
                    break;
                };
                (rest, parent) = (further, &parent[..parent.len().saturating_sub(1)]);
            }
            match parent.first() {
                Some(top) => found.push(top.clone()),
                None => found.extend(firsts(rest)),
            }
        }
    }
    found
}

/// The first names of a tree of paths: of `{a::b, c}` a and c, of `a::b` a.
fn firsts(text: &str) -> Vec<String> {
    let text = text.trim_start();
    let Some(inner) = text.strip_prefix('{') else {
        return name(text).into_iter().collect();
    };
    let mut found: Vec<String> = name(inner).into_iter().collect();
    let mut depth = 0;
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => found.extend(name(&inner[at + 1..])),
            _ => {}
        }
    }
    found
}

/// The name that a text begins with.
fn name(text: &str) -> Option<String> {
    let text = text.trim_start();
    let end = text
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(text.len());
    (end > 0).then(|| text[..end].to_owned())
}

/// What a crate's root passes on, each with the module it comes from: `pub use spec::{Spec, Sweep};`.
fn passed_on(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, word) in text.match_indices("pub use ") {
        let rest = &text[at + word.len()..];
        let rest = rest
            .trim_start_matches("self::")
            .trim_start_matches("crate::");
        let Some((module, items)) = rest.split_once("::") else {
            continue;
        };
        let items = items.split(';').next().unwrap_or_default();
        found.extend(
            firsts(items)
                .into_iter()
                .map(|item| (item, module.trim().to_owned())),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> Modules {
        let file =
            |(path, text): &(&str, &str)| (module_of(Path::new(path)), without_tests(&plain(text)));
        Modules::of(&files.iter().map(file).collect::<Vec<_>>())
    }

    #[test]
    fn every_way_to_name_a_module_is_seen() {
        let found = modules(&[
            ("lib.rs", "pub mod a; pub mod b; pub use d::{Thing, Other};"),
            ("a.rs", "use crate::{b::X, c}; use crate::Thing;"),
            ("b.rs", "fn f() { crate::c::g(); }"),
            ("c.rs", "mod inner;"),
            ("c/inner.rs", "use super::Own; use super::super::a::Y;"),
            ("d/mod.rs", "use super::b;"),
        ]);
        let of = |name: &str| {
            found.names[name]
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
        };
        assert_eq!(of("a"), ["b", "c", "d"]);
        assert_eq!(of("b"), ["c"]);
        assert_eq!(of("c"), ["a"]);
        assert_eq!(of("d"), ["b"]);
        assert_eq!(found.circles(), [vec!["a", "b", "c", "d"]]);
    }

    #[test]
    fn comments_strings_and_tests_name_nothing() {
        let found = modules(&[
            (
                "a.rs",
                "// crate::b\n/* crate::b */ const T: &str = \"crate::b\"; const R: &str = r#\"\"crate::b\"#; const Q: char = '\"';",
            ),
            ("b.rs", "#[cfg(test)]\nmod tests { use crate::a; }"),
        ]);
        assert!(found.names.values().all(BTreeSet::is_empty), "{found:?}");
        let quoted = modules(&[
            ("a.rs", "const Q: char = '\"'; use crate::b;"),
            ("b.rs", ""),
        ]);
        assert!(quoted.names["a"].contains("b"));
    }
}

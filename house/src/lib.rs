//! Dependencies between the modules of a crate. They are found by searching the text of its files
//! for `crate::`, `super::`, `self::` and `use`. Tests are excluded.
//!
//! Modules are compared with their siblings, at the top of the crate and below each module. For
//! example, `world` is `world.rs` with all files below `world/`. A name that the parent module
//! imports or re-exports (`pub use spec::Spec`) counts as the module that defines it. Glob imports
//! are not detected.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Sibling modules, and for each of them the siblings that it uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modules {
    /// Path of the parent module, such as `tx::send_queue`; empty for the crate's root.
    pub parent: String,
    /// For each module, the sibling modules that its code names.
    pub names: BTreeMap<String, BTreeSet<String>>,
}

/// A source file: the path of its module, and its text without comments, strings and tests.
type Source = (Vec<String>, String);

impl Modules {
    /// Reads the source files below a crate's `src` or below the folder of a program. Returns the
    /// modules at the top, then the children of each module. Programs in `bin` are separate crates
    /// and therefore skipped.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn read(src: &Path) -> io::Result<Vec<Self>> {
        let mut files = Vec::new();
        for path in sources(src)? {
            let text = fs::read_to_string(&path)?;
            let below = path.strip_prefix(src).unwrap_or(&path);
            if below.starts_with("bin") {
                continue;
            }
            files.push((module_of(below), without_tests(&plain(&text))));
        }
        Ok(Self::of(&files))
    }

    /// Groups the modules of these files by their parent.
    pub fn of(files: &[Source]) -> Vec<Self> {
        let parents: BTreeSet<&[String]> = files
            .iter()
            .flat_map(|(path, _)| (0..path.len()).map(|depth| &path[..depth]))
            .collect();
        let below = |parent| Self::below(parent, files);
        parents.into_iter().map(below).collect()
    }

    /// The child modules of `parent`, with the siblings that each of them names.
    fn below(parent: &[String], files: &[Source]) -> Self {
        let child = |path: &[String]| path.strip_prefix(parent)?.first().cloned();
        let children: BTreeSet<String> = files.iter().filter_map(|(path, _)| child(path)).collect();
        let own = files.iter().filter(|(path, _)| path == parent);
        let passed_on: BTreeMap<String, String> = own
            .flat_map(|(_, text)| passed_on(text))
            .filter(|(_, module)| children.contains(module))
            .collect();
        let mut names: BTreeMap<String, BTreeSet<String>> = children
            .iter()
            .map(|name| (name.clone(), BTreeSet::new()))
            .collect();
        for (path, text) in files {
            let Some(own) = child(path) else { continue };
            for named in named(text, path).iter().filter_map(|named| child(named)) {
                let module = passed_on.get(&named).unwrap_or(&named);
                if *module != own && children.contains(module) {
                    names.entry(own.clone()).or_default().insert(module.clone());
                }
            }
        }
        Self {
            parent: parent.join("::"),
            names,
        }
    }

    /// All modules that the module `from` names, directly or through other modules.
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

    /// The cycles: sets of modules that all depend on each other.
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

/// Lists the Rust files below a directory, without tests.
///
/// # Errors
/// The error of the file system.
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

/// The module path of a file, whose path is relative to `src`; empty for the crate's root.
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

/// Removes comments, and the contents of string and character literals.
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

/// Length in bytes of the string literal at the start of `text`.
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

/// Length in bytes of the character literal at the start of `text`; `None` if it does not start
/// with one. A lifetime is not a literal.
fn character(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('\'')?;
    if let Some(escaped) = inner.strip_prefix('\\') {
        let end = escaped.char_indices().skip(1).find(|(_, c)| *c == '\'')?.0;
        return Some(2 + end + 1);
    }
    let length = inner.chars().next()?.len_utf8();
    inner[length..].starts_with('\'').then_some(length + 2)
}

/// Length in bytes of the raw string literal at the start of `text`; `None` if it does not start
/// with one.
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

/// Removes test modules from a text that has no comments and strings.
fn without_tests(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("#[cfg(") {
        out.push_str(&rest[..at]);
        let end = rest[at..].find(']').map_or(rest.len(), |end| at + end + 1);
        let condition = &rest[at + "#[cfg(".len()..end];
        rest = &rest[end..];
        let of_tests = condition.starts_with("test)") || condition.starts_with("all(test,");
        if of_tests && is_module(rest) {
            let end = rest.find([';', '{']).unwrap_or(rest.len());
            rest = match rest[end..].starts_with('{') {
                true => &rest[end + braced(&rest[end..])..],
                false => rest.get(end + 1..).unwrap_or_default(),
            };
        }
    }
    out + rest
}

/// Returns true if the item is a module declaration.
fn is_module(item: &str) -> bool {
    item.trim_start()
        .trim_start_matches("pub ")
        .starts_with("mod ")
}

/// Length in bytes of the block at the start of `text`, including its braces.
fn braced(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// Byte ranges of the inline modules in a text: the braces of `mod inner { ... }`.
fn inner_modules(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for at in words(text, "mod") {
        let rest = text[at + "mod".len()..].trim_start();
        let after = rest[name(rest).map_or(0, |name| name.len())..].trim_start();
        if after.starts_with('{') {
            let begin = text.len() - after.len();
            found.push(begin..begin + braced(after));
        }
    }
    found
}

/// Byte positions of a word in a text; parts of longer identifiers do not count.
fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let ends = !text[at + word.len()..].starts_with(part);
            ends && !text[..at].ends_with(part)
        })
}

/// Paths from the crate's root of all items that the text of the module at `path` names with
/// `crate`, `super` or `self`.
fn named(text: &str, path: &[String]) -> Vec<Vec<String>> {
    let inner = inner_modules(text);
    let mut found = Vec::new();
    for word in ["crate", "super", "self"] {
        for at in words(text, word).filter(|at| !text[..*at].ends_with(':')) {
            let depth = inner.iter().filter(|it| it.contains(&at)).count();
            let tree = tree(&text[at..]).0;
            found.extend(tree.iter().map(|branch| from_root(branch, path, depth)));
        }
    }
    found
}

/// Resolves a path to one from the crate's root. The path is written in the module at `path`,
/// inside `inner` nested inline modules.
fn from_root(branch: &[String], path: &[String], mut inner: usize) -> Vec<String> {
    let mut at = path.to_vec();
    for name in branch {
        match name.as_str() {
            "crate" => at.clear(),
            "super" if inner > 0 => inner -= 1,
            "super" => drop(at.pop()),
            "self" => {}
            "as" => break,
            name => at.push(name.to_owned()),
        }
    }
    at
}

/// Parses a use tree. Returns its paths and its length in bytes: `a::{b, c::{d, self} as e}` has
/// the paths a::b, a::c::d and a::c. The new name of a renamed item comes last in its path, after
/// `as`.
fn tree(text: &str) -> (Vec<Vec<String>>, usize) {
    let mut at = text.len() - text.trim_start().len();
    if text[at..].starts_with('{') {
        let mut all = Vec::new();
        loop {
            // Skips the opening brace, or a comma.
            at += 1;
            let (branches, length) = tree(&text[at..]);
            all.extend(branches);
            at += length;
            at += text[at..].len() - text[at..].trim_start().len();
            if !text[at..].starts_with(',') {
                return (all, at + usize::from(text[at..].starts_with('}')));
            }
        }
    }
    let Some(first) = name(&text[at..]) else {
        return (Vec::new(), at + usize::from(text[at..].starts_with('*')));
    };
    at += first.len();
    let rest = text[at..].trim_start();
    if let Some(below) = rest.strip_prefix("::") {
        let (branches, length) = tree(below);
        let at = text.len() - below.len() + length;
        let with_first = |branch: Vec<String>| [vec![first.clone()], branch].concat();
        return match branches.is_empty() {
            true => (vec![vec![first]], at),
            false => (branches.into_iter().map(with_first).collect(), at),
        };
    }
    if let Some(renamed) = rest.strip_prefix("as ") {
        let other = name(renamed).unwrap_or_default();
        let before = renamed.len() - renamed.trim_start().len();
        let at = text.len() - renamed.len() + before + other.len();
        return (vec![vec![first, "as".to_owned(), other]], at);
    }
    (vec![vec![first]], at)
}

/// The identifier at the start of a text, if there is one.
fn name(text: &str) -> Option<String> {
    let text = text.trim_start();
    let end = text
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(text.len());
    (end > 0).then(|| text[..end].to_owned())
}

/// Names that a module imports or re-exports, each with the child module that it comes from:
/// `pub use spec::{Spec, Sweep};`.
fn passed_on(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for at in words(text, "use") {
        for mut branch in tree(&text[at + "use".len()..]).0 {
            branch.retain(|name| !matches!(name.as_str(), "crate" | "self"));
            if let [module, .., item] = &branch[..] {
                found.push((item.clone(), module.clone()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> Modules {
        let file =
            |(path, text): &(&str, &str)| (module_of(Path::new(path)), without_tests(&plain(text)));
        let all = Modules::of(&files.iter().map(file).collect::<Vec<_>>());
        let top = all.into_iter().find(|it| it.parent.is_empty());
        top.expect("modules at the top")
    }

    /// The sibling modules that the module `of` names.
    fn of<'a>(found: &'a Modules, of: &str) -> Vec<&'a str> {
        found.names[of].iter().map(String::as_str).collect()
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
        assert_eq!(of(&found, "a"), ["b", "c", "d"]);
        assert_eq!(of(&found, "b"), ["c"]);
        assert_eq!(of(&found, "c"), ["a"]);
        assert_eq!(of(&found, "d"), ["b"]);
        assert_eq!(found.circles(), [vec!["a", "b", "c", "d"]]);
    }

    #[test]
    fn a_circle_without_super_is_found_and_one_way_is_none() {
        let lists = "use crate::{\n    b::{\n        self as other, X,\n    },\n    c,\n};";
        let circle = [("a.rs", lists), ("b.rs", "use crate::a::Y;"), ("c.rs", "")];
        let found = modules(&circle);
        assert_eq!(of(&found, "a"), ["b", "c"]);
        assert_eq!(found.circles(), [vec!["a", "b"]]);
        assert!(
            modules(&[("a.rs", lists), ("b.rs", ""), ("c.rs", "use crate::b;")])
                .circles()
                .is_empty()
        );
    }

    #[test]
    fn imports_of_the_root_are_attributed_to_their_module() {
        let found = modules(&[
            (
                "main.rs",
                "mod a; mod b; mod c; use b::{deep::X, Y as Z}; pub use crate::c::inner::W; use std::a;",
            ),
            (
                "a.rs",
                "use crate::X; fn f() -> crate::Z { crate::W::<u8>::new() }",
            ),
            ("b.rs", "pub fn g() { crate::a::f() }"),
            ("c.rs", ""),
        ]);
        assert_eq!(of(&found, "a"), ["b", "c"]);
        assert_eq!(found.circles(), [vec!["a", "b"]]);
    }

    #[test]
    fn a_module_within_a_file_has_the_file_above_it() {
        let found = modules(&[
            (
                "a.rs",
                "mod inner { use super::b; use super::super::c; } use super::d;",
            ),
            ("b.rs", ""),
            ("c.rs", ""),
            ("d.rs", ""),
        ]);
        assert_eq!(of(&found, "a"), ["c", "d"]);
    }

    #[test]
    fn children_of_a_module_are_compared_with_each_other() {
        let file =
            |(path, text): &(&str, &str)| (module_of(Path::new(path)), without_tests(&plain(text)));
        let circle = |of_two: &str| {
            let files = [
                ("a.rs", "mod one; mod two; pub use one::X;"),
                ("a/one.rs", "use super::two::Y; use crate::a::Own;"),
                ("a/two.rs", of_two),
                ("a/two/deep.rs", ""),
            ];
            let files: Vec<_> = files.iter().map(file).collect();
            let below = Modules::of(&files)
                .into_iter()
                .filter(|it| it.parent == "a");
            below.map(|it| it.circles().len()).sum::<usize>()
        };
        assert_eq!(circle("use crate::b;"), 0);
        assert_eq!(circle("mod inner { use super::one; }"), 0);
        assert_eq!(circle("use super::X;"), 1);
        assert_eq!(circle("use super::{Own, one::{Z, W}};"), 1);
        assert_eq!(circle("mod inner { use super::super::one::Z; }"), 1);
        assert_eq!(circle("fn f() { crate::a::one::g() }"), 1);
    }

    #[test]
    fn comments_strings_and_tests_name_nothing() {
        let found = modules(&[
            (
                "a.rs",
                "// crate::b\n/* crate::b */ const T: &str = \"crate::b\"; const R: &str = r#\"\"crate::b\"#; const Q: char = '\"';",
            ),
            (
                "b.rs",
                "#[cfg(test)]\nmod tests { fn f() {} use crate::a; }",
            ),
        ]);
        assert!(found.names.values().all(BTreeSet::is_empty), "{found:?}");
        let quoted = modules(&[
            ("a.rs", "const Q: char = '\"'; use crate::b;"),
            ("b.rs", ""),
        ]);
        assert!(quoted.names["a"].contains("b"));
        // A test module is removed even if other items follow it.
        let early =
            "#[cfg(test)]\nmod tests;\n#[cfg(test)]\npub mod more { use crate::c; }\nuse crate::b;";
        let early = modules(&[("a.rs", early), ("b.rs", ""), ("c.rs", "")]);
        assert_eq!(of(&early, "a"), ["b"]);
    }
}

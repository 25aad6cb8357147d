//! Checks the style of the sources: length of files, width of comments, and words that comments
//! should avoid. `house/words.csv` has the permitted counts of each crate, which may only fall.
//! `WORDS=write` in the environment updates the file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anabranch_house::sources;

/// Maximum number of lines of a file.
const MAX_LINES: usize = 600;
/// Maximum number of columns of a comment line.
const MAX_COLUMNS: usize = 100;
/// Files that are still longer, with their number of lines, which may only decrease.
const KNOWN_LONG: &[(&str, usize)] = &[];
/// Words that comments should avoid by CONTRIBUTING.md; `tell|told` are two forms of one word.
const WORDS: &[&str] = &[
    "what",
    "where",
    "nobody",
    "whoever",
    "tell|tells|told",
    "given up|gives up",
    "anew",
    "beside",
    "of its own",
];
/// Name under which comment lines wider than `MAX_COLUMNS` are counted.
const WIDE: &str = "wide lines";
/// Name under which headings of rustdoc sections with text in their line are counted, because
/// rustdoc shows all of such a line as the heading.
const HEADING: &str = "headings with text";
/// Headings of sections in rustdoc.
const SECTIONS: [&str; 3] = ["/// # Errors ", "/// # Panics ", "/// # Safety "];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Source folders of all crates, by crate name.
fn crates() -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(root().join("crates")).expect("crates/") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        found.insert(name, path.join("src"));
    }
    for name in ["capi", "bench", "interop"] {
        found.insert(name.to_owned(), root().join(name).join("src"));
    }
    found.retain(|_, src| src.is_dir());
    found
}

/// Number of occurrences of `word` in `text`, both in lower case, at word boundaries.
fn occurrences(text: &str, word: &str) -> usize {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let whole =
        |at: usize| !text[..at].ends_with(part) && !text[at + word.len()..].starts_with(part);
    text.match_indices(word)
        .filter(|&(at, _)| whole(at))
        .count()
}

/// Number of occurrences of each avoided word, and of wide lines and headings with text, in the
/// comment lines of a text.
fn counts(text: &str) -> BTreeMap<&'static str, usize> {
    let mut found = BTreeMap::new();
    for line in text
        .lines()
        .filter(|line| line.trim_start().starts_with("//"))
    {
        let lower = line.to_lowercase();
        for words in WORDS {
            let count: usize = words.split('|').map(|word| occurrences(&lower, word)).sum();
            *found.entry(*words).or_default() += count;
        }
        *found.entry(WIDE).or_default() += usize::from(line.chars().count() > MAX_COLUMNS);
        let line = line.trim_start();
        let is_heading = SECTIONS.iter().any(|section| line.starts_with(section));
        *found.entry(HEADING).or_default() += usize::from(is_heading);
    }
    found
}

/// Formats all counts as a table: `crate,word,count`, without zeros.
fn table() -> String {
    let mut out = String::from("crate,word,count\n");
    for (name, src) in crates() {
        let mut sum: BTreeMap<&str, usize> = BTreeMap::new();
        for path in sources(&src).expect("sources") {
            for (word, count) in counts(&fs::read_to_string(path).expect("a file")) {
                *sum.entry(word).or_default() += count;
            }
        }
        for (word, count) in sum.into_iter().filter(|&(_, count)| count > 0) {
            out += &format!("{name},{word},{count}\n");
        }
    }
    out
}

/// The counts in `now` that are larger than in `known`; a count that is not listed in `known` is 0.
fn grown(known: &str, now: &str) -> Vec<String> {
    let read = |table: &str| -> BTreeMap<String, usize> {
        let rows = table.lines().skip(1).filter_map(|row| row.rsplit_once(','));
        rows.map(|(key, count)| (key.to_owned(), count.parse().expect("a count")))
            .collect()
    };
    let known = read(known);
    let allowed = |key: &str| known.get(key).copied().unwrap_or(0);
    read(now)
        .into_iter()
        .filter(|(key, count)| *count > allowed(key))
        .map(|(key, count)| format!("{key}: {count}, and {} before", allowed(&key)))
        .collect()
}

#[test]
fn words_of_the_dialect_become_fewer() {
    let path = root().join("house/words.csv");
    let now = table();
    if std::env::var("WORDS").is_ok_and(|how| how == "write") {
        fs::write(&path, &now).expect("the table");
    }
    let known = fs::read_to_string(path).expect("house/words.csv");
    let grown = grown(&known, &now);
    assert!(
        grown.is_empty(),
        "comments use words that CONTRIBUTING.md asks to avoid, or lines of more than {MAX_COLUMNS} columns:\n{}",
        grown.join("\n")
    );
}

#[test]
fn a_count_that_grows_is_found() {
    let text = "//! What it is, and what it\n    // Told; somewhat\nlet what = 1; // what\n";
    let found = counts(text);
    assert_eq!(
        (found["what"], found["tell|tells|told"], found["where"]),
        (2, 1, 0)
    );
    assert_eq!(counts(&format!("// {}\n", "x".repeat(98)))[WIDE], 1);
    assert_eq!(counts(&format!("// {}\n", "x".repeat(97)))[WIDE], 0);
    assert_eq!(counts("    /// # Errors It is closed.\n")[HEADING], 1);
    assert_eq!(
        counts("    /// # Errors\n    /// It is closed.\n")[HEADING],
        0
    );
    let table = |count| format!("crate,word,count\nsctp,what,{count}\n");
    assert_eq!(grown(&table(2), &table(2)), [""; 0]);
    assert_eq!(grown(&table(3), &table(2)), [""; 0]);
    assert_eq!(grown(&table(2), &table(3)), ["sctp,what: 3, and 2 before"]);
    assert_eq!(
        grown("crate,word,count\n", &table(1)),
        ["sctp,what: 1, and 0 before"]
    );
}

#[test]
fn files_are_short() {
    let mut long = Vec::new();
    let mut read = 0;
    let folders = [
        "crates", "capi", "bench", "interop", "house", "examples", "fuzz",
    ];
    let mut open: Vec<PathBuf> = folders.iter().map(|name| root().join(name)).collect();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let skipped = path.ends_with("target") || path.ends_with("node_modules");
            let entries = fs::read_dir(&path)
                .into_iter()
                .flatten()
                .filter(|_| !skipped);
            open.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let lines = fs::read_to_string(&path).expect("a file").lines().count();
            read += 1;
            let known = KNOWN_LONG.iter().find(|(known, _)| path.ends_with(known));
            if lines > known.map_or(MAX_LINES, |(_, lines)| *lines) {
                long.push(format!("{}: {lines}", path.display()));
            }
        }
    }
    assert!(read > 500, "{read} files were read");
    long.sort();
    assert!(
        long.is_empty(),
        "files of more than {MAX_LINES} lines:\n{}",
        long.join("\n")
    );
}

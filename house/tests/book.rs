//! Checks that every relative link, anchor and image of the book and of the other Markdown pages
//! exists, and that the book contains every page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Markdown pages outside `docs/`, which are not part of the book but are checked as well.
const BESIDE: &[&str] = &[
    "README.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "bench/README.md",
    "validation/ns3/README.md",
];

/// Pages that `bench/README.md` links to.
const NOTES: &str = "bench/notes";

/// A page: its anchors, and its links with their line numbers.
#[derive(Default)]
struct Page {
    anchors: BTreeSet<String>,
    links: Vec<(usize, String)>,
}

/// The anchor of a heading, by the rules of mdBook and of code forges.
fn anchor(heading: &str) -> String {
    let keep = |letter: char| match letter {
        '-' | '_' => Some(letter),
        letter if letter.is_alphanumeric() => Some(letter.to_ascii_lowercase()),
        letter if letter.is_whitespace() => Some('-'),
        _ => None,
    };
    heading.chars().filter_map(keep).collect()
}

fn read(text: &str) -> Page {
    let mut page = Page::default();
    let mut heading = None;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let name = anchor(&heading.take().unwrap_or_default());
                let mut free = name.clone();
                for number in 1.. {
                    if page.anchors.insert(free) {
                        break;
                    }
                    free = format!("{name}-{number}");
                }
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    *heading += &text;
                }
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let line = text[..range.start].lines().count().max(1);
                page.links.push((line, dest_url.into_string()));
            }
            _ => {}
        }
    }
    page
}

/// Removes `.` and `..` from a path.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// Collects the Markdown files below a folder, by their paths relative to the repository.
fn below(folder: &str, found: &mut BTreeMap<PathBuf, Page>) {
    for entry in fs::read_dir(root().join(folder)).expect(folder) {
        let entry = entry.expect("an entry");
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            below(&name, found);
        } else if name.ends_with(".md") && name != "docs/findings/text.md" {
            let text = fs::read_to_string(entry.path()).expect("a page");
            found.insert(name.into(), read(&text));
        }
    }
}

/// Checks a link of the page at `from`; returns the error if its target does not exist.
fn wrong(pages: &BTreeMap<PathBuf, Page>, from: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
    let to = match path {
        "" => from.to_owned(),
        _ => plain(&from.parent().expect("a folder").join(path)),
    };
    if !root().join(&to).exists() {
        return Some(format!("there is no {}", to.display()));
    }
    let is_page = to.extension().is_some_and(|kind| kind == "md");
    if is_page && from.starts_with("docs") && (!to.starts_with("docs") || !pages.contains_key(&to))
    {
        return Some("the book has no such page; link the folder, or name the file".to_owned());
    }
    let page = pages.get(&to);
    match page {
        Some(page) if !fragment.is_empty() && !page.anchors.contains(fragment) => {
            Some(format!("{} has no heading #{fragment}", to.display()))
        }
        None if !fragment.is_empty() => Some("only pages have headings".to_owned()),
        _ => None,
    }
}

#[test]
fn every_link_leads_somewhere() {
    let mut pages = BTreeMap::new();
    below("docs", &mut pages);
    below(NOTES, &mut pages);
    for name in BESIDE {
        let text = fs::read_to_string(root().join(name)).expect(name);
        pages.insert(name.into(), read(&text));
    }
    let mut count = 0;
    let mut found = Vec::new();
    for (from, page) in &pages {
        for (line, link) in &page.links {
            count += 1;
            if let Some(wrong) = wrong(&pages, from, link) {
                found.push(format!("{}:{line}: {link}: {wrong}", from.display()));
            }
        }
    }
    assert!(count > 200, "only {count} links were seen");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_book_has_every_page_once() {
    let mut pages = BTreeMap::new();
    below("docs", &mut pages);
    let summary = pages
        .remove(Path::new("docs/SUMMARY.md"))
        .expect("the summary");
    let mut listed: Vec<PathBuf> = summary
        .links
        .iter()
        .map(|(_, link)| Path::new("docs").join(link))
        .collect();
    listed.sort();
    let all: Vec<PathBuf> = pages.into_keys().collect();
    assert_eq!(
        listed, all,
        "docs/SUMMARY.md lists other pages than docs/ has"
    );
}

#[test]
fn the_page_of_the_benches_leads_to_every_note() {
    let mut notes = BTreeMap::new();
    below(NOTES, &mut notes);
    let text = fs::read_to_string(root().join("bench/README.md")).expect("the page");
    let linked: BTreeSet<PathBuf> = read(&text)
        .links
        .iter()
        .filter_map(|(_, link)| link.split('#').next())
        .map(|path| Path::new("bench").join(path))
        .collect();
    assert!(!notes.is_empty());
    for note in notes.keys() {
        assert!(linked.contains(note), "no link to {}", note.display());
    }
}

#[test]
fn a_link_to_nowhere_is_found() {
    let mut pages = BTreeMap::new();
    let text = "# The `a-b` of C, D\n\n[a](#the-a-b-of-c-d) [b](#e) [c](none.md) [d](../README.md) [e](../crates#x)\n\n`[f](none)`\n";
    pages.insert("docs/GLOSSARY.md".into(), read(text));
    let page = &pages[Path::new("docs/GLOSSARY.md")];
    let wrong: Vec<bool> = page
        .links
        .iter()
        .map(|(_, link)| wrong(&pages, Path::new("docs/GLOSSARY.md"), link).is_some())
        .collect();
    assert_eq!(wrong, [false, true, true, true, true]);
}

/// Each code block of the page on chunk extensions must be a part of the file whose link precedes
/// it. The page may name eight files at most.
#[test]
fn the_page_of_chunk_extensions_has_the_code() {
    let folder = root().join("docs/extending");
    let page = fs::read_to_string(folder.join("chunk.md")).expect("the page");
    let (mut blocks, mut files) = (0, BTreeSet::new());
    let mut parts = page.split("```rust,ignore\n");
    let mut before = parts.next().expect("text").to_owned();
    for part in parts {
        let (code, after) = part.split_once("```").expect("a whole block");
        let (_, link) = before.rsplit_once("](").expect("a link");
        let (file, _) = link.split_once(')').expect("a whole link");
        let source = fs::read_to_string(folder.join(file)).expect(file);
        assert!(source.contains(code), "{file} does not have\n{code}");
        files.insert(file.to_owned());
        after.clone_into(&mut before);
        blocks += 1;
    }
    assert_eq!(blocks, 10);
    assert!(files.len() <= 8, "{files:?}");
}

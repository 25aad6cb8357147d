//! The journal of finished runs: its form, damage, several writers.

use std::fs;
use std::path::Path;

use anabranch_lab::journal::{Damage, Journal};
use anabranch_lab::whole::Keep;

const HEAD: &str = "anabranch journal 1\n";

fn kept(directory: &Path, key: &str) -> Option<String> {
    let journal = Journal::open(directory).unwrap_or_else(|error| panic!("{error}"));
    journal.get(key, |record| String::from_utf8(record.to_vec()).ok())
}

fn add(journal: &Journal, key: &str, record: &str) {
    journal
        .add(key, record.as_bytes(), Keep::Cheaply)
        .unwrap_or_else(|error| panic!("{error}"));
}

/// By hand: CRC32c of `a {}` is what the standard's polynomial gives, 0x1edc6f41 reflected.
#[test]
fn a_line_is_length_checksum_key_and_record() {
    let mut crc = u32::MAX;
    for byte in b"a {}" {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
        }
    }
    let directory = tempfile::tempdir().expect("a directory");
    let journal = Journal::open(directory.path()).expect("journals");
    add(&journal, "a", "{}");
    let text = fs::read_to_string(directory.path().join("1.journal")).expect("a journal");
    assert_eq!(text, format!("{HEAD}00000004 {:08x} a {{}}\n", !crc));
}

#[test]
fn the_end_may_be_damaged_anywhere_and_the_runs_before_it_stay() {
    let directory = tempfile::tempdir().expect("a directory");
    let journal = Journal::open(directory.path()).expect("journals");
    add(&journal, "a", "{\"x\":1}");
    add(&journal, "b", "{\"x\":2}");
    drop(journal);
    let path = directory.path().join("1.journal");
    let whole = fs::read(&path).expect("a journal");
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let first = lines[0].len() + lines[1].len();
    for cut in 0..whole.len() {
        fs::write(&path, &whole[..cut]).expect("a file");
        let journal = Journal::open(directory.path()).expect("journals");
        let text = |key| journal.get(key, |record| Some(record.to_vec()));
        let runs = usize::from(cut >= first);
        assert_eq!(text("a").is_some(), runs == 1, "cut at {cut}");
        assert_eq!(text("b"), None, "cut at {cut}");
        assert_eq!(
            journal.damaged().is_empty(),
            [0, HEAD.len(), first].contains(&cut),
            "cut at {cut}"
        );
        // Whoever goes on cuts it off, and what follows is read.
        add(&journal, "c", "{}");
        drop(journal);
        assert_eq!(
            kept(directory.path(), "c").as_deref(),
            Some("{}"),
            "cut at {cut}"
        );
        assert_eq!(
            kept(directory.path(), "a").is_some(),
            runs == 1,
            "cut at {cut}"
        );
    }
    // A byte that was changed: the line and all behind it.
    for at in HEAD.len()..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&path, &changed).expect("a file");
        let journal = Journal::open(directory.path()).expect("journals");
        let runs = usize::from(at >= first);
        let bytes = (whole.len() - if runs == 1 { first } else { HEAD.len() }) as u64;
        let path = path.clone();
        assert_eq!(
            journal.damaged(),
            [Damage { path, runs, bytes }],
            "byte {at}"
        );
    }
}

#[test]
fn each_writer_has_a_journal_of_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let [one, other] = [0, 1].map(|_| Journal::open(directory.path()).expect("journals"));
    add(&one, "a", "1");
    add(&other, "b", "2");
    add(&one, "c", "3");
    let files = || fs::read_dir(directory.path()).expect("a directory").count();
    assert_eq!(files(), 2);
    for (key, record) in [("a", "1"), ("b", "2"), ("c", "3")] {
        assert_eq!(kept(directory.path(), key).as_deref(), Some(record));
    }
    drop((one, other));
    let again = Journal::open(directory.path()).expect("journals");
    add(&again, "d", "4");
    assert_eq!(files(), 2);
}

#[test]
fn a_journal_of_another_form_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("1.journal");
    fs::write(&path, "anabranch journal 2\nwhatever").expect("a file");
    let error = Journal::open(directory.path())
        .expect_err("another form")
        .to_string();
    assert!(error.contains("1.journal: it is of form 2"), "{error}");
}

//! The journal of finished runs: format, damage, several writers.

use std::fs;
use std::path::Path;

use anabranch_lab::atomic_write::Durability;
use anabranch_lab::journal::{Damage, Journal};

const HEAD: &str = "anabranch journal 1\n";

fn kept(directory: &Path, key: &str) -> Option<String> {
    let journal = Journal::open(directory).unwrap_or_else(|error| panic!("{error}"));
    journal.get(key, |record| String::from_utf8(record.to_vec()).ok())
}

fn add(journal: &Journal, key: &str, record: &str) {
    journal
        .add(key, record.as_bytes(), Durability::Buffered)
        .unwrap_or_else(|error| panic!("{error}"));
}

/// Expected values computed by hand: CRC32c of `a {}` with the polynomial of the standard,
/// 0x1edc6f41, reflected.
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
        // The next writer removes the partial line, and the runs that it adds can be read.
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
}

/// Writes a journal with this many runs. Returns the records, the bytes of the file, and the offset
/// of each line.
fn several(directory: &Path, runs: usize) -> (Vec<String>, Vec<u8>, Vec<usize>) {
    let records =
        (0..runs).map(|run| format!("{{\"x\":{run},\"y\":\"{}\"}}", "z ".repeat(run % 40)));
    let records: Vec<String> = records.collect();
    let journal = Journal::open(directory).expect("journals");
    for (run, record) in records.iter().enumerate() {
        add(&journal, &format!("run{run}"), record);
    }
    let bytes = fs::read(directory.join("1.journal")).expect("a journal");
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let mut begins: Vec<usize> = ends.map(|(at, _)| at + 1).collect();
    begins.pop();
    (records, bytes, begins)
}

/// For each run, whether the journal still contains it unchanged.
fn still_there(journal: &Journal, records: &[String]) -> Vec<bool> {
    let there = records.iter().enumerate().map(|(run, record)| {
        journal.get(&format!("run{run}"), |found| {
            assert_eq!(found, record.as_bytes(), "run {run} is another");
            Some(())
        })
    });
    there.map(|it| it.is_some()).collect()
}

/// A changed byte in a run affects only that run, and one in the header affects none. The next
/// writer removes the damage.
#[test]
fn a_changed_byte_costs_the_run_that_it_belongs_to() {
    const SEED: u64 = 0x5eed_0001;
    let directory = tempfile::tempdir().expect("a directory");
    let (records, whole, begins) = several(directory.path(), 60);
    let path = directory.path().join("1.journal");
    let mut state = SEED;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for round in 0..400 {
        let at = random(whole.len());
        let change = 1 + random(255) as u8;
        let told = format!("seed {SEED:#x}, round {round}: byte {at} by {change:#04x}");
        let mut changed = whole.clone();
        changed[at] ^= change;
        fs::write(&path, &changed).expect("a file");
        let journal = match Journal::open(directory.path()) {
            Ok(journal) => journal,
            // The changed byte is a digit of the format number, so the journal cannot be read.
            Err(_) if at == HEAD.len() - 2 => continue,
            Err(error) => panic!("{told}: {error}"),
        };
        let hit = begins.iter().rposition(|begin| *begin <= at);
        let expected: Vec<bool> = (0..records.len()).map(|run| Some(run) != hit).collect();
        assert_eq!(still_there(&journal, &records), expected, "{told}");
        let [Damage { runs, lost, .. }] = &journal.damaged()[..] else {
            panic!("{told}: {:?}", journal.damaged());
        };
        let missing = usize::from(hit.is_some());
        assert_eq!((*runs, *lost), (records.len() - missing, missing), "{told}");
        // The next writer removes the damage and loses nothing else.
        add(&journal, "more", "{}");
        drop(journal);
        let journal = Journal::open(directory.path()).expect("journals");
        assert_eq!(still_there(&journal, &records), expected, "{told}");
        assert_eq!(journal.damaged(), [], "{told}");
        assert!(journal.get("more", |_| Some(())).is_some(), "{told}");
    }
}

/// Each of several damaged positions affects only the runs at that position.
#[test]
fn several_places_are_damaged_apart() {
    let directory = tempfile::tempdir().expect("a directory");
    let (records, mut bytes, begins) = several(directory.path(), 20);
    for run in [2, 3, 9] {
        bytes[begins[run] + 20] ^= 1;
    }
    bytes.truncate(begins[19] + 5);
    fs::write(directory.path().join("1.journal"), &bytes).expect("a file");
    let journal = Journal::open(directory.path()).expect("journals");
    let expected: Vec<bool> = (0..20).map(|run| ![2, 3, 9, 19].contains(&run)).collect();
    assert_eq!(still_there(&journal, &records), expected);
    let [Damage { runs, lost, .. }] = journal.damaged()[..] else {
        panic!("{:?}", journal.damaged());
    };
    assert_eq!((runs, lost), (16, 4));
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

/// A link to another file of the user is not a journal, and the file must stay unchanged.
#[cfg(unix)]
#[test]
fn a_journal_is_not_written_through_a_link() {
    let directory = tempfile::tempdir().expect("a directory");
    let victim = directory.path().join("victim.txt");
    fs::write(&victim, "precious").expect("a file");
    let runs = directory.path().join("runs");
    fs::create_dir(&runs).expect("a directory");
    std::os::unix::fs::symlink("../victim.txt", runs.join("1.journal")).expect("a link");
    let journal = Journal::open(&runs).expect("journals");
    let error = journal.add("a", b"{}", Durability::Buffered);
    let error = error.expect_err("a link").to_string();
    assert!(
        error.contains("1.journal") && error.contains("it is a link"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(&victim).expect("read"), "precious");
}

/// Files that are endless, or block when opened, must not be read.
#[cfg(unix)]
#[test]
fn only_regular_files_are_journals() {
    let directory = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::symlink("/dev/zero", directory.path().join("2.journal")).expect("a link");
    let error = Journal::open(directory.path()).expect_err("no file");
    assert!(error.to_string().contains("not a regular file"), "{error}");
}

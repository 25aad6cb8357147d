//! Dependencies between crates point downward, and so do those between the modules of a crate.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anabranch_house::{Modules, plain, sources};
use serde_json::Value;

/// Workspace crates that each crate may depend on, except for its tests. A crate that is not listed
/// may depend on all.
const MAY_USE: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("transport", &[]),
    ("settings", &["transport"]),
    ("congestion", &["transport", "settings"]),
    ("dtls", &[]),
    (
        "sctp",
        &["wire", "transport", "settings", "congestion", "dtls"],
    ),
    ("tcp", &["wire", "transport", "settings", "congestion"]),
    ("quic", &["transport", "settings"]),
    ("third-party-sctp", &["wire", "transport", "settings"]),
    ("orbit", &["transport", "settings"]),
    ("sim", &["wire", "transport", "settings", "orbit"]),
    ("scenario", &["transport", "settings"]),
    ("report", &["transport", "settings", "scenario"]),
    (
        "engine",
        &[
            "wire",
            "transport",
            "settings",
            "congestion",
            "dtls",
            "sctp",
            "tcp",
            "quic",
            "third-party-sctp",
            "orbit",
            "sim",
            "scenario",
        ],
    ),
    (
        "lab",
        &[
            "wire",
            "transport",
            "settings",
            "congestion",
            "dtls",
            "sctp",
            "tcp",
            "quic",
            "third-party-sctp",
            "orbit",
            "sim",
            "scenario",
            "engine",
            "report",
        ],
    ),
    (
        "advise",
        &[
            "wire",
            "transport",
            "settings",
            "congestion",
            "dtls",
            "sctp",
            "tcp",
            "quic",
            "third-party-sctp",
            "orbit",
            "sim",
            "scenario",
            "engine",
            "report",
            "lab",
        ],
    ),
    (
        "explore",
        &[
            "wire",
            "transport",
            "settings",
            "congestion",
            "dtls",
            "sctp",
            "tcp",
            "quic",
            "third-party-sctp",
            "orbit",
            "sim",
            "scenario",
            "engine",
            "report",
        ],
    ),
    (
        "net",
        &[
            "wire",
            "transport",
            "settings",
            "congestion",
            "dtls",
            "sctp",
        ],
    ),
    (
        "sockets",
        &[
            "wire",
            "transport",
            "settings",
            "congestion",
            "dtls",
            "sctp",
            "net",
        ],
    ),
    (
        "datachannel",
        &[
            "wire",
            "transport",
            "settings",
            "congestion",
            "dtls",
            "sctp",
        ],
    ),
    (
        "emulate",
        &["wire", "transport", "settings", "orbit", "sim"],
    ),
];

/// Crates whose code must not use files, threads, clocks or sockets.
const NO_IO: &[&str] = &[
    "wire",
    "transport",
    "congestion",
    "dtls",
    "sctp",
    "tcp",
    "sim",
    "scenario",
    "engine",
];
const IO: &[&str] = &[
    "std::fs",
    "std::thread",
    "std::process",
    "std::env",
    "std::time::Instant",
    "Instant::now",
    "SystemTime",
    "TcpStream",
    "UdpSocket",
    "File::open",
    "File::create",
];

/// Crates of state machines, which must not contain locks: one thread at a time drives each state
/// machine, and sharing between threads is the driver's task.
const NO_LOCKS: &[&str] = &[
    "wire",
    "transport",
    "settings",
    "congestion",
    "sctp",
    "tcp",
    "quic",
    "third-party-sctp",
    "sim",
    "scenario",
];
const LOCKS: &[&str] = &[
    "RwLock",
    "Mutex",
    "Condvar",
    "parking_lot",
    "std::sync::mpsc",
];

/// A crate of the workspace, its source folders and its dependencies.
struct Room {
    name: String,
    folder: String,
    /// Source folders of the library and of those programs that have modules.
    roots: BTreeSet<PathBuf>,
    uses: Vec<String>,
}

fn rooms() -> Vec<Room> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let short = |name: &Value| name.as_str()?.strip_prefix("anabranch-").map(str::to_owned);
    let packages = metadata["packages"].as_array().expect("packages").iter();
    packages
        .map(|package| {
            let dependencies = package["dependencies"].as_array().expect("dependencies");
            let built = dependencies.iter().filter(|it| it["kind"] != "dev");
            Room {
                name: short(&package["name"]).unwrap_or_else(|| text(&package["name"])),
                folder: text(&package["manifest_path"]).replace("/Cargo.toml", ""),
                roots: roots(&package["targets"]),
                uses: built.filter_map(|it| short(&it["name"])).collect(),
            }
        })
        .collect()
}

/// Source folders of the targets: the folder of each `lib.rs` or `main.rs`, which also contains its
/// modules.
fn roots(targets: &Value) -> BTreeSet<PathBuf> {
    let targets = targets.as_array().expect("targets").iter();
    let files = targets.filter_map(|target| Some(Path::new(target["src_path"].as_str()?)));
    let files = files.filter(|file| file.ends_with("lib.rs") || file.ends_with("main.rs"));
    files
        .filter_map(|file| Some(file.parent()?.to_owned()))
        .collect()
}

/// All workspace crates that the crate `name` depends on, directly or through others.
fn below<'a>(rooms: &'a [Room], name: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open = vec![name];
    while let Some(next) = open.pop() {
        let uses = rooms
            .iter()
            .find(|room| room.name == next)
            .map_or(&[][..], |room| &room.uses);
        open.extend(
            uses.iter()
                .map(String::as_str)
                .filter(|name| found.insert(*name)),
        );
    }
    found
}

#[test]
fn arrows_between_crates_point_downward() {
    let rooms = rooms();
    for (name, may) in MAY_USE {
        let wrong: Vec<&str> = below(&rooms, name)
            .into_iter()
            .filter(|used| !may.contains(used))
            .collect();
        assert!(
            wrong.is_empty(),
            "{name} is built with {wrong:?}; it may use {may:?}"
        );
    }
    let known = |name: &str| rooms.iter().any(|room| room.name == name);
    for name in ["scenario", "engine", "report", "lab", "advise"] {
        assert!(known(name), "no crate {name}");
    }
}

/// Cycles of modules that are known and still have to be removed. None may be added.
const KNOWN_CIRCLES: &[&str] = &[];

#[test]
fn no_modules_name_each_other_in_a_circle() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for room in rooms() {
        for root in &room.roots {
            for modules in Modules::read(root).expect("sources") {
                seen += modules.names.len();
                let place = format!("{} {}", room.name, modules.parent);
                let circles = modules.circles().into_iter();
                wrong.extend(circles.map(|circle| format!("{place}: {}", circle.join(" "))));
            }
        }
    }
    assert!(seen > 900, "{seen} modules were read");
    wrong.sort_unstable();
    assert_eq!(
        wrong, KNOWN_CIRCLES,
        "modules that name each other in a circle; move the items that both use to one below them"
    );
}

#[test]
fn sans_io_crates_use_no_file_thread_or_clock() {
    nothing_names(NO_IO, IO);
}

#[test]
fn state_machines_have_no_locks() {
    nothing_names(NO_LOCKS, LOCKS);
}

/// Checks that no source file of these crates, except tests, contains one of the words.
fn nothing_names(crates: &[&str], words: &[&str]) {
    let mut wrong = Vec::new();
    for room in rooms()
        .iter()
        .filter(|room| crates.contains(&room.name.as_str()))
    {
        for path in sources(&Path::new(&room.folder).join("src")).expect("sources") {
            let text = plain(&std::fs::read_to_string(&path).expect("a file"));
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            let found = words.iter().filter(|word| text.contains(**word));
            wrong.extend(found.map(|word| format!("{}: {word}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

//! Tests that run the guides of docs/howto literally: each command block is run at the host that it
//! names.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Barrier;

use common::networks::joined;
use common::{library, tied};

/// The command blocks of a page for one host, in the order of the page.
fn blocks(page: &str, host: &str) -> Vec<String> {
    let begin = format!("```sh {host}\n");
    let found = page.split(&begin).skip(1);
    found
        .map(|rest| rest.split("```").next().unwrap_or_default().to_owned())
        .collect()
}

/// Reads a page, and creates a directory with `anabranch` for its commands. Returns `None` with a
/// message if a requirement is missing.
fn prepare(page: &str, folder: &Path, needs: &[&str]) -> Option<String> {
    let library = library();
    // target/*/deps contains the tests, and target/* the programs.
    let command = library.parent()?.parent()?.join("anabranch");
    if !command.is_file() {
        eprintln!("left out: {} is not built", command.display());
        return None;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = |name: &&&str| std::env::split_paths(&path).any(|it| it.join(name).is_file());
    if let Some(missing) = needs.iter().find(|name| !there(name)) {
        eprintln!("left out: {missing} is not installed (scripts/setup)");
        return None;
    }
    symlink(command, folder.join("anabranch")).expect("a link");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/howto");
    Some(fs::read_to_string(root.join(page)).expect("the page is there"))
}

/// Runs a script in the network namespace of this thread, and passes each line of its output to
/// `each` until that returns true. Returns true if `each` has returned true, or if the script has
/// ended with success. Also returns all output.
fn run(folder: &Path, script: &str, mut each: impl FnMut(&str) -> bool) -> (bool, String) {
    let mut command = Command::new("bash");
    let others = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{others}", folder.display());
    command
        .args(["-ec", &format!("exec 2>&1\n{script}")])
        .current_dir(folder);
    let mut child = tied(&command)
        .env("PATH", path)
        .env("ANABRANCH_PRELOAD", library())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bash is there");
    let out = child.stdout.take().expect("a pipe");
    let mut said = String::new();
    for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        said.push_str(&line);
        said.push('\n');
        if each(&line) {
            // All processes that the script has started end with it.
            let _ = child.kill();
            let _ = child.wait();
            return (true, said);
        }
    }
    let status = child.wait().expect("it ended");
    (status.success(), said)
}

#[test]
fn sctp_in_a_container_without_the_module() {
    let folder = tempfile::tempdir().expect("a directory");
    let needs = ["iperf3", "checksctp", "sctp_darn"];
    let Some(page) = prepare("container.md", folder.path(), &needs) else {
        return;
    };
    let [server, client] = ["server", "client"].map(|host| blocks(&page, host));
    assert_eq!((server.len(), client.len()), (1, 4));
    let listening = Barrier::new(2);
    let said = joined(|side| {
        if side == 0 {
            let mut listens = false;
            let outcome = run(folder.path(), &server[0], |line| {
                if line.contains("Server listening") && !std::mem::replace(&mut listens, true) {
                    listening.wait();
                }
                false
            });
            if !listens {
                listening.wait();
            }
            return vec![outcome];
        }
        listening.wait();
        let each = client.iter();
        each.map(|block| run(folder.path(), block, |_| false))
            .collect()
    });
    let Some([server, client]) = said else { return };
    assert!(
        server[0].0 && server[0].1.contains("receiver"),
        "{server:?}"
    );
    assert_eq!(client[0], (true, "SCTP supported\n".to_owned()));
    assert!(
        client[1].0 && client[1].1.contains("iperf Done."),
        "{client:?}"
    );
    assert!(
        client[2].1.contains("sctp_darn ready to send"),
        "{client:?}"
    );
    let twice = "SCTP supported\n".repeat(2);
    assert_eq!(client[3], (true, twice));
}

/// Runs the scripts of two Diameter peers until both report an open connection.
fn opens(folders: [&Path; 2], scripts: &[String; 2]) {
    let opened = Barrier::new(2);
    let said = joined(|side| {
        let mut open = false;
        let outcome = run(folders[side], &scripts[side], |line| {
            open = line.contains("-> 'STATE_OPEN'");
            if open {
                // Each peer waits for the other before it ends.
                opened.wait();
            }
            open
        });
        if !open {
            opened.wait();
        }
        (open, outcome.1)
    });
    let Some(said) = said else { return };
    assert!(said.iter().all(|(open, _)| *open), "{said:?}");
}

#[test]
fn a_diameter_peer_behind_udp_encapsulation() {
    let folders = [0, 1].map(|_| tempfile::tempdir().expect("a directory"));
    let needs = ["freeDiameterd", "openssl"];
    let pages = folders
        .each_ref()
        .map(|it| prepare("diameter.md", it.path(), &needs));
    let [Some(page), Some(_)] = pages else {
        return;
    };
    let all = ["hss", "mme"].map(|host| blocks(&page, host));
    assert!(all.iter().all(|it| it.len() == 2));
    let scripts = all.map(|it| it.concat());
    opens(folders.each_ref().map(|it| it.path()), &scripts);
}

/// The peers open a connection only if each has a certificate with the name that the other expects.
#[test]
fn two_protected_diameter_peers() {
    let folder = tempfile::tempdir().expect("a directory");
    let needs = ["freeDiameterd", "openssl"];
    let Some(page) = prepare("diameter.md", folder.path(), &needs) else {
        return;
    };
    let [issue] = &blocks(&page, "issue")[..] else {
        panic!("one block issues the certificates");
    };
    // Both hosts have one directory, in place of copies.
    let (issued, said) = run(folder.path(), issue, |_| false);
    assert!(issued, "{said}");
    let scripts = ["hss", "mme"].map(|host| {
        let secure = blocks(&page, &format!("secure-{host}"));
        assert_eq!(secure.len(), 1);
        format!("{}{}", blocks(&page, host)[0], secure[0])
    });
    opens([folder.path(); 2], &scripts);
}

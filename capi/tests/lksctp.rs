//! Runs the functional tests of lksctp-tools. Debian's source package is downloaded when this test
//! runs, and is built with the header and library of this project.

mod common;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use common::{library, libsctp, run_with, text};

/// Version of Debian's package lksctp-tools.
const VERSION: &str = "1.0.19+dfsg-2";

/// Tests that are also built for IPv6.
const V6: [&str; 10] = [
    "test_basic",
    "test_sockopt",
    "test_fragments",
    "test_inaddr_any",
    "test_peeloff",
    "test_timetolive",
    "test_sctp_sendrecvmsg",
    "test_sctp_sendvrecvv",
    "test_getname",
    "test_tcp_style",
];

/// Tests that may fail; docs/SOCKETS.md explains the reasons.
const OTHERWISE: [&str; 4] = [
    "test_sctp_sendrecvmsg",
    "test_sctp_sendrecvmsg_v6",
    "test_timetolive",
    "test_timetolive_v6",
];

/// Tests that expect a message, or the end of an association, to be available when the sending call
/// returns, as it is on Linux's loopback interface. On this stack it arrives a moment later.
/// Therefore these tests are built with `pause.c`, which pauses after each call that sends.
const SYNCHRONOUS: [&str; 5] = [
    "test_1_to_1_nonblock",
    "test_assoc_abort",
    "test_assoc_shutdown",
    "test_peeloff",
    "test_peeloff_v6",
];
/// Linker option that adds the pause to each sending call that these tests use.
const WRAP: &str = "-Wl,--wrap=close,--wrap=connect,--wrap=sendmsg";
/// Pause of each attempt in milliseconds: the first suffices for an idle machine, the last for a
/// busy one. A test has at most 52 pauses; with the last value they take 104 s of [`LIMIT`].
const PAUSES: [u32; 5] = [10, 50, 200, 1000, 2000];

/// Number of tests that are built.
const ALL: usize = 43;
/// Timeout of a test, seconds. Two of the tests wait for several seconds.
const LIMIT: &str = "120";
/// Setting with which `malloc` fills memory with zeros, because one of the tests uses uninitialized
/// memory as an address.
const ZEROS: &str = "GLIBC_TUNABLES=glibc.malloc.perturb=255:glibc.malloc.tcache_count=0";
/// Number of tests that run at the same time. It does not depend on the number of processors,
/// because the tests mostly wait.
const THREADS: usize = 4;

fn tool(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Err(error) => Err(format!("{name}: {error}")),
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{name}: {}", text(&output).trim())),
    }
}

/// The entry of this system's package archive for source packages, in the format of /etc/apt.
fn sources() -> Result<String, String> {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let release = read(Path::new("/etc/os-release"));
    let codename = release
        .lines()
        .find_map(|it| it.strip_prefix("VERSION_CODENAME="));
    let codename = codename.ok_or("not Debian: /etc/os-release has no VERSION_CODENAME")?;
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    let parts = fs::read_dir("/etc/apt/sources.list.d")
        .into_iter()
        .flatten();
    files.extend(parts.flatten().map(|it| it.path()));
    let mut found = String::new();
    for file in files {
        let all = read(&file);
        match file.extension().and_then(|it| it.to_str()) {
            Some("sources") => {
                let stanzas = all.split("\n\n").filter(|it| it.contains(codename));
                found.extend(
                    stanzas.map(|it| it.replace("Types: deb\n", "Types: deb-src\n") + "\n\n"),
                );
            }
            Some("list") => {
                let lines = all.lines().filter(|it| it.contains(codename));
                let lines = lines.filter_map(|it| it.strip_prefix("deb "));
                found.extend(lines.map(|it| format!("deb-src {it}\n")));
            }
            _ => (),
        }
    }
    match found.contains("deb-src") {
        true => Ok(found),
        false => Err(format!("no package archive of {codename} in /etc/apt")),
    }
}

/// Path of the unpacked package. It is downloaded once for each target directory, with separate
/// package lists, so that the system is not changed.
fn package() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lksctp-tools-{VERSION}"));
    let unpacked = folder.join("unpacked");
    if unpacked.join("src/func_tests").is_dir() {
        return Ok(unpacked);
    }
    let sources = sources()?;
    let said = |error: std::io::Error| error.to_string();
    let fresh = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).map_err(said)?;
    let at = fresh.path();
    for part in [
        "parts",
        "lists/partial",
        "cache/archives/partial",
        "unpacked",
    ] {
        fs::create_dir_all(at.join(part)).map_err(said)?;
    }
    let name = if sources.contains("Types:") {
        "here.sources"
    } else {
        "here.list"
    };
    fs::write(at.join("parts").join(name), sources).map_err(said)?;
    let apt = |arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.current_dir(at)
            .args(["-qq", "-o", "APT::Sandbox::User=root"]);
        for (option, value) in [
            ("Dir::Etc::SourceList", "/dev/null".into()),
            ("Dir::Etc::SourceParts", at.join("parts")),
            ("Dir::State::Lists", at.join("lists")),
            ("Dir::Cache", at.join("cache")),
        ] {
            apt.arg("-o").arg(format!("{option}={}", value.display()));
        }
        tool(apt.args(arguments))
    };
    apt(&["update"])?;
    apt(&[
        "source",
        "--download-only",
        &format!("lksctp-tools={VERSION}"),
    ])?;
    let unpack = "tar -xf *.orig.tar.* --strip-components=1 -C unpacked";
    tool(Command::new("sh").current_dir(at).args(["-c", unpack]))?;
    // If another test has stored the package at the same time, the rename fails and its copy is
    // used.
    let _ = fs::create_dir_all(&folder);
    let _ = fs::rename(at.join("unpacked"), &unpacked);
    Ok(unpacked)
}

/// Builds all tests. Returns their names and paths.
fn build(package: &Path, into: &Path) -> Vec<(String, PathBuf)> {
    let header = into.join("netinet");
    fs::create_dir(&header).expect("a directory");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("libsctp/sctp.h");
    fs::copy(own, header.join("sctp.h")).expect("the header");
    let source = package.join("src");
    let tests = fs::read_dir(source.join("func_tests")).expect("the tests");
    let names = tests
        .flatten()
        .filter_map(|it| it.file_name().into_string().ok());
    let names = names.filter_map(|it| Some(it.strip_suffix(".c")?.to_owned()));
    let mut all: Vec<_> = names.map(|it| (it.clone(), it, &[][..])).collect();
    let v6 = V6.map(|it| (format!("{it}_v6"), it.to_owned(), &["-DTEST_V6=1"][..]));
    all.extend(v6);
    let built = |(name, file, arguments): (String, String, &[&str])| {
        let program = into.join(&name);
        let synchronous = SYNCHRONOUS.contains(&name.as_str());
        let pause = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pause.c");
        let pause = synchronous.then(|| [WRAP.into(), pause]);
        let cc = tool(
            Command::new("cc")
                .args(["-O2", "-fno-strict-aliasing", "-w", "-o"])
                .arg(&program)
                .arg("-I")
                .arg(into)
                .arg("-I")
                .arg(source.join("testlib"))
                .args(arguments)
                .arg(source.join(format!("func_tests/{file}.c")))
                .arg(source.join("testlib/sctputil.c"))
                .args(pause.into_iter().flatten())
                .arg(libsctp())
                .arg("-lpthread"),
        );
        cc.unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, program)
    };
    all.into_iter().map(built).collect()
}

#[test]
fn lksctp_tools_own_tests_end_well() {
    let package = match package() {
        Ok(package) => package,
        Err(reason) => {
            eprintln!("left out: the source package of lksctp-tools {VERSION}: {reason}");
            return;
        }
    };
    let folder = tempfile::tempdir().expect("a directory");
    let mut all = build(&package, folder.path());
    assert_eq!(all.len(), ALL);
    if TcpListener::bind("[::1]:0").is_err() {
        eprintln!("left out: those of IPv6, which is not there");
        all.retain(|(name, _)| !name.ends_with("_v6"));
    }
    all.retain(|(name, _)| !OTHERWISE.contains(&name.as_str()));
    let left = Mutex::new(all);
    let next = || left.lock().expect("no panic").pop();
    let wrong = Mutex::new(Vec::new());
    let work = || {
        while let Some((name, program)) = next() {
            let pauses = if SYNCHRONOUS.contains(&name.as_str()) {
                &PAUSES[..]
            } else {
                &[0]
            };
            let mut results = pauses.iter().map(|pause| {
                let mut command = Command::new("env");
                command.args([ZEROS, &format!("PAUSE={pause}")]);
                command.args(["timeout", "--signal=KILL", LIMIT]);
                run_with(command.arg(&program), &[library(), libsctp()])
            });
            let mut last = None;
            if results.any(|it| last.insert(it).status.success()) {
                continue;
            }
            let said = last.as_ref().map(text).unwrap_or_default();
            let end: Vec<_> = said.lines().rev().take(3).collect();
            wrong
                .lock()
                .expect("no panic")
                .push(format!("{name}: {end:?}"));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(work);
        }
    });
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

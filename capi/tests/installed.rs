//! Tests of an installation by `make dist` or the package, with which a C program is built.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{library, libsctp, run, text};

/// A program is compiled with the flags that pkg-config returns for the installed tree, which may
/// be at any location. The program should find its library there, and its SCTP sockets should work.
#[test]
fn a_program_is_built_with_the_installed_tree() {
    let folder = tempfile::tempdir().expect("a directory");
    let [libraries, prefix, moved] = ["built", "prefix", "moved"].map(|it| folder.path().join(it));
    fs::create_dir(&libraries).expect("a directory");
    for file in [library(), libsctp()] {
        let name = file.file_name().expect("a file");
        fs::copy(&file, libraries.join(name)).expect("a copy");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let installed = Command::new(root.join("../scripts/install-capi"))
        .args([&prefix, &libraries])
        .arg(env!("CARGO_PKG_VERSION"))
        .output()
        .expect("bash is there");
    assert!(installed.status.success(), "{}", text(&installed));
    fs::rename(&prefix, &moved).expect("it stands elsewhere");

    let asked = |what: &[&str]| {
        let output = Command::new("pkg-config")
            .args(what)
            .arg("libanabranch")
            .env("PKG_CONFIG_PATH", moved.join("lib/pkgconfig"))
            .output();
        let Ok(output) = output else {
            eprintln!("left out: pkg-config is not installed (scripts/setup)");
            return None;
        };
        assert!(output.status.success(), "{}", text(&output));
        Some(text(&output).trim().to_owned())
    };
    let Some(version) = asked(&["--modversion"]) else {
        return;
    };
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    let [cflags, libs] = [["--cflags"], ["--libs"]].map(|it| asked(&it).expect("it is there"));
    let program = folder.path().join("functions");
    // The compiler must use this project's header, not that of libsctp-dev.
    let compiled = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-H", "-o"])
        .args([&program, &root.join("tests/functions.c")])
        .args(cflags.split_whitespace().chain(libs.split_whitespace()))
        .output()
        .expect("cc is there");
    let said = text(&compiled);
    assert!(compiled.status.success(), "{said}");
    let header = "include/anabranch/netinet/sctp.h";
    assert!(said.contains(header), "{header} was not read: {said}");

    // cargo's library path is removed, because it would be searched before the program's.
    let mut command = Command::new("env");
    command.args(["-u", "LD_LIBRARY_PATH"]);
    let output = run(command.arg(&program).arg("5001"));
    let said = text(&output);
    let place = fs::canonicalize(moved.join("lib/anabranch/libsctp.so.1")).expect("a file");
    let found = said.lines().next().map(fs::canonicalize);
    assert!(
        found.is_some_and(|it| it.is_ok_and(|it| it == place)),
        "{said}"
    );
    assert!(said.ends_with("as it should be\n"), "{said}");
}

/// The manual pages should pass the checks of mandoc and groff, if these programs are installed.
#[test]
fn manual_pages_are_well_formed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("man");
    let pages = fs::read_dir(folder).expect("the pages are there");
    let mut count = 0;
    for page in pages.flatten().map(|it| it.path()) {
        count += 1;
        let page_text = fs::read_to_string(&page).expect("text");
        for section in [".TH ", ".SH NAME", ".SH DESCRIPTION", ".SH SEE ALSO"] {
            assert!(page_text.contains(section), "{}: {section}", page.display());
        }
        let output = Command::new("groff")
            .args(["-man", "-Tutf8", "-ww", "-z"])
            .arg(&page)
            .output();
        match output {
            Ok(output) => assert_eq!(text(&output), "", "{}", page.display()),
            Err(_) => eprintln!("groff is not installed: the requests are not checked"),
        }
    }
    assert_eq!(count, 2);
}

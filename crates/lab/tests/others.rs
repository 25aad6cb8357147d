//! Files of a results directory that another user has replaced.

use anabranch_lab::store::Store;

/// A replaced file must not block or crash this program.
#[cfg(unix)]
#[test]
fn a_manifest_that_is_no_regular_file_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let manifest = directory.path().join("manifest.json");
    for other in ["/dev/zero", "/dev/tty"] {
        std::os::unix::fs::symlink(other, &manifest).expect("a link");
        let error = Store::open(directory.path()).expect_err("no file");
        let said = error.to_string();
        assert!(said.contains("manifest.json"), "{said}");
        std::fs::remove_file(&manifest).expect("it is there");
    }
    let made = std::process::Command::new("mkfifo").arg(&manifest).status();
    if made.is_ok_and(|it| it.success()) {
        let error = Store::open(directory.path()).expect_err("no file");
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }
    let lock = directory.path().join("runs/.lock");
    std::fs::create_dir(directory.path().join("runs")).expect("a directory");
    std::os::unix::fs::symlink("../elsewhere", &lock).expect("a link");
    let error = Store::create(directory.path()).expect_err("a link");
    assert!(error.to_string().contains("it is a link"), "{error}");
    assert!(!directory.path().join("elsewhere").exists());
}

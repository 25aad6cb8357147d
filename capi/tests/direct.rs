//! Test of programs whose system calls bypass libc's functions.

mod common;

use std::process::Command;

use anabranch_sockets::host::BypassStatus;
use common::{compile_with, run_watched, text};

#[test]
fn the_function_for_system_calls_is_caught() {
    let folder = tempfile::tempdir().expect("a directory");
    let program = compile_with("direct", folder.path(), &[]);
    let (output, missed) = run_watched(Command::new(program).args(["function", "5601"]));
    assert_eq!(text(&output), "by the function\n");
    // Without permission for seccomp, the detection reports that it is not available.
    assert!(!matches!(missed, BypassStatus::Socket), "{missed:?}");
}

/// A call that bypasses the library should be refused and reported to the host, for static and
/// dynamic programs, and in any process.
#[test]
fn calls_that_no_library_sees_are_noticed() {
    let folder = tempfile::tempdir().expect("a directory");
    for arguments in [&["-static"][..], &[]] {
        let program = compile_with("direct", folder.path(), arguments);
        let script = format!("{} itself; echo $?", program.display());
        let (output, missed) = run_watched(Command::new("sh").args(["-c", &script]));
        let said = text(&output);
        if let BypassStatus::Undetectable(error) = missed {
            eprintln!("left out: seccomp: errno {error}");
            return;
        }
        assert_eq!(missed, BypassStatus::Socket, "{said}");
        assert_eq!(said, "itself: -38\n0\n", "ENOSYS");
    }
}

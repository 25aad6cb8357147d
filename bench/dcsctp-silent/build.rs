//! Build script that copies the source of the crate `dcsctp` from the cargo registry, with an empty
//! body of `log_packet`.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Start of the function whose body is removed.
const LOG: &str = "pub fn log_packet(name: &str, ts: SocketTime, sent: bool, data: &[u8]) {";

/// Replacements in the source, for a macro that the crate exports and uses by its path in the crate
/// root. The compiler rejects this in an included file, and the root of this crate includes that
/// source. Therefore the macro is not exported, and is used by the path of its module.
const MACRO: [(&str, &str); 2] = [
    ("#[macro_export]\n", ""),
    (
        "use crate::transition_between;",
        "use crate::socket::state::transition_between;",
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    let target = PathBuf::from(env::var("OUT_DIR")?);
    copy(&source_of("dcsctp")?, &target)?;
    let root = target.join("lib.rs");
    let whole = fs::read_to_string(&root)?;
    let (before, after) = whole.split_once(LOG).ok_or("dcsctp has no log_packet")?;
    let (_, after) = after
        .split_once("\n    }\n")
        .ok_or("log_packet does not end")?;
    fs::write(root, format!("{before}{LOG}}}\n{after}"))?;
    let state = target.join("socket/state.rs");
    let whole = fs::read_to_string(&state)?;
    fs::write(state, whole + "pub(crate) use transition_between;\n")?;
    Ok(())
}

/// Copies all files of a directory, with the replacements in [`MACRO`].
fn copy(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
            continue;
        }
        let mut text = fs::read_to_string(entry.path())?;
        for (old, new) in MACRO {
            text = text.replace(old, new);
        }
        fs::write(target, text)?;
    }
    Ok(())
}

/// Source directory of a dependency, as reported by `cargo metadata`. This command needs the
/// sources of all dependencies of the workspace. It fetches missing ones, because the build of a
/// single package fetches only the dependencies of that package.
fn source_of(name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let output = Command::new(env::var("CARGO")?)
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--filter-platform", &env::var("TARGET")?])
        .arg("--manifest-path")
        .arg(Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("Cargo.toml"))
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().ok_or("no packages")?;
    let manifest = packages
        .iter()
        .find(|package| package["name"] == name)
        .and_then(|package| package["manifest_path"].as_str())
        .ok_or("not among the packages")?;
    Ok(Path::new(manifest).with_file_name("src"))
}

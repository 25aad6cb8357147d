//! Builds the C library `libsctp.so.1`. The library is written in C because symbol versions need a
//! linker script, and Rust generates its own script for every library. It is placed next to the
//! library of this crate, in the directory that `anabranch wrap` searches for both.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const NAME: &str = "libsctp.so.1";

fn main() {
    println!("cargo::rerun-if-changed=libsctp");
    println!("cargo::rerun-if-env-changed=CC");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let library = out.join(NAME);
    // Rust uses the same program as its linker.
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let status = Command::new(&compiler)
        .args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"])
        .args(["-Wl,-soname,libsctp.so.1", "-Wl,-z,defs", "-Wl,-z,relro"])
        .arg("-Wl,--version-script=libsctp/libsctp.map")
        .arg("-o")
        .arg(&library)
        .arg("libsctp/libsctp.c")
        .status();
    match status {
        Ok(status) if status.success() => (),
        Ok(status) => panic!("{}: {status}", compiler.display()),
        Err(error) => panic!("{}: {error}; it builds {NAME}", compiler.display()),
    }
    // The output directory is target/PROFILE/build/anabranch-capi-HASH/out.
    let Some(profile) = out.ancestors().nth(3) else {
        return;
    };
    put(&library, profile);
}

/// Replaces the file atomically, because a program may be loading it at the same time.
fn put(library: &Path, folder: &Path) {
    let new = folder.join(format!("{NAME}.{}", std::process::id()));
    let done = fs::copy(library, &new).and_then(|_| fs::rename(&new, folder.join(NAME)));
    done.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
}

//! `wrap --secure`: protection of the program's associations by the DTLS chunk.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anabranch_net::sctp::Config;

use crate::failure::Failure;
use crate::net::auth_keys::{preshared, protect};
use crate::net::certificates::SecuritySettings;
use crate::net::wrap_arguments::Wrap;

/// Sets the key management that the options select.
pub fn secure(arguments: &Wrap, config: &mut Config) -> Result<(), Failure> {
    let usage = |what: String| Err(Failure::Usage(what));
    let certificates = &arguments.certificates;
    if certificates.is_rfc6083() {
        return usage(
            "--security rfc6083: found with wrap; allowed: dtls-chunk. A program that speaks RFC 6083 itself needs wrap --auth"
                .to_owned(),
        );
    }
    if !arguments.secure {
        let given = [
            ("--tls-cert", certificates.tls_cert.is_some()),
            ("--psk-file", arguments.psk_file.is_some()),
        ];
        return match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => usage(format!(
                "{option}: found without --secure, so that it would have no effect; add --secure"
            )),
            None => Ok(()),
        };
    }
    if arguments.auth {
        return usage(
            "--auth: found with --secure; use one of them. The DTLS chunk excludes AUTH (draft-ietf-tsvwg-sctp-dtls-chunk-04 §3.2), and so RFC 6083"
                .to_owned(),
        );
    }
    match (certificates.protection()?, &arguments.psk_file) {
        (Some(SecuritySettings::DtlsChunk(methods)), _) => protect(config, methods),
        (_, Some(file)) => preshared(Some(file), config)?,
        _ => {
            return usage(
                "--secure needs --tls-cert, --tls-key and --tls-ca, or --psk-file, which names the pre-shared secret"
                    .to_owned(),
            );
        }
    }
    Ok(())
}

/// How associations are protected, for a command that restarts the host, and for comparison with
/// the command whose host this command joins.
#[derive(Default)]
pub struct Protection {
    /// The options of the protection, with absolute paths; empty without `--secure`.
    pub words: Vec<OsString>,
    /// The options, each with the version of its file. Different options have different texts.
    pub text: String,
}

impl Protection {
    /// Should be called before the files are read: if one is replaced at the same time, its version
    /// is the older one, so that a host is never taken for one with the newer contents.
    pub fn of(arguments: &Wrap) -> Self {
        let mut protection = Self::default();
        if !arguments.secure {
            return protection;
        }
        let certificates = &arguments.certificates;
        protection.add("--secure".into(), None);
        let files = [
            ("--tls-cert", &certificates.tls_cert),
            ("--tls-key", &certificates.tls_key),
            ("--tls-ca", &certificates.tls_ca),
            ("--psk-file", &arguments.psk_file),
        ];
        for (option, file) in files {
            if let Some(file) = file {
                protection.add(with_path(option, file), Some(file));
            }
        }
        for fingerprint in &certificates.tls_fingerprint {
            protection.add(format!("--tls-fingerprint={fingerprint}").into(), None);
        }
        for name in &certificates.tls_name {
            protection.add(format!("--tls-name={name}").into(), None);
        }
        protection
    }

    fn add(&mut self, word: OsString, file: Option<&PathBuf>) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        // Escapes a backslash too, so that no other word has this text.
        let shown = word.as_encoded_bytes().escape_ascii().to_string();
        self.text.push_str(&shown.replace(' ', r"\x20"));
        if let Some(version) = file.and_then(|it| version(it)) {
            self.text.push_str(&version);
        }
        self.words.push(word);
    }
}

/// The version of a file: it differs after the file has been replaced or rewritten. This is no
/// digest of the contents, because the text is shown, and a secret may be short. `None` if there is
/// no such file, which is an error when it is read.
fn version(file: &Path) -> Option<String> {
    let known = std::fs::metadata(file).ok()?;
    Some(format!(
        " (file {}:{} of {} bytes, modified at {}.{:09})",
        known.dev(),
        known.ino(),
        known.len(),
        known.mtime(),
        known.mtime_nsec(),
    ))
}

/// An option with the absolute path of a file. The program may change its directory before it
/// restarts the host.
fn with_path(option: &str, file: &Path) -> OsString {
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let mut word = OsString::from(option);
    word.push("=");
    word.push(path);
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: &[&str]) -> String {
        let mut protection = Protection::default();
        for word in words {
            protection.add(word.into(), None);
        }
        protection.text
    }

    #[test]
    fn different_options_have_different_texts() {
        assert_eq!(
            text(&["--secure", "--psk-file=/psk"]),
            "--secure --psk-file=/psk"
        );
        let one = text(&["--tls-name=a --tls-name=b"]);
        assert_ne!(one, text(&["--tls-name=a", "--tls-name=b"]));
        assert_ne!(one, text(&[r"--tls-name=a\x20--tls-name=b"]));
    }

    #[test]
    fn a_replaced_file_has_another_version() {
        let directory = tempfile::tempdir().expect("a directory");
        let [file, other] = ["psk", "other"].map(|it| directory.path().join(it));
        for file in [&file, &other] {
            std::fs::write(file, "a secret of both ends").expect("a file");
        }
        let before = version(&file).expect("a file");
        assert_eq!(version(&file), Some(before.clone()));
        std::fs::rename(&other, &file).expect("a file");
        let renamed = version(&file).expect("a file");
        assert_ne!(renamed, before);
        std::fs::write(&file, "a longer secret of both ends").expect("a file");
        assert_ne!(version(&file), Some(renamed));
        assert_eq!(version(&other), None);
    }
}

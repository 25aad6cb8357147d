//! `wrap --secure`: protection of the program's associations by the DTLS chunk.

use std::ffi::OsString;
use std::path::Path;

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

/// The options of the protection, with absolute paths: for a command that restarts the host, and
/// for comparison with those of the command whose host this command joins.
pub fn words(arguments: &Wrap) -> Vec<OsString> {
    if !arguments.secure {
        return Vec::new();
    }
    let certificates = &arguments.certificates;
    let mut words: Vec<OsString> = vec!["--secure".into()];
    let files = [
        ("--tls-cert", &certificates.tls_cert),
        ("--tls-key", &certificates.tls_key),
        ("--tls-ca", &certificates.tls_ca),
        ("--psk-file", &arguments.psk_file),
    ];
    for (option, file) in files {
        if let Some(file) = file {
            words.push(with_path(option, file));
        }
    }
    for fingerprint in &certificates.tls_fingerprint {
        words.push(format!("--tls-fingerprint={fingerprint}").into());
    }
    for name in &certificates.tls_name {
        words.push(format!("--tls-name={name}").into());
    }
    words
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

//! Shared keys of authenticated chunks (RFC 4895), and the pre-shared secret of the DTLS chunk.
//! They are read from files, because other users can see the command line.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anabranch_net::SharedKeys;
use anabranch_net::sctp::dtls::preshared::PresharedSettings;
use anabranch_net::sctp::{Config, KeyMethods, Security};

use crate::failure::Failure;

/// Parses `ID=FILE` of --auth-key.
pub fn key(text: &str) -> Result<(u16, PathBuf), String> {
    let (id, file) = text
        .split_once('=')
        .ok_or_else(|| format!("found {text:?}; write ID=FILE: 1=shared.key"))?;
    let id = id
        .parse()
        .map_err(|_| format!("found {id:?} as the identifier; allowed: 0 to 65535"))?;
    if file.is_empty() {
        return Err(format!(
            "found {text:?}, which names no file; write ID=FILE: 1=shared.key"
        ));
    }
    Ok((id, file.into()))
}

/// Reads the keys that the command line names; the first one authenticates sent chunks. `None` if
/// there are none.
pub fn shared(named: &[(u16, PathBuf)]) -> Result<Option<SharedKeys>, Failure> {
    let mut keys: Option<SharedKeys> = None;
    for (at, (id, file)) in named.iter().enumerate() {
        if named[..at].iter().any(|(other, _)| other == id) {
            let what = format!("--auth-key: found identifier {id} twice; each key has its own");
            return Err(Failure::Usage(what));
        }
        let secret = secret_in(file, &format!("--auth-key {id}={}", file.display()))?;
        match &mut keys {
            None => keys = Some(SharedKeys::only(*id, secret)),
            Some(keys) => keys
                .set(*id, secret)
                .map_err(|error| Failure::Usage(format!("--auth-key {id}: {error}")))?,
        }
    }
    Ok(keys)
}

/// Reads a file of at most `most` bytes; `option` is named in errors.
pub(super) fn content(file: &Path, option: &str, most: u64) -> Result<Vec<u8>, Failure> {
    let failed = |error| Failure::Usage(format!("{option}: cannot read the file: {error}"));
    let mut content = Vec::new();
    // Limited to one byte more than allowed, because the file may be an endless device.
    let mut opened = File::open(file).map_err(failed)?.take(most + 1);
    opened.read_to_end(&mut content).map_err(failed)?;
    if content.len() as u64 > most {
        let what = format!("{option}: found more than {most} bytes");
        return Err(Failure::Usage(what));
    }
    Ok(content)
}

/// Reads a file, without a line break at its end.
fn secret_in(file: &Path, option: &str) -> Result<Vec<u8>, Failure> {
    let mut secret = content(file, option, MAX_SECRET)?;
    if secret.last() == Some(&b'\n') {
        secret.pop();
        secret.pop_if(|last| *last == b'\r');
    }
    Ok(secret)
}

/// Maximum size of a file with a secret, bytes.
const MAX_SECRET: u64 = 65_536;
/// Minimum size of a pre-shared secret, bytes.
const MIN_SECRET: usize = 16;

/// Sets the pre-shared secret of the DTLS chunk from `file`. Without a file the DTLS chunk must be
/// off, because it has no keys.
pub fn preshared(file: Option<&PathBuf>, config: &mut Config) -> Result<(), Failure> {
    let Some(file) = file else {
        return match config.security {
            Security::Off => Ok(()),
            _ => Err(Failure::Usage(
                "--set security needs --psk-file, which names the pre-shared secret, or --tls-cert, --tls-key and --tls-ca"
                    .to_owned(),
            )),
        };
    };
    let name = file.display();
    let secret = secret_in(file, &format!("--psk-file {name}"))?;
    if secret.len() < MIN_SECRET {
        let found = secret.len();
        let what = format!("--psk-file {name}: found {found} bytes; allowed: {MIN_SECRET} or more");
        return Err(Failure::Usage(what));
    }
    protect(
        config,
        KeyMethods::preshared(PresharedSettings::new(&secret)),
    );
    Ok(())
}

/// Sets the key management of the DTLS chunk. Unless the settings allow otherwise, peers without
/// the DTLS chunk are refused.
pub fn protect(config: &mut Config, methods: KeyMethods) {
    if config.security == Security::Off {
        config.security = Security::DtlsChunk;
    }
    config.key_methods = methods;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_an_identifier_and_a_file() {
        assert_eq!(key("7=a=b"), Ok((7, "a=b".into())));
        for wrong in ["7", "=x", "65536=x", "-1=x", "7="] {
            assert!(key(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_secret_is_long_enough_and_selects_the_dtls_chunk() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("psk");
        let mut config = Config::default();
        std::fs::write(&file, "0123456789abcde\n").expect("written");
        assert!(preshared(Some(&file), &mut config).is_err(), "15 bytes");
        std::fs::write(&file, "0123456789abcdef\r\n").expect("written");
        assert!(preshared(Some(&file), &mut config).is_ok());
        assert_eq!(config.security, Security::DtlsChunk);
        let mut loose = Config::default().with(|it| it.security = Security::DtlsChunkLoose);
        assert!(preshared(None, &mut loose).is_err(), "there is no secret");
        assert!(preshared(Some(&file), &mut loose).is_ok());
        assert_eq!(loose.security, Security::DtlsChunkLoose);
        let none = folder.path().join("none");
        assert!(preshared(Some(&none), &mut config).is_err());
        std::fs::write(&file, vec![b'x'; 65_537]).expect("written");
        assert!(preshared(Some(&file), &mut config).is_err(), "65,537 bytes");
        assert!(shared(&[(1, file)]).is_err());
    }
}

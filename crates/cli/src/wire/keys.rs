//! Shared keys of authenticated chunks (RFC 4895), from files: what stands on a command line is no secret.

use std::path::PathBuf;

use anabranch_net::SharedKeys;

use crate::failure::Failure;

/// Reads `ID=FILE`.
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

/// The keys that were named; the first signs. `None`: none was.
pub fn shared(named: &[(u16, PathBuf)]) -> Result<Option<SharedKeys>, Failure> {
    let mut keys: Option<SharedKeys> = None;
    for (at, (id, file)) in named.iter().enumerate() {
        if named[..at].iter().any(|(other, _)| other == id) {
            let what = format!("--auth-key: found identifier {id} twice; each key has its own");
            return Err(Failure::Asked(what));
        }
        let secret = std::fs::read(file).map_err(|error| {
            let file = file.display();
            Failure::Asked(format!(
                "--auth-key {id}={file}: cannot read the file: {error}"
            ))
        })?;
        let secret = secret.strip_suffix(b"\n").unwrap_or(&secret);
        let secret = secret.strip_suffix(b"\r").unwrap_or(secret).to_vec();
        match &mut keys {
            None => keys = Some(SharedKeys::only(*id, secret)),
            Some(keys) => keys
                .set(*id, secret)
                .map_err(|error| Failure::Asked(format!("--auth-key {id}: {error}")))?,
        }
    }
    Ok(keys)
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
}

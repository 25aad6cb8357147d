//! Values from the system's source of randomness.

use crate::error::BindError;

/// The first dynamic port, and the number of dynamic ports (RFC 6335 §6).
const FIRST_DYNAMIC_PORT: u16 = 49_152;
const DYNAMIC_PORTS: u16 = 16_384;

/// A secret of 32 random bytes.
pub(crate) fn secret() -> Result<[u8; 32], BindError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| BindError::Random(error.to_string()))?;
    Ok(seed)
}

/// A random number from 0 to 1, or 0 if the system provides no random bytes.
pub(crate) fn fraction() -> f64 {
    let mut bytes = [0; 4];
    match getrandom::fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 0.0,
    }
}

/// A free port of the dynamic range (RFC 6335 §6: 49,152 to 65,535), or `None` if no port is free:
/// the first free port after a random port (RFC 6056 §3.3.1). Other hosts behind the same address
/// cannot guess the next port, and two processes do not try the same sequence of ports.
///
/// # Errors
/// The system provides no random bytes.
pub fn dynamic_port(is_free: impl Fn(u16) -> bool) -> Result<Option<u16>, BindError> {
    let [high, low, ..] = secret()?;
    let begin = u16::from_be_bytes([high, low]) % DYNAMIC_PORTS;
    let mut ports = (0..DYNAMIC_PORTS).map(|it| FIRST_DYNAMIC_PORT + (begin + it) % DYNAMIC_PORTS);
    Ok(ports.find(|&port| is_free(port)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ports_are_drawn_from_all_that_are_free() {
        let mut taken = BTreeSet::new();
        let mut turns = 0;
        let mut last = 0;
        while let Some(port) = dynamic_port(|port| !taken.contains(&port)).expect("random bytes") {
            assert!(port >= FIRST_DYNAMIC_PORT && taken.insert(port));
            turns += usize::from(port < last);
            last = port;
        }
        assert_eq!(taken.len(), usize::from(DYNAMIC_PORTS));
        // Random selection returns a smaller port than before in about half of the calls; a counter
        // would do so at most once.
        assert!(turns > 1_000, "{turns}");
    }
}

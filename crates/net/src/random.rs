//! What is drawn from the system's source of randomness.

use crate::error::BindError;

/// The first dynamic port (RFC 6335 §6).
const FIRST_FREE_PORT: u16 = 49_152;

/// 32 bytes that nobody can guess.
pub(crate) fn secret() -> Result<[u8; 32], BindError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| BindError::Random(error.to_string()))?;
    Ok(seed)
}

/// A port at random from the dynamic range (RFC 6335 §6): 49,152 to 65,535.
pub(crate) fn any_port() -> Result<u16, BindError> {
    let [high, low, ..] = secret()?;
    let free = u16::MAX - FIRST_FREE_PORT;
    Ok(FIRST_FREE_PORT + u16::from_be_bytes([high, low]) % (free + 1))
}

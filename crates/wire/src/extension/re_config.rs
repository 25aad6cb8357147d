//! RE-CONFIG (RFC 6525 §3.1).

use bytes::BytesMut;

use super::re_config_parameter::ReConfigParameter;
use super::{chunk_len, put_chunk};
use crate::chunk::kind;
use crate::encode::Encode;
use crate::packet::RawChunk;
use crate::tlv::{TlvError, TlvList};

/// Reconfigures streams. The chunk contains one parameter, or one of the pairs that RFC 6525
/// allows.
///
/// RFC 6525 §3.1:
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |   Type = 130  |     Flags     |             Length            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                   Re-configuration Parameter                  |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |             Re-configuration Parameter (optional)             |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReConfig {
    /// Parameters, decoded during iteration.
    pub parameters: TlvList<ReConfigParameter>,
}

/// Reason why the parameters of a RE-CONFIG must not be processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Combination {
    /// A parameter cannot be decoded.
    #[error("RE-CONFIG: {0}")]
    Malformed(TlvError),
    /// The chunk has no parameter.
    #[error("RE-CONFIG without a parameter")]
    Empty,
    /// The chunk has more than two parameters.
    #[error("RE-CONFIG of more than two parameters")]
    TooMany,
    /// The two parameters must not be combined (RFC 6525 §3.1).
    #[error("RE-CONFIG of parameters {first} and {second}, which do not go together")]
    Pair {
        /// Type of the first parameter.
        first: u16,
        /// Type of the second parameter.
        second: u16,
    },
}

impl ReConfig {
    /// Decodes a chunk of type RE-CONFIG. Errors in the parameters are found only by iterating over
    /// them.
    pub fn decode(raw: RawChunk) -> Self {
        Self {
            parameters: TlvList::from_bytes(raw.into_value()),
        }
    }

    /// Returns the one or two parameters if RFC 6525 §3.1 allows them in one chunk. The order of a
    /// pair does not matter.
    ///
    /// # Errors
    /// The parameters are malformed, or their number or combination is not allowed.
    pub fn combination(
        &self,
    ) -> Result<(ReConfigParameter, Option<ReConfigParameter>), Combination> {
        let mut parameters = self.parameters.iter();
        let first = parameters.next().ok_or(Combination::Empty)?;
        let first = first.map_err(Combination::Malformed)?;
        let second = parameters.next().transpose();
        let second = second.map_err(Combination::Malformed)?;
        if parameters.next().is_some() {
            return Err(Combination::TooMany);
        }
        if let Some(second) = &second
            && !go_together(&first, second)
        {
            return Err(Combination::Pair {
                first: first.kind(),
                second: second.kind(),
            });
        }
        Ok((first, second))
    }
}

/// Whether RFC 6525 §3.1 allows this pair: both kinds of stream reset, both kinds of added streams,
/// a response with an outgoing reset, or two responses.
fn go_together(first: &ReConfigParameter, second: &ReConfigParameter) -> bool {
    use crate::parameter::kind::{
        ADD_INCOMING_STREAMS, ADD_OUTGOING_STREAMS, INCOMING_SSN_RESET, OUTGOING_SSN_RESET,
        RE_CONFIG_RESPONSE,
    };
    let (low, high) = (
        first.kind().min(second.kind()),
        first.kind().max(second.kind()),
    );
    matches!(
        (low, high),
        (OUTGOING_SSN_RESET, INCOMING_SSN_RESET)
            | (ADD_OUTGOING_STREAMS, ADD_INCOMING_STREAMS)
            | (OUTGOING_SSN_RESET, RE_CONFIG_RESPONSE)
            | (RE_CONFIG_RESPONSE, RE_CONFIG_RESPONSE)
    )
}

impl Encode for ReConfig {
    fn encoded_len(&self) -> usize {
        chunk_len(0, self.parameters.as_bytes())
    }

    fn encode(&self, out: &mut BytesMut) {
        put_chunk(kind::RE_CONFIG, &[], self.parameters.as_bytes(), out);
    }
}

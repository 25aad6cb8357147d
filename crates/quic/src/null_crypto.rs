//! Null cryptography: a handshake with the flights and approximate lengths of TLS 1.3 but without
//! secrets, and keys that only detect damage.
//!
//! There are four messages: the Client Hello, the Server Hello, a message that stands for Encrypted
//! Extensions, Certificate, Certificate Verify and Finished of the server, and the Finished of the
//! client. The first and the third carry the transport parameters, as in TLS. Each packet has
//! checksums in place of the 16-byte tag that encryption would add.

use std::any::Any;
use std::io::Cursor;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey,
    ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};

/// Lengths of the messages without transport parameters, for X25519, AES-128-GCM and a chain of two
/// ECDSA certificates.
const CLIENT_HELLO: usize = 230;
const SERVER_HELLO: usize = 122;
const SERVER_FLIGHT: usize = 2_000;
const FINISHED: usize = 36;
/// Length of the header of each message. The header contains the length of the message and the
/// length of its parameters.
const HEAD: usize = 4;

/// Number of bytes that AES-128-GCM adds to a packet (RFC 9001 §5.3), and length of the header
/// protection sample (§5.4.2).
const TAG: usize = 16;
/// Number of packets after which keys must be updated (RFC 9001 §6.6).
const PACKETS_OF_A_KEY: u64 = 1 << 23;
/// Number of damaged packets after which a connection must be closed (RFC 9001 §6.6).
const DAMAGED: u64 = 1 << 52;

/// Cryptographic configuration of both ends.
pub(crate) struct NullCrypto;

impl ClientConfig for NullCrypto {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(Handshake::new(Side::Client, parameters)))
    }
}

impl ServerConfig for NullCrypto {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        tag(0, packet, &[])
    }

    fn start_session(
        self: Arc<Self>,
        _: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn Session> {
        Box::new(Handshake::new(Side::Server, parameters))
    }
}

/// Next message of the handshake, from the point of view of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The client sends its hello, or the server waits for that hello.
    Hello,
    /// The server sends its hello and then the remaining messages of its flight; the client waits
    /// for both.
    ServerHello,
    ServerFlight,
    /// The client sends its Finished, or the server waits for it.
    Finished,
    Done,
}

/// Handshake state of one end.
struct Handshake {
    side: Side,
    own: Vec<u8>,
    peer: Option<TransportParameters>,
    stage: Stage,
    /// Whether the client already uses the keys for the packets after the Server Hello.
    upgraded: bool,
    /// Received beginning of a message that is not complete yet.
    read: Vec<u8>,
}

impl Handshake {
    fn new(side: Side, parameters: &TransportParameters) -> Self {
        let mut own = Vec::new();
        parameters.write(&mut own);
        Self {
            side,
            own,
            peer: None,
            stage: Stage::Hello,
            upgraded: false,
            read: Vec::new(),
        }
    }

    /// Appends a message of `length` bytes without its parameters, and then the parameters.
    fn write(out: &mut Vec<u8>, length: usize, parameters: &[u8]) {
        let all = length + parameters.len();
        out.extend_from_slice(&(all as u16).to_be_bytes());
        out.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
        out.extend_from_slice(parameters);
        out.resize(out.len() + length - HEAD, 0);
    }

    /// Removes the next message, and returns its parameters; `None` if it is not complete yet.
    fn next(&mut self) -> Option<Vec<u8>> {
        let &[a, b, c, d] = self.read.first_chunk::<HEAD>()?;
        let all = usize::from(u16::from_be_bytes([a, b])).max(HEAD);
        let parameters = usize::from(u16::from_be_bytes([c, d])).min(all - HEAD);
        if self.read.len() < all {
            return None;
        }
        let message: Vec<u8> = self.read.drain(..all).collect();
        Some(message[HEAD..HEAD + parameters].to_vec())
    }

    fn take(&mut self, parameters: &[u8]) -> Result<(), TransportError> {
        let read = TransportParameters::read(self.side, &mut Cursor::new(parameters));
        self.peer = Some(read?);
        Ok(())
    }
}

impl Session for Handshake {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.peer.is_some().then(|| Box::new(()) as Box<dyn Any>)
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        match self.side {
            Side::Client => !matches!(self.stage, Stage::Finished | Stage::Done),
            Side::Server => self.stage != Stage::Done,
        }
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.read.extend_from_slice(bytes);
        let mut known = false;
        while let Some(parameters) = self.next() {
            let (next, has_parameters) = match (self.side, self.stage) {
                (Side::Server, Stage::Hello) => (Stage::ServerHello, true),
                (Side::Client, Stage::ServerHello) => (Stage::ServerFlight, false),
                (Side::Client, Stage::ServerFlight) => (Stage::Finished, true),
                (Side::Server, Stage::Finished) => (Stage::Done, false),
                _ => {
                    // A handshake message out of order.
                    return Err(TransportErrorCode::PROTOCOL_VIOLATION.into());
                }
            };
            if has_parameters {
                self.take(&parameters)?;
                known = true;
            }
            self.stage = next;
        }
        Ok(known)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        match (self.side, self.stage) {
            (Side::Client, Stage::Hello) => {
                Self::write(out, CLIENT_HELLO, &self.own);
                self.stage = Stage::ServerHello;
                None
            }
            // The client has received the Server Hello. The messages after it use other keys.
            (Side::Client, Stage::ServerFlight) if !self.upgraded => {
                self.upgraded = true;
                Some(keys())
            }
            (Side::Client, Stage::Finished) => {
                Self::write(out, FINISHED, &[]);
                self.stage = Stage::Done;
                Some(keys())
            }
            (Side::Server, Stage::ServerHello) => {
                Self::write(out, SERVER_HELLO, &[]);
                self.stage = Stage::ServerFlight;
                Some(keys())
            }
            (Side::Server, Stage::ServerFlight) => {
                Self::write(out, SERVER_FLIGHT, &self.own);
                self.stage = Stage::Finished;
                Some(keys())
            }
            _ => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(keys().packet)
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

/// A key without any protection.
struct NoKey;

fn keys() -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(NoKey),
            remote: Box::new(NoKey),
        },
        packet: KeyPair {
            local: Box::new(NoKey),
            remote: Box::new(NoKey),
        },
    }
}

/// Replacement for the tag of a packet: checksums of its header and body, and its number.
fn tag(number: u64, header: &[u8], body: &[u8]) -> [u8; TAG] {
    let mut tag = [0; TAG];
    let words = [header, body].map(crc_fast::crc32_iscsi);
    for (place, word) in tag.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    tag[8..].copy_from_slice(&number.to_be_bytes());
    tag
}

impl HeaderKey for NoKey {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

impl PacketKey for NoKey {
    fn encrypt(&self, number: u64, packet: &mut [u8], header: usize) {
        let Some((protected, room)) = packet.split_last_chunk_mut::<TAG>() else {
            return;
        };
        let (header, body) = protected.split_at(header.min(protected.len()));
        *room = tag(number, header, body);
    }

    fn decrypt(
        &self,
        number: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let (body, found) = payload.split_last_chunk::<TAG>().ok_or(CryptoError)?;
        if *found != tag(number, header, body) {
            return Err(CryptoError);
        }
        let length = body.len();
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        PACKETS_OF_A_KEY
    }

    fn integrity_limit(&self) -> u64 {
        DAMAGED
    }
}

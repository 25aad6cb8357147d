//! Hand-made peer of endpoint Z, which can send arbitrary chunks from any address.

use super::*;
use anabranch_wire::chunk::{CookieEcho, Init};
use anabranch_wire::parameter::{Parameter, Parameters};
use anabranch_wire::serial::Tsn;

/// First TSN of every caller.
pub const CALLERS_TSN: u32 = 1_000;

/// Hand-made peer with an association to Z.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    pub at: IpAddr,
    /// Verification tags of packets to Z and of packets to the caller.
    pub to_z: u32,
    pub own: u32,
}

/// INIT with this tag and these addresses.
pub fn init_of(tag: u32, listed: &[IpAddr]) -> Chunk {
    let listed: Vec<_> = listed.iter().copied().map(Parameter::address).collect();
    Chunk::Init(Init {
        initiate_tag: tag,
        a_rwnd: 65_536,
        outbound_streams: 10,
        inbound_streams: 10,
        initial_tsn: Tsn(CALLERS_TSN),
        parameters: Parameters::of(&listed),
    })
}

/// Tag and cookie of an INIT ACK.
pub fn cookie_of(init_ack: &Bytes) -> (u32, Bytes) {
    let Chunk::InitAck(ack) = chunks_of(init_ack).remove(0) else {
        panic!("{}", describe(init_ack));
    };
    let cookie = ack.parameters.iter().flatten().find_map(|it| match it {
        Parameter::StateCookie(cookie) => Some(cookie),
        _ => None,
    });
    (ack.initiate_tag, cookie.expect("an INIT ACK has a cookie"))
}

/// Delivers chunks to Z from address `at`. Returns all packets that Z then sends to `at`.
pub fn say_from(world: &mut World, at: IpAddr, tag: u32, chunks: &[&Chunk]) -> Vec<Shot> {
    let before = world.shots.len();
    let path = Path::new(address(Z, 0), at);
    world.inject_from(Z, path, packet(A, tag, chunks));
    let said = world.shots[before..].iter();
    said.filter(|shot| shot.from == Z && shot.path.remote == at)
        .cloned()
        .collect()
}

/// Sends the INIT of a caller at `at`, and returns the answers of Z.
pub fn ask(world: &mut World, at: IpAddr, tag: u32, listed: &[IpAddr]) -> Vec<Shot> {
    say_from(world, at, 0, &[&init_of(tag, listed)])
}

impl Caller {
    /// Performs the complete handshake from `at`; `None` if Z refuses.
    pub fn call(world: &mut World, at: IpAddr, own: u32, listed: &[IpAddr]) -> Option<Self> {
        let answers = ask(world, at, own, listed);
        let ack = answers.iter().find(|shot| shot.chunks == "INIT ACK")?;
        let (to_z, cookie) = cookie_of(&ack.bytes);
        let echo = Chunk::CookieEcho(CookieEcho { cookie });
        let answers = say_from(world, at, to_z, &[&echo]);
        let up = answers
            .iter()
            .any(|shot| shot.chunks.starts_with("COOKIE ACK"));
        up.then_some(Self { at, to_z, own })
    }

    /// Delivers `chunks` to Z, and returns the packets that Z sends to the caller.
    pub fn say(&self, world: &mut World, chunks: &[&Chunk]) -> Vec<Shot> {
        say_from(world, self.at, self.to_z, chunks)
    }

    /// This caller, sending from another of its addresses.
    pub fn moved(self, at: IpAddr) -> Self {
        Self { at, ..self }
    }
}

/// Complete message on stream 0 with stream sequence number `number`.
pub fn message_of(number: u16, text: &'static [u8]) -> Chunk {
    Chunk::Data(anabranch_wire::chunk::Data {
        tsn: Tsn(CALLERS_TSN + u32::from(number)),
        stream_id: 0,
        ssn: anabranch_wire::serial::Ssn(number),
        ppid: 0,
        unordered: false,
        beginning: true,
        ending: true,
        immediate: false,
        user_data: Bytes::from_static(text),
    })
}

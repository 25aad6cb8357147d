//! Random attacks: legitimate traffic that leads to a random state, then repeated packets of
//! arbitrary chunks.

use anabranch_sctp::config::SchedulerKind;
use anabranch_sctp::{Config, Reconfiguration, SendOptions};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::kind;
use bytes::Bytes;

use super::states::*;
use super::victim::*;

/// Number of packets per attack.
const AT_RANDOM: u32 = 40;

/// Random number generator with a given seed.
pub struct Draws(u64);

impl Draws {
    pub fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as u32 % n.max(1)
    }

    pub fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    /// Random size up to `most`, with small and large orders of magnitude equally likely.
    pub fn size(&mut self, most: u32) -> u32 {
        let bits = self.below(most.ilog2() + 2);
        (1 + self.below(1 << bits.min(31))).min(most)
    }
}

/// Random traffic, and the peer's knowledge of the association.
struct Place {
    draws: Draws,
    victim: Victim,
    interleaves: bool,
    changes: bool,
    /// Offset of the next TSN that the peer has not sent yet.
    next: u32,
    /// Numbers of the next RE-CONFIG request and of the next ASCONF.
    request: u32,
    serial: u32,
    streams: u32,
}

fn configured(draws: &mut Draws) -> (Victim, bool, bool) {
    let interleaves = draws.one_in(3);
    let changes = draws.one_in(3);
    let reconfigures = !draws.one_in(4);
    let gives_up = !draws.one_in(4);
    let mut chunks = Vec::new();
    if gives_up {
        chunks.push(kind::FORWARD_TSN);
    }
    if reconfigures {
        chunks.push(RE_CONFIG);
    }
    if interleaves {
        chunks.extend([kind::I_DATA, kind::I_FORWARD_TSN]);
    }
    if changes {
        chunks.extend([kind::ASCONF, kind::ASCONF_ACK]);
    }
    let mut parameters = match gives_up {
        true => offer(&chunks),
        false => parameter(0x8008, &chunks),
    };
    if draws.one_in(3) {
        parameters.extend(parameter(0x8000, &[]));
    }
    if draws.one_in(3) {
        let count = draws.size(100);
        parameters.extend((0..count).flat_map(|at| parameter(5, &address_of(at))));
    }
    let coin = |draws: &mut Draws| draws.one_in(3);
    let change = |it: &mut Config| {
        it.interleaving = interleaves;
        it.profile.asconf_without_auth = changes;
        it.address_changes = changes;
        it.rack = coin(draws);
        it.cmt = draws.one_in(5);
        it.profile.ecn = coin(draws);
        it.proportional_rate_reduction = coin(draws);
        it.undo_spurious_reductions = coin(draws);
        it.frto = coin(draws);
        it.pack_messages = coin(draws);
        it.partial_delivery_point = coin(draws).then_some(1 + draws.below(3_000) as usize);
        it.scheduler = SchedulerKind::ALL[draws.below(SchedulerKind::ALL.len() as u32) as usize];
        if coin(draws) {
            it.receive_buffer = 1 << 20;
        }
    };
    (Victim::new(&parameters, change), interleaves, changes)
}

impl Place {
    fn stream(&mut self) -> u16 {
        let streams = self.streams;
        self.draws.below(streams) as u16
    }

    /// DATA, or I-DATA if interleaving was negotiated.
    fn user_data(&mut self, offset: u32, number: u32, flags: &str, length: usize) -> Vec<u8> {
        let stream = self.stream();
        if self.interleaves {
            let piece = if flags.contains('B') {
                0
            } else {
                1 + self.draws.below(50)
            };
            return i_data(offset, stream, (number, piece), flags);
        }
        sized_data(offset, stream, number as u16, flags, length)
    }

    fn flags(&mut self) -> &'static str {
        const FLAGS: [&str; 8] = ["BE", "BE", "BE", "BEU", "B", "", "E", "BU"];
        FLAGS[self.draws.below(8) as usize]
    }

    /// Performs one random step of legitimate traffic.
    fn happens(&mut self) {
        self.streams = match self.draws.below(4) {
            0 => 1,
            1 => self.draws.size(100),
            _ => self.draws.size(60_000),
        };
        match self.draws.below(16) {
            0..3 => self.hears_data(),
            3 => self.hears_gaps(),
            4..7 => self.sends(),
            7 => self.queues(),
            8 => {
                let span = [MILLISECOND * 300, SECOND, 5 * SECOND];
                let span = span[self.draws.below(3) as usize];
                self.victim.waits(span);
            }
            9 => self.asks_resets(),
            10 => {
                let to = FIRST.wrapping_add(self.next + self.draws.size(5_000));
                let streams = self.listed(600);
                let request = outgoing_reset(self.request, to, &streams);
                self.request += 1;
                self.victim.says(&request);
            }
            11 => {
                let up_to = self.acknowledgeable();
                let up_to = self.victim.acknowledged + self.draws.below(1 + up_to);
                let sack = self.victim.sack(up_to, &[], &[]);
                self.victim.acknowledged = up_to;
                self.victim.says(&sack);
            }
            12 => {
                let blocks = self.blocks();
                let sack = self.victim.sack(self.victim.acknowledged, &blocks, &[]);
                self.victim.says(&sack);
            }
            13 => {
                let streams = self.listed(200);
                let now = self.victim.now;
                let which = self.draws.below(5);
                let it = self.victim.association();
                let _ = match which {
                    0 => it.reconfigure(0, &Reconfiguration::reset_outgoing(&streams[..])),
                    1 => it.reconfigure(0, &Reconfiguration::request_incoming_reset(&streams[..])),
                    2 => it.reconfigure(now, &Reconfiguration::ResetAssociation),
                    3 => it.reconfigure(0, &Reconfiguration::add_streams(1, 1)),
                    _ => Ok(()),
                };
                self.victim.goes_out();
            }
            14 if self.draws.one_in(4) => {
                let now = self.victim.now;
                let _ = self.victim.association().shutdown(now, None);
                self.victim.goes_out();
            }
            _ => {
                let chunks = self.chunks(1_480);
                self.victim.says(&chunks);
            }
        }
    }

    fn acknowledgeable(&self) -> u32 {
        let sent = self
            .victim
            .highest
            .wrapping_sub(self.victim.origin)
            .wrapping_add(1);
        sent.wrapping_sub(self.victim.acknowledged)
    }

    fn hears_data(&mut self) {
        let count = self.draws.size(20_000);
        let begin = self.next + u32::from(self.draws.one_in(2));
        let flags = self.flags();
        let step = 1 + self.draws.below(2);
        let first = self.draws.below(3);
        let streams = self.streams;
        let mut all = Vec::new();
        for at in 0..count {
            let number = first + at / streams;
            let stream = (at % streams) as u16;
            let tsn = begin + step * at;
            all.push(match self.interleaves {
                true => i_data(
                    tsn,
                    stream,
                    (number, u32::from(!flags.contains('B'))),
                    flags,
                ),
                false => data(tsn, stream, number as u16, flags),
            });
        }
        self.next = begin + step * count;
        self.victim.says_all(all.into_iter());
    }

    fn hears_gaps(&mut self) {
        let count = self.draws.size(10_000);
        let mut all = Vec::new();
        for at in 0..count {
            let flags = self.flags();
            all.push(self.user_data(self.next + 1 + 2 * at, at, flags, 1));
        }
        self.next += 1 + 2 * count;
        self.victim.says_all(all.into_iter());
    }

    fn options(&mut self) -> SendOptions {
        let mut options = SendOptions::default();
        match self.draws.below(6) {
            0 => options = options.with_max_retransmits(Some(0)),
            1 => options = options.with_lifetime(Some(SECOND)),
            2 => options = options.with_priority(Some(self.draws.below(10))),
            3 => options.unordered = true,
            _ => {}
        }
        options
    }

    fn sends(&mut self) {
        let options = self.options();
        let count = self.draws.size(12_000);
        let length = if self.draws.one_in(4) { 3_000 } else { 1 };
        let before = self.acknowledgeable();
        for _ in 0..20 {
            for at in 0..2_000 {
                let stream = at % self.streams;
                if !self.victim.sends(stream as u16, length, &options) {
                    break;
                }
            }
            self.victim.goes_out();
            if self.acknowledgeable() >= before + count {
                return;
            }
            if before == 0 {
                let sent = self.victim.acknowledged + self.acknowledgeable();
                self.victim.acknowledged = sent;
                let sack = self.victim.sack(sent, &[], &[]);
                self.victim.says(&sack);
            }
        }
    }

    fn queues(&mut self) {
        let options = self.options();
        let length = if self.draws.one_in(4) { 100_000 } else { 1 };
        for at in 0..self.draws.size(20_000) {
            let stream = at % self.streams;
            self.victim.sends(stream as u16, length, &options);
        }
    }

    fn asks_resets(&mut self) {
        for _ in 0..self.draws.size(2_000) {
            let stream = self.stream();
            let request = reset(true, self.request, &[stream]);
            self.request += 1;
            self.victim.says(&request);
        }
    }

    fn listed(&mut self, most: u32) -> Vec<u16> {
        let count = self.draws.below(most);
        let step = 1 + self.draws.below(4);
        let first = self.stream();
        (0..count)
            .map(|at| first.wrapping_add((step * at) as u16))
            .collect()
    }

    fn blocks(&mut self) -> Vec<(u16, u16)> {
        let most = self.acknowledgeable().min(60_000);
        let count = self.draws.size(360);
        let step = 2 + self.draws.size(1 + most / count.max(1));
        let first = 2 + self.draws.below(step);
        let blocks = (0..count).map(|at| first + at * step);
        let wide = self.draws.below(step - 1);
        blocks
            .take_while(|it| it + wide <= most)
            .map(|it| (it as u16, (it + wide) as u16))
            .collect()
    }

    /// Offset of a random TSN from the first TSN.
    fn tsn(&mut self) -> u32 {
        match self.draws.below(4) {
            0 => self.draws.below(self.next + 1),
            1 => {
                self.next += 1;
                self.next - 1
            }
            2 => self.next.saturating_sub(self.draws.size(1_000)),
            _ => {
                self.next += 1 + self.draws.size(60);
                self.next
            }
        }
    }

    /// Random chunks of one or several types, at most `room` bytes in total.
    fn chunks(&mut self, room: usize) -> Vec<u8> {
        let mut all = Vec::new();
        let kinds: Vec<u32> = (0..1 + self.draws.below(3))
            .map(|_| self.draws.below(27))
            .collect();
        let few = self.draws.one_in(3);
        let turns = if few { 1 } else { 400 };
        let [same, often] = [3, 2].map(|it| self.draws.one_in(it));
        let same = kinds.len() == 1 && same && often;
        'all: for at in 0..turns {
            for kind in &kinds {
                let chunk = self.chunk(*kind, at, room - all.len());
                let first = all.get(2..4).filter(|_| same);
                let chunk = match first {
                    Some(length) => {
                        let length = u16::from_be_bytes([length[0], length[1]]);
                        all[..usize::from(length).next_multiple_of(4)].to_vec()
                    }
                    None => chunk,
                };
                if all.len() + chunk.len() > room {
                    break 'all;
                }
                all.extend(chunk);
            }
        }
        all
    }

    fn chunk(&mut self, which: u32, at: u32, room: usize) -> Vec<u8> {
        let before = self
            .victim
            .origin
            .wrapping_sub(1)
            .wrapping_add(self.victim.acknowledged);
        match which {
            0..4 => {
                let (tsn, flags) = (self.tsn(), self.flags());
                let number = self.draws.size(3_000) - 1;
                let length = if self.draws.one_in(30) { 1_000 } else { 1 };
                self.user_data(tsn, number, flags, length.min(room.max(40) - 30))
            }
            4..6 => {
                let blocks = self.blocks();
                let up_to = match self.draws.below(3) {
                    0 => self.acknowledgeable().min(1),
                    1 => self.draws.below(1 + self.acknowledgeable().min(100)),
                    _ => 0,
                };
                self.victim.acknowledged += up_to;
                let duplicates: Vec<u32> = match self.draws.one_in(3) {
                    true => (0..self.draws.below(300))
                        .map(|at| self.victim.origin.wrapping_add(at))
                        .collect(),
                    false => vec![],
                };
                let most = room.saturating_sub(40) / 4;
                let blocks = &blocks[..blocks.len().min(most)];
                let left = most - blocks.len();
                let duplicates = &duplicates[..duplicates.len().min(left)];
                self.victim
                    .sack(self.victim.acknowledged, blocks, duplicates)
            }
            6 | 7 => {
                let to = match self.draws.below(3) {
                    0 => self.next + at,
                    1 => self.next.saturating_sub(self.draws.size(20_000)),
                    _ => self.draws.below(self.next + 1),
                };
                self.next = self.next.max(to + 1);
                let most = room.saturating_sub(30) as u32 / 8;
                let count = if self.draws.one_in(2) {
                    0
                } else {
                    self.draws.below(most.max(1))
                };
                if self.interleaves {
                    let skipped: Vec<_> = (0..count)
                        .map(|_| (self.stream(), self.draws.one_in(2), self.draws.size(3_000)))
                        .collect();
                    return i_forward_tsn(to, &skipped);
                }
                let skipped: Vec<_> = (0..count)
                    .map(|_| (self.stream(), self.draws.size(3_000) as u16))
                    .collect();
                forward_tsn(to, &skipped)
            }
            8..12 => self.re_config(room),
            12 => chunk(
                kind::HEARTBEAT,
                0,
                &parameter(1, &vec![0; self.draws.below(100) as usize]),
            ),
            13 => chunk(
                kind::HEARTBEAT_ACK,
                0,
                &parameter(1, &vec![0; self.draws.below(100) as usize]),
            ),
            14 => {
                let cause = [
                    parameter(99, &[]),
                    parameter(8, &parameter(0x8008, &[1])),
                    parameter(1, &[0; 4]),
                    parameter(3, &[0; 4]),
                    parameter(6, &[RE_CONFIG, 0, 0, 4]),
                ];
                let cause = &cause[self.draws.below(5) as usize];
                let most = (room.saturating_sub(8) / cause.len()).max(1) as u32;
                chunk(
                    kind::ERROR,
                    0,
                    &cause.repeat(1 + self.draws.below(most) as usize),
                )
            }
            15 if self.draws.one_in(4) => chunk(
                kind::SHUTDOWN,
                0,
                &before.wrapping_add(self.draws.below(3)).to_be_bytes(),
            ),
            16 => body(kind::COOKIE_ACK, 0),
            17 => body(kind::COOKIE_ECHO, self.draws.below(300) as usize),
            18 => chunk(
                kind::ECNE,
                0,
                &before.wrapping_add(self.draws.below(1_000)).to_be_bytes(),
            ),
            19 => chunk(kind::CWR, 0, &FIRST.wrapping_add(self.next).to_be_bytes()),
            20 if self.changes => {
                let parameters: Vec<u8> = (0..1 + self.draws.below(10))
                    .flat_map(|it| {
                        let kind =
                            [0xC001, 0xC001, 0xC002, 0xC002, 0xC004][self.draws.below(5) as usize];
                        let address = address_of(self.draws.below(40));
                        asked(kind, it, address)
                    })
                    .collect();
                self.serial += 1;
                let parameters =
                    &parameters[..parameters.len().min(room.saturating_sub(40) / 16 * 16)];
                asconf(
                    self.serial - 1 - u32::from(self.draws.one_in(3) && self.serial > 1),
                    parameters,
                )
            }
            21 => chunk(
                kind::ASCONF_ACK,
                0,
                &self.victim.origin.wrapping_sub(1).to_be_bytes(),
            ),
            22 => body(kind::PAD, self.draws.below(20) as usize),
            23 => body(0xFE, self.draws.below(20) as usize),
            24 => body(0xBE, self.draws.below(20) as usize),
            25 => body(kind::AUTH, 24),
            _ => self.user_data(self.next, 0, "BE", 1),
        }
    }

    fn re_config(&mut self, room: usize) -> Vec<u8> {
        let most = room.saturating_sub(40) as u32 / 2;
        let most = if self.draws.one_in(2) { 2 } else { most.max(1) };
        let streams = self.listed(most);
        if !self.draws.one_in(6) {
            self.request += 1;
        }
        let number = self.request.saturating_sub(1);
        let value = FIRST.wrapping_add(number).to_be_bytes();
        match self.draws.below(9) {
            0..3 => {
                let to = FIRST.wrapping_add(self.next.saturating_sub(self.draws.size(20_000)));
                outgoing_reset(number, to, &streams)
            }
            3..6 => reset(true, number, &streams),
            6 => chunk(RE_CONFIG, 0, &parameter(15, &value)),
            7 => {
                let kind = 17 + self.draws.below(2) as u16;
                chunk(
                    RE_CONFIG,
                    0,
                    &parameter(
                        kind,
                        &[value, [0, self.draws.below(2) as u8, 0, 0]].concat(),
                    ),
                )
            }
            _ => {
                let ours = self
                    .victim
                    .origin
                    .wrapping_add(self.draws.below(3))
                    .to_be_bytes();
                let result = self.draws.below(7).to_be_bytes();
                chunk(RE_CONFIG, 0, &parameter(16, &[ours, result].concat()))
            }
        }
    }
}

fn outgoing_reset(number: u32, last_tsn: u32, streams: &[u16]) -> Vec<u8> {
    let mut value = Vec::new();
    value.extend(FIRST.wrapping_add(number).to_be_bytes());
    value.extend([0; 4]);
    value.extend(last_tsn.to_be_bytes());
    streams.iter().for_each(|it| value.extend(it.to_be_bytes()));
    chunk(RE_CONFIG, 0, &parameter(13, &value))
}

/// Random attack determined by `seed`.
pub fn attack(seed: u64) -> (Victim, Vec<Bytes>) {
    let mut draws = Draws(seed.wrapping_mul(0xD134_2543_DE82_EF95));
    let (victim, interleaves, changes) = configured(&mut draws);
    let mut place = Place {
        draws,
        victim,
        interleaves,
        changes,
        next: 0,
        request: 0,
        serial: 0,
        streams: 1,
    };
    for _ in 0..1 + place.draws.below(6) {
        if place.victim.still_lives().is_ok() {
            place.happens();
        }
    }
    let lives = place.victim.still_lives().is_ok();
    let mut packets = Vec::new();
    for _ in 0..if lives { AT_RANDOM } else { 0 } {
        let room = if place.draws.one_in(4) { 60 } else { 1_480 };
        let chunks = place.chunks(room);
        packets.push(packet(place.victim.tag, &chunks));
    }
    let mut victim = place.victim;
    victim.may_end = true;
    (victim, packets)
}

//! Many associations of this stack between a server and clients, of which only a few transfer data
//! at a time.

use std::collections::VecDeque;
use std::error::Error;
use std::hint::black_box;
use std::net::IpAddr;
use std::time::Duration;

use anabranch_sctp::{AssociationId, AssociationState, Endpoint, SendOptions};
use anabranch_transport::time::MILLISECOND;
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use bytes::{Bytes, BytesMut};
use cpu_time::ThreadTime;

use super::many::resident;
use super::ours::config;
use super::{Conditions, Score};

/// Number of messages that an association transfers in one turn, which does not depend on the
/// number of associations.
pub const EACH: usize = 40;
/// Maximum number of associations that transfer data at the same time.
const AT_WORK: usize = 50;
/// Number of cache lines of the two ends of an association that are accessed in a turn, measured as
/// misses in a cache of 2 MiB by `callgrind --cache-sim=yes`.
const LINES: usize = 76;
/// Range of memory in which these cache lines are, bytes.
const SPREAD: usize = 16 * 1024;
const LINE: usize = 64;
const PORT: u16 = 5000;
const SERVER: [u8; 4] = [10, 255, 255, 254];

/// Associations of one endpoint with many clients. Each client has its own port and address.
struct Crowd {
    server: Endpoint,
    clients: Vec<(Endpoint, AssociationId, Path)>,
    /// Identifier of each client's association at the server.
    accepted: Vec<AssociationId>,
    now: Nanos,
    out: BytesMut,
    score: Score,
}

/// Sends messages from a server to `many` clients. A turn is the transfer of [`EACH`] messages to
/// one client, so its work does not depend on the number of associations. `warm_up` and `long` are
/// processor time; the warm-up lasts until every client had at least two turns, and the measurement
/// until every client had at least one.
///
/// # Errors
/// An association was not established, or a message was lost.
pub fn race(
    conditions: &Conditions,
    many: usize,
    warm_up: Duration,
    long: Duration,
) -> Result<Score, Box<dyn Error>> {
    let mut crowd = Crowd::new(conditions, many)?;
    let payload = Bytes::from(vec![0x5a; conditions.message]);
    // After its second turn, an association has allocated all the memory that it needs.
    crowd.run(&payload, warm_up, 2 * many)?;
    crowd.score = Score::default();
    crowd.run(&payload, long, many)?;
    Ok(crowd.score)
}

/// Like [`race`], for a number of turns instead of a duration, for counting instructions.
///
/// # Errors
/// The errors of [`race`].
pub fn work(conditions: &Conditions, many: usize, turns: usize) -> Result<(), Box<dyn Error>> {
    let mut crowd = Crowd::new(conditions, many)?;
    let payload = Bytes::from(vec![0x5a; conditions.message]);
    crowd.run(&payload, Duration::ZERO, turns)
}

/// Memory per idle association, bytes, if an endpoint has `many` of them. Includes the client's end
/// and endpoint.
///
/// # Errors
/// The errors of [`race`].
pub fn idle(conditions: &Conditions, many: usize) -> Result<f64, Box<dyn Error>> {
    let before = resident()?;
    let crowd = Crowd::new(conditions, many)?;
    let after = resident()?;
    Ok((after - before) as f64 / crowd.accepted.len() as f64)
}

/// Processor time per message for accessing memory alone, seconds: a loop that changes a number in
/// each cache line of an association, association by association, for `long`.
pub fn floor(many: usize, long: Duration) -> f64 {
    let mut memory = vec![0_u8; many * SPREAD];
    // A first pass allocates the pages and fills the caches, as a round would.
    touch(&mut memory);
    let rounds = 1_000_usize.div_ceil(many);
    let begin = ThreadTime::now();
    let mut turns = 0;
    while turns == 0 || begin.elapsed() < long {
        (0..rounds).for_each(|_| touch(&mut memory));
        turns += rounds * many;
    }
    begin.elapsed().as_secs_f64() / (turns * EACH) as f64
}

fn touch(memory: &mut [u8]) {
    for state in memory.chunks_exact_mut(SPREAD) {
        for line in 0..LINES {
            // The order cannot be predicted by a prefetcher.
            let place = (line * 29 % LINES) * (SPREAD / LINE / LINES) * LINE;
            state[place] = state[place].wrapping_add(1);
        }
        black_box(&mut state[0]);
    }
}

fn address_of(client: usize) -> IpAddr {
    let [_, _, high, low] = (client as u32 + 1).to_be_bytes();
    [10, 0, high, low].into()
}

impl Crowd {
    fn new(conditions: &Conditions, many: usize) -> Result<Self, Box<dyn Error>> {
        // The settings contain no addresses, so that all clients can share them. Each client uses
        // the destination address of the packets that it receives.
        let settings = config(conditions, true).checked()?;
        let mut server = Endpoint::with_shared_config(settings.clone(), PORT, [1; 32]);
        server.listen(true);
        let mut crowd = Self {
            server,
            clients: Vec::with_capacity(many),
            accepted: Vec::with_capacity(many),
            now: 0,
            out: BytesMut::with_capacity(64 * 1024),
            score: Score::default(),
        };
        for number in 0..many {
            let address = address_of(number);
            let mut client = Endpoint::with_shared_config(settings.clone(), PORT, [2; 32]);
            let id = client.connect(0, &[SERVER.into()], PORT)?;
            let path = Path::new(address, SERVER.into());
            crowd.clients.push((client, id, path));
            let got = crowd.settle(number..number + 1);
            let newest = crowd.server.associations().nth(number);
            let up = |id: &AssociationId| {
                let association = crowd.server.association(*id);
                association
                    .is_some_and(|association| association.state() == AssociationState::Established)
            };
            let id = newest.filter(up).ok_or("an association does not come up")?;
            crowd.accepted.push(id);
            if got > 0 {
                return Err("a message before any was sent".into());
            }
        }
        Ok(crowd)
    }

    /// Transfers packets between the server and these clients until no more are sent; returns the
    /// number of messages that were read.
    fn settle(&mut self, clients: std::ops::Range<usize>) -> u64 {
        let mut messages = 0;
        let mut wire: VecDeque<(usize, Bytes)> = VecDeque::new();
        loop {
            for number in clients.clone() {
                let (client, id, path) = &mut self.clients[number];
                while client.poll_transmit(self.now, &mut self.out).is_some() {
                    let datagram = self.out.split().freeze();
                    self.server
                        .handle_datagram(self.now, path.reversed(), Ecn::NotEct, datagram);
                    self.score.packets += 1;
                }
                while client.poll_event().is_some() {}
                let association = client.association_mut(*id);
                if let Some(association) = association {
                    while let Some(message) = association.poll_message() {
                        messages += 1;
                        self.score.bytes += message.payload.len() as u64;
                    }
                }
            }
            while let Some(transmit) = self.server.poll_transmit(self.now, &mut self.out) {
                let number = match transmit.path.remote {
                    IpAddr::V4(address) => address.to_bits() as usize & 0xFFFF,
                    IpAddr::V6(_) => 0,
                };
                wire.push_back((number.wrapping_sub(1), self.out.split().freeze()));
            }
            while self.server.poll_event().is_some() {}
            if wire.is_empty() {
                return messages;
            }
            for (number, datagram) in wire.drain(..) {
                self.score.packets += 1;
                if let Some((client, _, path)) = self.clients.get_mut(number) {
                    client.handle_datagram(self.now, *path, Ecn::NotEct, datagram);
                }
            }
        }
    }

    /// Runs turns of associations, one group after the other, until the processor time is used and
    /// at least `least` turns were made.
    fn run(&mut self, payload: &Bytes, long: Duration, least: usize) -> Result<(), Box<dyn Error>> {
        let many = self.clients.len();
        let at_work = many.min(AT_WORK);
        let begin = ThreadTime::now();
        let (mut first, mut turns) = (0, 0);
        // The clock is read after a fixed number of turns, so that its cost is the same in each
        // row.
        while turns % AT_WORK > 0 || turns < least || begin.elapsed() < long {
            let turn = first..(first + at_work).min(many);
            turns += turn.len();
            self.now += MILLISECOND;
            self.expire(turn.clone());
            let mut given = 0;
            for &id in &self.accepted[turn.clone()] {
                let association = self.server.association_mut(id).ok_or("gone")?;
                for _ in 0..EACH {
                    association.send(self.now, payload.clone(), &SendOptions::new())?;
                    given += 1;
                }
            }
            self.score.outstanding = self.score.outstanding.max(given as usize);
            let got = self.settle(turn.clone());
            if got != given {
                return Err(format!("{got} of {given} messages came").into());
            }
            self.score.messages += got;
            first = if turn.end == many { 0 } else { turn.end };
        }
        self.score.cpu = begin.elapsed().as_secs_f64();
        Ok(())
    }

    fn expire(&mut self, clients: std::ops::Range<usize>) {
        let now = self.now;
        let due = |at: Option<Nanos>| at.is_some_and(|at| at <= now);
        if due(self.server.poll_timeout()) {
            self.server.handle_timeout(now);
        }
        for (client, ..) in &mut self.clients[clients] {
            if due(client.poll_timeout()) {
                client.handle_timeout(now);
            }
        }
    }
}

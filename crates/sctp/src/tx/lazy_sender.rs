//! Sender of an association that is created on first use, because many associations never send a
//! message.

use std::ops::RangeInclusive;

use anabranch_transport::{Nanos, Trace};
use anabranch_wire::Tsn;

use super::optional_recovery::OptionalRecovery;
use super::{Sender, SenderComponents, T3Outcome};
use crate::config::Config;
use crate::path::{PathId, Paths};
use crate::stats::SenderStatistics;
use crate::stream_allocation::AllocationKind;

/// A [`Sender`], or the parameters to create it. Before its creation, all queries are answered as
/// if the sender had no data to send.
#[derive(Debug, Default)]
pub(crate) struct LazySender {
    made: Option<Box<Sender>>,
    /// Results of the handshake, stored until the sender is created: the peer's window in bytes,
    /// and the number of negotiated streams. 0 before the handshake.
    a_rwnd: u32,
    streams: u16,
    /// Properties that are checked for each packet: whether messages are interleaved, and whether
    /// they may be abandoned.
    interleaving: bool,
    gives_up: bool,
}

impl LazySender {
    /// Sender for these settings. It is created immediately if it can act before the first message
    /// (several paths in use, an adaptive number of streams), or uses optional recovery algorithms
    /// ([`OptionalRecovery`]).
    #[inline(always)] // for each association a call and copies less
    pub(crate) fn new(config: &Config, initial_tsn: Tsn) -> Self {
        Self {
            made: (!may_wait(config)).then(|| made(config, initial_tsn)),
            a_rwnd: 0,
            streams: 0,
            interleaving: false,
            gives_up: false,
        }
    }

    /// The sender, if it was created.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&Sender> {
        self.made.as_deref()
    }

    /// Mutable access to the sender, if it was created.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self) -> Option<&mut Sender> {
        self.made.as_deref_mut()
    }

    /// The sender, created if necessary. `config` and `initial_tsn` are those of the association.
    #[inline(always)]
    pub(crate) fn make(&mut self, config: &Config, initial_tsn: Tsn) -> &mut Sender {
        let (a_rwnd, streams) = (self.a_rwnd, self.streams);
        let begin = || begun(config, initial_tsn, a_rwnd, streams);
        self.made.get_or_insert_with(begin)
    }

    /// Like [`Sender::set_peer`].
    pub(crate) fn set_peer(&mut self, a_rwnd: u32, outbound_streams: u16) -> usize {
        if let Some(sender) = &mut self.made {
            return sender.set_peer(a_rwnd, outbound_streams);
        }
        (self.a_rwnd, self.streams) = (a_rwnd, outbound_streams);
        0
    }

    /// Applies the negotiated interleaving and partial reliability. If one of these extensions was
    /// negotiated, the sender is created now.
    pub(crate) fn speak(
        &mut self,
        config: &Config,
        initial_tsn: Tsn,
        interleaving: bool,
        gives_up: bool,
    ) {
        if interleaving || gives_up || self.made.is_some() {
            self.speak_from_now_on(config, initial_tsn, interleaving, gives_up);
        }
    }

    #[inline(never)]
    fn speak_from_now_on(
        &mut self,
        config: &Config,
        initial_tsn: Tsn,
        interleaving: bool,
        gives_up: bool,
    ) {
        let sender = self.make(config, initial_tsn);
        sender.set_interleaving(interleaving);
        sender.set_partial_reliability(gives_up);
        self.interleaving = sender.is_interleaving();
        self.gives_up = gives_up;
    }

    /// Like [`Sender::wants_to_send`].
    #[inline(always)]
    pub(crate) fn wants_to_send(&self, now: Nanos, paths: &Paths) -> Option<PathId> {
        self.get()?.wants_to_send(now, paths)
    }

    /// Like [`Sender::taken_out`]. Has no effect before the sender is created.
    #[inline(always)]
    pub(crate) fn taken_out(&mut self) {
        if let Some(sender) = &mut self.made {
            sender.taken_out();
        }
    }

    /// Like [`Sender::is_partially_reliable`].
    #[inline(always)]
    pub(crate) fn is_partially_reliable(&self) -> bool {
        self.gives_up
    }

    /// Like [`Sender::is_interleaving`].
    #[inline(always)]
    pub(crate) fn is_interleaving(&self) -> bool {
        self.interleaving
    }

    /// Like [`Sender::forward_due`].
    #[inline(always)]
    pub(crate) fn forward_due(&self) -> bool {
        self.gives_up && self.get().is_some_and(Sender::forward_due)
    }

    /// Like [`Sender::waits_for_room`].
    #[inline(always)]
    pub(crate) fn waits_for_room(&self, paths: &Paths) -> bool {
        self.get().is_some_and(|it| it.waits_for_room(paths))
    }

    /// Like [`Sender::is_drained`].
    pub(crate) fn is_drained(&self) -> bool {
        self.get().is_none_or(Sender::is_drained)
    }

    /// Like [`Sender::take_stream_limit_met`].
    pub(crate) fn take_stream_limit_met(&mut self) -> Option<u16> {
        self.get_mut()?.take_stream_limit_met()
    }

    /// Like [`Sender::has_news`].
    #[inline(always)]
    pub(crate) fn has_news(&self) -> bool {
        self.get().is_some_and(Sender::has_news)
    }

    /// Like [`Sender::streams_in_use`]; before the sender is created, all streams.
    pub(crate) fn streams_in_use(&self) -> u16 {
        match self.get() {
            Some(sender) => sender.streams_in_use(),
            None => self.streams.max(1),
        }
    }

    /// Like [`Sender::advertised_rwnd`].
    pub(crate) fn advertised_rwnd(&self) -> u64 {
        self.get()
            .map_or(self.a_rwnd.into(), Sender::advertised_rwnd)
    }

    /// Like [`Sender::peer_rwnd`].
    pub(crate) fn peer_rwnd(&self) -> u64 {
        self.get().map_or(self.a_rwnd.into(), Sender::peer_rwnd)
    }

    /// Like [`Sender::most_user_data`].
    pub(crate) fn most_user_data(&self, paths: &Paths) -> usize {
        self.get()
            .map_or(paths.max_user_data(), |it| it.most_user_data(paths))
    }

    /// Like [`Sender::held`].
    pub(crate) fn held(&self) -> usize {
        self.get().map_or(0, Sender::held)
    }

    /// Like [`Sender::statistics`].
    pub(crate) fn statistics(&self) -> SenderStatistics {
        self.get().map(Sender::statistics).unwrap_or_default()
    }

    /// Like [`Sender::next_deadline`].
    pub(crate) fn next_deadline(&self, paths: &Paths) -> Option<Nanos> {
        self.get()?.next_deadline(paths)
    }

    /// Like [`Sender::streams_deadline`].
    pub(crate) fn streams_deadline(&self) -> Option<Nanos> {
        self.get()?.streams_deadline()
    }

    /// Like [`Sender::pacing_deadline`].
    pub(crate) fn pacing_deadline(&self, paths: &Paths) -> Option<Nanos> {
        self.get()?.pacing_deadline(paths)
    }

    /// Like [`Sender::plain_deadline`].
    #[inline(always)]
    pub(crate) fn plain_deadline(&self, paths: &Paths) -> Option<Nanos> {
        match self.get() {
            Some(sender) => sender.plain_deadline(paths),
            None => Some(Nanos::MAX),
        }
    }

    /// Like [`Sender::handle_t3`]. Before data was sent, no T3-rtx is running.
    pub(crate) fn handle_t3(
        &mut self,
        now: Nanos,
        id: PathId,
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> T3Outcome {
        match self.get_mut() {
            Some(sender) => sender.handle_t3(now, id, paths, trace),
            None => T3Outcome::Nothing,
        }
    }

    /// Like [`Sender::lose_path`].
    pub(crate) fn lose_path(
        &mut self,
        now: Nanos,
        id: PathId,
        paths: &mut Paths,
        trace: &mut Trace,
    ) {
        if let Some(sender) = self.get_mut() {
            sender.lose_path(now, id, paths, trace);
        }
    }

    /// Like [`Sender::any_arrived`].
    pub(crate) fn any_arrived(&self, tsns: &[Tsn]) -> bool {
        self.get().is_some_and(|it| it.any_arrived(tsns))
    }

    /// Like [`Sender::unacknowledged_on`].
    pub(crate) fn unacknowledged_on(
        &self,
        id: PathId,
        from: Option<Tsn>,
        sizes: RangeInclusive<usize>,
    ) -> Vec<Tsn> {
        match self.get() {
            Some(sender) => sender.unacknowledged_on(id, from, sizes),
            None => Vec::new(),
        }
    }

    /// Like [`Sender::drops_probe`].
    pub(crate) fn drops_probe(&mut self) -> bool {
        self.get_mut().is_some_and(Sender::drops_probe)
    }
}

/// Whether the sender can be created later, for the first message.
#[inline(always)]
fn may_wait(config: &Config) -> bool {
    #[cfg(test)]
    if tests::EARLY.get() {
        return false;
    }
    matches!(config.stream_allocation, AllocationKind::Negotiated)
        && !config.cmt
        && !OptionalRecovery::is_wanted(config)
}

/// Creates the sender. Before the handshake, `streams` is 0.
#[cold]
#[inline(never)]
fn begun(config: &Config, initial_tsn: Tsn, a_rwnd: u32, streams: u16) -> Box<Sender> {
    let mut sender = made(config, initial_tsn);
    if streams > 0 {
        sender.set_peer(a_rwnd, streams);
    }
    sender
}

fn made(config: &Config, initial_tsn: Tsn) -> Box<Sender> {
    let components = SenderComponents::of(config);
    // Everything that can fail is done, so the sender can be built in place, without a move.
    let block = Box::new_uninit();
    let mut sender = Box::write(block, Sender::with(config, initial_tsn, components));
    sender.set_up(config);
    sender
}

#[cfg(test)]
pub(crate) use tests::EARLY;

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::VecDeque;
    use std::net::IpAddr;

    use anabranch_transport::time::MILLISECOND;
    use anabranch_transport::{Ecn, Path, Transport};
    use bytes::{Bytes, BytesMut};
    use rand_core::{RngCore, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::{AssociationId, Endpoint, SendOptions};

    const PORT: u16 = 5_000;

    thread_local! {
        /// Test switch: creates every sender and receiver immediately.
        pub(crate) static EARLY: Cell<bool> = const { Cell::new(false) };
    }

    /// Two endpoints, packets in flight to each of them, and observed events.
    struct World {
        now: Nanos,
        ends: [Endpoint; 2],
        wires: [VecDeque<(Nanos, Bytes)>; 2],
        random: Pcg64Mcg,
        seen: Vec<String>,
    }

    impl World {
        fn new(seed: u64) -> Self {
            let config = Self::config(seed);
            let end = |seed| Endpoint::new(config.clone(), PORT, [seed; 32]).expect("settings");
            let mut ends = [end(1), end(2)];
            ends[1].listen(true);
            ends[0].connect(0, &[address(1)], PORT).expect("free");
            Self {
                now: 0,
                ends,
                wires: Default::default(),
                random: Pcg64Mcg::seed_from_u64(seed),
                seen: Vec::new(),
            }
        }

        fn config(seed: u64) -> Config {
            Config::default().with(|it| {
                it.partial_reliability = seed % 4 == 1;
                it.interleaving = seed % 4 == 2;
                it.pacing = (seed % 8 == 3).then_some(1.25);
                it.receive_buffer = if seed.is_multiple_of(3) {
                    4_000
                } else {
                    60_000
                };
                it.reconfiguration = seed % 16 == 5;
            })
        }

        /// The first endpoint loses its state and connects again.
        fn restart(&mut self, seed: u64) {
            let mut end = Endpoint::new(Self::config(seed), PORT, [3; 32]).expect("settings");
            end.connect(self.now, &[address(1)], PORT).expect("free");
            self.ends[0] = end;
        }

        /// The user of the second endpoint reduces the SACK delay.
        fn hurry(&mut self) {
            if let Some(id) = self.id(1)
                && let Some(association) = self.ends[1].association_mut(id)
            {
                let settings = association.settings();
                let sooner = settings.with(|it| it.sack_delay = 20 * MILLISECOND);
                let set = association.set_settings(sooner);
                self.seen.push(format!("1 hurries: {set:?}"));
            }
        }

        fn draw(&mut self, below: u64) -> u64 {
            self.random.next_u64() % below
        }

        fn id(&self, end: usize) -> Option<AssociationId> {
            self.ends[end].associations().next()
        }

        fn send(&mut self) {
            let (end, length) = (self.draw(2) as usize, 1 + self.draw(4_000) as usize);
            let stream = self.draw(4) as u16;
            let Some(id) = self.id(end) else { return };
            let options = SendOptions::on(stream).with_unordered(self.draw(4) == 0);
            let sent = self.ends[end].send(self.now, id, vec![7; length].into(), &options);
            self.seen.push(format!("{end} gives {sent:?}"));
        }

        /// Collects the events and packets of both endpoints.
        fn listen(&mut self) {
            for end in 0..2 {
                let mut out = BytesMut::new();
                while self.ends[end].poll_transmit(self.now, &mut out).is_some() {
                    let packet = out.split().freeze();
                    self.seen.push(format!("{} {end} {packet:?}", self.now));
                    if self.draw(6) > 0 {
                        let at = self.now + (1 + self.draw(40)) * MILLISECOND;
                        self.wires[1 - end].push_back((at, packet));
                    }
                }
                while let Some((_, event)) = self.ends[end].poll_event() {
                    self.seen.push(format!("{end} {event:?}"));
                }
                let Some(id) = self.id(end) else { continue };
                let deadline = self.ends[end].poll_timeout();
                let Some(association) = self.ends[end].association_mut(id) else {
                    continue;
                };
                while let Some(message) = association.poll_message() {
                    self.seen.push(format!("{end} reads {message:?}"));
                }
                let told = (
                    association.cumulative_tsn(),
                    association.sack_due(),
                    association.send_buffer().unsent(),
                    association.status().streams_in_use,
                    association.status().peer_rwnd,
                    association.status().fragmentation_point,
                    association.status().outstanding_chunks,
                    association.send_buffer().used(),
                );
                let stats = association.stats();
                self.seen
                    .push(format!("{end} {deadline:?} {told:?} {stats:?}"));
            }
        }

        /// Advances to the next arrival of a packet or the next timer.
        fn go_on(&mut self) {
            let arrivals = self.wires.iter().filter_map(|it| it.front()).map(|it| it.0);
            let times = self.ends.iter().filter_map(Transport::poll_timeout);
            let Some(at) = arrivals.chain(times).min() else {
                return;
            };
            self.now = self.now.max(at);
            for end in 0..2 {
                self.ends[end].handle_timeout(self.now);
                while let Some((at, _)) = self.wires[end].front()
                    && *at <= self.now
                    && let Some((_, packet)) = self.wires[end].pop_front()
                {
                    let path = Path::new(address(end), address(1 - end));
                    self.ends[end].handle_datagram(self.now, path, Ecn::NotEct, packet);
                }
            }
        }
    }

    fn address(end: usize) -> IpAddr {
        [10, 0, 0, 1 + end as u8].into()
    }

    fn scenario(seed: u64, early: bool) -> Vec<String> {
        EARLY.set(early);
        let mut world = World::new(seed);
        // Depending on the seed, data is sent from the start, before the association is
        // established, or only later, or never.
        let quiet = 20 * (seed % 5);
        for step in 0..80 {
            if step >= quiet && world.draw(3) == 0 {
                world.send();
            }
            if step == 12 && seed % 3 == 1 {
                world.hurry();
            }
            if step == 30 && seed % 7 == 3 {
                world.restart(seed);
            }
            if step == 70
                && let Some(id) = world.id(0)
                && let Some(association) = world.ends[0].association_mut(id)
            {
                let shut = association.shutdown(world.now, None);
                world.seen.push(format!("0 closes: {shut:?}"));
            }
            world.listen();
            world.go_on();
        }
        world.seen
    }

    #[test]
    fn one_that_is_made_late_does_what_one_does_that_was_there_from_the_beginning() {
        for seed in 0..200 {
            let [early, late] = [true, false].map(|early| scenario(seed, early));
            for (at, (late, early)) in late.iter().zip(&early).enumerate() {
                assert_eq!(late, early, "seed {seed}, entry {at}");
            }
            assert_eq!(late.len(), early.len(), "seed {seed}");
        }
    }

    #[test]
    fn who_sends_and_receives_nothing_has_neither_half() {
        let mut world = World::new(0);
        for _ in 0..20 {
            world.listen();
            world.go_on();
        }
        for end in 0..2 {
            let id = world.id(end).expect("up");
            let association = world.ends[end].association(id).expect("there");
            assert!(association.is_established());
            assert!(association.sends_nothing_yet() && association.received_nothing_yet());
        }
    }
}

//! Shared medium: stations, transmissions on the air, and the outcomes of packets.

mod lookahead;
mod single_domain;
mod undisturbed;

use std::collections::VecDeque;

use anabranch_transport::Nanos;

use self::lookahead::LoneFrame;
use self::single_domain::SingleDomain;
use super::backoff::backoff_stream;
use super::dcf::{Dcf, Exchange, Expired, Finished, NO_DEADLINE, Rules};
use super::event_queue::{Air, Deadlines, Transmission};
use super::frame::{Frame, FrameTrace, MacAddress, StationId};
use super::medium_counts::{MediumCounts, StationStats, WifiDropReason};
use super::outcome::{DeliveredPacket, DroppedPacket, TransmissionOutcome};
use super::parameters::{ParameterError, WifiParameters};
use super::phy::{PhyTiming, SignalEnd, StationReceiver, TransmissionId};
use super::propagation::{AntennaPosition, propagation_delay};

/// A packet in the queue of a station. Its payload is removed at delivery; the other fields remain
/// until the sender receives the ACK.
#[derive(Debug)]
struct QueuedPacket<P> {
    to: StationId,
    bytes: u32,
    payload: Option<P>,
}

/// A station that can detect the transmissions of another station.
#[derive(Clone, Copy, Debug)]
struct Listener {
    station: StationId,
    delay: Nanos,
    power: f64,
}

#[derive(Debug)]
struct Station<P> {
    position: AntennaPosition,
    address: MacAddress,
    dcf: Dcf,
    receiver: StationReceiver,
    queue: VecDeque<QueuedPacket<P>>,
    /// Stations that detect this station's transmissions, sorted by delay and then by station.
    listeners: Vec<Listener>,
}

/// An 802.11 medium, shared by stations that do not move; generic over the packet type.
///
/// The driver must call [`advance`](Self::advance) no later than at
/// [`next_event`](Self::next_event). It passes packets to [`enqueue`](Self::enqueue), and drains
/// [`poll_outcome`](Self::poll_outcome).
#[derive(Debug)]
pub struct Medium<P> {
    rules: Rules,
    seed: u64,
    stations: Vec<Station<P>>,
    deadlines: Deadlines,
    air: Air,
    next_transmission: TransmissionId,
    now: Nanos,
    /// Number of instants with at least one event.
    instants: u64,
    events: u64,
    counts: MediumCounts,
    outcomes: VecDeque<TransmissionOutcome<P>>,
    frame_traces: Option<Vec<FrameTrace>>,
    /// Propagation between all stations, if every station hears all others; computed when the first
    /// packet arrives.
    single_domain: Option<SingleDomain>,
    /// Number of stations that have a packet to send.
    backlogged: usize,
    /// The only frame on the air, if it has begun at all stations and is held (see the module
    /// `lookahead`). A held frame is not in `air`.
    held: Option<LoneFrame>,
    /// Whether a frame may currently be held.
    holding: bool,
    /// The exchange that will start at the earliest deadline, if it is known and certain.
    foreseen: Option<Exchange>,
}

impl<P> Medium<P> {
    /// Creates a medium without stations. `seed` is a draw from the medium's random stream. The
    /// backoff stream of each station is derived from `seed` and the number of the station, so that
    /// adding a station does not change the draws of the others.
    ///
    /// # Errors
    /// [`ParameterError`] if `parameters` are inconsistent.
    pub fn new(parameters: WifiParameters, seed: u64) -> Result<Self, ParameterError> {
        parameters.validate()?;
        Ok(Self {
            rules: Rules {
                parameters,
                timing: PhyTiming::new(&parameters),
            },
            seed,
            stations: Vec::new(),
            deadlines: Deadlines::default(),
            air: Air::default(),
            next_transmission: 0,
            now: 0,
            instants: 0,
            events: 0,
            counts: MediumCounts::default(),
            outcomes: VecDeque::new(),
            frame_traces: None,
            single_domain: None,
            backlogged: 0,
            held: None,
            holding: false,
            foreseen: None,
        })
    }

    /// Adds a station.
    ///
    /// # Errors
    /// [`ParameterError::Position`] if the position is not finite, [`ParameterError::Stations`] if
    /// there are already 65535 stations, [`ParameterError::Late`] after the first packet.
    pub fn add_station(
        &mut self,
        position: AntennaPosition,
        address: MacAddress,
    ) -> Result<StationId, ParameterError> {
        if !(position.x.is_finite() && position.y.is_finite()) {
            return Err(ParameterError::Position);
        }
        if self.counts.offered > 0 {
            return Err(ParameterError::Late);
        }
        let id = u16::try_from(self.stations.len())
            .ok()
            .filter(|&id| id < u16::MAX);
        let id = StationId(id.ok_or(ParameterError::Stations)?);
        let rng = backoff_stream(self.seed, id);
        let mut listeners = Vec::new();
        let radio = &self.rules.parameters.radio;
        for (index, other) in self.stations.iter_mut().enumerate() {
            let distance = position.distance(other.position);
            let (delay, power) = (propagation_delay(distance), radio.received_power(distance));
            if power >= radio.carrier_sense_threshold {
                listeners.push(Listener {
                    station: StationId(index as u16),
                    delay,
                    power,
                });
                other.listeners.push(Listener {
                    station: id,
                    delay,
                    power,
                });
                other
                    .listeners
                    .sort_by_key(|listener| (listener.delay, listener.station));
            }
        }
        listeners.sort_by_key(|listener| (listener.delay, listener.station));
        self.stations.push(Station {
            position,
            address,
            dcf: Dcf::new(id, &self.rules, rng),
            receiver: StationReceiver::default(),
            queue: VecDeque::new(),
            listeners,
        });
        self.deadlines.add();
        Ok(id)
    }

    /// Advances to `now`, and queues a packet of `bytes` bytes at `station` for the station `to`.
    ///
    /// # Errors
    /// The packet and the reason, if the queue is full or the packet is too long. The packet counts
    /// include the drop; no outcome is reported for it.
    ///
    /// # Panics
    /// If `station` or `to` is not a station of this medium, or if they are equal.
    pub fn enqueue(
        &mut self,
        now: Nanos,
        station: StationId,
        to: StationId,
        bytes: u32,
        payload: P,
    ) -> Result<(), DroppedPacket<P>> {
        assert!(
            to.index() < self.stations.len() && to != station,
            "a packet from {station:?} for {to:?}"
        );
        if self.counts.offered == 0 {
            self.single_domain = SingleDomain::of(&self.stations, &self.rules);
        }
        self.run_until(now);
        self.counts.offered += 1;
        let parameters = &self.rules.parameters;
        let sender = &mut self.stations[station.index()];
        let refusal = if bytes > parameters.longest_packet {
            Some(WifiDropReason::TooLong)
        } else if sender.queue.len() >= parameters.queue_limit {
            Some(WifiDropReason::QueueFull)
        } else {
            None
        };
        if let Some(reason) = refusal {
            self.counts.dropped[reason as usize] += 1;
            return Err(DroppedPacket {
                at: now,
                from: station,
                to,
                bytes,
                reason,
                payload,
            });
        }
        self.counts.waiting += 1;
        sender.queue.push_back(QueuedPacket {
            to,
            bytes,
            payload: Some(payload),
        });
        if sender.queue.len() == 1 {
            self.backlogged += 1;
            self.foreseen = None;
            sender.dcf.offer(now, to, bytes, &self.rules);
            self.rearm(station, now);
        }
        Ok(())
    }

    /// Time of the next event if no packet is enqueued before; `None` if there is none.
    #[inline]
    pub fn next_event(&self) -> Option<Nanos> {
        debug_assert!(
            self.held.is_none(),
            "a frame is held only until an outcome is due"
        );
        let at = self.earliest();
        (at != NO_DEADLINE).then_some(at)
    }

    /// Processes all events up to and including `now`; [`poll_outcome`](Self::poll_outcome) then
    /// returns their outcomes.
    pub fn advance(&mut self, now: Nanos) {
        self.let_go();
        self.run_until(now);
    }

    fn run_until(&mut self, now: Nanos) {
        while self.earliest() <= now && self.earliest() != NO_DEADLINE {
            self.pass_next(now.saturating_add(1));
        }
        self.now = self.now.max(now);
    }

    /// Like [`advance`](Self::advance), if it is certain that no packet is enqueued after `now` and
    /// before `end`. A frame that begins may then be processed at all its listeners in advance, if
    /// this is complete before `end`. Outcomes may therefore be reported late, but by less than the
    /// delay of the link layer.
    pub fn advance_ahead(&mut self, now: Nanos, end: Nanos) {
        self.now = self.now.max(now);
        while self.earliest() <= now && self.earliest() != NO_DEADLINE {
            self.pass_next(end);
        }
    }

    /// Like [`advance_ahead`](Self::advance_ahead), but processes one instant after the other,
    /// until `end` or until there is an outcome.
    pub fn advance_quietly(&mut self, end: Nanos) {
        loop {
            let next = self.earliest();
            if next > self.now && (next >= end || !self.outcomes.is_empty()) {
                break;
            }
            self.pass_next(end);
        }
    }

    /// Last instant that was processed, and the number of instants with events so far.
    pub fn reached(&self) -> (Nanos, u64) {
        (self.now, self.instants)
    }

    /// Time of the next event; [`NO_DEADLINE`] if there is none.
    #[inline(always)]
    fn earliest(&self) -> Nanos {
        self.deadlines.earliest.0.min(self.air.earliest.0)
    }

    /// Processes the next event, which must exist, and the events before `limit` that necessarily
    /// follow from it.
    #[inline(always)] // Inlined at both call sites, which process one event after the other.
    fn pass_next(&mut self, limit: Nanos) {
        if self.held.is_some() {
            return self.let_go();
        }
        let (deadline, station) = self.deadlines.earliest;
        let (edge, index) = self.air.earliest;
        // A signal edge precedes a deadline at the same time, so that an ACK that arrives exactly
        // at the timeout is in time.
        if edge <= deadline {
            self.foreseen = None;
            self.reach(edge);
            self.pass_edge(edge, index);
        } else {
            self.reach(deadline);
            self.expire(deadline, StationId(station as u16), limit);
        }
        self.events += 1;
    }

    /// Advances the current time to `now`, at which an event occurs.
    #[inline]
    fn reach(&mut self, now: Nanos) {
        if now > self.now {
            self.now = now;
            self.instants += 1;
        }
    }

    /// Outcome of the next packet that was delivered or dropped, in the order of time.
    pub fn poll_outcome(&mut self) -> Option<TransmissionOutcome<P>> {
        self.outcomes.pop_front()
    }

    /// Whether [`poll_outcome`](Self::poll_outcome) returns an outcome.
    pub fn has_outcome(&self) -> bool {
        !self.outcomes.is_empty()
    }

    /// Starts or stops recording all frames.
    pub fn observe(&mut self, on: bool) {
        self.frame_traces = on.then(Vec::new);
    }

    /// Frames recorded since the last call.
    pub fn drain_frame_traces(&mut self) -> impl Iterator<Item = FrameTrace> + '_ {
        self.frame_traces
            .iter_mut()
            .flat_map(|frame_traces| frame_traces.drain(..))
    }

    /// Packet counts of the medium.
    pub fn counts(&self) -> MediumCounts {
        self.counts
    }

    /// Frame counts of `station`.
    pub fn stats(&self, station: StationId) -> StationStats {
        self.stations[station.index()].dcf.stats
    }

    /// Number of packets at `station`, including the one being transmitted.
    pub fn queue_length(&self, station: StationId) -> usize {
        self.stations[station.index()].queue.len()
    }

    /// Address and position of `station`.
    pub fn station(&self, station: StationId) -> (MacAddress, AntennaPosition) {
        let station = &self.stations[station.index()];
        (station.address, station.position)
    }

    /// Number of signal edges and deadlines processed so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Parameters of the medium.
    pub fn parameters(&self) -> &WifiParameters {
        &self.rules.parameters
    }

    /// Times derived from the parameters.
    pub fn timing(&self) -> &PhyTiming {
        &self.rules.timing
    }

    /// Recomputes the deadline of `station`, and updates the earliest deadline.
    #[inline]
    fn rearm(&mut self, station: StationId, now: Nanos) {
        let dcf = &mut self.stations[station.index()].dcf;
        dcf.arm(now, &self.rules);
        self.deadlines.set(station.index(), dcf.deadline());
    }

    /// Handles the expired deadline of `station`.
    fn expire(&mut self, now: Nanos, station: StationId, limit: Nanos) {
        if self.pass_exchange(now, station, limit) {
            return;
        }
        let Station { dcf, receiver, .. } = &mut self.stations[station.index()];
        match dcf.expire(now, receiver.is_following(), &self.rules) {
            Expired::Transmit(frame) => {
                receiver.transmit(now + frame.air_time);
                self.deadlines.set(station.index(), dcf.deadline());
                self.transmit(now, frame, limit);
            }
            Expired::Failed(finished) => self.settle(now, station, finished),
            Expired::Waiting => self.deadlines.set(station.index(), dcf.deadline()),
        }
    }

    fn transmit(&mut self, start: Nanos, frame: Frame, limit: Nanos) {
        if let Some(frame_traces) = &mut self.frame_traces {
            frame_traces.push(FrameTrace { at: start, frame });
        }
        if !self.stations[frame.from.index()].listeners.is_empty() {
            self.send(&frame, start, limit);
        }
    }

    /// Processes the next edge of a transmission, which is at its next listener.
    fn pass_edge(&mut self, now: Nanos, index: usize) {
        let transmission = &mut self.air.transmissions[index];
        let Transmission { id, frame, .. } = *transmission;
        let (start, end) = (transmission.start, transmission.start + frame.air_time);
        let listeners = &self.stations[frame.from.index()].listeners[..];
        let begins = |begun: usize| listeners.get(begun).map(|it| start + it.delay);
        // A frame that is shorter than the difference of two delays may end at a near listener
        // before it begins at a far one.
        let beginning = begins(transmission.begun) == Some(now);
        let listener = if beginning {
            transmission.begun += 1;
            listeners[transmission.begun - 1]
        } else {
            transmission.ended += 1;
            listeners[transmission.ended - 1]
        };
        let next = listeners.get(transmission.ended).map(|it| {
            let ends = end + it.delay;
            begins(transmission.begun).map_or(ends, |begins| begins.min(ends))
        });
        self.air.go_on(index, next);
        if beginning {
            self.signal_begins(now, listener, id);
        } else {
            self.signal_ends(now, listener.station, id, &frame);
        }
    }

    fn signal_begins(&mut self, now: Nanos, listener: Listener, id: TransmissionId) {
        let Station { dcf, receiver, .. } = &mut self.stations[listener.station.index()];
        let first = !receiver.is_busy();
        let arrival = receiver.begin(now, id, listener.power, &self.rules.parameters.radio);
        dcf.stats.heard(arrival);
        if first {
            dcf.carrier_begins(now, &self.rules);
            self.deadlines.set(listener.station.index(), dcf.deadline());
        }
    }

    fn signal_ends(&mut self, now: Nanos, station: StationId, id: TransmissionId, frame: &Frame) {
        let Station { dcf, receiver, .. } = &mut self.stations[station.index()];
        let ending = receiver.end(id);
        if !receiver.is_busy() {
            dcf.carrier_ends(now);
        }
        let following = receiver.is_following();
        self.heard(now, station, (ending, following), frame);
    }

    /// Handles the end of a frame at `station` with the given result. `following`: the receiver is
    /// following another frame.
    fn heard(
        &mut self,
        now: Nanos,
        station: StationId,
        (ending, following): (SignalEnd, bool),
        frame: &Frame,
    ) {
        let dcf = &mut self.stations[station.index()].dcf;
        let (fresh, mut finished) = match ending {
            SignalEnd::Decoded => {
                let decoded = dcf.decoded(now, frame, &self.rules);
                (decoded.fresh, decoded.finished)
            }
            SignalEnd::Spoiled => {
                dcf.spoiled(now, &self.rules);
                (false, None)
            }
            SignalEnd::Ignored => (false, None),
        };
        if !following {
            finished = finished.or(dcf.nothing_followed(now, &self.rules));
        }
        if fresh {
            self.deliver(now, [frame.from, frame.to], frame.sequence);
        }
        match finished {
            None => self.rearm(station, now),
            finished => self.settle(now, station, finished),
        }
    }

    /// Reports the packet of a data frame as delivered.
    fn deliver(&mut self, now: Nanos, [from, to]: [StationId; 2], sequence: u16) {
        let sender = &mut self.stations[from.index()];
        if sender.dcf.sequence_on_its_way() != Some(sequence) {
            return;
        }
        let Some(packet) = sender.queue.front_mut() else {
            return;
        };
        if let Some(payload) = packet.payload.take() {
            self.counts.waiting -= 1;
            self.counts.delivered += 1;
            let bytes = packet.bytes;
            self.outcomes
                .push_back(TransmissionOutcome::Delivered(DeliveredPacket {
                    at: now,
                    from,
                    to,
                    bytes,
                    payload,
                }));
        }
    }

    /// Removes a finished packet from the queue of `station`, offers the next packet, and sets the
    /// deadline.
    fn settle(&mut self, now: Nanos, station: StationId, finished: Option<Finished>) {
        if let Some(finished) = finished {
            let sender = &mut self.stations[station.index()];
            let packet = sender.queue.pop_front();
            match sender.queue.front() {
                Some(next) => sender.dcf.offer(now, next.to, next.bytes, &self.rules),
                None => self.backlogged -= 1,
            }
            if let (Some(packet), Finished::GivenUp(reason)) = (packet, finished) {
                self.give_up(now, station, packet, reason);
            }
        }
        self.rearm(station, now);
    }

    fn give_up(
        &mut self,
        at: Nanos,
        from: StationId,
        packet: QueuedPacket<P>,
        reason: WifiDropReason,
    ) {
        let QueuedPacket { to, bytes, payload } = packet;
        match payload {
            Some(payload) => {
                self.counts.waiting -= 1;
                self.counts.dropped[reason as usize] += 1;
                self.outcomes
                    .push_back(TransmissionOutcome::Dropped(DroppedPacket {
                        at,
                        from,
                        to,
                        bytes,
                        reason,
                        payload,
                    }));
            }
            None => self.counts.delivered_unconfirmed += 1,
        }
    }
}

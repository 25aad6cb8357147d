//! Capacity on demand as in DVB-RCS2 (ETSI EN 301 545-2). Terminals share a return link in
//! superframes of time slots; they request slots from a network control centre (NCC), which assigns
//! them. Requests and assignments are delayed, because they travel over the satellite.
//!
//! A terminal has four categories of capacity (EN 301 545-2). SNS3's `SatRequestManager` and
//! `SatBeamScheduler` and OpenSAND's DAMA agents model the same categories:
//!
//! - CRA, constant rate assignment: slots without a request;
//! - RBDC, rate-based dynamic capacity: a requested rate, valid until the next request. In SNS3 and
//!   OpenSAND it also expires; here no expiry is needed, because a terminal repeats it in each
//!   interval and no request is lost;
//! - VBDC, volume-based dynamic capacity: a requested number of bytes that is added to earlier
//!   requests. This is the incremental form; the absolute form and the expiry of volumes are not
//!   modelled;
//! - FCA, free capacity assignment: slots without a request, if any slots remain.
//!
//! All slots have one waveform and follow each other on one carrier. Each packet uses the slots of
//! its terminal byte by byte, over several superframes if necessary, and leaves at the end of its
//! last slot. Requests are never lost and use no slots.
//!
//! The default slot is the reference waveform 14 of EN 301 545-2. OpenSAND's table of waveforms has
//! QPSK 1/2, 1616 symbols and 0.93 bits per symbol for it, which are 188 B. The default superframe
//! of 40 ms was chosen for this project: SNS3 uses 100 ms, and a return frame of OpenSAND takes
//! 26.5 ms. The NCC serves CRA, RBDC, VBDC and FCA in this order, as SNS3 does
//! (`SatFrameAllocator`).

mod controller;
mod terminal;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use anabranch_settings::{Kind, KindEntry, idle_if, kind};
use anabranch_transport::Nanos;

use super::timed::take_constant;
use super::{
    Assignments, EnqueueError, LIMIT, Occupancy, PERIOD, QueueDiscipline, QueueLimit, QueuedPacket,
    TransmitterView,
};
use crate::error::BuildError;
use crate::packet::DropReason;
use crate::step_function::StepFunction;
use controller::{Controller, SlotRun};
use terminal::Terminal;

/// Maximum number of terminals that share a link.
const MAX_TERMINALS: u64 = 10_000;
/// Maximum number of slots of a superframe.
const MAX_SLOTS: u128 = 1_000_000;
/// Maximum number of requests and assignments of all terminals in transit, which bounds memory.
const MAX_UNDER_WAY: u64 = 1_000_000;

/// Value kind of a delay over the satellite, or of a processing time.
const DELAY: Kind = Kind::duration(0, 60_000_000_000);

kind! {
    /// Settings of [`DvbRcs2`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct DvbRcs2Config {
        /// Number of terminals that share the link. Each source address of packets on the link
        /// belongs to a terminal. If there are more addresses than terminals, addresses are
        /// assigned to terminals round robin.
        terminals: usize, Kind::count(1, MAX_TERMINALS);
        /// Length of a superframe.
        superframe: Nanos = "40 ms", PERIOD, "EN 301 545-2";
        /// Bytes of packets per time slot: 188 B is the reference waveform 14 (QPSK 1/2, 1616
        /// symbols). A superframe has as many slots as the rate of the link allows.
        slot: u64 = "188 B", Kind::bytes(1, 65_535), "EN 301 545-2, reference waveforms";
        /// Rate that is assigned to each terminal without a request (constant rate assignment,
        /// CRA).
        cra: u64 = "0 bit/s", Kind::rate(0, 1 << 40), "EN 301 545-2, CRA";
        /// Maximum rate that a terminal requests (RBDC), in addition to `cra`. 0: terminals request
        /// no rate. The requested rate is the larger of two rates, minus `cra`: the arrival rate
        /// during the last `request_interval`, and the rate that would send, within one interval,
        /// the part of the queue that no earlier request covers.
        rbdc: u64 = "0 bit/s", Kind::rate(0, 1 << 40), "EN 301 545-2, RBDC";
        /// Maximum volume that a terminal has requested and not yet been assigned (VBDC). 0:
        /// terminals request no volume. A terminal requests the bytes in its queue that no earlier
        /// request covers.
        vbdc: u64 = "1 MB", Kind::bytes(0, 1 << 40), "EN 301 545-2, VBDC";
        /// Assign the remaining slots to all terminals in equal shares (FCA).
        fca: bool = false, Kind::Flag, "EN 301 545-2, FCA";
        /// Time between two requests of a terminal; rounded up to whole superframes.
        request_interval: Nanos = "40 ms", PERIOD;
        /// Delay of a request from the terminal over the satellite to the NCC.
        request_delay: Nanos = "250 ms", DELAY;
        /// Processing time of the NCC: from the start of a superframe, at which it assigns slots
        /// for the requests that have arrived, until it sends the assignment.
        processing_delay: Nanos = "0 ms", DELAY;
        /// Delay of an assignment from the NCC over the satellite to the terminals. The assignment
        /// applies to the first superframe that begins after its arrival.
        assignment_delay: Nanos = "250 ms", DELAY;
        /// Capacity of the queue of each terminal in packets or bytes. Default: unlimited.
        limit: QueueLimit as LIMIT;
    }
    idle {
        request_interval: |it, ()| no_requests(it);
        request_delay: |it, ()| no_requests(it);
        processing_delay: |it, ()| no_requests(it);
        assignment_delay: |it, ()| no_requests(it);
    }
    /// Capacity on demand (DVB-RCS2): terminals share the link in superframes of time slots, and
    /// request slots over the satellite. The rate of the link, which must be constant, is the sum
    /// of all slots without their overhead.
    pub(super) static ENTRY: KindEntry<Box<dyn QueueDiscipline>> =
        "dvb-rcs2", |config, ()| Ok(Box::new(DvbRcs2::new(config)?));
}

/// The reason why the delays of requests have no effect, if terminals send none.
fn no_requests(config: &DvbRcs2Config) -> Option<String> {
    idle_if(
        config.rbdc == 0 && config.vbdc == 0,
        "without `rbdc` and `vbdc`: the terminals request nothing",
    )
}

impl DvbRcs2Config {
    /// Number of superframes from the one at whose start a request is sent to the one at whose
    /// start the NCC uses it.
    fn request_superframes(&self) -> u64 {
        self.request_delay.div_ceil(self.superframe)
    }

    /// Number of superframes from the one at whose start the NCC assigns slots to the one that
    /// contains the slots.
    fn assignment_superframes(&self) -> u64 {
        (self.processing_delay + self.assignment_delay).div_ceil(self.superframe)
    }

    /// Number of superframes between two requests of a terminal.
    fn interval(&self) -> u64 {
        self.request_interval.div_ceil(self.superframe).max(1)
    }
}

/// The discipline for capacity on demand.
#[derive(Debug)]
pub struct DvbRcs2 {
    config: DvbRcs2Config,
    /// Number of slots per superframe; 0 until the rate of the link is known.
    slots: u64,
    terminals: Vec<Terminal>,
    /// Index of the terminal of each source address.
    addresses: BTreeMap<IpAddr, usize>,
    controller: Controller,
    /// Number of the next superframe to begin.
    next: u64,
    /// Assigned slots of the current superframe that have not begun.
    plan: VecDeque<SlotRun>,
    /// Packets whose last slot has begun, each with the end time of this slot.
    leaving: VecDeque<(Nanos, QueuedPacket)>,
    /// Number and bytes of all packets, including those in transmission.
    occupancy: Occupancy,
    /// Number of superframes since a packet was last queued, or capacity was last requested or
    /// assigned on request.
    quiet: u64,
    /// Bytes of packets in the slots that have begun.
    used: u64,
    /// Total duration of slots that carried packets in nanoseconds, and the start and end of the
    /// latest of these slots.
    busy: Nanos,
    last: [Nanos; 2],
}

impl DvbRcs2 {
    /// Creates empty queues.
    ///
    /// # Errors
    /// [`BuildError::EmptyQueue`] for a limit of 0, [`BuildError::Parameters`] if no terminal can
    /// have a slot.
    pub fn new(config: DvbRcs2Config) -> Result<Self, BuildError> {
        config.limit.checked()?;
        if config.cra == 0 && config.rbdc == 0 && config.vbdc == 0 && !config.fca {
            return Err(BuildError::Parameters(
                "no terminal of `dvb-rcs2` can send: one of `cra`, `rbdc`, `vbdc` and `fca` is needed",
            ));
        }
        let under_way = config.request_superframes() + config.assignment_superframes();
        if under_way.saturating_mul(config.terminals as u64) > MAX_UNDER_WAY {
            return Err(BuildError::Parameters(
                "the delays of `dvb-rcs2` are too many superframes for so many terminals",
            ));
        }
        let terminal = |_| Terminal::new(&config);
        Ok(Self {
            slots: 0,
            terminals: (0..config.terminals).map(terminal).collect(),
            addresses: BTreeMap::new(),
            controller: Controller::new(&config),
            next: 0,
            plan: VecDeque::new(),
            leaving: VecDeque::new(),
            occupancy: Occupancy::default(),
            quiet: 0,
            used: 0,
            busy: 0,
            last: [0; 2],
            config,
        })
    }

    /// The terminal of a source address.
    fn terminal_of(&mut self, source: IpAddr) -> usize {
        let number = self.addresses.len() % self.terminals.len();
        *self.addresses.entry(source).or_insert(number)
    }

    /// Start time of a slot of the current superframe, nanoseconds.
    fn slot_start(&self, slot: u64) -> Nanos {
        let since = u128::from(slot) * u128::from(self.config.superframe) / u128::from(self.slots);
        (self.next - 1) * self.config.superframe + since as Nanos
    }

    /// Processes all slots and superframes that have begun by `now`.
    fn advance(&mut self, now: Nanos) {
        loop {
            self.fill_slots(now);
            if self.next * self.config.superframe > now {
                return;
            }
            let last = now / self.config.superframe;
            // Superframes until the last one can be skipped, because the queues are empty and no
            // request or assignment is in transit.
            if self.quiet > self.controller.memory() && self.next < last {
                self.controller.skip(self.next..last, self.slots);
                self.next = last;
            }
            self.begin_superframe();
        }
    }

    /// Assigns packets to the slots of the current superframe that have begun by `now`.
    fn fill_slots(&mut self, now: Nanos) {
        while let Some(&run) = self.plan.front() {
            if self.slot_start(run.first) > now {
                return;
            }
            let end = self.slot_start(run.first + 1);
            let mut room = self.config.slot;
            let terminal = &mut self.terminals[run.terminal];
            while let Some(packet) = terminal.take(&mut room) {
                self.leaving.push_back((end, packet));
            }
            if room < self.config.slot {
                self.used += self.config.slot - room;
                self.last = [self.slot_start(run.first), end];
                self.busy += end - self.last[0];
            }
            match run.slots {
                1 => drop(self.plan.pop_front()),
                _ => self.plan[0] = run.without_first(),
            }
        }
    }

    /// Starts the next superframe: the terminals send requests, the NCC assigns slots of a later
    /// superframe to the requests that have arrived, and an earlier assignment takes effect.
    fn begin_superframe(&mut self) {
        let number = self.next;
        let now = number * self.config.superframe;
        self.next += 1;
        let busy = self.occupancy.packets > 0;
        if number.is_multiple_of(self.config.interval()) {
            for (index, terminal) in self.terminals.iter_mut().enumerate() {
                if let Some(request) = terminal.request() {
                    self.controller.send(now, index, request);
                }
            }
        }
        let (plan, requested) = self.controller.step(number, self.slots);
        for run in &plan {
            self.terminals[run.terminal].assigned(run.by_volume * self.config.slot);
        }
        self.plan = plan;
        let quiet = !busy && !requested;
        self.quiet = if quiet { self.quiet + 1 } else { 0 };
    }
}

impl QueueDiscipline for DvbRcs2 {
    fn take_rate(&mut self, rate: &mut Option<StepFunction<u64>>) -> Result<(), BuildError> {
        let otherwise = "a queue of the kind `dvb-rcs2` needs a constant rate of its link";
        let rate = take_constant(rate, otherwise)?;
        let config = &self.config;
        let bits = u128::from(rate) * u128::from(config.superframe) / 1_000_000_000;
        let slots = bits / (u128::from(config.slot) * 8);
        if slots == 0 || slots > MAX_SLOTS {
            return Err(BuildError::Parameters(
                "a superframe of `dvb-rcs2` must have 1 to 1000000 slots: `superframe` times the rate of the link, \
                 divided by `slot`",
            ));
        }
        if u128::from(config.cra) * config.terminals as u128 > u128::from(rate) {
            return Err(BuildError::Parameters(
                "`cra` times `terminals` exceeds the rate of the link",
            ));
        }
        self.slots = slots as u64;
        Ok(())
    }

    fn enqueue(
        &mut self,
        now: Nanos,
        packet: QueuedPacket,
        _: &mut TransmitterView<'_>,
    ) -> Result<(), EnqueueError> {
        self.advance(now);
        let index = self.terminal_of(packet.packet().source);
        let terminal = &mut self.terminals[index];
        if !self
            .config
            .limit
            .admits(terminal.occupancy(), packet.size())
        {
            let reason = DropReason::QueueFull;
            return Err(EnqueueError { packet, reason });
        }
        self.occupancy.add(packet.size());
        terminal.push(packet);
        self.quiet = 0;
        Ok(())
    }

    fn dequeue(&mut self, now: Nanos, _: &mut TransmitterView<'_>) -> Option<QueuedPacket> {
        self.advance(now);
        if self.leaving.front()?.0 > now {
            return None;
        }
        self.remove_leaving()
    }

    fn remove(&mut self) -> Option<QueuedPacket> {
        if let Some(packet) = self.remove_leaving() {
            return Some(packet);
        }
        let packet = self.terminals.iter_mut().find_map(Terminal::remove)?;
        self.occupancy.remove(packet.size());
        Some(packet)
    }

    fn occupancy(&self) -> Occupancy {
        self.occupancy
    }

    fn busy(&self, now: Nanos) -> Nanos {
        let [begin, end] = self.last;
        match end <= now {
            true => self.busy,
            false => self.busy - (end - begin),
        }
    }

    fn wake_up(&self, _: Nanos) -> Option<Nanos> {
        let leaving = self.leaving.front().map(|(at, _)| *at);
        let waits = |run: &&SlotRun| self.terminals[run.terminal].occupancy().packets > 0;
        let slot = self.plan.iter().find(waits);
        let slot = slot.map_or(self.next * self.config.superframe, |run| {
            self.slot_start(run.first)
        });
        Some(leaving.map_or(slot, |at| at.min(slot)))
    }

    fn assignments(&self, now: Nanos) -> Option<Assignments> {
        let mut all = self.controller.assignments();
        let begun = now / self.config.superframe + 1;
        if self.next < begun {
            all.slots += self.controller.unrequested(self.next..begun, self.slots);
        }
        all.assigned = all.slots * self.config.slot;
        all.used = self.used;
        Some(all)
    }
}

impl DvbRcs2 {
    fn remove_leaving(&mut self) -> Option<QueuedPacket> {
        let (_, packet) = self.leaving.pop_front()?;
        self.occupancy.remove(packet.size());
        Some(packet)
    }
}

#[cfg(test)]
mod tests;

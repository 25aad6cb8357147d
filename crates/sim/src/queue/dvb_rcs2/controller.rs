//! Network control centre (NCC): requests in transit to it, the capacity that each terminal has
//! requested, and the slot assignments of future superframes.

use std::collections::VecDeque;
use std::ops::Range;

use anabranch_transport::Nanos;

use super::DvbRcs2Config;
use super::terminal::Request;
use crate::queue::Assignments;

/// Consecutive slots of a superframe that are assigned to one terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotRun {
    pub terminal: usize,
    /// Index of the first of these slots within the superframe.
    pub first: u64,
    /// Number of slots, at least 1.
    pub slots: u64,
    /// Number of the slots that were requested by volume (VBDC).
    pub by_volume: u64,
}

impl SlotRun {
    pub fn without_first(self) -> Self {
        Self {
            first: self.first + 1,
            slots: self.slots - 1,
            ..self
        }
    }
}

/// Requested capacity of one terminal, from the requests that have arrived.
#[derive(Debug, Default)]
struct Demand {
    /// RBDC: requested rate, bits per second.
    rate: u64,
    /// Work of this rate that did not fill a slot and is carried over to the next superframe, in
    /// bits times nanoseconds.
    left_over: u128,
    /// Time at which the first request for a rate above 0 was sent; `None` after a slot was
    /// assigned for it.
    rate_asked: Option<Nanos>,
    /// VBDC: requested bytes that are not assigned yet, each with the sending time of the request.
    volumes: VecDeque<(Nanos, u64)>,
    volume: u64,
}

/// Numbers of slots that are assigned to each terminal in a superframe.
#[derive(Debug, Default)]
struct Grants {
    slots: Vec<u64>,
    by_volume: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct Controller {
    config: DvbRcs2Config,
    /// Requests in transit: number of the superframe from which on the NCC uses the request,
    /// sending time, terminal, and request.
    requests: VecDeque<(u64, Nanos, usize, Request)>,
    demands: Vec<Demand>,
    /// Assignments of the next superframes in order, each with a flag that is true if some of its
    /// slots were requested.
    plans: VecDeque<(VecDeque<SlotRun>, bool)>,
    assignments: Assignments,
}

/// Nanoseconds per second, for products of rate and time.
const SECOND: u128 = 1_000_000_000;

impl Controller {
    pub fn new(config: &DvbRcs2Config) -> Self {
        let demand = |_| Demand::default();
        Self {
            config: *config,
            requests: VecDeque::new(),
            demands: (0..config.terminals).map(demand).collect(),
            plans: VecDeque::new(),
            assignments: Assignments::default(),
        }
    }

    /// Number of superframes after which a change no longer affects requests and assignments.
    pub fn memory(&self) -> u64 {
        let config = &self.config;
        let under_way = config.request_superframes() + config.assignment_superframes();
        under_way + 2 * config.interval() + 2
    }

    /// Sends a request of `terminal` at `now`.
    pub fn send(&mut self, now: Nanos, terminal: usize, request: Request) {
        let number = now / self.config.superframe + self.config.request_superframes();
        self.requests.push_back((number, now, terminal, request));
    }

    /// Processes the start of superframe `number`: receives requests, and assigns the slots of a
    /// later superframe. Returns the assignment of superframe `number`, and whether any capacity is
    /// requested.
    pub fn step(&mut self, number: u64, slots: u64) -> (VecDeque<SlotRun>, bool) {
        while let Some(&(from, sent, terminal, request)) = self.requests.front()
            && from <= number
        {
            self.requests.pop_front();
            self.receive(sent, terminal, request);
        }
        let ahead = self.config.assignment_superframes();
        // Until the first assignment arrives, and after superframes were skipped, slots are
        // assigned without requests.
        while (self.plans.len() as u64) < ahead {
            let plan = self.unrequested_plan(number + self.plans.len() as u64, slots);
            self.plans.push_back((plan, false));
        }
        let plan = self.plan(number + ahead, slots);
        self.plans.push_back(plan);
        let (plan, requested) = self.plans.pop_front().unwrap_or_default();
        self.assignments.slots += plan.iter().map(|run| run.slots).sum::<u64>();
        let under_way = !self.requests.is_empty() || self.demands.iter().any(Demand::is_open);
        (plan, requested || under_way)
    }

    fn receive(&mut self, sent: Nanos, terminal: usize, request: Request) {
        self.assignments.requests += 1;
        let demand = &mut self.demands[terminal];
        if let Some(rate) = request.rate {
            demand.rate_asked = match rate {
                0 => None,
                _ if demand.rate == 0 => Some(sent),
                _ => demand.rate_asked,
            };
            demand.rate = rate;
        }
        if request.volume > 0 {
            demand.volumes.push_back((sent, request.volume));
            demand.volume += request.volume;
        }
    }

    /// Number of CRA slots of `terminal` in the superframes `range`. On average they provide
    /// exactly the rate `cra`; the terminals are offset, so that not all have a slot in the same
    /// superframe.
    fn constant(&self, terminal: usize, range: Range<u64>) -> u64 {
        let config = &self.config;
        let whole = u128::from(config.slot) * 8 * SECOND;
        let each = u128::from(config.cra) * u128::from(config.superframe);
        let offset = whole * terminal as u128 / config.terminals as u128;
        let until = |number: u64| (u128::from(number) * each + offset) / whole;
        (until(range.end) - until(range.start)) as u64
    }

    /// Number of slots in the superframes `range` that are assigned without a request.
    pub fn unrequested(&self, range: Range<u64>, slots: u64) -> u64 {
        match self.config.fca {
            true => (range.end - range.start) * slots,
            false => {
                let each = 0..self.demands.len();
                each.map(|it| self.constant(it, range.clone())).sum()
            }
        }
    }

    /// Skips the superframes `range`, in which nothing is requested.
    pub fn skip(&mut self, range: Range<u64>, slots: u64) {
        self.assignments.slots += self.unrequested(range, slots);
        self.plans.clear();
    }

    fn unrequested_plan(&self, number: u64, slots: u64) -> VecDeque<SlotRun> {
        let mut left = slots;
        let mut grants = self.constant_grants(number, &mut left);
        self.share_rest(number, left, &mut grants);
        grants.runs()
    }

    /// Assignment of superframe `number` for the requests that have arrived, and whether some of
    /// its slots were requested. Slots are assigned in the order CRA, RBDC, VBDC, FCA.
    fn plan(&mut self, number: u64, slots: u64) -> (VecDeque<SlotRun>, bool) {
        let mut left = slots;
        let mut grants = self.constant_grants(number, &mut left);
        let unrequested = left;
        if left > 0 {
            self.grant_rates(number, &mut left, &mut grants);
        }
        if left > 0 {
            self.grant_volumes(number, &mut left, &mut grants);
        }
        let requested = left < unrequested;
        self.share_rest(number, left, &mut grants);
        (grants.runs(), requested)
    }

    fn constant_grants(&self, number: u64, left: &mut u64) -> Grants {
        let count = self.demands.len();
        let mut grants = Grants {
            slots: vec![0; count],
            by_volume: vec![0; count],
        };
        if self.config.cra > 0 {
            for (terminal, slots) in grants.slots.iter_mut().enumerate() {
                *slots = self.constant(terminal, number..number + 1).min(*left);
                *left -= *slots;
            }
        }
        grants
    }

    fn grant_rates(&mut self, number: u64, left: &mut u64, grants: &mut Grants) {
        let slot = u128::from(self.config.slot) * 8 * SECOND;
        let superframe = self.config.superframe;
        let wanted = self.demands.iter_mut().map(|demand| {
            let work = u128::from(demand.rate) * u128::from(superframe) + demand.left_over;
            demand.left_over = work % slot;
            (work / slot) as u64
        });
        let wanted: Vec<u64> = wanted.collect();
        let shares = share(left, wanted, number);
        for ((demand, slots), granted) in self.demands.iter_mut().zip(&mut grants.slots).zip(shares)
        {
            *slots += granted;
            if granted > 0
                && let Some(sent) = demand.rate_asked.take()
            {
                self.assignments.answered(number * superframe - sent);
            }
        }
    }

    fn grant_volumes(&mut self, number: u64, left: &mut u64, grants: &mut Grants) {
        let slot = self.config.slot;
        let wanted = self
            .demands
            .iter()
            .map(|demand| demand.volume.div_ceil(slot));
        let shares = share(left, wanted.collect(), number);
        for (index, granted) in shares.into_iter().enumerate() {
            grants.slots[index] += granted;
            grants.by_volume[index] = granted;
            let demand = &mut self.demands[index];
            for sent in demand.take_volume(granted * slot) {
                self.assignments
                    .answered(number * self.config.superframe - sent);
            }
        }
    }

    /// Assigns the remaining slots to all terminals in equal shares, if FCA is enabled.
    fn share_rest(&self, number: u64, mut left: u64, grants: &mut Grants) {
        if !self.config.fca || left == 0 {
            return;
        }
        let wanted = vec![left; self.demands.len()];
        let shares = share(&mut left, wanted, number);
        for (slots, granted) in grants.slots.iter_mut().zip(shares) {
            *slots += granted;
        }
    }

    /// Numbers and delays of requests, and assigned slots. The byte counts are 0; the caller sets
    /// them, because only the terminals count bytes.
    pub fn assignments(&self) -> Assignments {
        self.assignments
    }
}

impl Demand {
    fn is_open(&self) -> bool {
        self.rate > 0 || self.volume > 0
    }

    /// Assigns `bytes` to the oldest volume requests. Returns the sending times of the requests
    /// that are now assigned completely.
    fn take_volume(&mut self, mut bytes: u64) -> Vec<Nanos> {
        let mut complete = Vec::new();
        while let Some((sent, volume)) = self.volumes.front_mut()
            && bytes > 0
        {
            let taken = bytes.min(*volume);
            (bytes, *volume) = (bytes - taken, *volume - taken);
            self.volume -= taken;
            if *volume == 0 {
                complete.push(*sent);
                self.volumes.pop_front();
            }
        }
        complete
    }
}

impl Grants {
    /// The assigned slots as runs, in the order of the terminals.
    fn runs(&self) -> VecDeque<SlotRun> {
        let mut first = 0;
        let both = self.slots.iter().zip(&self.by_volume).enumerate();
        let runs = both.filter(|(_, (slots, _))| **slots > 0);
        let runs = runs.map(|(terminal, (&slots, &by_volume))| {
            let run = SlotRun {
                terminal,
                first,
                slots,
                by_volume,
            };
            first += slots;
            run
        });
        runs.collect()
    }
}

/// Divides `left` slots equally among terminals, but no terminal gets more slots than it demands
/// (max-min fair). The remainder, fewer slots than there are terminals, is assigned round robin
/// from terminal `turn` on.
fn share(left: &mut u64, mut wanted: Vec<u64>, turn: u64) -> Vec<u64> {
    let total: u64 = wanted.iter().sum();
    if total <= *left {
        *left -= total;
        return wanted;
    }
    let count = wanted.len();
    let mut granted = vec![0; count];
    loop {
        let open = wanted.iter().filter(|&&slots| slots > 0).count() as u64;
        let each = match *left / open.max(1) {
            0 => break,
            each => each,
        };
        for (slots, wanted) in granted.iter_mut().zip(&mut wanted) {
            let more = each.min(*wanted);
            *slots += more;
            *wanted -= more;
            *left -= more;
        }
    }
    let first = (turn % count as u64) as usize;
    for index in (first..count).chain(0..first) {
        let more = wanted[index].min(*left).min(1);
        granted[index] += more;
        *left -= more;
    }
    granted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by hand: 10 slots for the demands 2, 9, 1 and 7. In the first round each terminal
    /// gets two slots, except for the third, which needs one. Of the 3 remaining slots, the second
    /// and the fourth terminal get one each, and the last slot is assigned round robin.
    #[test]
    fn slots_are_shared_equally_up_to_the_request() {
        let shares = |left: u64, wanted: &[u64], turn| {
            let mut rest = left;
            (share(&mut rest, wanted.to_vec(), turn), rest)
        };
        assert_eq!(shares(20, &[2, 9, 1, 7], 0), (vec![2, 9, 1, 7], 1));
        assert_eq!(shares(10, &[2, 9, 1, 7], 0), (vec![2, 4, 1, 3], 0));
        assert_eq!(shares(10, &[2, 9, 1, 7], 2), (vec![2, 3, 1, 4], 0));
        assert_eq!(shares(2, &[5, 5, 5], 5), (vec![1, 0, 1], 0));
        assert_eq!(shares(0, &[5, 0], 1), (vec![0, 0], 0));
    }
}

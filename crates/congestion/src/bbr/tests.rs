//! BBR over a bottleneck in memory: a line of 10 Mbit/s, a drop-tail queue, and segments of 1000 bytes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::*;
use crate::rate_sample::RateSampler;
use crate::recovery::Transmission;
use crate::sctp_newreno::{SctpNewReno, SctpParameters};
use time::{MILLISECOND as MS, SECOND};

const SEGMENT: u64 = 1000;

fn bbr() -> Bbr<SctpNewReno> {
    Bbr::new(SctpNewReno::new(SctpParameters {
        unit: SEGMENT,
        initial_cwnd: 10 * SEGMENT,
        ..SctpParameters::default()
    }))
}

/// A sender with as much to send as it may.
struct Flow {
    control: Bbr<SctpNewReno>,
    sampler: RateSampler,
    /// In flight, by their number.
    flying: BTreeMap<u64, Nanos>,
    next: u64,
    opens: Nanos,
    delivered: u64,
    lost_until: Option<u64>,
    states: Vec<State>,
    paused: bool,
}

/// What comes back to which flow.
type Arrival = (usize, u64);

struct Line {
    now: Nanos,
    flows: Vec<Flow>,
    /// Nanoseconds for a segment; segments that wait at most; both ways' delay.
    service: Nanos,
    room: usize,
    delay: Nanos,
    /// One of so many is lost at random; 0: none.
    loss: u64,
    random: u64,
    waiting: VecDeque<Arrival>,
    free_at: Nanos,
    back: BTreeSet<(Nanos, u64, usize)>,
}

impl Line {
    /// 10 Mbit/s and 40 ms: 50 segments; the queue holds `room` more.
    fn new(flows: usize, room: usize) -> Self {
        let flow = |_| Flow {
            control: bbr(),
            sampler: RateSampler::default(),
            flying: BTreeMap::new(),
            next: 0,
            opens: 0,
            delivered: 0,
            lost_until: None,
            states: vec![State::Startup],
            paused: false,
        };
        Self {
            now: 0,
            flows: (0..flows).map(flow).collect(),
            service: 800_000,
            room,
            delay: 40 * MS,
            loss: 0,
            random: 1,
            waiting: VecDeque::new(),
            free_at: 0,
            back: BTreeSet::new(),
        }
    }

    fn is_lost(&mut self) -> bool {
        // A multiplicative generator is enough for coins.
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        self.loss > 0 && (self.random >> 33).is_multiple_of(self.loss)
    }

    fn send(&mut self, index: usize) {
        loop {
            let now = self.now;
            let flow = &mut self.flows[index];
            let flight = flow.flying.len() as u64 * SEGMENT;
            let room = flight + SEGMENT <= flow.control.cwnd();
            if flow.paused || now < flow.opens || !room {
                return;
            }
            let number = flow.next;
            flow.next += 1;
            flow.flying.insert(number, now);
            let sent = Transmission {
                sent_at: now,
                number,
            };
            flow.sampler
                .on_sent(sent, number, SEGMENT, flight + SEGMENT);
            flow.control.on_sent(now, SEGMENT, flight + SEGMENT);
            let gap = SEGMENT as f64 / flow.control.pacing_rate().unwrap();
            flow.opens = flow.opens.max(now) + time::from_seconds(gap);
            if self.waiting.len() < self.room && !self.is_lost() {
                self.waiting.push_back((index, number));
                let begins = self.free_at.max(now);
                self.free_at = begins + self.service;
                self.back.insert((self.free_at + self.delay, number, index));
            }
        }
    }

    /// Segment `number` of a flow is acknowledged; what was sent three before it, and is not, is lost.
    fn acknowledge(&mut self, index: usize, number: u64) {
        let now = self.now;
        let flow = &mut self.flows[index];
        let before = flow.flying.len() as u64 * SEGMENT;
        let sent_at = flow.flying.remove(&number).unwrap();
        flow.delivered += 1;
        flow.sampler
            .on_delivered(now, Transmission { sent_at, number });
        let lost: Vec<(u64, Nanos)> = flow
            .flying
            .range(..number.saturating_sub(2))
            .map(|(&number, &at)| (number, at))
            .collect();
        for &(number, sent_at) in &lost {
            flow.flying.remove(&number);
            let found = flow.sampler.on_lost(Transmission { sent_at, number });
            flow.control.on_packet_lost(&found.unwrap());
        }
        let in_recovery = flow.lost_until.is_some_and(|until| number < until);
        if !lost.is_empty() && !in_recovery {
            flow.lost_until = Some(flow.next);
            flow.control.on_loss(now, LossCause::FastRetransmit, before);
        }
        let after = flow.flying.len() as u64 * SEGMENT;
        let rtt = Some(now - sent_at);
        flow.control.on_ack(&AckSample {
            now,
            bytes_acked: SEGMENT,
            segments_acked: 1,
            cumulative_advanced: true,
            flightsize_before: before,
            flightsize_after: after,
            in_recovery: in_recovery || !lost.is_empty(),
            latest_rtt: rtt,
            rate: flow.sampler.take_sample(rtt),
            ..AckSample::default()
        });
        if flow.control.limits_itself() {
            flow.sampler.on_app_limited(after);
        }
        if flow.states.last() != Some(&flow.control.state) {
            flow.states.push(flow.control.state);
        }
    }

    fn run_until(&mut self, end: Nanos) {
        loop {
            (0..self.flows.len()).for_each(|index| self.send(index));
            let opens = self.flows.iter().filter(|flow| {
                let flight = (flow.flying.len() as u64 + 1) * SEGMENT;
                !flow.paused && flight <= flow.control.cwnd()
            });
            let opens = opens.map(|flow| flow.opens.max(self.now + 1)).min();
            let arrives = self.back.first().map(|&(at, _, _)| at);
            let Some(next) = opens
                .into_iter()
                .chain(arrives)
                .min()
                .filter(|&at| at <= end)
            else {
                self.now = end;
                return;
            };
            self.now = next;
            // What has left the queue by now.
            let kept = self.free_at.saturating_sub(next).div_ceil(self.service) as usize;
            while self.waiting.len() > kept {
                self.waiting.pop_front();
            }
            while let Some(&(at, number, index)) = self.back.first()
                && at <= next
            {
                self.back.pop_first();
                self.acknowledge(index, number);
            }
        }
    }

    /// Segments that each flow delivers in the next `span`.
    fn delivered_in(&mut self, span: Nanos) -> Vec<u64> {
        let before: Vec<u64> = self.flows.iter().map(|flow| flow.delivered).collect();
        self.run_until(self.now + span);
        let after = self.flows.iter().map(|flow| flow.delivered);
        after
            .zip(before)
            .map(|(after, before)| after - before)
            .collect()
    }
}

/// The draft's cases of leaving Startup on a plateau, Drain by what is in flight, and DOWN for CRUISE.
#[test]
fn the_path_is_filled_drained_and_probed() {
    let mut line = Line::new(1, 1000);
    line.run_until(SECOND);
    let control = &line.flows[0].control;
    assert!(control.full_bw.reached);
    let bandwidth = control.max_bw.get();
    assert!((bandwidth / 1_250_000.0 - 1.0).abs() < 0.02, "{bandwidth}");
    let least = control.min_rtt.get().unwrap();
    assert!((40 * MS..=42 * MS).contains(&least), "{least}");
    let states = &line.flows[0].states;
    assert_eq!(states[..2], [State::Startup, State::Drain]);
    // DOWN may last for one acknowledgement only: Drain has emptied the queue.
    let cruise = states.iter().position(|&state| state == State::ProbeCruise);
    assert!(matches!(cruise, Some(2 | 3)), "{states:?}");
    // The wait is 2 to 3 s, or as many rounds as Reno would take.
    line.run_until(6 * SECOND);
    let states = &line.flows[0].states;
    let refill = states
        .iter()
        .position(|&state| state == State::ProbeRefill)
        .unwrap();
    assert_eq!(states[refill + 1], State::ProbeUp);
    assert_eq!(states[refill + 2], State::ProbeDown);
    // The line is used up, and hardly anything waits on the average.
    let delivered = line.delivered_in(4 * SECOND)[0];
    assert!(delivered > 4800, "{delivered} of 5000");
    let control = &line.flows[0].control;
    assert!(control.cwnd < 3.0 * 51_000.0, "{}", control.cwnd);
}

/// Five seconds after the least round trip was measured, the flow halves its window for 200 ms.
#[test]
fn the_least_round_trip_is_probed_for_every_five_seconds() {
    let mut line = Line::new(1, 1000);
    // A queue of another flow's making would hide it; the path's own is full at the start.
    line.run_until(4 * SECOND);
    let count = |line: &Line| {
        let states = &line.flows[0].states;
        states
            .iter()
            .filter(|&&state| state == State::ProbeRtt)
            .count()
    };
    let before = count(&line);
    line.delay = 60 * MS; // from now on no round trip is as short
    line.run_until(16 * SECOND);
    let probes = count(&line) - before;
    assert!((1..=3).contains(&probes), "{probes}");
    let least = line.flows[0].control.min_rtt.get().unwrap();
    assert!(
        least >= 60 * MS,
        "{least}: a longer path is believed after 10 s"
    );
}

#[test]
fn a_random_loss_of_one_percent_costs_little() {
    let mut line = Line::new(1, 100);
    line.loss = 100;
    line.run_until(5 * SECOND);
    let delivered = line.delivered_in(20 * SECOND)[0];
    // Reno has 12 of 50 segments in flight here (Mathis). A round trip in which something is lost bounds what is in flight by
    // what it delivered, until the next probe.
    assert!(delivered > 21_000, "{delivered} of 25000");
}

#[test]
fn two_flows_share_a_line() {
    for room in [50, 200] {
        let mut line = Line::new(2, room);
        line.flows[1].paused = true;
        line.run_until(5 * SECOND);
        line.flows[1].paused = false;
        line.run_until(60 * SECOND);
        let got = line.delivered_in(60 * SECOND);
        let (a, b) = (got[0] as f64, got[1] as f64);
        let jain = (a + b) * (a + b) / (2.0 * (a * a + b * b));
        assert!(jain > 0.9, "{room}: {got:?}");
        assert!(a + b > 71_000.0, "{room}: {got:?} of 75000");
    }
}

/// The draft's case: what was idle has emptied the queue, and probes for no round trip.
#[test]
fn a_pause_is_as_good_as_a_probe_for_the_round_trip() {
    let mut line = Line::new(1, 1000);
    line.run_until(3 * SECOND);
    line.flows[0].paused = true;
    line.run_until(4 * SECOND);
    let flow = &mut line.flows[0];
    assert!(flow.flying.is_empty());
    flow.control.on_app_limited(line.now);
    flow.sampler.on_app_limited(0);
    line.run_until(12 * SECOND);
    let states = line.flows[0].states.len();
    line.flows[0].paused = false;
    line.run_until(12 * SECOND + 60 * MS);
    assert!(!line.flows[0].states[states..].contains(&State::ProbeRtt));
}

#[test]
fn too_many_losses_bound_what_is_in_flight() {
    // 100 in flight, of which 3 are lost when 2 % are tolerated: the bound lies at the first loss too many.
    let mut control = bbr();
    control.long.probe_sample = true;
    control.full_bw.reached = true;
    control.state = State::ProbeUp;
    for lost in 1..=3 {
        control.on_packet_lost(&LostPacket {
            size: 1000,
            tx_in_flight: 100_000,
            lost: lost * 1000,
            total_delivered: 500_000,
            app_limited: false,
            adjacent: false,
        });
    }
    // 99,000 before it and 2000 lost before: (0.02 x 99,000 - 2000) / 0.98 = -20.4.
    assert!(
        (control.long.inflight - 98_979.6).abs() < 0.1,
        "{}",
        control.long.inflight
    );
    assert!(control.cycle.go_down && control.long.prev_probe_too_high);
}

#[test]
fn a_timeout_leaves_one_segment_and_a_spurious_one_gives_all_back() {
    let mut control = bbr();
    let before = control.cwnd();
    control.on_loss(0, LossCause::Timeout, before);
    assert_eq!(control.cwnd(), SEGMENT);
    control.on_undo(0.0, 0);
    assert_eq!(control.cwnd(), before);
}

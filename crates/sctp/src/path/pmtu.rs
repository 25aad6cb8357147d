//! Path MTU discovery by probes: the state machine of RFC 8899 §5 for one path. Sizes are IP
//! packets in bytes.
//!
//! ```text
//!                        probes answered or lost
//!                          +----------+
//!                          v          |
//!  start -------------> Searching ----+---> Complete --(raise timer)--> Searching
//!  (with the base size)    ^                   |
//!                          +-- black hole -----+      packet too big: either way, at once
//! ```
//!
//! [`Comparison`] detects black holes.
//!
//! The base size is assumed to work without a probe. Otherwise a peer that drops packets with the
//! unknown PAD chunk (against RFC 9260 §3.2) could not communicate. The error state of the RFC
//! corresponds to sizes below the base size after a black hole at that size.

use anabranch_transport::Nanos;
use anabranch_transport::time::SECOND;
use anabranch_wire::Tsn;

use super::black_hole::{Comparison, Kind, Verdict};

/// Number of lost probes of one size after which the size is considered too large (MAX_PROBES, RFC
/// 8899 §5.1.2), on a path with few losses.
const MAX_PROBES: u32 = 3;
/// Maximum number of probes of one size on a path with many losses.
const MAX_PROBES_IF_LOSSY: u32 = 8;
/// Acceptable probability of considering a working size too large.
const MISTAKES: f64 = 0.001;
/// Minimum time to wait for the answer to a probe (PROBE_TIMER, RFC 8899 §5.1.1). If the RTO is
/// longer, the RTO is used.
const PROBE_TIMER: Nanos = SECOND;
/// Time after which a larger size is tried again (PMTU_RAISE_TIMER, RFC 8899 §5.1.1).
pub const PMTU_RAISE_TIMER: Nanos = 600 * SECOND;
/// Difference in bytes below which sizes count as equal, because SCTP packets are multiples of 4
/// bytes.
const STEP: usize = 4;

/// Size in bytes that is assumed to work on every path (BASE_PLPMTU, RFC 8899 §5.1.2).
const fn base(ipv6: bool) -> usize {
    if ipv6 { 1280 } else { 1200 }
}

/// Minimum size in bytes: the minimum MTU of IPv6, or the size that every IPv4 host must be able to
/// receive (MIN_PLPMTU).
pub const fn least(ipv6: bool) -> usize {
    if ipv6 { 1280 } else { 576 }
}

/// Outstanding probe.
#[derive(Clone, Copy, Debug)]
struct Flying {
    nonce: u64,
    size: usize,
    sent: Nanos,
    expires: Nanos,
}

/// Size of a probe to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProbeSize {
    /// Size in bytes.
    Bytes(usize),
    /// Minimum size: a HEARTBEAT without PAD.
    Least,
}

/// Probe that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProbeResult {
    /// Send time, if the probe should measure the round-trip time. A probe does not clear the
    /// backoff of the RTO after a timeout of data. As without probes, only acknowledged data clears
    /// the backoff (RFC 9260 §6.3.3 E2).
    pub measures: Option<Nanos>,
}

/// Path MTU discovery of one path.
#[derive(Clone, Debug)]
pub(crate) struct Discovery {
    /// Sizes in bytes: the minimum ([`least`]), the base size, and the MTU of the interface, which
    /// is the maximum.
    least: usize,
    base: usize,
    most: usize,
    /// Largest size in bytes that is known to work, which is the packet size.
    pmtu: usize,
    /// Upper bound of the search: larger sizes do not work, or are not tried before the raise timer
    /// expires.
    limit: usize,
    /// Whether packets of `limit` bytes were probed already.
    limit_tried: bool,
    flying: Option<Flying>,
    /// Number of lost probes of the current size.
    lost: u32,
    /// Time of the next probe; `None` until [`Discovery::start`].
    next: Option<Nanos>,
    /// Whether a probe was answered. If so, the peer does not drop packets with PAD.
    proven: bool,
    /// Comparison of packet sizes, while a black hole is suspected.
    comparison: Option<Comparison>,
}

impl Discovery {
    pub fn new(ipv6: bool, most: usize) -> Self {
        let least = least(ipv6).min(most);
        let base = base(ipv6).min(most);
        Self {
            least,
            base,
            most,
            pmtu: base,
            limit: most,
            limit_tried: false,
            flying: None,
            lost: 0,
            next: None,
            proven: false,
            comparison: None,
        }
    }

    /// Current packet size in bytes.
    pub fn pmtu(&self) -> usize {
        self.pmtu
    }

    /// Starts the search, because the path now carries packets.
    pub fn start(&mut self, now: Nanos) {
        self.next.get_or_insert(now);
    }

    fn is_complete(&self) -> bool {
        self.pmtu + STEP > self.limit
    }

    /// Next size to try: first the largest, which usually works, then by bisection.
    fn candidate(&self) -> usize {
        if self.limit_tried {
            self.pmtu
                + (self.limit - self.pmtu)
                    .div_ceil(2)
                    .next_multiple_of(STEP)
                    .min(self.limit - self.pmtu)
        } else {
            self.limit
        }
    }

    /// Time at which [`Discovery::handle_timeout`] or [`Discovery::due`] has work. `answers`: the
    /// path is working.
    pub fn deadline(&self, answers: bool) -> Option<Nanos> {
        let search = match &self.flying {
            Some(probe) => Some(probe.expires),
            None if answers => self.next,
            None => None,
        };
        // Usually there is no comparison.
        let Some(comparison) = &self.comparison else {
            return search;
        };
        search.into_iter().chain(comparison.deadline()).min()
    }

    /// Size of the probe that must be sent now, if any. `answers`: the path is working.
    pub fn due(&self, now: Nanos, answers: bool) -> Option<ProbeSize> {
        let compared = self.comparison.as_ref().and_then(|it| it.due(now));
        if let Some(kind) = compared {
            return Some(match kind {
                Kind::Large => ProbeSize::Bytes(self.pmtu),
                Kind::Small => ProbeSize::Least,
            });
        }
        let waits = answers && self.flying.is_none() && !self.is_complete();
        let goes = waits && self.next.is_some_and(|at| at <= now);
        goes.then(|| ProbeSize::Bytes(self.candidate()))
    }

    /// Records that the probe returned by [`Self::due`] was sent with `size`.
    pub fn sent(&mut self, now: Nanos, nonce: u64, size: ProbeSize, rto: Nanos) {
        if let Some(comparison) = &mut self.comparison
            && comparison.due(now).is_some()
        {
            return comparison.sent(now, nonce);
        }
        let ProbeSize::Bytes(size) = size else {
            return;
        };
        self.flying = Some(Flying {
            nonce,
            size,
            sent: now,
            expires: now.saturating_add(rto.max(PROBE_TIMER)),
        });
    }

    /// Processes the answer to the probe with `nonce`, which shows that its size works. `None` if
    /// no such probe is outstanding.
    pub fn answered(&mut self, now: Nanos, nonce: u64) -> Option<ProbeResult> {
        let compared = self.comparison.as_mut();
        if let Some(kind) = compared.and_then(|it| it.answered(nonce)) {
            if kind == Kind::Large {
                self.proven = true;
                self.comparison = None;
            }
            return Some(ProbeResult { measures: None });
        }
        let probe = self.flying.take_if(|probe| probe.nonce == nonce)?;
        // A packet larger than the current size has arrived, so the path is no black hole for the
        // current size.
        self.proven = true;
        self.comparison = None;
        // An ICMP message or losses may have lowered the limit since the probe was sent.
        if probe.size <= self.limit {
            self.pmtu = self.pmtu.max(probe.size);
        }
        self.lost = 0;
        self.go_on(now);
        Some(ProbeResult {
            measures: Some(probe.sent),
        })
    }

    /// Schedules the next probe: immediately during the search, else after the raise timer.
    fn go_on(&mut self, now: Nanos) {
        let wait = if self.is_complete() {
            PMTU_RAISE_TIMER
        } else {
            0
        };
        self.next = Some(now.saturating_add(wait));
    }

    /// Handles timers that are due. `troubled`: other packets of the path are not answered either,
    /// so a lost probe is not counted. `losses`: loss ratio of the path for packets of any size.
    pub fn handle_timeout(&mut self, now: Nanos, troubled: bool, losses: f64) {
        if let Some(probe) = self.flying.take_if(|probe| probe.expires <= now) {
            if !troubled {
                self.lost += 1;
            }
            if self.lost >= probes_wanted(losses) {
                self.lost = 0;
                self.limit = probe.size.saturating_sub(STEP).max(self.pmtu);
                self.limit_tried = true;
            }
            let patience = if troubled { PROBE_TIMER } else { 0 };
            self.go_on(now.saturating_add(patience));
        }
        if self.flying.is_none() && self.is_complete() && self.next.is_some_and(|at| at <= now) {
            if self.pmtu + STEP <= self.most {
                self.search_anew();
                self.next = Some(now);
            } else {
                self.next = Some(now.saturating_add(PMTU_RAISE_TIMER));
            }
        }
    }

    fn search_anew(&mut self) {
        self.limit = self.most;
        self.limit_tried = false;
        self.lost = 0;
    }

    /// Next smaller size to use if the current size is a black hole; `None` if there is none.
    pub fn lower(&self) -> Option<usize> {
        let lower = if self.pmtu > self.base {
            self.base
        } else {
            self.least
        };
        (lower < self.pmtu).then_some(lower)
    }

    /// Called when data in packets of the current size timed out: starts a comparison with small
    /// packets. `rto` is the RTO without backoff, and `data` returns the unacknowledged chunks in
    /// such packets, lowest TSNs first. Returns `true` if this timeout completed a comparison and
    /// the size was reduced.
    pub fn timed_out(&mut self, now: Nanos, rto: Nanos, data: impl FnOnce() -> Vec<Tsn>) -> bool {
        if self.lower().is_none() {
            return false;
        }
        match &self.comparison {
            Some(comparison) if comparison.timed_out() => {
                self.fall(now);
                true
            }
            Some(_) => false,
            None => {
                self.comparison = Some(Comparison::new(now, rto, data()));
                false
            }
        }
    }

    /// Chunks in packets of the current size. If one is acknowledged, that size works.
    pub fn compared_data(&self) -> &[Tsn] {
        self.comparison.as_ref().map_or(&[], Comparison::data)
    }

    /// Ends the comparison, because a packet of the current size has arrived.
    pub fn arrives(&mut self) {
        self.comparison = None;
    }

    /// Evaluates the comparison. Returns `true` if it found a black hole: the size was reduced, and
    /// the new size is compared next.
    pub fn compare(&mut self, now: Nanos) -> bool {
        let proven = self.proven;
        let verdict = self.comparison.as_mut().map(|it| it.judge(now, proven));
        match verdict {
            Some(Verdict::BlackHole) => {
                self.fall(now);
                return true;
            }
            Some(Verdict::Innocent) => self.comparison = None,
            Some(Verdict::Open) | None => {}
        }
        false
    }

    fn fall(&mut self, now: Nanos) {
        self.comparison = None;
        let Some(lower) = self.lower() else {
            return;
        };
        self.pmtu = lower;
        self.search_anew();
        self.flying = None;
        self.next = Some(now.saturating_add(PROBE_TIMER));
    }

    /// Processes a credible ICMP report that no packet larger than `mtu` passes (RFC 8899 §4.6).
    /// Returns `true` if the size changed.
    pub fn too_big(&mut self, now: Nanos, mtu: usize) -> bool {
        if mtu < self.least || mtu >= self.limit {
            return false;
        }
        let lowered = mtu < self.pmtu;
        self.comparison = self.comparison.take().filter(|_| !lowered);
        self.pmtu = self.pmtu.min(mtu);
        self.limit = mtu;
        self.limit_tried = false;
        self.lost = 0;
        self.flying.take_if(|probe| probe.size > mtu);
        if self.flying.is_none() {
            self.go_on(now);
        }
        lowered
    }
}

/// Number of consecutive lost probes after which a size is considered too large, chosen so that
/// random losses cause a wrong decision with a probability below [`MISTAKES`].
fn probes_wanted(losses: f64) -> u32 {
    let lost = (2.0 * losses).min(1.0);
    let (mut probes, mut chance) = (MAX_PROBES, lost * lost * lost);
    while chance > MISTAKES && probes < MAX_PROBES_IF_LOSSY {
        probes += 1;
        chance *= lost;
    }
    probes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates probes on a path with MTU `mtu` until the search ends. Returns the sizes tried and
    /// the end time.
    fn search(discovery: &mut Discovery, mut now: Nanos, mtu: usize) -> (Vec<usize>, Nanos) {
        let mut tried = Vec::new();
        for nonce in 0..1000 {
            let Some(ProbeSize::Bytes(size)) = discovery.due(now, true) else {
                break;
            };
            tried.push(size);
            discovery.sent(now, nonce, ProbeSize::Bytes(size), 100);
            if size <= mtu {
                let measures = Some(now);
                let answered = discovery.answered(now + 50, nonce);
                assert_eq!(answered, Some(ProbeResult { measures }));
                now += 50;
            } else {
                now = discovery.deadline(true).expect("a probe is on its way");
                discovery.handle_timeout(now, false, 0.0);
            }
        }
        (tried, now)
    }

    #[test]
    fn a_largest_size_right_above_the_base_is_not_looked_for_again_and_again() {
        for most in 1_200..=1_210 {
            let mut discovery = Discovery::new(false, most);
            discovery.start(0);
            let (_, over) = search(&mut discovery, 0, most);
            discovery.handle_timeout(over, false, 0.0);
            let next = discovery.deadline(true);
            assert!(next.is_some_and(|at| at > over), "{most}: {next:?}");
        }
    }

    #[test]
    fn the_interfaces_mtu_is_found_by_one_probe() {
        let mut discovery = Discovery::new(false, 1500);
        assert_eq!((discovery.pmtu(), discovery.due(0, true)), (1200, None));
        discovery.start(7);
        assert_eq!(search(&mut discovery, 7, 1500).0, [1500]);
        assert_eq!(discovery.pmtu(), 1500);
        assert_eq!(discovery.deadline(true), Some(57 + PMTU_RAISE_TIMER));
        discovery.handle_timeout(57 + PMTU_RAISE_TIMER, false, 0.0);
        assert_eq!(
            discovery.due(57 + PMTU_RAISE_TIMER, true),
            None,
            "nothing to raise"
        );
    }

    /// Each size that does not work is probed three times.
    #[test]
    fn the_packet_size_is_searched_by_halving_the_interval() {
        let mut discovery = Discovery::new(false, 1500);
        discovery.start(0);
        let (tried, now) = search(&mut discovery, 0, 1400);
        assert_eq!(
            tried,
            [
                1500, 1500, 1500, 1348, 1424, 1424, 1424, 1384, 1404, 1404, 1404, 1392, 1396, 1400
            ]
        );
        assert_eq!(discovery.pmtu(), 1400);
        // The path MTU has increased since the search, which is found when the raise timer expires.
        let raise = discovery.deadline(true).expect("the raise timer");
        assert_eq!(raise, now + PMTU_RAISE_TIMER);
        discovery.handle_timeout(raise, false, 0.0);
        assert_eq!(search(&mut discovery, raise, 1500).0, [1500]);
        assert_eq!(discovery.pmtu(), 1500);
    }

    #[test]
    fn every_mtu_is_found_to_the_last_four_bytes() {
        for most in [1280, 1500, 9000, 65_535] {
            for mtu in (1200..=most.min(9000)).step_by(7) {
                let mut discovery = Discovery::new(false, most);
                discovery.start(0);
                search(&mut discovery, 0, mtu);
                let found = discovery.pmtu();
                assert!(
                    found <= mtu && found + STEP > mtu.min(most),
                    "{mtu}: {found}"
                );
            }
        }
    }

    #[test]
    fn probes_lost_while_all_is_lost_say_nothing() {
        let mut discovery = Discovery::new(false, 1500);
        discovery.start(0);
        let mut now = 0;
        for nonce in 0..20 {
            let size = discovery.due(now, true).expect("it goes on trying");
            assert_eq!(size, ProbeSize::Bytes(1500));
            discovery.sent(now, nonce, size, 0);
            now += PROBE_TIMER;
            discovery.handle_timeout(now, true, 0.0);
            assert_eq!(discovery.due(now, true), None);
            now += PROBE_TIMER;
        }
    }

    /// Simulates a timeout at `now` and the following probe pairs. The path drops packets larger
    /// than `mtu`, and those for which `lost` returns true. Returns the end time of the comparison,
    /// and whether the size changed.
    fn compare(
        discovery: &mut Discovery,
        now: Nanos,
        mtu: usize,
        mut lost: impl FnMut() -> bool,
    ) -> (Nanos, bool) {
        let mut now = now;
        if discovery.timed_out(now, SECOND, Vec::new) {
            return (now, true);
        }
        for nonce in 1_000.. {
            match discovery.due(now, false) {
                Some(size) => {
                    discovery.sent(now, nonce, size, 2 * SECOND);
                    let passes = size == ProbeSize::Least || size <= ProbeSize::Bytes(mtu);
                    if passes && !lost() {
                        let answered = discovery.answered(now, nonce);
                        assert_eq!(answered, Some(ProbeResult { measures: None }));
                    }
                }
                None if discovery.compare(now) => return (now, true),
                None => match discovery.comparison.as_ref().and_then(Comparison::deadline) {
                    Some(at) => now = now.max(at),
                    None => return (now, false),
                },
            }
        }
        unreachable!("it ends")
    }

    #[test]
    fn a_black_hole_leads_to_the_base_size_and_then_to_the_least() {
        let mut discovery = Discovery::new(false, 1500);
        discovery.start(0);
        search(&mut discovery, 0, 1500);
        let found = compare(&mut discovery, SECOND, 1000, || false);
        assert_eq!(
            found,
            (2 * SECOND + SECOND / 2, true),
            "within one RTO and a half"
        );
        assert_eq!(discovery.pmtu(), 1200);
        assert!(compare(&mut discovery, 3 * SECOND, 1000, || false).1);
        assert_eq!(discovery.pmtu(), 576);
        let nothing = compare(&mut discovery, 5 * SECOND, 500, || false);
        assert_eq!(nothing, (5 * SECOND, false), "nothing is less");
        let again = 5 * SECOND + PROBE_TIMER;
        assert_eq!(discovery.due(again, true), Some(ProbeSize::Bytes(1500)));
        search(&mut discovery, again, 1000);
        assert_eq!(discovery.pmtu(), 1000);
        let mut v6 = Discovery::new(true, 1500);
        assert!(!compare(&mut v6, 0, 0, || false).1, "1280 is the least");
    }

    #[test]
    fn losses_independent_of_the_size_are_no_black_hole() {
        for loses_one_of in [1, 3, 5] {
            let mut discovery = Discovery::new(false, 1500);
            discovery.start(0);
            search(&mut discovery, 0, 1500);
            for timeout in 1..100 {
                let mut packets = timeout;
                let lost = || {
                    packets += 1;
                    packets % loses_one_of == 0
                };
                let found = compare(&mut discovery, timeout * SECOND, 1500, lost).1;
                assert!(!found, "one of {loses_one_of}, timeout {timeout}");
            }
            assert_eq!(discovery.pmtu(), 1500);
        }
    }

    /// A peer that drops packets with PAD answers no large probe, so a second timeout of data is
    /// needed.
    #[test]
    fn a_peer_that_never_answered_pad_is_judged_by_data_alone() {
        let mut discovery = Discovery::new(false, 1500);
        discovery.start(0);
        assert!(!compare(&mut discovery, SECOND, 100, || false).1);
        assert_eq!(discovery.pmtu(), 1200);
        let mut acknowledged = discovery.clone();
        acknowledged.arrives();
        assert!(!acknowledged.timed_out(3 * SECOND, SECOND, Vec::new));
        assert!(discovery.timed_out(3 * SECOND, SECOND, Vec::new));
        assert_eq!(discovery.pmtu(), 576);
    }

    #[test]
    fn a_lossy_path_takes_more_probes_to_be_found_small() {
        let wanted = [0.0, 0.01, 0.04, 0.07, 0.1, 0.13, 0.25, 0.5].map(probes_wanted);
        assert_eq!(wanted, [3, 3, 3, 4, 5, 6, 8, 8]);
    }

    #[test]
    fn packet_too_big_is_believed_within_bounds() {
        let mut discovery = Discovery::new(false, 1500);
        discovery.start(0);
        discovery.sent(0, 1, ProbeSize::Bytes(1500), 0);
        assert!(!discovery.too_big(10, 1492), "the probe was too big");
        assert_eq!(discovery.due(10, true), Some(ProbeSize::Bytes(1492)));
        assert_eq!(search(&mut discovery, 10, 1492).0, [1492]);
        assert!(!discovery.too_big(20, 1500), "news of yesterday");
        assert!(!discovery.too_big(20, 68), "nobody's MTU");
        assert_eq!(discovery.pmtu(), 1492);
        assert!(discovery.too_big(30, 1300));
        assert_eq!((discovery.pmtu(), discovery.due(30, true)), (1300, None));
        assert_eq!(discovery.deadline(true), Some(30 + PMTU_RAISE_TIMER));
        assert!(discovery.too_big(40, 600), "below the base size");
        assert_eq!(discovery.pmtu(), 600);
        // A late answer must not restore a size that was found too large.
        let mut late = Discovery::new(false, 1500);
        late.start(0);
        late.sent(0, 1, ProbeSize::Bytes(1500), 0);
        late.too_big(1, 1400);
        assert_eq!((late.answered(2, 1), late.pmtu()), (None, 1200));
    }
}

//! Path MTU discovery by probes: the state machine of RFC 8899 §5 for one path. Sizes are IP packets, bytes.
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
//! The base size is taken to work without a probe of its own: a peer that knows no PAD chunk and drops the whole packet
//! (against RFC 9260 §3.2) could else not be spoken to. What the text calls the error state is to go on below the base
//! size after a black hole was found there, too.

use anabranch_transport::Nanos;
use anabranch_transport::time::SECOND;

/// Probes of one size that are lost before it is taken for too large (MAX_PROBES, RFC 8899 §5.1.2).
const MAX_PROBES: u32 = 3;
/// The least wait for an answer (PROBE_TIMER, RFC 8899 §5.1.1); longer where the retransmission timeout is.
const PROBE_TIMER: Nanos = SECOND;
/// After so long a larger size is tried again (PMTU_RAISE_TIMER, RFC 8899 §5.1.1).
pub const PMTU_RAISE_TIMER: Nanos = 600 * SECOND;
/// Timeouts of T3-rtx in a row on a path that make a black hole: one may be any loss.
const BLACK_HOLE: u32 = 2;
/// Sizes that differ by less are the same: SCTP packets are multiples of 4.
const STEP: usize = 4;

/// The size that is taken to work everywhere (BASE_PLPMTU, RFC 8899 §5.1.2).
const fn base(ipv6: bool) -> usize {
    if ipv6 { 1280 } else { 1200 }
}

/// Nothing less is used: the least MTU of IPv6, and what every IPv4 host must be able to receive (MIN_PLPMTU).
pub const fn least(ipv6: bool) -> usize {
    if ipv6 { 1280 } else { 576 }
}

/// A probe on its way.
#[derive(Clone, Copy, Debug)]
struct Flying {
    nonce: u64,
    size: usize,
    sent: Nanos,
    expires: Nanos,
}

/// What a path does to find its MTU.
#[derive(Clone, Debug)]
pub(crate) struct Discovery {
    /// The smallest and the largest size that may come out: see [`least`], and the interface's MTU.
    least: usize,
    base: usize,
    most: usize,
    /// The largest size known to work: what packets have.
    pmtu: usize,
    /// No larger size works, or is to be tried before the raise timer.
    limit: usize,
    /// `limit` itself was tried.
    limit_tried: bool,
    flying: Option<Flying>,
    /// Probes of the present size that were lost.
    lost: u32,
    /// When the next probe goes; `None` until [`Discovery::start`].
    next: Option<Nanos>,
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
        }
    }

    /// The size of packets.
    pub fn pmtu(&self) -> usize {
        self.pmtu
    }

    /// The path carries packets from now on.
    pub fn start(&mut self, now: Nanos) {
        self.next.get_or_insert(now);
    }

    fn is_complete(&self) -> bool {
        self.pmtu + STEP > self.limit
    }

    /// The size to try next: first the largest, which usually works, then halves of what is left.
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

    /// When [`Discovery::handle_timeout`] has something to do, or [`Discovery::due`], on a path that `answers`.
    pub fn deadline(&self, answers: bool) -> Option<Nanos> {
        let next = self.next.filter(|_| answers);
        self.flying.map(|probe| probe.expires).or(next)
    }

    /// The size of the probe that must go now.
    pub fn due(&self, now: Nanos) -> Option<usize> {
        let waits = self.flying.is_none() && !self.is_complete();
        (waits && self.next.is_some_and(|at| at <= now)).then(|| self.candidate())
    }

    /// A probe of `size` went out.
    pub fn sent(&mut self, now: Nanos, nonce: u64, size: usize, rto: Nanos) {
        self.flying = Some(Flying {
            nonce,
            size,
            sent: now,
            expires: now.saturating_add(rto.max(PROBE_TIMER)),
        });
    }

    /// When the probe that `nonce` names went out, if that is the one on its way: its size works.
    pub fn answered(&mut self, now: Nanos, nonce: u64) -> Option<Nanos> {
        let probe = self.flying.take_if(|probe| probe.nonce == nonce)?;
        // It may have been found too large since, by other means.
        if probe.size <= self.limit {
            self.pmtu = self.pmtu.max(probe.size);
        }
        self.lost = 0;
        self.go_on(now);
        Some(probe.sent)
    }

    /// The next probe goes now, or when the path may have changed.
    fn go_on(&mut self, now: Nanos) {
        let wait = if self.is_complete() {
            PMTU_RAISE_TIMER
        } else {
            0
        };
        self.next = Some(now.saturating_add(wait));
    }

    /// Runs what is due. `troubled`: other packets of the path are not answered either, so a lost probe says nothing.
    pub fn handle_timeout(&mut self, now: Nanos, troubled: bool) {
        if let Some(probe) = self.flying.take_if(|probe| probe.expires <= now) {
            if !troubled {
                self.lost += 1;
            }
            if self.lost >= MAX_PROBES {
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

    /// So many timeouts in a row, or something was sent again and again `in_vain`: if the path swallows what is larger than
    /// the base size, or than the least, packets of that size get through. True if the size has changed.
    pub fn timed_out(&mut self, now: Nanos, errors: u32, in_vain: bool) -> bool {
        let lower = if self.pmtu > self.base {
            self.base
        } else {
            self.least
        };
        let suspicious = errors >= BLACK_HOLE || in_vain;
        if !suspicious || lower >= self.pmtu {
            return false;
        }
        self.pmtu = lower;
        self.search_anew();
        self.flying = None;
        self.next = Some(now.saturating_add(PROBE_TIMER));
        true
    }

    /// The network says that nothing larger than `mtu` passes (ICMP, as far as it is to be believed, RFC 8899 §4.6). True if
    /// the size has changed.
    pub fn too_big(&mut self, now: Nanos, mtu: usize) -> bool {
        if mtu < self.least || mtu >= self.limit {
            return false;
        }
        let lowered = mtu < self.pmtu;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets probes through a path of `mtu` until the search is over; gives the sizes tried and when it was over.
    fn search(discovery: &mut Discovery, mut now: Nanos, mtu: usize) -> (Vec<usize>, Nanos) {
        let mut tried = Vec::new();
        for nonce in 0..1000 {
            let Some(size) = discovery.due(now) else {
                break;
            };
            tried.push(size);
            discovery.sent(now, nonce, size, 100);
            if size <= mtu {
                assert_eq!(discovery.answered(now + 50, nonce), Some(now));
                now += 50;
            } else {
                now = discovery.deadline(true).expect("a probe is on its way");
                discovery.handle_timeout(now, false);
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
            discovery.handle_timeout(over, false);
            let next = discovery.deadline(true);
            assert!(next.is_some_and(|at| at > over), "{most}: {next:?}");
        }
    }

    #[test]
    fn the_interfaces_mtu_is_found_by_one_probe() {
        let mut discovery = Discovery::new(false, 1500);
        assert_eq!((discovery.pmtu(), discovery.due(0)), (1200, None));
        discovery.start(7);
        assert_eq!(search(&mut discovery, 7, 1500).0, [1500]);
        assert_eq!(discovery.pmtu(), 1500);
        assert_eq!(discovery.deadline(true), Some(57 + PMTU_RAISE_TIMER));
        discovery.handle_timeout(57 + PMTU_RAISE_TIMER, false);
        assert_eq!(
            discovery.due(57 + PMTU_RAISE_TIMER),
            None,
            "nothing to raise"
        );
    }

    /// Each size that does not work takes three probes.
    #[test]
    fn what_is_between_is_found_by_halves() {
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
        // The path grew meanwhile: found when the raise timer ends.
        let raise = discovery.deadline(true).expect("the raise timer");
        assert_eq!(raise, now + PMTU_RAISE_TIMER);
        discovery.handle_timeout(raise, false);
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
            let size = discovery.due(now).expect("it goes on trying");
            assert_eq!(size, 1500);
            discovery.sent(now, nonce, size, 0);
            now += PROBE_TIMER;
            discovery.handle_timeout(now, true);
            assert_eq!(discovery.due(now), None);
            now += PROBE_TIMER;
        }
    }

    #[test]
    fn a_black_hole_leads_to_the_base_size_and_then_to_the_least() {
        let mut discovery = Discovery::new(false, 1500);
        discovery.start(0);
        search(&mut discovery, 0, 1500);
        assert!(!discovery.timed_out(10, 1, false), "any loss");
        assert!(discovery.timed_out(20, 2, false));
        assert_eq!(discovery.pmtu(), 1200);
        assert!(discovery.timed_out(30, 1, true));
        assert_eq!(discovery.pmtu(), 576);
        assert!(!discovery.timed_out(40, 4, true), "nothing is less");
        let again = 30 + PROBE_TIMER;
        assert_eq!(discovery.due(again), Some(1500));
        search(&mut discovery, again, 1000);
        assert_eq!(discovery.pmtu(), 1000);
        let mut v6 = Discovery::new(true, 1500);
        assert!(!v6.timed_out(0, 5, true), "1280 is the least");
    }

    #[test]
    fn packet_too_big_is_believed_within_bounds() {
        let mut discovery = Discovery::new(false, 1500);
        discovery.start(0);
        discovery.sent(0, 1, 1500, 0);
        assert!(!discovery.too_big(10, 1492), "the probe was too big");
        assert_eq!(discovery.due(10), Some(1492));
        assert_eq!(search(&mut discovery, 10, 1492).0, [1492]);
        assert!(!discovery.too_big(20, 1500), "news of yesterday");
        assert!(!discovery.too_big(20, 68), "nobody's MTU");
        assert_eq!(discovery.pmtu(), 1492);
        assert!(discovery.too_big(30, 1300));
        assert_eq!((discovery.pmtu(), discovery.due(30)), (1300, None));
        assert_eq!(discovery.deadline(true), Some(30 + PMTU_RAISE_TIMER));
        assert!(discovery.too_big(40, 600), "below the base size");
        assert_eq!(discovery.pmtu(), 600);
        // An answer that comes too late does not bring back what was found too big.
        let mut late = Discovery::new(false, 1500);
        late.start(0);
        late.sent(0, 1, 1500, 0);
        late.too_big(1, 1400);
        assert_eq!((late.answered(2, 1), late.pmtu()), (None, 1200));
    }
}

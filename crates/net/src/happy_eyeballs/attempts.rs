//! Schedule of attempts: RFC 8305 §3 and §5. The state machine reads no clock: the caller passes
//! the time since the start.

use std::net::IpAddr;
use std::time::Duration;

use super::HappyEyeballsTiming;
use super::address_selection::interleave;

/// The next step of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Start an attempt at this address.
    Begin(IpAddr),
    /// Wait until this time, or until the next event if there is no time.
    Wait(Option<Duration>),
    /// All addresses were tried, and all attempts have failed.
    Over,
}

/// State of connecting to one name: its addresses and attempts.
#[derive(Debug)]
pub(super) struct Race {
    timing: HappyEyeballsTiming,
    /// Sorted addresses for which no attempt was started.
    untried: Vec<IpAddr>,
    tried: Vec<IpAddr>,
    /// True if the resolver may return more answers.
    resolving: bool,
    /// The time of the first answer of the resolver.
    answered: Option<Duration>,
    /// The time of the next attempt; `None`: immediately.
    due: Option<Duration>,
    running: usize,
}

impl Race {
    pub(super) fn new(timing: HappyEyeballsTiming) -> Self {
        Self {
            timing,
            untried: Vec::new(),
            tried: Vec::new(),
            resolving: true,
            answered: None,
            due: None,
            running: 0,
        }
    }

    /// Adds the addresses of an answer; `sort` sorts all addresses that were not tried yet.
    pub(super) fn answer(&mut self, now: Duration, more: &[IpAddr], sort: impl Fn(&mut [IpAddr])) {
        for address in more {
            if !self.untried.contains(address) && !self.tried.contains(address) {
                self.untried.push(*address);
            }
        }
        if !more.is_empty() {
            self.answered.get_or_insert(now);
        }
        sort(&mut self.untried);
        self.untried = interleave(&self.untried);
        // The alternation of families continues from the last address that was tried.
        if let (Some(last), Some(next)) = (self.tried.last(), self.untried.first())
            && last.is_ipv4() == next.is_ipv4()
            && let Some(other) = self
                .untried
                .iter()
                .position(|it| it.is_ipv4() != last.is_ipv4())
        {
            let other = self.untried.remove(other);
            self.untried.insert(0, other);
        }
    }

    /// Records that the resolver returns no more answers.
    pub(super) fn resolved(&mut self) {
        self.resolving = false;
    }

    /// Records that an attempt failed: the next attempt starts immediately (RFC 8305 §5).
    pub(super) fn failed(&mut self) {
        self.running = self.running.saturating_sub(1);
        self.due = None;
    }

    /// The next step; should be called after each step and each event.
    pub(super) fn next(&mut self, now: Duration) -> Step {
        if self.untried.is_empty() {
            return match self.resolving || self.running > 0 {
                true => Step::Wait(None),
                false => Step::Over,
            };
        }
        // IPv4 addresses wait briefly for IPv6 addresses (RFC 8305 §3).
        let has_v6 = self.untried.iter().any(IpAddr::is_ipv6);
        let until = match self.answered {
            Some(at) if self.tried.is_empty() && self.resolving && !has_v6 => {
                Some(at.saturating_add(self.timing.resolution_delay))
            }
            _ => self.due,
        };
        if let Some(until) = until
            && now < until
        {
            return Step::Wait(Some(until));
        }
        let address = self.untried.remove(0);
        self.tried.push(address);
        self.running += 1;
        self.due = Some(now.saturating_add(self.timing.attempt_delay));
        Step::Begin(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn addresses(text: &[&str]) -> Vec<IpAddr> {
        text.iter()
            .map(|it| it.parse().expect("an address"))
            .collect()
    }

    #[test]
    fn attempts_begin_250_ms_apart_or_when_one_failed() {
        let all = addresses(&["::1", "::2", "10.0.0.1"]);
        let mut race = Race::new(HappyEyeballsTiming::default());
        assert_eq!(race.next(ms(0)), Step::Wait(None));
        race.answer(ms(5), &all, |_| {});
        race.resolved();
        assert_eq!(race.next(ms(5)), Step::Begin(all[0]));
        assert_eq!(race.next(ms(5)), Step::Wait(Some(ms(255))));
        assert_eq!(race.next(ms(255)), Step::Begin(all[2]));
        race.failed();
        assert_eq!(race.next(ms(300)), Step::Begin(all[1]));
        assert_eq!(race.next(ms(300)), Step::Wait(None));
        race.failed();
        assert_eq!(race.next(ms(301)), Step::Wait(None), "one still runs");
        race.failed();
        assert_eq!(race.next(ms(302)), Step::Over);
    }

    #[test]
    fn ipv4_waits_50_ms_for_ipv6_and_not_the_other_way_round() {
        let [v4, v6] = [addresses(&["10.0.0.1"]), addresses(&["::1"])];
        let mut race = Race::new(HappyEyeballsTiming::default());
        race.answer(ms(10), &v4, |_| {});
        assert_eq!(race.next(ms(10)), Step::Wait(Some(ms(60))));
        assert_eq!(race.next(ms(60)), Step::Begin(v4[0]));
        let mut race = Race::new(HappyEyeballsTiming::default());
        race.answer(ms(10), &v4, |_| {});
        race.answer(ms(30), &v6, |all| all.sort_by_key(IpAddr::is_ipv4));
        assert_eq!(race.next(ms(30)), Step::Begin(v6[0]));
        let mut race = Race::new(HappyEyeballsTiming::default());
        race.answer(ms(10), &v6, |_| {});
        assert_eq!(race.next(ms(10)), Step::Begin(v6[0]), "nothing to wait for");
        let mut race = Race::new(HappyEyeballsTiming::default());
        race.answer(ms(10), &v4, |_| {});
        race.resolved();
        assert_eq!(
            race.next(ms(10)),
            Step::Begin(v4[0]),
            "all answers are there"
        );
    }

    #[test]
    fn attempts_may_follow_failures_alone() {
        let all = addresses(&["::1", "::2"]);
        let timing = HappyEyeballsTiming::default().with(|it| it.attempt_delay = Duration::MAX);
        let mut race = Race::new(timing);
        race.answer(ms(5), &all, |_| {});
        assert_eq!(race.next(ms(5)), Step::Begin(all[0]));
        assert_eq!(race.next(ms(9)), Step::Wait(Some(Duration::MAX)));
        race.failed();
        assert_eq!(race.next(ms(9)), Step::Begin(all[1]));
    }

    /// Addresses of a late answer are added to the untried addresses, without duplicates.
    #[test]
    fn late_answers_join_the_race() {
        let first = addresses(&["::1", "::2"]);
        let late = addresses(&["10.0.0.1", "::1", "::2"]);
        let mut race = Race::new(HappyEyeballsTiming::default());
        race.answer(ms(0), &first, |_| {});
        assert_eq!(race.next(ms(0)), Step::Begin(first[0]));
        race.answer(ms(100), &late, |_| {});
        assert_eq!(race.next(ms(100)), Step::Wait(Some(ms(250))));
        assert_eq!(race.next(ms(250)), Step::Begin(late[0]), "the other family");
        assert_eq!(race.next(ms(500)), Step::Begin(first[1]));
        race.resolved();
        (0..3).for_each(|_| race.failed());
        assert_eq!(race.next(ms(500)), Step::Over);
    }

    #[test]
    fn a_name_without_addresses_is_over_once_it_is_resolved() {
        let mut race = Race::new(HappyEyeballsTiming::default());
        assert_eq!(race.next(ms(0)), Step::Wait(None));
        race.resolved();
        assert_eq!(race.next(ms(9)), Step::Over);
    }
}

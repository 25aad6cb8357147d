//! Responses to the peer's reconfiguration requests (RFC 6525 §5.2.1).

use std::collections::VecDeque;

use anabranch_transport::Nanos;
use anabranch_transport::time::SECOND;
use anabranch_wire::Tsn;
use anabranch_wire::extension::{ReConfigParameter, ReConfigResult};

use super::streams::Streams;

/// Number of stored responses: the maximum number of requests in a chunk.
const KEPT: usize = 2;
/// Multiple of the peer's last request interval, or of its maximum response time, during which no
/// new data is sent after a refused association reset.
const QUIET_FACTOR: u64 = 4;
/// Maximum interval between two requests that `QUIET_FACTOR` multiplies, in nanoseconds.
const MAX_BETWEEN: Nanos = 60 * SECOND;

/// Response that was sent to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResponseSent {
    pub(crate) number: u32,
    pub(crate) result: ReConfigResult,
    pub(crate) next_tsns: Option<(Tsn, Tsn)>,
}

impl ResponseSent {
    pub(crate) fn parameter(self) -> ReConfigParameter {
        ReConfigParameter::Response {
            response: self.number,
            result: self.result,
            next_tsns: self.next_tsns,
        }
    }
}

/// Reset of the peer's streams that waits for data sent before it (RFC 6525 §5.2.2 E2).
#[derive(Clone, Debug)]
pub(crate) struct DeferredReset {
    pub(crate) number: u32,
    pub(crate) last_tsn: Tsn,
    pub(crate) streams: Streams,
}

/// Period without new data, after an association reset was refused because data was in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QuietPeriod {
    /// Time of the peer's last request.
    asked: Nanos,
    /// Time after which a further request is no longer expected.
    pub(crate) until: Nanos,
}

impl QuietPeriod {
    /// Starts or extends the period after a request at `now`. `rto` is the maximum response time of
    /// the peer; `before` is the current period.
    pub(crate) fn new(now: Nanos, rto: Nanos, before: Option<Self>) -> Self {
        let since = before.map_or(0, |it| now.saturating_sub(it.asked));
        Self {
            asked: now,
            until: now.saturating_add(QUIET_FACTOR.saturating_mul(since.clamp(rto, MAX_BETWEEN))),
        }
    }
}

/// Classification of a request by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestClass {
    /// The next request.
    New,
    /// A request that was already answered, with its response.
    Again(ResponseSent),
    /// A request with a number that is neither the next nor a recent one.
    BadNumber,
}

/// State for the peer's requests: next number, and recent responses.
#[derive(Debug)]
pub(crate) struct Responses {
    expected: u32,
    kept: VecDeque<ResponseSent>,
    pub(crate) deferred: Option<DeferredReset>,
    /// Present while no new data is sent, so that an association reset can be performed.
    pub(crate) quieting: Option<QuietPeriod>,
}

impl Responses {
    /// Initial state; `first` is the number of the peer's first request.
    pub(crate) fn new(first: u32) -> Self {
        Self {
            expected: first,
            kept: VecDeque::new(),
            deferred: None,
            quieting: None,
        }
    }

    /// Number of the peer's next request.
    pub(crate) fn expected(&self) -> u32 {
        self.expected
    }

    pub(crate) fn judge(&self, number: u32) -> RequestClass {
        if number == self.expected {
            return RequestClass::New;
        }
        let kept = self.kept.iter().find(|it| it.number == number);
        kept.map_or(RequestClass::BadNumber, |&it| RequestClass::Again(it))
    }

    /// Records a response to the next request, or a new response to a request that was in progress.
    pub(crate) fn note(&mut self, answered: ResponseSent) {
        if answered.number == self.expected {
            self.expected = self.expected.wrapping_add(1);
            if self.kept.len() == KEPT {
                self.kept.pop_front();
            }
            self.kept.push_back(answered);
        } else if let Some(kept) = self.kept.iter_mut().find(|it| it.number == answered.number) {
            *kept = answered;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(number: u32, result: ReConfigResult) -> ResponseSent {
        ResponseSent {
            number,
            result,
            next_tsns: None,
        }
    }

    #[test]
    fn two_answers_are_kept_and_numbers_wrap() {
        let mut answers = Responses::new(u32::MAX - 1);
        for number in [u32::MAX - 1, u32::MAX, 0] {
            assert_eq!(answers.judge(number), RequestClass::New);
            answers.note(answered(number, ReConfigResult::Performed));
        }
        assert_eq!(answers.expected(), 1);
        assert_eq!(
            answers.judge(u32::MAX - 1),
            RequestClass::BadNumber,
            "too old"
        );
        assert_eq!(answers.judge(2), RequestClass::BadNumber, "too new");
        for number in [u32::MAX, 0] {
            let kept = answered(number, ReConfigResult::Performed);
            assert_eq!(answers.judge(number), RequestClass::Again(kept));
        }
        answers.note(answered(0, ReConfigResult::Denied));
        assert_eq!(
            answers.expected(),
            1,
            "an answer that is known moves nothing"
        );
        let kept = answered(0, ReConfigResult::Denied);
        assert_eq!(answers.judge(0), RequestClass::Again(kept));
        answers.note(answered(77, ReConfigResult::Denied));
        assert_eq!(answers.judge(77), RequestClass::BadNumber);
    }
}

//! Tags of recently closed associations. They prevent a captured COOKIE ECHO from restoring an
//! association, and identify late data after a SHUTDOWN.

use std::collections::{BTreeMap, VecDeque};

use anabranch_transport::Nanos;

use crate::lazy_box::IsEmpty;

/// Maximum number of remembered tags. Beyond it the oldest tags are dropped early, and all cookies
/// of their age become invalid.
const MAX_RETIRED: usize = 16_384;

/// Tags of closed associations whose cookies may not have expired yet.
#[derive(Debug, Default)]
pub(super) struct RetiredTags {
    /// Tags, each with the time until which data with this tag is considered late, and is not
    /// answered by an ABORT.
    tags: BTreeMap<u32, Nanos>,
    order: VecDeque<Retired>,
    /// Close time of the last tag that was dropped early. Cookies created before this time may
    /// belong to a closed association.
    horizon: Option<Nanos>,
}

#[derive(Debug)]
struct Retired {
    tag: u32,
    ended: Nanos,
    /// Time at which all cookies with this tag have expired.
    until: Nanos,
}

/// Whether the association of a cookie was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TagHistory {
    /// The association was closed.
    Over,
    /// It is unknown whether the association was closed, because the cookie is older than all
    /// remembered tags. The value is the time in nanoseconds by which the cookie is too old.
    Unknown(Nanos),
}

impl IsEmpty for RetiredTags {
    const EMPTY: &'static Self = &Self {
        tags: BTreeMap::new(),
        order: VecDeque::new(),
        horizon: None,
    };

    fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

impl RetiredTags {
    /// Stores `tag` for the longest validity of its cookies: one lifespan, doubled if the peer
    /// requested a longer one. `late_until`: time until which data with this tag is considered
    /// late.
    pub(super) fn retire(&mut self, now: Nanos, tag: u32, cookie_life: Nanos, late_until: Nanos) {
        self.forget_expired(now);
        if self.tags.insert(tag, late_until).is_none() {
            self.order.push_back(Retired {
                tag,
                ended: now,
                until: now.saturating_add(cookie_life.saturating_mul(2)),
            });
        }
        if self.order.len() > MAX_RETIRED
            && let Some(oldest) = self.order.pop_front()
        {
            self.tags.remove(&oldest.tag);
            self.horizon = Some(oldest.ended);
        }
    }

    /// History of the association with this tag and a cookie created at `created_at`; `None` if the
    /// association was not closed.
    pub(super) fn past(&mut self, now: Nanos, tag: u32, created_at: Nanos) -> Option<TagHistory> {
        self.forget_expired(now);
        if self.tags.contains_key(&tag) {
            return Some(TagHistory::Over);
        }
        // The value is at least one nanosecond, because it is reported as staleness.
        let younger = self.horizon?.saturating_add(1);
        let lacks = younger.saturating_sub(created_at);
        (lacks > 0).then_some(TagHistory::Unknown(lacks))
    }

    /// Whether data with this tag is considered late.
    pub(super) fn expects_late_data(&mut self, now: Nanos, tag: u32) -> bool {
        self.forget_expired(now);
        self.tags.get(&tag).is_some_and(|&until| now <= until)
    }

    /// Removes expired tags. If none is left, the horizon is cleared, because cookies of tags that
    /// were dropped early have then expired as well.
    fn forget_expired(&mut self, now: Nanos) {
        while let Some(oldest) = self.order.front()
            && oldest.until < now
        {
            self.tags.remove(&oldest.tag);
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_transport::time::SECOND;

    use super::*;

    const LIFE: Nanos = 60 * SECOND;

    #[test]
    fn a_tag_is_remembered_as_long_as_its_cookie_may_be_good() {
        let mut tags = RetiredTags::default();
        tags.retire(SECOND, 7, LIFE, 0);
        assert_eq!(tags.past(121 * SECOND, 7, 0), Some(TagHistory::Over));
        assert_eq!(tags.past(121 * SECOND, 8, 0), None, "another's");
        assert_eq!(tags.past(121 * SECOND + 1, 7, 0), None);
        assert!(tags.is_empty());
    }

    /// Cookies of closed associations are rejected, even after more closings than tags can be
    /// remembered.
    #[test]
    fn no_cookie_is_good_that_may_be_of_a_tag_forgotten_early() {
        let mut tags = RetiredTags::default();
        let ended = |tag: u32| SECOND + Nanos::from(tag);
        for tag in 0..MAX_RETIRED as u32 {
            tags.retire(ended(tag), tag, LIFE, 0);
        }
        let now = 2 * SECOND;
        assert_eq!(tags.past(now, u32::MAX, 0), None, "all are remembered");
        for tag in MAX_RETIRED as u32..MAX_RETIRED as u32 + 10 {
            tags.retire(ended(tag), tag, LIFE, 0);
        }
        assert_eq!(tags.order.len(), MAX_RETIRED);
        // Tags 0 to 9 are dropped early: cookies are rejected if they were created before the last
        // association with one of these tags was closed. Later cookies are accepted.
        for tag in 0..10 {
            let lacks = ended(9) + 1 - SECOND;
            assert_eq!(
                tags.past(now, tag, SECOND),
                Some(TagHistory::Unknown(lacks))
            );
        }
        assert_eq!(tags.past(now, 0, ended(9)), Some(TagHistory::Unknown(1)));
        assert_eq!(tags.past(now, u32::MAX, ended(9) + 1), None);
        assert_eq!(tags.past(now, 10, ended(9) + 1), Some(TagHistory::Over));
    }
}

//! Tags of associations that ended lately, so that a COOKIE ECHO seen on the way cannot call one back to life, and what arrives late for
//! one that ended well draws no ABORT.

use std::collections::{BTreeMap, VecDeque};

use anabranch_transport::Nanos;

use crate::seldom::Blank;

/// The most tags remembered; beyond it the oldest are forgotten early.
const MOST: usize = 4_096;

/// Tags whose cookies may still be within their lifespan.
#[derive(Debug, Default)]
pub(super) struct RetiredTags {
    /// Whether it ended by SHUTDOWN.
    tags: BTreeMap<u32, bool>,
    order: VecDeque<(Nanos, u32)>,
}

impl Blank for RetiredTags {
    const BLANK: &'static Self = &Self {
        tags: BTreeMap::new(),
        order: VecDeque::new(),
    };

    fn is_blank(&self) -> bool {
        self.order.is_empty()
    }
}

impl RetiredTags {
    /// Remembers `tag` as long as a cookie of it can be good: one lifespan, and as much again where the peer asked for
    /// a longer one. `graceful`: it ended by SHUTDOWN.
    pub(super) fn retire(&mut self, now: Nanos, tag: u32, cookie_life: Nanos, graceful: bool) {
        self.forget_expired(now);
        if self.tags.insert(tag, graceful).is_none() {
            self.order
                .push_back((now.saturating_add(cookie_life.saturating_mul(2)), tag));
        }
        if self.order.len() > MOST
            && let Some((_, oldest)) = self.order.pop_front()
        {
            self.tags.remove(&oldest);
        }
    }

    /// Whether an association of that tag ended lately.
    pub(super) fn contains(&mut self, now: Nanos, tag: u32) -> bool {
        self.forget_expired(now);
        self.tags.contains_key(&tag)
    }

    /// Whether an association of that tag ended lately by SHUTDOWN.
    pub(super) fn ended_well(&mut self, now: Nanos, tag: u32) -> bool {
        self.forget_expired(now);
        self.tags.get(&tag) == Some(&true)
    }

    fn forget_expired(&mut self, now: Nanos) {
        while let Some(&(until, tag)) = self.order.front()
            && until < now
        {
            self.order.pop_front();
            self.tags.remove(&tag);
        }
    }
}

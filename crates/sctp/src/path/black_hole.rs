//! Black hole detection (RFC 8899 §4.3): whether a path loses packets because of their size.
//!
//! A retransmission timeout may follow any loss, so it only triggers a check. The path is then
//! probed by pairs of packets: one of the current size, directly followed by one of minimum size.
//! The path is a black hole if small probes are answered, but no probe of the current size is
//! answered and no data in packets of that size is acknowledged. Losses that do not depend on the
//! size affect the probes of both sizes.

use anabranch_transport::Nanos;
use anabranch_wire::Tsn;

/// Number of probe pairs in one comparison (MAX_PROBES, RFC 8899 §5.1.2).
const PAIRS: u32 = 3;
/// Number of pairs sent per retransmission timeout. All pairs, and one RTO for the last answer,
/// take less than the two RTOs until the next T3-rtx timeout.
const PAIRS_PER_RTO: u64 = 4;
/// Number of answered small probes after which the path is known to carry small packets.
const MIN_ANSWERED: u32 = 2;

/// Size class of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A probe packet of the path's current packet size.
    Large,
    /// A probe packet of minimum size.
    Small,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    nonce: u64,
    kind: Kind,
}

/// Comparison of the current packet size with the minimum size.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    /// Unacknowledged chunks sent in packets of the current size, lowest TSNs first.
    data: Vec<Tsn>,
    /// Retransmission timeout in nanoseconds, without backoff.
    rto: Nanos,
    /// Outstanding probes.
    probes: Vec<Probe>,
    pairs: u32,
    /// Whether the next probe is the small probe of the current pair.
    halfway: bool,
    small_answers: u32,
    /// Time of the next pair, or of the end of the comparison.
    next: Nanos,
    /// Whether only small probes were answered so far. The peer may drop packets with PAD chunks,
    /// so the comparison waits for the next timeout of data.
    pending: bool,
}

/// Outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The comparison is not complete.
    Open,
    /// The packet size is not the cause of the losses: packets of the current size arrive, or small
    /// packets do not arrive either.
    Innocent,
    /// Small packets arrive, but packets of the current size do not.
    BlackHole,
}

impl Comparison {
    /// Starts a comparison after a timeout of the chunks `data`.
    pub fn new(now: Nanos, rto: Nanos, data: Vec<Tsn>) -> Self {
        Self {
            data,
            rto,
            probes: Vec::with_capacity(2 * PAIRS as usize),
            pairs: 0,
            halfway: false,
            small_answers: 0,
            next: now,
            pending: false,
        }
    }

    /// Chunks in packets of the current size. If one is acknowledged, that size works.
    pub fn data(&self) -> &[Tsn] {
        &self.data
    }

    /// Time of the next probe or of the end of the comparison; `None` while it waits for the next
    /// timeout of data.
    pub fn deadline(&self) -> Option<Nanos> {
        (!self.pending).then_some(self.next)
    }

    /// Probe that must be sent now, if any.
    pub fn due(&self, now: Nanos) -> Option<Kind> {
        if self.halfway {
            return Some(Kind::Small);
        }
        let goes = !self.pending && self.pairs < PAIRS && self.next <= now;
        goes.then_some(Kind::Large)
    }

    /// Records that the probe returned by [`Self::due`] was sent.
    pub fn sent(&mut self, now: Nanos, nonce: u64) {
        let kind = if self.halfway {
            Kind::Small
        } else {
            Kind::Large
        };
        self.probes.push(Probe { nonce, kind });
        self.halfway = !self.halfway;
        if self.halfway {
            return;
        }
        self.pairs += 1;
        let wait = match self.pairs {
            PAIRS => self.rto,
            _ => self.rto / PAIRS_PER_RTO,
        };
        self.next = now.saturating_add(wait);
    }

    /// Processes the answer to a probe; returns the kind of the probe.
    pub fn answered(&mut self, nonce: u64) -> Option<Kind> {
        let index = self.probes.iter().position(|it| it.nonce == nonce)?;
        let probe = self.probes.swap_remove(index);
        self.small_answers += u32::from(probe.kind == Kind::Small);
        Some(probe.kind)
    }

    /// Outcome of the comparison at `now`, provided that no packet of the current size was
    /// acknowledged. `proven`: the peer has answered a packet with a PAD chunk before.
    pub fn judge(&mut self, now: Nanos, proven: bool) -> Verdict {
        if self.pending || self.halfway || self.pairs < PAIRS || now < self.next {
            return Verdict::Open;
        }
        if self.small_answers < MIN_ANSWERED {
            return Verdict::Innocent;
        }
        if !proven {
            self.pending = true;
            return Verdict::Open;
        }
        Verdict::BlackHole
    }

    /// Called when data timed out again. Returns `true` if this completes the comparison: small
    /// packets arrive, and data in packets of the current size does not.
    pub fn timed_out(&self) -> bool {
        self.pending
    }
}

//! Black hole detection (RFC 8899 §4.3): whether a path loses packets for their size.
//!
//! A retransmission timeout may follow from any loss, so it is a reason to look and no more. The
//! path is then probed in pairs: a packet of the size in use, and right behind it one that is as
//! small as can be. It is a black hole if small packets are answered while neither a probe of the
//! size in use is, nor data that went in packets of that size is acknowledged. Packets that are
//! lost whatever their size are lost in both kinds.

use anabranch_transport::Nanos;
use anabranch_wire::Tsn;

/// Pairs of one comparison (MAX_PROBES, RFC 8899 §5.1.2).
const PAIRS: u32 = 3;
/// Pairs go so often within one retransmission timeout: all of them, and an RTO more for the last
/// answer, take less than the two RTO that the next timeout of T3-rtx is away.
const PAIRS_PER_RTO: u64 = 4;
/// Small packets whose answers show that the path carries small ones.
const ENOUGH: u32 = 2;

/// A probe of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Of the size in use.
    Large,
    /// As small as can be.
    Small,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    nonce: u64,
    kind: Kind,
}

/// Packets of the size in use compared with small ones.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    /// Unacknowledged chunks that went in packets of the size in use, the lowest TSNs.
    data: Vec<Tsn>,
    /// The retransmission timeout as measured, without backoff.
    rto: Nanos,
    /// What went and was not answered.
    probes: Vec<Probe>,
    pairs: u32,
    /// The small one of the pair is to follow.
    halfway: bool,
    small_answers: u32,
    /// When the next pair goes, or the comparison is over.
    next: Nanos,
    /// Small packets alone were answered. A peer may drop packets with PAD for that: until the next
    /// timeout, which data alone decides.
    pending: bool,
}

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It goes on.
    Open,
    /// The size in use arrives, or nothing does: nothing is wrong with the size.
    Innocent,
    /// The size in use does not arrive, and small packets do.
    BlackHole,
}

impl Comparison {
    /// A comparison that begins at `now`, after a timeout of `data`.
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

    /// The chunks whose acknowledgement would show that the size arrives.
    pub fn data(&self) -> &[Tsn] {
        &self.data
    }

    /// When a probe goes or the comparison is over; `None` while it waits for the next timeout.
    pub fn deadline(&self) -> Option<Nanos> {
        (!self.pending).then_some(self.next)
    }

    /// The probe that must go now.
    pub fn due(&self, now: Nanos) -> Option<Kind> {
        if self.halfway {
            return Some(Kind::Small);
        }
        let goes = !self.pending && self.pairs < PAIRS && self.next <= now;
        goes.then_some(Kind::Large)
    }

    /// The probe that [was due](Self::due) went.
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

    /// An answer came: which kind of probe it answers.
    pub fn answered(&mut self, nonce: u64) -> Option<Kind> {
        let index = self.probes.iter().position(|it| it.nonce == nonce)?;
        let probe = self.probes.swap_remove(index);
        self.small_answers += u32::from(probe.kind == Kind::Small);
        Some(probe.kind)
    }

    /// What the comparison has come to at `now`, unless the size in use was seen to arrive.
    /// `proven`: the peer has answered a packet with PAD before.
    pub fn judge(&mut self, now: Nanos, proven: bool) -> Verdict {
        if self.pending || self.halfway || self.pairs < PAIRS || now < self.next {
            return Verdict::Open;
        }
        if self.small_answers < ENOUGH {
            return Verdict::Innocent;
        }
        if !proven {
            self.pending = true;
            return Verdict::Open;
        }
        Verdict::BlackHole
    }

    /// Data timed out again. True if that decides it: small packets arrive, and data of the size in
    /// use does not.
    pub fn timed_out(&self) -> bool {
        self.pending
    }
}

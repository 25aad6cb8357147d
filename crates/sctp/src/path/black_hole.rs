//! Black hole detection (RFC 8899 §4.3): whether a path loses packets because of their size.
//!
//! A retransmission timeout may follow any loss, so it only triggers a check. The path is then
//! probed in pairs: a packet of the current size, directly followed by one of minimum size. The
//! path is a black hole if small packets are answered while neither probes of the current size are
//! answered nor data in packets of that size is acknowledged. Losses independent of the size affect
//! both kinds.

use anabranch_transport::Nanos;
use anabranch_wire::Tsn;

/// Pairs of one comparison (MAX_PROBES, RFC 8899 §5.1.2).
const PAIRS: u32 = 3;
/// Pairs per retransmission timeout: all of them, plus one RTO for the last answer, take less than
/// the two RTO until the next T3-rtx timeout.
const PAIRS_PER_RTO: u64 = 4;
/// Number of answered small packets that shows that the path carries small packets.
const MIN_ANSWERED: u32 = 2;

/// Kind of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A packet of the current size.
    Large,
    /// A packet of minimum size.
    Small,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    nonce: u64,
    kind: Kind,
}

/// A comparison of packets of the current size with small packets.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    /// Unacknowledged chunks sent in packets of the current size, lowest TSNs first.
    data: Vec<Tsn>,
    /// The retransmission timeout as measured, without backoff.
    rto: Nanos,
    /// Outstanding probes.
    probes: Vec<Probe>,
    pairs: u32,
    /// The small probe of the pair is next.
    halfway: bool,
    small_answers: u32,
    /// When the next pair is sent, or the comparison ends.
    next: Nanos,
    /// Only small packets were answered. The peer may drop packets with PAD, so the next timeout,
    /// which depends on data alone, decides.
    pending: bool,
}

/// Outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Still under way.
    Open,
    /// Packets of the current size arrive, or no packets arrive: the size is not the cause.
    Innocent,
    /// The current size does not arrive, and small packets do.
    BlackHole,
}

impl Comparison {
    /// A comparison that starts at `now`, after a timeout of `data`.
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

    /// Chunks whose acknowledgement would show that the size arrives.
    pub fn data(&self) -> &[Tsn] {
        &self.data
    }

    /// When a probe is sent or the comparison ends; `None` while it waits for the next timeout.
    pub fn deadline(&self) -> Option<Nanos> {
        (!self.pending).then_some(self.next)
    }

    /// The probe that must be sent now.
    pub fn due(&self, now: Nanos) -> Option<Kind> {
        if self.halfway {
            return Some(Kind::Small);
        }
        let goes = !self.pending && self.pairs < PAIRS && self.next <= now;
        goes.then_some(Kind::Large)
    }

    /// The probe that [was due](Self::due) was sent.
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

    /// An answer arrived. Returns the kind of its probe.
    pub fn answered(&mut self, nonce: u64) -> Option<Kind> {
        let index = self.probes.iter().position(|it| it.nonce == nonce)?;
        let probe = self.probes.swap_remove(index);
        self.small_answers += u32::from(probe.kind == Kind::Small);
        Some(probe.kind)
    }

    /// Outcome of the comparison at `now`, unless a packet of the current size was acknowledged.
    /// `proven`: the peer has answered a packet with PAD before.
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

    /// Data timed out again. Returns true if that decides the comparison: small packets arrive, and
    /// data of the current size does not.
    pub fn timed_out(&self) -> bool {
        self.pending
    }
}

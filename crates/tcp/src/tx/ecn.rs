//! The data sender's half of ECN (RFC 3168 §6.1.2): one reduction for a window of data, and CWR on the first new text after it.

use anabranch_transport::{Ecn, Nanos};

/// What marks, and reductions of the window for any cause, leave behind. Offsets are those of [`Flow`](super::flow::Flow).
#[derive(Debug, Default)]
pub(crate) struct EcnSender {
    /// Text goes out as ECN-capable.
    capable: bool,
    /// With ECT(1), which asks for the low delay of a scalable sender (RFC 9331), not with ECT(0).
    scalable: bool,
    /// Behind the highest sent when the window was last reduced. What is told of text before it is the same congestion.
    reduced_to: u64,
    /// That reduction answered a mark, and no loss of that window has been shown since.
    by_mark: bool,
    /// The next new text carries CWR.
    cwr_owed: bool,
    /// A mark met a window of one segment: no text before this.
    held_until: Option<Nanos>,
}

impl EcnSender {
    /// The handshake settled whether text may be marked.
    pub fn settle(&mut self, capable: bool) {
        self.capable = capable;
    }

    /// What marks text that may be marked.
    pub fn set_scalable(&mut self, scalable: bool) {
        self.scalable = scalable;
    }

    /// The ECN field of new text.
    pub fn field(&self) -> Ecn {
        match (self.capable, self.scalable) {
            (false, _) => Ecn::NotEct,
            (true, false) => Ecn::Ect0,
            (true, true) => Ecn::Ect1,
        }
    }

    /// Text may be marked.
    pub fn is_capable(&self) -> bool {
        self.capable
    }

    /// An ECN-Echo that came with the acknowledgement of `una` tells of congestion that was not answered yet.
    pub fn is_news(&self, una: u64) -> bool {
        self.capable && una > self.reduced_to
    }

    /// Whether a loss that duplicates show at `una` belongs to a window of data for which a mark has reduced cwnd: "the TCP source
    /// should not react to congestion indications more than once every window of data". It is asked once a recovery, and one recovery
    /// finds all losses of a window but those of retransmissions. A further one is of those, and congestion anew (RFC 5681 §4.3).
    pub fn has_answered(&mut self, una: u64) -> bool {
        std::mem::take(&mut self.by_mark) && una < self.reduced_to
    }

    /// The window was reduced, for a mark or a loss, while everything before `max` was sent.
    pub fn reduced(&mut self, max: u64, by_mark: bool) {
        (self.reduced_to, self.by_mark) = (max, by_mark);
        self.cwr_owed = self.capable;
    }

    /// A mark met a window of one segment, which can be no smaller: the next goes when a timeout would be due.
    pub fn hold(&mut self, max: u64, until: Nanos) {
        self.reduced(max, true);
        self.held_until = Some(until);
    }

    /// Until when text is held back.
    pub fn held_until(&self) -> Option<Nanos> {
        self.held_until
    }

    /// It is `now`, or a retransmission timer expired: text may go.
    pub fn release(&mut self, now: Nanos) {
        self.held_until = self.held_until.filter(|&until| until > now);
    }

    /// New text goes out; returns whether it carries CWR.
    pub fn take_cwr(&mut self) -> bool {
        std::mem::take(&mut self.cwr_owed)
    }
}

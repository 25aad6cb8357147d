//! ECN at the data sender (RFC 3168 §6.1.2): at most one window reduction per window of data, and
//! CWR on the first new data after it.

use anabranch_transport::{Ecn, Nanos};

use super::accurate_ecn::AccurateSender;

/// Results of the handshake for the ECN state of the data sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SettledEcn {
    /// Data of this end may be ECN-capable.
    pub capable: bool,
    /// Initial counters of accurate ECN; `None` if the counters of the peer are not used (RFC
    /// 9768).
    pub accurate: Option<AccurateSender>,
    /// The peer reported a mark of this end's SYN or SYN-ACK.
    pub syn_marked: bool,
}

/// ECN state of the data sender, and the last window reduction for any reason. Offsets are those of
/// [`Flow`](super::send_sequence::Flow).
#[derive(Debug, Default)]
pub(crate) struct EcnSender {
    /// Data is sent as ECN-capable.
    capable: bool,
    /// Copies of the receiver's counters (RFC 9768); with them CWR is not sent (§3.1.5).
    accurate: Option<Box<AccurateSender>>,
    /// Data is sent with ECT(1) instead of ECT(0), to request the low delay of a scalable
    /// congestion control (RFC 9331).
    scalable: bool,
    /// Offset after the highest byte sent at the last window reduction. Indications for data before
    /// it belong to the same congestion event.
    reduced_to: u64,
    /// The last reduction was caused by a mark, and no loss was detected since in the same window
    /// of data.
    by_mark: bool,
    /// The next new data carries CWR.
    cwr_owed: bool,
    /// Sending is paused until this time, because a mark arrived when the window was one segment.
    held_until: Option<Nanos>,
}

impl EcnSender {
    /// Applies the result of the handshake.
    pub(crate) fn settle(&mut self, settled: &SettledEcn) {
        self.capable = settled.capable;
        self.accurate = settled.accurate.map(Box::new);
    }

    /// Stops sending ECN-capable data.
    pub(crate) fn stop(&mut self) {
        self.capable = false;
    }

    /// Copies of the receiver's counters, in AccECN mode.
    pub(crate) fn accurate_mut(&mut self) -> Option<&mut AccurateSender> {
        self.accurate.as_deref_mut()
    }

    /// Selects ECT(1) for ECN-capable data.
    pub(crate) fn set_scalable(&mut self, scalable: bool) {
        self.scalable = scalable;
    }

    /// ECN field of new data.
    pub(crate) fn field(&self) -> Ecn {
        match (self.capable, self.scalable) {
            (false, _) => Ecn::NotEct,
            (true, false) => Ecn::Ect0,
            (true, true) => Ecn::Ect1,
        }
    }

    /// Whether reported marks reduce the window. Marks reported by counters do so even if data is
    /// not ECN-capable (RFC 9768 §3.1.5).
    pub(crate) fn answers(&self) -> bool {
        self.capable || self.accurate.is_some()
    }

    /// Whether an ECN-Echo in an acknowledgement of `una` indicates congestion to which the sender
    /// has not yet responded.
    pub(crate) fn is_news(&self, una: u64) -> bool {
        self.answers() && una > self.reduced_to
    }

    /// Whether a loss detected at `una` belongs to a window of data for which a mark has already
    /// reduced cwnd: "the TCP source should not react to congestion indications more than once
    /// every window of data" (RFC 3168 §6.1.2).
    ///
    /// Must be called once per recovery. A recovery finds all losses of a window except lost
    /// retransmissions. A later loss is therefore a lost retransmission, which indicates new
    /// congestion (RFC 5681 §4.3).
    pub(crate) fn has_answered(&mut self, una: u64) -> bool {
        std::mem::take(&mut self.by_mark) && una < self.reduced_to
    }

    /// Records a window reduction by a mark or a loss; everything before `max` was sent before it.
    pub(crate) fn reduced(&mut self, max: u64, by_mark: bool) {
        (self.reduced_to, self.by_mark) = (max, by_mark);
        self.cwr_owed = self.capable && self.accurate.is_none();
    }

    /// Pauses sending until a timeout would be due, because a mark arrived but a window of one
    /// segment cannot be reduced.
    pub(crate) fn hold(&mut self, max: u64, until: Nanos) {
        self.reduced(max, true);
        self.held_until = Some(until);
    }

    /// End of the pause; `None` if sending is not paused.
    pub(crate) fn held_until(&self) -> Option<Nanos> {
        self.held_until
    }

    /// Ends the pause if it is over at `now`, or with [`Nanos::MAX`] because the retransmission
    /// timer has expired.
    pub(crate) fn release(&mut self, now: Nanos) {
        self.held_until = self.held_until.filter(|&until| until > now);
    }

    /// Records that ECN-capable new data of `data` bytes is sent. Returns whether the segment
    /// carries CWR.
    pub(crate) fn on_sent(&mut self, data: u64) -> bool {
        if let Some(accurate) = &mut self.accurate {
            accurate.on_sent(data);
        }
        std::mem::take(&mut self.cwr_owed)
    }
}

//! Accurate ECN at the data sender (RFC 9768): decodes the counters of the receiver with the
//! algorithms of appendix A.

use anabranch_transport::{Nanos, Probe, Trace};
use anabranch_wire::tcp::AccurateEcn;

use super::Sender;
use crate::stats::Stats;

/// Number of values of the ACE field (DIVACE in RFC 9768).
const ACE_VALUES: u64 = 8;
/// Number of values of a counter in an AccECN option (DIVOPT in RFC 9768).
const OPTION_VALUES: u64 = 1 << 24;
/// If the marked segments would be smaller than the MSS by more than this factor on average, the
/// assumed number of marks is unlikely (§A.2.2).
const SAFETY_FACTOR: u64 = 2;

/// Counters of the receiver in an arriving segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccurateReport {
    /// ACE field: number of marked packets, modulo 8.
    pub ace: u8,
    pub option: Option<AccurateEcn>,
    /// The timestamp of the segment is newer than those of all earlier segments.
    pub newer: bool,
}

/// Marks that an acknowledgement reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub packets: u64,
    pub bytes: u64,
    /// The peer reports marked bytes but no marked packet, so the network has changed the feedback
    /// (§3.2.3.2.5).
    pub inconsistent: bool,
}

impl Marks {
    /// Marks of an acknowledgement of `cumulative` bytes from a peer without counters. All bytes
    /// count as marked if the acknowledgement carries ECN-Echo (`echo`).
    #[inline]
    pub(crate) fn of_echo(echo: bool, cumulative: u64) -> Self {
        Self {
            packets: u64::from(echo),
            bytes: if echo { cumulative } else { 0 },
            inconsistent: false,
        }
    }
}

/// Sender's copies of the receiver's counters (RFC 9768 §3.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccurateSender {
    /// Number of marked packets (s.cep).
    ce_packets: u64,
    /// Number of bytes received with ECT(0), CE and ECT(1) (s.e0b, s.ceb, s.e1b).
    bytes: [u64; 3],
    /// Marked bytes that were estimated from marked packets and are not yet included in s.ceb.
    estimated: u64,
    /// Marked packets counted since s.ceb was last read. A later option may report their bytes,
    /// because a segment full of data has no space for an option, and an option may omit the
    /// counter.
    unread: u64,
    /// Number of data bytes in the shortest ECN-capable segment sent.
    shortest: u64,
}

impl AccurateSender {
    /// Creates counters after a handshake; `bytes` has the initial values of §3.2.1.
    pub(crate) fn new(ce_packets: u64, bytes: [u64; 3]) -> Self {
        Self {
            ce_packets,
            bytes,
            estimated: 0,
            unread: 0,
            shortest: u64::MAX,
        }
    }

    /// Records that an ECN-capable segment with `data` bytes is sent.
    pub(crate) fn on_sent(&mut self, data: u64) {
        self.shortest = self.shortest.min(data);
    }

    /// Decodes the counters of an acknowledgement that was not superseded. Its number and its SACK
    /// blocks report `acked` bytes for the first time.
    pub(crate) fn decode(&mut self, report: &AccurateReport, acked: u64, mss: u64) -> Marks {
        let seen = (u64::from(report.ace) + ACE_VALUES - self.ce_packets % ACE_VALUES) % ACE_VALUES;
        // §A.2.1: the ACE field may have wrapped. The safe assumption is the largest possible
        // number of marks.
        let packets = acked.div_ceil(mss);
        let mut safer = match packets.checked_sub(seen) {
            Some(others) => packets - others % ACE_VALUES,
            None => seen,
        };
        let mut marks = Marks::default();
        match &report.option {
            Some(option) => {
                let increase = self.read_option(option);
                let bytes = increase.saturating_sub(self.estimated);
                // §A.2.2: the safe number of marks is improbable if the marked segments would then
                // have been very short.
                let likely = bytes > mss * seen || bytes * SAFETY_FACTOR >= mss * safer;
                if !likely {
                    safer = seen;
                }
                marks.bytes = bytes;
                let few = acked < self.shortest.saturating_mul(ACE_VALUES);
                let unexplained = bytes > 0 && seen == 0 && self.unread == 0;
                marks.inconsistent = unexplained && few;
                // The ACE field has wrapped: the marked segments were shorter than assumed, so
                // there were more of them.
                if unexplained && !few && safer == 0 {
                    safer = ACE_VALUES;
                }
            }
            // §A.3: without an option, estimate the bytes.
            None => {
                marks.bytes = (safer * mss).min(acked);
                self.estimated += marks.bytes;
            }
        }
        self.unread += safer;
        if report.option.is_some_and(|option| option.ce().is_some()) {
            // s.ceb is exact now.
            (self.estimated, self.unread) = (0, 0);
        }
        marks.packets = safer;
        self.ce_packets += safer;
        marks
    }

    /// Advances the byte counters by the values in an option (§A.1). Returns the increase of s.ceb.
    fn read_option(&mut self, option: &AccurateEcn) -> u64 {
        let [ect0, ce, ect1] = &mut self.bytes;
        let advance = |counter: &mut u64, field: Option<u32>| {
            let field = field.map_or(*counter % OPTION_VALUES, u64::from);
            let increase = (field + OPTION_VALUES - *counter % OPTION_VALUES) % OPTION_VALUES;
            *counter += increase;
            increase
        };
        advance(ect0, option.ect0());
        advance(ect1, option.ect1());
        advance(ce, option.ce())
    }

    /// Number of bytes received with ECT(0), CE and ECT(1) (s.e0b, s.ceb, s.e1b).
    pub(crate) fn bytes(&self) -> [u64; 3] {
        self.bytes
    }
}

impl Sender {
    /// Marks that the counters in an acknowledgement report. Its number advanced by `advanced`
    /// bytes, and it reports `delivered` new bytes including SACK blocks. There are no marks if the
    /// acknowledgement was superseded, or if the counters of the peer are not used.
    #[cold]
    #[inline(never)]
    pub(super) fn read_counters(
        &mut self,
        report: &AccurateReport,
        advanced: u64,
        delivered: u64,
        stats: &mut Stats,
    ) -> Marks {
        let mss = self.flow.mss;
        let is_new = advanced > 0 || delivered > 0 || report.newer;
        let (Some(counters), true) = (self.flow.ecn.accurate_mut(), is_new) else {
            return Marks::default();
        };
        let marks = counters.decode(report, delivered, mss);
        let [ect0, _, ect1] = counters.bytes();
        stats.marked_packets_reported += marks.packets;
        stats.marked_bytes_reported += marks.bytes;
        (stats.ect0_bytes_reported, stats.ect1_bytes_reported) = (ect0 - 1, ect1 - 1);
        if marks.inconsistent {
            self.flow.ecn.stop();
        }
        marks
    }

    /// Responds to reported marks, at most once per window of data; `flightsize` bytes were
    /// outstanding when they arrived.
    pub(crate) fn answer_marks(
        &mut self,
        now: Nanos,
        flightsize: u64,
        stats: &mut Stats,
        trace: &mut Trace,
    ) {
        if self.flow.answer_mark(now, flightsize, self.rto.rto()) {
            stats.reductions_by_mark += 1;
            trace.record(now, Probe::EcnResponse, 0, self.number(self.flow.una));
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_wire::tcp::EcnFieldOrder;

    use super::*;

    const MSS: u64 = 1460;

    /// A sender that has sent a full segment and has these counters.
    fn counters(ce_packets: u64, ce_bytes: u64) -> AccurateSender {
        let mut counters = AccurateSender::new(ce_packets, [1, ce_bytes, 1]);
        counters.on_sent(MSS);
        counters
    }

    fn report(ce_packets: u64, ce_bytes: Option<u64>) -> AccurateReport {
        let option =
            ce_bytes.map(|bytes| AccurateEcn::new(EcnFieldOrder::Ect0First, 1, bytes as u32, 1, 2));
        AccurateReport {
            ace: (ce_packets % 8) as u8,
            option,
            newer: false,
        }
    }

    /// Examples of RFC 9768 §A.2.1. Without an option the sender assumes as many marks as an
    /// acknowledgement of this many segments can report.
    #[test]
    fn without_an_option_the_safest_number_is_assumed() {
        for (segments, seen, expected) in [
            (9, 2, 2),
            (10, 2, 10),
            (1, 0, 0),
            (7, 0, 0),
            (8, 0, 8),
            (15, 7, 15),
            (17, 0, 16),
            // If the field reports more marks than segments, the field counts.
            (2, 3, 3),
        ] {
            for start in 5..13 {
                let marks =
                    counters(start, 0).decode(&report(start + seen, None), segments * MSS, MSS);
                assert_eq!(marks.packets, expected, "{segments} segments, {seen} marks");
                assert_eq!(marks.bytes, (expected * MSS).min(segments * MSS));
                assert!(!marks.inconsistent);
            }
        }
    }

    /// Examples of RFC 9768 §A.2.2. `segments` is chosen such that the safe number of marks is that
    /// of the RFC.
    #[test]
    fn an_option_tells_whether_the_field_wrapped() {
        for (seen, segments, bytes, expected) in
            [(0, 8, 1460, 8), (2, 10, 1460, 2), (7, 15, 10_200, 7)]
        {
            let marks = counters(5, 0).decode(&report(5 + seen, Some(bytes)), segments * MSS, MSS);
            assert_eq!((marks.packets, marks.bytes), (expected, bytes));
            assert!(!marks.inconsistent, "8 or more segments may have wrapped");
        }
        // All of eight or ten full segments are marked.
        for segments in [8, 10] {
            let bytes = segments * MSS;
            let marks = counters(5, 0).decode(&report(5 + segments, Some(bytes)), bytes, MSS);
            assert_eq!((marks.packets, marks.bytes), (segments, bytes));
        }
    }

    /// The example of RFC 9768 §A.1, and a counter that wraps.
    #[test]
    fn counters_of_bytes_wrap() {
        for (before, field, after) in [
            (33_554_433, 1461, 33_555_893),
            (0xff_ffff, 0, 0x100_0000),
            (0xff_ffff, 1, 0x100_0001),
        ] {
            let mut counters = counters(5, before);
            let marks = counters.decode(&report(6, Some(field)), MSS, MSS);
            assert_eq!(counters.bytes(), [1, after, 1]);
            assert_eq!(marks.bytes, after - before);
        }
    }

    /// The next option must not report bytes again that were estimated because an option was
    /// missing.
    #[test]
    fn an_option_replaces_estimates() {
        let mut counters = counters(5, 0);
        let marks = counters.decode(&report(6, None), 2 * MSS, MSS);
        assert_eq!((marks.packets, marks.bytes), (1, MSS));
        let marks = counters.decode(&report(6, Some(MSS)), MSS, MSS);
        assert_eq!((marks.packets, marks.bytes), (0, 0));
        assert!(!marks.inconsistent);
        let marks = counters.decode(&report(7, Some(2 * MSS)), MSS, MSS);
        assert_eq!((marks.packets, marks.bytes), (1, MSS));
    }

    /// An option with CE makes s.ceb exact, even if too many marked bytes were assumed before.
    #[test]
    fn an_option_ends_estimates_that_were_too_high() {
        let mut counters = counters(5, 0);
        let marks = counters.decode(&report(5, None), 8 * MSS, MSS);
        assert_eq!((marks.packets, marks.bytes), (8, 8 * MSS));
        // The bytes of this mark may be among those assumed before.
        let marks = counters.decode(&report(6, Some(MSS)), MSS, MSS);
        assert_eq!((marks.packets, marks.bytes), (1, 0));
        let marks = counters.decode(&report(7, Some(2 * MSS)), MSS, MSS);
        assert_eq!((marks.packets, marks.bytes), (1, MSS));
    }

    /// Eight marked segments are shorter than the MSS. The byte counter shows that the ACE field
    /// has wrapped once.
    #[test]
    fn bytes_of_short_segments_imply_marked_packets() {
        let mut counters = counters(5, 0);
        counters.on_sent(500);
        let marks = counters.decode(&report(13, Some(4000)), 4000, MSS);
        assert_eq!((marks.packets, marks.bytes), (8, 4000));
        assert!(!marks.inconsistent);
        // The copy of the sender now equals the counter of the receiver again.
        let marks = counters.decode(&report(14, None), 500, MSS);
        assert_eq!((marks.packets, marks.bytes), (1, 500));
    }

    /// A segment full of data has no space for an option. Its ACE field counts a marked packet,
    /// whose bytes are reported by the option of the next acknowledgement.
    #[test]
    fn bytes_may_follow_their_packet() {
        let mut counters = counters(5, 0);
        let marks = counters.decode(&report(6, None), 0, MSS);
        assert_eq!((marks.packets, marks.bytes), (1, 0));
        let marks = counters.decode(&report(6, Some(MSS)), 2 * MSS, MSS);
        assert_eq!((marks.packets, marks.bytes), (0, MSS));
        assert!(!marks.inconsistent);
        // Marked bytes without a marked packet follow later.
        let marks = counters.decode(&report(6, Some(2 * MSS)), 2 * MSS, MSS);
        assert!(marks.inconsistent);
    }

    /// The option with CE is lost. The next option omits CE, because the counter has not changed
    /// since (§3.2.3.3).
    #[test]
    fn bytes_may_follow_an_option_without_their_counter() {
        let mut counters = counters(5, 0);
        let short = AccurateReport {
            option: Some(AccurateEcn::new(
                EcnFieldOrder::Ect0First,
                1 + 1460,
                0,
                1,
                1,
            )),
            ..report(6, None)
        };
        let marks = counters.decode(&short, 2 * MSS, MSS);
        assert_eq!((marks.packets, marks.bytes), (1, 0));
        let marks = counters.decode(&report(6, Some(MSS)), MSS, MSS);
        assert_eq!((marks.packets, marks.bytes), (0, MSS));
        assert!(!marks.inconsistent);
    }

    /// An acknowledgement of less than eight segments reports marked bytes but no marked packet
    /// (§3.2.3.2.5).
    #[test]
    fn bytes_without_a_packet_are_inconsistent() {
        for (segments, inconsistent) in [(1, true), (7, true), (8, false)] {
            let marks = counters(5, 0).decode(&report(5, Some(100)), segments * MSS, MSS);
            assert_eq!(marks.inconsistent, inconsistent, "{segments}");
        }
    }
}

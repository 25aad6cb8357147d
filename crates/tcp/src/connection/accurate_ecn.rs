//! Counters of accurate ECN feedback at the data receiver (RFC 9768 §3.2), and their encoding.

use anabranch_transport::Ecn;
use anabranch_wire::tcp::{AccurateEcn, EcnFieldOrder, Flags};

/// Number of CE marks that trigger an acknowledgement (§3.2.2.5.1). The first value applies while
/// received data is unacknowledged, and the second otherwise.
const MAX_UNREPORTED_MARKS: [u32; 2] = [2, 3];

/// Initial values of the counters of bytes with ECT(0), CE and ECT(1) (§3.2.1).
pub(crate) const INITIAL_BYTES: [u64; 3] = [1, 0, 1];
/// Initial value of the counter of CE packets (§3.2.1).
pub(crate) const INITIAL_CE_PACKETS: u64 = 5;

/// Flags that report the ECN field of a SYN or SYN-ACK (§3.1.1 table 2, §3.2.2.1 table 3).
fn handshake_flags(field: Ecn) -> Flags {
    match field {
        Ecn::NotEct => Flags::CWR,
        Ecn::Ect1 => Flags::CWR | Flags::ECE,
        Ecn::Ect0 => Flags::AE,
        Ecn::Ce => Flags::AE | Flags::CWR,
    }
}

/// State of an end in AccECN mode: as a data receiver, and as the sender of a SYN or SYN-ACK.
#[derive(Debug)]
pub(super) struct AccurateReceiver {
    /// Packets received with CE (r.cep).
    ce_packets: u64,
    /// Data bytes received with ECT(0), CE and ECT(1) (r.e0b, r.ceb, r.e1b).
    bytes: [u64; 3],
    /// Byte counters in the last option sent.
    reported: [u64; 3],
    /// The path must still be tested: the next acknowledgement, and the first segment with data,
    /// carry an option with all counters (§3.2.3.2.1).
    probes_path: bool,
    probes_data: bool,
    /// Whether the last packet was marked, and the number of marks since the last acknowledgement.
    last_marked: bool,
    unreported_marks: u32,
    /// ECN field of the last SYN or SYN-ACK of the peer.
    syn_field: Ecn,
    /// Number of SYN-ACKs sent.
    syn_acks: u32,
    /// For a server: a SYN or SYN-ACK without ECN was received or sent, so the client may not be
    /// using ECN and the data of this end must not be ECN-capable (§3.1.5).
    pub withdrawn: bool,
    /// ACE field in which the peer reported the ECN field of this end's SYN or SYN-ACK (tables 2
    /// and 4).
    syn_report: u8,
}

impl AccurateReceiver {
    /// Creates the state after the first SYN or SYN-ACK of the peer, which arrived with this ECN
    /// field.
    pub(super) fn new(syn_field: Ecn, is_answer: bool) -> Self {
        let mut receiver = Self {
            ce_packets: INITIAL_CE_PACKETS,
            bytes: INITIAL_BYTES,
            reported: INITIAL_BYTES,
            probes_path: is_answer,
            probes_data: is_answer,
            last_marked: false,
            unreported_marks: 0,
            syn_field,
            syn_acks: 0,
            withdrawn: false,
            syn_report: handshake_flags(Ecn::NotEct).ace(),
        };
        if is_answer {
            receiver.on_syn_ack(syn_field);
        }
        receiver
    }

    /// Processes a repeated SYN of the peer.
    pub(super) fn on_syn(&mut self, field: Ecn) {
        self.syn_field = field;
    }

    /// Processes a SYN-ACK. Marks of all SYN-ACKs count once (§3.2.2.2).
    pub(super) fn on_syn_ack(&mut self, field: Ecn) {
        self.syn_field = field;
        if field == Ecn::Ce {
            self.ce_packets = self.ce_packets.max(INITIAL_CE_PACKETS + 1);
        }
    }

    /// Records the peer's report about the SYN or SYN-ACK of this end.
    pub(super) fn on_handshake_report(&mut self, ace: u8) {
        self.syn_report = ace;
    }

    /// Whether the SYN or SYN-ACK of this end was reported as marked.
    pub(super) fn syn_marked(&self) -> bool {
        self.syn_report == 6
    }

    /// Whether the counters of the peer are used. They are not used if the peer's handshake report
    /// was 0 (§3.2.2.1 note 1). Other undefined values of the report mean the same as an unchanged
    /// ECN field (§3.1.3, table 4).
    pub(super) fn reads_counters(&self) -> bool {
        self.syn_report != 0
    }

    /// Whether this end sent a SYN-ACK.
    pub(super) fn is_server(&self) -> bool {
        self.syn_acks > 0
    }

    /// Whether data may be sent as ECN-capable. It may not if the network changed the ECN field of
    /// this end's SYN or SYN-ACK, which was sent as not ECN-capable, to ECT or CE (§3.2.2.3).
    pub(super) fn is_capable(&self) -> bool {
        let mangled = matches!(self.syn_report, 3 | 4 | 6);
        !self.withdrawn && !mangled && self.reads_counters()
    }

    /// Flags of the next SYN-ACK. The third SYN-ACK does not request ECN, because a middlebox may
    /// have dropped the first two (§3.2.3.2.2).
    pub(super) fn syn_ack_flags(&mut self) -> Flags {
        self.syn_acks += 1;
        if self.syn_acks > 2 {
            self.withdrawn = true;
            return Flags::NONE;
        }
        handshake_flags(self.syn_field)
    }

    /// Option of the SYN-ACK whose flags were requested last. Only the first SYN-ACK carries an
    /// option.
    pub(super) fn syn_ack_option(&mut self) -> Option<AccurateEcn> {
        (self.syn_acks == 1).then(|| self.option_with(3))
    }

    /// Flags of the acknowledgement of a SYN-ACK, which report the ECN field of the SYN-ACK.
    pub(super) fn handshake_flags(&self) -> Flags {
        handshake_flags(self.syn_field)
    }

    /// Counts an acceptable packet with `data` bytes of data and ECN field `field`. Returns whether
    /// an acknowledgement must be sent now (§3.2.2.5.1).
    pub(super) fn receive(&mut self, field: Ecn, data: u64, has_unacknowledged_data: bool) -> bool {
        match field {
            Ecn::NotEct => {}
            Ecn::Ect0 => self.bytes[0] += data,
            Ecn::Ce => self.bytes[1] += data,
            Ecn::Ect1 => self.bytes[2] += data,
        }
        let marked = field == Ecn::Ce;
        let continues = std::mem::replace(&mut self.last_marked, marked);
        let begins = marked && !continues && data > 0;
        if marked {
            self.ce_packets += 1;
            self.unreported_marks += 1;
        }
        let limit = MAX_UNREPORTED_MARKS[usize::from(data == 0 && !has_unacknowledged_data)];
        begins || (marked && self.unreported_marks >= limit)
    }

    /// Flags that carry the counter of CE packets in a segment that is being sent (§3.2.2.2).
    pub(super) fn report(&mut self) -> Flags {
        self.unreported_marks = 0;
        Flags::from_ace(self.ce_packets)
    }

    /// Option for a segment that has `room` bytes left for it. The option contains every counter
    /// that ever changed or, if these do not fit, every counter that changed since the last option
    /// (§3.2.3.3). `None` if no counter changed, or if even the changed ones do not fit. A test of
    /// the path is then postponed to a segment with enough space.
    pub(super) fn option(&mut self, room: usize, with_data: bool) -> Option<AccurateEcn> {
        let probe = self.probes_path || (with_data && self.probes_data);
        let changed = |than: &[u64; 3]| {
            let fields = self.fields();
            let before = in_order(self.order(), *than);
            let differs = fields
                .iter()
                .zip(before)
                .rposition(|(now, before)| *now != before);
            differs.map_or(0, |last| last + 1)
        };
        let (recent, ever) = (changed(&self.reported), changed(&INITIAL_BYTES));
        let wanted = if probe { 3 } else { ever };
        if recent == 0 && !probe {
            return None;
        }
        let least = if recent == 0 { wanted } else { recent };
        let fits = |count: &usize| (2 + 3 * count).next_multiple_of(4) <= room;
        let count = [wanted, least].into_iter().find(fits)?;
        self.probes_path = false;
        self.probes_data &= !with_data;
        Some(self.option_with(count))
    }

    /// Order of the counters: ECT(1) comes first if ECT(1) was received and ECT(0) was not.
    fn order(&self) -> EcnFieldOrder {
        match self.bytes[2] > INITIAL_BYTES[2] && self.bytes[0] == INITIAL_BYTES[0] {
            true => EcnFieldOrder::Ect1First,
            false => EcnFieldOrder::Ect0First,
        }
    }

    fn fields(&self) -> [u64; 3] {
        in_order(self.order(), self.bytes)
    }

    fn option_with(&mut self, count: usize) -> AccurateEcn {
        self.reported = self.bytes;
        let [ect0, ce, ect1] = self.bytes.map(|bytes| bytes as u32);
        AccurateEcn::new(self.order(), ect0, ce, ect1, count)
    }
}

/// Sorts counters of ECT(0), CE and ECT(1) into the order of the option.
fn in_order(order: EcnFieldOrder, [ect0, ce, ect1]: [u64; 3]) -> [u64; 3] {
    match order {
        EcnFieldOrder::Ect0First => [ect0, ce, ect1],
        EcnFieldOrder::Ect1First => [ect1, ce, ect0],
    }
}

//! TCP options (RFC 9293 §3.2; RFC 7323 for window scale and timestamps; RFC 2018 for SACK; RFC
//! 9768 for AccECN).

use crate::encode::Full;
use crate::serial::SeqNumber;

/// Maximum length of the options in a header, bytes.
pub const MAX_OPTIONS: usize = 40;

const END: u8 = 0;
const NOP: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const ACCURATE_ECN_0: u8 = 172;
const ACCURATE_ECN_1: u8 = 174;

/// Length of a SACK block, bytes.
const BLOCK: usize = 8;
/// Length of a counter in an AccECN option, bytes.
const COUNTER: usize = 3;
/// Length of a Timestamps option with the two NOPs before it, bytes (RFC 7323 Appendix A).
const TIMESTAMPS_ALIGNED: usize = 12;
/// The bytes of this form before the two timestamps.
const TIMESTAMPS_PREFIX: [u8; 4] = [NOP, NOP, TIMESTAMPS, 10];
/// Maximum length of an AccECN option with its padding, bytes.
const MAX_ACCURATE_ECN: usize = (2 + 3 * COUNTER).next_multiple_of(4);

/// The supported options of a segment. Other options are skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size that the sender can receive, in bytes without headers. Valid in a SYN
    /// (RFC 9293 §3.7.1).
    pub maximum_segment_size: Option<u16>,
    /// Number of bits by which the windows of the sender are shifted to the left. Valid in a SYN.
    /// Values above 14 are handled as 14 (RFC 7323 §2).
    pub window_scale: Option<u8>,
    /// Whether the sender supports SACK. Valid in a SYN (RFC 2018 §2).
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323 §3).
    pub timestamps: Option<Timestamps>,
    /// Numbers of bytes that were received with each ECN field (RFC 9768 §3.2.3).
    pub accurate_ecn: Option<AccurateEcn>,
    /// Blocks of bytes that were received after the acknowledgment number (RFC 2018 §3).
    pub sack_blocks: SackBlocks,
}

/// Order of the counters in an AccECN option (RFC 9768 §3.2.3, table 5). The second counter is
/// always that of CE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnFieldOrder {
    /// Order 0, kind 172: ECT(0), CE, ECT(1).
    Ect0First,
    /// Order 1, kind 174: ECT(1), CE, ECT(0).
    Ect1First,
}

/// The AccECN option: the 24 least significant bits of the numbers of data bytes that were received
/// in packets with ECT(0), CE and ECT(1). Counters at the end may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccurateEcn {
    order: EcnFieldOrder,
    /// The counters in this order, in network byte order. Those from index `count` on are 0.
    counters: [[u8; COUNTER]; 3],
    count: u8,
}

impl AccurateEcn {
    /// Creates an option with the first `count` counters in this order.
    pub fn new(order: EcnFieldOrder, ect0: u32, ce: u32, ect1: u32, count: usize) -> Self {
        let counters = match order {
            EcnFieldOrder::Ect0First => [ect0, ce, ect1],
            EcnFieldOrder::Ect1First => [ect1, ce, ect0],
        };
        let count = count.min(counters.len());
        let mut counters = counters.map(|it| {
            let [_, high, middle, low] = it.to_be_bytes();
            [high, middle, low]
        });
        counters[count..].fill([0; COUNTER]);
        Self {
            order,
            counters,
            count: count as u8,
        }
    }

    fn counter(&self, index: usize) -> Option<u32> {
        let [high, middle, low] = self.counters[index];
        (index < usize::from(self.count)).then_some(u32::from_be_bytes([0, high, middle, low]))
    }

    /// Counter of ECT(0); `None` if the option does not contain it.
    pub fn ect0(&self) -> Option<u32> {
        self.counter(match self.order {
            EcnFieldOrder::Ect0First => 0,
            EcnFieldOrder::Ect1First => 2,
        })
    }

    /// Counter of CE; `None` if the option does not contain it.
    pub fn ce(&self) -> Option<u32> {
        self.counter(1)
    }

    /// Counter of ECT(1); `None` if the option does not contain it.
    pub fn ect1(&self) -> Option<u32> {
        self.counter(match self.order {
            EcnFieldOrder::Ect0First => 2,
            EcnFieldOrder::Ect1First => 0,
        })
    }

    /// Length without padding, bytes.
    fn len(&self) -> usize {
        2 + usize::from(self.count) * COUNTER
    }

    /// Decodes all counters that are complete in a value of any length (§3.2.3).
    fn of(order: EcnFieldOrder, value: &[u8]) -> Self {
        let mut counters = [[0; COUNTER]; 3];
        let (whole, _) = value.as_chunks::<COUNTER>();
        let count = whole.len().min(counters.len());
        counters[..count].copy_from_slice(&whole[..count]);
        Self {
            order,
            counters,
            count: count as u8,
        }
    }

    /// The encoded option, preceded by NOPs that pad it to a multiple of 4, and its length
    /// including these NOPs.
    #[cold]
    fn encode(&self) -> ([u8; MAX_ACCURATE_ECN], usize) {
        let mut bytes = [NOP; MAX_ACCURATE_ECN];
        let padded = self.len().next_multiple_of(4);
        let start = padded - self.len();
        bytes[start] = match self.order {
            EcnFieldOrder::Ect0First => ACCURATE_ECN_0,
            EcnFieldOrder::Ect1First => ACCURATE_ECN_1,
        };
        bytes[start + 1] = self.len() as u8;
        let counters = self.counters[..usize::from(self.count)].as_flattened();
        bytes[start + 2..padded].copy_from_slice(counters);
        (bytes, padded)
    }
}

/// The Timestamps option, in clock ticks of the sender (RFC 7323 §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// Clock value of the sender (TSval).
    pub value: u32,
    /// Echoed clock value of the peer (TSecr).
    pub echo_reply: u32,
}

impl Timestamps {
    /// The encoded option, preceded by two NOPs, which align its numbers (RFC 7323 Appendix A).
    #[inline(always)]
    pub fn aligned(self) -> [u8; TIMESTAMPS_ALIGNED] {
        let mut bytes = [0; TIMESTAMPS_ALIGNED];
        bytes[..4].copy_from_slice(&TIMESTAMPS_PREFIX);
        bytes[4..8].copy_from_slice(&self.value.to_be_bytes());
        bytes[8..].copy_from_slice(&self.echo_reply.to_be_bytes());
        bytes
    }

    /// Decodes the options of a header that contain only two NOPs and the timestamps.
    #[inline(always)]
    fn only(options: &[u8]) -> Option<Self> {
        let bytes: &[u8; TIMESTAMPS_ALIGNED] = options.try_into().ok()?;
        let &[p0, p1, p2, p3, v0, v1, v2, v3, e0, e1, e2, e3] = bytes;
        ([p0, p1, p2, p3] == TIMESTAMPS_PREFIX).then_some(Self {
            value: u32::from_be_bytes([v0, v1, v2, v3]),
            echo_reply: u32::from_be_bytes([e0, e1, e2, e3]),
        })
    }
}

/// A contiguous range of received bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// Sequence number of the first byte.
    pub left: SeqNumber,
    /// Sequence number after the last byte.
    pub right: SeqNumber,
}

/// Up to four SACK blocks in the order of the option.
#[derive(Clone, Copy, Default)]
pub struct SackBlocks {
    blocks: [SackBlock; Self::MAX],
    count: u8,
}

impl SackBlocks {
    /// Maximum number of blocks. It is possible only without other options (RFC 2018 §3).
    pub const MAX: usize = 4;

    /// Adds a block.
    ///
    /// # Errors
    /// [`Full`] if there are four already.
    pub fn push(&mut self, block: SackBlock) -> Result<(), Full> {
        let slot = self.blocks.get_mut(usize::from(self.count)).ok_or(Full)?;
        *slot = block;
        self.count += 1;
        Ok(())
    }

    /// Keeps only the first `count` blocks.
    pub fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count.min(Self::MAX) as u8);
    }
}

impl std::ops::Deref for SackBlocks {
    type Target = [SackBlock];

    fn deref(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.count)]
    }
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl Eq for SackBlocks {}

impl std::fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Options {
    /// Whether the header has no options.
    #[inline]
    pub(super) fn are_none(&self) -> bool {
        self.maximum_segment_size.is_none()
            && self.window_scale.is_none()
            && !self.sack_permitted
            && self.timestamps.is_none()
            && self.accurate_ecn.is_none()
            && self.sack_blocks.is_empty()
    }

    /// Number of SACK blocks that fit with the other options: 4 without other options, 3 with
    /// timestamps, and fewer with an AccECN option.
    pub fn sack_blocks_that_fit(&self) -> usize {
        ((MAX_OPTIONS - self.len_without_sack()).saturating_sub(4) / BLOCK).min(SackBlocks::MAX)
    }

    /// Encoded length in bytes, which is a multiple of 4 up to [`MAX_OPTIONS`].
    pub fn encoded_len(&self) -> usize {
        match self.sack_blocks.len().min(self.sack_blocks_that_fit()) {
            0 => self.len_without_sack(),
            blocks => self.len_without_sack() + 4 + blocks * BLOCK,
        }
    }

    /// Length of all options except SACK. NOPs before each option pad it to a multiple of 4, so
    /// that its numbers are aligned (RFC 7323 Appendix A).
    fn len_without_sack(&self) -> usize {
        let four = |present: bool| if present { 4 } else { 0 };
        four(self.maximum_segment_size.is_some())
            + four(self.window_scale.is_some())
            + four(self.sack_permitted)
            + if self.timestamps.is_some() {
                TIMESTAMPS_ALIGNED
            } else {
                0
            }
            + self
                .accurate_ecn
                .map_or(0, |it| it.len().next_multiple_of(4))
    }

    /// Writes the options to the beginning of `out` and returns their length. The last SACK blocks
    /// are omitted if they do not fit.
    pub(super) fn encode(&self, out: &mut [u8; MAX_OPTIONS]) -> usize {
        let mut length = 0;
        let mut put = |bytes: &[u8]| {
            if let Some(place) = out.get_mut(length..length + bytes.len()) {
                place.copy_from_slice(bytes);
                length += bytes.len();
            }
        };
        if let Some(size) = self.maximum_segment_size {
            let [high, low] = size.to_be_bytes();
            put(&[MAXIMUM_SEGMENT_SIZE, 4, high, low]);
        }
        if self.sack_permitted {
            put(&[NOP, NOP, SACK_PERMITTED, 2]);
        }
        if let Some(timestamps) = self.timestamps {
            put(&timestamps.aligned());
        }
        if let Some(shift) = self.window_scale {
            put(&[NOP, WINDOW_SCALE, 3, shift]);
        }
        if let Some(counters) = &self.accurate_ecn {
            let (bytes, padded) = counters.encode();
            put(&bytes[..padded]);
        }
        if !self.sack_blocks.is_empty() {
            let blocks = self.sack_blocks.len().min(self.sack_blocks_that_fit());
            if blocks > 0 {
                put(&[NOP, NOP, SACK, (2 + blocks * BLOCK) as u8]);
            }
            for block in &self.sack_blocks[..blocks] {
                put(&block.left.0.to_be_bytes());
                put(&block.right.0.to_be_bytes());
            }
        }
        length
    }

    /// Parses the options of a header. If an option is repeated, the last one takes effect. If the
    /// length of an option is invalid, the error is its kind.
    #[inline]
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, u8> {
        match Timestamps::only(bytes) {
            Some(timestamps) => Ok(Self {
                timestamps: Some(timestamps),
                ..Self::default()
            }),
            None => Self::parse_any(bytes),
        }
    }

    #[inline(never)]
    fn parse_any(mut bytes: &[u8]) -> Result<Self, u8> {
        let mut options = Self::default();
        while let Some((&kind, rest)) = bytes.split_first() {
            match kind {
                END => break,
                NOP => bytes = rest,
                _ => {
                    let length = usize::from(*rest.first().ok_or(kind)?);
                    let value = bytes.get(2..length).ok_or(kind)?;
                    options.take(kind, value).ok_or(kind)?;
                    bytes = &bytes[length..];
                }
            }
        }
        Ok(options)
    }

    /// Stores the value of one option; `None` if its length is invalid for the kind.
    fn take(&mut self, kind: u8, value: &[u8]) -> Option<()> {
        match kind {
            MAXIMUM_SEGMENT_SIZE => {
                self.maximum_segment_size = Some(u16::from_be_bytes(value.try_into().ok()?))
            }
            WINDOW_SCALE => {
                let &[shift] = value else { return None };
                self.window_scale = Some(shift);
            }
            SACK_PERMITTED => {
                self.sack_permitted = true;
                return value.is_empty().then_some(());
            }
            SACK => self.sack_blocks = sack_blocks(value)?,
            ACCURATE_ECN_0 | ACCURATE_ECN_1 => self.take_accurate_ecn(kind, value),
            TIMESTAMPS => {
                let &[v0, v1, v2, v3, e0, e1, e2, e3] = value else {
                    return None;
                };
                self.timestamps = Some(Timestamps {
                    value: u32::from_be_bytes([v0, v1, v2, v3]),
                    echo_reply: u32::from_be_bytes([e0, e1, e2, e3]),
                });
            }
            _ => {}
        }
        Some(())
    }

    #[cold]
    fn take_accurate_ecn(&mut self, kind: u8, value: &[u8]) {
        let order = match kind {
            ACCURATE_ECN_0 => EcnFieldOrder::Ect0First,
            _ => EcnFieldOrder::Ect1First,
        };
        self.accurate_ecn = Some(AccurateEcn::of(order, value));
    }
}

/// Decodes the one to four blocks of a SACK option.
fn sack_blocks(value: &[u8]) -> Option<SackBlocks> {
    let (entries, rest) = value.as_chunks::<BLOCK>();
    if entries.is_empty() || !rest.is_empty() {
        return None;
    }
    let mut blocks = SackBlocks::default();
    for &[l0, l1, l2, l3, r0, r1, r2, r3] in entries {
        let left = SeqNumber(u32::from_be_bytes([l0, l1, l2, l3]));
        let right = SeqNumber(u32::from_be_bytes([r0, r1, r2, r3]));
        blocks.push(SackBlock { left, right }).ok()?;
    }
    Some(blocks)
}

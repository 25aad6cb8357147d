//! Table of options that are stored, with numbers, sizes and defaults of `linux/sctp.h` and Linux
//! 6.1.

use super::*;

/// Function that returns the default value of an option.
type Default = fn() -> Vec<u8>;
/// Computes the new value from the previous value and the program's value, or returns an `errno`.
type Merge = fn(&[u8], &[u8]) -> Result<Vec<u8>, i32>;

/// A stored option.
pub(super) struct StoredOption {
    number: i32,
    pub default: Default,
    /// Size of a short form that programs may pass instead, which contains the last bytes of the
    /// value.
    pub short: Option<usize>,
    /// Size of an older struct that programs may pass instead, which contains the first bytes of
    /// the value.
    old: Option<usize>,
    /// True if longer values are rejected.
    exact: bool,
    /// Byte offset of the association number, if the value has one.
    pub association: Option<usize>,
    /// Function that combines the previous and the new value; without it, the new value replaces
    /// the previous one.
    pub merge: Option<Merge>,
}

impl StoredOption {
    const fn new(number: i32, default: Default) -> Self {
        Self {
            number,
            default,
            short: None,
            old: None,
            exact: false,
            association: None,
            merge: None,
        }
    }

    /// Sets the offset of the association number.
    const fn of_association(mut self, at: usize) -> Self {
        self.association = Some(at);
        self
    }

    /// Also accepts an `int`, as Linux does for SCTP_MAXSEG and SCTP_MAX_BURST.
    const fn or_int(mut self) -> Self {
        self.short = Some(4);
        self
    }

    /// Also accepts a value with only its first `bytes` bytes.
    const fn or_first(mut self, bytes: usize) -> Self {
        self.old = Some(bytes);
        self
    }

    /// Rejects longer values.
    const fn exact(mut self) -> Self {
        self.exact = true;
        self
    }

    /// Ignores extra bytes, unlike most options.
    const fn or_longer(mut self) -> Self {
        self.exact = false;
        self
    }

    const fn merged(mut self, merge: Merge) -> Self {
        self.merge = Some(merge);
        self
    }

    /// Extends the program's value to its full size.
    pub(super) fn whole(&self, value: &[u8]) -> Result<Vec<u8>, i32> {
        let size = (self.default)().len();
        let given = value.len();
        if given == size || (given > size && !self.exact) {
            return Ok(value[..size].to_vec());
        }
        if self.short == Some(given) {
            return Ok([&vec![0; size - given], value].concat());
        }
        if self.old != Some(given) {
            return Err(libc::EINVAL);
        }
        let mut whole = [value, &vec![0; size - given]].concat();
        if self.number == DELAYED_SACK && word(value, 4) == 0 {
            // Before the frequency was added, a delay of 0 requested a SACK for each packet, which
            // is a frequency of 1.
            whole[8..12].copy_from_slice(&1_u32.to_ne_bytes());
        }
        Ok(whole)
    }

    /// The value in the form that fits a buffer of `room` bytes.
    pub(super) fn fit(&self, mut value: Vec<u8>, room: usize) -> Result<Vec<u8>, i32> {
        match self.short {
            Some(short) if room == short => Ok(value.split_off(value.len() - short)),
            _ if self.number == EVENTS && room > 0 => {
                value.truncate(room);
                Ok(value)
            }
            _ if self.old.is_some_and(|old| {
                room == old
                    || (self.number == PEER_ADDR_PARAMS && (old..value.len()).contains(&room))
            }) =>
            {
                value.truncate(self.old.unwrap_or_default());
                Ok(value)
            }
            _ if room < value.len() => Err(libc::EINVAL),
            _ => Ok(value),
        }
    }
}

/// The stored option with this number; ENOPROTOOPT if there is none.
pub(super) fn stored_option(level: i32, option: i32) -> Result<&'static StoredOption, i32> {
    let found = STORED_OPTIONS.iter().find(|it| it.number == option);
    found
        .filter(|_| level == IPPROTO_SCTP)
        .ok_or(libc::ENOPROTOOPT)
}

pub(super) fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|it| it.to_ne_bytes()).collect()
}

pub(super) fn shorts(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|it| it.to_ne_bytes()).collect()
}

const fn int(number: i32) -> StoredOption {
    StoredOption::new(number, || words(&[0]))
}

/// An option of struct sctp_assoc_value, with the default 0.
const fn value(number: i32) -> StoredOption {
    StoredOption::new(number, || words(&[0, 0]))
        .of_association(0)
        .exact()
}

/// An option of struct sctp_assoc_value, with the default 1.
const fn value_on(number: i32) -> StoredOption {
    StoredOption::new(number, || words(&[0, 1]))
        .of_association(0)
        .exact()
}

/// Maximum of SCTP_PARTIAL_DELIVERY_POINT: the receive buffer of associations, bytes.
const MAX_PARTIAL_DELIVERY_POINT: u32 = 1 << 20;

/// Checks the default flags of messages: only unordered, address override, abort and end are
/// allowed.
pub(super) fn check_flags(flags: [u8; 2]) -> Result<(), i32> {
    match u16::from_ne_bytes(flags) & !0x207 {
        0 => Ok(()),
        _ => Err(libc::EINVAL),
    }
}

/// Default number of packets per SACK.
const FREQUENCY: u32 = 2;

/// All stored options.
const STORED_OPTIONS: &[StoredOption] = &[
    StoredOption::new(RTOINFO, || words(&[0, 3000, 60_000, 1000]))
        .of_association(0)
        .exact()
        .merged(rtoinfo),
    StoredOption::new(ASSOCINFO, || {
        [words(&[0]), shorts(&[10, 0]), words(&[0, 0, 60_000])].concat()
    })
    .of_association(0)
    .exact()
    .merged(associnfo),
    StoredOption::new(INITMSG, || shorts(&[10, 65_535, 8, 60_000]))
        .exact()
        .merged(initmsg),
    int(NODELAY),
    int(AUTOCLOSE).exact(),
    int(ADAPTATION_LAYER).exact(),
    int(DISABLE_FRAGMENTS),
    StoredOption::new(PEER_ADDR_PARAMS, peer_addr_params)
        .of_association(0)
        .exact()
        // The size of the struct before flow label and code point were added.
        .or_first(152)
        .merged(merge_peer_addr_params),
    StoredOption::new(DEFAULT_SEND_PARAM, || vec![0; 32])
        .of_association(28)
        .exact()
        .merged(|_, given| check_flags([given[4], given[5]]).map(|()| given.to_vec())),
    StoredOption::new(EVENTS, || vec![0; EVENT_KINDS]).exact(),
    StoredOption::new(I_WANT_MAPPED_V4_ADDR, || words(&[1])),
    value(MAXSEG)
        .or_int()
        .merged(|_, given| match word(given, 4) {
            // A packet has at least 512 bytes, including 48 bytes of headers.
            0 | 464..=65_516 => Ok(given.to_vec()),
            _ => Err(libc::EINVAL),
        }),
    StoredOption::new(DELAYED_SACK, || words(&[0, 200, FREQUENCY]))
        .of_association(0)
        .exact()
        // struct sctp_assoc_value, which the option had before RFC 6458.
        .or_first(8)
        .merged(delayed_sack),
    value(CONTEXT),
    int(FRAGMENT_INTERLEAVE)
        .exact()
        .merged(|_, given| match given.first() {
            Some(0) => Ok(words(&[0])),
            _ => Ok(words(&[1])),
        }),
    int(PARTIAL_DELIVERY_POINT).merged(|_, given| match word(given, 0) {
        0..=MAX_PARTIAL_DELIVERY_POINT => Ok(given.to_vec()),
        _ => Err(libc::EINVAL),
    }),
    StoredOption::new(MAX_BURST, || words(&[0, 4]))
        .of_association(0)
        .exact()
        .or_int(),
    int(AUTO_ASCONF),
    StoredOption::new(PEER_ADDR_THLDS, || thresholds(144)).of_association(0),
    int(RECVRCVINFO),
    int(RECVNXTINFO),
    int(REUSE_PORT),
    StoredOption::new(37, || thresholds(144)).of_association(0), // PEER_ADDR_THLDS_V2
    value_on(PR_SUPPORTED),
    StoredOption::new(DEFAULT_PRINFO, || words(&[0, 0, 0]))
        .of_association(0)
        .exact()
        .merged(default_prinfo),
    value(RECONFIG_SUPPORTED),
    value(ENABLE_STREAM_RESET).merged(|_, given| match given {
        // Bits: SCTP_ENABLE_RESET_STREAM_REQ, _RESET_ASSOC_REQ, _CHANGE_ASSOC_REQ.
        [_, _, _, _, 0..=7, 0, 0, 0] => Ok(given.to_vec()),
        _ => Err(libc::EINVAL),
    }),
    value(STREAM_SCHEDULER)
        .or_longer()
        .merged(|_, given| match given {
            // Schedulers: first come first served, priority, round robin, fair capacity, weighted
            // fair.
            [_, _, _, _, 0..=4, 0, 0, 0] => Ok(given.to_vec()),
            _ => Err(libc::EINVAL),
        }),
    value(INTERLEAVING_SUPPORTED).or_longer(),
    value(ASCONF_SUPPORTED),
    value(AUTH_SUPPORTED),
    value_on(ECN_SUPPORTED),
    value(EXPOSE_POTENTIALLY_FAILED).merged(|_, given| match given {
        [_, _, _, _, 0..=2, 0, 0, 0] => Ok(given.to_vec()),
        _ => Err(libc::EINVAL),
    }),
    StoredOption::new(REMOTE_UDP_ENCAPS_PORT, || vec![0; 144])
        .of_association(0)
        .exact(),
];

fn word(value: &[u8], at: usize) -> u32 {
    let bytes = value.get(at..at + 4).and_then(|it| it.try_into().ok());
    bytes.map_or(0, u32::from_ne_bytes)
}

fn short(value: &[u8], at: usize) -> u16 {
    let bytes = value.get(at..at + 2).and_then(|it| it.try_into().ok());
    bytes.map_or(0, u16::from_ne_bytes)
}

/// The previous value `before`, in which each of the byte ranges `parts` is replaced by that of
/// `given`, unless all bytes of that range are 0.
fn but(before: &[u8], given: &[u8], parts: &[std::ops::Range<usize>]) -> Vec<u8> {
    let mut out = before.to_vec();
    for part in parts {
        if let (Some(to), Some(from)) = (out.get_mut(part.clone()), given.get(part.clone()))
            && from.iter().any(|&it| it != 0)
        {
            to.copy_from_slice(from);
        }
    }
    out
}

/// Maximum of SCTP_RTOINFO in milliseconds: a day, like the maximum of the setting `rto_max`.
const MAX_RTO: u32 = 86_400_000;

/// Computes SCTP_RTOINFO (struct sctp_rtoinfo: association, initial, maximum, minimum).
fn rtoinfo(before: &[u8], given: &[u8]) -> Result<Vec<u8>, i32> {
    let out = but(before, given, &[4..8, 8..12, 12..16]);
    let most = word(&out, 8);
    match word(&out, 12) <= most && most <= MAX_RTO {
        true => Ok(out),
        false => Err(libc::EINVAL),
    }
}

/// Computes SCTP_ASSOCINFO (struct sctp_assocparams: association, retransmissions, number of peer
/// addresses, windows, cookie lifetime).
fn associnfo(before: &[u8], given: &[u8]) -> Result<Vec<u8>, i32> {
    Ok(but(before, given, &[4..6, 16..20]))
}

fn initmsg(before: &[u8], given: &[u8]) -> Result<Vec<u8>, i32> {
    Ok(but(before, given, &[0..2, 2..4, 4..6, 6..8]))
}

/// Computes SCTP_DELAYED_SACK (struct sctp_sack_info: association, delay, frequency). A frequency
/// of 1 disables the delay.
fn delayed_sack(before: &[u8], given: &[u8]) -> Result<Vec<u8>, i32> {
    match word(given, 4) {
        0..=500 => Ok(but(before, given, &[4..8, 8..12])),
        _ => Err(libc::EINVAL),
    }
}

/// Checks SCTP_DEFAULT_PRINFO (struct sctp_default_prinfo: association, value, policy of RFC 7496).
fn default_prinfo(_: &[u8], given: &[u8]) -> Result<Vec<u8>, i32> {
    match short(given, 8) {
        0 => Ok(words(&[0, 0, 0])),
        0x10 | 0x20 | 0x30 => Ok(given.to_vec()),
        _ => Err(libc::EINVAL),
    }
}

/// Default of struct sctp_paddrthlds: no address, and a path fails after five errors.
fn thresholds(bytes: usize) -> Vec<u8> {
    let mut out = vec![0; bytes];
    out[136..138].copy_from_slice(&5_u16.to_ne_bytes());
    out
}

/// Bits of `spp_flags`.
pub(super) mod spp {
    /// SPP_HB_ENABLE, SPP_HB_DISABLE.
    pub(crate) const HEARTBEATS: [u32; 2] = [1, 2];
    /// SPP_PMTUD_ENABLE, SPP_PMTUD_DISABLE.
    pub(crate) const DISCOVERY: [u32; 2] = [8, 16];
    /// SPP_SACKDELAY_ENABLE, SPP_SACKDELAY_DISABLE.
    pub(crate) const DELAY: [u32; 2] = [32, 64];
    /// SPP_HB_TIME_IS_ZERO.
    pub(crate) const NO_INTERVAL: u32 = 128;
}

/// struct sctp_paddrparams: association, address, heartbeat interval at 132, errors at 136, MTU at
/// 138, SACK delay at 142, flags at 146, flow label at 150, code point at 154.
fn peer_addr_params() -> Vec<u8> {
    let mut out = vec![0; 156];
    out[132..136].copy_from_slice(&30_000_u32.to_ne_bytes());
    out[136..138].copy_from_slice(&5_u16.to_ne_bytes());
    out[142..146].copy_from_slice(&200_u32.to_ne_bytes());
    let flags = spp::HEARTBEATS[0] | spp::DISCOVERY[0] | spp::DELAY[0];
    out[146..150].copy_from_slice(&flags.to_ne_bytes());
    out
}

fn merge_peer_addr_params(before: &[u8], given: &[u8]) -> Result<Vec<u8>, i32> {
    let flags = word(given, 146);
    let mut kept = word(before, 146);
    for pair in [spp::HEARTBEATS, spp::DISCOVERY, spp::DELAY] {
        match flags & (pair[0] | pair[1]) {
            0 => (),
            both if both == pair[0] | pair[1] => return Err(libc::EINVAL),
            one => kept = kept & !(pair[0] | pair[1]) | one,
        }
    }
    if word(given, 142) > 500 || (word(given, 138) != 0 && word(given, 138) < 512) {
        return Err(libc::EINVAL);
    }
    let mut out = but(before, given, &[136..138, 138..142]);
    // Without SPP_SACKDELAY_ENABLE the delay is ignored (RFC 6458 §8.1.12).
    if flags & spp::DELAY[0] != 0 {
        out = but(&out, given, std::slice::from_ref(&(142..146)));
    }
    if flags & spp::HEARTBEATS[0] != 0 {
        out = but(&out, given, std::slice::from_ref(&(132..136)));
        if flags & spp::NO_INTERVAL != 0 {
            out[132..136].fill(0);
        }
    }
    out[146..150].copy_from_slice(&kept.to_ne_bytes());
    Ok(out)
}

/// Called when struct sctp_paddrparams was set: copies its SACK delay to SCTP_DELAYED_SACK, or sets
/// a frequency of 1 if the delay is disabled.
pub(super) fn delay_of_paths(given: &[u8], paths: &[u8], sacks: &mut [u8]) {
    let flags = word(given, 146);
    if flags & spp::DELAY[0] != 0 {
        sacks[4..8].copy_from_slice(&paths[142..146]);
        if word(sacks, 8) == 1 {
            sacks[8..12].copy_from_slice(&FREQUENCY.to_ne_bytes());
        }
    } else if flags & spp::DELAY[1] != 0 {
        sacks[8..12].copy_from_slice(&1_u32.to_ne_bytes());
    }
}

/// Called when struct sctp_sack_info was set: copies its delay to SCTP_PEER_ADDR_PARAMS.
pub(super) fn delay_of_sacks(paths: &mut [u8], sacks: &[u8]) {
    paths[142..146].copy_from_slice(&sacks[4..8]);
    let flags = word(paths, 146) & !(spp::DELAY[0] | spp::DELAY[1]);
    let delay = spp::DELAY[usize::from(word(sacks, 8) == 1)];
    paths[146..150].copy_from_slice(&(flags | delay).to_ne_bytes());
}

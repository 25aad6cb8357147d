//! Socket options: numbers, sizes and defaults as in Linux (RFC 6458 §8), and the values that a
//! program has set.

use std::collections::BTreeMap;

/// SOL_SOCKET.
pub const SOL_SOCKET: i32 = 1;
/// IPPROTO_SCTP, which equals SOL_SCTP.
pub const IPPROTO_SCTP: i32 = 132;

/// IPPROTO_IP.
pub const IPPROTO_IP: i32 = 0;
/// IPPROTO_IPV6.
pub const IPPROTO_IPV6: i32 = 41;
/// IPV6_V6ONLY.
pub const IPV6_V6ONLY: i32 = 26;

/// SO_LINGER.
pub const SO_LINGER: i32 = 13;
/// SO_ERROR.
pub const SO_ERROR: i32 = 4;

/// Maximum size of an option value, bytes.
const MAX_VALUE: usize = 4096;

mod dtls;
mod ip_level;
mod table;

pub use dtls::*;
use table::{stored_option, words};

/// SCTP_RTOINFO: struct sctp_rtoinfo.
pub const RTOINFO: i32 = 0;
/// SCTP_ASSOCINFO: struct sctp_assocparams.
pub const ASSOCINFO: i32 = 1;
/// SCTP_INITMSG: struct sctp_initmsg.
pub const INITMSG: i32 = 2;
/// SCTP_NODELAY: int. The option has no effect, because this stack never delays small messages.
pub const NODELAY: i32 = 3;
/// SCTP_AUTOCLOSE: int, seconds.
pub const AUTOCLOSE: i32 = 4;
/// SCTP_SET_PEER_PRIMARY_ADDR: struct sctp_setpeerprim; write only.
pub const SET_PEER_PRIMARY_ADDR: i32 = 5;
/// SCTP_PRIMARY_ADDR: struct sctp_prim.
pub const PRIMARY_ADDR: i32 = 6;
/// SCTP_ADAPTATION_LAYER: struct sctp_setadaptation.
pub const ADAPTATION_LAYER: i32 = 7;
/// SCTP_DISABLE_FRAGMENTS: int.
pub const DISABLE_FRAGMENTS: i32 = 8;
/// SCTP_PEER_ADDR_PARAMS: struct sctp_paddrparams.
pub const PEER_ADDR_PARAMS: i32 = 9;
/// SCTP_DEFAULT_SEND_PARAM: struct sctp_sndrcvinfo.
pub const DEFAULT_SEND_PARAM: i32 = 10;
/// SCTP_EVENTS: struct sctp_event_subscribe, a byte for each kind of notification.
pub const EVENTS: i32 = 11;
/// SCTP_I_WANT_MAPPED_V4_ADDR: int; an AF_INET6 socket reports IPv4 addresses as mapped addresses.
pub const I_WANT_MAPPED_V4_ADDR: i32 = 12;
/// SCTP_MAXSEG: struct sctp_assoc_value.
pub const MAXSEG: i32 = 13;
/// SCTP_STATUS: struct sctp_status; read only.
pub const STATUS: i32 = 14;
/// SCTP_GET_PEER_ADDR_INFO: struct sctp_paddrinfo; read only.
pub const GET_PEER_ADDR_INFO: i32 = 15;
/// SCTP_DELAYED_SACK: struct sctp_sack_info.
pub const DELAYED_SACK: i32 = 16;
/// SCTP_CONTEXT: struct sctp_assoc_value.
pub const CONTEXT: i32 = 17;
/// SCTP_FRAGMENT_INTERLEAVE: int. With 0, the parts of a message are delivered without other
/// messages of the association between them.
pub const FRAGMENT_INTERLEAVE: i32 = 18;
/// SCTP_PARTIAL_DELIVERY_POINT: u32.
pub const PARTIAL_DELIVERY_POINT: i32 = 19;
/// SCTP_MAX_BURST: struct sctp_assoc_value.
pub const MAX_BURST: i32 = 20;
/// SCTP_AUTH_CHUNK: struct sctp_authchunk; write only.
pub const AUTH_CHUNK: i32 = 21;
/// SCTP_HMAC_IDENT: struct sctp_hmacalgo.
pub const HMAC_IDENT: i32 = 22;
/// SCTP_AUTH_KEY: struct sctp_authkey; write only.
pub const AUTH_KEY: i32 = 23;
/// SCTP_AUTH_ACTIVE_KEY: struct sctp_authkeyid.
pub const AUTH_ACTIVE_KEY: i32 = 24;
/// SCTP_AUTH_DELETE_KEY: struct sctp_authkeyid; write only.
pub const AUTH_DELETE_KEY: i32 = 25;
/// SCTP_PEER_AUTH_CHUNKS: struct sctp_authchunks; read only.
pub const PEER_AUTH_CHUNKS: i32 = 26;
/// SCTP_LOCAL_AUTH_CHUNKS: struct sctp_authchunks; read only.
pub const LOCAL_AUTH_CHUNKS: i32 = 27;
/// SCTP_GET_ASSOC_NUMBER: u32; read only.
pub const GET_ASSOC_NUMBER: i32 = 28;
/// SCTP_GET_ASSOC_ID_LIST: struct sctp_assoc_ids; read only.
pub const GET_ASSOC_ID_LIST: i32 = 29;
/// SCTP_AUTO_ASCONF: int. Stored without effect, because the system's addresses are not monitored.
pub const AUTO_ASCONF: i32 = 30;
/// SCTP_PEER_ADDR_THLDS: struct sctp_paddrthlds.
pub const PEER_ADDR_THLDS: i32 = 31;
/// SCTP_RECVRCVINFO: int.
pub const RECVRCVINFO: i32 = 32;
/// SCTP_RECVNXTINFO: int.
pub const RECVNXTINFO: i32 = 33;
/// SCTP_DEFAULT_SNDINFO: struct sctp_sndinfo; the same setting as [`DEFAULT_SEND_PARAM`], in
/// another layout.
pub const DEFAULT_SNDINFO: i32 = 34;
/// SCTP_AUTH_DEACTIVATE_KEY: struct sctp_authkeyid; write only.
pub const AUTH_DEACTIVATE_KEY: i32 = 35;
/// SCTP_REUSE_PORT: int.
pub const REUSE_PORT: i32 = 36;
/// SCTP_GET_ASSOC_STATS: struct sctp_assoc_stats; read only.
pub const GET_ASSOC_STATS: i32 = 112;
/// SCTP_PR_SUPPORTED: struct sctp_assoc_value.
pub const PR_SUPPORTED: i32 = 113;
/// SCTP_DEFAULT_PRINFO: struct sctp_default_prinfo.
pub const DEFAULT_PRINFO: i32 = 114;
/// SCTP_PR_ASSOC_STATUS: struct sctp_prstatus; read only.
pub const PR_ASSOC_STATUS: i32 = 115;
/// SCTP_PR_STREAM_STATUS: struct sctp_prstatus; read only.
pub const PR_STREAM_STATUS: i32 = 116;
/// SCTP_RECONFIG_SUPPORTED: struct sctp_assoc_value.
pub const RECONFIG_SUPPORTED: i32 = 117;
/// SCTP_ENABLE_STREAM_RESET: struct sctp_assoc_value.
pub const ENABLE_STREAM_RESET: i32 = 118;
/// SCTP_RESET_STREAMS: struct sctp_reset_streams; write only.
pub const RESET_STREAMS: i32 = 119;
/// SCTP_RESET_ASSOC: number of an association; write only.
pub const RESET_ASSOC: i32 = 120;
/// SCTP_ADD_STREAMS: struct sctp_add_streams; write only.
pub const ADD_STREAMS: i32 = 121;
/// SCTP_STREAM_SCHEDULER: struct sctp_assoc_value.
pub const STREAM_SCHEDULER: i32 = 123;
/// SCTP_STREAM_SCHEDULER_VALUE: struct sctp_stream_value.
pub const STREAM_SCHEDULER_VALUE: i32 = 124;
/// SCTP_INTERLEAVING_SUPPORTED: struct sctp_assoc_value.
pub const INTERLEAVING_SUPPORTED: i32 = 125;
/// SCTP_EVENT: struct sctp_event.
pub const EVENT: i32 = 127;
/// SCTP_ASCONF_SUPPORTED: struct sctp_assoc_value.
pub const ASCONF_SUPPORTED: i32 = 128;
/// SCTP_AUTH_SUPPORTED: struct sctp_assoc_value.
pub const AUTH_SUPPORTED: i32 = 129;
/// SCTP_ECN_SUPPORTED: struct sctp_assoc_value.
pub const ECN_SUPPORTED: i32 = 130;
/// SCTP_EXPOSE_POTENTIALLY_FAILED_STATE: struct sctp_assoc_value. 0: not set; 1: hidden; 2:
/// notified.
pub const EXPOSE_POTENTIALLY_FAILED: i32 = 131;
/// SCTP_REMOTE_UDP_ENCAPS_PORT: struct sctp_udpencaps.
pub const REMOTE_UDP_ENCAPS_PORT: i32 = 132;

/// Size of struct sctp_event_subscribe, bytes.
const EVENT_KINDS: usize = 14;

/// Options that a program has set on a socket.
#[derive(Clone, Debug, Default)]
pub struct SocketOptions {
    set: BTreeMap<(i32, i32), Vec<u8>>,
}

impl SocketOptions {
    /// Options of a new socket, with AUTH (RFC 4895) enabled as by Linux's `net.sctp.auth_enable`.
    pub fn with_auth() -> Self {
        let mut options = Self::default();
        let enabled = ((IPPROTO_SCTP, AUTH_SUPPORTED), words(&[0, 1]));
        options.set.extend([enabled]);
        options
    }

    /// Sets an option, as `setsockopt` does.
    ///
    /// # Errors
    /// An `errno`.
    pub fn set(&mut self, level: i32, option: i32, value: &[u8]) -> Result<(), i32> {
        if value.len() > MAX_VALUE {
            return Err(libc::EINVAL);
        }
        if ip_level::is_ip_level(level) {
            if let Some(value) = ip_level::given(level, option, value)? {
                self.set.insert((level, option), value);
            }
            return Ok(());
        }
        if (level, option) == (SOL_SOCKET, SO_LINGER) {
            self.set.insert((level, option), value.to_vec());
            return Ok(());
        }
        match option {
            EVENT => return self.set_event(value),
            // A program that was compiled with an older structure passes fewer bytes; the kinds
            // beyond these bytes keep their value.
            EVENTS if value.len() < EVENT_KINDS => {
                let mut all = self.value(level, option)?;
                all[..value.len()].copy_from_slice(value);
                return self.set(level, option, &all);
            }
            _ => (),
        }
        if (level, option) == (IPPROTO_SCTP, DEFAULT_SNDINFO) {
            return self.set_sndinfo(value);
        }
        let stored_option = stored_option(level, option)?;
        let value = stored_option.whole(value)?;
        let merged = match stored_option.merge {
            Some(merge) => merge(&self.value(level, option)?, &value)?,
            None => value.clone(),
        };
        self.set.insert((level, option), merged);
        if let PEER_ADDR_PARAMS | DELAYED_SACK = option {
            self.share_delay(option, &value)?;
        }
        Ok(())
    }

    /// Copies the SACK delay to the other of the two options that contain it.
    fn share_delay(&mut self, option: i32, given: &[u8]) -> Result<(), i32> {
        let [mut paths, mut sacks] =
            [PEER_ADDR_PARAMS, DELAYED_SACK].map(|it| self.value(IPPROTO_SCTP, it));
        let (paths, sacks) = (paths.as_mut(), sacks.as_mut());
        let (Ok(paths), Ok(sacks)) = (paths, sacks) else {
            return Ok(());
        };
        match option {
            PEER_ADDR_PARAMS => table::delay_of_paths(given, paths, sacks),
            _ => table::delay_of_sacks(paths, sacks),
        }
        for (option, value) in [(PEER_ADDR_PARAMS, paths), (DELAYED_SACK, sacks)] {
            let value = std::mem::take(value);
            self.set.insert((IPPROTO_SCTP, option), value);
        }
        Ok(())
    }

    /// Copies struct sctp_sndinfo to struct sctp_sndrcvinfo, whose first half has the same fields.
    fn set_sndinfo(&mut self, value: &[u8]) -> Result<(), i32> {
        let value: &[u8; 16] = value.try_into().map_err(|_| libc::EINVAL)?;
        table::check_flags([value[2], value[3]])?;
        let mut all = self.value(IPPROTO_SCTP, DEFAULT_SEND_PARAM)?;
        all[..2].copy_from_slice(&value[..2]);
        all[4..6].copy_from_slice(&value[2..4]);
        all[8..16].copy_from_slice(&value[4..12]);
        self.set.insert((IPPROTO_SCTP, DEFAULT_SEND_PARAM), all);
        Ok(())
    }

    fn sndinfo(&self) -> Vec<u8> {
        let all = self
            .value(IPPROTO_SCTP, DEFAULT_SEND_PARAM)
            .unwrap_or_default();
        [&all[..2], &all[4..6], &all[8..16], &[0; 4]].concat()
    }

    /// struct sctp_event: association, kind, subscribed.
    fn set_event(&mut self, value: &[u8]) -> Result<(), i32> {
        let &[_, _, _, _, low, high, on, ..] = value else {
            return Err(libc::EINVAL);
        };
        let kind = kind_of_event(u16::from_ne_bytes([low, high])).ok_or(libc::EINVAL)?;
        let mut all = self.value(IPPROTO_SCTP, EVENTS)?;
        all[kind] = on;
        self.set(IPPROTO_SCTP, EVENTS, &all)
    }

    /// The value of a stored option.
    ///
    /// # Errors
    /// An `errno`.
    pub fn value(&self, level: i32, option: i32) -> Result<Vec<u8>, i32> {
        if let Some(value) = self.set.get(&(level, option)) {
            return Ok(value.clone());
        }
        if (level, option) == (SOL_SOCKET, SO_LINGER) {
            return Ok(words(&[0, 0]));
        }
        if ip_level::is_ip_level(level) {
            return ip_level::default(level, option);
        }
        Ok((stored_option(level, option)?.default)())
    }

    /// The value of an option for a buffer of `room` bytes, as `getsockopt` returns it.
    ///
    /// # Errors
    /// An `errno`.
    pub fn get(&self, level: i32, option: i32, room: usize) -> Result<Vec<u8>, i32> {
        if (level, option) == (IPPROTO_SCTP, EVENT) {
            return Err(libc::EINVAL);
        }
        let value = match (level, option) {
            (IPPROTO_SCTP, DEFAULT_SNDINFO) => self.sndinfo(),
            _ => self.value(level, option)?,
        };
        match stored_option(level, option) {
            _ if ip_level::is_ip_level(level) => Ok(value),
            Ok(stored_option) => stored_option.fit(value, room),
            Err(_) if room < value.len() => Err(libc::EINVAL),
            Err(_) => Ok(value),
        }
    }

    /// The SCTP options that were set, in numeric order.
    pub fn all(&self) -> impl Iterator<Item = (i32, &[u8])> {
        let set = self
            .set
            .iter()
            .filter(|((level, _), _)| *level == IPPROTO_SCTP);
        set.map(|((_, option), value)| (*option, &value[..]))
    }

    /// Whether the program has subscribed to notifications of this kind, by its index in struct
    /// sctp_event_subscribe.
    pub fn wants(&self, kind: usize) -> bool {
        // There are no subscriptions by default. The value is read without a copy, because this
        // function is called for each message.
        let events = self.set.get(&(IPPROTO_SCTP, EVENTS));
        events.is_some_and(|it| it.get(kind).is_some_and(|&on| on != 0))
    }

    /// The 32-bit number at byte offset `at` of an SCTP option.
    pub fn word(&self, option: i32, at: usize) -> u32 {
        self.number(option, at, 4)
    }

    /// The 16-bit number at byte offset `at` of an SCTP option.
    pub fn short(&self, option: i32, at: usize) -> u16 {
        self.number(option, at, 2) as u16
    }

    fn number(&self, option: i32, at: usize, bytes: usize) -> u32 {
        let read = |value: &[u8]| match *value.get(at..at + bytes).unwrap_or_default() {
            [a, b] => u32::from(u16::from_ne_bytes([a, b])),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]),
            _ => 0,
        };
        // Avoids copying the value, because this is called for each message and most options have
        // their default.
        match (
            self.set.get(&(IPPROTO_SCTP, option)),
            stored_option(IPPROTO_SCTP, option),
        ) {
            (Some(value), _) => read(value),
            (None, Ok(stored_option)) => read(&(stored_option.default)()),
            (None, Err(_)) => 0,
        }
    }

    /// IPV6_V6ONLY: whether the socket refuses IPv4.
    pub fn is_v6_only(&self) -> bool {
        let value = self.value(IPPROTO_IPV6, IPV6_V6ONLY);
        value.is_ok_and(|it| it.iter().any(|&byte| byte != 0))
    }

    /// SO_LINGER: maximum duration of `close` in seconds; `None` if it is disabled.
    pub fn linger(&self) -> Option<u32> {
        let value = self.set.get(&(SOL_SOCKET, SO_LINGER))?;
        match value[..] {
            [on0, on1, on2, on3, a, b, c, d, ..] if [on0, on1, on2, on3] != [0; 4] => {
                Some(u32::from_ne_bytes([a, b, c, d]))
            }
            _ => None,
        }
    }
}

/// Index in struct sctp_event_subscribe of a notification type. The types start at
/// SCTP_SN_TYPE_BASE, in the same order.
pub fn kind_of_event(number: u16) -> Option<usize> {
    let place = number.checked_sub(1 << 15).map(usize::from);
    place.filter(|&it| it < EVENT_KINDS)
}

/// Whether the option can be set.
pub fn can_be_set(option: i32) -> bool {
    const ACTS: [i32; 13] = [
        EVENT,
        DEFAULT_SNDINFO,
        PRIMARY_ADDR,
        SET_PEER_PRIMARY_ADDR,
        AUTH_CHUNK,
        HMAC_IDENT,
        AUTH_KEY,
        AUTH_ACTIVE_KEY,
        AUTH_DELETE_KEY,
        AUTH_DEACTIVATE_KEY,
        RESET_STREAMS,
        RESET_ASSOC,
        STREAM_SCHEDULER_VALUE,
    ];
    ACTS.contains(&option) || option == ADD_STREAMS || stored_option(IPPROTO_SCTP, option).is_ok()
}

/// Byte offset of the association number in the value of an option; `None` for options of the whole
/// socket.
pub fn names_association_at(option: i32) -> Option<usize> {
    match option {
        DEFAULT_SNDINFO => Some(12),
        EVENT | PRIMARY_ADDR | SET_PEER_PRIMARY_ADDR | STATUS | GET_PEER_ADDR_INFO | AUTH_KEY => {
            Some(0)
        }
        AUTH_ACTIVE_KEY | AUTH_DELETE_KEY | AUTH_DEACTIVATE_KEY | PEER_AUTH_CHUNKS => Some(0),
        LOCAL_AUTH_CHUNKS | GET_ASSOC_STATS | PR_ASSOC_STATUS | PR_STREAM_STATUS => Some(0),
        RESET_STREAMS | RESET_ASSOC | ADD_STREAMS | STREAM_SCHEDULER_VALUE => Some(0),
        _ if is_dtls(option) => Some(0),
        _ => stored_option(IPPROTO_SCTP, option).ok()?.association,
    }
}

/// The association that is named in the option's value.
pub fn named_association(option: i32, value: &[u8]) -> u32 {
    let at = names_association_at(option).filter(|_| !is_short(option, value.len()));
    let bytes = at.and_then(|at| value.get(at..at + 4));
    let bytes = bytes.and_then(|it| it.try_into().ok());
    bytes.map_or(0, u32::from_ne_bytes)
}

/// Whether the value has the short form of the option, without an association number.
fn is_short(option: i32, length: usize) -> bool {
    stored_option(IPPROTO_SCTP, option).is_ok_and(|it| it.short == Some(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_read_as_it_was_set() {
        let shorts = table::shorts;
        let mut options = SocketOptions::default();
        assert_eq!(options.short(INITMSG, 0), 10);
        options
            .set(IPPROTO_SCTP, INITMSG, &shorts(&[5, 6, 7, 8]))
            .unwrap();
        assert_eq!(options.short(INITMSG, 4), 7);
        assert_eq!(
            options.get(IPPROTO_SCTP, INITMSG, 8),
            Ok(shorts(&[5, 6, 7, 8]))
        );
        assert_eq!(options.get(IPPROTO_SCTP, INITMSG, 7), Err(libc::EINVAL));
        assert_eq!(
            options.set(IPPROTO_SCTP, INITMSG, &[0; 7]),
            Err(libc::EINVAL)
        );
        assert_eq!(
            options.set(IPPROTO_SCTP, 9999, &[0; 4]),
            Err(libc::ENOPROTOOPT)
        );
    }

    #[test]
    fn a_limit_is_given_as_a_number_or_with_its_association() {
        let mut options = SocketOptions::default();
        options.set(IPPROTO_SCTP, 13, &words(&[1200])).unwrap();
        assert_eq!(options.get(IPPROTO_SCTP, 13, 8), Ok(words(&[0, 1200])));
        options.set(IPPROTO_SCTP, 13, &words(&[3, 900])).unwrap();
        assert_eq!(options.get(IPPROTO_SCTP, 13, 4), Ok(words(&[900])));
        assert_eq!(named_association(13, &words(&[3, 900])), 3);
        assert_eq!(named_association(13, &words(&[900])), 0);
    }

    #[test]
    fn fields_of_0_keep_their_values() {
        let mut options = SocketOptions::default();
        let rto = |it: [u32; 3]| words(&[0, it[0], it[1], it[2]]);
        options
            .set(IPPROTO_SCTP, RTOINFO, &rto([2000, 0, 0]))
            .unwrap();
        assert_eq!(
            options.value(IPPROTO_SCTP, RTOINFO),
            Ok(rto([2000, 60_000, 1000]))
        );
        // The endpoint's settings allow a day at most.
        for wrong in [[0, 100, 200], [0, 86_400_001, 0]] {
            let wrong = options.set(IPPROTO_SCTP, RTOINFO, &rto(wrong));
            assert_eq!(wrong, Err(libc::EINVAL));
        }
        options
            .set(IPPROTO_SCTP, RTOINFO, &rto([0, 86_400_000, 0]))
            .unwrap();
        // SPP_HB_DISABLE keeps the interval.
        let mut params = vec![0; 156];
        params[146..150].copy_from_slice(&2_u32.to_ne_bytes());
        options
            .set(IPPROTO_SCTP, PEER_ADDR_PARAMS, &params)
            .unwrap();
        assert_eq!(options.word(PEER_ADDR_PARAMS, 132), 30_000);
        assert_eq!(options.word(PEER_ADDR_PARAMS, 146) & 3, 2);
    }

    #[test]
    fn structs_of_older_programs_are_taken() {
        let mut options = SocketOptions::default();
        let sack = |options: &mut SocketOptions, delay| {
            options
                .set(IPPROTO_SCTP, DELAYED_SACK, &words(&[0, delay]))
                .unwrap();
            [options.word(DELAYED_SACK, 4), options.word(DELAYED_SACK, 8)]
        };
        assert_eq!(sack(&mut options, 100), [100, 2]);
        // If the delay is 0, each packet is acknowledged.
        assert_eq!(sack(&mut options, 0), [100, 1]);
        let short = options.get(IPPROTO_SCTP, DELAYED_SACK, 8);
        assert_eq!(short, Ok(words(&[0, 100])));
        let mut params = vec![0; 152];
        params[136..138].copy_from_slice(&7_u16.to_ne_bytes());
        options
            .set(IPPROTO_SCTP, PEER_ADDR_PARAMS, &params)
            .unwrap();
        let got = options.get(IPPROTO_SCTP, PEER_ADDR_PARAMS, 152).unwrap();
        assert_eq!((got.len(), &got[136..138]), (152, &params[136..138]));
        params.push(0);
        let wrong = options.set(IPPROTO_SCTP, PEER_ADDR_PARAMS, &params);
        assert_eq!(wrong, Err(libc::EINVAL));
    }

    #[test]
    fn the_two_structs_of_defaults_are_one() {
        let mut options = SocketOptions::default();
        let info = [
            &7_u16.to_ne_bytes()[..],
            &1_u16.to_ne_bytes(),
            &words(&[8, 9, 0]),
        ]
        .concat();
        options.set(IPPROTO_SCTP, DEFAULT_SNDINFO, &info).unwrap();
        assert_eq!(options.short(DEFAULT_SEND_PARAM, 0), 7);
        assert_eq!(options.short(DEFAULT_SEND_PARAM, 4), 1);
        assert_eq!(options.word(DEFAULT_SEND_PARAM, 8), 8);
        assert_eq!(options.get(IPPROTO_SCTP, DEFAULT_SNDINFO, 16), Ok(info));
    }

    #[test]
    fn notifications_are_wanted_one_by_one_or_together() {
        let mut options = SocketOptions::default();
        // struct sctp_event: SCTP_SHUTDOWN_EVENT, on.
        let event = [&0_u32.to_ne_bytes()[..], &0x8005_u16.to_ne_bytes(), &[1, 0]].concat();
        options.set(IPPROTO_SCTP, EVENT, &event).unwrap();
        assert!(options.wants(5) && !options.wants(1));
        options.set(IPPROTO_SCTP, EVENTS, &[1, 1]).unwrap();
        // Kinds beyond the end of a short value keep their value.
        assert!(options.wants(0) && options.wants(1) && options.wants(5));
        options.set(IPPROTO_SCTP, EVENTS, &[1; 15]).unwrap_err();
        let unknown = [&0_u32.to_ne_bytes()[..], &0x9000_u16.to_ne_bytes(), &[1, 0]].concat();
        assert_eq!(
            options.set(IPPROTO_SCTP, EVENT, &unknown),
            Err(libc::EINVAL)
        );
    }

    #[test]
    fn linger_counts_where_it_is_on() {
        let mut options = SocketOptions::default();
        assert_eq!(options.linger(), None);
        options.set(SOL_SOCKET, SO_LINGER, &words(&[1, 0])).unwrap();
        assert_eq!(options.linger(), Some(0));
        options.set(SOL_SOCKET, SO_LINGER, &words(&[0, 5])).unwrap();
        assert_eq!(options.linger(), None);
        // Unknown options should not be stored, because any program that reaches the host could
        // fill its memory with them.
        assert_eq!(
            options.set(SOL_SOCKET, 9999, &[0; 4]),
            Err(libc::ENOPROTOOPT)
        );
    }
}

//! `getsockopt`: options of a socket and its associations.

use std::net::SocketAddr;
use std::time::Duration;

use anabranch_net::sctp::AssociationState;
use anabranch_net::{PathState, PathStatus, Status};

use super::notification::{of_storage, storage};
use super::socket::SocketAssociation;
use super::socket::{Phase, Socket};
use super::{HostState, dtls_options};
use crate::options::*;

/// The value of an option. `given` is the program's buffer: it names the association, and its size
/// limits the result.
pub(super) fn get(
    host: &HostState,
    socket: &Socket,
    level: i32,
    option: i32,
    given: &[u8],
) -> Result<Vec<u8>, i32> {
    let number = |it: i32| Ok(it.to_ne_bytes().to_vec());
    match (level, option) {
        (SOL_SOCKET, SO_ERROR) => number(socket.take_error().unwrap_or(0)),
        (SOL_SOCKET, libc::SO_ACCEPTCONN) => {
            number((socket.state().phase == Phase::Listening).into())
        }
        (IPPROTO_SCTP, _) => of_sctp(host, socket, option, given),
        _ => socket.state().options.get(level, option, given.len()),
    }
}

fn of_sctp(host: &HostState, socket: &Socket, option: i32, given: &[u8]) -> Result<Vec<u8>, i32> {
    if is_dtls(option) {
        return dtls_options::get(socket, option, given);
    }
    let room = given.len();
    let fits = |value: Vec<u8>| match value.len() <= room {
        true => Ok(value),
        false => Err(libc::EINVAL),
    };
    let named = named_association(option, given);
    let assoc = socket.assoc(named);
    let one_to_many = socket.socket_type.is_one_to_many();
    if names_association_at(option).is_some() && one_to_many && named != 0 && assoc.is_none() {
        return Err(libc::EINVAL);
    }
    let needed = || assoc.as_deref().ok_or(libc::EINVAL);
    match option {
        STATUS => fits(status(needed()?).ok_or(libc::EINVAL)?),
        GET_PEER_ADDR_INFO => fits(peer_info(needed()?, given)?),
        PRIMARY_ADDR => fits(primary(needed()?).ok_or(libc::EINVAL)?),
        GET_ASSOC_NUMBER if one_to_many => fits(count(socket).to_ne_bytes().to_vec()),
        GET_ASSOC_ID_LIST if one_to_many => fits(numbers(socket)),
        GET_ASSOC_NUMBER | GET_ASSOC_ID_LIST => Err(libc::EOPNOTSUPP),
        AUTH_CHUNK | AUTH_KEY | AUTH_DELETE_KEY | AUTH_DEACTIVATE_KEY => Err(libc::EOPNOTSUPP),
        EVENT => {
            let options = match &assoc {
                Some(assoc) => assoc.options().clone(),
                None => socket.state().options.clone(),
            };
            fits(event(&options, given)?)
        }
        STREAM_SCHEDULER_VALUE => fits(stream_value(needed()?, given)?),
        PEER_AUTH_CHUNKS if assoc.is_none() => Err(libc::EINVAL),
        GET_ASSOC_STATS => {
            let mut value = statistics(needed()?).ok_or(libc::EINVAL)?;
            value.truncate(room);
            Ok(value)
        }
        PR_ASSOC_STATUS | PR_STREAM_STATUS => fits(abandoned(needed()?, option, given)?),
        AUTOCLOSE if !one_to_many => Err(libc::EOPNOTSUPP),
        HMAC_IDENT | AUTH_ACTIVE_KEY | LOCAL_AUTH_CHUNKS | PEER_AUTH_CHUNKS => {
            fits(authentication(socket, assoc.as_deref(), option, given)?)
        }
        _ => {
            let mut value = kept(host, socket, assoc.as_deref(), option, room)?;
            // The association number is returned as the program passed it.
            if let Some(at) = names_association_at(option)
                && let (Some(to), Some(from)) = (value.get_mut(at..at + 4), given.get(at..at + 4))
                && room != 4
            {
                to.copy_from_slice(from);
            }
            Ok(value)
        }
    }
}

/// The stored value of an option, or the association's current value.
fn kept(
    host: &HostState,
    socket: &Socket,
    assoc: Option<&SocketAssociation>,
    option: i32,
    room: usize,
) -> Result<Vec<u8>, i32> {
    let Some((assoc, association)) = assoc.and_then(|it| Some((it, it.association()?))) else {
        return socket.state().options.get(IPPROTO_SCTP, option, room);
    };
    let mut value = assoc.options().get(IPPROTO_SCTP, option, room)?;
    let spoken = match option {
        PR_SUPPORTED => association.negotiated().partial_reliability,
        RECONFIG_SUPPORTED => association.negotiated().reconfiguration,
        AUTH_SUPPORTED => association.negotiated().authentication,
        INTERLEAVING_SUPPORTED => association.negotiated().interleaving,
        ASCONF_SUPPORTED => association.negotiated().address_changes,
        ECN_SUPPORTED => association.negotiated().ecn,
        ASSOCINFO => {
            if let Some(status) = association.status()
                && let Some(part) = value.get_mut(6..16)
            {
                let paths = u16::try_from(status.paths.len()).unwrap_or(u16::MAX);
                part[..2].copy_from_slice(&paths.to_ne_bytes());
                part[2..6].copy_from_slice(&limited(status.rwnd).to_ne_bytes());
                part[6..].copy_from_slice(&host.config.sctp.receive_buffer.to_ne_bytes());
            }
            return Ok(value);
        }
        _ => return Ok(value),
    };
    if let Some(part) = value.get_mut(4..8) {
        part.copy_from_slice(&u32::from(spoken).to_ne_bytes());
    }
    Ok(value)
}

/// Value of SCTP_EVENT, struct sctp_event: association, kind, subscribed.
fn event(options: &SocketOptions, given: &[u8]) -> Result<Vec<u8>, i32> {
    let mut out = given.get(..8).ok_or(libc::EINVAL)?.to_vec();
    let kind = u16::from_ne_bytes([out[4], out[5]]);
    let place = kind_of_event(kind).ok_or(libc::EINVAL)?;
    out[6] = options.wants(place).into();
    Ok(out)
}

/// Value of SCTP_STREAM_SCHEDULER_VALUE, struct sctp_stream_value: association, stream, value.
fn stream_value(assoc: &SocketAssociation, given: &[u8]) -> Result<Vec<u8>, i32> {
    let mut out = given.get(..8).ok_or(libc::EINVAL)?.to_vec();
    let stream = u16::from_ne_bytes([out[4], out[5]]);
    let association = assoc.association().ok_or(libc::EINVAL)?;
    let value = association.stream_value(stream).ok_or(libc::EINVAL)?;
    out[6..].copy_from_slice(&value.to_ne_bytes());
    Ok(out)
}

fn limited(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Value of SCTP_STATUS: struct sctp_status.
fn status(assoc: &SocketAssociation) -> Option<Vec<u8>> {
    let status = assoc.status()?;
    let mut out = Vec::new();
    for word in [assoc.number, state(status.state), limited(status.rwnd)] {
        out.extend(word.to_ne_bytes());
    }
    let unacknowledged = u16::try_from(status.unackdata).unwrap_or(u16::MAX);
    for short in [unacknowledged, 0, status.instrms, status.outstrms] {
        out.extend(short.to_ne_bytes());
    }
    out.extend((status.fragmentation_point as u32).to_ne_bytes());
    out.extend(path_info(assoc, &status.primary, status.peer_port));
    Some(out)
}

/// State of an association as a value of enum sctp_sstat_state.
fn state(state: AssociationState) -> u32 {
    match state {
        AssociationState::CookieWait => 2,
        AssociationState::CookieEchoed => 3,
        AssociationState::Established => 4,
        AssociationState::ShutdownPending => 5,
        AssociationState::ShutdownSent => 6,
        AssociationState::ShutdownReceived => 7,
        AssociationState::ShutdownAckSent => 8,
        _ => 1,
    }
}

/// State of a path as struct sctp_paddrinfo.
fn path_info(assoc: &SocketAssociation, path: &PathStatus, port: u16) -> Vec<u8> {
    const INACTIVE: u32 = 0;
    const POTENTIALLY_FAILED: u32 = 1;
    const ACTIVE: u32 = 2;
    const UNCONFIRMED: u32 = 3;
    let state = match path.state {
        PathState::Active => ACTIVE,
        PathState::PotentiallyFailed => POTENTIALLY_FAILED,
        PathState::Unconfirmed => UNCONFIRMED,
        PathState::Inactive => INACTIVE,
    };
    let milliseconds = |it: Duration| limited(it.as_millis().try_into().unwrap_or(u64::MAX));
    let mut out = assoc.number.to_ne_bytes().to_vec();
    out.extend(storage(assoc.shown(SocketAddr::new(path.address, port))));
    let srtt = path.srtt.map_or(0, milliseconds);
    for word in [
        state,
        limited(path.cwnd),
        srtt,
        milliseconds(path.rto),
        path.mtu as u32,
    ] {
        out.extend(word.to_ne_bytes());
    }
    out
}

fn peer_info(assoc: &SocketAssociation, given: &[u8]) -> Result<Vec<u8>, i32> {
    const HIDDEN: u32 = 1;
    let address = given.get(4..).and_then(of_storage).ok_or(libc::EINVAL)?;
    let status = assoc.status().ok_or(libc::EINVAL)?;
    let path = path_of(&status, address).ok_or(libc::EINVAL)?;
    let hides = assoc.options().word(EXPOSE_POTENTIALLY_FAILED, 4) == HIDDEN;
    match path.state {
        PathState::PotentiallyFailed if hides => Err(libc::EACCES),
        _ => Ok(path_info(assoc, path, status.peer_port)),
    }
}

fn path_of(status: &Status, address: SocketAddr) -> Option<&PathStatus> {
    let mut paths = status.paths.iter();
    let same = |it: &&PathStatus| (it.address, status.peer_port) == (address.ip(), address.port());
    paths.find(same)
}

/// Value of SCTP_PRIMARY_ADDR: struct sctp_prim.
fn primary(assoc: &SocketAssociation) -> Option<Vec<u8>> {
    let status = assoc.status()?;
    let mut out = assoc.number.to_ne_bytes().to_vec();
    let primary = SocketAddr::new(status.primary.address, status.peer_port);
    out.extend(storage(assoc.shown(primary)));
    Some(out)
}

fn count(socket: &Socket) -> u32 {
    socket.state().assocs.len() as u32
}

/// Value of SCTP_GET_ASSOC_ID_LIST: struct sctp_assoc_ids.
fn numbers(socket: &Socket) -> Vec<u8> {
    let state = socket.state();
    let mut out = (state.assocs.len() as u32).to_ne_bytes().to_vec();
    for number in state.assocs.keys() {
        out.extend(number.to_ne_bytes());
    }
    out
}

/// Value of SCTP_GET_ASSOC_STATS: struct sctp_assoc_stats; counters that this stack lacks are 0.
fn statistics(assoc: &SocketAssociation) -> Option<Vec<u8>> {
    let status = assoc.status()?;
    let (sender, port) = (&status.counters.sender, status.peer_port);
    let slowest = status.paths.iter().max_by_key(|it| it.rto)?;
    let mut out = assoc.number.to_ne_bytes().to_vec();
    out.extend([0; 4]);
    out.extend(storage(assoc.shown(SocketAddr::new(slowest.address, port))));
    out.extend((slowest.rto.as_millis() as u64).to_ne_bytes());
    for value in [sender.sacks, 0, 0, 0, sender.chunks_retransmitted] {
        out.extend(value.to_ne_bytes());
    }
    for value in [0, 0, 0, 0, 0, sender.chunks_sent, 0, 0, 0] {
        out.extend(u64::to_ne_bytes(value));
    }
    Some(out)
}

/// Value of SCTP_PR_ASSOC_STATUS or SCTP_PR_STREAM_STATUS: struct sctp_prstatus, with the stream at
/// byte 4, the policy at byte 6, then the numbers of abandoned messages (unsent and sent).
fn abandoned(assoc: &SocketAssociation, option: i32, given: &[u8]) -> Result<Vec<u8>, i32> {
    const EVERY_POLICY: u16 = 0x80;
    let short = |at: usize| {
        let bytes = given.get(at..at + 2).and_then(|it| it.try_into().ok());
        bytes.map(u16::from_ne_bytes).ok_or(libc::EINVAL)
    };
    let (stream, policy) = (short(4)?, short(6)?);
    let streams = assoc.status().map_or(0, |it| it.outstrms);
    if policy & !(0x30 | EVERY_POLICY) != 0 || (option == PR_STREAM_STATUS && stream >= streams) {
        return Err(libc::EINVAL);
    }
    let mut sums = [0_u64; 2];
    for ((of, by), counts) in &*assoc.abandoned() {
        let wanted = policy & EVERY_POLICY != 0 || policy == *by;
        if wanted && (option == PR_ASSOC_STATUS || stream == *of) {
            sums[0] += counts[0];
            sums[1] += counts[1];
        }
    }
    let mut out = given.get(..8).unwrap_or_default().to_vec();
    out.extend(sums.iter().flat_map(|it| it.to_ne_bytes()));
    Ok(out)
}

/// Value of an option of AUTH: struct sctp_hmacalgo, struct sctp_authkeyid or struct
/// sctp_authchunks.
fn authentication(
    socket: &Socket,
    assoc: Option<&SocketAssociation>,
    option: i32,
    given: &[u8],
) -> Result<Vec<u8>, i32> {
    if option != HMAC_IDENT && given.len() < 8 {
        return Err(libc::EINVAL);
    }
    let association = assoc.and_then(|it| it.association());
    let state = socket.state();
    let speaks = match &association {
        Some(association) => association.negotiated().authentication,
        None => state.options.word(AUTH_SUPPORTED, 4) != 0,
    };
    if !speaks {
        return Err(libc::EACCES);
    }
    let mut out = given.get(..4).ok_or(libc::EINVAL)?.to_vec();
    match option {
        HMAC_IDENT => {
            // The supported algorithms: SHA-1 and SHA-256.
            out = 2_u32.to_ne_bytes().to_vec();
            out.extend([1_u16, 3].iter().flat_map(|it| it.to_ne_bytes()));
        }
        AUTH_ACTIVE_KEY => {
            let active = match &association {
                Some(association) => association.active_auth_key().unwrap_or_default(),
                None => state.keys.active(),
            };
            out.extend(active.to_ne_bytes());
            out.extend([0; 2]);
        }
        _ => {
            let demanded = association.map(|it| it.negotiated());
            let chunks = match (demanded, option) {
                (Some(it), PEER_AUTH_CHUNKS) => it.peer_auth_chunks.iter().collect(),
                (Some(it), _) => it.local_auth_chunks.iter().collect(),
                (None, _) => state.authenticated.clone(),
            };
            out.extend((chunks.len() as u32).to_ne_bytes());
            out.extend(chunks);
        }
    }
    Ok(out)
}

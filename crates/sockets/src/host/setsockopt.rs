//! `setsockopt`: effects of options on a socket and its associations.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anabranch_net::{
    AddressChange, Association, DynamicSettingError, KeyError, PathSettings, ReconfigError,
    Reconfiguration, SharedKeys,
};

use super::notification::of_storage;
use super::socket::Socket;
use super::socket::SocketAssociation;
use super::{dtls_options, settings};
use crate::options::*;

/// Association numbers with a special meaning: SCTP_CURRENT_ASSOC means all existing associations,
/// and SCTP_ALL_ASSOC means existing and future ones. SCTP_FUTURE_ASSOC, 0, means only future
/// associations.
const CURRENT: u32 = 1;
const ALL: u32 = 2;

/// The associations to which an option applies.
struct Scope {
    /// Whether the option applies to future associations.
    future: bool,
    /// Existing associations to which the option applies.
    assocs: Vec<Arc<SocketAssociation>>,
}

fn scope(socket: &Socket, option: i32, value: &[u8]) -> Result<Scope, i32> {
    let assocs: Vec<_> = socket.state().assocs.values().cloned().collect();
    let of_association = names_association_at(option).is_some();
    if !socket.socket_type.is_one_to_many() {
        let future = assocs.is_empty() || !of_association || option == EVENT;
        return Ok(Scope { future, assocs });
    }
    if is_offered(option) {
        // The option applies to future associations even if it names an existing one, because the
        // extension is offered in the handshake (RFC 7496 §4.5).
        return Ok(Scope {
            future: true,
            assocs: Vec::new(),
        });
    }
    let (future, assocs) = match (of_association, named_association(option, value)) {
        // An option of the whole socket applies to all its associations.
        (false, _) | (_, ALL) => (true, assocs),
        (true, 0) => (true, Vec::new()),
        (true, CURRENT) => (false, assocs),
        (true, number) => (false, vec![socket.assoc(number).ok_or(libc::EINVAL)?]),
    };
    Ok(Scope { future, assocs })
}

/// Whether the option changes an offer in the handshake.
fn is_offered(option: i32) -> bool {
    [
        PR_SUPPORTED,
        RECONFIG_SUPPORTED,
        AUTH_SUPPORTED,
        ASCONF_SUPPORTED,
        INTERLEAVING_SUPPORTED,
        ECN_SUPPORTED,
    ]
    .contains(&option)
}

/// `setsockopt` at SCTP's level.
pub(super) fn set(socket: &Socket, option: i32, value: &[u8]) -> Result<(), i32> {
    if is_dtls(option) {
        return dtls_options::set(socket, option, value);
    }
    if !can_be_set(option) {
        return Err(libc::ENOPROTOOPT);
    }
    permit(socket, option, value)?;
    let scope = scope(socket, option, value)?;
    if option == PEER_ADDR_PARAMS && demands_heartbeat(value) && scope.assocs.is_empty() {
        return Err(libc::EINVAL);
    }
    match option {
        AUTH_CHUNK | HMAC_IDENT | AUTH_KEY | AUTH_ACTIVE_KEY | AUTH_DELETE_KEY
        | AUTH_DEACTIVATE_KEY => return authenticate(socket, &scope, option, value),
        PRIMARY_ADDR
        | SET_PEER_PRIMARY_ADDR
        | RESET_STREAMS
        | RESET_ASSOC
        | ADD_STREAMS
        | STREAM_SCHEDULER_VALUE => {
            let [assoc] = &scope.assocs[..] else {
                return Err(libc::EINVAL);
            };
            let association = assoc.association().ok_or(libc::EINVAL)?;
            return act(assoc, &association, option, value);
        }
        _ => (),
    }
    if scope.future {
        socket.state().options.set(IPPROTO_SCTP, option, value)?;
    }
    for assoc in &scope.assocs {
        is_of_peer(assoc, option, value)?;
        assoc.options().set(IPPROTO_SCTP, option, value)?;
        if [EVENT, EVENTS].contains(&option) {
            // Wakes the task that sends SENDER_DRY, because a new subscriber must be notified
            // immediately if all data is acknowledged.
            assoc.sent.notify_one();
        }
        let kept = assoc.options().value(IPPROTO_SCTP, option);
        if let (Ok(kept), Some(association)) = (kept, assoc.association()) {
            apply(&association, option, &kept)?;
        }
        // SCTP_PEER_ADDR_PARAMS also contains the SACK delay.
        let sacks = assoc.options().value(IPPROTO_SCTP, DELAYED_SACK);
        if let (PEER_ADDR_PARAMS, Ok(sacks), Some(association)) =
            (option, sacks, assoc.association())
        {
            apply(&association, DELAYED_SACK, &sacks)?;
        }
    }
    Ok(())
}

/// Checks restrictions that Linux has for certain sockets.
fn permit(socket: &Socket, option: i32, value: &[u8]) -> Result<(), i32> {
    let one_to_one = !socket.socket_type.is_one_to_many();
    let state = socket.state();
    let named = named_association(option, value);
    if is_offered(option) && !one_to_one && named != 0 && !state.assocs.contains_key(&named) {
        return Err(libc::EINVAL);
    }
    match option {
        AUTOCLOSE if one_to_one => Err(libc::EOPNOTSUPP),
        REUSE_PORT if !one_to_one => Err(libc::EOPNOTSUPP),
        REUSE_PORT if state.port.is_some() => Err(libc::EFAULT),
        PARTIAL_DELIVERY_POINT if value.len() != 4 => Err(libc::EINVAL),
        SET_PEER_PRIMARY_ADDR if state.assocs.is_empty() => Err(libc::EPERM),
        // The DTLS chunk excludes AUTH (draft-ietf-tsvwg-sctp-dtls-chunk-04 §3.2).
        AUTH_SUPPORTED if word(value, 4) != 0 && state.dtls.is_offered() => Err(libc::EPERM),
        INTERLEAVING_SUPPORTED if value.len() < 8 => Err(libc::EINVAL),
        INTERLEAVING_SUPPORTED if state.options.word(FRAGMENT_INTERLEAVE, 0) == 0 => {
            Err(libc::EPERM)
        }
        // Only a socket that is bound to all addresses can follow changes of the system's
        // addresses.
        AUTO_ASCONF
            if word(value, 0) != 0 && (state.port.is_none() || !state.addresses().is_empty()) =>
        {
            Err(libc::EINVAL)
        }
        // Like in Linux, an address is accepted only if it belongs to a peer.
        PEER_ADDR_PARAMS | PEER_ADDR_THLDS
            if address_in(option, value).is_some() && state.assocs.is_empty() =>
        {
            Err(libc::EINVAL)
        }
        _ => Ok(()),
    }
}

/// Checks that a peer address in an option has the peer's port.
fn is_of_peer(assoc: &SocketAssociation, option: i32, value: &[u8]) -> Result<(), i32> {
    let at = match option {
        PRIMARY_ADDR | PEER_ADDR_PARAMS => 4,
        PEER_ADDR_THLDS => 8,
        _ => return Ok(()),
    };
    let named = value.get(at..).and_then(of_storage);
    let named = named.filter(|it| !it.ip().is_unspecified());
    let port = assoc.status().map(|it| it.peer_port);
    match (named, port) {
        (Some(named), Some(port)) if named.port() != port => Err(libc::EINVAL),
        _ => Ok(()),
    }
}

/// Whether struct sctp_paddrparams has the flag SPP_HB_DEMAND, which applies to an association.
fn demands_heartbeat(value: &[u8]) -> bool {
    const DEMAND: u32 = 4;
    word(value, 146) & DEMAND != 0
}

/// The address in the value of an option, if there is one.
fn address_in(option: i32, value: &[u8]) -> Option<IpAddr> {
    let at = match option {
        PEER_ADDR_PARAMS | PRIMARY_ADDR | SET_PEER_PRIMARY_ADDR => 4,
        _ => 8,
    };
    let address = of_storage(value.get(at..)?)?;
    Some(address.ip()).filter(|it| !it.is_unspecified())
}

/// Applies all stored options to an association that was just established.
pub(super) fn apply_all(assoc: &SocketAssociation) {
    let Some(association) = assoc.association() else {
        return;
    };
    let set: Vec<_> = {
        let options = assoc.options();
        options
            .all()
            .map(|(option, value)| (option, value.to_vec()))
            .collect()
    };
    for (option, value) in set {
        // Options that are invalid for this association are ignored.
        let _ = apply(&association, option, &value);
    }
}

fn milliseconds(count: u32) -> Duration {
    Duration::from_millis(count.into())
}

fn word(value: &[u8], at: usize) -> u32 {
    let bytes = value.get(at..at + 4).and_then(|it| it.try_into().ok());
    bytes.map_or(0, u32::from_ne_bytes)
}

fn short(value: &[u8], at: usize) -> u16 {
    let bytes = value.get(at..at + 2).and_then(|it| it.try_into().ok());
    bytes.map_or(0, u16::from_ne_bytes)
}

/// Applies an option to an established association.
fn apply(association: &Association, option: i32, value: &[u8]) -> Result<(), i32> {
    let address = address_in(option, value);
    match option {
        RTOINFO => paths(association, None, |it| {
            it.rto_max = milliseconds(word(value, 8));
            it.rto_min = milliseconds(word(value, 12));
        }),
        PEER_ADDR_PARAMS => paths(association, address, |it| {
            let flags = word(value, 146);
            let interval = milliseconds(word(value, 132).max(1));
            // SPP_HB_ENABLE and SPP_HB_DISABLE. With an interval of 0, HEARTBEATs are one RTO
            // apart.
            match flags & 3 {
                1 => it.heartbeat_interval = Some(interval),
                2 => it.heartbeat_interval = None,
                _ => (),
            }
            if let errors @ 1.. = short(value, 136) {
                it.path_max_retrans = u32::from(errors);
            }
        }),
        PEER_ADDR_THLDS => paths(association, address, |it| {
            if let errors @ 1.. = short(value, 136) {
                it.path_max_retrans = u32::from(errors);
            }
            it.pf_max_retrans = u32::from(short(value, 138)).min(it.path_max_retrans);
        }),
        ASSOCINFO | DELAYED_SACK | MAX_BURST | STREAM_SCHEDULER => {
            let settings = association.settings().ok_or(libc::EINVAL)?;
            let settings = settings.with(|it| match option {
                ASSOCINFO => it.association_max_retrans = u32::from(short(value, 4)),
                MAX_BURST => it.max_burst = word(value, 4).max(1),
                STREAM_SCHEDULER => it.scheduler = settings::scheduler(word(value, 4)),
                _ => {
                    it.sack_delay = milliseconds(word(value, 4));
                    it.sack_frequency = word(value, 8).clamp(1, 100);
                    it.delayed_sack = word(value, 8) != 1;
                }
            });
            association.set_settings(settings).map_err(of_runtime)
        }
        _ => Ok(()),
    }
}

/// Changes the settings of one path, or of all paths.
fn paths(
    association: &Association,
    address: Option<IpAddr>,
    change: impl FnOnce(&mut PathSettings),
) -> Result<(), i32> {
    let primary = || association.status().map(|it| it.primary.address);
    let any = address.or_else(primary).ok_or(libc::EINVAL)?;
    let settings = association.path_settings(any).ok_or(libc::EINVAL)?;
    let settings = settings.with(change);
    association
        .set_path_settings(address, settings)
        .map_err(of_runtime)
}

fn of_runtime(_: DynamicSettingError) -> i32 {
    libc::EINVAL
}

/// Performs the action that an option requests.
fn act(
    assoc: &SocketAssociation,
    association: &Association,
    option: i32,
    value: &[u8],
) -> Result<(), i32> {
    let address = || address_in(option, value).ok_or(libc::EINVAL);
    // SCTP_ENABLE_STREAM_RESET selects which requests are permitted.
    let allowed = |bit: u32| match assoc.options().word(ENABLE_STREAM_RESET, 4) & bit {
        0 => Err(libc::EPERM),
        _ => Ok(()),
    };
    is_of_peer(assoc, option, value)?;
    match option {
        PRIMARY_ADDR => match association.set_primary(address()?) {
            true => Ok(()),
            false => Err(libc::EINVAL),
        },
        SET_PEER_PRIMARY_ADDR => association
            .change_addresses(&[AddressChange::PeerPrimary(address()?)])
            .map_err(|_| libc::EPERM),
        STREAM_SCHEDULER_VALUE => association
            .set_stream_value(short(value, 4), short(value, 6))
            .map_err(of_runtime),
        _ if !association.negotiated().reconfiguration => Err(libc::ENOPROTOOPT),
        RESET_STREAMS => {
            allowed(1)?;
            let streams: Vec<u16> = (0..usize::from(short(value, 6)))
                .map(|place| short(value, 8 + 2 * place))
                .collect();
            let done = match short(value, 4) {
                1 => association.reconfigure(&Reconfiguration::request_incoming_reset(streams)),
                2 => association.reconfigure(&Reconfiguration::reset_outgoing(streams)),
                3 => association
                    .reconfigure(&Reconfiguration::reset_outgoing(streams.clone()))
                    .and_then(|()| {
                        association.reconfigure(&Reconfiguration::request_incoming_reset(streams))
                    }),
                _ => return Err(libc::EINVAL),
            };
            done.map_err(of_reconfig)
        }
        RESET_ASSOC => {
            allowed(2)?;
            association
                .reconfigure(&Reconfiguration::ResetAssociation)
                .map_err(of_reconfig)
        }
        _ => {
            allowed(4)?;
            // struct sctp_add_streams: inbound at 4, outbound at 6.
            let done = association.reconfigure(&Reconfiguration::AddStreams {
                outbound: short(value, 6),
                inbound: short(value, 4),
            });
            done.map_err(of_reconfig)
        }
    }
}

fn of_reconfig(error: ReconfigError) -> i32 {
    match error {
        ReconfigError::NotEstablished => libc::ENOTCONN,
        ReconfigError::NotNegotiated => libc::ENOPROTOOPT,
        _ => libc::EINVAL,
    }
}

/// Sets keys and chunk types of AUTH (RFC 6458 §8.3.2 to §8.3.5).
fn authenticate(socket: &Socket, scope: &Scope, option: i32, value: &[u8]) -> Result<(), i32> {
    let fits = match option {
        // struct sctp_authkey must contain a key of at least one byte; the others are struct
        // sctp_authkeyid.
        AUTH_KEY => value.len() > 8,
        AUTH_ACTIVE_KEY | AUTH_DELETE_KEY | AUTH_DEACTIVATE_KEY => value.len() == 8,
        _ => true,
    };
    if !fits {
        return Err(libc::EINVAL);
    }
    let mut state = socket.state();
    if state.options.word(AUTH_SUPPORTED, 4) == 0 {
        return Err(libc::EACCES);
    }
    if option == AUTH_CHUNK {
        let &kind = value.first().ok_or(libc::EINVAL)?;
        // INIT, INIT ACK, SHUTDOWN COMPLETE and AUTH cannot be authenticated (RFC 4895 §3.2).
        if [1, 2, 14, 15].contains(&kind) {
            return Err(libc::EINVAL);
        }
        if !state.authenticated.contains(&kind) {
            state.authenticated.push(kind);
        }
        return Ok(());
    }
    if option == HMAC_IDENT {
        // Only SHA-1 and SHA-256 are supported, in either order.
        let count = word(value, 0) as usize;
        let known = (0..count).all(|place| [1, 3].contains(&short(value, 4 + 2 * place)));
        return match (1..=2).contains(&count) && known {
            true => Ok(()),
            false => Err(libc::EOPNOTSUPP),
        };
    }
    let id = short(value, 4);
    let length = usize::from(short(value, 6));
    let secret = value.get(8..).unwrap_or_default();
    let secret = secret.get(..length).unwrap_or_default().to_vec();
    let change = |keys: &mut SharedKeys| match option {
        AUTH_KEY => keys.set(id, secret.clone()),
        AUTH_ACTIVE_KEY => keys.activate(id),
        AUTH_DELETE_KEY => keys.delete(id),
        _ => keys.deactivate(id),
    };
    let refused = |_: KeyError| libc::EINVAL;
    if scope.future {
        change(&mut state.keys).map_err(refused)?;
    }
    for assoc in &scope.assocs {
        let association = assoc.association().ok_or(libc::EINVAL)?;
        association.change_auth_keys(change).map_err(refused)?;
        if option == AUTH_DEACTIVATE_KEY {
            assoc.deactivated_keys().push(id);
            assoc.sent.notify_one();
        }
    }
    Ok(())
}

//! Socket options of the DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk-04 §8.4).

use std::sync::Arc;

use anabranch_net::Association;
use anabranch_net::sctp::dtls::{InstallError, ReplayWindow, Role};
use anabranch_net::sctp::{KeyAgreement, ProtectionMut};

use super::dtls::structs::{AssocValue, DtlsConfig, DtlsKeys, DtlsKeysId, parameter, statistics};
use super::dtls::{CLIENT, RESTART, SERVER};
use super::socket::{Phase, Socket, SocketAssociation};
use crate::SocketStyle;
use crate::options::*;

/// The negotiated method, role and support of restarts; empty without an agreement.
fn of_agreement(agreement: Option<&KeyAgreement>) -> DtlsConfig {
    let Some(agreement) = agreement else {
        return DtlsConfig::default();
    };
    let role = match agreement.role {
        Role::Client => CLIENT,
        Role::Server => SERVER,
    };
    DtlsConfig {
        flags: role | if agreement.restart { RESTART } else { 0 },
        methods: vec![agreement.method],
    }
}

/// The established association that the value of an option names. A one-to-one socket ignores the
/// number.
fn established(socket: &Socket, option: i32, value: &[u8]) -> Result<Association, i32> {
    let assoc: Option<Arc<SocketAssociation>> = socket.assoc(named_association(option, value));
    let association = assoc.and_then(|it| it.association());
    association.ok_or(libc::EINVAL)
}

/// Whether the option applies to future associations: it does so on a one-to-one socket without an
/// association, and on a one-to-many socket if it names SCTP_FUTURE_ASSOC.
fn is_future(socket: &Socket, option: i32, value: &[u8]) -> bool {
    match socket.socket_type.is_one_to_many() {
        true => named_association(option, value) == 0,
        false => socket.state().assocs.is_empty(),
    }
}

/// `getsockopt`.
///
/// # Errors
/// EINVAL: the buffer is too small, or the option needs an established association; EOPNOTSUPP: the
/// option can only be set.
pub(super) fn get(socket: &Socket, option: i32, given: &[u8]) -> Result<Vec<u8>, i32> {
    let named = given.get(..4).ok_or(libc::EINVAL)?;
    let value = match option {
        DTLS_SET_SEND_KEYS | DTLS_ADD_RECV_KEYS | DTLS_DEL_RECV_KEYS => {
            return Err(libc::EOPNOTSUPP);
        }
        DTLS_LOCAL_CONFIG => {
            let number = named_association(option, given);
            let is_many = socket.socket_type.is_one_to_many();
            if is_many && number != 0 && socket.assoc(number).is_none() {
                return Err(libc::EINVAL);
            }
            socket.state().dtls.local.encode(named)
        }
        DTLS_REPLAY_WINDOW if is_future(socket, option, given) => {
            AssocValue(socket.state().dtls.window).encode(named)
        }
        DTLS_GET_CONFIG => {
            let agreement = established(socket, option, given)?.key_agreement();
            of_agreement(agreement.as_ref()).encode(named)
        }
        DTLS_GET_LOCAL_KM_PARAM | DTLS_GET_PEER_KM_PARAM => {
            let association = established(socket, option, given)?;
            let which = usize::from(option == DTLS_GET_PEER_KM_PARAM);
            let read = |it: ProtectionMut<'_>| {
                let both = it.protection().parameters();
                both.map(|it| it[which].clone()).unwrap_or_default()
            };
            let bytes = association.change_protection(read).ok_or(libc::EINVAL)?;
            parameter(named, &bytes)
        }
        DTLS_ENFORCE_PROTECTION => {
            let association = established(socket, option, given)?;
            AssocValue(association.is_protected().into()).encode(named)
        }
        DTLS_REPLAY_WINDOW => {
            let association = established(socket, option, given)?;
            let read = |it: ProtectionMut<'_>| it.protection().replay_window();
            let window = association.change_protection(read).flatten();
            AssocValue(window.ok_or(libc::EOPNOTSUPP)? as u32).encode(named)
        }
        DTLS_GET_STATS => {
            let association = established(socket, option, given)?;
            statistics(named, &association.dtls_statistics())
        }
        _ => return Err(libc::ENOPROTOOPT),
    };
    match value.len() <= given.len() {
        true => Ok(value),
        false => Err(libc::EINVAL),
    }
}

/// `setsockopt`.
///
/// # Errors
/// EINVAL: a value is invalid, or the state of the association does not allow the option; EPERM:
/// the host manages the keys, or AUTH is enabled; EOPNOTSUPP: the association does not use the DTLS
/// chunk, or the cipher suite is not supported; ENOPROTOOPT: the option can only be read.
pub(super) fn set(socket: &Socket, option: i32, value: &[u8]) -> Result<(), i32> {
    let managed = socket.state().dtls.managed;
    match option {
        DTLS_LOCAL_CONFIG | DTLS_SET_SEND_KEYS | DTLS_ADD_RECV_KEYS | DTLS_DEL_RECV_KEYS
            if managed =>
        {
            Err(libc::EPERM)
        }
        DTLS_LOCAL_CONFIG => configure(socket, value),
        DTLS_SET_SEND_KEYS | DTLS_ADD_RECV_KEYS => install(socket, option, value),
        DTLS_DEL_RECV_KEYS => {
            let DtlsKeysId(id) = DtlsKeysId::decode(value).ok_or(libc::EINVAL)?;
            let association = established(socket, option, value)?;
            let removed = association.change_protection(|mut it| it.remove_keys(id));
            removed.filter(|it| *it).map(drop).ok_or(libc::EINVAL)
        }
        DTLS_ENFORCE_PROTECTION => {
            let AssocValue(on) = AssocValue::decode(value).ok_or(libc::EINVAL)?;
            enforce(&established(socket, option, value)?, on != 0)
        }
        DTLS_REPLAY_WINDOW => {
            let AssocValue(packets) = AssocValue::decode(value).ok_or(libc::EINVAL)?;
            let sizes = ReplayWindow::MIN_SIZE as u32..=ReplayWindow::MAX_SIZE as u32;
            if !sizes.contains(&packets) {
                return Err(libc::EINVAL);
            }
            if is_future(socket, option, value) {
                socket.state().dtls.window = packets;
                return Ok(());
            }
            let association = established(socket, option, value)?;
            let set =
                association.change_protection(|mut it| it.set_replay_window(packets as usize));
            set.filter(|it| *it).map(drop).ok_or(libc::EOPNOTSUPP)
        }
        _ => Err(libc::ENOPROTOOPT),
    }
}

/// SCTP_DTLS_LOCAL_CONFIG: only in the state CLOSED, and for SCTP_FUTURE_ASSOC.
fn configure(socket: &Socket, value: &[u8]) -> Result<(), i32> {
    let local = DtlsConfig::decode(value).ok_or(libc::EINVAL)?;
    let is_many = socket.socket_type.is_one_to_many();
    if is_many && named_association(DTLS_LOCAL_CONFIG, value) != 0 {
        return Err(libc::EINVAL);
    }
    let mut state = socket.state();
    let closed = matches!(state.phase, Phase::Fresh | Phase::Failed) && state.assocs.is_empty();
    if !closed || !local.is_consistent() {
        return Err(libc::EINVAL);
    }
    if !local.methods.is_empty() && state.options.word(AUTH_SUPPORTED, 4) != 0 {
        return Err(libc::EPERM);
    }
    state.dtls.local = local;
    state.dtls.set = true;
    Ok(())
}

/// SCTP_DTLS_SET_SEND_KEYS and SCTP_DTLS_ADD_RECV_KEYS. Keys for a restart can also be set in the
/// state CLOSED; the next association of the socket then restarts an earlier one.
fn install(socket: &Socket, option: i32, value: &[u8]) -> Result<(), i32> {
    let DtlsKeys { id, keys } = DtlsKeys::decode(value)?;
    let sends = option == DTLS_SET_SEND_KEYS;
    {
        let mut state = socket.state();
        let closed = matches!(state.phase, Phase::Fresh | Phase::Failed);
        if socket.socket_type.style == SocketStyle::OneToOne && closed && id.restart {
            state.dtls.restart[usize::from(!sends)] = Some((id.epoch, keys));
            return Ok(());
        }
    }
    let association = established(socket, option, value)?;
    let installed = association.change_protection(|mut it| match sends {
        true => it.install_send_keys(id, &keys),
        false => it.install_receive_keys(id, &keys),
    });
    match installed {
        Some(Ok(())) => Ok(()),
        Some(Err(InstallError::NotUsed)) => Err(libc::EOPNOTSUPP),
        _ => Err(libc::EINVAL),
    }
}

/// SCTP_DTLS_ENFORCE_PROTECTION. Refused without keys to send, because messages would then leave
/// without protection.
fn enforce(association: &Association, on: bool) -> Result<(), i32> {
    match (on, association.is_protected()) {
        (true, true) | (false, false) => Ok(()),
        // Protection cannot be disabled.
        (false, true) => Err(libc::EINVAL),
        (true, false) if association.key_agreement().is_none() => Err(libc::EOPNOTSUPP),
        (true, false) => {
            let required = association.change_protection(|mut it| {
                let seals = it.protection().has_send_keys();
                if seals {
                    it.require();
                }
                seals
            });
            required.filter(|it| *it).map(drop).ok_or(libc::EINVAL)
        }
    }
}

//! Encoding of notifications (RFC 6458 §6.1), with Linux's layouts.

use std::net::{IpAddr, SocketAddr};

use crate::frame::{HostFrameHeader, UNORDERED};
use anabranch_net::{
    Association, CloseReason, Event, PathState, ReconfigOutcome, StreamDirection, UndeliveredCause,
};

/// A notification: its index in struct sctp_event_subscribe, and its bytes.
pub(super) type Notification = (usize, Vec<u8>);

/// SCTP_SN_TYPE_BASE.
const BASE: u16 = 1 << 15;
const ASSOC_CHANGE: usize = 1;
const PEER_ADDR_CHANGE: usize = 2;
const REMOTE_ERROR: usize = 4;
pub(super) const SEND_FAILED: usize = 3;
const SHUTDOWN: usize = 5;
const PARTIAL_DELIVERY: usize = 6;
const ADAPTATION: usize = 7;
const AUTHENTICATION: usize = 8;
pub(super) const SENDER_DRY: usize = 9;
const STREAM_RESET: usize = 10;
const ASSOC_RESET: usize = 11;
const STREAM_CHANGE: usize = 12;
pub(super) const SEND_FAILED_EVENT: usize = 13;

/// Values of `sac_state` in struct sctp_assoc_change.
#[derive(Clone, Copy)]
pub(super) enum AssocChange {
    /// SCTP_COMM_UP.
    Up = 0,
    /// SCTP_COMM_LOST.
    Lost = 1,
    /// SCTP_RESTART.
    Restart = 2,
    /// SCTP_SHUTDOWN_COMP.
    Down = 3,
    /// SCTP_CANT_STR_ASSOC.
    NotMade = 4,
}

fn notification(kind: usize, flags: u16, rest: &[u8]) -> Notification {
    let mut out = Vec::with_capacity(8 + rest.len());
    out.extend((BASE + kind as u16).to_ne_bytes());
    out.extend(flags.to_ne_bytes());
    out.extend((8 + rest.len() as u32).to_ne_bytes());
    out.extend(rest);
    (kind, out)
}

/// Notification of struct sctp_assoc_change, without additional information.
pub(super) fn change(
    change: AssocChange,
    error: u16,
    streams: [u16; 2],
    association: u32,
) -> Notification {
    assoc_change_with(change, error, streams, association, &[])
}

/// Notification that an association is established, or was restarted. `sac_info` is empty, like in
/// Linux, unless the association uses the DTLS chunk: then it lists the supported extensions
/// (draft-ietf-tsvwg-sctp-dtls-chunk-04 §8.1).
pub(super) fn begun(
    change: AssocChange,
    association: &Association,
    streams: [u16; 2],
    number: u32,
) -> Notification {
    if association.key_agreement().is_none() {
        return assoc_change_with(change, 0, streams, number, &[]);
    }
    let negotiated = association.negotiated();
    // SCTP_ASSOC_SUPPORTS_PR, _ASCONF, _RE_CONFIG, _INTERLEAVING and _DTLS.
    let all = [
        (1, negotiated.partial_reliability),
        (3, negotiated.address_changes),
        (5, negotiated.reconfiguration),
        (6, negotiated.interleaving),
        (7, true),
    ];
    let supported: Vec<u8> = all.iter().filter(|it| it.1).map(|it| it.0).collect();
    assoc_change_with(change, 0, streams, number, &supported)
}

/// Notification of struct sctp_assoc_change about an ABORT with a user-defined reason. Like in
/// Linux, it includes the error causes of the chunk.
pub(super) fn aborted(
    error: u16,
    reason: &[u8],
    streams: [u16; 2],
    association: u32,
) -> Notification {
    let length = u16::try_from(4 + reason.len()).unwrap_or(u16::MAX);
    let cause = [&error.to_be_bytes(), &length.to_be_bytes(), reason].concat();
    assoc_change_with(AssocChange::Lost, error, streams, association, &cause)
}

fn assoc_change_with(
    change: AssocChange,
    error: u16,
    streams: [u16; 2],
    association: u32,
    info: &[u8],
) -> Notification {
    let mut rest = Vec::new();
    // The cause is in network byte order, like in Linux.
    for value in [change as u16, error.to_be(), streams[0], streams[1]] {
        rest.extend(value.to_ne_bytes());
    }
    rest.extend(association.to_ne_bytes());
    rest.extend(info);
    notification(ASSOC_CHANGE, 0, &rest)
}

/// Notifications for an event, with peer addresses in the form of `shown`. Empty if RFC 6458
/// defines none for it.
pub(super) fn of_event(
    event: &Event,
    shown: impl Fn(IpAddr) -> SocketAddr,
    association: u32,
) -> Vec<Notification> {
    let path = |address: IpAddr, state: u32| vec![of_path(shown(address), [state, 0], association)];
    let named = association.to_ne_bytes();
    match event {
        Event::PathChanged { address, state, .. } => match state {
            PathState::Active => path(*address, 0),
            PathState::Inactive => path(*address, 1),
            PathState::PotentiallyFailed => path(*address, 6),
            PathState::Unconfirmed => Vec::new(),
        },
        Event::PeerAddressRemoved { address, .. } => path(*address, 2),
        Event::PeerAddressAdded { address, .. } => path(*address, 3),
        Event::PrimaryChanged { address, .. } => path(*address, 4),
        Event::PeerShutdown => vec![notification(SHUTDOWN, 0, &named)],
        Event::PeerError { cause } => {
            let rest = [&cause.to_be_bytes()[..], &[0; 2], &named].concat();
            vec![notification(REMOTE_ERROR, 0, &rest)]
        }
        Event::PartialDeliveryAborted { stream, ssn, .. } => {
            // struct sctp_pdapi_event; the indication SCTP_PARTIAL_DELIVERY_ABORTED is 0.
            let rest = [0, association, u32::from(*stream), u32::from(ssn.0)];
            vec![notification(PARTIAL_DELIVERY, 0, &words(&rest))]
        }
        &Event::AdaptationIndication { indication } => {
            // struct sctp_adaptation_event.
            vec![notification(
                ADAPTATION,
                0,
                &words(&[indication, association]),
            )]
        }
        &Event::PeerAuthKey { key_id } => {
            vec![auth_key_event(key_id, AuthKeyEvent::New, association)]
        }
        Event::MessageAbandoned(it) => {
            let message = message(association, it.stream, it.unordered, it.ppid, it.context);
            send_failed(&message, &it.payload, (it.sent, 0))
        }
        Event::MessageUndelivered(it) => {
            let message = message(association, it.stream, it.unordered, it.ppid, it.context);
            send_failed(&message, &it.payload, (it.sent, cause_of(&it.cause)))
        }
        Event::StreamsReset {
            direction,
            streams,
            outcome,
        } => {
            let way = match direction {
                StreamDirection::Incoming => 1,
                StreamDirection::Outgoing => 2,
            };
            let list: Vec<u8> = streams.iter().flat_map(|it| it.to_ne_bytes()).collect();
            let rest = [&named[..], &list].concat();
            vec![notification(
                STREAM_RESET,
                way | outcome_flags(*outcome),
                &rest,
            )]
        }
        Event::AssociationReset {
            local_tsn,
            remote_tsn,
            outcome,
        } => {
            let rest = [&named[..], &words(&[local_tsn.0, remote_tsn.0])].concat();
            vec![notification(ASSOC_RESET, outcome_flags(*outcome), &rest)]
        }
        Event::StreamsAdded {
            outbound_streams,
            inbound_streams,
            outcome,
        } => {
            let [to, from] = [inbound_streams, outbound_streams].map(|it| it.to_ne_bytes());
            let rest = [&named[..], &to, &from].concat();
            vec![notification(STREAM_CHANGE, outcome_flags(*outcome), &rest)]
        }
        // RFC 6458 defines no notification for these events, or other code sends it.
        Event::Established { .. }
        | Event::Restarted { .. }
        | Event::Closed(_)
        | Event::Receipt { .. }
        | Event::AddressChanged { .. }
        | Event::SendFailed { .. }
        | Event::StreamLimitMet { .. }
        | Event::KeysRequired(_)
        | Event::RestartKeys
        | Event::PeerAuthenticated(_)
        | Event::Missed { .. } => Vec::new(),
    }
}

/// Flags of struct sctp_stream_reset_event and similar structs for an outcome.
fn outcome_flags(outcome: ReconfigOutcome) -> u16 {
    match outcome {
        ReconfigOutcome::Performed => 0,
        ReconfigOutcome::Denied => 4,
        _ => 8,
    }
}

/// Fields about the message in struct sctp_send_failed and struct sctp_send_failed_event.
fn message(
    association: u32,
    stream: Option<u16>,
    unordered: bool,
    ppid: u32,
    context: u32,
) -> HostFrameHeader {
    HostFrameHeader {
        stream: stream.unwrap_or(0),
        flags: u8::from(unordered),
        ppid: ppid.to_be(),
        context,
        association,
        ..HostFrameHeader::default()
    }
}

/// Indications of struct sctp_authkey_event.
#[derive(Clone, Copy)]
pub(super) enum AuthKeyEvent {
    /// SCTP_AUTH_NEW_KEY: the peer now signs with the key.
    New = 0,
    /// SCTP_AUTH_FREE_KEY: no more data is signed with the key.
    Free = 1,
    /// SCTP_AUTH_NO_AUTH: the peer does not support AUTH.
    NoAuth = 2,
}

/// Notification SCTP_AUTHENTICATION_EVENT: struct sctp_authkey_event.
pub(super) fn auth_key_event(key: u16, news: AuthKeyEvent, association: u32) -> Notification {
    let named = association.to_ne_bytes();
    let rest = [
        &key.to_ne_bytes()[..],
        &[0; 2],
        &(news as u32).to_ne_bytes(),
        &named,
    ];
    notification(AUTHENTICATION, 0, &rest.concat())
}

/// Notification SCTP_ADDR_CONFIRMED with Linux's SCTP_HEARTBEAT_SUCCESS: an unconfirmed path has
/// answered a HEARTBEAT.
pub(super) fn addr_confirmed(address: SocketAddr, association: u32) -> Notification {
    of_path(address, [5, 2], association)
}

/// Notification of struct sctp_paddr_change, with the state and Linux's number of the cause.
fn of_path(address: SocketAddr, [state, error]: [u32; 2], association: u32) -> Notification {
    let rest = [&storage(address)[..], &words(&[state, error, association])];
    notification(PEER_ADDR_CHANGE, 0, &rest.concat())
}

/// Notification SCTP_SENDER_DRY_EVENT: struct sctp_sender_dry_event.
pub(super) fn sender_dry(association: u32) -> Notification {
    notification(SENDER_DRY, 0, &association.to_ne_bytes())
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|it| it.to_ne_bytes()).collect()
}

/// Invalid Stream Identifier (RFC 9260 §3.3.10.1).
const NO_SUCH_STREAM: u16 = 1;
/// User-Initiated Abort (RFC 9260 §3.3.10.12).
const USER_ABORT: u16 = 12;

/// Cause code of the ABORT that ended an association; 0 if there was none.
pub(super) fn cause_of_end(reason: &CloseReason) -> u16 {
    match reason {
        CloseReason::AbortedByPeer { cause } => cause.unwrap_or(0),
        CloseReason::AbortedHere => USER_ABORT,
        _ => 0,
    }
}

fn cause_of(cause: &UndeliveredCause) -> u16 {
    match cause {
        UndeliveredCause::Closed(reason) => cause_of_end(reason),
        UndeliveredCause::NoSuchStream => NO_SUCH_STREAM,
        _ => 0,
    }
}

/// Notifications about a message of which no chunk was sent, with the error cause.
pub(super) fn not_sent(message: &HostFrameHeader, bytes: &[u8], cause: u16) -> Vec<Notification> {
    send_failed(message, bytes, (false, cause))
}

fn send_failed(
    message: &HostFrameHeader,
    bytes: &[u8],
    (sent, cause): (bool, u16),
) -> Vec<Notification> {
    let stream = message.stream.to_ne_bytes();
    let flags = u16::from(message.flags & UNORDERED != 0).to_ne_bytes();
    let [ppid, context, named] = [message.ppid, message.context, message.association];
    let [ppid, context, named] = [ppid, context, named].map(u32::to_ne_bytes);
    // The cause is in network byte order, as in Linux at the end of an association.
    let error = u32::from(cause.to_be()).to_ne_bytes();
    let old = [
        &error[..],
        &stream,
        &[0; 2],
        &flags,
        &[0; 2],
        &ppid,
        &context,
        &[0; 12],
        &named,
        &named,
        bytes,
    ];
    let new = [
        &error[..],
        &stream,
        &flags,
        &ppid,
        &context,
        &named,
        &named,
        bytes,
    ];
    // Values of the flags: SCTP_DATA_UNSENT is 0, and SCTP_DATA_SENT is 1.
    let flags = u16::from(sent);
    vec![
        notification(SEND_FAILED, flags, &old.concat()),
        notification(SEND_FAILED_EVENT, flags, &new.concat()),
    ]
}

/// Decodes an address in a struct sockaddr_storage, with a mapped address as IPv4; `None` if there
/// is none.
pub(super) fn of_storage(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    let ip: IpAddr = match i32::from(family) {
        libc::AF_INET => <[u8; 4]>::try_from(bytes.get(4..8)?).ok()?.into(),
        libc::AF_INET6 => <[u8; 16]>::try_from(bytes.get(8..24)?).ok()?.into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip.to_canonical(), port))
}

/// Encodes an address as struct sockaddr_storage.
pub(super) fn storage(address: SocketAddr) -> [u8; 128] {
    let mut out = [0; 128];
    out[2..4].copy_from_slice(&address.port().to_be_bytes());
    match address {
        SocketAddr::V4(it) => {
            out[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
            out[4..8].copy_from_slice(&it.ip().octets());
        }
        SocketAddr::V6(it) => {
            out[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
            out[8..24].copy_from_slice(&it.ip().octets());
            out[24..28].copy_from_slice(&it.scope_id().to_ne_bytes());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_have_the_layouts_of_linux() {
        let (kind, bytes) = change(AssocChange::Up, 0, [5, 6], 9);
        assert_eq!((kind, bytes.len()), (1, 20));
        assert_eq!(bytes[..2], 0x8001_u16.to_ne_bytes());
        assert_eq!(bytes[4..8], 20_u32.to_ne_bytes());
        assert_eq!(bytes[12..14], 5_u16.to_ne_bytes());
        assert_eq!(bytes[16..], 9_u32.to_ne_bytes());
        let event = Event::PathChanged {
            path: anabranch_net::sctp::PathId(0),
            address: "192.0.2.1".parse().unwrap(),
            state: PathState::Inactive,
        };
        let shown = |ip| SocketAddr::new(ip, 7);
        let (kind, bytes) = of_event(&event, shown, 9).remove(0);
        assert_eq!((kind, bytes.len()), (2, 148));
        assert_eq!(bytes[8..16], [2, 0, 0, 7, 192, 0, 2, 1]);
        assert_eq!(bytes[136..140], 1_u32.to_ne_bytes());
        assert_eq!(
            of_storage(&bytes[8..]),
            Some("192.0.2.1:7".parse().unwrap())
        );
        let event = Event::PeerError { cause: 3 };
        let (kind, bytes) = of_event(&event, shown, 9).remove(0);
        assert_eq!((kind, &bytes[8..12]), (4, &[0, 3, 0, 0][..]));
        let failed = message(9, Some(3), true, 4, 6);
        let both = send_failed(&failed, b"lost", (true, 0));
        // Before the message, struct sctp_send_failed has 48 bytes, and struct
        // sctp_send_failed_event 32.
        let sizes: Vec<_> = both
            .iter()
            .map(|(kind, bytes)| (*kind, bytes.len()))
            .collect();
        assert_eq!(sizes, [(3, 48 + 4), (13, 32 + 4)]);
        assert_eq!(both[1].1[12..14], 3_u16.to_ne_bytes());
    }
}

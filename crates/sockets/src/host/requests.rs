//! Handling of control requests.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use anabranch_net::sctp::AssociationState;
use socket2::Socket as Unix;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::acceptor::Caller;
use super::bind::{bind, interfaces, source, unbind};
use super::data::fail;
use super::deliver::attach;
use super::endpoint::{apply_options, endpoint, follow_options, peer};
use super::listener::{ListenerSet, listen};
use super::socket::SocketAssociation;
use super::socket::{PORT_TIMEOUT, Phase, RETRY_INTERVAL, Socket, of_connect};
use super::{
    HostState, getsockopt, local_peers, one_to_many, port_selection::from_any_port, scm_rights,
    seccomp, setsockopt, settings,
};
use crate::SocketStyle;
use crate::control::{Call, HostReply, HostRequest, MAX_CONTROL_MESSAGE, decode, encode};
use crate::options::{
    DISABLE_FRAGMENTS, DTLS_ENFORCE_PROTECTION, DTLS_SET_SEND_KEYS, INITMSG, IPPROTO_SCTP,
    RESET_ASSOC, RESET_STREAMS,
};

/// Answers the only request of a connection.
pub(super) async fn answer(host: Arc<HostState>, mut caller: Caller, unix: AsyncFd<Unix>) {
    let mut buffer = vec![0; MAX_CONTROL_MESSAGE];
    let read = unix.async_io(Interest::READABLE, |unix: &Unix| {
        scm_rights::receive(unix, &mut buffer)
    });
    let Ok((length, passed)) = caller.receive_first(read).await else {
        return;
    };
    if length == 0 {
        return;
    }
    let Some(call) = decode::<Call>(&buffer[..length]) else {
        tracing::warn!("a request that cannot be read");
        return;
    };
    if !caller.authenticate(&host, call.secret.as_bytes()) {
        return;
    }
    if let HostRequest::Watch(error) = call.request {
        return seccomp::watch(&host, passed, error).await;
    }
    if call.request == HostRequest::Generations {
        let memory = host.generations.descriptor();
        return give(&unix, &HostReply::Done, Some(memory)).await;
    }
    // A request that only waits for buffer space is cancelled when the program no longer waits for
    // its answer, because interrupted programs may repeat it many times. All other requests are
    // continued.
    let is_let_go = matches!(
        call.request,
        HostRequest::Room { .. } | HostRequest::Route { room: true, .. }
    );
    let carried_out = async {
        if let HostRequest::Alive = call.request {
            return HostReply::Done;
        }
        match host.socket(&call.socket).await {
            Ok(socket) => carry_out(&host, &socket, call.request, passed)
                .await
                .unwrap_or_else(HostReply::Failed),
            Err(error) => HostReply::Failed(error),
        }
    };
    let answer = tokio::select! {
        answer = carried_out => answer,
        () = hung_up(&unix), if is_let_go => return,
    };
    give(&unix, &answer, None).await;
}

/// Sends an answer, and a descriptor if there is one.
async fn give(unix: &AsyncFd<Unix>, answer: &HostReply, descriptor: Option<BorrowedFd<'_>>) {
    let answer = encode(answer);
    let write = |mut unix: &Unix| match descriptor {
        Some(descriptor) => scm_rights::send(unix, &answer, descriptor),
        None => unix.write(&answer),
    };
    // Fails if the program has ended.
    let _ = unix.async_io(Interest::WRITABLE, write).await;
}

/// Waits until the program has closed its end.
async fn hung_up(unix: &AsyncFd<Unix>) {
    let mut nothing = [0; 1];
    // The program sends no more data, so that readable means closed.
    let read = |mut unix: &Unix| unix.read(&mut nothing);
    let _ = unix.async_io(Interest::READABLE, read).await;
}

async fn carry_out(
    host: &Arc<HostState>,
    socket: &Arc<Socket>,
    request: HostRequest,
    passed: Option<OwnedFd>,
) -> Result<HostReply, i32> {
    if socket.state().phase == Phase::Connecting {
        // Waits until a delivery in progress is complete. If this delivery reported to the program
        // that the connection failed ([`fail`]), the program's request must find that state.
        drop(socket.turn.lock().await);
    }
    match request {
        HostRequest::Bind(addresses) => bind(host, socket, addresses, false).await,
        HostRequest::BindMore(addresses) => bind(host, socket, addresses, true).await,
        HostRequest::Unbind(addresses) => unbind(host, socket, &addresses),
        HostRequest::Listen(backlog) => start_listening(host, socket, backlog).await,
        HostRequest::Connect { addresses, wait } => connect(host, socket, addresses, wait).await,
        HostRequest::Route {
            association,
            addresses,
            begin,
            wait,
            room,
            key,
        } => {
            if let Some(key) = key {
                may_sign(socket, association, &addresses, key)?;
            }
            let begin = begin.then_some(Begin { wait });
            let room = room.then_some(Room { wait });
            route(host, socket, association, addresses, (begin, room)).await
        }
        HostRequest::Room { wait } => {
            one_to_many::room_for_all(socket, wait).await?;
            Ok(HostReply::Done)
        }
        HostRequest::PeelOff { association, read } => {
            let descriptor = passed.map(|it| (it, read));
            one_to_many::peel_off(host, socket, association, descriptor).await?;
            Ok(HostReply::Association(association))
        }
        HostRequest::Set {
            level: IPPROTO_SCTP,
            option,
            value,
        } => {
            // Messages that the program sent before the option precede its effect.
            let later = [RESET_STREAMS, RESET_ASSOC, DTLS_SET_SEND_KEYS];
            if later.contains(&option) || option == DTLS_ENFORCE_PROTECTION {
                settled(socket).await?;
            }
            let set = set_option(host, socket, option, &value.0);
            // Invalidates the cache even after an error, because only one of several associations
            // may have rejected the option.
            socket.advance();
            set.map(|()| HostReply::Done)
        }
        HostRequest::Set {
            level,
            option,
            value,
        } => {
            socket.state().options.set(level, option, &value.0)?;
            Ok(HostReply::Done)
        }
        HostRequest::Get {
            level,
            option,
            value,
        } => getsockopt::get(host, socket, level, option, &value).map(HostReply::Value),
        HostRequest::Local(number) => {
            let all = local(socket, number)?;
            let shown = all.into_iter().map(|it| socket.shown(it));
            Ok(HostReply::Addresses(shown.collect()))
        }
        HostRequest::LocalAll(number) => {
            let all = match (number, interfaces(host, socket)) {
                (0, Some(all)) => all,
                _ => local(socket, number)?,
            };
            let shown = all.into_iter().map(|it| socket.shown(it));
            Ok(HostReply::Addresses(shown.collect()))
        }
        HostRequest::Peer(number) => match socket.assoc(number) {
            Some(assoc) if !assoc.peers().is_empty() => {
                let shown = assoc.peers().into_iter().map(|it| assoc.shown(it));
                Ok(HostReply::Addresses(shown.collect()))
            }
            _ => Err(libc::EINVAL),
        },
        HostRequest::Await { wait } => socket.await_message(wait).await.map(HostReply::Awaited),
        HostRequest::ShutDown { reading, writing } => {
            let mut state = socket.state();
            state.shut.reading |= reading;
            state.shut.writing |= writing;
            Ok(HostReply::Done)
        }
        HostRequest::Ended(number) => {
            local_peers::settle_end(socket, number).await;
            Ok(HostReply::Done)
        }
        HostRequest::End => socket.end_of_messages().map(|()| HostReply::Done),
        // These requests concern no socket, so `answer` has handled them.
        HostRequest::Watch(_) | HostRequest::Alive | HostRequest::Generations => Err(libc::EINVAL),
        HostRequest::PeerName => {
            let name = match socket.socket_type.is_one_to_many() {
                true => None,
                // The address remains available after the association has ended.
                false => socket
                    .assoc(0)
                    .and_then(|it| it.peer())
                    .or(socket.state().peer),
            };
            let name = socket.shown(name.ok_or(libc::ENOTCONN)?);
            Ok(HostReply::Addresses(vec![name]))
        }
    }
}

/// Sets an option at SCTP's level. If the endpoint refuses the resulting settings, the settings for
/// future associations are those before, because otherwise all later options would be refused too.
fn set_option(host: &HostState, socket: &Socket, option: i32, value: &[u8]) -> Result<(), i32> {
    let _alone = socket.setting();
    let before = socket.state().association_settings();
    setsockopt::set(socket, option, value)?;
    let followed = follow_options(host, socket);
    if followed.is_err() {
        socket.state().restore(before);
    }
    followed
}

/// Retries while the endpoint of a previous socket may still use the port.
async fn in_time<T>(attempt: impl Fn() -> Result<T, i32>) -> Result<T, i32> {
    let mut waited = Duration::ZERO;
    loop {
        match attempt() {
            Err(libc::EADDRINUSE) if waited < PORT_TIMEOUT => {
                tokio::time::sleep(RETRY_INTERVAL).await;
                waited += RETRY_INTERVAL;
            }
            other => return other,
        }
    }
}

async fn start_listening(
    host: &Arc<HostState>,
    socket: &Arc<Socket>,
    backlog: i32,
) -> Result<HostReply, i32> {
    let backlog = usize::try_from(backlog).unwrap_or_default();
    if socket.socket_type.is_one_to_many() {
        return in_time(|| one_to_many::listen(host, socket, backlog))
            .await
            .map(|()| HostReply::Done);
    }
    let phase = socket.state().phase;
    match phase {
        // A backlog of 0 has no effect here and is no error, like in Linux.
        Phase::Fresh | Phase::Listening if backlog == 0 => return Ok(HostReply::Done),
        Phase::Fresh if socket.socket_type.style == SocketStyle::OneToOne => (),
        Phase::Listening => {
            socket.state().backlog = backlog;
            let table = host.table();
            let has = |it: &&ListenerSet| it.sockets.iter().any(|it| it.name == socket.name);
            table
                .listener_sets
                .iter()
                .filter(has)
                .for_each(ListenerSet::set_backlog);
            return Ok(HostReply::Done);
        }
        _ => return Err(libc::EINVAL),
    }
    socket.state().backlog = backlog;
    if listens_with_others(host, socket)? {
        return Ok(HostReply::Done);
    }
    let endpoint = in_time(|| endpoint(host, socket, Some(backlog + 1))).await?;
    socket.enter(Phase::Listening);
    endpoint.listen(true);
    let place = host
        .table()
        .add_listener_set(endpoint.clone(), Arc::clone(socket));
    tokio::spawn(listen(Arc::clone(host), endpoint, place));
    Ok(HostReply::Done)
}

/// Lets the socket listen at the listening address of others, if possible: sockets that share the
/// port, a socket of the other address family, or a previous socket whose associations remain.
fn listens_with_others(host: &Arc<HostState>, socket: &Arc<Socket>) -> Result<bool, i32> {
    let (port, addresses) = {
        let state = socket.state();
        let addresses = settings::addresses(&host.config, &state);
        (state.port.unwrap_or_default(), addresses)
    };
    let mut table = host.table();
    let Some(place) = table.listener_set_for(port, &addresses) else {
        return Ok(false);
    };
    match place.sockets.first() {
        None => apply_options(host, &place.endpoint, socket)?,
        // The options of the first socket are in effect, so a socket that requires protection would
        // accept associations without it.
        Some(first) if first.state().dtls.offer() != socket.state().dtls.offer() => {
            return Err(libc::EADDRINUSE);
        }
        Some(_) => (),
    }
    place.endpoint.listen(true);
    if place.sockets.is_empty() {
        let listening = listen(Arc::clone(host), place.endpoint.clone(), place.number);
        tokio::spawn(listening);
    }
    place.sockets.push(Arc::clone(socket));
    place.set_backlog();
    drop(table);
    socket.enter(Phase::Listening);
    Ok(true)
}

async fn connect(
    host: &Arc<HostState>,
    socket: &Arc<Socket>,
    addresses: Vec<SocketAddr>,
    wait: bool,
) -> Result<HostReply, i32> {
    if socket.socket_type.is_one_to_many() {
        let first = *addresses.first().ok_or(libc::EINVAL)?;
        match socket.assoc_with(first) {
            Some(assoc) if assoc.association().is_some() => return Err(libc::EISCONN),
            Some(_) => return Err(libc::EALREADY),
            None => (),
        }
        in_time(|| one_to_many::endpoint(host, socket)).await?;
        let assoc = one_to_many::begin(host, socket, addresses)?;
        if !wait {
            local_peers::settle(first.ip(), assoc.up()).await;
        } else if assoc.up().await.is_none() {
            return Err(assoc.error());
        }
        return Ok(HostReply::Association(assoc.number));
    }
    let phase = socket.state().phase;
    match phase {
        Phase::Fresh | Phase::Failed if socket.socket_type.style == SocketStyle::OneToOne => (),
        Phase::Connecting => return Err(libc::EALREADY),
        _ => return Err(libc::EISCONN),
    }
    let peer = peer(host, socket, &addresses)?;
    socket.state().dtls.check_restart_keys()?;
    let first = addresses.first().map(SocketAddr::ip);
    let endpoint = in_time(|| endpoint(host, socket, None)).await?;
    let options = socket.state().options.clone();
    let v6 = socket.socket_type.v6;
    let assoc = Arc::new(SocketAssociation::new(
        host.number(),
        v6,
        addresses,
        options,
    ));
    let number = assoc.number;
    // Taken only now, because the keys must remain if `connect` fails before the association
    // begins.
    let restart = socket.state().dtls.take_restart_keys()?;
    socket.take_error();
    socket.enter(Phase::Connecting);
    let attempt = {
        let (host, socket) = (Arc::clone(host), Arc::clone(socket));
        tokio::spawn(async move {
            match from_any_port(&host, &socket, endpoint, peer, restart).await {
                Ok(association) => {
                    attach(&host, &socket, &assoc, association);
                    Ok(())
                }
                Err(error) => {
                    host.record_failure(assoc.peer(), &error);
                    let error = of_connect(&error);
                    match wait {
                        // The error is both returned to the caller and set at the socket, like in
                        // Linux.
                        true => {
                            socket.state().error = error;
                            socket.enter(Phase::Failed);
                        }
                        false => fail(&socket, error).await,
                    }
                    Err(error)
                }
            }
        })
    };
    if wait {
        attempt.await.unwrap_or(Err(libc::EINVAL))?;
    } else if let Some(first) = first {
        local_peers::settle(first, attempt).await;
    }
    Ok(HostReply::Association(number))
}

/// Waits until the program's data has reached its associations, because a stream reset must not
/// overtake it (RFC 6525 §5.1.2 A1). Fails with EAGAIN after a timeout.
async fn settled(socket: &Socket) -> Result<(), i32> {
    let assocs: Vec<_> = socket.state().assocs.values().cloned().collect();
    let all = async {
        socket.all_taken().await;
        for assoc in &assocs {
            assoc.send_queue.all_done().await;
        }
    };
    let done = tokio::time::timeout(PORT_TIMEOUT, all).await;
    done.map_err(|_| libc::EAGAIN)
}

/// Whether messages can be signed with this key (SCTP_AUTHINFO): it is the active key, or was not
/// deactivated.
fn may_sign(
    socket: &Socket,
    association: u32,
    addresses: &[SocketAddr],
    key: u16,
) -> Result<(), i32> {
    let assoc = match addresses.first() {
        Some(first) if socket.socket_type.is_one_to_many() => socket.assoc_with(*first),
        _ => socket.assoc(association),
    };
    let state = socket.state();
    let can = match assoc.and_then(|it| it.association()) {
        // Without AUTH no message is signed, and any key is accepted, like in Linux.
        Some(association) => {
            !association.negotiated().authentication || association.has_auth_key(key)
        }
        None => state.keys.can_sign(key),
    };
    match can || key == state.keys.active() {
        true => Ok(()),
        false => Err(libc::EINVAL),
    }
}

/// Whether an association should be started for a message.
struct Begin {
    /// Whether to wait until the association is established.
    wait: bool,
}

/// Request for buffer space for a message.
struct Room {
    /// Whether to wait for the space.
    wait: bool,
}

/// Determines the route of a message before it is sent.
async fn route(
    host: &Arc<HostState>,
    socket: &Arc<Socket>,
    association: u32,
    addresses: Vec<SocketAddr>,
    (begin, room): (Option<Begin>, Option<Room>),
) -> Result<HostReply, i32> {
    let one_to_many = socket.socket_type.is_one_to_many();
    let generation = socket.generation();
    let addresses = match socket.socket_type.style {
        // Like in Linux, a peeled-off socket ignores the address of a message, because it has only
        // one association.
        SocketStyle::PeeledOff => Vec::new(),
        _ => addresses,
    };
    let assoc = match (one_to_many, addresses.first().copied()) {
        (true, Some(first)) => match socket.assoc_with(first) {
            Some(assoc) => assoc,
            None => {
                let begin = begin.ok_or(libc::EINVAL)?;
                in_time(|| one_to_many::endpoint(host, socket)).await?;
                let assoc = one_to_many::begin(host, socket, addresses)?;
                if begin.wait {
                    // If the setup fails, a notification reports it, like in Linux.
                    assoc.up().await;
                }
                assoc
            }
        },
        (true, None) => socket.assoc(association).ok_or(libc::EPIPE)?,
        (false, first) => {
            let phase = socket.state().phase;
            if let (Phase::Fresh, Some(_), Some(begin)) = (phase, first, begin) {
                connect(host, socket, addresses, begin.wait).await?;
            }
            match socket.assoc(0) {
                // A peeled-off socket ignores the number, like in Linux.
                Some(assoc)
                    if socket.socket_type.style == SocketStyle::OneToOne
                        && first.is_some_and(|it| !assoc.is_with(it)) =>
                {
                    return Err(libc::EADDRNOTAVAIL);
                }
                Some(assoc) => assoc,
                // Messages are queued while the socket connects.
                None if socket.state().phase == Phase::Connecting => {
                    let streams = socket.state().options.short(INITMSG, 0);
                    let most = host.config.max_message_size;
                    let settled = None;
                    let association = 0;
                    return Ok(HostReply::Route {
                        association,
                        streams,
                        most,
                        settled,
                    });
                }
                None => return Err(socket.take_error().unwrap_or(libc::EPIPE)),
            }
        }
    };
    if let Some(Room { wait }) = room.filter(|_| one_to_many) {
        one_to_many::room(&assoc, wait).await?;
    }
    let status = assoc.status();
    // The association was shut down by either end.
    let state = status.as_ref().map(|it| it.state);
    if let (Some(AssociationState::Closed), Some(association)) = (state, assoc.association()) {
        // Records the end here, because the task that records it may not have run yet.
        assoc.record_end(&association.closed().await);
        return Err(socket.take_error().unwrap_or(libc::EPIPE));
    }
    if state.is_some_and(closes) {
        return Err(libc::EPIPE);
    }
    let offered = || assoc.options().short(INITMSG, 0);
    let streams = status.as_ref().map_or_else(offered, |it| it.outstrms);
    // With SCTP_DISABLE_FRAGMENTS a message that needs fragmentation is refused.
    let whole = assoc.options().word(DISABLE_FRAGMENTS, 0) != 0;
    let most = match &status {
        Some(status) if whole => status.fragmentation_point,
        _ => host.config.max_message_size,
    };
    Ok(HostReply::Route {
        association: assoc.number,
        streams,
        most,
        settled: status.map(|_| generation),
    })
}

fn closes(state: AssociationState) -> bool {
    use AssociationState::{CookieEchoed, CookieWait, Established};
    !matches!(state, CookieWait | CookieEchoed | Established)
}

/// Local addresses of a socket, or of one of its associations. If the socket is bound to all
/// addresses, these are the source addresses of its packets, for the newest association if there
/// are several.
fn local(socket: &Socket, number: u32) -> Result<Vec<SocketAddr>, i32> {
    let named = socket.assoc(number);
    if socket.socket_type.is_one_to_many() && number != 0 && named.is_none() {
        return Err(libc::EINVAL);
    }
    let (assoc, port, bound, peer) = {
        let state = socket.state();
        let newest = state.assocs.values().next_back().cloned();
        let bound = match state.addresses().is_empty() {
            true => Vec::new(),
            false => state.bound.clone(),
        };
        let port = state.port.unwrap_or_default();
        (named.or(newest), port, bound, state.peer)
    };
    let mut all = bound;
    let used = assoc.filter(|_| all.is_empty()).and_then(|it| it.status());
    for path in used.iter().flat_map(|it| &it.paths) {
        let ip = Some(path.local).filter(|it| !it.is_unspecified());
        let address = ip.or_else(|| source(path.address));
        let address = address.map(|ip| SocketAddr::new(ip, port));
        all.extend(address.filter(|it| !all.contains(it)));
    }
    if all.is_empty() {
        // The address remains available after the association has ended.
        let ip = peer.and_then(|it| source(it.ip()));
        all.push(SocketAddr::new(ip.unwrap_or(socket.unspecified()), port));
    }
    Ok(all)
}

#[cfg(test)]
mod tests;

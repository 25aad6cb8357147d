//! Requests about a socket.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anabranch_net::{BindError, Carrier, Endpoint, PathState, PathStatus, Peer};
use socket2::Socket as Unix;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::notification::storage;
use super::settings;
use super::socket::{Phase, Socket, of_connect};
use super::traffic::{ONLY, attach, fail, listen};
use super::{Known, Table};
use crate::control::{Answer, Call, LONGEST, Request, decode, encode};
use crate::options::{IPPROTO_SCTP, SO_ERROR, SOL_SOCKET, STATUS};

/// Answers the one request of a connection.
pub async fn answer(host: Arc<Known>, unix: AsyncFd<Unix>) {
    let mut buffer = vec![0; LONGEST];
    let read = unix.async_io(Interest::READABLE, |mut unix: &Unix| {
        io::Read::read(&mut unix, &mut buffer)
    });
    let Ok(length) = read.await else { return };
    let Some(call) = decode::<Call>(&buffer[..length]) else {
        tracing::warn!("a request that cannot be read");
        return;
    };
    // A request goes on where the program does not wait for its answer any more.
    let answer = match host.socket(&call.socket).await {
        Some(socket) => carry_out(&host, &socket, call.request)
            .await
            .unwrap_or_else(Answer::Failed),
        None => Answer::Failed(libc::ENOTCONN),
    };
    let answer = encode(&answer);
    let _ = unix
        .async_io(Interest::WRITABLE, |mut unix: &Unix| unix.write(&answer))
        .await;
}

async fn carry_out(
    host: &Arc<Known>,
    socket: &Arc<Socket>,
    request: Request,
) -> Result<Answer, i32> {
    match request {
        Request::Bind(addresses) => bind(host, socket, addresses),
        Request::Listen(backlog) => start_listening(host, socket, backlog),
        Request::Connect { addresses, wait } => connect(host, socket, addresses, wait).await,
        Request::Shutdown => match socket.association() {
            Some(association) => {
                association.begin_shutdown();
                Ok(Answer::Done)
            }
            None => Err(libc::ENOTCONN),
        },
        Request::Set {
            level,
            option,
            value,
        } => {
            socket.state().options.set(level, option, &value)?;
            Ok(Answer::Done)
        }
        Request::Get {
            level,
            option,
            value,
        } => get(socket, level, option, value.len()).map(Answer::Value),
        Request::Local => Ok(Answer::Addresses(local(socket))),
        Request::Peer => match peers(socket) {
            all if all.is_empty() => Err(libc::ENOTCONN),
            all => Ok(Answer::Addresses(all)),
        },
    }
}

/// Locks are taken in one order: the host's table, then a socket's state.
fn bind(host: &Known, socket: &Socket, addresses: Vec<SocketAddr>) -> Result<Answer, i32> {
    let first = *addresses.first().ok_or(libc::EINVAL)?;
    let (only, had) = {
        let state = socket.state();
        match (&state.phase, state.port) {
            // sctp_bindx adds addresses at the port that there is.
            (Phase::Fresh, Some(port)) if ![0, port].contains(&first.port()) => {
                return Err(libc::EINVAL);
            }
            (Phase::Fresh, port) => (socket.only_family(&state), port),
            _ => return Err(libc::EINVAL),
        }
    };
    let taken = || {
        host.take_port(first.port(), |table| {
            beside(table, socket, only, first.port())
        })
    };
    let port = had.or_else(taken).ok_or(libc::EADDRINUSE)?;
    let mut state = socket.state();
    state.port = Some(port);
    for mut address in addresses {
        address.set_port(port);
        if !state.bound.contains(&address) {
            state.bound.push(address);
        }
    }
    Ok(Answer::Done)
}

/// Whether all sockets that have the port are of the other family, and of it alone.
fn beside(table: &Table, socket: &Socket, only: Option<bool>, port: u16) -> bool {
    let others = table
        .sockets
        .values()
        .filter(|it| !std::ptr::eq(&raw const ***it, socket));
    let mut there = others.filter_map(|other| {
        let state = other.state();
        (state.port == Some(port)).then(|| other.only_family(&state))
    });
    only.is_some_and(|v6| there.all(|other| other == Some(!v6)))
}

/// An endpoint of the socket's own.
fn endpoint(host: &Known, socket: &Socket, backlog: Option<usize>) -> Result<Endpoint, i32> {
    let had = socket.state().port;
    let port = had
        .or_else(|| host.take_port(0, |_| false))
        .ok_or(libc::EADDRINUSE)?;
    let mut state = socket.state();
    state.port = Some(port);
    let accept = backlog.is_some();
    let config = settings::endpoint(
        &host.config,
        &state.options,
        port,
        accept,
        backlog.unwrap_or(1),
    );
    Endpoint::bind_on(&host.sockets, config).map_err(|error| match error {
        BindError::PortTaken(_) => libc::EADDRINUSE,
        _ => libc::EINVAL,
    })
}

fn start_listening(host: &Arc<Known>, socket: &Arc<Socket>, backlog: i32) -> Result<Answer, i32> {
    match socket.state().phase {
        Phase::Fresh => (),
        Phase::Listening => return Ok(Answer::Done),
        _ => return Err(libc::EINVAL),
    }
    let backlog = usize::try_from(backlog).unwrap_or_default();
    let port = socket.state().port.unwrap_or_default();
    if let Some(others) = host.table().listening.get_mut(&port) {
        // The endpoint of the other family's socket serves this one, too.
        others.push(Arc::clone(socket));
        socket.enter(Phase::Listening);
        return Ok(Answer::Done);
    }
    let endpoint = endpoint(host, socket, Some(backlog))?;
    socket.enter(Phase::Listening);
    let port = endpoint.port();
    host.table()
        .listening
        .insert(port, vec![Arc::clone(socket)]);
    tokio::spawn(listen(Arc::clone(host), endpoint));
    Ok(Answer::Done)
}

async fn connect(
    host: &Arc<Known>,
    socket: &Arc<Socket>,
    addresses: Vec<SocketAddr>,
    wait: bool,
) -> Result<Answer, i32> {
    match socket.state().phase {
        Phase::Fresh | Phase::Failed => (),
        Phase::Connecting => return Err(libc::EALREADY),
        Phase::Connected(_) | Phase::Listening => return Err(libc::EISCONN),
    }
    let first = addresses.first().ok_or(libc::EINVAL)?;
    let ips: Vec<IpAddr> = addresses.iter().map(SocketAddr::ip).collect();
    let mut peer = Peer::new(ips, first.port());
    let of_carrier = match host.config.carrier {
        // Peers have the port that this host has, as RFC 6951 expects.
        Carrier::Encapsulated { peer_port: 0, .. } => Some(host.sockets.udp_port()),
        _ => None,
    };
    if let Some(port) = settings::peer_udp_port(&socket.state().options).or(of_carrier) {
        peer = peer.over_udp(port);
    }
    let endpoint = endpoint(host, socket, None)?;
    socket.enter(Phase::Connecting);
    let attempt = {
        let (host, socket) = (Arc::clone(host), Arc::clone(socket));
        tokio::spawn(async move {
            match endpoint.connect(peer).await {
                Ok(association) => {
                    attach(&host, &socket, association);
                    Ok(())
                }
                Err(error) => {
                    let error = of_connect(&error);
                    match wait {
                        // The caller is told; the socket is as before.
                        true => socket.enter(Phase::Failed),
                        false => fail(&socket, error).await,
                    }
                    Err(error)
                }
            }
        })
    };
    if wait {
        attempt.await.unwrap_or(Err(libc::EINVAL))?;
    }
    Ok(Answer::Association(ONLY))
}

fn get(socket: &Socket, level: i32, option: i32, room: usize) -> Result<Vec<u8>, i32> {
    if (level, option) == (SOL_SOCKET, SO_ERROR) {
        let error = std::mem::take(&mut socket.state().error);
        return Ok(error.to_ne_bytes().to_vec());
    }
    if (level, option) == (IPPROTO_SCTP, STATUS) {
        let status = status(socket).ok_or(libc::EINVAL)?;
        return match status.len() <= room {
            true => Ok(status),
            false => Err(libc::EINVAL),
        };
    }
    let known = match (level, option) {
        (SOL_SOCKET, libc::SO_DOMAIN) if socket.hello.v6 => libc::AF_INET6,
        (SOL_SOCKET, libc::SO_DOMAIN) => libc::AF_INET,
        (SOL_SOCKET, libc::SO_ACCEPTCONN) => {
            matches!(socket.state().phase, Phase::Listening).into()
        }
        _ => return socket.state().options.get(level, option, room),
    };
    Ok(known.to_ne_bytes().to_vec())
}

/// struct sctp_status.
fn status(socket: &Socket) -> Option<Vec<u8>> {
    let status = socket.association()?.status()?;
    let mut out = Vec::new();
    // SCTP_ESTABLISHED is 4 with Linux, and the states that close come behind it.
    for word in [ONLY, 4, u32::try_from(status.rwnd).unwrap_or(u32::MAX)] {
        out.extend(word.to_ne_bytes());
    }
    let unacknowledged = u16::try_from(status.unackdata).unwrap_or(u16::MAX);
    for short in [unacknowledged, 0, status.instrms, status.outstrms] {
        out.extend(short.to_ne_bytes());
    }
    out.extend((status.fragmentation_point as u32).to_ne_bytes());
    out.extend(path_info(&status.primary, status.peer_port));
    Some(out)
}

/// struct sctp_paddrinfo.
fn path_info(path: &PathStatus, port: u16) -> Vec<u8> {
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
    let milliseconds = |nanos: u64| u32::try_from(nanos / 1_000_000).unwrap_or(u32::MAX);
    let mut out = ONLY.to_ne_bytes().to_vec();
    out.extend(storage(SocketAddr::new(path.address, port)));
    let cwnd = u32::try_from(path.cwnd).unwrap_or(u32::MAX);
    let srtt = path.srtt.map_or(0, milliseconds);
    for word in [state, cwnd, srtt, milliseconds(path.rto), path.mtu as u32] {
        out.extend(word.to_ne_bytes());
    }
    out
}

fn local(socket: &Socket) -> Vec<SocketAddr> {
    let used = socket.association().and_then(|it| it.status());
    let state = socket.state();
    let port = state.port.unwrap_or_default();
    let mut all: Vec<SocketAddr> = Vec::new();
    for path in used.iter().flat_map(|it| &it.paths) {
        let address = SocketAddr::new(path.local, port);
        if !path.local.is_unspecified() && !all.contains(&address) {
            all.push(address);
        }
    }
    if all.is_empty() {
        all.clone_from(&state.bound);
    }
    if all.is_empty() {
        all.push(SocketAddr::new(socket.unspecified(), port));
    }
    all
}

fn peers(socket: &Socket) -> Vec<SocketAddr> {
    let status = socket.association().and_then(|it| it.status());
    let Some(status) = status else {
        return Vec::new();
    };
    let mut all = vec![SocketAddr::new(status.primary.address, status.peer_port)];
    for path in &status.paths {
        let address = SocketAddr::new(path.address, status.peer_port);
        if !all.contains(&address) {
            all.push(address);
        }
    }
    all
}

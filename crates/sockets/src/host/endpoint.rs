//! Creation of the endpoints of sockets, and of the peers to connect to.

use std::net::{IpAddr, SocketAddr};

use anabranch_net::{BindError, Carrier, Endpoint, Peer};

use super::socket::Socket;
use super::{HostState, settings};

/// Backlog of a one-to-many socket, practically unlimited like in Linux.
const BACKLOG: usize = 65_536;

/// Creates an endpoint for the socket.
pub(super) fn endpoint(
    host: &HostState,
    socket: &Socket,
    backlog: Option<usize>,
) -> Result<Endpoint, i32> {
    let had = socket.state().port;
    let port = had
        .or_else(|| host.take_port(0, |_| false))
        .ok_or(libc::EADDRINUSE)?;
    let mut state = socket.state();
    state.port = Some(port);
    state.port_is_drawn |= had.is_none();
    let accept = backlog.is_some();
    let backlog = backlog.unwrap_or(BACKLOG);
    let config = settings::endpoint(&host.config, &state, port, accept, backlog);
    Endpoint::bind_with(config, &host.sockets).map_err(|error| match error {
        BindError::PortTaken(_) => libc::EADDRINUSE,
        _ => libc::EINVAL,
    })
}

/// Applies the socket's options to future associations of its endpoint. This has no effect if the
/// socket has no endpoint yet, or if another socket [decides](super::Table::decided_endpoint) about
/// the options of the endpoint.
///
/// # Errors
/// EINVAL: the endpoint refuses a value.
pub(super) fn follow_options(host: &HostState, socket: &Socket) -> Result<(), i32> {
    let own = socket.state().endpoint.clone();
    match own.or_else(|| host.table().decided_endpoint(socket)) {
        Some(endpoint) => apply_options(host, &endpoint, socket),
        None => Ok(()),
    }
}

/// Applies the socket's options to future associations of the endpoint.
///
/// # Errors
/// EINVAL: the endpoint refuses a value.
pub(super) fn apply_options(
    host: &HostState,
    endpoint: &Endpoint,
    socket: &Socket,
) -> Result<(), i32> {
    let state = socket.state();
    let change = |sctp: &mut _| settings::change(&host.config, sctp, &state);
    endpoint.change_sctp(change).map_err(|error| {
        tracing::warn!(%error, "the options of a socket do not apply");
        libc::EINVAL
    })
}

/// Parameters of the peer to connect to.
pub(super) fn peer(
    host: &HostState,
    socket: &Socket,
    addresses: &[SocketAddr],
) -> Result<Peer, i32> {
    let first = addresses.first().ok_or(libc::EINVAL)?;
    if first.port() == 0 || first.ip().is_unspecified() || first.ip().is_multicast() {
        return Err(libc::EINVAL);
    }
    if !socket.socket_type.v6 && addresses.iter().any(SocketAddr::is_ipv6) {
        return Err(libc::EINVAL);
    }
    let ips: Vec<IpAddr> = addresses.iter().map(SocketAddr::ip).collect();
    let peer = Peer::new(ips, first.port());
    let of_carrier = match host.config.carrier {
        // By default peers use the same UDP port as this host, as RFC 6951 expects.
        Carrier::Encapsulated { peer_port: 0, .. } => Some(host.sockets.udp_port()),
        _ => None,
    };
    let port = settings::peer_udp_port(&socket.state().options).or(of_carrier);
    Ok(match port {
        Some(port) => peer.over_udp(port),
        None => peer,
    })
}

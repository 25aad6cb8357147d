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

/// Has the endpoint of the socket, if there is one, use the socket's options for future
/// associations. If several sockets share the endpoint, the options that were changed last apply.
pub(super) fn follow_options(host: &HostState, socket: &Socket) {
    let own = socket.state().endpoint.clone();
    let Some(endpoint) = own.or_else(|| host.table().endpoint_of(socket)) else {
        return;
    };
    let state = socket.state();
    // The option table has checked the values.
    let _ = endpoint.change_sctp(|sctp| settings::change(&host.config, sctp, &state));
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

//! Selection of SCTP ports for sockets that are not bound to a port.
//!
//! Hosts that share an address, with one UDP port each, select their SCTP ports independently. Two
//! hosts may therefore select the same SCTP port. A peer that already has an association with this
//! address and port refuses a second one (RFC 6951 §5.4); then another port is tried.

use anabranch_net::sctp::RestartKeys;
use anabranch_net::{Association, ConnectError, ConnectOptions, Endpoint, Peer};

use super::HostState;
use super::endpoint::endpoint;
use super::socket::{Phase, Socket};

/// Maximum number of ports that are tried.
const MAX_PORTS: usize = 32;

/// Connects to the peer. If another host uses the same address and SCTP port, tries other ports,
/// unless the program has selected the port. `restart`: keys with which an earlier association is
/// restarted, from its own port.
pub(super) async fn from_any_port(
    host: &HostState,
    socket: &Socket,
    mut endpoint: Endpoint,
    peer: Peer,
    restart: Option<RestartKeys>,
) -> Result<Association, ConnectError> {
    if restart.is_some() {
        // An association is restarted from its own port.
        let options = ConnectOptions::default().with(|it| it.restart_keys = restart);
        return endpoint.connect_with(peer, options).await;
    }
    for _ in 1..MAX_PORTS {
        match endpoint.connect(peer.clone()).await {
            Err(error) if error.is_port_collision() => match another(host, socket) {
                Some(another) => endpoint = another,
                None => return Err(error),
            },
            other => return other,
        }
    }
    endpoint.connect(peer).await
}

/// Replaces the socket's endpoint by one at another port. `None` if the port must stay, because the
/// program has selected it, peers may know it, or an association uses it.
pub(super) fn another(host: &HostState, socket: &Socket) -> Option<Endpoint> {
    let former = {
        let mut state = socket.state();
        let many = socket.socket_type.is_one_to_many();
        // For a one-to-many socket, the association that is being set up is already in the list.
        let has_none = state.assocs.len() <= usize::from(many);
        let may = state.port_is_drawn && state.bound.is_empty() && has_none && !state.closed;
        if !may || state.phase == Phase::Listening {
            return None;
        }
        state.endpoint = None;
        state.port.take()?
    };
    // The previous port is released after the new one is allocated, so that it is not selected
    // again.
    let endpoint = endpoint(host, socket, None).ok();
    host.give_port_back(former);
    let (closed, port) = {
        let mut state = socket.state();
        if socket.socket_type.is_one_to_many() {
            state.endpoint.clone_from(&endpoint);
        }
        match state.closed {
            true => {
                state.endpoint = None;
                (true, state.port.take())
            }
            false => (false, None),
        }
    };
    if let Some(port) = port {
        host.give_port_back(port);
    }
    endpoint.filter(|_| !closed)
}

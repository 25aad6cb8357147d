//! Ports that the host draws for sockets whose programs asked for none.
//!
//! Hosts that share an address, with a UDP port each, draw their SCTP ports without knowing of each
//! other. A peer that has an association from the same port of the address refuses another (RFC
//! 6951 §5.4): from another port it can be made.

use anabranch_net::{Association, ConnectError, Endpoint, Peer};

use super::Known;
use super::call;
use super::socket::{Phase, Socket};

/// Ports that are tried.
const MAX_PORTS: usize = 32;

/// Connects; from another port where another host has this one and the program did not ask for it.
pub async fn from_any_port(
    host: &Known,
    socket: &Socket,
    mut endpoint: Endpoint,
    peer: Peer,
) -> Result<Association, ConnectError> {
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

/// An endpoint at another port in the place of the socket's; `None`: its port is to stay, since the
/// program asked for it, peers may know it, or an association has it.
pub fn another(host: &Known, socket: &Socket) -> Option<Endpoint> {
    let former = {
        let mut state = socket.state();
        let many = socket.form.is_one_to_many();
        // An association that is being made by a socket with many is among its own.
        let has_none = state.links.len() <= usize::from(many);
        let may = state.port_is_drawn && state.bound.is_empty() && has_none && !state.closed;
        if !may || state.phase == Phase::Listening {
            return None;
        }
        state.endpoint = None;
        state.port.take()?
    };
    // The former one is given back later, so that it is not drawn again.
    let endpoint = call::endpoint(host, socket, None).ok();
    host.give_port_back(former);
    let (closed, port) = {
        let mut state = socket.state();
        if socket.form.is_one_to_many() {
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

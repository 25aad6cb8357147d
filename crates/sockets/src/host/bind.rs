//! Binding of sockets to addresses and ports.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::Duration;

use anabranch_net::AddressChange;

use super::socket::{PORT_TIMEOUT, RETRY_INTERVAL, Socket};
use super::{HostState, Table};
use crate::control::HostReply;

/// `bind`, or `sctp_bindx` if `more` is true. If the port belongs only to sockets whose last
/// descriptor is closed, waits for the host to release it, which happens soon.
pub(super) async fn bind(
    host: &HostState,
    socket: &Socket,
    addresses: Vec<SocketAddr>,
    more: bool,
) -> Result<HostReply, i32> {
    let mut waited = Duration::ZERO;
    loop {
        match try_bind(host, socket, &addresses, more) {
            Err(libc::EADDRINUSE)
                if waited < PORT_TIMEOUT && is_left(host, addresses[0].port()) =>
            {
                tokio::time::sleep(RETRY_INTERVAL).await;
                waited += RETRY_INTERVAL;
            }
            other => return other,
        }
    }
}

/// Whether a socket whose last descriptor is closed still has this port.
fn is_left(host: &HostState, port: u16) -> bool {
    let table = host.table();
    let mut all = table.sockets.values();
    all.any(|it| it.state().port == Some(port) && it.is_hung_up())
}

/// Lock order: the host's table before a socket's state.
fn try_bind(
    host: &HostState,
    socket: &Socket,
    addresses: &[SocketAddr],
    more: bool,
) -> Result<HostReply, i32> {
    let first = *addresses.first().ok_or(libc::EINVAL)?;
    let (only, had) = {
        let state = socket.state();
        match (state.port, more) {
            // `sctp_bindx` adds addresses to the existing port.
            (Some(port), true) if ![0, port].contains(&first.port()) => return Err(libc::EINVAL),
            (Some(_), false) => return Err(libc::EINVAL),
            (port, _) => (socket.only_family(&state), port),
        }
    };
    if !socket.socket_type.v6 && addresses.iter().any(SocketAddr::is_ipv6) {
        return Err(libc::EINVAL);
    }
    for address in addresses {
        is_here(host, address.ip())?;
    }
    let port = match had {
        Some(port) if can_share(&host.table(), socket, only, port, addresses) => port,
        Some(_) => return Err(libc::EADDRINUSE),
        None => {
            let wanted = first.port();
            let taken = host.take_port(wanted, |table| {
                can_share(table, socket, only, wanted, addresses)
            });
            taken.ok_or(libc::EADDRINUSE)?
        }
    };
    let mut changes = Vec::new();
    {
        let mut state = socket.state();
        state.port = Some(port);
        for address in addresses {
            let address = SocketAddr::new(address.ip(), port);
            if !state.bound.contains(&address) {
                state.bound.push(address);
                changes.push(AddressChange::Add(address.ip()));
            }
        }
    }
    if had.is_some() {
        tell(host, socket, &changes);
    }
    Ok(HostReply::Done)
}

/// Checks that this host has the address, so that sockets can be bound to it. A lack of descriptors
/// is reported as a separate error.
fn is_here(host: &HostState, address: IpAddr) -> Result<(), i32> {
    let to_all = matches!(address, IpAddr::V4(it) if it.is_broadcast());
    let of_carrier = &host.config.addresses;
    if to_all || address.is_multicast() {
        return Err(libc::EADDRNOTAVAIL);
    }
    if address.is_unspecified() || of_carrier.contains(&address) {
        return Ok(());
    }
    if !of_carrier.is_empty() {
        return Err(libc::EADDRNOTAVAIL);
    }
    match UdpSocket::bind((address, 0)) {
        Ok(_) => Ok(()),
        Err(error) => {
            // The error is replaced, because the limit of the host is exceeded and not that of the
            // program.
            const EXHAUSTED: [i32; 4] = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOBUFS];
            let code = error.raw_os_error().unwrap_or(libc::EADDRNOTAVAIL);
            Err(match EXHAUSTED.contains(&code) {
                true => {
                    host.count_error(&error);
                    libc::ENOBUFS
                }
                false => libc::EADDRNOTAVAIL,
            })
        }
    }
}

/// The addresses of a socket that is bound to all addresses: those of the host process, or else
/// those of the system's interfaces in the families of the socket. `None` if the socket is bound to
/// specific addresses, or not bound yet.
pub(super) fn interfaces(host: &HostState, socket: &Socket) -> Option<Vec<SocketAddr>> {
    let (port, only) = {
        let state = socket.state();
        let port = state.port.filter(|_| state.addresses().is_empty())?;
        (port, socket.only_family(&state))
    };
    let mut all: Vec<SocketAddr> = match host.config.addresses.is_empty() {
        true => of_system(port),
        false => {
            let of_carrier = host.config.addresses.iter();
            of_carrier.map(|ip| SocketAddr::new(*ip, port)).collect()
        }
    };
    all.retain(|it| only.is_none_or(|v6| it.is_ipv6() == v6));
    (!all.is_empty()).then_some(all)
}

fn of_system(port: u16) -> Vec<SocketAddr> {
    let all = nix::ifaddrs::getifaddrs().into_iter().flatten();
    let addresses = all.filter_map(|it| it.address);
    let ports = addresses.filter_map(|address| {
        if let Some(v4) = address.as_sockaddr_in() {
            return Some(SocketAddr::new(v4.ip().into(), port));
        }
        let v6 = address.as_sockaddr_in6()?;
        Some(SocketAddrV6::new(v6.ip(), port, 0, v6.scope_id()).into())
    });
    ports.collect()
}

/// Source address that the system chooses for packets to an address.
pub(super) fn source(to: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match to {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Any port will do, because no packet is sent.
    let asked = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((to, 9))?;
        socket.local_addr()
    });
    asked.ok().map(|it| it.ip())
}

/// `sctp_bindx` with SCTP_BINDX_REM_ADDR. Fails if no address would remain.
pub(super) fn unbind(
    host: &HostState,
    socket: &Socket,
    addresses: &[SocketAddr],
) -> Result<HostReply, i32> {
    {
        let mut state = socket.state();
        let goes = |it: &SocketAddr| addresses.iter().any(|gone| gone.ip() == it.ip());
        if state.bound.len() <= 1 {
            return Err(libc::EBUSY);
        }
        let is_bound = |gone: &SocketAddr| state.bound.iter().any(|it| it.ip() == gone.ip());
        if !addresses.iter().all(is_bound) {
            return Err(libc::EINVAL);
        }
        if state.bound.iter().all(goes) {
            return Err(libc::EBUSY);
        }
        state.bound.retain(|it| !goes(it));
    }
    let removed = addresses.iter().map(|it| AddressChange::Remove(it.ip()));
    tell(host, socket, &removed.collect::<Vec<_>>());
    Ok(HostReply::Done)
}

/// Applies the changes to future associations. Existing associations request the changes from their
/// peers (RFC 5061) if both ends support address changes, and are otherwise not changed.
fn tell(host: &HostState, socket: &Socket, changes: &[AddressChange]) {
    let own = socket.state().endpoint.clone();
    if let Some(endpoint) = own.or_else(|| host.table().endpoint_of(socket)) {
        // An error means that the endpoint has no explicit list of addresses; it then has all
        // addresses.
        let _ = endpoint.change_addresses(changes);
        return;
    }
    let assocs: Vec<_> = socket.state().assocs.values().cloned().collect();
    for association in assocs.iter().filter_map(|assoc| assoc.association()) {
        let _ = association.change_addresses(changes);
    }
}

/// Whether a socket can share a port with the sockets that already have it. Accepted sockets never
/// prevent this, so that a restarted server can use its port again. Compared with each other
/// socket, the addresses must differ, or the address families must not overlap, or both sockets
/// must share the port (SCTP_REUSE_PORT).
fn can_share(
    table: &Table,
    socket: &Socket,
    only: Option<bool>,
    port: u16,
    addresses: &[SocketAddr],
) -> bool {
    let shares = socket.state().shares_port();
    let others = table
        .sockets
        .values()
        .filter(|it| !std::ptr::eq(&raw const ***it, socket));
    let mut there = others.filter_map(|other| {
        let state = other.state();
        let has = state.port == Some(port) && !state.accepted;
        has.then(|| {
            let elsewhere = are_apart(addresses, &state.bound);
            elsewhere
                || only.is_some_and(|v6| other.only_family(&state) == Some(!v6))
                || shares && state.shares_port()
        })
    });
    there.all(|can| can)
}

/// Whether the two lists have no address in common, and neither contains the wildcard address.
fn are_apart(one: &[SocketAddr], other: &[SocketAddr]) -> bool {
    let all =
        |them: &[SocketAddr]| them.is_empty() || them.iter().any(|it| it.ip().is_unspecified());
    let in_other = |it: &SocketAddr| other.iter().any(|its| its.ip() == it.ip());
    !all(one) && !all(other) && !one.iter().any(in_other)
}

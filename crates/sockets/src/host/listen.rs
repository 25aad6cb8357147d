//! One-to-one sockets that listen.

use std::sync::Arc;
use std::time::Duration;

use anabranch_net::{Association, Endpoint};

use super::link::Link;
use super::socket::Socket;
use super::{Coming, Known};
use crate::frame::{Frame, Kind};

/// Time between two looks whether a socket still listens.
pub const LOOK: Duration = Duration::from_millis(100);

/// Tells listening programs of each association that comes to the endpoint, until nobody listens. The endpoint stays until its
/// associations have ended: a server that begins anew can listen there.
pub async fn listen(host: Arc<Known>, endpoint: Endpoint) {
    let port = endpoint.port();
    loop {
        // A listener that was closed is no reason for a packet, so somebody has to look.
        let accepted = tokio::time::timeout(LOOK, endpoint.accept()).await;
        if nobody_listens(&host, port, &endpoint) {
            if let Ok(Ok(association)) = accepted {
                association.abort("");
            }
            break;
        }
        match accepted {
            Ok(Ok(association)) => announce(&host, port, association).await,
            Ok(Err(_)) => break,
            Err(_) => (),
        }
    }
    endpoint.wait_idle().await;
    let mut table = host.table();
    if !table.listening.contains_key(&port) {
        table.endpoints.remove(&port);
    }
}

/// Whether no socket listens at the port any more. The endpoint then refuses peers; under the lock, since a socket may listen next.
fn nobody_listens(host: &Known, port: u16, endpoint: &Endpoint) -> bool {
    let table = host.table();
    let nobody = !table.listening.contains_key(&port);
    if nobody {
        endpoint.turn_away();
    }
    nobody
}

/// Tells the program whose socket is of the peer's family.
async fn announce(host: &Arc<Known>, port: u16, association: Association) {
    let number = host.number();
    let status = association.status();
    let v6 = status.is_some_and(|it| it.primary.address.is_ipv6());
    let (socket, link) = {
        let mut table = host.table();
        let all = table.listening.get(&port).map_or(&[][..], |all| all);
        let fits = |it: &&Arc<Socket>| it.only_family(&it.state()).is_none_or(|only| only == v6);
        let fitting: Vec<_> = all.iter().filter(fits).cloned().collect();
        // Sockets that share the port (SCTP_REUSE_PORT) have turns.
        let turn = table.announced % fitting.len().max(1);
        table.announced = table.announced.wrapping_add(1);
        let Some(socket) = fitting.into_iter().nth(turn) else {
            association.abort("");
            return;
        };
        let options = socket.state().options.clone();
        let link = Arc::new(Link::new(number, socket.form.v6, Vec::new(), options));
        host.watch(association.clone());
        link.rise(association);
        let coming = Coming {
            link: Arc::clone(&link),
            from: socket.name.clone(),
            waiting: Vec::new(),
        };
        table.incoming.insert(number, coming);
        (socket, link)
    };
    super::effects::apply_all(&link);
    let frame = Frame {
        kind: Kind::Incoming,
        association: number,
        address: link.name(),
        ..Frame::default()
    };
    if socket.give(&frame, &[]).await.is_err() {
        host.table().incoming.remove(&number);
        link.end();
    }
}

//! One-to-one sockets that listen.

use std::sync::Arc;
use std::time::Duration;

use anabranch_net::{Association, Endpoint};

use super::Known;
use super::link::Link;
use super::socket::Socket;
use crate::frame::{Frame, Kind};

/// Time between two looks whether a socket still listens.
pub const LOOK: Duration = Duration::from_millis(100);

/// Tells listening programs of each association that comes to the endpoint, until nobody listens.
pub async fn listen(host: Arc<Known>, endpoint: Endpoint) {
    let port = endpoint.port();
    loop {
        // A listener that was closed is no reason for a packet, so somebody has to look.
        let accepted = tokio::time::timeout(LOOK, endpoint.accept()).await;
        if !host.table().listening.contains_key(&port) {
            return;
        }
        match accepted {
            Ok(Ok(association)) => announce(&host, port, association).await,
            Ok(Err(_)) => return,
            Err(_) => (),
        }
    }
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
        let Some(socket) = all.iter().find(fits).cloned() else {
            association.abort("");
            return;
        };
        let options = socket.state().options.clone();
        let link = Arc::new(Link::new(number, Vec::new(), options));
        host.watch(association.clone());
        link.rise(association);
        table
            .incoming
            .insert(number, (Arc::clone(&link), socket.name.clone()));
        (socket, link)
    };
    super::effects::apply_all(&link);
    let frame = Frame {
        kind: Kind::Incoming,
        association: number,
        address: link.peer(),
        ..Frame::default()
    };
    if socket.give(&frame, &[]).await.is_err() {
        host.table().incoming.remove(&number);
        link.end();
    }
}

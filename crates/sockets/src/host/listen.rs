//! One-to-one sockets that listen.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anabranch_net::{Association, BacklogPermit, Endpoint};

use super::link::Link;
use super::socket::Socket;
use super::{Coming, Known, Table};
use crate::frame::{Frame, Kind};

/// Time between two looks whether a socket still listens.
pub const LOOK: Duration = Duration::from_millis(100);

/// Where one-to-one sockets listen: an endpoint, and those that have its associations in turn: one, one of each family, or some that share the port
/// (SCTP_REUSE_PORT). None where the last has ceased, and associations go on.
pub struct Place {
    pub endpoint: Endpoint,
    pub sockets: Vec<Arc<Socket>>,
    /// No other has it.
    pub number: u32,
}

impl Place {
    /// As many associations may wait as the programs have said. One more for each, as with Linux.
    pub fn set_backlog(&self) {
        let most = self.sockets.iter().map(|it| it.state().backlog + 1).sum();
        if most > 0 {
            self.endpoint.set_backlog(most);
        }
    }
}

impl Table {
    /// The place at this port that a socket with these addresses listens at, if there is one: another cannot be opened beside it.
    pub fn place_for(&mut self, port: u16, addresses: &[IpAddr]) -> Option<&mut Place> {
        let fits = |it: &&mut Place| {
            let own = it.endpoint.addresses();
            let all = own.is_empty() || addresses.is_empty();
            it.endpoint.port() == port && (all || own.iter().any(|it| addresses.contains(it)))
        };
        self.places.iter_mut().find(fits)
    }

    /// The endpoint that this socket listens at.
    pub fn endpoint_of(&self, socket: &Socket) -> Option<Endpoint> {
        let is_it = |it: &Arc<Socket>| it.name == socket.name;
        let mut places = self.places.iter();
        let place = places.find(|place| place.sockets.iter().any(is_it));
        place.map(|it| it.endpoint.clone())
    }

    /// A place with this endpoint, where this socket listens; gives its number.
    pub fn open_place(&mut self, endpoint: Endpoint, socket: Arc<Socket>) -> u32 {
        let number = self.places.iter().map(|it| it.number + 1).max();
        let number = number.unwrap_or_default();
        self.places.push(Place {
            endpoint,
            sockets: vec![socket],
            number,
        });
        number
    }

    fn sockets_at(&self, number: u32) -> &[Arc<Socket>] {
        let place = self.places.iter().find(|it| it.number == number);
        place.map_or(&[], |it| &it.sockets)
    }
}

/// Tells listening programs of each association that comes to the endpoint, until nobody listens. The endpoint stays until its
/// associations have ended: a server that begins anew can listen there.
pub async fn listen(host: Arc<Known>, endpoint: Endpoint, place: u32) {
    loop {
        // A listener that was closed is no reason for a packet, so somebody has to look.
        let accepted = tokio::time::timeout(LOOK, endpoint.accept_with_permit()).await;
        if nobody_listens(&host, place, &endpoint) {
            if let Ok(Ok((association, _))) = accepted {
                association.abort("");
            }
            break;
        }
        match accepted {
            Ok(Ok(accepted)) => announce(&host, place, accepted).await,
            Ok(Err(_)) => break,
            Err(_) => (),
        }
    }
    endpoint.wait_idle().await;
    let mut table = host.table();
    if table.sockets_at(place).is_empty() {
        table.places.retain(|it| it.number != place);
    }
}

/// Whether no socket listens there any more. The endpoint then refuses peers; under the lock, since a socket may listen next.
fn nobody_listens(host: &Known, place: u32, endpoint: &Endpoint) -> bool {
    let table = host.table();
    let nobody = table.sockets_at(place).is_empty();
    if nobody {
        endpoint.refuse();
    }
    nobody
}

/// Tells the program whose socket is of the peer's family.
async fn announce(
    host: &Arc<Known>,
    place: u32,
    (association, backlog): (Association, BacklogPermit),
) {
    let number = host.number();
    let status = association.status();
    let v6 = status.is_some_and(|it| it.primary.address.is_ipv6());
    let (socket, link) = {
        let mut table = host.table();
        let all = table.sockets_at(place);
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
        host.watch(&link, association.clone());
        link.rise(association);
        let coming = Coming {
            link: Arc::clone(&link),
            from: socket.name.clone(),
            waiting: Vec::new(),
            _place: Some(backlog),
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
        if let Some(association) = link.association() {
            association.abort("");
        }
        link.end();
    }
}

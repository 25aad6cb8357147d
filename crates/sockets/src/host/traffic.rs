//! A descriptor's traffic: messages of the program to the association, and back.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anabranch_net::{Association, Lost, MessagePart, SendOptions};
use socket2::Socket as Unix;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::Known;
use super::notification::{self, Change, Notification};
use super::socket::{Phase, Socket, of_reason};
use crate::LARGEST_PIECE;
use crate::frame::{self, Frame, HEADER, Hello, Kind};
use crate::options::DEFAULT_SEND_PARAM;

/// The number of a one-to-one socket's association, as its program sees it.
pub const ONLY: u32 = 1;

/// Serves a descriptor until its last copy is closed.
pub async fn serve(host: Arc<Known>, unix: AsyncFd<Unix>, name: Vec<u8>) {
    let mut buffer = vec![0; HEADER + LARGEST_PIECE];
    let first = unix.async_io(Interest::READABLE, |mut unix: &Unix| {
        io::Read::read(&mut unix, &mut buffer)
    });
    let Ok(length) = first.await else { return };
    let Some(hello) = Hello::decode(&buffer[..length]) else {
        tracing::warn!("a connection that said no hello");
        return;
    };
    let socket = Arc::new(Socket::new(name.clone(), unix, hello));
    if hello.incoming != 0 && !adopt(&host, &socket) {
        return;
    }
    host.table()
        .sockets
        .insert(name.clone(), Arc::clone(&socket));
    host.appeared.notify_waiters();
    outwards(&socket, &mut buffer, host.config.max_message_size).await;
    leave(&host, &socket);
}

/// Makes an association that waits to be accepted that of the socket.
fn adopt(host: &Arc<Known>, socket: &Arc<Socket>) -> bool {
    let mut table = host.table();
    let Some((association, listener)) = table.incoming.remove(&socket.hello.incoming) else {
        return false;
    };
    // What was set of the listening socket holds for those it makes.
    let listener = table.sockets.get(&listener).cloned();
    drop(table);
    if let Some(listener) = listener {
        let (options, bound, port) = {
            let state = listener.state();
            (state.options.clone(), state.bound.clone(), state.port)
        };
        let mut state = socket.state();
        (state.options, state.bound, state.port) = (options, bound, port);
        drop(state);
        if let Some(port) = port {
            host.share_port(port);
        }
    }
    attach(host, socket, association);
    true
}

/// The socket has its association from now on.
pub fn attach(host: &Arc<Known>, socket: &Arc<Socket>, association: Association) {
    host.watch(association.clone());
    socket.enter(Phase::Connected(association.clone()));
    tokio::spawn(inwards(Arc::clone(socket), association));
}

/// The last descriptor is closed.
fn leave(host: &Known, socket: &Socket) {
    let mut table = host.table();
    table.sockets.remove(&socket.name);
    table
        .incoming
        .retain(|_, (_, listener)| *listener != socket.name);
    table.listening.retain(|_, all| {
        all.retain(|it| it.name != socket.name);
        !all.is_empty()
    });
    drop(table);
    let mut state = socket.state();
    if let Phase::Connected(association) = &state.phase {
        match state.options.linger() {
            // RFC 6458 §8.1.4: a linger time of 0 aborts.
            Some(0) => association.abort(""),
            Some(seconds) => {
                association.begin_shutdown_within(Duration::from_secs(u64::from(seconds)))
            }
            None => association.begin_shutdown_within(host.config.linger),
        }
    }
    state.phase = Phase::Failed;
    let port = state.port.take();
    drop(state);
    if let Some(port) = port {
        host.give_port_back(port);
    }
    host.ended.notify_waiters();
}

/// Messages of the program go to the association; one of more than `most` bytes is refused there, and no more of it is held.
async fn outwards(socket: &Socket, buffer: &mut [u8], most: usize) {
    let mut whole = Vec::new();
    loop {
        let length = match socket.take(buffer).await {
            Ok(length @ 1..) => length,
            // The program left unread what it was given; what it wrote is still to be read.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => continue,
            Ok(0) | Err(_) => return,
        };
        let Some(frame) = Frame::decode(&buffer[..length]) else {
            continue;
        };
        let Some(association) = socket.connected().await else {
            // What is sent all the same is lost, as the program was told.
            continue;
        };
        if frame.kind != Kind::Data {
            continue;
        }
        let piece = &buffer[HEADER..length];
        if frame.flags & frame::MORE != 0 || !whole.is_empty() {
            whole.extend_from_slice(piece);
            whole.truncate(most + 1);
            if frame.flags & frame::MORE != 0 {
                continue;
            }
        }
        let bytes = match whole.is_empty() {
            true => bytes::Bytes::copy_from_slice(piece),
            false => std::mem::take(&mut whole).into(),
        };
        if frame.flags & frame::ABORT != 0 {
            association.abort(bytes);
            continue;
        }
        if !bytes.is_empty() {
            send(socket, &association, &frame, bytes).await;
        }
        if frame.flags & frame::EOF != 0 {
            association.begin_shutdown();
        }
    }
}

async fn send(socket: &Socket, association: &Association, frame: &Frame, bytes: bytes::Bytes) {
    let (mut stream, mut unordered, mut ppid) = (
        frame.stream,
        frame.flags & frame::UNORDERED != 0,
        frame.ppid,
    );
    if frame.flags & frame::DEFAULT != 0 {
        let state = socket.state();
        // struct sctp_sndrcvinfo: stream at 0, flags at 4, ppid at 8.
        stream = state.options.short(DEFAULT_SEND_PARAM, 0);
        unordered = state.options.short(DEFAULT_SEND_PARAM, 4) & 1 != 0;
        ppid = state.options.word(DEFAULT_SEND_PARAM, 8);
    }
    // Milliseconds in the API, nanoseconds in the protocol.
    let lifetime = u64::from(frame.value) * 1_000_000;
    let options = SendOptions::default()
        .with_ppid(u32::from_be(ppid))
        .with_unordered(unordered)
        .with_lifetime((frame.value > 0 && frame.policy <= 0x10).then_some(lifetime));
    let sent = match frame.flags & frame::IMMEDIATE {
        0 => association.send(stream, bytes, options).await,
        _ => association.send_immediate(stream, bytes, options).await,
    };
    match sent {
        Ok(()) => tracing::trace!(stream, "message taken"),
        Err(error) => tracing::debug!(%error, "message not taken"),
    }
}

/// What the association tells and receives goes to the program.
async fn inwards(socket: Arc<Socket>, association: Association) {
    let status = association.status();
    let streams = status
        .as_ref()
        .map_or([0; 2], |it| [it.outstrms, it.instrms]);
    let peer = status.map(|it| SocketAddr::new(it.primary.address, it.peer_port));
    let port = peer.map_or(0, |it| it.port());
    let up = notification::change(Change::Up, 0, streams, ONLY);
    if tell(&socket, up).await.is_err() {
        return;
    }
    let events = async {
        while let Some(event) = association.next_event().await {
            if let Some(told) = notification::of_event(&event, port, ONLY)
                && tell(&socket, told).await.is_err()
            {
                return;
            }
        }
    };
    let messages = async {
        loop {
            match association.recv_part().await {
                Ok(Some(part)) => give(&socket, &part, peer).await.map_err(|_| None)?,
                Ok(None) => return Ok::<(), Option<Lost>>(()),
                Err(lost) => return Err(Some(lost)),
            }
        }
    };
    let (_, ended) = tokio::join!(events, messages);
    let last = match &ended {
        Ok(()) => notification::change(Change::Down, 0, streams, ONLY),
        Err(_) => notification::change(Change::Lost, 0, streams, ONLY),
    };
    // The program may be gone, or the descriptor full of what it does not read.
    let _ = tell(&socket, last).await;
    if let Err(Some(lost)) = ended {
        let error = of_reason(&lost.0, true);
        socket.state().error = error;
        let frame = Frame {
            kind: Kind::Error,
            error,
            ..Frame::default()
        };
        let _ = socket.give(&frame, &[]).await;
    }
    let _ = socket.unix.get_ref().shutdown(std::net::Shutdown::Write);
}

/// A notification, if the program wants it.
async fn tell(socket: &Socket, (kind, bytes): Notification) -> io::Result<()> {
    if !socket.state().options.wants(kind) {
        return Ok(());
    }
    let frame = Frame {
        kind: Kind::Notification,
        association: ONLY,
        ..Frame::default()
    };
    socket.give(&frame, &bytes).await
}

/// A message, or a part of one.
async fn give(socket: &Socket, part: &MessagePart, peer: Option<SocketAddr>) -> io::Result<()> {
    let mut pieces = part.bytes.chunks(LARGEST_PIECE).peekable();
    while let Some(piece) = pieces.next() {
        let more = pieces.peek().is_some() || !part.ends;
        let flag = |on: bool, bit: u8| if on { bit } else { 0 };
        let frame = Frame {
            kind: Kind::Data,
            flags: flag(part.unordered, frame::UNORDERED) | flag(more, frame::MORE),
            stream: part.stream,
            ppid: part.ppid.to_be(),
            association: ONLY,
            ssn: u32::from(part.ssn),
            address: peer,
            ..Frame::default()
        };
        let given = socket.give(&frame, piece).await;
        tracing::trace!(stream = part.stream, ?given, "message given");
        given?;
    }
    Ok(())
}

/// Tells listening programs of each association that comes to the endpoint, until nobody listens.
pub async fn listen(host: Arc<Known>, endpoint: anabranch_net::Endpoint) {
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
async fn announce(host: &Known, port: u16, association: Association) {
    let status = association.status();
    let address = status.map(|it| SocketAddr::new(it.primary.address, it.peer_port));
    let v6 = address.is_some_and(|it| it.is_ipv6());
    let (socket, number) = {
        let mut table = host.table();
        let all = table.listening.get(&port).map_or(&[][..], |all| all);
        let fits = |it: &&Arc<Socket>| it.only_family(&it.state()).is_none_or(|only| only == v6);
        let Some(socket) = all.iter().find(fits).cloned() else {
            association.abort("");
            return;
        };
        table.last_incoming = table.last_incoming.wrapping_add(1).max(1);
        let number = table.last_incoming;
        table
            .incoming
            .insert(number, (association, socket.name.clone()));
        (socket, number)
    };
    let frame = Frame {
        kind: Kind::Incoming,
        association: number,
        address,
        ..Frame::default()
    };
    if socket.give(&frame, &[]).await.is_err() {
        host.table().incoming.remove(&number);
    }
}

/// Time between two looks whether a socket still listens.
const LOOK: Duration = Duration::from_millis(100);

/// A program that waits for a connection by `poll` finds its descriptor readable, and is told why.
pub async fn fail(socket: &Socket, error: i32) {
    socket.state().error = error;
    socket.enter(Phase::Failed);
    let frame = Frame {
        kind: Kind::Error,
        error,
        ..Frame::default()
    };
    let _ = socket.give(&frame, &[]).await;
}

//! One thread for each association: the endpoint, behind a mutex, demultiplexes packets; each
//! association has a thread that runs its timers and sends through the shared socket.
//!
//! `cargo run -p anabranch-net --example association_threads`

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anabranch_sctp::{
    AssociationEvent, CloseReason, Config, ConnectOptions, DetachedAssociation, Endpoint, Event,
    Interest, Output, ReceivedMessage, SendOptions, TransmitOptions,
};
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use bytes::{Bytes, BytesMut};

/// Messages and events, in the order of delivery.
const OUTPUTS: Interest = Interest::MESSAGES.and(Interest::EVENTS);
/// Maximum time until the loop of a host notices that its associations have ended.
const MAX_WAIT: Duration = Duration::from_millis(50);

/// Callback of the application for a message; `None`: the association is new.
type User = fn(&mut DetachedAssociation, Nanos, Option<ReceivedMessage>);

/// A UDP socket with an endpoint and a clock.
struct Host {
    socket: UdpSocket,
    endpoint: Mutex<Endpoint>,
    origin: Instant,
}

impl Host {
    fn new(port: u16) -> io::Result<Arc<Self>> {
        // Size of the UDP header between IP and SCTP, bytes.
        let config = Config::default().with(|it| it.encapsulation = 8);
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        let endpoint = Endpoint::new(config, port, seed).map_err(io::Error::other)?;
        Ok(Arc::new(Self {
            socket: UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?,
            endpoint: Mutex::new(endpoint),
            origin: now(),
        }))
    }

    fn time(&self) -> Nanos {
        self.origin.elapsed().as_nanos() as Nanos
    }

    fn endpoint(&self) -> MutexGuard<'_, Endpoint> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Duration from now until `timeout`.
    fn until(&self, timeout: Nanos) -> Duration {
        Duration::from_nanos(timeout.saturating_sub(self.time()).max(1_000_000))
    }
}

/// Receives and sends packets until all associations have ended; returns why they ended.
fn run(host: &Arc<Host>, user: User) -> io::Result<Vec<CloseReason>> {
    let mut inboxes: BTreeMap<_, Sender<AssociationEvent>> = BTreeMap::new();
    let mut threads: Vec<JoinHandle<io::Result<CloseReason>>> = Vec::new();
    let mut out = BytesMut::new();
    let mut buffer = [0; 65_535];
    while threads.is_empty() || threads.iter().any(|it| !it.is_finished()) {
        let mut endpoint = host.endpoint();
        // Sends replies of the endpoint and packets of handshakes.
        let (all, time) = (TransmitOptions::default(), host.time());
        endpoint.poll_transmit_batch(time, all, &mut out, |outgoing, out| {
            let to = SocketAddr::new(outgoing.transmit.path.remote, outgoing.udp_port);
            // A packet that cannot be sent now counts as lost, and is retransmitted by a timer.
            let _ = host.socket.send_to(&out.split(), to);
            ControlFlow::Continue(())
        });
        while let Some((id, event)) = endpoint.poll_association_event() {
            if let Some(inbox) = inboxes.get(&id) {
                // Fails if the thread of the association has ended.
                let _ = inbox.send(event);
            }
        }
        while let Some(id) = endpoint.poll_ready().map(|it| it.0) {
            let association = endpoint.detach(id).map_err(io::Error::other)?;
            let (inbox, events) = channel();
            inboxes.insert(id, inbox);
            let host = Arc::clone(host);
            threads.push(std::thread::spawn(move || {
                drive(&host, association, &events, user)
            }));
        }
        let wait = endpoint
            .poll_timeout()
            .map_or(MAX_WAIT, |at| host.until(at));
        drop(endpoint);
        host.socket.set_read_timeout(Some(wait.min(MAX_WAIT)))?;
        match host.socket.recv_from(&mut buffer) {
            Ok((len, from)) => {
                let path = Path::new(host.socket.local_addr()?.ip(), from.ip());
                let packet = Bytes::copy_from_slice(&buffer[..len]);
                let block = (&packet, 0..len);
                let mut endpoint = host.endpoint();
                endpoint.handle_udp_datagram(host.time(), path, from.port(), Ecn::NotEct, block);
            }
            Err(error) if is_timeout(&error) => host.endpoint().handle_timeout(host.time()),
            Err(error) => return Err(error),
        }
    }
    let ended = |it: JoinHandle<_>| it.join().unwrap_or_else(|_| Err(io::Error::other("panic")));
    threads.into_iter().map(ended).collect()
}

/// Drives one association until it is closed.
fn drive(
    host: &Host,
    mut association: DetachedAssociation,
    events: &Receiver<AssociationEvent>,
    user: User,
) -> io::Result<CloseReason> {
    let mut out = BytesMut::new();
    let mut reason = None;
    user(&mut association, host.time(), None);
    loop {
        while let Some(output) = association.poll_output(OUTPUTS) {
            match output {
                Output::Message(message) => user(&mut association, host.time(), Some(message)),
                Output::Event(Event::Closed(closed)) => reason = Some(closed),
                _ => {}
            }
        }
        association.poll_transmit_batch(host.time(), &mut out, |outgoing, out| {
            let to = SocketAddr::new(outgoing.transmit.path.remote, outgoing.udp_port);
            let _ = host.socket.send_to(&out.split(), to);
            ControlFlow::Continue(())
        });
        let mut is_closed = false;
        while let Some(event) = association.poll_endpoint_event() {
            is_closed = event.is_closed();
            host.endpoint()
                .handle_endpoint_event(association.id(), event);
        }
        if is_closed {
            return reason.ok_or_else(|| io::Error::other("closed without a reason"));
        }
        let timeout = association.poll_timeout();
        let wait = timeout.map_or(MAX_WAIT, |at| host.until(at));
        match events.recv_timeout(wait) {
            Ok(event) => association.handle_event(event),
            Err(RecvTimeoutError::Timeout) => association.handle_timeout(host.time()),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("the endpoint has ended"));
            }
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

#[allow(
    clippy::disallowed_methods,
    reason = "the driver is where real time comes in"
)]
fn now() -> Instant {
    Instant::now()
}

/// Sends every message back.
fn echo(association: &mut DetachedAssociation, now: Nanos, message: Option<ReceivedMessage>) {
    if let Some(message) = message {
        let options = SendOptions::on(message.stream).with_ppid(message.ppid);
        if let Err(error) = association.send(now, message.payload.into_bytes(), &options) {
            println!("server: {error}");
        }
    }
}

/// Sends one message, and shuts the association down after the peer has returned the message.
fn ask(association: &mut DetachedAssociation, now: Nanos, message: Option<ReceivedMessage>) {
    let done = match message {
        None => (association.send(now, "hello".into(), &SendOptions::new()))
            .map_err(|it| it.to_string()),
        Some(message) => {
            println!("client: {:?} came back", message.payload.into_bytes());
            association.shutdown(now, None).map_err(|it| it.to_string())
        }
    };
    if let Err(error) = done {
        println!("client: {error}");
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (server, client) = (Host::new(5_001)?, Host::new(5_002)?);
    server.endpoint().listen(true);
    let over_udp = ConnectOptions::over_udp(server.socket.local_addr()?.port());
    let home = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
    (client.endpoint()).connect_with(0, &home, 5_001, over_udp)?;
    let serving = std::thread::spawn(move || run(&server, echo));
    let asked = run(&client, ask)?;
    let served = serving.join().map_err(|_| "the server panicked")??;
    println!("client: {asked:?}, server: {served:?}");
    match [&asked[..], &served[..]] {
        [[CloseReason::Shutdown], [CloseReason::Shutdown]] => Ok(()),
        _ => Err("not closed gracefully".into()),
    }
}

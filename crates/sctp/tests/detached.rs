//! Detached associations, each on its own thread.

mod authentication;
mod icmp;
mod protected;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use anabranch_sctp::{
    Association, AssociationEvent, AssociationId, AssociationState, CloseReason, Config,
    DetachError, DetachedAssociation, DiscardReason, Endpoint, EndpointEvent, Event, Interest,
    Output, SendOptions,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use bytes::{Bytes, BytesMut};

use crate::common::describe;

const CLIENT_PORT: u16 = 5_000;
const SERVER_PORT: u16 = 7;
/// Maximum number of arrivals and timeouts of one run.
const MAX_STEPS: usize = 100_000;
const DELAY: Nanos = 10 * MILLISECOND;

fn address(host: u8, home: u8) -> IpAddr {
    IpAddr::from([10, home, 0, host])
}

fn server_address() -> IpAddr {
    address(1, 0)
}

/// Input of an association on its thread.
enum Command {
    Event(AssociationEvent),
    Timeout,
    Abort,
}

/// Results of processing an input.
#[derive(Default)]
struct Report {
    packets: Vec<(Path, Bytes)>,
    events: Vec<EndpointEvent>,
    output: Vec<String>,
    deadline: Option<Nanos>,
    discarded: Vec<(DiscardReason, u64)>,
    restarted: bool,
}

/// Thread of an association: processes commands, and echoes messages.
fn run(
    mut association: DetachedAssociation,
    commands: &Receiver<(Nanos, Command)>,
    reports: &Sender<Report>,
) {
    let mut out = BytesMut::new();
    while let Ok((now, command)) = commands.recv() {
        let mut report = Report::default();
        match command {
            Command::Event(event) => association.handle_event(event),
            Command::Timeout => association.handle_timeout(now),
            Command::Abort => association.abort(now, Bytes::new()).expect("open"),
        }
        while let Some(output) = association.poll_output(Interest::MESSAGES.and(Interest::EVENTS)) {
            report.output.push(match output {
                Output::Message(message) => {
                    let options = SendOptions::on(message.stream);
                    let bytes = message.payload.into_bytes();
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    // `send` fails after the peer's shutdown.
                    let _ = association.send(now, bytes, &options);
                    text
                }
                Output::Event(Event::Closed(reason)) => format!("closed {reason:?}"),
                Output::Event(Event::Restarted { .. }) => {
                    report.restarted = true;
                    "restarted".into()
                }
                _ => continue,
            });
        }
        association.poll_transmit_batch(now, &mut out, |outgoing, out| {
            report
                .packets
                .push((outgoing.transmit.path, out.split().freeze()));
            ControlFlow::Continue(())
        });
        report
            .events
            .extend(std::iter::from_fn(|| association.poll_endpoint_event()));
        report.deadline = association.poll_timeout();
        report.discarded = association.discards().iter().collect();
        reports.send(report).expect("the test waits");
    }
}

/// Handle of a thread that runs an association.
struct Worker {
    commands: Sender<(Nanos, Command)>,
    reports: Receiver<Report>,
    thread: Option<JoinHandle<()>>,
    deadline: Option<Nanos>,
    output: Vec<String>,
    discarded: Vec<(DiscardReason, u64)>,
    is_closed: bool,
}

impl Worker {
    fn new(association: DetachedAssociation) -> Self {
        let (commands, inbox) = channel();
        let (outbox, reports) = channel();
        let thread = std::thread::spawn(move || run(association, &inbox, &outbox));
        Self {
            commands,
            reports,
            thread: Some(thread),
            deadline: None,
            output: Vec::new(),
            discarded: Vec::new(),
            is_closed: false,
        }
    }

    fn call(&mut self, now: Nanos, command: Command) -> Report {
        self.commands.send((now, command)).expect("it runs");
        let mut report = self.reports.recv().expect("it runs");
        self.deadline = report.deadline;
        self.output.append(&mut report.output);
        self.discarded.clone_from(&report.discarded);
        report
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.commands = channel().0;
        if let Some(thread) = self.thread.take() {
            assert!(thread.join().is_ok() || std::thread::panicking());
        }
    }
}

/// Whether a packet with these chunks and addresses is lost.
type Lost = dyn FnMut(&str, Path) -> bool;

/// Destination of a packet.
#[derive(Clone, Copy)]
enum To {
    Server,
    Client(usize),
}

struct Net {
    now: Nanos,
    /// Settings of the clients, except their addresses.
    config: Config,
    server: Endpoint,
    workers: BTreeMap<AssociationId, Worker>,
    /// Whether associations are detached as soon as they are established.
    detaches: bool,
    clients: Vec<(u8, Endpoint)>,
    flying: BTreeMap<(Nanos, u64), (To, Path, Bytes)>,
    sent: u64,
    story: Vec<String>,
    /// Last packet that the server has sent.
    last: (IpAddr, Bytes),
    /// Source address of all packets of clients, instead of their own addresses.
    source: Option<IpAddr>,
    lost: Box<Lost>,
    /// Whether events about restarts are hidden from the endpoint.
    hides_restarts: bool,
}

impl Net {
    fn new() -> Self {
        Self::with(Config::default())
    }

    fn with(config: Config) -> Self {
        let own = (config.clone()).with(|it| it.addresses = vec![server_address()]);
        let mut server = Endpoint::new(own, SERVER_PORT, [1; 32]).expect("settings");
        server.listen(true);
        Self {
            now: SECOND,
            config,
            server,
            workers: BTreeMap::new(),
            detaches: true,
            clients: Vec::new(),
            flying: BTreeMap::new(),
            sent: 0,
            story: Vec::new(),
            last: (server_address(), Bytes::new()),
            source: None,
            lost: Box::new(|_, _| false),
            hides_restarts: false,
        }
    }

    /// Adds a client at host `host` with `homes` addresses, which connects to the server.
    fn connect(&mut self, host: u8, homes: u8) -> (usize, AssociationId) {
        self.connect_from(host, homes, CLIENT_PORT)
    }

    fn connect_from(&mut self, host: u8, homes: u8, port: u16) -> (usize, AssociationId) {
        self.connect_after(host, homes, port, |_| {})
    }

    /// Like [`Self::connect_from`]; `prepare` is called before the first packet.
    fn connect_after(
        &mut self,
        host: u8,
        homes: u8,
        port: u16,
        prepare: impl FnOnce(&mut Association),
    ) -> (usize, AssociationId) {
        let config = (self.config.clone())
            .with(|it| it.addresses = (0..homes).map(|home| address(host, home)).collect());
        let seed = [self.clients.len() as u8 + 100; 32];
        let mut client = Endpoint::new(config, port, seed).expect("settings");
        let id = client
            .connect(self.now, &[server_address()], SERVER_PORT)
            .expect("an attempt");
        prepare(client.association_mut(id).expect("begun"));
        self.clients.push((host, client));
        let number = self.clients.len() - 1;
        self.drain();
        (number, id)
    }

    fn up(&mut self, host: u8, homes: u8) -> (usize, AssociationId) {
        let (number, id) = self.connect(host, homes);
        self.run_for(SECOND);
        assert_eq!(self.state(number, id), Some(AssociationState::Established));
        (number, id)
    }

    fn state(&self, client: usize, id: AssociationId) -> Option<AssociationState> {
        self.clients[client].1.association(id).map(|it| it.state())
    }

    fn send(&mut self, client: usize, id: AssociationId, text: String) {
        let association = self.clients[client].1.association_mut(id).expect("known");
        association
            .send(self.now, text.into(), &SendOptions::new())
            .expect("room");
        self.drain();
    }

    fn read(&mut self, client: usize, id: AssociationId) -> Vec<String> {
        let association = self.clients[client].1.association_mut(id).expect("known");
        let messages = std::iter::from_fn(|| association.poll_output(Interest::MESSAGES));
        let text = |output| match output {
            Output::Message(it) => String::from_utf8_lossy(&it.payload.into_bytes()).into_owned(),
            other => format!("{other:?}"),
        };
        let all = messages.map(text).collect();
        self.drain();
        all
    }

    fn fly(&mut self, from_server: bool, mut path: Path, packet: Bytes) {
        if let Some(source) = self.source.filter(|_| !from_server) {
            path.local = source;
        }
        if from_server {
            self.last = (path.remote, packet.clone());
        }
        let chunks = describe(&packet);
        let to = match from_server {
            false => To::Server,
            // The newest client with this address and port, because it has replaced earlier
            // clients.
            true => To::Client(
                self.clients
                    .iter()
                    .rposition(|(host, client)| {
                        client.port() == u16::from_be_bytes([packet[2], packet[3]])
                            && (0..4).any(|home| address(*host, home) == path.remote)
                    })
                    .expect("a client"),
            ),
        };
        let side = if from_server { "<-" } else { "->" };
        let lost = (self.lost)(&chunks, path);
        self.story.push(format!(
            "{side} {chunks}{}",
            if lost { " (lost)" } else { "" }
        ));
        if !lost {
            self.sent += 1;
            self.flying
                .insert((self.now + DELAY, self.sent), (to, path.reversed(), packet));
        }
    }

    /// Sends a command to an association, and processes its report.
    fn command(&mut self, id: AssociationId, command: Command) {
        let worker = self.workers.get_mut(&id).expect("detached");
        let report = worker.call(self.now, command);
        let hidden = self.hides_restarts && report.restarted;
        for event in report.events.into_iter().filter(|_| !hidden) {
            worker.is_closed |= event.is_closed();
            self.server.handle_endpoint_event(id, event);
        }
        for (path, packet) in report.packets {
            self.fly(true, path, packet);
        }
    }

    fn drain(&mut self) {
        let mut out = BytesMut::new();
        loop {
            let mut quiet = true;
            for number in 0..self.clients.len() {
                while let Some(transmit) = self.clients[number].1.poll_transmit(self.now, &mut out)
                {
                    self.fly(false, transmit.path, out.split().freeze());
                }
            }
            while let Some((id, event)) = self.server.poll_association_event() {
                self.command(id, Command::Event(event));
                quiet = false;
            }
            while let Some(transmit) = self.server.poll_transmit(self.now, &mut out) {
                self.fly(true, transmit.path, out.split().freeze());
                quiet = false;
            }
            let ready = self
                .server
                .poll_ready()
                .map(|(id, it)| (id, it.state() == AssociationState::Established));
            if let Some((id, established)) = ready {
                quiet = false;
                if established && self.detaches {
                    let association = self.server.detach(id).expect("established");
                    self.workers.insert(id, Worker::new(association));
                    self.command(id, Command::Timeout);
                }
            }
            if quiet {
                return;
            }
        }
    }

    fn run_for(&mut self, time: Nanos) {
        let until = self.now + time;
        for _ in 0..MAX_STEPS {
            let arrival = self.flying.keys().next().map(|it| it.0);
            let timeouts = self.clients.iter().filter_map(|(_, it)| it.poll_timeout());
            let workers = self.workers.values().filter(|it| !it.is_closed);
            let all = timeouts
                .chain(workers.filter_map(|it| it.deadline))
                .chain(arrival);
            let next = all.chain(self.server.poll_timeout()).min();
            let Some(next) = next.filter(|&it| it <= until) else {
                self.now = until;
                return;
            };
            self.now = self.now.max(next);
            let due = |at: Option<Nanos>| at.is_some_and(|at| at <= next);
            if arrival == Some(next) {
                let (_, (to, path, packet)) = self.flying.pop_first().expect("one");
                let host = match to {
                    To::Server => &mut self.server,
                    To::Client(number) => &mut self.clients[number].1,
                };
                host.handle_datagram(self.now, path, Ecn::NotEct, packet);
            }
            let clients = self.clients.iter_mut().map(|it| &mut it.1);
            for host in clients.chain([&mut self.server]) {
                if due(host.poll_timeout()) {
                    host.handle_timeout(self.now);
                }
            }
            let waiting = self
                .workers
                .iter()
                .filter(|(_, it)| !it.is_closed && due(it.deadline));
            let waiting: Vec<_> = waiting.map(|it| *it.0).collect();
            for id in waiting {
                self.command(id, Command::Timeout);
            }
            self.drain();
        }
        panic!("a timer expires again and again");
    }

    fn only_worker(&mut self) -> &mut Worker {
        assert_eq!(self.workers.len(), 1);
        self.workers.values_mut().next().expect("one")
    }
}

fn numbers(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|it| it.to_string()).collect()
}

/// Every seventh packet is lost, so that timers and SACKs of the association are tested, too.
#[test]
fn messages_are_echoed_by_an_association_on_another_thread() {
    let mut net = Net::new();
    let (client, id) = net.up(2, 1);
    let mut count = 0;
    net.lost = Box::new(move |_, _| {
        count += 1;
        count % 7 == 0
    });
    let all = numbers(0..60);
    for text in &all {
        net.send(client, id, text.clone());
        net.run_for(5 * MILLISECOND);
    }
    net.run_for(60 * SECOND);
    assert_eq!(net.only_worker().output, all);
    assert_eq!(net.read(client, id), all);
    assert!(net.story.iter().any(|it| it.contains("DATA (lost)")));
    assert_eq!(
        net.server.associations().count(),
        0,
        "it is not the endpoint's"
    );
}

/// The endpoint forgets a closed association, so its peer can connect again.
#[test]
fn a_closed_association_leaves_its_place() {
    let mut net = Net::new();
    net.server.set_max_associations(1);
    let (client, id) = net.up(2, 1);
    let now = net.now;
    let association = net.clients[client].1.association_mut(id).expect("up");
    association.shutdown(now, None).expect("open");
    net.drain();
    net.run_for(SECOND);
    assert_eq!(net.state(client, id), Some(AssociationState::Closed));
    assert_eq!(net.only_worker().output, ["closed Shutdown"]);
    assert!(net.only_worker().is_closed);
    let cookie = net
        .story
        .iter()
        .filter(|it| it.contains("COOKIE ECHO"))
        .count();
    net.workers.clear();
    let (client, id) = net.up(2, 1);
    net.send(client, id, "again".into());
    net.run_for(SECOND);
    assert_eq!(net.read(client, id), ["again"]);
    let cookies = net
        .story
        .iter()
        .filter(|it| it.contains("COOKIE ECHO"))
        .count();
    assert_eq!(cookies, cookie + 1);
}

#[test]
fn an_aborted_association_sends_its_last_packet() {
    let mut net = Net::new();
    let (client, id) = net.up(2, 1);
    let worker = *net.workers.keys().next().expect("one");
    net.command(worker, Command::Abort);
    net.run_for(SECOND);
    assert_eq!(net.state(client, id), Some(AssociationState::Closed));
    assert_eq!(net.story.last().map(String::as_str), Some("<- ABORT"));
    assert!(net.only_worker().is_closed);
}

/// RFC 9260 §5.2.4.1, action A: the endpoint answers the INIT, and the association processes the
/// cookie.
#[test]
fn the_peer_of_a_detached_association_restarts() {
    let mut net = Net::new();
    net.up(2, 1);
    let (client, id) = net.up(2, 1);
    assert_eq!(net.only_worker().output, ["restarted"]);
    net.send(client, id, "new".into());
    net.run_for(SECOND);
    assert_eq!(net.read(client, id), ["new"]);
    // The tag of the association has changed, and a further restart uses the new tag.
    net.up(2, 1);
    assert_eq!(net.only_worker().output, ["restarted", "new", "restarted"]);
}

#[test]
fn a_lost_cookie_ack_is_sent_again() {
    let mut net = Net::new();
    let mut left = 1;
    net.lost = Box::new(move |chunks, _| {
        let lost = chunks.contains("COOKIE ACK") && left > 0;
        left -= i32::from(lost);
        lost
    });
    let (client, id) = net.connect(2, 1);
    net.run_for(500 * MILLISECOND);
    assert_eq!(net.workers.len(), 1, "established at the server");
    assert_eq!(net.state(client, id), Some(AssociationState::CookieEchoed));
    net.run_for(2 * SECOND);
    assert_eq!(net.state(client, id), Some(AssociationState::Established));
    assert_eq!(net.only_worker().output, [""; 0]);
}

/// RFC 9260 §5.2.6: the cookie of a restart arrives after its lifespan of 60 s.
#[test]
fn a_stale_cookie_is_answered_by_the_endpoint() {
    let mut net = Net::new();
    net.up(2, 1);
    net.lost = Box::new(|chunks, _| chunks.contains("COOKIE ECHO"));
    let (client, id) = net.connect(2, 1);
    net.run_for(SECOND / 2);
    assert_eq!(net.state(client, id), Some(AssociationState::CookieEchoed));
    net.run_for(59 * SECOND);
    net.lost = Box::new(|_, _| false);
    net.run_for(61 * SECOND);
    assert!(
        net.story.iter().any(|it| it == "<- ERROR"),
        "{:?}",
        net.story
    );
    let discarded = &net.only_worker().discarded;
    assert!(
        discarded.contains(&(DiscardReason::StaleCookie, 1)),
        "{discarded:?}"
    );
}

/// The second address is verified after the association was detached. Then all packets come from
/// this address.
#[test]
fn packets_of_an_address_that_was_verified_later_are_forwarded() {
    let mut net = Net::new();
    let (client, id) = net.up(2, 2);
    net.run_for(5 * SECOND);
    net.lost = Box::new(|_, path| [path.local, path.remote].contains(&address(2, 0)));
    net.source = Some(address(2, 1));
    net.send(client, id, "over".into());
    net.run_for(120 * SECOND);
    assert_eq!(net.only_worker().output, ["over"]);
    assert_eq!(net.read(client, id), ["over"]);
}

/// Two of three associations belong to one host. The share of this host is one of three slots.
#[test]
fn a_detached_association_is_displaced() {
    let mut net = Net::new();
    net.server.set_max_associations(3);
    for (host, port) in [(2, 1), (2, 2), (3, 3)] {
        net.connect_from(host, 1, port);
        net.run_for(SECOND);
    }
    assert_eq!(net.workers.len(), 3);
    let (client, id) = net.up(4, 1);
    assert_eq!(net.state(client, id), Some(AssociationState::Established));
    let closed: Vec<_> = net.workers.values().filter(|it| it.is_closed).collect();
    assert_eq!(closed.len(), 1);
    assert_eq!(
        closed[0].output,
        [format!("closed {:?}", CloseReason::Displaced)]
    );
}

#[test]
fn associations_that_cannot_be_detached_give_an_error() {
    let mut net = Net::new();
    net.detaches = false;
    let (client, id) = net.connect(2, 1);
    let early = net.clients[client].1.detach(id).map(|it| it.id());
    assert_eq!(early, Err(DetachError::NotEstablished));
    net.run_for(SECOND);
    let client = &mut net.clients[client].1;
    assert_eq!(client.detach(id).map(|it| it.id()), Ok(id));
    assert_eq!(
        client.detach(id).map(|it| it.id()),
        Err(DetachError::Unknown)
    );
    assert!(client.association(id).is_none());
    assert!(
        client
            .connect(net.now, &[server_address()], SERVER_PORT)
            .is_err(),
        "it exists"
    );
}

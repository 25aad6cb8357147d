//! Peer program with this stack.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_interop::extension::Extension;
use anabranch_interop::workload::{Arguments, Checker, MAX_MESSAGE, Plan, Received, STREAMS};
use anabranch_net::sctp::{Authentication, ChunkTypes};
use anabranch_net::{
    AddressChange, AddressChangeOutcome, Association, AssociationError, Carrier, Config, Endpoint,
    Event, PathState, Peer, ReconfigOutcome, Reconfiguration, SendOptions, StreamDirection,
};
use bytes::Bytes;
use tokio::sync::Notify;
use tokio::sync::watch::{Receiver, Sender};

fn addresses(text: &str) -> Result<Vec<IpAddr>, String> {
    let one = |part: &str| {
        part.parse()
            .map_err(|_| format!("not an IP address: {part}"))
    };
    text.split(',').map(one).collect()
}

fn config(arguments: &Arguments) -> Result<Config, String> {
    let (port, peer_port) = (
        arguments.number("local-udp")?,
        arguments.number("remote-udp")?,
    );
    let carrier = match arguments.text("transport") {
        "encap" => Carrier::Encapsulated { port, peer_port },
        "plain" => Carrier::Udp { port, peer_port },
        "raw" => Carrier::Ip,
        other => {
            return Err(format!(
                "transport {other}: this peer has encap, plain and raw"
            ));
        }
    };
    let port = arguments.number("port")?;
    let local = addresses(arguments.text("local"))?;
    let mut config = Config::default().with(|it| {
        it.port = port;
        it.carrier = carrier;
        it.addresses = local;
        it.accept = !arguments.connects;
        it.max_message_size = MAX_MESSAGE as usize;
    });
    config.sctp.outbound_streams = STREAMS;
    // The buffers are as large as those of the other peers, with one exception: the accepting
    // side's receive buffer is smaller than the largest messages, which are therefore delivered in
    // parts. A capture of few messages has the usual buffer, because tshark would report the closed
    // window.
    let bulk = arguments.number::<usize>("size")? > 0;
    let many = arguments.number::<u32>("messages")? > 250;
    let small = !arguments.connects && !bulk && many;
    config.sctp.receive_buffer = if small { MAX_MESSAGE / 2 } else { 2 << 20 };
    config.sctp.send_buffer = 2 << 20;
    config.sctp.minimal_init = arguments.number::<u8>("minimal-init")? == 1;
    match arguments.number::<u64>("rto-min")? {
        0 => (),
        ms => {
            config.sctp.rto_min = ms * 1_000_000;
            config.sctp.rto_max = 10_000_000_000;
        }
    }
    match arguments.number("max-retrans")? {
        0 => (),
        most => config.sctp.path_max_retrans = most,
    }
    match arguments.extension()? {
        Extension::None => (),
        Extension::Interleaving => config.sctp.interleaving = true,
        Extension::Partial => config.sctp.partial_reliability = true,
        Extension::Resets => config.sctp.reconfiguration = true,
        Extension::Authentication => {
            config.sctp.authentication = Authentication::On;
            config.sctp.authenticated_chunks = Some(ChunkTypes::of(&[0]));
        }
        Extension::Addresses => {
            config.sctp.authentication = Authentication::On;
            config.sctp.address_changes = true;
        }
    }
    if holds(arguments)? && arguments.extension()? == Extension::None {
        // A path that fails when everything is acknowledged must be detected quickly as well.
        config.sctp.heartbeat_interval = Some(500_000_000);
    }
    Ok(config)
}

/// Whether the last message is withheld until [`watch`] has seen the event of the case.
fn holds(arguments: &Arguments) -> Result<bool, String> {
    Ok(arguments.number::<u8>("hold")? == 1)
}

async fn associate(arguments: &Arguments, endpoint: &Endpoint) -> Result<Association, String> {
    println!("ready");
    let association = match arguments.connects {
        true => {
            let peer = Peer::new(
                addresses(arguments.text("remote"))?,
                arguments.number("port")?,
            );
            endpoint
                .connect(peer)
                .await
                .map_err(|error| error.to_string())?
        }
        false => endpoint.accept().await.map_err(|error| error.to_string())?,
    };
    println!("established");
    let extension = arguments.extension()?;
    let spoken = match extension {
        Extension::None => false,
        Extension::Interleaving => association.negotiated().interleaving,
        Extension::Partial => association.negotiated().partial_reliability,
        Extension::Resets => association.negotiated().reconfiguration,
        Extension::Authentication => association.negotiated().authentication,
        Extension::Addresses => association.negotiated().address_changes,
    };
    if spoken {
        println!("speaks {extension}");
    } else if extension != Extension::None {
        return Err(format!("the peer does not speak {extension}"));
    }
    Ok(association)
}

/// The address change of this peer, which happens after half of the messages.
struct Move {
    from: IpAddr,
    to: IpAddr,
    /// All changes are in a single request; if false, each change is requested after the previous
    /// one is accepted.
    at_once: bool,
    /// The first address is kept until all data of the peer has arrived; it is removed before the
    /// last message is sent.
    leaves_late: bool,
    /// Number of address changes that the peer has accepted.
    settled: Receiver<usize>,
    /// Number of address changes requested so far.
    asked_for: usize,
}

impl Move {
    /// Reads the address change from the command line; `settled` counts the changes that the peer
    /// has accepted.
    fn of(arguments: &Arguments, settled: Receiver<usize>) -> Result<Option<Self>, String> {
        let to = match arguments.text("moves-to") {
            "" => return Ok(None),
            to => addresses(to)?[0],
        };
        Ok(Some(Self {
            from: addresses(arguments.text("local"))?[0],
            to,
            at_once: arguments.number::<u8>("at-once")? == 1,
            leaves_late: arguments.number::<u8>("leaves-late")? == 1,
            settled,
            asked_for: 0,
        }))
    }

    /// Requests the address changes; called after half of the messages. With `leaves_late`, removal
    /// is left to [`leave`](Self::leave).
    async fn make(&mut self, association: &Association) -> Result<(), String> {
        let changes = [
            AddressChange::Add(self.to),
            AddressChange::PeerPrimary(self.to),
            AddressChange::Remove(self.from),
        ];
        let now = if self.leaves_late { 2 } else { changes.len() };
        let together = if self.at_once { now } else { 1 };
        for changes in changes[..now].chunks(together) {
            self.change(association, changes).await?;
        }
        Ok(())
    }

    /// Removes the first address with `leaves_late`; called before the last message is sent.
    async fn leave(&mut self, association: &Association) -> Result<(), String> {
        if self.leaves_late {
            let leaves = [AddressChange::Remove(self.from)];
            self.change(association, &leaves).await?;
        }
        println!("moved");
        Ok(())
    }

    async fn change(
        &mut self,
        association: &Association,
        changes: &[AddressChange],
    ) -> Result<(), String> {
        let asked = association.change_addresses(changes);
        asked.map_err(|error| format!("{changes:?}: {error}"))?;
        self.asked_for += changes.len();
        let all = self.asked_for;
        let agreed = self.settled.wait_for(|count| *count == all).await;
        agreed.map_err(|_| "it ended while it moved".to_owned())?;
        Ok(())
    }
}

/// Conditions for sending the last message.
struct Hold {
    /// Notified when the event for which the case waits has occurred: a path has failed, or the
    /// peer has removed its first address or reset its streams.
    done: Option<Arc<Notify>>,
    /// Becomes true when all messages of the peer have arrived; `None`: this is not a condition.
    all_came: Option<Receiver<bool>>,
}

/// Delay after which the peer has certainly received the SACK of all its data, even if one SACK is
/// lost: many times its minimum RTO.
const UNTIL_ALL_IS_ACKNOWLEDGED: Duration = Duration::from_secs(2);

impl Hold {
    async fn wait(&mut self) -> Result<(), String> {
        if let Some(done) = &self.done {
            done.notified().await;
        }
        if let Some(all_came) = &mut self.all_came {
            let came = all_came.wait_for(|all| *all).await;
            came.map_err(|_| "it ended before all had come".to_owned())?;
            tokio::time::sleep(UNTIL_ALL_IS_ACKNOWLEDGED).await;
        }
        Ok(())
    }
}

/// Sends all messages. The last one is sent when `hold` permits it.
async fn send(
    association: Arc<Association>,
    seed: u64,
    count: u32,
    mut hold: Hold,
    mut moves: Option<Move>,
    named: Vec<u16>,
    extension: Extension,
) -> Result<(), String> {
    for message in Plan::new(seed, count) {
        if let Some(moves) = moves.as_mut().filter(|_| message.index == count / 2) {
            moves.make(&association).await?;
        }
        if extension == Extension::Resets && message.index == count / 2 {
            let reset = association.reconfigure(&Reconfiguration::reset_outgoing(named.clone()));
            reset.map_err(|error| format!("reset: {error}"))?;
        }
        let gives_up = extension == Extension::Partial && message.is_expendable();
        if message.index + 1 == count {
            hold.wait().await?;
            if let Some(moves) = &mut moves {
                moves.leave(&association).await?;
            }
        }
        let options = SendOptions::default()
            .with_ppid(message.ppid())
            .with_unordered(message.unordered)
            .with_max_retransmits(gives_up.then_some(0));
        let sent = association
            .send(message.compose(), options.with_stream(Some(message.stream)))
            .await;
        sent.map_err(|error| format!("send of message {}: {error}", message.index))?;
    }
    println!("sent messages={count}");
    Ok(())
}

/// Prints events other than messages. Returns the number of abandoned messages; any other loss is
/// an error. Notifies `done` when a path fails, or the peer removes an address or resets streams.
/// Passes the number of address changes that the peer has accepted to the channel `told`.
async fn watch(association: Arc<Association>, done: Arc<Notify>, told: Sender<usize>) -> u32 {
    let mut given_up = 0;
    while let Some(event) = association.next_event().await {
        match &event {
            Event::MessageAbandoned(message) => {
                given_up += 1;
                let stream = message.stream;
                if stream.is_none_or(|stream| stream % 2 == 0) {
                    println!("error: given up on {stream:?}");
                }
                continue;
            }
            Event::StreamsReset {
                direction: StreamDirection::Outgoing,
                outcome: ReconfigOutcome::Performed,
                ..
            } => println!("reset outgoing"),
            Event::StreamsReset {
                direction: StreamDirection::Incoming,
                outcome: ReconfigOutcome::Performed,
                ..
            } => {
                println!("reset incoming");
                done.notify_one();
            }
            Event::PeerAddressAdded { address, .. } => {
                println!("peer address added: {address}");
            }
            Event::PeerAddressRemoved { address, .. } => {
                println!("peer address removed: {address}");
                done.notify_one();
            }
            Event::AddressChanged {
                outcome: AddressChangeOutcome::Performed,
                ..
            } => told.send_modify(|count| *count += 1),
            Event::AddressChanged { .. } => println!("error: {event:?}"),
            _ => println!("event: {event:?}"),
        }
        if let Event::PathChanged {
            state: PathState::Inactive,
            ..
        } = event
        {
            done.notify_one();
        }
        if let Event::Restarted { .. } | Event::SendFailed { .. } = event {
            println!("error: {event:?}");
        }
        if let Event::Missed { events } = event {
            given_up += events as u32; // almost all events are of this kind
        }
    }
    given_up
}

/// Number of messages that one call passes to the stack or takes from it in a throughput test.
const TOGETHER: usize = 64;

/// Throughput test until the association ends: sends messages of one size for a fixed time, or
/// counts the received messages.
#[allow(clippy::disallowed_methods)] // a throughput test needs a clock
async fn flood(arguments: &Arguments, endpoint: &Endpoint, size: usize) -> Result<(), String> {
    let association = associate(arguments, endpoint).await?;
    let lost = |error: AssociationError| error.to_string();
    if arguments.connects {
        let message = Bytes::from(vec![0; size]);
        let mut messages = VecDeque::new();
        let end = Instant::now() + Duration::from_secs(arguments.number("seconds")?);
        while Instant::now() < end {
            messages.extend(std::iter::repeat_n(&message, TOGETHER).cloned());
            let sent = association.send_all(&mut messages, SendOptions::default());
            sent.await.map_err(|error| error.to_string())?;
        }
        return association.shutdown().await.map_err(lost);
    }
    let (mut messages, mut bytes, mut span) = (0, 0, None);
    let mut received = Vec::new();
    while association
        .recv_many(&mut received, TOGETHER)
        .await
        .map_err(lost)?
        > 0
    {
        let now = Instant::now();
        let (first, _) = span.unwrap_or((now, now));
        span = Some((first, now));
        messages += received.len();
        bytes += received.drain(..).map(|it| it.bytes.len()).sum::<usize>();
    }
    let seconds = span.map_or(0.0, |(first, last)| (last - first).as_secs_f64());
    println!("rate messages={messages} bytes={bytes} seconds={seconds:.6}");
    Ok(())
}

async fn run(arguments: &Arguments, endpoint: &Endpoint) -> Result<(), String> {
    let (seed, count) = (arguments.number("seed")?, arguments.number("messages")?);
    let association = Arc::new(associate(arguments, endpoint).await?);
    let done = Arc::new(Notify::new());
    let (told, settled) = tokio::sync::watch::channel(0);
    let (came, all_came) = tokio::sync::watch::channel(false);
    let watching = tokio::spawn(watch(association.clone(), done.clone(), told));
    let extension = arguments.extension()?;
    let moves = Move::of(arguments, settled)?;
    let late = moves.as_ref().is_some_and(|it| it.leaves_late);
    let hold = Hold {
        done: holds(arguments)?.then_some(done),
        all_came: late.then_some(all_came),
    };
    // If streams are named, stream 0 is left out, because a complete list means the same as an
    // empty one.
    let names = arguments.number::<u8>("names-streams")? == 1;
    let named = (1..STREAMS).filter(|_| names).collect();
    let sender = send(
        association.clone(),
        seed,
        count,
        hold,
        moves,
        named,
        extension,
    );
    let sender = tokio::spawn(sender);
    let mut checker = Checker::of(arguments)?;
    let mut sender = Some(sender);
    loop {
        came.send_replace(checker.complete());
        if arguments.connects
            && checker.complete()
            && let Some(sender) = sender.take()
        {
            sender.await.map_err(|error| error.to_string())??;
            association.start_shutdown(None);
        }
        let received = association.recv().await;
        let after = |error: &dyn std::fmt::Display| {
            format!("after {} messages: {error}", checker.total().0)
        };
        let Some(message) = received.map_err(|error| after(&error))? else {
            break;
        };
        checker.check(Received {
            stream: message.stream,
            ppid: message.ppid,
            unordered: Some(message.unordered),
            data: &message.bytes,
        })?;
    }
    checker.conclude();
    if extension == Extension::Partial {
        let given_up = watching.await.map_err(|error| error.to_string())?;
        println!("abandoned messages={given_up}");
    }
    match checker.complete() {
        true => Ok(()),
        false => Err(format!(
            "over after {} messages of {count}",
            checker.total().0
        )),
    }
}

/// Runs the case. Does not return on success, because the stack may still have to respond to
/// packets for the closed association.
async fn whole() -> Result<(), String> {
    let arguments = Arguments::from_command_line()?;
    let endpoint = Endpoint::bind(config(&arguments)?).map_err(|error| error.to_string())?;
    match arguments.number("size")? {
        0 => run(&arguments, &endpoint).await?,
        size => flood(&arguments, &endpoint, size).await?,
    }
    println!("closed");
    std::future::pending().await
}

#[tokio::main]
async fn main() {
    // The case runs as a task, on the thread of the driver. If `main` awaited the case itself, it
    // would run on another thread than the driver, and each message would switch threads.
    let ended = match tokio::spawn(whole()).await {
        Ok(ended) => ended,
        Err(panic) => Err(panic.to_string()),
    };
    if let Err(error) = ended {
        println!("error: {error}");
        std::process::exit(1);
    }
}

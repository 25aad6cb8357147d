//! `anabranch serve`: the services echo, sink and source.

use anabranch_net::{Association, AssociationError, CloseReason, SendOptions};
use anabranch_scenario::quantity::Size;
use anabranch_settings::counted;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::arguments::{Serve, Service};
use super::bind::{Bound, Ports};
use super::capture::SendMarker;
use super::connection::{Connection, Part};
use super::control_protocol::{ControlMessage, PPID, ReceiverCounts, Sent, SourceParameters};
use super::metrics::Metrics;
use super::print::Printer;
use super::rate_limiter::RateLimiter;
use super::worker_threads::WorkerThreads;
use super::{Interrupts, SHUTDOWN_TIMEOUT, all_acknowledged, in_brackets};
use crate::failure::Failure;

/// Transfer statistics of an association, without control messages.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    messages: u64,
    bytes: u64,
}

impl Count {
    fn add(&mut self, len: usize, ends: bool) {
        self.messages += u64::from(ends);
        self.bytes += len as u64;
    }
}

/// Default message size of the service source.
const MESSAGE: Size = Size(1 << 10);

/// Refuses options about sending if the service does not send.
fn check(service: Service, arguments: &Serve) -> Result<(), Failure> {
    let of_source = [
        ("--message-size", arguments.message_size.is_some()),
        ("--bytes", arguments.bytes.is_some()),
        ("--unordered", arguments.unordered),
        ("--send-first", arguments.send_first),
    ];
    let service = match service {
        Service::Source => return Ok(()),
        Service::Echo => "echo",
        Service::Sink => "sink",
    };
    match of_source.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::Usage(format!(
            "{option}: found with the service {service}; allowed with source"
        ))),
    }
}

/// Runs the server until it is interrupted.
pub async fn serve(service: Service, arguments: Serve) -> Result<(), Failure> {
    check(service, &arguments)?;
    if let Some(size) = arguments.message_size {
        arguments.wire.certificates.check_message_size(size)?;
    }
    #[cfg(not(feature = "metrics"))]
    if arguments.metrics.is_some() {
        return Err(Failure::absent("anabranch serve --metrics", "metrics"));
    }
    let mut interrupts = Interrupts::new();
    let ports = match service {
        Service::Echo => Ports::Echoed(&arguments.port),
        Service::Sink | Service::Source => Ports::Served(&arguments.port),
    };
    let workers = WorkerThreads::start(arguments.threads)?;
    let most = Some(arguments.max_associations);
    let bound = arguments.wire.bind_for(ports, None, workers, most)?;
    let (printer, written) = Printer::stdout();
    // Printed once the server listens, so that a script can wait for this line.
    printer.line(if arguments.json {
        bound.place_json().to_string()
    } else {
        format!("listening: {}", bound.place())
    })?;
    let metrics = start_metrics(&arguments, &bound, &printer).await?;
    let job = SourceParameters {
        message: arguments.message_size.unwrap_or(MESSAGE).0,
        bytes: arguments.bytes.map(|bytes| bytes.0),
        unordered: arguments.unordered,
        rate: None,
    };
    let mut accepted = accept(&bound);
    let several = bound.ports > 1;
    bound.moves.start(&bound.endpoints);
    let mut failed = None;
    loop {
        let next = tokio::select! {
            next = accepted.recv() => next,
            () = interrupts.next() => break,
        };
        let Some(((endpoint, port), association)) = next else {
            return Err(Failure::Net("the endpoint's task is gone".to_owned()));
        };
        let peer = association.status().map(|status| status.primary.address);
        let from = peer.map_or_else(|| "somebody".to_owned(), |address| address.to_string());
        let at_once = arguments.send_first;
        bound.moves.print_outcomes(&association);
        let log = Log {
            from,
            port,
            several,
            json: arguments.json,
            printer: printer.clone(),
            sends: bound.watched.sends(endpoint, association.id()),
        };
        let metrics = metrics.clone();
        let secure = bound.secure.clone();
        let serving = bound.workers.spawn(endpoint / bound.ports, async move {
            let number = metrics.as_ref().map(|it| it.begin(&association));
            let lost = match Connection::server(association, secure).await {
                Ok(connection) => attend(log, connection, service, job, at_once).await,
                Err(error) => {
                    let none =
                        json!({ "messages": 0, "bytes": 0, "retransmits": 0, "error": error });
                    log.say("end", none, std::slice::from_ref(&error));
                    Some(error)
                }
            };
            if let (Some(metrics), Some(number)) = (metrics, number) {
                metrics.end(number, lost.is_some());
            }
            lost
        });
        if arguments.once {
            tokio::select! {
                result = serving => failed = result.ok().flatten(),
                () = interrupts.next() => {}
            }
            break;
        }
    }
    end(&bound).await;
    drop(printer);
    // Limited in time: a reader that is active has received all lines by then, and a blocked one
    // must not delay the exit.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, written.wait()).await;
    let receives = !matches!(service, Service::Source);
    bound
        .watched
        .finish(&bound.sctp.transport, receives, failed)
}

/// Starts the metrics server if requested, and prints its address.
async fn start_metrics(
    arguments: &Serve,
    bound: &Bound,
    printer: &Printer,
) -> Result<Option<Metrics>, Failure> {
    let Some(at) = arguments.metrics else {
        return Ok(None);
    };
    let metrics = Metrics::default();
    let endpoints = bound.endpoints.clone();
    let at = metrics.serve(at, endpoints, bound.ports).await?;
    let url = format!("http://{at}/metrics");
    printer.line(if arguments.json {
        json!({ "event": "metrics", "url": url }).to_string()
    } else {
        format!("metrics: {url}")
    })?;
    Ok(Some(metrics))
}

/// An accepted association, with the number and port of its endpoint.
type Accepted = ((usize, u16), Association);

/// Channel of the associations that any endpoint accepts.
fn accept(bound: &Bound) -> tokio::sync::mpsc::Receiver<Accepted> {
    let (sender, accepted) = tokio::sync::mpsc::channel(1);
    for (index, endpoint) in bound.endpoints.iter().enumerate() {
        let (endpoint, sender) = (endpoint.clone(), sender.clone());
        bound.workers.spawn(index / bound.ports, async move {
            while let Ok(association) = endpoint.accept().await {
                let at = (index, endpoint.port());
                if sender.send((at, association)).await.is_err() {
                    break;
                }
            }
        });
    }
    accepted
}

/// Aborts all associations, so that peers need not wait for their timers.
async fn end(bound: &Bound) {
    for endpoint in &bound.endpoints {
        endpoint.abort("the server ends");
    }
    let gone = async {
        for endpoint in &bound.endpoints {
            endpoint.wait_idle().await;
        }
    };
    // Limited in time, because the system may not accept the packets.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, gone).await;
}

/// Prints the output about one association.
struct Log {
    from: String,
    /// The SCTP port of its endpoint; `several` is true if the server has other ports.
    port: u16,
    several: bool,
    json: bool,
    printer: Printer,
    /// Set when a sink is requested to send.
    sends: SendMarker,
}

impl Log {
    /// Prints the lines, or one JSON object. Errors are ignored, because a server should continue
    /// without a reader.
    fn say(&self, event: &str, more: Value, lines: &[String]) {
        if self.json {
            let mut object = json!({ "event": event, "peer": self.from, "port": self.port });
            if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
                object.extend(more);
            }
            let _ = self.printer.line(object.to_string());
            return;
        }
        for line in lines {
            let _ = self.printer.line(if self.several {
                format!("{} at {}: {line}", self.from, self.port)
            } else {
                format!("{}: {line}", self.from)
            });
        }
    }
}

/// Serves one association, and prints its outcome. Returns the reason if it did not end gracefully.
async fn attend(
    log: Log,
    association: Connection,
    service: Service,
    job: SourceParameters,
    at_once: bool,
) -> Option<String> {
    let extensions = association.association().negotiated().names();
    let mut up = format!("association up{}", in_brackets(&extensions));
    let mut more = json!({ "extensions": extensions });
    if let Some(identity) = association.peer_identity() {
        up = format!("{up}, peer {identity}");
        more["identity"] = identity.to_string().into();
    }
    log.say("up", more, &[up]);
    let mut count = Count::default();
    let result = match service {
        Service::Sink => sink(&association, &log.sends, &mut count).await,
        Service::Echo => echo(&association, &mut count).await,
        Service::Source => source(&association, job, at_once, &mut count).await,
    };
    let sender = association
        .association()
        .status()
        .map(|status| status.counters.sender);
    let retransmitted = sender.map_or(0, |sender| sender.chunks_retransmitted);
    let lost = result.err();
    let Count { messages, bytes } = count;
    let more = json!({
        "messages": messages,
        "bytes": bytes,
        "retransmits": retransmitted,
        "error": lost,
    });
    let size = Size(bytes);
    let totals = format!(
        "{}, {size}, {} sent again",
        counted(messages, "message"),
        counted(retransmitted, "chunk")
    );
    let end = lost
        .clone()
        .unwrap_or_else(|| "closed gracefully".to_owned());
    log.say("end", more, &[totals, end]);
    lost
}

/// Parses a message as a control message of the client.
fn text_of(part: &Part) -> Option<ControlMessage> {
    let whole = part.ppid == PPID && part.begins && part.ends;
    whole.then(|| ControlMessage::read(&part.bytes)).flatten()
}

/// Runs the service sink: receives data, and reports statistics to the client. If the first message
/// requests it, sends data instead.
async fn sink(
    association: &Connection,
    sends: &SendMarker,
    count: &mut Count,
) -> Result<(), String> {
    let mut first = true;
    let mut between: Option<[Instant; 2]> = None;
    let mut wanted = None;
    while let Some(part) = association.recv_part().await? {
        let first = std::mem::take(&mut first);
        match text_of(&part) {
            Some(ControlMessage::Source(job)) if first => {
                sends.tell();
                return send(association, job, count).await;
            }
            Some(ControlMessage::Count { messages }) => wanted = Some(messages),
            _ => {
                let now = Instant::now();
                between = Some([between.map_or(now, |[begin, _]| begin), now]);
                count.add(part.bytes.len(), part.ends);
            }
        }
        if wanted.is_some_and(|wanted| count.messages >= wanted) {
            wanted = None;
            let time = between.map(|[begin, end]| end.duration_since(begin));
            let received = ReceiverCounts {
                messages: count.messages,
                bytes: count.bytes,
                nanoseconds: time.map_or(0, |time| time.as_nanos() as u64),
            };
            say(association, ControlMessage::Received(received)).await;
        }
    }
    Ok(())
}

/// Sends a control message to the client.
async fn say(association: &Connection, text: ControlMessage) {
    let options = SendOptions::default().with_ppid(PPID).reliable();
    // Fails if the client is closing, and then needs no answer.
    let _ = association
        .send(text.write(), options.with_immediate(true))
        .await;
}

/// Sends every message back on its stream.
async fn echo(association: &Connection, count: &mut Count) -> Result<(), String> {
    // The client may accept fewer streams than it requested for its own messages. The stream
    // numbers of replies are therefore taken modulo the number that it accepts.
    let outwards = association
        .association()
        .status()
        .map_or(1, |status| status.outstrms);
    while let Some(message) = association.recv().await? {
        count.add(message.bytes.len(), true);
        let options = SendOptions::default()
            .with_ppid(message.ppid)
            .with_unordered(message.unordered);
        let stream = message.stream % outwards.max(1);
        // Fails if the client is closing.
        if association
            .send(message.bytes, options.with_stream(Some(stream)))
            .await
            .is_err()
        {
            break;
        }
    }
    // Reads and discards messages that arrive while the client is closing.
    while association.recv_part().await?.is_some() {}
    Ok(())
}

/// Runs the service source: sends after the client's first message, with the parameters of that
/// message if it is a request.
async fn source(
    association: &Connection,
    job: SourceParameters,
    at_once: bool,
    count: &mut Count,
) -> Result<(), String> {
    let job = if at_once {
        job
    } else {
        match association.recv_part().await? {
            Some(first) => match text_of(&first) {
                Some(ControlMessage::Source(asked)) => asked,
                _ => job,
            },
            // The client has closed without a request.
            None => return Ok(()),
        }
    };
    send(association, job, count).await
}

/// Sends the messages of a job until the client stops it, and closes.
async fn send(
    association: &Connection,
    job: SourceParameters,
    count: &mut Count,
) -> Result<(), String> {
    let stopped = tokio::select! {
        biased;
        stopped = stop(association) => stopped?,
        fed = feed(association, job, count) => fed,
    };
    match stopped {
        // Waits for the acknowledgements, so that the statistics include the whole job.
        Stopped::No => all_acknowledged(association.association()).await,
        // Cancels unsent messages, because the client does not need the remaining data.
        Stopped::Told | Stopped::Closed => {
            let withdrawn = association.association().cancel_unsent() as u64;
            count.messages -= withdrawn;
            // Only the last message of a job is shorter.
            let most = job.bytes.unwrap_or(u64::MAX);
            count.bytes = most.min(count.messages * job.message);
        }
    }
    if let Some(status) = association.association().status() {
        let sender = status.counters.sender;
        let sent = Sent {
            messages: count.messages,
            bytes: count.bytes,
            retransmitted: sender.chunks_retransmitted,
            timeouts: sender.timeouts,
            cwnd: status.in_use.cwnd,
            srtt: status.in_use.srtt.map(|it| it.as_nanos() as u64),
        };
        say(association, ControlMessage::Sent(sent)).await;
    }
    association.start_shutdown();
    // Reads and discards further messages, because unread data would keep the association open.
    while association.recv_part().await?.is_some() {}
    match association.association().closed().await {
        CloseReason::Shutdown => Ok(()),
        reason => Err(AssociationError(reason).to_string()),
    }
}

/// How the client stopped a job, if it did.
enum Stopped {
    No,
    Told,
    Closed,
}

/// Waits until the client stops the job or closes.
async fn stop(association: &Connection) -> Result<Stopped, String> {
    while let Some(part) = association.recv_part().await? {
        if text_of(&part) == Some(ControlMessage::Stop) {
            return Ok(Stopped::Told);
        }
    }
    Ok(Stopped::Closed)
}

/// Sends the messages of a job until the association accepts no more.
async fn feed(association: &Connection, job: SourceParameters, count: &mut Count) -> Stopped {
    let payload = Bytes::from(vec![0; job.message as usize]);
    let options = SendOptions::default().with_unordered(job.unordered);
    let mut left = job.bytes.unwrap_or(u64::MAX);
    let mut pace = RateLimiter::new(job.rate);
    while left > 0 {
        pace.due(left.min(job.message)).await;
        let piece = payload.slice(..left.min(job.message) as usize);
        let len = piece.len();
        // Fails if the client is closing.
        if association
            .send(piece, options.with_stream(None))
            .await
            .is_err()
        {
            return Stopped::Closed;
        }
        count.add(len, true);
        if job.bytes.is_some() {
            left -= len as u64;
        }
    }
    Stopped::No
}

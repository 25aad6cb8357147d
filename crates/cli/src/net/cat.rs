//! `anabranch cat`: copies standard input to the peer, and received data to standard output.

use std::time::Duration;

use anabranch_net::SendOptions;
use bytes::BytesMut;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::task::JoinHandle;

use super::arguments::Cat;
use super::bind::Ports;
use super::connection::{Connection, SendFailure};
use super::print::Printer;
use super::{Interrupts, SHUTDOWN_TIMEOUT, connect, in_brackets, limit, peer};
use crate::failure::Failure;

/// Time for which a client waits for answers after the end of the input.
const WAIT: Duration = Duration::from_millis(500);

/// Connects, or waits for a peer, and copies in both directions until both have ended.
pub async fn cat(arguments: Cat) -> Result<(), Failure> {
    let (printer, written) = Printer::stderr();
    let result = talk(arguments, &printer).await;
    drop(printer);
    // Limited in time: a reader that is active has received all lines by then, and a blocked one
    // must not delay the exit.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, written.wait()).await;
    result
}

async fn talk(arguments: Cat, log: &Printer) -> Result<(), Failure> {
    // Remarks are discarded if standard error is closed.
    let say = |line: String| drop(log.line(line));
    let certificates = &arguments.wire.certificates;
    certificates.check_message_size(arguments.message_size)?;
    let listens = arguments.listen.map(|port| [port]);
    let named = match &arguments.host {
        Some(host) => Some(peer(host, arguments.port, &arguments.path).await?),
        None => None,
    };
    let ports = match &listens {
        Some(port) => Ports::Served(port),
        None => Ports::Own(arguments.local_port, 1),
    };
    let zone = named.as_ref().and_then(|(_, zone)| *zone);
    let mut bound = arguments.wire.bind(ports, zone)?;
    let association = match (&arguments.host, &named) {
        (Some(host), Some((peer, _))) => {
            let limit = limit(arguments.connect_timeout);
            connect(&mut bound, 0, host, peer, limit).await?
        }
        _ => {
            if arguments.verbose {
                say(format!("listening: {}", bound.place()));
            }
            bound.moves.start(&bound.endpoints);
            let accepted = bound.endpoints[0].accept().await;
            let accepted = accepted.map_err(|error| Failure::Net(error.to_string()))?;
            let secured = Connection::server(accepted, bound.secure.clone()).await;
            secured.map_err(Failure::Net)?
        }
    };
    bound.moves.print_outcomes(association.association());
    if listens.is_none() {
        bound.moves.start(&bound.endpoints);
    }
    if let (true, Some(status)) = (arguments.verbose, association.association().status()) {
        let extensions = in_brackets(&association.association().negotiated().names());
        let identity = association.peer_identity();
        let identity = identity.map_or_else(String::new, |it| format!(", peer {it}"));
        say(format!(
            "{}: association up{extensions}{identity}",
            status.primary.address
        ));
    }
    let mut interrupts = Interrupts::new();
    let result = tokio::select! {
        result = copy(&association, arguments) => result,
        () = interrupts.next() => Err(Failure::Interrupted),
    };
    if result.is_err() {
        // Aborts, so that the peer need not wait for its timers. Has no effect if the association
        // has ended.
        association.association().abort("the other end left");
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, association.association().closed()).await;
    }
    let failed = result.as_ref().err().map(ToString::to_string);
    bound.watched.finish(&bound.sctp.transport, true, failed)?;
    result
}

/// Copies in both directions.
async fn copy(association: &Connection, arguments: Cat) -> Result<(), Failure> {
    let sender = association.clone();
    // With --listen there is no default, because a server cannot know how long the peer will send.
    let usual = arguments.listen.is_none().then_some(WAIT);
    let wait = arguments
        .wait
        .map(|wait| Duration::from_nanos(wait.0))
        .or(usual);
    let (heard, mut hears) = tokio::sync::mpsc::channel(1);
    let sending: JoinHandle<Result<(), Failure>> = tokio::spawn(async move {
        copy_in(&sender, &arguments).await?;
        let Some(wait) = wait else { return Ok(()) };
        // Waits for answers that may still be in flight; each one restarts the wait.
        while let Ok(Some(())) = tokio::time::timeout(wait, hears.recv()).await {}
        sender.start_shutdown();
        Ok(())
    });
    let stop = sending.abort_handle();
    let mut sending = std::pin::pin!(async move { sending.await.unwrap_or(Ok(())) });
    let mut receiving = std::pin::pin!(copy_out(association, &heard));
    let received = tokio::select! {
        received = &mut receiving => received,
        sent = &mut sending => {
            // An error of reading or sending ends the command. At the end of the input, received
            // data is still copied.
            sent?;
            return receiving.await;
        }
    };
    // The peer has closed, so the remaining input cannot be sent.
    stop.abort();
    received
}

/// Sends the input: each line or each read becomes one message.
async fn copy_in(association: &Connection, arguments: &Cat) -> Result<(), Failure> {
    let options = SendOptions::default()
        .with_ppid(arguments.ppid)
        .with_unordered(arguments.unordered);
    let most = arguments.message_size.0 as usize;
    let mut input = BufReader::with_capacity(most, tokio::io::stdin());
    loop {
        let message = if arguments.lines {
            line(&mut input, most).await
        } else {
            piece(&mut input, most).await
        };
        let message = message
            .map_err(|error| Failure::Net(format!("cannot read standard input: {error}")))?;
        if message.is_empty() {
            return Ok(());
        }
        let sent = association
            .send(
                message.freeze(),
                options.with_stream(Some(arguments.stream)),
            )
            .await;
        match sent {
            Ok(()) => {}
            Err(SendFailure::Closing) => return Ok(()),
            Err(SendFailure::Other(error)) => return Err(Failure::Usage(error)),
        }
    }
}

/// The data of one read from the input; empty at the end.
async fn piece(input: &mut (impl AsyncRead + Unpin), most: usize) -> std::io::Result<BytesMut> {
    let mut message = BytesMut::with_capacity(most);
    input.take(most as u64).read_buf(&mut message).await?;
    Ok(message)
}

/// A line of the input with its line break, or its first part if it exceeds the maximum message
/// size; empty at the end.
async fn line(
    input: &mut (impl AsyncBufReadExt + Unpin),
    most: usize,
) -> std::io::Result<BytesMut> {
    let mut message = Vec::new();
    input
        .take(most as u64)
        .read_until(b'\n', &mut message)
        .await?;
    Ok(BytesMut::from(&message[..]))
}

/// Writes received data to standard output, until the association ends.
async fn copy_out(
    association: &Connection,
    heard: &tokio::sync::mpsc::Sender<()>,
) -> Result<(), Failure> {
    let mut output = tokio::io::stdout();
    loop {
        let message = match association.recv().await {
            Ok(Some(message)) => message,
            Ok(None) => return Ok(()),
            Err(lost) => return Err(Failure::Net(lost)),
        };
        // If the channel is full, a notification is pending already, which suffices.
        let _ = heard.try_send(());
        output.write_all(&message.bytes).await?;
        output.flush().await?;
    }
}

//! `anabranch cat`: standard input out, what comes to standard output.

use std::time::Duration;

use anabranch_net::{Association, CloseReason, Lost, SendOptions};
use bytes::BytesMut;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};

use super::arguments::Cat;
use super::peer;
use crate::work::Failure;

/// Connects, or waits for somebody, and copies both ways until both are done.
pub async fn cat(arguments: Cat) -> Result<(), Failure> {
    let bound = arguments.wire.bind(arguments.listen)?;
    let association = match &arguments.host {
        Some(host) => {
            let peer = peer(host, &arguments.path).await?;
            let connected = bound.endpoint.connect(peer).await;
            connected.map_err(|error| Failure::Wire(format!("{host}: {error}")))?
        }
        None => {
            let accepted = bound.endpoint.accept().await;
            accepted.map_err(|error| Failure::Wire(error.to_string()))?
        }
    };
    let sender = association.clone();
    let wait = Duration::from_nanos(arguments.wait.0);
    let (heard, mut hears) = tokio::sync::mpsc::channel(1);
    let sending = tokio::spawn(async move {
        let result = copy_in(&sender, &arguments).await;
        // Answers may still be on their way; each starts the wait anew.
        while let Ok(Some(())) = tokio::time::timeout(wait, hears.recv()).await {}
        sender.begin_shutdown();
        result
    });
    let received = copy_out(&association, &heard).await;
    drop(heard);
    // The peer has closed: what is left of the input has nowhere to go.
    sending.abort();
    let sent = match sending.await {
        Ok(result) => result,
        Err(_) => Ok(()),
    };
    let failed = received.as_ref().err().map(ToString::to_string);
    bound.watched.finish(&bound.sctp.toml, failed)?;
    sent?;
    received
}

/// Sends the input, a message for each line or piece.
async fn copy_in(association: &Association, arguments: &Cat) -> Result<(), Failure> {
    let options = SendOptions {
        ppid: 0,
        unordered: arguments.unordered,
    };
    let most = arguments.message.0 as usize;
    let mut input = BufReader::with_capacity(most, tokio::io::stdin());
    loop {
        let message = if arguments.lines {
            line(&mut input, most).await
        } else {
            piece(&mut input, most).await
        };
        let message = message
            .map_err(|error| Failure::Wire(format!("cannot read standard input: {error}")))?;
        if message.is_empty() {
            return Ok(());
        }
        let sent = association
            .send(arguments.stream, message.freeze(), options)
            .await;
        match sent {
            Ok(()) => {}
            Err(anabranch_net::SendError::Closing) => return Ok(()),
            Err(error) => return Err(Failure::Asked(error.to_string())),
        }
    }
}

/// What one read gives; empty at the end.
async fn piece(input: &mut (impl AsyncRead + Unpin), most: usize) -> std::io::Result<BytesMut> {
    let mut message = BytesMut::with_capacity(most);
    input.take(most as u64).read_buf(&mut message).await?;
    Ok(message)
}

/// A line with its end, or as much of it as fits a message; empty at the end.
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

/// Prints what comes, until the association ends.
async fn copy_out(
    association: &Association,
    heard: &tokio::sync::mpsc::Sender<()>,
) -> Result<(), Failure> {
    let mut output = tokio::io::stdout();
    loop {
        let message = match association.recv().await {
            Ok(Some(message)) => message,
            Ok(None) | Err(Lost(CloseReason::Shutdown)) => return Ok(()),
            Err(lost) => return Err(Failure::Wire(lost.to_string())),
        };
        // One word that something came is enough until it is heard.
        let _ = heard.try_send(());
        output.write_all(&message.bytes).await?;
        output.flush().await?;
    }
}

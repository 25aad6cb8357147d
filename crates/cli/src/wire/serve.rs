//! `anabranch serve`: echo, sink, source.

use std::io::{self, Write};
use std::time::Duration;

use anabranch_lab::spec::quantity::Size;
use anabranch_net::{Association, CloseReason, Lost, SendOptions};
use bytes::Bytes;

use super::arguments::{Serve, Service};
use super::{Bound, interrupted};
use crate::work::Failure;

/// Identifier of the message that asks a source to send (a payload protocol identifier that nobody has registered).
pub const REQUEST: u32 = 0x616e_6172;
/// How long a source waits for a request before it sends as its own options say.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a source is to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Bytes of a message.
    pub message: u64,
    /// Bytes in all; `None`: until the peer closes.
    pub bytes: Option<u64>,
    /// Without order.
    pub unordered: bool,
}

impl Job {
    /// The job as a request says it.
    pub fn to_request(self) -> String {
        let (message, unordered) = (self.message, u8::from(self.unordered));
        let bytes = self.bytes.unwrap_or(0);
        format!("anabranch source 1 message={message} bytes={bytes} unordered={unordered}")
    }

    /// Reads a request; `None` for what is none.
    pub fn of_request(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let rest = text.strip_prefix("anabranch source 1 ")?;
        let value = |key: &str| {
            let mut pairs = rest.split(' ').filter_map(|pair| pair.split_once('='));
            pairs.find(|(name, _)| *name == key)?.1.parse::<u64>().ok()
        };
        let message = value("message")?;
        if !(1..=super::MOST_MESSAGE).contains(&message) {
            return None;
        }
        Some(Self {
            message,
            bytes: value("bytes").filter(|&bytes| bytes > 0),
            unordered: value("unordered")? == 1,
        })
    }
}

/// What was exchanged.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    messages: u64,
    bytes: u64,
}

impl Count {
    fn add(&mut self, len: usize) {
        self.add_part(len, true);
    }

    fn add_part(&mut self, len: usize, ends: bool) {
        self.messages += u64::from(ends);
        self.bytes += len as u64;
    }
}

/// Runs a server.
pub async fn serve(arguments: Serve) -> Result<(), Failure> {
    let bound = arguments.wire.bind(Some(arguments.port))?;
    say_where(&bound)?;
    let job = Job {
        message: arguments.message.0,
        bytes: arguments.bytes.map(|bytes| bytes.0),
        unordered: arguments.unordered,
    };
    let mut failed = None;
    loop {
        let accepted = tokio::select! {
            accepted = bound.endpoint.accept() => accepted,
            () = interrupted() => break,
        };
        let association = accepted.map_err(|error| Failure::Wire(error.to_string()))?;
        let serving = tokio::spawn(attend(association, arguments.service, job));
        if arguments.once {
            tokio::select! {
                result = serving => failed = result.ok().flatten(),
                () = interrupted() => {}
            }
            break;
        }
    }
    bound.watched.finish(&bound.sctp.toml, failed)
}

/// Says where the server listens, so that whoever started it may begin.
fn say_where(bound: &Bound) -> Result<(), Failure> {
    let endpoint = &bound.endpoint;
    let addresses: Vec<String> = endpoint
        .local_addresses()
        .iter()
        .map(|address| address.ip().to_string())
        .collect();
    let carrier = match endpoint.udp_port() {
        0 => "right above IP".to_owned(),
        port => format!("inside UDP port {port}"),
    };
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "listening: SCTP port {}, {carrier}, at {}",
        endpoint.port(),
        addresses.join(", ")
    )?;
    Ok(out.flush()?)
}

/// Serves one association, and says what came of it; gives why it ended otherwise than gracefully.
async fn attend(association: Association, service: Service, job: Job) -> Option<String> {
    let peer = association.status().map(|status| status.primary.address);
    let from = peer.map_or_else(|| "somebody".to_owned(), |address| address.to_string());
    println!("{from}: association up");
    let mut count = Count::default();
    let result = match service {
        Service::Sink => sink(&association, &mut count).await,
        Service::Echo => echo(&association, &mut count).await,
        Service::Source => source(&association, job, &mut count).await,
    };
    let (messages, bytes) = (count.messages, Size(count.bytes));
    let retransmitted = association
        .status()
        .map_or(0, |status| status.counters.sender.chunks_retransmitted);
    println!("{from}: {messages} messages, {bytes}, {retransmitted} chunks sent again");
    match result {
        Ok(()) => {
            println!("{from}: closed gracefully");
            None
        }
        Err(lost) => {
            println!("{from}: {lost}");
            Some(lost.to_string())
        }
    }
}

async fn sink(association: &Association, count: &mut Count) -> Result<(), Lost> {
    while let Some(part) = association.recv_part().await? {
        count.add_part(part.bytes.len(), part.ends);
    }
    Ok(())
}

async fn echo(association: &Association, count: &mut Count) -> Result<(), Lost> {
    while let Some(message) = association.recv().await? {
        count.add(message.bytes.len());
        let options = SendOptions {
            ppid: message.ppid,
            unordered: message.unordered,
        };
        // The client has fewer streams inwards than outwards, perhaps; and may be closing.
        let outwards = association.status().map_or(1, |status| status.outstrms);
        let stream = message.stream % outwards.max(1);
        if association
            .send(stream, message.bytes, options)
            .await
            .is_err()
        {
            break;
        }
    }
    // What still comes while the client closes has nowhere to go.
    while association.recv_part().await?.is_some() {}
    Ok(())
}

async fn source(association: &Association, job: Job, count: &mut Count) -> Result<(), Lost> {
    let asked = tokio::time::timeout(PATIENCE, association.recv()).await;
    let job = match asked {
        Ok(Ok(Some(first))) if first.ppid == REQUEST => {
            Job::of_request(&first.bytes).unwrap_or(job)
        }
        Ok(Err(lost)) => return Err(lost),
        _ => job,
    };
    let payload = Bytes::from(vec![0; job.message as usize]);
    let options = SendOptions {
        ppid: 0,
        unordered: job.unordered,
    };
    while job.bytes.is_none_or(|bytes| count.bytes < bytes) {
        // Refused once the client closes.
        if association
            .send_spread(payload.clone(), options)
            .await
            .is_err()
        {
            break;
        }
        count.add(payload.len());
    }
    association.begin_shutdown();
    match association.closed().await {
        CloseReason::Shutdown => Ok(()),
        reason => Err(Lost(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_meant_and_nothing_else_is() {
        for job in [
            Job {
                message: 1,
                bytes: None,
                unordered: true,
            },
            Job {
                message: 1 << 20,
                bytes: Some(5),
                unordered: false,
            },
        ] {
            assert_eq!(Job::of_request(job.to_request().as_bytes()), Some(job));
        }
        for wrong in [
            "",
            "anabranch source 2 message=1 bytes=0 unordered=0",
            "anabranch source 1 message=0 bytes=0 unordered=0",
            "anabranch source 1 message=99999999 bytes=0 unordered=0",
            "anabranch source 1 bytes=0 unordered=0",
        ] {
            assert_eq!(Job::of_request(wrong.as_bytes()), None, "{wrong}");
        }
    }
}

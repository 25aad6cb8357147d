//! `anabranch serve`: echo, sink, source.

use std::io::{self, Write};
use std::time::Duration;

use anabranch_lab::spec::quantity::Size;
use anabranch_net::{Association, CloseReason, Lost, SendOptions};
use bytes::Bytes;

use super::arguments::{Serve, Service};
use super::{Bound, Interrupts, Ports};
use crate::failure::Failure;

/// Identifier of the message that asks a source to send (a payload protocol identifier that nobody has registered).
pub const REQUEST: u32 = 0x616e_6172;

/// How long a server that ends waits until its peers are told.
const PATIENCE: Duration = Duration::from_secs(2);

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
    let mut interrupts = Interrupts::new();
    let bound = arguments.wire.bind(Ports::Served(&arguments.port))?;
    // Whoever started it may begin.
    let mut out = io::stdout().lock();
    writeln!(out, "listening: {}", bound.place())?;
    out.flush()?;
    drop(out);
    let job = Job {
        message: arguments.message.0,
        bytes: arguments.bytes.map(|bytes| bytes.0),
        unordered: arguments.unordered,
    };
    let (sender, mut accepted) = tokio::sync::mpsc::channel(1);
    for endpoint in &bound.endpoints {
        let (endpoint, sender) = (endpoint.clone(), sender.clone());
        tokio::spawn(async move {
            while let Ok(association) = endpoint.accept().await {
                if sender.send((endpoint.port(), association)).await.is_err() {
                    break;
                }
            }
        });
    }
    let several = bound.endpoints.len() > 1;
    let mut failed = None;
    loop {
        let next = tokio::select! {
            next = accepted.recv() => next,
            () = interrupts.next() => break,
        };
        let Some((port, association)) = next else {
            return Err(Failure::Wire("the endpoint's task is gone".to_owned()));
        };
        let peer = association.status().map(|status| status.primary.address);
        let from = peer.map_or_else(|| "somebody".to_owned(), |address| address.to_string());
        let name = if several {
            format!("{from} at {port}")
        } else {
            from
        };
        let (service, at_once) = (arguments.service, arguments.at_once);
        let serving = tokio::spawn(attend(name, association, service, job, at_once));
        if arguments.once {
            tokio::select! {
                result = serving => failed = result.ok().flatten(),
                () = interrupts.next() => {}
            }
            break;
        }
    }
    end(&bound).await;
    bound.watched.finish(&bound.sctp.toml, failed)
}

/// Tells peers that it is over, who would find out by their timers alone.
async fn end(bound: &Bound) {
    for endpoint in &bound.endpoints {
        endpoint.abort("the server ends");
    }
    let gone = async {
        for endpoint in &bound.endpoints {
            endpoint.wait_idle().await;
        }
    };
    // A system that takes no packets keeps nobody from leaving.
    let _ = tokio::time::timeout(PATIENCE, gone).await;
}

/// Serves one association, and says what came of it; gives why it ended otherwise than gracefully.
async fn attend(
    from: String,
    association: Association,
    service: Service,
    job: Job,
    at_once: bool,
) -> Option<String> {
    say(&format!("{from}: association up"));
    let mut count = Count::default();
    let result = match service {
        Service::Sink => sink(&association, &mut count).await,
        Service::Echo => echo(&association, &mut count).await,
        Service::Source => source(&association, job, at_once, &mut count).await,
    };
    let (messages, bytes) = (count.messages, Size(count.bytes));
    let retransmitted = association
        .status()
        .map_or(0, |status| status.counters.sender.chunks_retransmitted);
    say(&format!(
        "{from}: {messages} messages, {bytes}, {retransmitted} chunks sent again"
    ));
    match result {
        Ok(()) => {
            say(&format!("{from}: closed gracefully"));
            None
        }
        Err(lost) => {
            say(&format!("{from}: {lost}"));
            Some(lost.to_string())
        }
    }
}

/// Prints a line; a server goes on also where nobody reads.
fn say(line: &str) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// Takes what comes; but sends, if the first message asks for that.
async fn sink(association: &Association, count: &mut Count) -> Result<(), Lost> {
    let mut first = true;
    while let Some(part) = association.recv_part().await? {
        let asks = std::mem::take(&mut first) && part.ends && part.ppid == REQUEST;
        if let Some(job) = Job::of_request(&part.bytes).filter(|_| asks) {
            return send(association, job, count).await;
        }
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

/// Sends when the client's first message has come: as that asks, if it is a request.
async fn source(
    association: &Association,
    job: Job,
    at_once: bool,
    count: &mut Count,
) -> Result<(), Lost> {
    let job = if at_once {
        job
    } else {
        match association.recv().await? {
            Some(first) if first.ppid == REQUEST => Job::of_request(&first.bytes).unwrap_or(job),
            Some(_) => job,
            // Closed before it asked.
            None => return Ok(()),
        }
    };
    send(association, job, count).await
}

/// Sends, and closes.
async fn send(association: &Association, job: Job, count: &mut Count) -> Result<(), Lost> {
    let payload = Bytes::from(vec![0; job.message as usize]);
    let options = SendOptions {
        ppid: 0,
        unordered: job.unordered,
    };
    let mut left = job.bytes.unwrap_or(u64::MAX);
    while left > 0 {
        let piece = payload.slice(..left.min(job.message) as usize);
        let len = piece.len();
        // Refused once the client closes.
        if association.send_spread(piece, options).await.is_err() {
            break;
        }
        count.add(len);
        if job.bytes.is_some() {
            left -= len as u64;
        }
    }
    association.begin_shutdown();
    // What a client says all the same is not to keep the association open.
    while association.recv().await?.is_some() {}
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

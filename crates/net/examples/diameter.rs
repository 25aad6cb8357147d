//! A server and a client in the style of Diameter (RFC 6733 §2.1): requests and answers with a
//! header, and a client that reconnects when its server is replaced.
//!
//! `cargo run -p anabranch-net --example diameter`

use std::error::Error;
use std::time::Duration;

use anabranch_net::{
    Association, AssociationError, Carrier, Config, Endpoint, Peer, ReconnectEvent,
    ReconnectPolicy, ReconnectingClient, SendOptions,
};
use bytes::{BufMut, Bytes, BytesMut};

/// The Payload Protocol Identifier of Diameter without DTLS (RFC 6733 §11.4).
const DIAMETER: u32 = 46;
/// Size of the header, bytes (RFC 6733 §3).
const HEADER: usize = 20;
/// The R bit of the command flags.
const REQUEST: u8 = 0x80;
/// The command Device-Watchdog (RFC 6733 §5.5).
const WATCHDOG: u32 = 280;

/// A Device-Watchdog message without AVPs.
fn watchdog(flags: u8, hop_by_hop: u32) -> Bytes {
    let mut message = BytesMut::with_capacity(HEADER);
    message.put_u8(1); // version
    message.put_uint(HEADER as u64, 3);
    message.put_u8(flags);
    message.put_uint(WATCHDOG.into(), 3);
    message.put_u32(0); // application: common messages
    message.put_u32(hop_by_hop);
    message.put_u32(hop_by_hop); // end-to-end identifier
    message.freeze()
}

/// The hop-by-hop identifier of a request or an answer.
fn hop_by_hop(message: &[u8]) -> Option<u32> {
    let bytes = message.get(12..16)?.try_into().ok()?;
    Some(u32::from_be_bytes(bytes))
}

/// Answers every request on the stream on which it arrived.
async fn serve(association: Association) -> Result<(), AssociationError> {
    while let Some(request) = association.recv().await? {
        let Some(number) = hop_by_hop(&request.bytes) else {
            association.abort("not a Diameter message");
            continue;
        };
        let options = SendOptions::default().with_ppid(DIAMETER);
        let answer = association.send(
            watchdog(0, number),
            options.with_stream(Some(request.stream)),
        );
        if answer.await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Accepts peers until the endpoint is closed.
async fn accept(server: Endpoint) {
    while let Ok(association) = server.accept().await {
        println!("server: {} is connected", association.peer_addr());
        tokio::spawn(serve(association));
    }
}

/// Sends a request, and waits for its answer.
async fn ask(association: &Association, number: u32) -> Result<(), Box<dyn Error>> {
    let options = SendOptions::default().with_ppid(DIAMETER);
    association.send(watchdog(REQUEST, number), options).await?;
    let answer = association.recv().await?.ok_or("the peer has closed")?;
    assert_eq!(hop_by_hop(&answer.bytes), Some(number));
    Ok(())
}

/// Runs two servers, one after the other at the same ports, and a client that connects to both.
pub async fn run() -> Result<(), Box<dyn Error>> {
    let any = Carrier::Encapsulated {
        port: 0,
        peer_port: 0,
    };
    let config = Config::default().with(|it| {
        it.addresses = vec![[127, 0, 0, 1].into()];
        it.carrier = any;
    });
    let listening = config.clone().with(|it| it.accept = true);
    let server = Endpoint::bind(listening.clone())?;
    let (port, udp_port) = (server.port(), server.udp_port());
    tokio::spawn(accept(server.clone()));

    let peer = Peer::from(([127, 0, 0, 1], port)).over_udp(udp_port);
    let policy = ReconnectPolicy::default().with(|it| {
        it.first_delay = Duration::from_millis(20);
        it.max_delay = Duration::from_secs(1);
    });
    let mut client = ReconnectingClient::new(Endpoint::bind(config)?, peer, policy);
    let association = client.association().await?;
    ask(&association, 1).await?;

    // The server is replaced. Its associations are shut down, and the client connects again.
    server.close_with_timeout(Duration::from_secs(5)).await;
    server.wait_idle().await;
    drop(server);
    let mut second = None;
    loop {
        match client.next_event().await.ok_or("the client has ended")? {
            ReconnectEvent::Connecting { attempt } => println!("client: attempt {attempt}"),
            ReconnectEvent::Connected(association) => {
                println!("client: connected to {}", association.peer_addr());
                ask(&association, 2).await?;
                association.shutdown().await?;
                return Ok(());
            }
            ReconnectEvent::Failed { failure, retry_in } => {
                println!("client: {failure}; again in {retry_in:?}");
                if second.is_none() {
                    let again = listening.clone().with(|it| {
                        it.port = port;
                        it.carrier = Carrier::Encapsulated {
                            port: udp_port,
                            peer_port: 0,
                        };
                    });
                    second = Endpoint::bind(again).ok();
                    second
                        .iter()
                        .cloned()
                        .for_each(|it| drop(tokio::spawn(accept(it))));
                }
            }
            ReconnectEvent::Ended(failure) => return Err(failure.into()),
            _ => {}
        }
    }
}

#[tokio::main]
#[allow(dead_code, reason = "a test includes this file, and calls `run`")]
async fn main() -> Result<(), Box<dyn Error>> {
    run().await
}

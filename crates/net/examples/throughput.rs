//! Throughput of an association over the loopback interface, by message size: MB and messages per
//! second.
//!
//! `cargo run --release -p anabranch-net --example throughput [SECONDS]`

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anabranch_net::{Carrier, Config, Endpoint, Peer, SendOptions};
use bytes::Bytes;
use tokio::time::Instant;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let seconds: f64 = std::env::args()
        .nth(1)
        .map_or(Ok(2.0), |text| text.parse())?;
    println!(
        "{:>10}  {:>10}  {:>12}  {:>13}  {:>13}  {:>6}",
        "message B", "MB/s", "messages/s", "packets/send", "packets/recv", "retr"
    );
    let only: Option<usize> = std::env::args().nth(2).and_then(|text| text.parse().ok());
    for size in [100, 1_024, 16_384, 262_144]
        .into_iter()
        .filter(|size| only.is_none_or(|only| only == *size))
    {
        // Spawned, because the runtime polls the future of `main` on another thread than the task
        // of the sockets.
        let measuring = tokio::spawn(measure(size, Duration::from_secs_f64(seconds)));
        measuring.await?.map_err(|error| error as Box<dyn Error>)?;
    }
    Ok(())
}

async fn measure(size: usize, span: Duration) -> Result<(), Box<dyn Error + Send + Sync>> {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mut config = Config::default().with(|it| {
        it.addresses = vec![loopback];
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
    });
    config.sctp.receive_buffer = 4 << 20;
    config.sctp.send_buffer = 4 << 20;
    let server = Endpoint::bind(config.clone().with(|it| it.accept = true))?;
    let client = Endpoint::bind(config)?;
    let peer = Peer::from((loopback, server.port())).over_udp(server.udp_port());
    let association = client.connect(peer).await?;
    let accepted = server.accept().await?;
    let taking = tokio::spawn(async move {
        let (mut bytes, mut messages) = (0u64, 0u64);
        while let Ok(Some(message)) = accepted.recv().await {
            bytes += message.bytes.len() as u64;
            messages += 1;
        }
        (bytes, messages)
    });
    let begin = Instant::now();
    let payload = Bytes::from(vec![7; size]);
    while begin.elapsed() < span {
        association
            .send(payload.clone(), SendOptions::default().with_stream(None))
            .await?;
    }
    association.shutdown().await?;
    let took = begin.elapsed().as_secs_f64();
    let (bytes, messages) = taking.await?;
    let retransmitted = association
        .status()
        .map_or(0, |it| it.counters.sender.chunks_retransmitted);
    let (sent, received) = (client.statistics(), server.statistics());
    println!(
        "{size:>10}  {:>10.1}  {:>12.0}  {:>13.1}  {:>13.1}  {retransmitted:>6}",
        bytes as f64 / took / 1e6,
        messages as f64 / took,
        sent.packets_sent as f64 / sent.send_calls.max(1) as f64,
        received.packets_received as f64 / received.receive_calls.max(1) as f64,
    );
    Ok(())
}

//! Sends messages in one direction over an association without the sockets API.
//! `bench/src/bin/sockets_api_cost.rs` compares the cost of a message with that of a message
//! through the API.
//!
//! `cargo run --release -p anabranch-sockets --example one_way --
//! send|receive|serve-send|serve-receive UDP-PORT COUNT SIZE`: start a serving end with the
//! UDP-PORT 0, and the other end with the UDP port that the serving end prints.

use std::net::{IpAddr, Ipv4Addr};

use anabranch_net::{Carrier, Config, Endpoint, Peer, SendOptions};
use bytes::Bytes;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PORT: u16 = 5_001;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [what, port, count, size] = words[..] else {
        return Err("send|receive|serve-send|serve-receive UDP-PORT COUNT SIZE".into());
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(one_way(what, port.parse()?, count.parse()?, size.parse()?))
}

/// Runs one end on `anabranch-net`.
async fn one_way(what: &str, udp: u16, count: u64, size: usize) -> Outcome<()> {
    let serves = what.starts_with("serve-");
    let config = Config::default().with(|it| {
        it.addresses = vec![HERE];
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: udp,
        };
        it.port = if serves { PORT } else { 0 };
        it.accept = serves;
    });
    let endpoint = Endpoint::bind(config)?;
    let association = if serves {
        println!("{}", endpoint.udp_port());
        endpoint.accept().await?
    } else {
        endpoint.connect(Peer::from((HERE, PORT))).await?
    };
    if what.ends_with("send") {
        // Each message is copied, because a program usually reuses its buffer.
        let message = vec![b'x'; size];
        for _ in 0..count {
            let bytes = Bytes::copy_from_slice(&message);
            association.send(bytes, SendOptions::default()).await?;
        }
        // Waits until the other end closes.
        while let Ok(Some(_)) = association.recv().await {}
    } else {
        let mut bytes = 0;
        while bytes < count * size as u64 {
            let part = association.recv_part().await?.ok_or("the end came early")?;
            bytes += part.bytes.len() as u64;
        }
        // An error only means that the other end has already closed.
        let _ = association.shutdown().await;
    }
    Ok(())
}

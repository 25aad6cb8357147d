//! A service that selects its clients, and shuts down without losing messages of connected clients.
//!
//! `cargo run -p anabranch-net --example service`

use std::time::Duration;

use anabranch_net::{
    Association, AssociationError, Carrier, Config, ConnectError, Endpoint, Peer, SendOptions,
};

/// Echoes every message.
async fn echo(association: Association) -> Result<(), AssociationError> {
    while let Some(message) = association.recv().await? {
        let options = SendOptions::default().with_ppid(message.ppid);
        let sent = association.send(message.bytes, options.with_stream(Some(message.stream)));
        if let Err(error) = sent.await {
            println!("server: {error}");
        }
    }
    Ok(())
}

/// Serves clients that request at most ten streams.
async fn serve(server: Endpoint) {
    while let Ok(incoming) = server.incoming().await {
        let (from, streams) = (incoming.peer_addr(), incoming.inbound_streams());
        if streams > 10 {
            println!("server: {from} asks for {streams} streams: refused");
            incoming.refuse("ten streams at most");
            continue;
        }
        match incoming.accept() {
            Ok(association) => drop(tokio::spawn(echo(association))),
            Err(error) => println!("server: {from}: {error}"),
        }
    }
}

/// Connects with this number of streams.
async fn client(peer: Peer, streams: u16) -> Result<Association, ConnectError> {
    let config = Config::default().with(|it| it.sctp.outbound_streams = streams);
    let client = Endpoint::bind(config).expect("any port is free");
    client.connect(peer).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Endpoint::bind(Config::server(5_001).with(|it| {
        it.undecided = 64;
        it.sctp.inbound_streams = 100;
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
    }))?;
    let peer = Peer::from(([127, 0, 0, 1], 5_001)).over_udp(server.udp_port());
    tokio::spawn(serve(server.clone()));

    match client(peer.clone(), 50).await {
        Err(error) => println!("client: {error}"),
        Ok(_) => println!("client: accepted?"),
    }
    let association = client(peer, 5).await?;
    association.send("hello", SendOptions::default()).await?;
    let message = association.recv().await?.ok_or("closed early")?;
    println!("client: {:?} came back", message.bytes);

    // New clients are refused; connected ones have five seconds to close.
    let draining = tokio::spawn(async move {
        if !server.drain(Duration::from_secs(5)).await {
            server.close_with_timeout(Duration::from_secs(1)).await;
        }
        println!("server: {}", server.statistics());
    });
    association.shutdown().await?;
    draining.await?;
    Ok(())
}

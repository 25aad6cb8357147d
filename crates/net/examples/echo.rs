//! An echo server and a client, with two addresses each on the loopback interface.
//!
//! `cargo run -p anabranch-net --example echo`

use std::net::IpAddr;

use anabranch_net::{Association, AssociationError, Carrier, Config, Endpoint, Peer, SendOptions};

/// Echoes every message.
async fn echo(association: Association) -> Result<(), AssociationError> {
    while let Some(message) = association.recv().await? {
        let options = SendOptions::default()
            .with_ppid(message.ppid)
            .with_unordered(message.unordered);
        // Waits while the client does not read, so that the memory of the server is limited.
        if let Err(error) = association
            .send(message.bytes, options.with_stream(Some(message.stream)))
            .await
        {
            println!("server: {error}");
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = |last: u8| IpAddr::from([127, 0, 0, last]);
    let any_port = Carrier::Encapsulated {
        port: 0,
        peer_port: 0,
    };
    let server = Endpoint::bind(Config::server(5_001).with(|it| {
        it.carrier = any_port;
        it.addresses = vec![home(1), home(2)];
    }))?;
    let udp_port = server.udp_port();
    tokio::spawn(async move {
        while let Ok(association) = server.accept().await {
            tokio::spawn(echo(association));
        }
    });

    let client = Endpoint::bind(Config::default().with(|it| {
        it.carrier = any_port;
        it.addresses = vec![home(3), home(4)];
    }))?;
    let peer = Peer::new([home(1), home(2)], 5_001).over_udp(udp_port);
    let association = client.connect(peer).await?;
    for stream in 0..3 {
        let text = format!("message on stream {stream}");
        association.send(text, SendOptions::on(stream)).await?;
    }
    for _ in 0..3 {
        let message = association.recv().await?.ok_or("closed early")?;
        println!("{:?} came back on stream {}", message.bytes, message.stream);
    }
    if let Some(status) = association.status() {
        for path in &status.paths {
            let (address, state) = (path.address, path.state);
            println!(
                "{address}: {state:?}, cwnd {} B, rto {} ms",
                path.cwnd,
                path.rto.as_millis()
            );
        }
    }
    association.shutdown().await?;
    Ok(())
}

//! A stream of an association as bytes, for libraries that read and write bytes and do not know
//! SCTP.
//!
//! `cargo run -p anabranch-net --example bytes`

use anabranch_net::{Carrier, Config, Endpoint, Peer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Endpoint::bind(Config::server(5_001).with(|it| {
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
    }))?;
    // The system resolves the name; the UDP port is that of the server.
    let peer = Peer::from(("localhost", 5_001)).over_udp(server.udp_port());
    tokio::spawn(async move {
        while let Ok(association) = server.accept().await {
            tokio::spawn(async move {
                let (mut reader, mut writer) = tokio::io::split(association.byte_stream(0));
                let copied = tokio::io::copy(&mut reader, &mut writer).await?;
                println!("server: {copied} bytes");
                writer.shutdown().await
            });
        }
    });

    let client = Endpoint::bind(Config::default())?;
    let association = client.connect(peer).await?;
    let mut bytes = association.byte_stream(0);
    let text = b"one write, or several: the reader sees bytes";
    bytes.write_all(text).await?;
    let mut back = vec![0; text.len()];
    bytes.read_exact(&mut back).await?;
    println!("client: {}", String::from_utf8_lossy(&back));
    // Closing the stream of bytes shuts the association down.
    bytes.shutdown().await?;
    Ok(())
}

//! A data channel server: answers an offer, and echoes messages on each channel that the browser
//! opens.
//!
//! `cargo run -p anabranch-datachannel --example echo_server < offer.sdp` prints the answer for
//! `setRemoteDescription`, and serves until the browser closes the connection.

use std::error::Error;
use std::io::Read;

use anabranch_datachannel::{
    ChannelOptions, Config, DataChannel, Payload, PeerConnection, Reliability,
};

/// Echoes every message as text or binary.
async fn echo(channel: DataChannel) {
    let label = channel.options().label.clone();
    while let Some(message) = channel.recv().await {
        if let Payload::Text(text) = &message {
            println!("{label}: {text}");
        }
        if channel.send(message).await.is_err() {
            break;
        }
    }
    println!("{label}: closed");
}

/// Sends a greeting on a channel that the server opens, and serves the channels of the browser
/// until the connection ends.
pub async fn serve(peer: PeerConnection) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut options = ChannelOptions::new("greetings");
    options.reliability = Reliability::MaxRetransmits(3);
    let greetings = peer.open(options)?;
    greetings.send("hello").await?;
    while let Some(channel) = peer.incoming().await {
        tokio::spawn(echo(channel));
    }
    Ok(())
}

#[tokio::main]
#[allow(dead_code, reason = "a test includes this file, and calls `serve`")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut offer = String::new();
    std::io::stdin().read_to_string(&mut offer)?;
    let (peer, answer) = PeerConnection::accept(&offer, Config::default()).await?;
    println!("{answer}");
    serve(peer).await
}

//! Messages and events of one association, read together or separately.

use crate::common;

use anabranch_net::{
    Association, Config, Event, Output, Reconfiguration, SendOptions, StreamDirection,
};
use common::{bounded, pair, without_timers};

fn config() -> Config {
    without_timers(Config::default()).with(|it| it.sctp.reconfiguration = true)
}

async fn send(association: &Association, text: &'static str) {
    let sent = association.send(text, SendOptions::on(1));
    sent.await.expect("up");
}

/// Sends a message, resets the stream, and sends another message. The peer reads only after all
/// have arrived.
async fn with_a_reset(client: &Association) {
    send(client, "one").await;
    let reset = Reconfiguration::reset_outgoing([1]);
    client.reconfigure(&reset).expect("nothing under way");
    while !matches!(client.next_event().await, Some(Event::StreamsReset { .. })) {}
    let receipt = client.send_with_receipt("two", SendOptions::on(1));
    let receipt = receipt.await.expect("up");
    receipt.await.expect("acknowledged");
}

fn is_incoming_reset(event: &Event) -> bool {
    matches!(
        event,
        Event::StreamsReset {
            direction: StreamDirection::Incoming,
            ..
        }
    )
}

/// The text of a message, or `reset` for a stream reset.
fn word(output: Output) -> String {
    match output {
        Output::Part(part) => String::from_utf8_lossy(&part.bytes).into_owned(),
        Output::Event(event) if is_incoming_reset(&event) => "reset".into(),
        Output::Event(event) => format!("{event:?}"),
    }
}

#[test]
fn a_reader_of_all_has_one_order() {
    bounded(async {
        let (client, server) = pair(config()).await;
        with_a_reset(&client).await;
        client.start_shutdown(None);
        let mut all = Vec::new();
        while let Some(output) = server.next_output(None).await.expect("graceful") {
            all.push(word(output));
        }
        assert_eq!(all, ["one", "reset", "two", "PeerShutdown"]);
    });
}

/// One reader waits for messages and another for events before there are any; a third reads the
/// rest later.
#[test]
fn each_reader_gets_what_it_wants() {
    bounded(async {
        let (client, server) = pair(config()).await;
        let messages = server.clone();
        let messages = tokio::spawn(async move {
            let first = messages.recv().await.expect("up").expect("a message");
            first.bytes
        });
        let events = server.clone();
        let events = tokio::spawn(async move { events.next_event().await });
        with_a_reset(&client).await;
        assert_eq!(messages.await.expect("no panic"), "one");
        let event = events.await.expect("no panic").expect("it lives");
        assert!(is_incoming_reset(&event), "{event:?}");
        client.start_shutdown(None);
        let mut all = Vec::new();
        while let Some(output) = server.next_output(None).await.expect("graceful") {
            all.push(word(output));
        }
        assert_eq!(all, ["two", "PeerShutdown"]);
    });
}

#[test]
fn a_reader_of_one_stream_leaves_the_others() {
    bounded(async {
        let (client, server) = pair(config()).await;
        with_a_reset(&client).await;
        let other = client.send_with_receipt("seven", SendOptions::on(7));
        other.await.expect("up").await.expect("acknowledged");
        let output = server.next_output(Some(7)).await.expect("up");
        assert_eq!(output.map(word), Some("seven".into()));
        client.start_shutdown(None);
        let mut all = Vec::new();
        while let Some(output) = server.next_output(None).await.expect("graceful") {
            all.push(word(output));
        }
        assert_eq!(all, ["one", "reset", "two", "PeerShutdown"]);
    });
}

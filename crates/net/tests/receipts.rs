//! Receipts of messages, on the loopback interface.

use crate::common;

use anabranch_net::{
    AbandonPolicy, AssociationError, CloseReason, Config, DeliveryError, SendOptions,
};
use common::{bounded, pair, pattern, without_timers};

const PLAIN: SendOptions = SendOptions::new();
/// Number of messages, small enough for any socket buffer, so that no packet is lost: only a timer
/// would retransmit a lost packet.
const MESSAGES: u32 = 8;

#[test]
fn a_receipt_comes_when_the_peer_has_the_message() {
    bounded(async {
        let (client, server) = pair(without_timers(Config::default())).await;
        let mut receipts = Vec::new();
        for seed in 0..MESSAGES {
            let sent = client.send_with_receipt(pattern(seed, 20_000), PLAIN);
            receipts.push(sent.await.expect("room comes"));
            // A message without a receipt is sent in between.
            client
                .send("plain", PLAIN.with_stream(Some(1)))
                .await
                .expect("room comes");
        }
        let dropped = client.send_with_receipt("nobody waits for it", PLAIN).await;
        drop(dropped.expect("room"));
        for receipt in receipts {
            assert_eq!(receipt.await, Ok(()));
        }
        // Acknowledged messages can be read, although none was read before.
        for seed in 0..MESSAGES {
            let message = server
                .stream(0)
                .1
                .recv_part()
                .await
                .expect("up")
                .expect("open");
            assert_eq!(message.bytes, pattern(seed, 20_000));
        }
        let last = server
            .stream(0)
            .1
            .recv_part()
            .await
            .expect("up")
            .expect("open");
        assert_eq!(last.bytes, "nobody waits for it");
    });
}

/// The closed receive window delays messages, which are then cancelled or lost with the
/// association.
#[test]
fn a_receipt_reports_why_a_message_was_not_acknowledged() {
    bounded(async {
        let config = without_timers(Config::default().with(|it| {
            it.sctp.receive_buffer = 16 * 1024;
        }));
        let (client, _server) = pair(config).await;
        // A message larger than the peer's buffer, so that it is sent in part and not fully
        // acknowledged.
        let begun = client.send_with_receipt(pattern(0, 200_000), PLAIN).await;
        let unsent = client.send_with_receipt(pattern(0, 9), PLAIN).await;
        while client
            .status()
            .is_some_and(|it| it.counters.sender.bytes_sent == 0)
        {
            tokio::task::yield_now().await;
        }
        assert_eq!(client.cancel_unsent(), 1);
        assert_eq!(unsent.expect("room").await, Err(DeliveryError::Unsent));
        client.abort("done");
        let lost = DeliveryError::Association(AssociationError(CloseReason::AbortedHere));
        assert_eq!(begun.expect("room").await, Err(lost));
        assert!(client.send_with_receipt("late", PLAIN).await.is_err());
    });
}

/// A message that waits in a full send buffer is abandoned for one of higher priority (RFC 7496
/// §3.2).
#[test]
fn a_receipt_reports_that_a_message_was_abandoned() {
    bounded(async {
        let config = without_timers(Config::default().with(|it| {
            it.sctp.partial_reliability = true;
            it.sctp.send_buffer = 64 * 1024;
            it.sctp.receive_buffer = 16 * 1024;
        }));
        let (client, _server) = pair(config).await;
        let begun = client.send_with_receipt(pattern(0, 60_000), PLAIN).await;
        let sent = || client.status().expect("up").counters.sender.bytes_sent;
        while sent() < 10_000 {
            tokio::task::yield_now().await;
        }
        let of_priority = |number| PLAIN.with_priority(Some(number));
        let minor = client
            .send_with_receipt(pattern(1, 15_000), of_priority(9))
            .await;
        let major = client.try_send(pattern(2, 15_000), of_priority(1));
        assert_eq!(major, Ok(()));
        let given_up = DeliveryError::Abandoned(AbandonPolicy::Priority);
        assert_eq!(minor.expect("room").await, Err(given_up));
        drop(begun);
    });
}

/// After the handles are dropped, the receipt still completes, because queued messages are
/// delivered (`Config::linger`).
#[test]
fn a_receipt_outlives_the_handles() {
    bounded(async {
        let (client, server) = pair(Config::default()).await;
        let sent = client.send_with_receipt(pattern(1, 300_000), PLAIN).await;
        drop(client);
        assert_eq!(sent.expect("room").await, Ok(()));
        let message = server.recv().await.expect("up").expect("open");
        assert_eq!(message.bytes, pattern(1, 300_000));
    });
}

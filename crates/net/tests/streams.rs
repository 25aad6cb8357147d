//! An association through `Stream`, `Sink`, `AsyncRead` and `AsyncWrite`.

use crate::common;

use anabranch_net::{CloseReason, Config, SendError, SendOptions, SinkError};
use bytes::Bytes;
use common::{bounded, pair, pattern, without_timers};
use futures_util::{SinkExt, StreamExt, TryStreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[test]
fn messages_come_as_a_stream_and_go_into_a_sink() {
    bounded(async {
        let (client, server) = pair(Config::default()).await;
        let echo = tokio::spawn(async move {
            let back = server.stream(3).0.with_ppid(9);
            let messages = server.messages();
            let bytes = messages.map_ok(|message| message.bytes);
            // At its end `forward` closes the sink, which shuts the association down.
            bytes.map_err(SinkError::from).forward(back).await
        });
        let mut sink = client.stream(1).0;
        let sent: Vec<Bytes> = (1..40).map(|seed| pattern(seed, 2_000)).collect();
        for message in &sent {
            sink.feed(message.clone()).await.expect("room");
        }
        SinkExt::<Bytes>::flush(&mut sink).await.expect("queued");
        let messages: Vec<_> = client
            .messages()
            .take(sent.len())
            .try_collect()
            .await
            .expect("all come back");
        for (message, sent) in messages.iter().zip(&sent) {
            assert_eq!((message.stream, message.ppid), (3, 9));
            assert_eq!(message.bytes, sent);
        }
        SinkExt::<Bytes>::close(&mut sink).await.expect("graceful");
        assert_eq!(client.closed().await, CloseReason::Shutdown);
        echo.await.expect("no panic").expect("graceful");
        assert_eq!(client.messages().next().await, None);
        let late = sink.send("late").await;
        assert_eq!(late, Err(SendError::Closing));
    });
}

/// The stream of messages returns the error once, and then ends.
#[test]
fn a_stream_of_messages_ends_with_the_error_that_ended_the_association() {
    bounded(async {
        let (client, server) = pair(without_timers(Config::default())).await;
        let sent = client.send("before", SendOptions::default());
        sent.await.expect("up");
        let mut messages = server.messages();
        let first = messages.next().await.expect("a message").expect("up");
        assert_eq!(&first.bytes[..], b"before");
        client.abort("enough");
        let lost = messages.next().await.expect("the end").expect_err("abrupt");
        assert_eq!(lost.0, CloseReason::AbortedByPeer { cause: Some(12) });
        assert_eq!(messages.next().await, None);
    });
}

/// The data exceeds both buffers, so that writes wait, and is written and read in pieces of
/// different sizes.
#[test]
fn bytes_come_as_they_were_written_whatever_the_messages_were() {
    bounded(async {
        let (client, server) = pair(Config::default()).await;
        let sent = pattern(5, 5_000_000);
        let echo = tokio::spawn(async move {
            let (mut reader, mut writer) = tokio::io::split(server.byte_stream(2));
            let copied = tokio::io::copy(&mut reader, &mut writer).await?;
            writer.shutdown().await?;
            Ok::<u64, std::io::Error>(copied)
        });
        let (mut reader, mut writer) = tokio::io::split(client.byte_stream(2).with_ppid(51));
        let all = sent.clone();
        let writing = tokio::spawn(async move {
            for piece in all.chunks(99_991) {
                writer.write_all(piece).await?;
            }
            Ok::<_, std::io::Error>(writer)
        });
        let mut received = vec![0; sent.len()];
        for piece in received.chunks_mut(7_001) {
            reader.read_exact(piece).await.expect("all come back");
        }
        assert!(received == sent, "the bytes, in order");
        let mut writer = writing.await.expect("no panic").expect("written");
        writer.shutdown().await.expect("graceful");
        assert_eq!(reader.read(&mut [0; 1]).await.expect("the end"), 0);
        let copied = echo.await.expect("no panic").expect("graceful");
        assert_eq!(copied, sent.len() as u64);
        let error = writer.write(b"late").await.expect_err("closed");
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    });
}

/// Each reader gets only its own stream, in any order of arrival and reading.
#[test]
fn byte_streams_of_one_association_do_not_take_from_each_other() {
    bounded(async {
        let (client, server) = pair(without_timers(Config::default())).await;
        for round in 0_u16..30 {
            let stream = round % 3;
            let text = format!("{stream}:{round:02} ");
            let sent = client.send(text, SendOptions::on(stream));
            sent.await.expect("up");
        }
        for stream in [2_u16, 0, 1] {
            let mut reader = server.byte_stream(stream);
            let mut text = [0; 50];
            reader.read_exact(&mut text).await.expect("ten messages");
            let expected: String = (0..10)
                .map(|turn| format!("{stream}:{:02} ", turn * 3 + stream))
                .collect();
            assert_eq!(std::str::from_utf8(&text), Ok(expected.as_str()));
        }
        assert_eq!(server.try_recv(), None);
        client.abort("enough");
        let error = server.byte_stream(0).read(&mut [0; 1]).await;
        let error = error.expect_err("abrupt");
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    });
}

/// Parts of a stream with a reader are not returned by `recv`.
#[test]
fn a_reader_of_one_stream_leaves_the_others_to_recv() {
    bounded(async {
        let (client, server) = pair(without_timers(Config::default())).await;
        for (stream, text) in [(0, "control"), (1, "bytes"), (0, "more")] {
            let sent = client.send(text, SendOptions::on(stream));
            sent.await.expect("up");
        }
        let part = server
            .stream(1)
            .1
            .recv_part()
            .await
            .expect("up")
            .expect("a part");
        assert_eq!((part.stream, &part.bytes[..]), (1, &b"bytes"[..]));
        for expected in ["control", "more"] {
            let message = server.recv().await.expect("up").expect("a message");
            assert_eq!(
                (message.stream, &message.bytes[..]),
                (0, expected.as_bytes())
            );
        }
        assert_eq!(server.stream(1).1.try_recv_part(), None);
    });
}

//! Sending and receiving several messages in one call, and writers that wait for buffer space.

use crate::common;

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use anabranch_net::{Config, SendError, SendOptions};
use bytes::Bytes;
use common::{bounded, pair, pattern};

/// Sizes from one byte to several packets, in mixed order.
fn sizes() -> impl Iterator<Item = usize> {
    (0..1_500_u32).map(|at| {
        1 + (at.wrapping_mul(2_654_435_761) >> 18) as usize % [40, 6_000][at as usize % 2]
    })
}

/// Messages of many sizes, in total more than the send buffer, arrive whole and in order with each
/// way of receiving.
#[test]
fn batches_of_messages_arrive_whole_and_in_order() {
    bounded(async {
        let config = Config::default().with(|it| it.sctp.send_buffer = 64 * 1024);
        let (client, server) = pair(config).await;
        let all: Vec<Bytes> = (0..)
            .zip(sizes())
            .map(|(at, size)| pattern(at, size))
            .collect();
        let sent = all.clone();
        let sender = tokio::spawn(async move {
            for few in sent.chunks(300) {
                let mut messages = VecDeque::from(few.to_vec());
                let given = client.send_all(&mut messages, SendOptions::on(3).with_ppid(7));
                given.await.expect("it is up");
                assert!(messages.is_empty());
            }
            client.shutdown().await.expect("all arrived");
        });
        let mut came = Vec::new();
        for most in [1, 2, 64, 1_000].into_iter().cycle() {
            let before = came.len();
            let count = server
                .recv_many(&mut came, most)
                .await
                .expect("a graceful end");
            assert_eq!(came.len() - before, count);
            assert!(count <= most);
            if count == 0 {
                break;
            }
        }
        sender.await.expect("no panic");
        assert_eq!(came.len(), all.len());
        for (message, expected) in came.iter().zip(&all) {
            assert_eq!((message.stream, message.ppid), (3, 7));
            assert_eq!(message.bytes, expected);
        }
    });
}

/// If a message is refused, the messages before it are queued, and it becomes the first of the
/// remaining ones.
#[test]
fn a_message_that_is_refused_is_given_back_with_those_behind_it() {
    bounded(async {
        let config = Config::default().with(|it| it.max_message_size = 1_000);
        let (client, server) = pair(config).await;
        for bad in [Bytes::new(), pattern(0, 1_001)] {
            let mut messages: VecDeque<Bytes> = (0..5).map(|at| pattern(at, 100)).collect();
            messages.insert(3, bad.clone());
            let given = client.send_all(&mut messages, SendOptions::default());
            let error = given.await.expect_err("it cannot be sent");
            let expected = match bad.is_empty() {
                true => SendError::Empty,
                false => SendError::TooLarge {
                    size: 1_001,
                    most: 1_000,
                },
            };
            assert_eq!(error, expected);
            assert_eq!(messages, [bad, pattern(3, 100), pattern(4, 100)]);
            let mut came = Vec::new();
            while came.len() < 3 {
                server.recv_many(&mut came, 10).await.expect("up");
            }
            let came: Vec<Bytes> = came.into_iter().map(|it| it.bytes).collect();
            assert_eq!(came, [0, 1, 2].map(|at| pattern(at, 100)));
        }
        let mut messages = VecDeque::from([pattern(1, 10)]);
        let given = client.send_all(&mut messages, SendOptions::on(60_000));
        assert!(matches!(given.await, Err(SendError::NoSuchStream { .. })));
        client.abort("");
        let _ = client.closed().await;
        let given = client.send_all(&mut messages, SendOptions::default());
        assert_eq!(given.await, Err(SendError::Closing));
        assert_eq!(messages, [pattern(1, 10)]);
    });
}

#[test]
fn a_call_that_wants_nothing_is_ready() {
    bounded(async {
        let (client, server) = pair(Config::default()).await;
        let (mut none, mut came) = (VecDeque::new(), Vec::new());
        let given = client.send_all(&mut none, SendOptions::default());
        assert_eq!(given.await, Ok(()));
        assert_eq!(server.recv_many(&mut came, 0).await, Ok(0));
        client.shutdown().await.expect("nothing is on the way");
        assert_eq!(server.recv_many(&mut came, 9).await, Ok(0));
    });
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The buffer is half empty, but the message needs more space: the writer must not be woken before
/// there is enough.
#[test]
fn a_writer_is_not_woken_where_there_is_no_space_for_its_message() {
    const SIZE: usize = 700 * 1024;
    bounded(async {
        let config = Config::default().with(|it| it.sctp.receive_buffer = 256 * 1024);
        let (client, server) = pair(config).await;
        client
            .send(pattern(1, SIZE), SendOptions::default())
            .await
            .expect("room");
        let woken = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&woken));
        let second = client.send(pattern(2, SIZE), SendOptions::default());
        let mut second = pin!(second);
        // The peer reads nothing, and its window holds only a part of the first message.
        let mut cx = Context::from_waker(&waker);
        let mut seen = usize::MAX;
        for _ in 0..200 {
            if seen != woken.0.load(Ordering::Relaxed) {
                seen = woken.0.load(Ordering::Relaxed);
                assert!(second.as_mut().poll(&mut cx).is_pending());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(seen < 10, "woken {seen} times");
        let reader = tokio::spawn(async move {
            let mut sizes = Vec::new();
            while let Ok(Some(message)) = server.recv().await {
                sizes.push(message.bytes.len());
            }
            sizes
        });
        second.await.expect("up");
        client.shutdown().await.expect("all arrived");
        assert_eq!(reader.await.expect("no panic"), [SIZE, SIZE]);
    });
}

//! The task that processes the [send queue](super::send_queue) of an association of a one-to-many
//! socket.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;

use super::HostState;
use super::send::send;
use super::send_queue::QueuedOperation;
use super::socket::Socket;
use super::socket::SocketAssociation;
use crate::options::AUTOCLOSE;

/// Starts the task, which processes the operations in order until the association has ended.
pub(super) fn start(host: &Arc<HostState>, socket: &Socket, assoc: &Arc<SocketAssociation>) {
    let Some(todo) = assoc.send_queue.take() else {
        return;
    };
    let linger = socket.state().options.linger();
    let linger = linger.map(|it| Duration::from_secs(u64::from(it)));
    let linger = linger.unwrap_or(host.config.linger);
    tokio::spawn(process(Arc::clone(assoc), todo, linger));
    let seconds = socket.state().options.word(AUTOCLOSE, 0);
    if seconds > 0 {
        tokio::spawn(close_when_idle(Arc::clone(assoc), seconds));
    }
}

async fn process(
    assoc: Arc<SocketAssociation>,
    mut todo: UnboundedReceiver<QueuedOperation>,
    linger: Duration,
) {
    if let Some(association) = assoc.up().await {
        while let Some(job) = next_job(&mut todo, &assoc).await {
            let cost = job.cost();
            match job {
                // If the association has ended, it rejects the messages, which are then returned to
                // the program.
                QueuedOperation::Message(frame, bytes) => {
                    send(&assoc, &association, &frame, bytes).await;
                }
                QueuedOperation::Close => {
                    association.start_shutdown(Some(linger));
                    break;
                }
            }
            assoc.send_queue.done(cost);
        }
    }
    // Wakes tasks that wait for buffer space, because no more operations will finish.
    drop(todo);
    assoc.send_queue.end();
}

/// The next operation. After the end of the association was reported, returns only operations that
/// are queued already; until then the host may still read messages that the program sent before.
async fn next_job(
    todo: &mut UnboundedReceiver<QueuedOperation>,
    assoc: &SocketAssociation,
) -> Option<QueuedOperation> {
    tokio::select! {
        biased;
        job = todo.recv() => job,
        () = assoc.end_reported() => None,
    }
}

/// SCTP_AUTOCLOSE (RFC 6458 §8.1.8): closes an association after this time without traffic.
async fn close_when_idle(assoc: Arc<SocketAssociation>, seconds: u32) {
    let idle = Duration::from_secs(u64::from(seconds));
    let Some(association) = assoc.up().await else {
        return;
    };
    let watch = async {
        while tokio::time::timeout(idle, assoc.activity.notified())
            .await
            .is_ok()
        {}
        association.start_shutdown(None);
    };
    tokio::select! {
        () = watch => (),
        _ = association.closed() => (),
    }
}

#[cfg(test)]
mod tests {
    use anabranch_net::{Carrier, Config, Endpoint, Peer};
    use bytes::Bytes;

    use super::*;
    use crate::frame::HostFrameHeader;
    use crate::options::{EVENTS, IPPROTO_SCTP, SocketOptions};

    fn endpoint(accept: bool) -> Endpoint {
        let config = Config::default().with(|it| {
            it.addresses = vec![std::net::Ipv4Addr::LOCALHOST.into()];
            it.carrier = Carrier::Encapsulated {
                port: 0,
                peer_port: 0,
            };
            it.accept = accept;
        });
        Endpoint::bind(config).expect("loopback")
    }

    /// A message that the host reads between the end of the association and the report of the end
    /// is returned to the program.
    #[tokio::test]
    async fn a_message_after_the_end_is_returned() {
        let (server, client) = (endpoint(true), endpoint(false));
        let peer = Peer::from((std::net::Ipv4Addr::LOCALHOST, server.port()));
        let peer = peer.over_udp(server.udp_port());
        let association = client.connect(peer).await.expect("it listens");
        let mut options = SocketOptions::default();
        let all_events = [1; 14];
        let subscribed = options.set(IPPROTO_SCTP, EVENTS, &all_events);
        subscribed.expect("an option");
        let assoc = Arc::new(SocketAssociation::new(1, false, Vec::new(), options));
        assoc.set_established(association.clone());
        let todo = assoc.send_queue.take().expect("the only worker");
        let worker = tokio::spawn(process(Arc::clone(&assoc), todo, Duration::ZERO));
        association.abort("");
        association.closed().await;
        for _ in 0..10 {
            // Lets the worker run until it waits.
            tokio::task::yield_now().await;
        }
        let late =
            QueuedOperation::Message(HostFrameHeader::default(), Bytes::from_static(b"late"));
        assoc.send_queue.ask(late);
        assoc.send_queue.all_done().await;
        assert_eq!(assoc.refused().len(), 1);
        assoc.end();
        worker.await.expect("it ends with the association");
    }
}

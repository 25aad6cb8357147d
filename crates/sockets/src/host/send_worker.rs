//! The task of an association of a one-to-many socket that processes its
//! [send queue](super::send_queue).

use std::sync::Arc;
use std::time::Duration;

use anabranch_net::Association;
use tokio::sync::mpsc::UnboundedReceiver;

use super::HostState;
use super::association::SocketAssociation;
use super::send::send;
use super::send_queue::QueuedOperation;
use super::socket::Socket;
use crate::options::AUTOCLOSE;

/// Processes the program's jobs for an association in order, until it has ended.
pub fn start(host: &Arc<HostState>, socket: &Socket, assoc: &Arc<SocketAssociation>) {
    let Some(mut todo) = assoc.send_queue.take() else {
        return;
    };
    let linger = socket.state().options.linger();
    let linger = linger.map(|it| Duration::from_secs(u64::from(it)));
    let linger = linger.unwrap_or(host.config.linger);
    let worker = Arc::clone(assoc);
    tokio::spawn(async move {
        if let Some(association) = worker.up().await {
            while let Some(job) = next_job(&mut todo, &association).await {
                let cost = job.cost();
                match job {
                    // An association that has ended rejects them, and they are returned to the
                    // program.
                    QueuedOperation::Message(frame, bytes) => {
                        send(&worker, &association, &frame, bytes).await;
                    }
                    QueuedOperation::Close => {
                        association.start_shutdown(Some(linger));
                        break;
                    }
                }
                worker.send_queue.done(cost);
            }
        }
        // Tasks that wait for buffer space must check again, because no more jobs will finish.
        drop(todo);
        worker.send_queue.end();
    });
    let seconds = socket.state().options.word(AUTOCLOSE, 0);
    if seconds > 0 {
        tokio::spawn(close_when_idle(Arc::clone(assoc), seconds));
    }
}

/// The next job of an association; after the association has ended, only queued ones.
async fn next_job(
    todo: &mut UnboundedReceiver<QueuedOperation>,
    association: &Association,
) -> Option<QueuedOperation> {
    tokio::select! {
        biased;
        job = todo.recv() => job,
        _ = association.closed() => None,
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

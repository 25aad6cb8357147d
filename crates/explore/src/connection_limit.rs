//! Connection limit of the HTTP server. If it is exceeded, the oldest connection without an
//! authorized request ([`Admission`]) is closed, or the oldest of all if each has one.
//!
//! The limit is needed because hyper waits for a request indefinitely, so that silent connections
//! could occupy all file descriptors of the process. A client that sends its request immediately is
//! served even while others open many connections, and its response is not interrupted.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// Maximum number of connections. One browser uses up to six.
const MAX_CONNECTIONS: usize = 128;

/// A listener with a limited number of connections.
#[derive(Debug)]
pub struct LimitedListener {
    listener: TcpListener,
    /// Open connections, oldest first.
    open: VecDeque<OpenConnection>,
    max: usize,
}

/// An open connection.
#[derive(Debug)]
struct OpenConnection {
    /// Dropping the sender closes the connection.
    stays: oneshot::Sender<()>,
    admission: Admission,
}

/// Whether the connection had an authorized request. Such a connection is closed only after all
/// connections without one.
#[derive(Clone, Debug, Default)]
pub struct Admission(Arc<AtomicBool>);

impl Admission {
    /// Marks the connection as authorized.
    pub fn admit(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_admitted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Connected<IncomingStream<'_, LimitedListener>> for Admission {
    fn connect_info(stream: IncomingStream<'_, LimitedListener>) -> Self {
        stream.io().admission.clone()
    }
}

impl LimitedListener {
    /// Creates a listener that accepts connections from `listener`.
    pub fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            open: VecDeque::new(),
            max: MAX_CONNECTIONS,
        }
    }
}

impl Listener for LimitedListener {
    type Io = LimitedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (LimitedStream, SocketAddr) {
        let (stream, from) = Listener::accept(&mut self.listener).await;
        self.open.retain(|connection| !connection.stays.is_closed());
        while self.open.len() >= self.max {
            let waits = |connection: &OpenConnection| !connection.admission.is_admitted();
            let leaves = self.open.iter().position(waits).unwrap_or(0);
            self.open.remove(leaves);
        }
        let (stays, leave) = oneshot::channel();
        let admission = Admission::default();
        self.open.push_back(OpenConnection {
            stays,
            admission: admission.clone(),
        });
        let stream = LimitedStream {
            stream,
            leave: Some(leave),
            admission,
        };
        (stream, from)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// An accepted connection, which may be closed for a newer one.
#[derive(Debug)]
pub struct LimitedStream {
    stream: TcpStream,
    /// Completes when the connection must be closed; `None` afterwards.
    leave: Option<oneshot::Receiver<()>>,
    admission: Admission,
}

impl LimitedStream {
    /// Returns an error if the connection must be closed. If not, registers the task to be woken
    /// when this becomes necessary.
    fn stays(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if let Some(leave) = &mut self.leave
            && Pin::new(leave).poll(context).is_pending()
        {
            return Ok(());
        }
        self.leave = None;
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}

impl AsyncRead for LimitedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stays(context)?;
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for LimitedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stays(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stays(context)?;
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::extract::ConnectInfo;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Sends a complete request; returns the response.
    async fn ask(at: SocketAddr) -> String {
        let mut asks = TcpStream::connect(at).await.expect("somebody listens");
        let request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        asks.write_all(request).await.expect("written");
        let mut answer = String::new();
        asks.read_to_string(&mut answer).await.expect("an answer");
        answer
    }

    #[tokio::test]
    async fn silent_connections_block_no_other() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = listener.local_addr().expect("an address");
        let listener = LimitedListener {
            max: 4,
            ..LimitedListener::new(listener)
        };
        let router = Router::new().route("/", get(|| async { "here" }));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let mut silent = Vec::new();
        for count in 0..20_usize {
            let mut says_half = TcpStream::connect(at).await.expect("somebody listens");
            says_half.write_all(b"GET / HT").await.expect("written");
            silent.push(says_half);
            assert!(ask(at).await.ends_with("here"), "{count}");
        }
        // The request of the last client has displaced one of four silent connections, so three are
        // left, or two if the connection of the previous client still exists.
        let (gone, left) = silent.split_at_mut(17);
        let left = &mut left[1..];
        for one in gone {
            let mut nothing = [0; 8];
            let end = one.read(&mut nothing).await;
            assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
        }
        for one in left {
            one.write_all(b"TP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                .await
                .expect("it is open");
            let mut answer = String::new();
            one.read_to_string(&mut answer).await.expect("an answer");
            assert!(answer.ends_with("here"), "{answer}");
        }
    }

    /// A connection with an authorized request stays open while other clients connect and send
    /// nothing.
    #[tokio::test]
    async fn silent_connections_close_none_that_is_in_use() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = listener.local_addr().expect("an address");
        let listener = LimitedListener {
            max: 4,
            ..LimitedListener::new(listener)
        };
        let here = |ConnectInfo(admission): ConnectInfo<Admission>| async move {
            admission.admit();
            "here"
        };
        let router = Router::new().route("/", get(here));
        let app = router.into_make_service_with_connect_info::<Admission>();
        tokio::spawn(async move { axum::serve(listener, app).await });
        let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        let mut used = TcpStream::connect(at).await.expect("somebody listens");
        let mut silent = Vec::new();
        for count in 0..20_usize {
            used.write_all(request).await.expect("it is open");
            let mut answer = Vec::new();
            while !answer.ends_with(b"here") {
                let read = used.read_buf(&mut answer).await;
                assert!(
                    read.is_ok_and(|read| read > 0),
                    "closed by silent one {count}"
                );
            }
            silent.push(TcpStream::connect(at).await.expect("somebody listens"));
            // By the time of this response the connection was accepted, and has displaced another
            // one.
            assert!(ask(at).await.ends_with("here"), "{count}");
        }
    }
}

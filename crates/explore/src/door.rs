//! Connections of an HTTP server: so many at a time, and where one more comes, the oldest is closed.
//!
//! hyper waits for a request as long as its sender likes, so that silent connections would take up every descriptor of the process.
//! Whoever asks at once is served also while others open as many as they can.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// Connections at a time. A browser has six of them.
const MOST: usize = 128;

/// A listener whose connections are bounded.
#[derive(Debug)]
pub struct Door {
    listener: TcpListener,
    /// Dropped, it closes its connection. The oldest is the first.
    open: VecDeque<oneshot::Sender<()>>,
    most: usize,
}

impl Door {
    /// Lets in who comes to `listener`.
    pub fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            open: VecDeque::new(),
            most: MOST,
        }
    }
}

impl Listener for Door {
    type Io = Visitor;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visitor, SocketAddr) {
        let (stream, from) = Listener::accept(&mut self.listener).await;
        self.open.retain(|held| !held.is_closed());
        while self.open.len() >= self.most {
            self.open.pop_front();
        }
        let (held, leave) = oneshot::channel();
        self.open.push_back(held);
        let leave = Some(leave);
        (Visitor { stream, leave }, from)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that may have to make room.
#[derive(Debug)]
pub struct Visitor {
    stream: TcpStream,
    /// `None`: it had to.
    leave: Option<oneshot::Receiver<()>>,
}

impl Visitor {
    /// An error once this has to make room; until then the task is woken when it does.
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

impl AsyncRead for Visitor {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stays(context)?;
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Visitor {
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
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// What comes of a whole request.
    async fn ask(at: SocketAddr) -> String {
        let mut asks = TcpStream::connect(at).await.expect("somebody listens");
        let request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        asks.write_all(request).await.expect("written");
        let mut answer = String::new();
        asks.read_to_string(&mut answer).await.expect("an answer");
        answer
    }

    #[tokio::test]
    async fn silent_connections_keep_nobody_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = listener.local_addr().expect("an address");
        let door = Door {
            most: 4,
            ..Door::new(listener)
        };
        let router = Router::new().route("/", get(|| async { "here" }));
        tokio::spawn(async move { axum::serve(door, router).await });
        let mut silent = Vec::new();
        for count in 0..20_usize {
            let mut says_half = TcpStream::connect(at).await.expect("somebody listens");
            says_half.write_all(b"GET / HT").await.expect("written");
            silent.push(says_half);
            assert!(ask(at).await.ends_with("here"), "{count}");
        }
        // Who asked last made room for itself: three are left, or two where who asked before was not quite gone.
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
}

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use socket2::{Domain, Type};

use super::*;

/// A request for buffer space should be cancelled when the program no longer waits for it, and not
/// before.
#[tokio::test]
async fn the_end_of_a_program_is_seen() {
    let (program, host) = Unix::pair(Domain::UNIX, Type::SEQPACKET, None).expect("sockets");
    host.set_nonblocking(true).expect("a socket");
    let host = super::super::watched_by(host).expect("a runtime");
    (&program).write_all(b"a request").expect("room");
    let mut request = [0; 64];
    let read = |mut unix: &Unix| unix.read(&mut request);
    let read = host.async_io(Interest::READABLE, read).await;
    assert_eq!(read.expect("it came"), 9);
    {
        let mut ended = pin!(hung_up(&host));
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(ended.as_mut().poll(&mut cx), Poll::Pending);
        drop(program);
        ended.await;
    }
    // A closed connection stays closed.
    hung_up(&host).await;
}

//! Wakers that call the endpoint when they are woken or dropped. Executors may do so: one may poll
//! a future immediately when its waker is woken, and another may drop the future together with its
//! waker. This crate must hold no lock when it calls or drops a waker.

use crate::common;

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use anabranch_net::{
    AddressChange, AddressError, Association, AsyncSocket, Carrier, CloseReason, Config, Endpoint,
    Peer, Runtime, SendOptions, Timer, TokioRuntime,
};
use common::{HANGS, LOOPBACK, pattern};

/// All of 127.0.0.0/8 belongs to this host, on Linux. No other test uses this address, so every UDP
/// port is free there.
const BEING_OPENED: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 23, 1));

/// Objects that the hostile wakers call.
#[derive(Default)]
struct PolledWaker {
    ends: Mutex<Option<(Endpoint, Association)>>,
    times: AtomicUsize,
}

impl PolledWaker {
    /// Takes the locks of the endpoint and of its sockets.
    fn ask(&self) {
        self.times.fetch_add(1, Ordering::SeqCst);
        let Ok(ends) = self.ends.try_lock() else {
            return;
        };
        if let Some((endpoint, association)) = &*ends {
            let _ = (association.status(), endpoint.statistics());
            drop(association.clone());
        }
    }

    /// Requests an address for which a socket is being opened.
    fn ask_for_address(&self) {
        let Ok(ends) = self.ends.try_lock() else {
            return;
        };
        if let Some((endpoint, _)) = &*ends {
            let asked = endpoint.change_addresses(&[AddressChange::Add(BEING_OPENED)]);
            assert!(matches!(asked, Err(AddressError::Socket(_))), "{asked:?}");
        }
    }

    fn times(&self) -> usize {
        self.times.load(Ordering::SeqCst)
    }
}

/// A waker that calls the endpoint when it is woken or dropped, and may then wake another task.
struct Hostile {
    asked: Arc<PolledWaker>,
    inner: Option<Waker>,
}

impl Hostile {
    fn waker(asked: &Arc<PolledWaker>, inner: Option<Waker>) -> Waker {
        Waker::from(Arc::new(Self {
            asked: Arc::clone(asked),
            inner,
        }))
    }
}

impl Wake for Hostile {
    fn wake(self: Arc<Self>) {
        self.asked.ask();
        self.inner.iter().for_each(Waker::wake_by_ref);
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.asked.ask();
    }
}

/// tokio, with a different hostile waker for each poll of a task.
#[derive(Clone)]
struct HostileRuntime(TokioRuntime, Arc<PolledWaker>);

impl std::fmt::Debug for HostileRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HostileRuntime")
    }
}

impl Runtime for HostileRuntime {
    fn timer(&self, at: Instant) -> Pin<Box<dyn Timer>> {
        self.0.timer(at)
    }

    fn spawn(&self, mut task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        let asked = Arc::clone(&self.1);
        self.0.spawn(Box::pin(std::future::poll_fn(move |cx| {
            let waker = Hostile::waker(&asked, Some(cx.waker().clone()));
            task.as_mut().poll(&mut Context::from_waker(&waker))
        })));
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        self.0.spawn_blocking(work);
    }

    fn watch(&self, socket: UdpSocket) -> io::Result<Box<dyn AsyncSocket>> {
        self.1.ask();
        self.1.ask_for_address();
        self.0.watch(socket)
    }
}

/// Runs a test in a thread; fails if it hangs.
fn watched<F: Future<Output = ()>>(test: impl FnOnce(Arc<PolledWaker>) -> F + Send + 'static) {
    let (tell, told) = mpsc::channel();
    let tested = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(test(Arc::default()));
        // The channel closes or delivers, unless the test hangs.
        let _ = tell.send(());
    });
    match told.recv_timeout(HANGS) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("something is locked for ever"),
        _ => tested.join().expect("no panic"),
    }
}

struct Ends {
    server: Endpoint,
    client: Endpoint,
    held: Association,
    served: Association,
}

async fn ends(asked: &Arc<PolledWaker>, runtime: Option<Arc<dyn Runtime>>) -> Ends {
    let config = Config::default().with(|it| {
        it.addresses = vec![LOOPBACK];
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
        it.runtime = runtime;
        it.sctp.send_buffer = 64 << 10;
    });
    let server = Endpoint::bind(config.clone().with(|it| it.accept = true)).expect("loopback");
    let client = Endpoint::bind(config).expect("loopback");
    let peer = Peer::from((LOOPBACK, server.port())).over_udp(server.udp_port());
    let held = client.connect(peer).await.expect("it listens");
    let served = server.accept().await.expect("it came");
    *asked.ends.lock().expect("no panic") = Some((client.clone(), held.clone()));
    Ends {
        server,
        client,
        held,
        served,
    }
}

/// Polls with one hostile waker, and then with another one, so that the first is dropped.
fn poll_twice<F: Future>(asked: &Arc<PolledWaker>, mut future: Pin<&mut F>) {
    for _ in 0..2 {
        let waker = Hostile::waker(asked, None);
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending(), "nothing has happened yet");
    }
}

async fn until(mut happens: impl FnMut() -> bool) {
    while !happens() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Tests every future of associations and endpoints: its waker is replaced, dropped with the
/// future, and woken.
#[test]
fn users_may_ask_when_they_are_woken_and_when_their_wakers_are_dropped() {
    watched(|asked| async move {
        let Ends {
            server,
            client,
            held,
            served,
        } = ends(&asked, None).await;
        // The wakers are dropped with the futures.
        {
            poll_twice(&asked, pin!(held.recv()));
            poll_twice(&asked, pin!(held.recv_part()));
            poll_twice(&asked, pin!(held.next_event()));
            poll_twice(&asked, pin!(held.closed()));
            poll_twice(&asked, pin!(client.wait_idle()));
            poll_twice(&asked, pin!(server.accept()));
        }
        // The waker is woken by a message to read.
        let mut reads = pin!(held.recv());
        poll_twice(&asked, reads.as_mut());
        let before = asked.times();
        served
            .send("hello", SendOptions::default())
            .await
            .expect("room");
        until(|| asked.times() > before).await;
        assert!(reads.await.expect("up").is_some());
        // The wakers are woken by space in the send buffer, and by a receipt.
        let receipt = held.send_with_receipt("kept", SendOptions::default());
        let mut receipt = pin!(receipt.await.expect("room"));
        poll_once_or_ready(&asked, receipt.as_mut());
        let mut sends = Box::pin(held.send(pattern(0, 30_000), SendOptions::default()));
        while poll_once_or_ready(&asked, sends.as_mut()) {
            sends = Box::pin(held.send(pattern(0, 30_000), SendOptions::default()));
        }
        let before = asked.times();
        let reader = served.clone();
        let drain = tokio::spawn(async move { while let Ok(Some(_)) = reader.recv().await {} });
        until(|| asked.times() > before).await;
        sends.await.expect("room comes");
        // The waker is woken by the end of the association.
        let mut closed = pin!(held.closed());
        poll_twice(&asked, closed.as_mut());
        let mut reads = pin!(held.recv());
        poll_twice(&asked, reads.as_mut());
        let mut events = pin!(held.next_event());
        poll_once_or_ready(&asked, events.as_mut());
        let before = asked.times();
        served.abort("enough");
        until(|| asked.times() > before + 1).await;
        assert!(matches!(closed.await, CloseReason::AbortedByPeer { .. }));
        reads.await.expect_err("aborted");
        drain.await.expect("no panic");
        asked.ends.lock().expect("no panic").take();
    });
}

/// Polls once; returns true if the future was ready.
fn poll_once_or_ready<F: Future>(asked: &Arc<PolledWaker>, future: Pin<&mut F>) -> bool {
    let waker = Hostile::waker(asked, None);
    matches!(
        future.poll(&mut Context::from_waker(&waker)),
        Poll::Ready(_)
    )
}

/// The task of the sockets may have a hostile waker too: every call that wakes it must do so
/// without locks.
#[test]
fn a_runtime_may_ask_when_its_tasks_are_woken() {
    watched(|asked| async move {
        let tokio = TokioRuntime::current().expect("tokio");
        let hostile: Arc<dyn Runtime> = Arc::new(HostileRuntime(tokio, Arc::clone(&asked)));
        let Ends {
            server,
            client,
            held,
            served,
        } = ends(&asked, Some(hostile)).await;
        let sends = async {
            for seed in 0..200 {
                let sent = held.send(pattern(seed, 5_000), SendOptions::default());
                sent.await.expect("room comes");
            }
            held.shutdown().await
        };
        let receives = async {
            for seed in 0..200 {
                let message = served.recv().await.expect("up").expect("open");
                assert_eq!(message.bytes, pattern(seed, 5_000));
            }
            assert_eq!(served.recv().await, Ok(None));
        };
        let (sent, ()) = tokio::join!(sends, receives);
        assert_eq!(sent, Ok(()));
        assert!(asked.times() > 0);
        asked.ends.lock().expect("no panic").take();
        drop((held, served));
        tokio::join!(server.close(), client.close());
    });
}

/// The runtime calls the endpoint while it registers a new socket, and a request for the same
/// address meanwhile is refused.
#[test]
#[cfg(target_os = "linux")]
fn a_runtime_may_ask_while_it_takes_a_socket() {
    watched(|asked| async move {
        let tokio = TokioRuntime::current().expect("tokio");
        let hostile: Arc<dyn Runtime> = Arc::new(HostileRuntime(tokio, Arc::clone(&asked)));
        let Ends {
            server,
            client,
            held,
            served,
        } = ends(&asked, Some(hostile)).await;
        let before = asked.times();
        client
            .change_addresses(&[AddressChange::Add(BEING_OPENED)])
            .expect("it is free");
        assert!(asked.times() > before);
        assert!(client.addresses().contains(&BEING_OPENED));
        client
            .change_addresses(&[AddressChange::Remove(BEING_OPENED)])
            .expect("it has it");
        // The socket exists already, so no second one is opened.
        client
            .change_addresses(&[AddressChange::Add(BEING_OPENED)])
            .expect("it is free");
        asked.ends.lock().expect("no panic").take();
        drop((held, served));
        tokio::join!(server.close(), client.close());
    });
}

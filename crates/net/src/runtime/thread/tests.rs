use std::future::poll_fn;
use std::net::Ipv4Addr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::epoll::EventFlags;

use super::*;
use crate::runtime::{Readiness, ReadinessHint};

fn runtime() -> ThreadRuntime {
    ThreadRuntime::new().expect("descriptors")
}

fn in_millis(runtime: &dyn Runtime, millis: u64) -> Pin<Box<dyn Timer>> {
    runtime.timer(runtime.now() + Duration::from_millis(millis))
}

/// A timer that was polled before its expiry. If it has expired already, another timer is created,
/// because a busy machine may delay the first poll.
async fn polled_before_its_time(runtime: &dyn Runtime) -> Pin<Box<dyn Timer>> {
    loop {
        let mut timer = in_millis(runtime, 5);
        if poll_fn(|cx| Poll::Ready(timer.as_mut().poll(cx).is_pending())).await {
            return timer;
        }
    }
}

/// A condition that other threads make true.
#[derive(Default)]
struct Flag(Mutex<(bool, Option<Waker>)>);

impl Flag {
    fn raise(&self) {
        let mut state = self.0.lock().expect("no panic");
        state.0 = true;
        if let Some(waker) = state.1.take() {
            waker.wake();
        }
    }

    async fn raised(&self) {
        poll_fn(|cx| {
            let mut state = self.0.lock().expect("no panic");
            if state.0 {
                return Poll::Ready(());
            }
            state.1 = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Sets the flag when dropped.
struct Falls(Arc<Flag>);

impl Drop for Falls {
    fn drop(&mut self) {
        self.0.raise();
    }
}

#[test]
fn it_may_move_to_another_thread_and_its_handle_is_of_all() {
    fn moves<T: Send>() {}
    fn shared<T: Send + Sync>() {}
    moves::<ThreadRuntime>();
    shared::<Handle>();
}

#[test]
fn timers_ring_in_their_order_and_not_before_their_time() {
    let runtime = runtime();
    let handle = runtime.handle();
    let begin = handle.now();
    let order = Arc::new(Mutex::new(Vec::new()));
    let all_rang = Arc::new(Flag::default());
    for millis in [30, 10, 20, 0] {
        let mut timer = handle.timer(begin + Duration::from_millis(millis));
        let (order, all_rang) = (Arc::clone(&order), Arc::clone(&all_rang));
        let handle_of_task = Arc::clone(&handle);
        handle.spawn(Box::pin(async move {
            timer.as_mut().await;
            assert!(handle_of_task.now() >= begin + Duration::from_millis(millis));
            // A timer stays ready after its expiry.
            timer.await;
            let mut order = order.lock().expect("no panic");
            order.push(millis);
            if order.len() == 4 {
                all_rang.raise();
            }
        }));
    }
    runtime.block_on(all_rang.raised());
    assert_eq!(*order.lock().expect("no panic"), [0, 10, 20, 30]);
}

/// A timer may be set to an earlier or later time while a task waits, and again after its expiry.
#[test]
fn a_timer_may_be_set_again() {
    let runtime = runtime();
    let handle = runtime.handle();
    runtime.block_on(async {
        let mut timer = in_millis(&*handle, 600_000);
        let mut polls = 0;
        let begin = handle.now();
        poll_fn(|cx| {
            polls += 1;
            let polled = timer.as_mut().poll(cx);
            if polls == 1 {
                let soon = begin + Duration::from_millis(5);
                timer.as_mut().reset(soon);
            }
            polled
        })
        .await;
        assert!(handle.now() - begin >= Duration::from_millis(5));
        for millis in [1, 0] {
            let at = handle.now() + Duration::from_millis(millis);
            timer.as_mut().reset(at);
            timer.as_mut().await;
            assert!(handle.now() >= at);
        }
        // After the timer is set to a later time, the previous expiry has no effect.
        let mut timer = polled_before_its_time(&*handle).await;
        let later = handle.now() + Duration::from_millis(15);
        timer.as_mut().reset(later);
        timer.as_mut().await;
        assert!(handle.now() >= later);
    });
}

/// A timer wakes the task that polled it last; a dropped timer wakes no task.
#[test]
fn a_timer_rings_for_the_last_that_asked() {
    struct Count(AtomicUsize);
    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let runtime = runtime();
    let handle = runtime.handle();
    let counts = [0, 1, 2].map(|_| Arc::new(Count(AtomicUsize::new(0))));
    let wakers = counts.clone().map(Waker::from);
    let mut timer = in_millis(&*handle, 3_600_000);
    let mut dropped = in_millis(&*handle, 3_600_000);
    for waker in &wakers[..2] {
        assert!(
            timer
                .as_mut()
                .poll(&mut Context::from_waker(waker))
                .is_pending()
        );
    }
    let mut cx = Context::from_waker(&wakers[2]);
    assert!(dropped.as_mut().poll(&mut cx).is_pending());
    for timer in [&mut timer, &mut dropped] {
        timer
            .as_mut()
            .reset(handle.now() + Duration::from_millis(5));
    }
    drop(dropped);
    runtime.block_on(in_millis(&*handle, 10));
    let woken = counts.each_ref().map(|it| it.0.load(Ordering::Relaxed));
    assert_eq!(woken, [0, 1, 0]);
    assert!(timer.as_mut().poll(&mut cx).is_ready());
    assert!(runtime.shared.timers.is_empty());
}

/// A thread without work polls the system once and then sleeps, until a timer expires or another
/// thread wakes it.
#[test]
fn who_waits_does_not_turn() {
    let runtime = runtime();
    let handle = runtime.handle();
    runtime.block_on(in_millis(&*handle, 30));
    let looks = runtime.core.borrow().looks;
    // No poll happens if the timer expired before the first poll.
    assert!(looks <= 2, "{looks}");
    for _ in 0..50 {
        let flag = Arc::new(Flag::default());
        let other = thread::spawn({
            let flag = Arc::clone(&flag);
            move || flag.raise()
        });
        runtime.block_on(flag.raised());
        other.join().expect("no panic");
    }
    // Two polls per wait: one before it, and one if an expiry is late.
    let looks = runtime.core.borrow().looks - looks;
    assert!(looks <= 100, "{looks}");
}

#[test]
fn tasks_of_any_thread_run_and_blocking_work_has_its_own() {
    let runtime = runtime();
    let handle = runtime.handle();
    let here = thread::current().id();
    let done = [0, 1, 2].map(|_| Arc::new(Flag::default()));
    let [spawned, within, blocking] = done.clone();
    let other = thread::spawn(move || {
        let inner = Arc::clone(&handle);
        // By now the runtime waits, or is about to.
        thread::sleep(Duration::from_millis(5));
        handle.spawn(Box::pin(async move {
            assert_eq!(thread::current().id(), here);
            let current = current().expect("this runtime");
            current.spawn(Box::pin(async move { within.raise() }));
            inner.spawn_blocking(Box::new(move || {
                assert_ne!(thread::current().id(), here);
                blocking.raise();
            }));
            spawned.raise();
        }));
    });
    runtime.block_on(async {
        for flag in &done {
            flag.raised().await;
        }
    });
    other.join().expect("no panic");
    assert!(current().is_none(), "out of `block_on`");
}

/// Tasks continue in the next `block_on`, and end with the runtime.
#[test]
fn tasks_are_dropped_with_the_runtime() {
    let runtime = runtime();
    let handle = runtime.handle();
    let (begun, fell) = (Arc::new(Flag::default()), Arc::new(Flag::default()));
    let (begins, falls) = (Arc::clone(&begun), Falls(Arc::clone(&fell)));
    let late = Arc::new(Flag::default());
    let falls_late = Falls(Arc::clone(&late));
    let of_task = Arc::clone(&handle);
    handle.spawn(Box::pin(async move {
        let _falls = falls;
        in_millis(&*of_task, 1).await;
        begins.raise();
        in_millis(&*of_task, 3_600_000).await;
    }));
    runtime.block_on(async {});
    runtime.block_on(begun.raised());
    assert!(!fell.0.lock().expect("no panic").0);
    let shared = Arc::downgrade(&runtime.shared);
    drop(runtime);
    assert!(fell.0.lock().expect("no panic").0);
    // A future that is spawned after the end of the runtime is dropped immediately.
    handle.spawn(Box::pin(async move { drop(falls_late) }));
    assert!(late.0.lock().expect("no panic").0);
    drop(handle);
    assert!(shared.upgrade().is_none(), "nothing holds it");
}

/// A task that is always ready does not delay timers and other tasks.
#[test]
fn a_busy_task_leaves_the_others_their_turn() {
    let runtime = runtime();
    let handle = runtime.handle();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    handle.spawn(Box::pin(poll_fn(move |cx| {
        cx.waker().wake_by_ref();
        match stopped.load(Ordering::Relaxed) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })));
    runtime.block_on(in_millis(&*handle, 5));
    let flag = Arc::new(Flag::default());
    let other = thread::spawn({
        let flag = Arc::clone(&flag);
        move || flag.raise()
    });
    runtime.block_on(flag.raised());
    stop.store(true, Ordering::Relaxed);
    other.join().expect("no panic");
}

#[test]
fn block_on_is_not_within_itself_and_panics_go_through() {
    let runtime = runtime();
    let caught = |of: &dyn Fn()| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(of)).expect_err("it panics");
    };
    caught(&|| runtime.block_on(async { runtime.block_on(async {}) }));
    runtime
        .handle()
        .spawn(Box::pin(async { panic!("a task does") }));
    caught(&|| runtime.block_on(poll_fn(|_| Poll::Pending)));
    assert_eq!(runtime.block_on(async { 7 }), 7, "it goes on");
    // A `block_on` of another runtime may be nested.
    let inner = self::runtime();
    assert_eq!(runtime.block_on(async { inner.block_on(async { 8 }) }), 8);
}

fn watched(runtime: &ThreadRuntime) -> (UdpSocket, WatchedSocket) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
    socket.set_nonblocking(true).expect("a socket");
    let again = socket.try_clone().expect("a descriptor");
    let watched = WatchedSocket::new(socket, Arc::clone(&runtime.shared));
    (again, watched.expect("a socket"))
}

/// After a call that left the socket empty, no call is made before the next event.
#[test]
fn readiness_is_reported_once() {
    let runtime = runtime();
    let (own, watched) = watched(&runtime);
    let to = own.local_addr().expect("bound");
    for round in 0..20_u8 {
        let other = thread::spawn({
            let own = own.try_clone().expect("a descriptor");
            move || own.send_to(&[round], to).map(|_| ())
        });
        let mut buffer = [0; 8];
        let mut calls = 0;
        let mut receive = || {
            calls += 1;
            own.recv(&mut buffer)?;
            Ok(ReadinessHint::NotReady)
        };
        let received = poll_fn(|cx| watched.poll_io(cx, Readiness::Read, &mut receive));
        runtime.block_on(received).expect("it comes");
        assert_eq!(buffer[0], round);
        assert!(calls <= 2, "{calls}");
        other.join().expect("no panic").expect("loopback");
        let mut called = false;
        runtime.block_on(poll_fn(|cx| {
            let polled = watched.poll_io(cx, Readiness::Read, &mut || {
                called = true;
                Err(io::ErrorKind::WouldBlock.into())
            });
            assert!(polled.is_pending() && !called, "round {round}");
            Poll::Ready(())
        }));
    }
}

/// While the socket is full its writability is watched, and reported even if the socket became
/// writable before the watch began.
#[test]
fn writability_is_reported() {
    let runtime = runtime();
    let (_, watched) = watched(&runtime);
    let mut calls = 0;
    let mut send = || {
        calls += 1;
        match calls {
            1 => Err(io::ErrorKind::WouldBlock.into()),
            2 => Ok(ReadinessHint::MayBeReady),
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    };
    let full = || watched.slot.full.load(Ordering::Relaxed);
    let mut was_full = false;
    let sent = poll_fn(|cx| {
        let polled = watched.poll_io(cx, Readiness::Write, &mut send);
        was_full |= full();
        polled
    });
    runtime.block_on(sent).expect("it is sent in the end");
    assert!(was_full && !full());
    let failed = poll_fn(|cx| watched.poll_io(cx, Readiness::Write, &mut send));
    let failed = runtime.block_on(failed).expect_err("it fails");
    assert_eq!(failed.kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(calls, 3);
    // A dropped socket is not watched any more.
    let number = watched.number;
    drop(watched);
    runtime.shared.sockets.record_event(number, EventFlags::IN);
    assert!(runtime.shared.sockets.is_empty());
}

/// With busy polling, timers, other threads and sockets are noticed both while the thread polls and
/// after it has gone to sleep.
#[test]
fn a_check_before_sleeping_returns_the_same() {
    for limit in [Duration::from_micros(50), Duration::from_secs(600)] {
        let runtime = runtime().busy_poll(limit);
        let handle = runtime.handle();
        let flag = Arc::new(Flag::default());
        let raises = Arc::clone(&flag);
        let other = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            raises.raise();
        });
        runtime.block_on(flag.raised());
        other.join().expect("no panic");
        runtime.block_on(in_millis(&*handle, 20));
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let at = socket.local_addr().expect("bound");
        socket.set_nonblocking(true).expect("a socket");
        let watched = handle
            .watch(socket.try_clone().expect("a descriptor"))
            .expect("watched");
        let sends = thread::spawn(move || {
            let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
            thread::sleep(Duration::from_millis(20));
            other.send_to(b"hello", at).expect("room");
        });
        let came = runtime.block_on(poll_fn(|cx| {
            let mut buffer = [0; 8];
            let mut length = 0;
            let mut call = || {
                length = socket.recv(&mut buffer)?;
                Ok(ReadinessHint::MayBeReady)
            };
            let polled = watched.poll_io(cx, Readiness::Read, &mut call);
            polled.map(|result| result.map(|()| length))
        }));
        assert_eq!(came.expect("it comes"), 5);
        sends.join().expect("no panic");
    }
}

//! Tests of the cost and limits of many queued messages.

use super::super::channel::MESSAGES_EXAMINED;
use super::super::ready_set::CHANNELS_EXAMINED;
use super::*;

/// The number of queued messages that a call examines should not depend on the length of the queue.
#[test]
fn work_does_not_grow_with_what_waits() {
    for reliability in [
        Reliability::Reliable,
        Reliability::MaxRetransmits(1),
        Reliability::MaxLifetime(50),
    ] {
        let (mut a, _) = pair();
        a.pipe.full = true;
        let mut options = ChannelOptions::new("");
        options.reliability = reliability;
        let id = a.open(options);
        for _ in 0..1_000 {
            a.channels.send(0, id, text("x")).unwrap();
            MESSAGES_EXAMINED.set(0);
            a.pump();
            assert!(
                MESSAGES_EXAMINED.get() <= 2,
                "{} looks",
                MESSAGES_EXAMINED.get()
            );
        }
    }
}

/// A call should examine only the channels that changed, regardless of their total number.
#[test]
fn work_does_not_grow_with_the_channels() {
    let cost = |channels: usize| {
        let limits = Limits {
            max_channels: 60_000,
            max_buffered_total: usize::MAX,
            ..LIMITS
        };
        let mut a = End::new(DtlsRole::Client, Pipe::with_resets()).up();
        a.channels = Channels::new(DtlsRole::Client, limits);
        a.channels.handle_established(u16::MAX, u16::MAX);
        let options = ChannelOptions::new("").with_reliability(Reliability::MaxLifetime(50));
        let ids: Vec<_> = (0..channels).map(|_| a.open(options.clone())).collect();
        a.pump();
        // Each channel has data in the association, and more messages queued.
        for &id in &ids {
            for _ in 0..3 {
                let payload = Payload::Binary(Bytes::from(vec![1; 40_000]));
                a.channels.send(0, id, payload).unwrap();
            }
        }
        a.pump();
        let most = |a: &mut End, act: &mut dyn FnMut(&mut End, usize)| {
            let mut most = 0;
            for turn in 0..50 {
                CHANNELS_EXAMINED.set(0);
                MESSAGES_EXAMINED.set(0);
                act(a, turn);
                a.channels.pump(a.now, &mut a.pipe);
                most = most.max(CHANNELS_EXAMINED.get() + MESSAGES_EXAMINED.get());
            }
            most
        };
        let nothing = most(&mut a, &mut |_, _| ());
        let sent = most(&mut a, &mut |a, _| {
            let stream = a.pipe.pop().unwrap().stream;
            a.channels.handle_sent(stream);
        });
        let given = most(&mut a, &mut |a, turn| {
            a.channels.send(0, ids[turn], text("x")).unwrap();
        });
        let heard = most(&mut a, &mut |a, turn| {
            let ack = Bytes::from_static(&[2]);
            a.channels.handle_message(ids[turn].stream, 50, ack);
        });
        let closed = most(&mut a, &mut |a, turn| a.channels.close(ids[turn]));
        [nothing, sent, given, heard, closed]
    };
    let few = cost(100);
    assert_eq!(few, cost(2_000));
    assert_eq!((few[0], few[3]), (0, 0), "{few:?}");
    assert!(few.iter().all(|&it| it <= 12), "{few:?}");
}

/// All queues together have a limit, which also applies to a channel with an empty queue. Sending
/// data releases space.
#[test]
fn the_queues_have_a_limit_together() {
    const MAX_QUEUED: usize = 6 << 20;
    let (mut a, mut b) = pair();
    a.channels.limits.max_buffered_total = MAX_QUEUED;
    let ids: Vec<_> = (0..10).map(|_| a.open(ChannelOptions::new(""))).collect();
    exchange(&mut a, &mut b);
    a.pipe.full = true;
    let payload = Payload::Binary(Bytes::from(vec![1; 100_000]));
    let message = payload.clone();
    let mut given = 0;
    let mut fill = |a: &mut End| {
        for &id in ids.iter().cycle() {
            match a.channels.send(0, id, message.clone()) {
                Ok(()) => given += 1,
                Err(error) => {
                    assert_eq!(error, SendError::ConnectionFull);
                    break;
                }
            }
        }
        given
    };
    let most = MAX_QUEUED.div_ceil(100_000 + 64);
    assert_eq!(fill(&mut a), most);
    // Space is granted in order: to the first refused channel, and then to the others.
    let first = ids[most % ids.len()];
    let late = a.open(ChannelOptions::new(""));
    let refused = Err(SendError::ConnectionFull);
    assert_eq!(a.channels.send(0, late, text("")), refused);
    assert!(!a.channels.is_writable_or_closed(first) && !a.channels.is_writable_or_closed(late));
    let other = ids.iter().find(|&&it| it != first).copied().unwrap();
    let room = |a: &mut End, room: usize| {
        a.channels.limits.max_buffered_total = a.channels.ready.queued_bytes() + room;
        a.pump();
    };
    // There is space for one message; the others wait, even if they check repeatedly.
    for _ in 0..5 {
        room(&mut a, 1);
        assert!(a.channels.is_writable_or_closed(first) && !a.channels.is_writable_or_closed(late));
        assert_eq!(a.channels.send(0, other, text("")), refused);
    }
    // A channel that finds no space should return to its previous position.
    a.channels.limits.max_buffered_total = 0;
    assert_eq!(a.channels.send(0, first, text("")), refused);
    room(&mut a, 1);
    assert!(a.channels.is_writable_or_closed(first) && !a.channels.is_writable_or_closed(late));
    a.channels.send(0, first, payload.clone()).unwrap();
    assert_eq!(a.channels.send(0, first, text("")), refused);
    // A channel that does not use its reservation should lose it.
    room(&mut a, 1);
    assert!(a.channels.is_writable_or_closed(late) && !a.channels.is_writable_or_closed(other));
    a.now = a.channels.deadline().unwrap();
    room(&mut a, 1);
    assert!(!a.channels.is_writable_or_closed(late) && a.channels.is_writable_or_closed(other));
    a.now = a.channels.deadline().unwrap();
    room(&mut a, 1);
    assert!(!a.channels.is_writable_or_closed(other) && a.channels.is_writable_or_closed(first));
    assert_eq!(a.channels.deadline(), None);
    a.channels.send(a.now, first, text("")).unwrap();
    a.channels.limits.max_buffered_total = 2 * MAX_QUEUED;
    a.pump();
    let before = fill(&mut a);
    assert!(before > most + 50, "{before}");
    a.pipe.full = false;
    a.pump();
    assert!(fill(&mut a) > before);
    // Closing or resetting a channel should release all its space.
    for (at, &id) in ids.iter().enumerate() {
        if at % 2 == 0 {
            a.channels.close(id);
        } else {
            a.channels.handle_reset(id.stream);
        }
    }
    exchange(&mut a, &mut b);
    a.channels.handle_end();
    assert_eq!(a.channels.ready.queued_bytes(), 0);
    assert_eq!(a.channels.deadline(), None);
}

/// When a peer resets all its streams repeatedly, each channel should be examined once.
#[test]
fn all_streams_are_reset_once() {
    let (mut a, mut b) = pair();
    let ids: Vec<_> = (0..50).map(|_| a.open(ChannelOptions::new(""))).collect();
    exchange(&mut a, &mut b);
    let all: Vec<_> = ids.iter().map(|it| it.stream).collect();
    assert_eq!(b.channels.take_all_reset(), all);
    assert_eq!(b.channels.take_all_reset(), [0_u16; 0]);
    // A new channel on the same stream has a different identifier.
    a.channels.close(ids[3]);
    exchange(&mut a, &mut b);
    let again = a.open(ChannelOptions::new(""));
    exchange(&mut a, &mut b);
    assert_eq!(again.stream, ids[3].stream);
    assert_eq!(b.channels.take_all_reset(), [again.stream]);
}

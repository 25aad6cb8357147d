//! A refused or invalid DATA_CHANNEL_OPEN should cause a reset of its stream (RFC 8832 §6).

use super::*;

fn sound() -> Bytes {
    open_message(&ChannelOptions::new("label")).encode()
}

/// The resets that the end requests from its transport.
fn resets(end: &mut End) -> Vec<u16> {
    end.pump();
    let was_refused = end.pipe.resets.as_mut().map(std::mem::take);
    was_refused.unwrap_or_default().into()
}

/// Whether this end sends no answer, such as a DATA_CHANNEL_ACK.
fn no_answer(end: &mut End) -> bool {
    end.pump();
    end.pipe.pop().is_none()
}

#[test]
fn each_way_to_be_refused_draws_one_reset() {
    let with = |change: fn(&mut Vec<u8>)| {
        let mut bytes = sound().to_vec();
        change(&mut bytes);
        Bytes::from(bytes)
    };
    let bad = [
        ("of this end's parity", 4, sound()),
        ("no channel type", 5, with(|it| it[1] = 3)),
        ("cut", 5, with(|it| it.truncate(7))),
        ("only its type", 5, with(|it| it.truncate(1))),
        ("longer than it says", 5, with(|it| it.push(0))),
        ("no text", 5, with(|it| it[13] = 0xFF)),
    ];
    for (case, stream, bytes) in bad {
        let (mut a, _) = pair();
        // The DATA_CHANNEL_OPEN is repeated many times, before and after the reset is requested.
        for _ in 0..100 {
            a.channels.handle_message(stream, 50, bytes.clone());
        }
        assert_eq!(resets(&mut a), [stream], "{case}");
        for _ in 0..100 {
            a.channels.handle_message(stream, 50, bytes.clone());
        }
        assert!(resets(&mut a).is_empty(), "{case}");
        assert!(no_answer(&mut a), "{case}");
        assert_eq!(a.events(), [], "{case}");
        let counted: u64 = a.channels.discards().iter().map(|(_, it)| it).sum();
        assert_eq!(counted, 200, "{case}");
        // No channel should be opened on the stream until both ends have reset it.
        a.channels.handle_reset_done(stream);
        a.channels.handle_message(5, 50, sound());
        let taken = a.events().len();
        assert_eq!(taken, usize::from(stream != 5), "{case}");
        a.channels.handle_reset(stream);
        a.channels.handle_message(7, 50, sound());
        a.channels.handle_message(5, 50, sound());
        assert_eq!(a.events().len(), 2 - taken, "{case}");
    }
}

/// If the limit of channels is exceeded, the opener should be notified of the failure. The stream
/// can be used by a later channel.
#[test]
fn the_opener_is_notified_that_its_channel_failed() {
    let (mut a, mut b) = pair();
    a.channels.limits.max_channels = 2;
    let ids: Vec<_> = (0..5).map(|_| b.open(ChannelOptions::new(""))).collect();
    exchange(&mut a, &mut b);
    let closed: Vec<_> = b
        .events()
        .into_iter()
        .filter_map(|it| match it {
            ChannelEvent::Closed(id) => Some(id),
            _ => None,
        })
        .collect();
    assert_eq!(closed, ids[2..]);
    assert_eq!(a.events().len(), 2);
    a.channels.close(ids[0]);
    exchange(&mut a, &mut b);
    forget(&mut a, &mut b);
    for _ in 0..2 {
        b.open(ChannelOptions::new(""));
    }
    exchange(&mut a, &mut b);
    let opened = b.events();
    let opened = opened
        .iter()
        .filter(|it| matches!(it, ChannelEvent::Opened(_)));
    assert_eq!(opened.count(), 1);
}

/// If a stream is opened twice, its channel should be closed, whichever end sees it.
#[test]
fn a_channel_that_is_opened_twice_is_closed() {
    let malformed = Bytes::from_static(&[3, 9]);
    for again in [sound(), malformed] {
        let (mut a, mut b) = pair();
        let [own, theirs] = [&mut a, &mut b].map(|it| it.open(ChannelOptions::new("")));
        exchange(&mut a, &mut b);
        forget(&mut a, &mut b);
        for id in [own, theirs] {
            a.channels.handle_message(id.stream, 50, again.clone());
            exchange(&mut a, &mut b);
            assert_eq!(a.events(), [ChannelEvent::Closed(id)]);
            assert_eq!(b.events(), [ChannelEvent::Closed(id)]);
        }
    }
}

/// A peer without RE-CONFIG cannot be notified. A peer that denies the reset should get no second
/// request.
#[test]
fn where_the_stream_cannot_be_reset() {
    let (mut a, _) = pair_without_resets();
    a.channels.handle_message(5, 50, Bytes::from_static(&[3]));
    a.pump();
    a.channels.handle_message(5, 50, sound());
    assert_eq!(a.events().len(), 1);

    let (mut a, _) = pair();
    a.channels.handle_message(5, 50, Bytes::from_static(&[3]));
    assert_eq!(resets(&mut a), [5]);
    a.channels.handle_reset_refused(5);
    for _ in 0..10 {
        a.channels.handle_message(5, 50, sound());
        assert!(resets(&mut a).is_empty());
    }
    assert_eq!(a.events(), []);
}

/// The peer repeatedly resets all its streams in one request.
#[test]
fn a_reset_of_all_streams_covers_those_that_were_refused() {
    let (mut a, _) = pair();
    a.channels.handle_message(5, 50, Bytes::from_static(&[3]));
    assert_eq!(resets(&mut a), [5]);
    for expected in [&[5][..], &[]] {
        assert_eq!(a.channels.take_all_reset(), expected);
        a.channels.handle_reset(5);
    }
    // The peer's response to the reset of this end was lost.
    a.channels.handle_message(5, 50, sound());
    assert_eq!(a.events().len(), 1);
}

/// If the peer sends an invalid DATA_CHANNEL_OPEN on every stream repeatedly, each stream should
/// have only one pending reset.
#[test]
fn a_peer_that_is_refused_everywhere() {
    let (mut a, _) = pair();
    a.channels.handle_streams_added(u16::MAX, u16::MAX);
    for _ in 0..3 {
        for stream in 0..u16::MAX {
            a.channels
                .handle_message(stream, 50, Bytes::from_static(&[3]));
        }
    }
    assert_eq!(resets(&mut a).len(), usize::from(u16::MAX));
    assert!(resets(&mut a).is_empty());
    a.channels.handle_end();
    assert_eq!(a.events(), []);
}

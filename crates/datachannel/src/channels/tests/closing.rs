//! Closing of channels.

use super::*;

/// Messages sent before the close should arrive, both ends should get an event, and another channel
/// can then use the stream (RFC 8831 §6.7).
#[test]
fn a_channel_is_closed_by_resets() {
    for by_opener in [true, false] {
        let (mut a, mut b) = pair();
        let id = a.open(ChannelOptions::new("one"));
        exchange(&mut a, &mut b);
        forget(&mut a, &mut b);
        let end = if by_opener { &mut a } else { &mut b };
        end.channels.send(0, id, text("last")).unwrap();
        end.channels.close(id);
        assert_eq!(
            end.channels.send(0, id, text("later")),
            Err(SendError::Closed)
        );
        exchange(&mut a, &mut b);
        let (closer, other) = if by_opener {
            (&mut a, &mut b)
        } else {
            (&mut b, &mut a)
        };
        assert_eq!(
            other.events(),
            [
                ChannelEvent::Message(id, text("last")),
                ChannelEvent::Closed(id)
            ]
        );
        let heard = closer.events();
        assert_eq!(heard.last(), Some(&ChannelEvent::Closed(id)));
        let again = a.open(ChannelOptions::new("two"));
        assert_eq!(again.stream, id.stream);
        assert_ne!(again, id);
        exchange(&mut a, &mut b);
        assert_eq!(b.events(), [ChannelEvent::Incoming(again)]);
        // The old identifier is no longer valid.
        assert_eq!(a.channels.send(0, id, text("?")), Err(SendError::Closed));
    }
}

#[test]
fn both_ends_close_at_once() {
    let (mut a, mut b) = pair();
    let id = a.open(ChannelOptions::new(""));
    exchange(&mut a, &mut b);
    forget(&mut a, &mut b);
    a.channels.close(id);
    b.channels.close(id);
    exchange(&mut a, &mut b);
    assert_eq!(a.events(), [ChannelEvent::Closed(id)]);
    assert_eq!(b.events(), [ChannelEvent::Closed(id)]);
}

/// Without RE-CONFIG the peer is not notified, and the stream is not used again.
#[test]
fn a_channel_is_closed_without_resets() {
    let (mut a, mut b) = pair_without_resets();
    let id = a.open(ChannelOptions::new(""));
    exchange(&mut a, &mut b);
    forget(&mut a, &mut b);
    a.channels.send(0, id, text("last")).unwrap();
    a.channels.close(id);
    a.pump();
    assert_eq!(a.events(), [], "something is not sent yet");
    exchange(&mut a, &mut b);
    assert_eq!(a.events().last(), Some(&ChannelEvent::Closed(id)));
    assert_eq!(b.events(), [ChannelEvent::Message(id, text("last"))]);
    assert_ne!(a.open(ChannelOptions::new("")).stream, id.stream);
    // Later messages of the other end should be discarded.
    b.channels.send(0, id, text("?")).unwrap();
    exchange(&mut a, &mut b);
    assert_eq!(a.channels.discards().of(DiscardReason::NoChannel), 1);
}

/// Options of a closed channel should be available until [`ChannelEvent::Closed`] is polled, and
/// its names count towards the limit until then.
#[test]
fn options_are_known_until_the_end_is_polled() {
    let (mut a, mut b) = pair();
    let id = a.open(ChannelOptions::new("label"));
    exchange(&mut a, &mut b);
    b.channels.handle_end();
    assert_eq!(b.channels.names, 5);
    while let Some(event) = b.channels.poll_event() {
        let label = b.channels.options(id).map(|it| it.label.as_str());
        let ended = event == ChannelEvent::Closed(id);
        assert_eq!(label, (!ended).then_some("label"), "{event:?}");
    }
    assert_eq!(b.channels.names, 0);
}

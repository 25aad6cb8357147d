//! A malicious peer, which sends invalid bytes and excessive amounts of valid input. Errors should
//! be counted or refused, buffered data should be limited, and other channels should continue.

use crate::world;

use std::collections::BTreeMap;

use anabranch_datachannel::channels::{ChannelEvent, Channels, DtlsRole, Limits};
use anabranch_datachannel::sctp_transport::{
    OutgoingMessage, ReconfigUnavailable, SctpTransport, SendRefused,
};
use anabranch_datachannel::sdp::{Offer, SdpError};
use anabranch_datachannel::{ChannelOptions, Config, DiscardReason, Event, Payload};
use bytes::Bytes;
use world::{SECOND, World};

/// A transport that accepts all messages, or none.
#[derive(Default)]
struct Sink {
    taken: Vec<OutgoingMessage>,
    resets: Vec<u16>,
    full: bool,
}

impl SctpTransport for Sink {
    fn buffered(&self, _stream: u16) -> usize {
        0
    }

    fn set_weight(&mut self, _stream: u16, _weight: u16) {}

    fn send(&mut self, _now: u64, message: OutgoingMessage) -> Result<(), SendRefused> {
        if self.full {
            return Err(SendRefused::Full);
        }
        self.taken.push(message);
        Ok(())
    }

    fn reset(&mut self, stream: u16) -> Result<(), ReconfigUnavailable> {
        // Behaves like an association with 1,000 streams.
        if stream >= 1_000 {
            return Err(ReconfigUnavailable);
        }
        self.resets.push(stream);
        Ok(())
    }
}

const DCEP: u32 = 50;

fn server(change: impl FnOnce(&mut Limits)) -> Channels {
    let mut limits = Limits::of(&Config::default());
    change(&mut limits);
    let mut channels = Channels::new(DtlsRole::Server, limits);
    channels.handle_established(1_000, 1_000);
    channels
}

fn counts(channels: &Channels) -> BTreeMap<DiscardReason, u64> {
    channels.discards().iter().collect()
}

fn events(channels: &mut Channels) -> Vec<ChannelEvent> {
    std::iter::from_fn(|| channels.poll_event()).collect()
}

/// A DATA_CHANNEL_OPEN whose length fields may differ from the lengths of the names.
fn open(kind: u8, lengths: [u16; 2], names: &[u8]) -> Bytes {
    let mut bytes = vec![3, kind, 1, 0, 0, 0, 0, 0];
    for length in lengths {
        bytes.extend(length.to_be_bytes());
    }
    bytes.extend(names);
    bytes.into()
}

#[test]
fn dcep_that_cannot_be_read() {
    let mut channels = server(|_| ());
    let mut bad = vec![
        Bytes::new(),
        Bytes::from_static(&[0]),
        Bytes::from_static(&[1]),
        Bytes::from_static(&[4]),
        Bytes::from_static(&[255; 64]),
        // A DATA_CHANNEL_ACK with an extra byte.
        Bytes::from_static(&[2, 0]),
        // Lengths that are too large, too small, and so large that their sum exceeds 16 bits.
        open(0, [3, 0], b"ab"),
        open(0, [0, 3], b"ab"),
        open(0, [1, 0], b"ab"),
        open(0, [u16::MAX, u16::MAX], b"ab"),
        open(0, [u16::MAX, 3], b"ab"),
        // Unassigned channel types.
        open(0x03, [1, 1], b"ab"),
        open(0x7F, [1, 1], b"ab"),
        open(0xFF, [1, 1], b"ab"),
        // Names that are not UTF-8: a truncated character, an overlong encoding, an unpaired
        // surrogate.
        open(0, [1, 1], b"\xC3a"),
        open(0, [2, 0], b"\xC0\x80"),
        open(0, [0, 3], b"\xED\xA0\x80"),
    ];
    let sound = open(0, [1, 1], b"ab");
    bad.extend((1..sound.len()).map(|end| sound.slice(..end)));
    for bytes in &bad {
        channels.handle_message(0, DCEP, bytes.clone());
    }
    // All invalid messages together cause a single reset of their stream (RFC 8832 §6), which frees
    // the stream.
    let mut sink = Sink::default();
    channels.pump(0, &mut sink);
    assert_eq!(sink.resets, [0]);
    channels.handle_reset_done(0);
    channels.handle_reset(0);
    let expected = BTreeMap::from([(DiscardReason::Dcep, bad.len() as u64)]);
    assert_eq!(counts(&channels), expected);
    assert!(events(&mut channels).is_empty() && channels.streams().is_empty());
    channels.handle_message(0, DCEP, sound);
    assert!(matches!(
        events(&mut channels)[..],
        [ChannelEvent::Incoming(_)]
    ));
}

/// DATA_CHANNEL_OPEN on streams that belong to the other end, do not exist, or already have a
/// channel; and unexpected DATA_CHANNEL_ACKs.
#[test]
fn dcep_where_it_does_not_belong() {
    let mut channels = server(|_| ());
    let mut sink = Sink::default();
    let own = channels.open(ChannelOptions::new("ours")).unwrap();
    for stream in [3, 999, 1_000, 1_002, 65_534, 65_535] {
        channels.handle_message(stream, DCEP, open(0, [1, 1], b"ab"));
    }
    channels.handle_message(0, DCEP, open(0, [1, 1], b"ab"));
    channels.handle_message(0, DCEP, open(0x80, [1, 1], b"cd"));
    for stream in [0, 2, 65_535] {
        channels.handle_message(stream, DCEP, Bytes::from_static(&[2]));
    }
    channels.handle_message(own.stream(), DCEP, Bytes::from_static(&[2]));
    channels.handle_message(own.stream(), DCEP, Bytes::from_static(&[2]));
    let expected = [
        (DiscardReason::OpenRefused, 7),
        (DiscardReason::AckUnexpected, 4),
    ];
    assert_eq!(counts(&channels), BTreeMap::from(expected));
    channels.pump(0, &mut sink);
    let answers = sink.taken.iter().filter(|it| it.payload[..] == [2]);
    assert_eq!(answers.map(|it| it.stream).collect::<Vec<_>>(), [0]);
    // The channel of a stream that was opened twice should be closed, and a stream of the wrong
    // parity reset (RFC 8832 §6).
    sink.resets.sort_unstable();
    assert_eq!(sink.resets, [0, 3, 999]);
    let found = events(&mut channels);
    let [ChannelEvent::Incoming(id), ChannelEvent::Opened(_)] = found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(channels.options(id).unwrap().label, "a");
    assert!(channels.options(id).unwrap().ordered);
}

/// The peer opens a channel with the longest names on every stream. The channels within the limits
/// should be accepted, and memory should be limited.
#[test]
fn too_many_channels() {
    let name = vec![b'x'; 65_535];
    let long = open(0, [65_535, 0], &name);
    let mut channels = server(|_| ());
    channels.handle_streams_added(65_535, 65_535);
    for stream in (0..65_535).step_by(2) {
        channels.handle_message(stream, DCEP, long.clone());
    }
    let taken = channels.streams().len();
    assert_eq!(taken, (1 << 20) / 65_535);
    let refused = 32_768 - taken as u64;
    let expected = BTreeMap::from([(DiscardReason::TooManyChannels, refused)]);
    assert_eq!(counts(&channels), expected);

    let mut channels = server(|limits| limits.max_channels = 100);
    for stream in (0..1_000).step_by(2) {
        channels.handle_message(stream, DCEP, open(0, [0, 0], b""));
    }
    assert_eq!(channels.streams().len(), 100);
    assert_eq!(counts(&channels)[&DiscardReason::TooManyChannels], 400);
}

/// While the association accepts no data, channels are opened and closed repeatedly. The
/// DATA_CHANNEL_ACKs for these channels should be buffered only in the channels' queues.
#[test]
fn channels_opened_and_closed_over_and_over() {
    let mut channels = server(|_| ());
    let mut sink = Sink::default();
    for turn in 0..10_000 {
        sink.full = turn % 2 == 0;
        channels.handle_message(0, DCEP, open(0, [1, 1], b"ab"));
        channels.pump(0, &mut sink);
        channels.handle_reset(0);
        channels.pump(0, &mut sink);
        channels.handle_reset_done(0);
        sink.taken.clear();
        let found = events(&mut channels);
        let [ChannelEvent::Incoming(first), ChannelEvent::Closed(last)] = found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(first, last);
        assert!(channels.streams().is_empty());
    }
    assert!(counts(&channels).is_empty());
}

/// A channel on a stream that does not exist should be closed. If the stream is added later, a new
/// channel on it should have a different identifier.
#[test]
fn a_name_is_used_once() {
    let limits = Limits::of(&Config::default());
    let mut channels = Channels::new(DtlsRole::Client, limits);
    let early = [(); 2].map(|()| channels.open(ChannelOptions::new("early")).unwrap());
    channels.handle_established(1, 1);
    assert_eq!(events(&mut channels), [ChannelEvent::Closed(early[1])]);
    channels.handle_streams_added(1_000, 1_000);
    let late = channels.open(ChannelOptions::new("late")).unwrap();
    assert_eq!(late.stream(), early[1].stream());
    assert_ne!(late, early[1]);
}

#[test]
fn data_that_is_none() {
    let mut channels = server(|_| ());
    channels.handle_message(0, 51, Bytes::from_static(b"nobody's"));
    channels.handle_message(65_535, 51, Bytes::from_static(b"nobody's"));
    channels.handle_message(0, DCEP, open(0, [0, 0], b""));
    for (ppid, bytes) in [
        // PPIDs that are not for data, and those that RFC 8831 deprecates.
        (0, &b"x"[..]),
        (49, b"x"),
        (55, b"x"),
        (58, b"x"),
        (u32::MAX, b"x"),
        (52, b"x"),
        (54, b"x"),
        // Text that is not UTF-8.
        (51, b"\xFF"),
        (51, b"a\xC3"),
    ] {
        channels.handle_message(0, ppid, Bytes::copy_from_slice(bytes));
    }
    let expected = [(DiscardReason::NoChannel, 2), (DiscardReason::Payload, 9)];
    assert_eq!(counts(&channels), BTreeMap::from(expected));
    // The byte of an empty message is ignored (RFC 8831 §6.6).
    channels.handle_message(0, 56, Bytes::from_static(b"anything"));
    let last = events(&mut channels).pop();
    assert!(matches!(last, Some(ChannelEvent::Message(_, Payload::Text(text))) if text.is_empty()));
}

/// Empty messages for a user that does not poll: the number of buffered messages should also be
/// limited.
#[test]
fn a_flood_of_empty_messages() {
    let mut world = World::new(1, 0).connect();
    let id = world.ends[0]
        .open(world.now, ChannelOptions::new(""))
        .unwrap();
    world.run(SECOND);
    world.reads = false;
    for _ in 0..100_000 {
        world.ends[0]
            .send(world.now, id, Payload::from(""))
            .unwrap();
    }
    world.run(20 * SECOND);
    assert!(world.ends[1].is_held_back());
    let waiting = std::iter::from_fn(|| world.ends[1].poll_event()).count();
    assert!((10_000..20_000).contains(&waiting), "{waiting}");
}

/// Channels are opened and closed repeatedly for a user that does not poll.
#[test]
fn a_flood_of_channels() {
    let mut world = World::new(1, 0).connect();
    world.reads = false;
    let mut open = Vec::new();
    for _ in 0..60 {
        for id in open.drain(..) {
            world.ends[0].close_channel(world.now, id);
        }
        while let Ok(id) = world.ends[0].open(world.now, ChannelOptions::new("")) {
            open.push(id);
        }
        world.run(2 * SECOND);
        if world.ends[1].is_held_back() {
            break;
        }
    }
    assert!(world.ends[1].is_held_back());
    let waiting = std::iter::from_fn(|| world.ends[1].poll_event()).collect::<Vec<_>>();
    assert!(waiting.len() < 20_000, "{}", waiting.len());
    let ended = waiting.iter().any(|it| matches!(it, Event::Closed(_)));
    assert!(!ended && !world.ends[1].is_closed());
}

const SOUND: &str = "v=0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=ice-ufrag:abcd\r\n\
    a=ice-pwd:0123456789012345678901\r\na=setup:actpass\r\na=fingerprint:sha-256 \
    00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:14:15:16:17:18:19:1A:1B:1C:1D:1E:1F\r\n";

/// Offers with one error each. The message should name the line, the value and the allowed values,
/// in at most one line of text.
#[test]
fn offers_that_are_none() {
    assert!(Offer::parse(SOUND).is_ok());
    let long = "x".repeat(100_000);
    for (from, to, expected) in [
        ("v=0", "v=1", "line 1: found \"v=1\"; allowed: v=0"),
        ("v=0\r\n", "", "line 1: found \"m=application"),
        (
            "a=ice-ufrag",
            "ice-ufrag",
            "line 3: found \"ice-ufrag:abcd\"",
        ),
        (
            "a=ice-ufrag",
            "=ice-ufrag",
            "line 3: found \"=ice-ufrag:abcd\"",
        ),
        ("abcd", "abc", "line 3: found \"abc\"; allowed: 4 to 256"),
        ("abcd", "ab d", "line 3: found \"ab d\""),
        ("abcd", "ab:d", "line 3: found \"ab:d\""),
        ("abcd", &long, "line 3: found \"xxxx"),
        ("abcd", "ab\0d", "line 3: found"),
        ("abcd", "abcd\ra=mid:0", "line 3: found"),
        ("0123456789012345678901", "0123", "line 4: found \"0123\""),
        ("actpass", "holdconn", "line 5: found \"holdconn\""),
        ("00:01", "0:01", "line 6: found"),
        ("00:01", "00:01:01", "line 6: found"),
        ("00:01", "0g:01", "line 6: found"),
        ("sha-256", "sha-1", "no a=fingerprint:sha-256"),
        ("a=setup", "a=sutep", "no a=setup"),
        ("a=ice-pwd", "a=ice-pw", "no a=ice-pwd"),
        ("application 9", "application 0", "no section m=application"),
        ("application 9 ", "application ", "line 2: found"),
        ("m=application", "m=audio", "no section m=application"),
        ("UDP/DTLS/SCTP", "TCP/DTLS/SCTP", "no section m=application"),
        (
            "a=setup",
            "a=sctp-port:0\r\na=setup",
            "line 5: found \"0\"; allowed: 1 to 65535",
        ),
        (
            "a=setup",
            "a=sctp-port:65536\r\na=setup",
            "line 5: found \"65536\"",
        ),
        (
            "a=setup",
            "a=max-message-size:-1\r\na=setup",
            "line 5: found \"-1\"",
        ),
        (
            "a=setup",
            "a=max-message-size:99999999999999999999\r\na=setup",
            "line 5: found \"99999",
        ),
    ] {
        let offer = SOUND.replacen(from, to, 1);
        assert_ne!(offer, SOUND);
        let error = Offer::parse(&offer).expect_err(to).to_string();
        assert!(error.contains(expected), "{error:?} has not {expected:?}");
        assert!(error.len() < 1_000, "{} bytes", error.len());
    }
}

/// The size of an offer and the number of its sections should be limited. Offers within the limits
/// should be accepted.
#[test]
fn offers_without_end() {
    let sections = |count| format!("{SOUND}{}", "m=audio 9 UDP x\r\n".repeat(count));
    let last = Offer::parse(&sections(255));
    assert!(last.is_ok(), "{last:?}");
    let line = 6 + 256;
    assert_eq!(
        Offer::parse(&sections(256)),
        Err(SdpError::TooManySections { line })
    );
    assert_eq!(
        Offer::parse(&sections(13_000)),
        Err(SdpError::TooManySections { line })
    );
    let length = (256 << 10) + 1;
    let padded = format!("{SOUND}a={}", "x".repeat(length - SOUND.len() - 2));
    assert_eq!(Offer::parse(&padded), Err(SdpError::TooLong(length)));
    assert!(Offer::parse(&padded[..length - 1]).is_ok());
}

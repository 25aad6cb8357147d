//! Scenario for the channels of an association. Its bytes determine the messages of the peer, the
//! calls of the user, and the amount of data that the association accepts.
//!
//! For any scenario there should be no panic, limits should hold, and each channel should open once
//! and close once, without events before or after.

use std::collections::BTreeMap;

use anabranch_datachannel::channels::{ChannelEvent, Channels, DtlsRole, Limits};
use anabranch_datachannel::sctp_transport::{
    OutgoingMessage, ReconfigUnavailable, SctpTransport, SendRefused,
};
use anabranch_datachannel::{ChannelId, ChannelOptions, Config, Payload, Reliability};
use bytes::Bytes;

/// Maximum number of steps.
const MAX_ACTS: usize = 500;
/// Maximum number of channels.
const MAX_CHANNELS: usize = 6;

struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    fn take(&mut self, len: usize) -> Bytes {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        Bytes::copy_from_slice(taken)
    }
}

/// A transport that accepts as much data as the scenario specifies.
#[derive(Default)]
struct Sink {
    left: BTreeMap<u16, usize>,
    room: usize,
    resets: bool,
}

impl SctpTransport for Sink {
    fn buffered(&self, stream: u16) -> usize {
        self.left.get(&stream).copied().unwrap_or_default()
    }

    fn set_weight(&mut self, _stream: u16, weight: u16) {
        assert_ne!(weight, 0);
    }

    fn send(&mut self, _now: u64, message: OutgoingMessage) -> Result<(), SendRefused> {
        assert!(!message.payload.is_empty(), "SCTP carries no empty message");
        let Some(room) = self.room.checked_sub(1) else {
            return Err(SendRefused::Full);
        };
        self.room = room;
        *self.left.entry(message.stream).or_default() += message.payload.len();
        Ok(())
    }

    fn reset(&mut self, _stream: u16) -> Result<(), ReconfigUnavailable> {
        if self.resets {
            Ok(())
        } else {
            Err(ReconfigUnavailable)
        }
    }
}

/// State of a channel according to the events that were emitted.
#[derive(Debug, PartialEq)]
enum Told {
    Asked,
    Open,
    Closed,
}

struct Scenario<'a> {
    script: Script<'a>,
    channels: Channels,
    sink: Sink,
    now: u64,
    told: BTreeMap<ChannelId, Told>,
    ids: Vec<ChannelId>,
}

/// Runs the scenario in `bytes`.
pub fn run(bytes: &[u8]) {
    let mut script = Script(bytes);
    let how = script.byte();
    let role = [DtlsRole::Client, DtlsRole::Server][usize::from(how & 1)];
    let config = Config::default().with(|it| {
        it.max_channels = MAX_CHANNELS;
        it.max_buffered = 10_000;
        it.max_buffered_total = 25_000;
    });
    let mut scenario = Scenario {
        script,
        channels: Channels::new(role, Limits::of(&config)),
        sink: Sink {
            resets: how & 2 == 0,
            ..Sink::default()
        },
        now: 0,
        told: BTreeMap::new(),
        ids: Vec::new(),
    };
    for _ in 0..MAX_ACTS {
        if scenario.script.0.is_empty() {
            break;
        }
        scenario.act();
        scenario.settle();
    }
    scenario.channels.handle_end();
    scenario.settle();
    assert!(scenario.channels.streams().is_empty());
    let closed = |it: &Told| *it == Told::Closed;
    assert!(scenario.told.values().all(closed), "{:?}", scenario.told);
}

impl Scenario<'_> {
    fn stream(&mut self) -> u16 {
        match self.script.byte() {
            stream @ 0..=15 => stream.into(),
            stream => u16::from(stream) << 8 | 0xFF,
        }
    }

    fn id(&mut self) -> Option<ChannelId> {
        let at = usize::from(self.script.byte());
        let place = at.checked_rem(self.ids.len())?;
        self.ids.get(place).copied()
    }

    fn act(&mut self) {
        match self.script.byte() % 16 {
            0 => self.say(50, |script| {
                let len = script.byte();
                script.take(len.into())
            }),
            1 | 2 => self.say(50, |script| {
                let mut bytes = vec![
                    3,
                    [0, 1, 2, 0x80, 0x81, 0x82, 3][usize::from(script.byte()) % 7],
                ];
                bytes.extend([script.byte(), 0, 0, 0, 0, script.byte()]);
                let names = script.take(4);
                bytes.extend([0, names.len() as u8, 0, 0]);
                bytes.extend(names);
                bytes.into()
            }),
            3 => self.say(50, |_| Bytes::from_static(&[2])),
            4 => {
                let ppid = 49 + u32::from(self.script.byte() % 10);
                self.say(ppid, |script| script.take(3));
            }
            5 => {
                let stream = self.stream();
                self.channels.handle_reset(stream);
            }
            6 => {
                let stream = self.stream();
                // The association reports a reset after all data of the stream is acknowledged.
                if self.sink.buffered(stream) == 0 {
                    self.channels.handle_reset_done(stream);
                }
            }
            7 => {
                let stream = self.stream();
                self.channels.handle_reset_refused(stream);
            }
            8 => {
                let stream = self.stream();
                self.channels.handle_abandoned(stream);
            }
            9 => {
                let streams = self.script.byte();
                match self.script.byte() % 2 {
                    0 => self.channels.handle_established(streams.into(), 1_000),
                    _ => self.channels.handle_streams_added(1_000, 2_000),
                }
            }
            10 => self.open(),
            11 | 12 => {
                let length = usize::from(self.script.byte()) * 7;
                if let Some(id) = self.id() {
                    let payload = Payload::Binary(Bytes::from(vec![1; length]));
                    // Fails if the channel is closed or its queue is full.
                    let _ = self.channels.send(self.now, id, payload);
                }
            }
            13 => {
                if let Some(id) = self.id() {
                    self.channels.close(id);
                }
            }
            14 => {
                // The association sends data of a stream.
                let (stream, bytes) = (self.stream(), usize::from(self.script.byte()) * 20);
                let left = self.sink.left.entry(stream).or_default();
                *left = left.saturating_sub(bytes);
                self.channels.handle_sent(stream);
            }
            _ => {
                self.now += u64::from(self.script.byte()) * 10_000_000;
                self.sink.room = usize::from(self.script.byte() % 8);
            }
        }
    }

    fn say(&mut self, ppid: u32, bytes: impl FnOnce(&mut Script<'_>) -> Bytes) {
        let stream = self.stream();
        let bytes = bytes(&mut self.script);
        self.channels.handle_message(stream, ppid, bytes);
    }

    fn open(&mut self) {
        let how = self.script.byte();
        let options = ChannelOptions::new("ours")
            .with_ordered(how & 1 == 0)
            .with_priority(u16::from(how) << 3)
            .with_reliability(match how >> 1 & 3 {
                0 => Reliability::MaxRetransmits(0),
                1 => Reliability::MaxLifetime(50),
                _ => Reliability::Reliable,
            })
            .with_negotiated((how & 0x18 == 0x18).then_some(u16::from(how >> 5)));
        // Fails if no stream is free.
        if let Ok(id) = self.channels.open(options) {
            let before = self.told.insert(id, Told::Asked);
            assert_eq!(before, None, "a name is used once");
            self.ids.push(id);
        }
    }

    /// Passes messages until the association accepts no more, and checks all events.
    fn settle(&mut self) {
        self.channels.pump(self.now, &mut self.sink);
        while let Some(event) = self.channels.poll_event() {
            let (id, from, to) = match event {
                ChannelEvent::Incoming(id) => {
                    assert!(!self.told.contains_key(&id), "a name is used once");
                    self.ids.push(id);
                    self.told.insert(id, Told::Open);
                    continue;
                }
                ChannelEvent::Opened(id) => (id, Some(Told::Asked), Told::Open),
                ChannelEvent::Message(id, _) => (id, Some(Told::Open), Told::Open),
                ChannelEvent::Closed(id) => (id, None, Told::Closed),
                ChannelEvent::BufferedAmountLow(id) | ChannelEvent::Abandoned(id) => {
                    assert_ne!(self.told[&id], Told::Closed);
                    continue;
                }
                other => panic!("{other:?}"),
            };
            let before = self.told.insert(id, to).expect("told of before");
            assert_ne!(before, Told::Closed, "{id:?}");
            assert!(from.is_none_or(|it| it == before), "{id:?}: {before:?}");
        }
        assert!(self.channels.streams().len() <= MAX_CHANNELS);
        for &id in &self.ids {
            let room = 10_000 + 2 * 255 * 7 + (64 << 10);
            assert!(self.channels.buffered_amount(id) <= room);
        }
    }
}

//! Tests of receive buffers that even correct peers overrun: by tiny chunks, by chunks larger than
//! the buffer, and because the sender counts bytes differently. All messages should arrive once and
//! in order, and the association should not be aborted.

use crate::common;

use anabranch_sctp::config::SchedulerKind;
use anabranch_sctp::profile::WhenFull;
use anabranch_sctp::{AssociationId, AssociationState, Config, Profile, SendOptions};
use anabranch_transport::time::{MILLISECOND, SECOND};
use bytes::Bytes;
use common::rig::Rig;
use common::{A, Fate, Shot, World, Z};

/// A sends numbered messages of `size` bytes as long as they are accepted. `next` is the number of
/// the next message, and `count` the number of all messages.
fn offer(world: &mut World, a: AssociationId, next: &mut u32, count: u32, size: usize) {
    let association = world.endpoints[A].association_mut(a).expect("known");
    while *next < count {
        let message = Bytes::from(vec![*next as u8; size]);
        if association.send(0, message, &SendOptions::new()).is_err() {
            break;
        }
        *next += 1;
    }
    world.drain(A);
}

/// A sends `count` numbered messages of `size` bytes to Z, and Z reads every 50 ms. Returns the
/// duration in seconds.
fn carry(
    place: &str,
    (a, z): (Config, Config),
    (count, size): (u32, usize),
    fate: Box<dyn FnMut(&Shot) -> Fate>,
) -> u64 {
    let mut world = World::with_configs(a, z);
    let (a, z) = world.established();
    world.narrate = false;
    world.fate = fate;
    let begin = world.now;
    let (mut next, mut got) = (0, 0);
    while got < count {
        offer(&mut world, a, &mut next, count, size);
        world.run_for(50 * MILLISECOND);
        for message in world.receive_all(Z, z) {
            assert_eq!(
                message.payload.into_bytes(),
                vec![got as u8; size],
                "{place}"
            );
            got += 1;
        }
        for (host, id) in [(A, a), (Z, z)] {
            let reason = world.close_reason(host, id);
            assert_eq!(
                world.state(host, id),
                AssociationState::Established,
                "{place}: {reason:?}"
            );
        }
        let seconds = (world.now - begin) / SECOND;
        assert!(
            seconds < 3_600,
            "{place}: {got} of {count} messages after an hour"
        );
    }
    (world.now - begin) / SECOND
}

fn buffer(profile: Profile, receive_buffer: u32) -> Config {
    Config::new(profile).with(|it| it.receive_buffer = receive_buffer)
}

/// Drops one of `often` packets and delays another one.
fn trouble(often: u64, seed: u64) -> Box<dyn FnMut(&Shot) -> Fate> {
    let mut state = seed;
    Box::new(move |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        match (state >> 33) % often {
            0 => Fate::Drop,
            1 => Fate::Late(30 * MILLISECOND),
            _ => Fate::Deliver,
        }
    })
}

/// A receiver with the profile `ns2` counts chunk headers as used buffer space. It silently drops
/// data that does not fit, even if this data fills a gap. The sender counts only user data, and
/// therefore sends more than fits, especially with small messages.
#[test]
fn an_ns2_receiver_takes_all_from_a_sender_that_counts_user_data() {
    for seed in 1..=10 {
        for (size, receive_buffer) in [(1_400, 3_000), (100, 1_500), (20, 3_000)] {
            let configs = (Config::default(), buffer(Profile::ns2(), receive_buffer));
            let place = format!("seed {seed}, {size} bytes into {receive_buffer}");
            carry(&place, configs, (200, size), trouble(10, seed));
        }
    }
}

#[test]
fn tiny_messages_out_of_order_arrive_through_a_small_buffer() {
    for seed in 1..=5 {
        for profile in [Profile::rfc9260(), Profile::rfc2960(), Profile::ns2()] {
            let place = format!("seed {seed}, {}", profile.name);
            let configs = (Config::default(), buffer(profile, 4_000));
            carry(&place, configs, (3_000, 1), trouble(8, seed));
        }
    }
}

/// Under `ns2` each chunk is dropped once, and retransmitted after a timeout.
#[test]
fn chunks_larger_than_the_buffer_arrive_one_by_one() {
    for (profile, count) in [(Profile::rfc9260(), 10), (Profile::ns2(), 1)] {
        let large = Config::default().with(|it| it.mtu = 9_000);
        let place = profile.name;
        let configs = (large, buffer(profile, 4_000));
        carry(place, configs, (count, 20_000), trouble(20, 3));
    }
}

/// Properties of a sender of tiny messages and of its peer, which reads at intervals of `pause`.
struct Tiny {
    size: usize,
    receive_buffer: u32,
    update: Option<u32>,
    pause: u64,
}

/// Transfers `count` messages, all of which are queued at the beginning. Returns the number of T3
/// timeouts, and the number of chunks that were dropped for lack of space.
fn carry_tiny(tiny: &Tiny, count: u32) -> (u64, u64) {
    let config = Config::default().with(|it| {
        it.receive_buffer = tiny.receive_buffer;
        it.send_buffer = 1 << 20;
        it.window_update = tiny.update;
        it.pack_messages = tiny.update.is_some();
    });
    let mut world = World::with_configs(config.clone(), config);
    let (a, z) = world.established();
    world.narrate = false;
    let (mut sent, mut got) = (0, 0);
    let begin = world.now;
    while got < count {
        offer(&mut world, a, &mut sent, count, tiny.size);
        world.run_for(tiny.pause);
        for message in world.receive_all(Z, z) {
            let expected = vec![got as u8; tiny.size];
            assert_eq!(message.payload.into_bytes(), expected);
            got += 1;
        }
        world.drain(Z);
        assert!(world.now - begin < 600 * SECOND, "{got} of {count}");
    }
    let stats = |host: usize, id| world.endpoints[host].association(id).expect("up").stats();
    let (sender, receiver) = (stats(A, a).sender, stats(Z, z).receiver);
    (sender.timeouts, receiver.dropped_full)
}

/// Far fewer tiny chunks fit into memory than the buffer has bytes. The window should report this
/// before the chunks are sent, because dropped chunks would be missing until T3-rtx expires.
#[test]
fn tiny_messages_fill_the_buffer_and_are_not_lost() {
    let mut lost = Vec::new();
    for size in [1, 4, 20, 100, 250] {
        for receive_buffer in [64 << 10, 1 << 20] {
            for update in [None, Some(receive_buffer / 4)] {
                for pause in [MILLISECOND, 20 * MILLISECOND, 300 * MILLISECOND] {
                    let tiny = Tiny {
                        size,
                        receive_buffer,
                        update,
                        pause,
                    };
                    let count = (8 * receive_buffer / (size as u32 + 192)).min(5_000);
                    match carry_tiny(&tiny, count) {
                        (0, 0) => {}
                        came_to => lost.push((size, receive_buffer, update, pause, came_to)),
                    }
                }
            }
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
}

/// The reader pauses, and then reads. Data that was refused for lack of space, or that is held back
/// until the window is larger, should be sent one round trip later and not after a timeout of the
/// sender. This should hold for all advertised windows and MTUs.
#[test]
fn a_window_that_opens_after_a_chunk_was_refused_is_advertised_at_once() {
    for (mtu, receive_buffer, size, update) in [
        (1_500, 2_048, 1_000, None),
        (9_000, 65_536, 8_000, None),
        (9_000, 65_536, 8_000, Some(16_384)),
        (9_000, 5_000, 8_000, None),
    ] {
        for away in [500 * MILLISECOND, 20 * SECOND] {
            let sender = Config::default().with(|it| it.mtu = mtu);
            let receiver = Config::default().with(|it| {
                it.receive_buffer = receive_buffer;
                it.window_update = update;
            });
            let mut world = World::with_configs(sender, receiver);
            let (a, z) = world.established();
            let mut got = 0;
            for _ in 0..20 {
                world.send(A, a, 0, vec![0; size]);
            }
            while got < 20 {
                let place = format!("MTU {mtu}, {receive_buffer} bytes, {update:?}, {got} read");
                world.run_for(away);
                let read = world.receive_all(Z, z).len();
                got += read;
                // Data larger than the buffer is sent as a window probe, one RTO after the previous
                // probe.
                assert!(read > 0 || receive_buffer < size as u32, "{place}");
                if got < 20 && receive_buffer > size as u32 {
                    world.forget();
                    world.run_for(60 * MILLISECOND);
                    let from = |host: usize| world.shots.iter().find(|it| it.from == host);
                    let told = from(Z).is_some_and(|it| it.chunks.contains("SACK"));
                    let sent = from(A).is_some_and(|it| it.chunks.contains("DATA"));
                    assert!(told && sent, "{place}: {:?}", world.story);
                }
            }
        }
    }
}

/// Transfers a message of `length` bytes on each of `streams` streams at the same time, with
/// I-DATA. Each part is read as it arrives. Returns the duration in milliseconds.
fn carry_interleaved(
    scheduler: SchedulerKind,
    (streams, length): (u16, usize),
    receive_buffer: u32,
) -> u64 {
    let config = Config::default().with(|it| {
        it.interleaving = true;
        it.scheduler = scheduler;
        it.outbound_streams = streams;
        it.inbound_streams = streams;
        it.receive_buffer = receive_buffer;
        it.send_buffer = usize::from(streams) * length;
    });
    let mut world = World::new(config);
    let (a, z) = world.established();
    world.narrate = false;
    let message = Bytes::from(vec![7; length]);
    for stream in 0..streams {
        world.send(A, a, stream, message.clone());
    }
    let begin = world.now;
    let mut lengths = vec![0; usize::from(streams)];
    while lengths.iter().any(|it| *it != length) {
        let goes_on = world.step(begin + 3_600 * SECOND);
        let reason = [(A, a), (Z, z)].map(|(host, id)| world.close_reason(host, id));
        let left = lengths.iter().filter(|it| **it < length).count();
        assert!(goes_on, "{scheduler:?}: {reason:?}, {left} incomplete");
        let association = world.endpoints[Z].association_mut(z).expect("known");
        while let Some(part) = association.poll_part() {
            lengths[usize::from(part.stream)] += part.payload.len();
        }
        world.drain(Z);
    }
    (world.now - begin) / MILLISECOND
}

/// RFC 8260: more long messages are in transmission than may be in partial delivery, and fragments
/// of the messages that wait fill the buffer. The messages in partial delivery should continue,
/// because each part is read as it arrives.
#[test]
fn long_messages_on_more_streams_than_are_delivered_in_parts_end_well() {
    for scheduler in [SchedulerKind::RoundRobin, SchedulerKind::FairCapacity] {
        carry_interleaved(scheduler, (70, 1_000_000), 64 << 10);
    }
}

/// Hundreds of partial deliveries use most of the memory. Because no chunk waits in the buffer, the
/// window should then be the remaining memory, and not permit only one chunk per round trip.
#[test]
fn partial_deliveries_leave_a_window_of_the_free_memory() {
    let one = carry_interleaved(SchedulerKind::RoundRobin, (1, 10_000_000), 80 << 10);
    let many = carry_interleaved(SchedulerKind::RoundRobin, (250, 40_000), 80 << 10);
    println!("{many} ms, against {one} ms");
    assert!(many < 8 * one, "{many} ms, against {one} ms");
}

/// The buffer is full of messages that wait for the end of an unordered message of their stream,
/// which is being delivered. The next chunk continues that message, so it should be accepted and be
/// readable at once.
#[test]
fn what_continues_a_message_in_delivery_passes_a_buffer_full_of_i_data() {
    for when_full in [WhenFull::Answer, WhenFull::Silent] {
        passes_a_buffer_full_of_i_data(when_full);
    }
}

fn passes_a_buffer_full_of_i_data(when_full: WhenFull) {
    let mut rig = Rig::of(Config::default().with(|it| {
        it.interleaving = true;
        it.partial_delivery_point = Some(1);
        it.receive_buffer = 4_000;
        it.profile.receive_buffer_full = when_full;
    }));
    rig.chunk(&rig.i_data(0, (1, 0, 0), "U", "begins; "));
    let parts = |rig: &mut Rig| {
        let association = rig.world.endpoints[Z].association_mut(rig.z).expect("up");
        let parts = std::iter::from_fn(|| association.poll_part());
        parts.map(|it| it.payload.into_bytes()).collect::<Vec<_>>()
    };
    assert_eq!(parts(&mut rig), ["begins; "]);
    let count = 40;
    for at in 0..count {
        rig.chunk(&rig.i_data(1 + at, (1, at, 0), "E", vec![b'w'; 100]));
    }
    assert!(rig.is_up() && rig.read().is_empty(), "{when_full:?}");
    rig.chunk(&rig.i_data(1 + count, (1, 0, 1), "UE", "ends"));
    assert!(rig.is_up(), "{when_full:?}");
    let read = parts(&mut rig);
    assert_eq!((&read[0][..], read.len() as u32), (&b"ends"[..], 1 + count));
}

//! Tests of receiver rules for single chunks.

use anabranch_transport::ProbeSet;
use anabranch_transport::time::MILLISECOND;
use anabranch_wire::chunk::Chunk;
use anabranch_wire::{Checksum, CommonHeader, Packet, PacketBuilder, Ssn};
use bytes::{Bytes, BytesMut};

use super::*;
use crate::profile::Profile;

struct Rig {
    now: Nanos,
    receiver: Receiver,
    trace: Trace,
}

/// SACK as decoded by the peer.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    cumulative: u32,
    a_rwnd: u32,
    blocks: Vec<(u16, u16)>,
    duplicates: Vec<u32>,
}

impl Rig {
    fn new(config: &Config) -> Self {
        Self {
            now: 0,
            receiver: Receiver::new(config, Tsn(1), 10),
            trace: Trace::new(ProbeSet::ALL),
        }
    }

    /// Receives a packet with a complete message on stream 0, whose stream sequence number is its
    /// TSN minus one.
    fn arrive(&mut self, tsn: u32, length: usize) -> DataOutcome {
        self.packet(chunk(tsn, length))
    }

    fn packet(&mut self, data: Data) -> DataOutcome {
        let outcome = self.receiver.handle_data(self.now, data, &mut self.trace);
        self.receiver.on_packet_end(self.now);
        outcome
    }

    fn sack(&mut self, limit: usize) -> Seen {
        let header = CommonHeader {
            source_port: 1,
            destination_port: 2,
            verification_tag: 3,
        };
        let mut out = BytesMut::new();
        let mut packet = PacketBuilder::new(&mut out, header, limit);
        self.receiver
            .push_sack(self.now, &mut packet, &mut self.trace)
            .expect("room for a SACK");
        packet.finish(true);
        let out = out.freeze();
        let packet = Packet::parse(&out, Checksum::Verify).expect("our own packet");
        let raw = packet
            .chunks()
            .next()
            .expect("one chunk")
            .expect("a whole chunk");
        let Ok(Chunk::Sack(sack)) = Chunk::decode(raw) else {
            panic!("not a SACK")
        };
        Seen {
            cumulative: sack.cumulative_tsn_ack.0,
            a_rwnd: sack.a_rwnd,
            blocks: sack
                .gap_blocks()
                .map(|block| (block.start, block.end))
                .collect(),
            duplicates: sack.duplicates().map(|tsn| tsn.0).collect(),
        }
    }

    fn due_then_sack(&mut self) -> bool {
        let due = self.receiver.sack_due();
        if due {
            self.sack(1500);
        }
        due
    }

    fn messages(&mut self) -> Vec<u16> {
        std::iter::from_fn(|| self.receiver.poll_message().expect("short"))
            .map(|message| message.ssn.0)
            .collect()
    }
}

fn chunk(tsn: u32, length: usize) -> Data {
    Data {
        tsn: Tsn(tsn),
        stream_id: 0,
        ssn: Ssn((tsn - 1) as u16),
        ppid: 0,
        unordered: false,
        beginning: true,
        ending: true,
        immediate: false,
        user_data: Bytes::from(vec![0; length]),
    }
}

fn config(receive_buffer: u32) -> Config {
    Config {
        receive_buffer,
        ..Config::default()
    }
}

#[test]
fn acknowledgements_come_with_the_first_then_every_second_packet_or_after_200_ms() {
    let mut rig = Rig::new(&config(65536));
    let due: Vec<bool> = (1..=5)
        .map(|tsn| {
            rig.arrive(tsn, 10);
            rig.due_then_sack()
        })
        .collect();
    assert_eq!(due, [true, false, true, false, true]);
    rig.now = 50 * MILLISECOND;
    rig.arrive(6, 10);
    assert_eq!(rig.receiver.sack_deadline(), Some(250 * MILLISECOND));
    rig.receiver.handle_sack_timer(249 * MILLISECOND);
    assert!(!rig.receiver.sack_due() && rig.receiver.sack_useful());
    rig.receiver.handle_sack_timer(250 * MILLISECOND);
    assert!(rig.due_then_sack());
    assert_eq!(
        (rig.receiver.sack_deadline(), rig.receiver.sack_useful()),
        (None, false)
    );
    let mut every = Rig::new(&Config {
        delayed_sack: false,
        ..config(65536)
    });
    assert!((1..=5).all(|tsn| {
        every.arrive(tsn, 10);
        every.due_then_sack()
    }));
}

#[test]
fn gaps_duplicates_the_immediate_bit_and_a_filled_gap_are_answered_at_once() {
    for (fills, profile) in [(true, Profile::rfc9260()), (false, Profile::rfc4960())] {
        let mut rig = Rig::new(&Config {
            receive_buffer: 65536,
            ..Config::new(profile)
        });
        rig.arrive(1, 10);
        rig.due_then_sack();
        rig.arrive(3, 10);
        assert!(rig.due_then_sack(), "a gap");
        rig.arrive(4, 10);
        assert!(rig.due_then_sack(), "the gap is still there");
        rig.arrive(2, 10);
        assert_eq!(rig.receiver.sack_due(), fills, "the gap is filled");
        rig.sack(1500);
        assert_eq!(rig.arrive(2, 10), DataOutcome::Duplicate);
        assert!(rig.due_then_sack(), "a duplicate");
        rig.packet(Data {
            immediate: true,
            ..chunk(5, 10)
        });
        assert!(rig.due_then_sack(), "the I bit");
    }
}

#[test]
fn a_sack_names_gaps_and_duplicates_as_many_as_fit() {
    let mut rig = Rig::new(&config(65536));
    (1..=3).for_each(|tsn| {
        rig.arrive(tsn, 100);
    });
    (5..45).step_by(2).for_each(|tsn| {
        rig.arrive(tsn, 100);
    });
    rig.arrive(2, 100);
    rig.arrive(5, 100);
    let seen = rig.sack(12 + 16 + 4 * 10);
    assert_eq!(
        (seen.cumulative, seen.blocks.len(), seen.duplicates.len()),
        (3, 10, 0),
        "ten entries of room"
    );
    assert_eq!((seen.blocks[0], seen.blocks[9]), ((2, 2), (20, 20)));
    let seen = rig.sack(1500);
    assert_eq!((seen.blocks.len(), seen.duplicates), (20, vec![2, 5]));
    assert_eq!(rig.sack(1500).duplicates, [] as [u32; 0], "reported once");
}

#[test]
fn order_is_kept_and_the_wait_behind_a_hole_is_recorded() {
    let mut rig = Rig::new(&config(65536));
    rig.arrive(1, 10);
    rig.now = 10 * MILLISECOND;
    rig.arrive(3, 10);
    rig.packet(Data {
        unordered: true,
        ..chunk(4, 10)
    });
    rig.packet(Data {
        stream_id: 1,
        ssn: Ssn(0),
        ..chunk(5, 10)
    });
    assert_eq!(
        rig.messages(),
        [0, 3, 0],
        "what is not behind the hole passes"
    );
    rig.now = 30 * MILLISECOND;
    rig.arrive(2, 10);
    assert_eq!(rig.messages(), [1, 2]);
    assert!(rig.receiver.is_empty());
    let waits: Vec<f64> = rig
        .trace
        .drain()
        .filter(|s| s.probe == Probe::HolBlockingDelay)
        .map(|s| s.value)
        .collect();
    assert_eq!(waits, [0.0, 0.0, 0.0, 0.0, 0.02]);
}

#[test]
fn the_window_falls_with_what_is_held_and_small_windows_are_not_advertised() {
    let mut rig = Rig::new(&config(4000));
    rig.arrive(1, 1000);
    assert_eq!(rig.sack(1500).a_rwnd, 3000);
    rig.arrive(2, 1400);
    assert_eq!(rig.sack(1500).a_rwnd, 1600);
    rig.arrive(3, 200);
    assert_eq!(rig.sack(1500).a_rwnd, 0, "1400 left is less than an MTU");
    assert_eq!(rig.arrive(4, 1401), DataOutcome::DroppedFull);
    assert!(rig.receiver.sack_due(), "a probe is answered");
    assert_eq!(rig.sack(1500).cumulative, 3);
    assert_eq!(rig.arrive(4, 1400), DataOutcome::NewData);
    rig.sack(1500);
    rig.receiver.poll_part().expect("the first message");
    assert!(!rig.receiver.sack_due(), "1000 are not worth a SACK");
    rig.receiver.poll_part().expect("the second message");
    assert!(rig.receiver.sack_due(), "the window is open again");
    assert_eq!(rig.sack(1500).a_rwnd, 2400);
}

#[test]
fn a_full_buffer_still_takes_what_fills_a_hole() {
    let mut rig = Rig::new(&config(3000));
    rig.arrive(1, 1000);
    rig.arrive(3, 1000);
    rig.arrive(4, 1000);
    assert_eq!(rig.arrive(5, 1000), DataOutcome::DroppedFull);
    assert_eq!(rig.arrive(2, 1000), DataOutcome::NewData);
    assert_eq!(rig.messages(), [0, 1, 2, 3]);
    assert!(rig.receiver.is_empty());
}

/// ns-2.35 silently drops a chunk larger than the free space. Complete messages in order do not
/// occupy space.
#[test]
fn ns2_drops_silently_and_counts_chunk_headers() {
    let mut rig = Rig::new(&Config {
        receive_buffer: 3000,
        delayed_sack: false,
        ..Config::new(Profile::ns2())
    });
    rig.arrive(1, 1432);
    assert_eq!(
        rig.sack(1500),
        Seen {
            cumulative: 1,
            a_rwnd: 3000,
            blocks: vec![],
            duplicates: vec![]
        }
    );
    rig.arrive(3, 1432);
    assert_eq!(rig.sack(1500).a_rwnd, 3000 - 1448);
    rig.arrive(4, 1432);
    assert_eq!(rig.sack(1500).a_rwnd, 3000 - 2 * 1448);
    assert_eq!(
        rig.arrive(2, 1432),
        DataOutcome::DroppedFull,
        "even one that fills the hole"
    );
    let mut fresh = Rig::new(&Config {
        receive_buffer: 1447,
        ..Config::new(Profile::ns2())
    });
    assert_eq!(fresh.arrive(1, 1432), DataOutcome::DroppedFull);
    assert!(!fresh.receiver.sack_due());
}

#[test]
fn chunks_that_break_rules() {
    let mut rig = Rig::new(&config(65536));
    assert_eq!(rig.arrive(1, 0), DataOutcome::NoUserData);
    assert_eq!(
        rig.packet(Data {
            stream_id: 10,
            ..chunk(1, 10)
        }),
        DataOutcome::InvalidStream
    );
    assert_eq!(
        rig.receiver.cumulative_tsn(),
        Tsn(1),
        "acknowledged all the same"
    );
    assert_eq!(rig.arrive(70_000, 10), DataOutcome::BeyondWindow);
    assert_eq!(
        rig.packet(Data {
            ssn: Ssn(0),
            ..chunk(2, 10)
        }),
        DataOutcome::NewData
    );
    assert_eq!(
        rig.packet(Data {
            ssn: Ssn(0),
            ..chunk(3, 10)
        }),
        DataOutcome::ProtocolViolation
    );
    assert_eq!(rig.messages(), [0]);
    assert!(
        rig.receiver.is_empty(),
        "nothing of the broken ones is held"
    );
}

/// A peer that leaves gaps and sends tiny chunks must not exceed the memory limit.
#[test]
fn memory_is_bounded_whatever_the_peer_sends() {
    let mut rig = Rig::new(&config(10_000));
    let mut taken = 0;
    for tsn in (3..=65_000).step_by(2) {
        let datagram = Bytes::from(vec![0; 1500]);
        let user_data = datagram.slice(..1);
        if rig.packet(Data {
            user_data,
            ..chunk(tsn, 1)
        }) == DataOutcome::NewData
        {
            taken += 1;
        }
    }
    // The limit is the memory of 320 chunks without data; a chunk of one byte takes 193 bytes.
    assert_eq!(taken, 320 * 192 / 193);
    for tsn in (2..=65_000).rev() {
        rig.packet(Data {
            beginning: tsn % 2 == 0,
            ending: false,
            ..chunk(tsn, 100)
        });
    }
    assert!(rig.receiver.window.used() <= 20_000);
}

/// Sends 2,000 messages of one byte in packets of 70 messages, in the given order of packets, and
/// retransmits missing TSNs until all have arrived. Returns the received numbers, and the number of
/// chunks sent.
fn honest_peer(rig: &mut Rig, order: impl Fn(usize) -> usize) -> (Vec<u16>, usize) {
    let (mut read, mut sent) = (Vec::new(), 0);
    let mut missing: Vec<u32> = (1..=2_000).collect();
    for _ in 0..200 {
        let packets: Vec<&[u32]> = missing.chunks(70).collect();
        for turn in 0..packets.len() {
            let at = if packets.len() == 29 {
                order(turn)
            } else {
                turn
            };
            for &tsn in packets[at] {
                let outcome = rig.packet(chunk(tsn, 1));
                assert_ne!(outcome, DataOutcome::Exhausted, "TSN {tsn}");
                sent += 1;
            }
            read.extend(rig.messages());
        }
        let seen = rig.sack(60_000);
        let named = |tsn: u32| {
            let offset = tsn.saturating_sub(seen.cumulative) as u16;
            let blocks = &mut seen.blocks.iter();
            tsn <= seen.cumulative || blocks.any(|it| (it.0..=it.1).contains(&offset))
        };
        missing = (1..=2_000).filter(|&tsn| !named(tsn)).collect();
        if missing.is_empty() {
            break;
        }
    }
    (read, sent)
}

/// A conforming peer sends half the advertised window in tiny messages, and packets are reordered.
/// The highest TSNs make space for the next TSN, and are retransmitted.
#[test]
fn tiny_messages_far_out_of_order_make_space_for_the_next() {
    let orders: [fn(usize) -> usize; 3] = [
        |turn| match turn {
            0 => 28,
            28 => 0,
            turn => turn,
        },
        |turn| 28 - turn,
        |turn| turn * 12 % 29,
    ];
    for order in orders {
        let mut rig = Rig::new(&config(4_000));
        let (read, sent) = honest_peer(&mut rig, order);
        assert_eq!(read, (0..2_000).collect::<Vec<u16>>(), "once and in order");
        let statistics = rig.receiver.statistics();
        assert!(statistics.withdrawn > 0 || statistics.dropped_full > 0);
        assert!(sent < 40_000, "{sent} chunks sent for 2,000");
        assert!(rig.receiver.is_empty() && rig.receiver.window.is_empty());
    }
}

/// A buffer of 1,500 bytes has 61,440 bytes of memory for chunks in order, which is 318 chunks of
/// one byte (193 bytes each), and 69,120 bytes for chunks that fill a gap. TSNs 20 to 337 are
/// buffered. Then seven chunks fill the gap, each of which needs 1,392 bytes of memory. Five of
/// them fit (68,334 bytes). For the last two, the 11 chunks with the highest TSNs are dropped, or
/// four messages of three chunks.
#[test]
fn the_highest_tsns_make_space_and_are_no_longer_reported() {
    type Of = fn(u32) -> Data;
    let whole: Of = |tsn| chunk(tsn, 1);
    let of_three: Of = |tsn| Data {
        ssn: Ssn((tsn as u16 + 1) / 3),
        beginning: tsn % 3 == 2,
        ending: tsn % 3 == 1,
        ..chunk(tsn, 1)
    };
    let lone: Of = |tsn| Data {
        ssn: Ssn(7),
        beginning: false,
        ending: false,
        ..chunk(tsn, 1)
    };
    for (name, of, withdrawn) in [
        ("whole", whole, 11),
        ("three", of_three, 12),
        ("lone", lone, 11),
    ] {
        let mut rig = Rig::new(&config(1_500));
        for tsn in 20..=337 {
            assert_eq!(rig.packet(of(tsn)), DataOutcome::NewData, "{name} {tsn}");
        }
        assert_eq!(rig.packet(of(338)), DataOutcome::DroppedFull, "{name}");
        for tsn in 1..=7 {
            let fills = Data {
                unordered: true,
                ..chunk(tsn, 1_200)
            };
            assert_eq!(rig.packet(fills), DataOutcome::NewData, "{name} {tsn}");
        }
        let seen = rig.sack(1500);
        assert_eq!((seen.cumulative, seen.a_rwnd), (7, 0));
        assert_eq!(seen.blocks, [(13, 330 - withdrawn)], "{name}");
        let statistics = rig.receiver.statistics();
        assert_eq!(statistics.withdrawn, u64::from(withdrawn), "{name}");
        // After the user has read, there is space again for the retransmissions.
        assert_eq!(rig.messages().len(), 7);
        for tsn in (338 - u32::from(withdrawn)..=337).rev() {
            assert_eq!(rig.packet(of(tsn)), DataOutcome::NewData, "{name} {tsn}");
        }
        assert_eq!(rig.sack(1500).blocks, [(13, 330)], "{name}");
    }
}

/// A chunk larger than the whole buffer is accepted if nothing else is buffered.
#[test]
fn a_chunk_larger_than_the_buffer_is_taken_alone() {
    let mut rig = Rig::new(&config(4_000));
    assert_eq!(rig.arrive(1, 6_000), DataOutcome::NewData);
    assert_eq!(rig.sack(1500).a_rwnd, 0);
    assert_eq!(rig.arrive(2, 6_000), DataOutcome::DroppedFull, "unread");
    assert_eq!(rig.messages(), [0]);
    assert_eq!(
        rig.arrive(3, 6_000),
        DataOutcome::DroppedFull,
        "not the next"
    );
    assert_eq!(rig.arrive(2, 6_000), DataOutcome::NewData);
    assert_eq!(rig.messages(), [1]);
    assert_eq!(rig.sack(1500).a_rwnd, 4_000);
}

/// ns-2's receiver drops chunks that do not fit, and its sender never sends such chunks. With other
/// senders a gap could never be filled, so a retransmission of the next TSN makes space.
#[test]
fn under_ns2_the_next_chunk_sent_again_makes_space() {
    let mut rig = Rig::new(&Config {
        receive_buffer: 3000,
        ..Config::new(Profile::ns2())
    });
    rig.arrive(1, 1432);
    rig.arrive(3, 1432);
    rig.arrive(4, 1432);
    assert_eq!(rig.arrive(2, 1432), DataOutcome::DroppedFull);
    assert_eq!(rig.arrive(2, 1432), DataOutcome::NewData);
    let seen = rig.sack(1500);
    assert_eq!((seen.cumulative, seen.blocks), (3, vec![]));
    assert_eq!(rig.arrive(4, 1432), DataOutcome::NewData);
    assert_eq!(rig.messages(), [0, 1, 2, 3]);
}

/// Unread data from before a restart stays readable and occupies the buffer.
#[test]
fn unread_data_from_before_a_restart_occupies_the_buffer() {
    let config = config(10_000);
    let mut rig = Rig::new(&config);
    for life in 0..4 {
        for tsn in 1..=5 {
            let outcome = rig.arrive(tsn, 1_000);
            let fits = life < 2;
            assert_eq!(outcome == DataOutcome::NewData, fits, "life {life}");
        }
        let mut next = Receiver::new(&config, Tsn(1), 10);
        std::mem::swap(&mut next, &mut rig.receiver);
        rig.receiver.take_over_unread(&mut next);
        assert_eq!(rig.receiver.window.used(), 5_000 * (life + 1).min(2));
    }
    assert_eq!(rig.messages(), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
    assert!(rig.receiver.is_empty());
    assert_eq!(rig.arrive(1, 1_000), DataOutcome::NewData);
}

#[test]
fn a_message_that_will_not_end_is_named() {
    let mut rig = Rig::new(&Config {
        partial_delivery_point: Some(1),
        ..config(10_000)
    });
    let begun = Data {
        ppid: 77,
        stream_id: 3,
        ssn: Ssn(0),
        ending: false,
        ..chunk(1, 100)
    };
    rig.packet(begun);
    let named: Vec<Abandoned> = rig.receiver.opened().collect();
    let fields = |it: &Abandoned| (it.stream, it.unordered, it.ssn, it.tsn, it.ppid);
    let named: Vec<_> = named.iter().map(fields).collect();
    assert_eq!(named, [(3, false, Ssn(0), Tsn(1), 77)]);
}

/// ns-2's module checks each chunk and not each packet. Several chunks in the first packet
/// therefore count as a packet since the SACK, and a gap is acknowledged immediately even if the
/// same packet fills it.
#[test]
fn ns2_answers_packets_of_several_chunks_by_chunk() {
    for (profile, by_chunk) in [(Profile::ns2(), true), (Profile::rfc4960(), false)] {
        let name = profile.name;
        let mut rig = Rig::new(&Config::new(profile));
        let due = |rig: &mut Rig, tsns: &[u32]| {
            for &tsn in tsns {
                rig.receiver
                    .handle_data(rig.now, chunk(tsn, 100), &mut rig.trace);
            }
            rig.receiver.on_packet_end(rig.now);
            let due = rig.receiver.sack_due();
            if due {
                rig.sack(1_460);
            }
            due
        };
        assert!(due(&mut rig, &[1, 2]), "{name}: the first");
        assert_eq!(due(&mut rig, &[3]), by_chunk, "{name}: the second");
        if !by_chunk {
            assert!(due(&mut rig, &[4]), "{name}");
        }
        let next = if by_chunk { 4 } else { 5 };
        assert!(due(&mut rig, &[next + 2]), "{name}: a gap");
        assert_eq!(due(&mut rig, &[next, next + 1]), by_chunk, "{name}: filled");
    }
}

/// ns-2's module acknowledges TSN 1 immediately whenever it arrives, and never counts it, because
/// `ProcessChunk` only checks the number.
#[test]
fn ns2_never_counts_the_first_data() {
    let mut rig = Rig::new(&Config::new(Profile::ns2()));
    let due = [1, 1, 2, 1, 3].map(|tsn| {
        rig.arrive(tsn, 10);
        rig.due_then_sack()
    });
    assert_eq!(due, [true, true, false, true, true]);
}

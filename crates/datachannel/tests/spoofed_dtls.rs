//! An attacker that spoofs the peer's address but sees none of the traffic. Whatever it sends
//! during the DTLS handshake, the handshake should complete (RFC 6347 §4.1.2.7).

use crate::world;

use anabranch_datachannel::{ChannelOptions, Closed, DiscardReason, Event, Payload};
use bytes::Bytes;
use world::{MS, SECOND, World, address};

/// An unencrypted or encrypted record.
fn record(kind: u8, epoch: u16, count: u64, fragment: &[u8]) -> Vec<u8> {
    let mut out = vec![kind, 0xFE, 0xFD];
    out.extend(epoch.to_be_bytes());
    out.extend(&count.to_be_bytes()[2..]);
    out.extend((fragment.len() as u16).to_be_bytes());
    out.extend(fragment);
    out
}

/// A handshake message, or a fragment of one, in a record.
fn message(kind: u8, number: u16, [length, offset]: [usize; 2], body: &[u8]) -> Vec<u8> {
    let three = |it: usize| it.to_be_bytes()[5..].to_vec();
    let mut out = vec![kind];
    out.extend(three(length));
    out.extend(number.to_be_bytes());
    out.extend(three(offset));
    out.extend(three(body.len()));
    out.extend(body);
    record(22, 0, u64::from(number), &out)
}

fn whole(kind: u8, number: u16, body: &[u8]) -> Vec<u8> {
    message(kind, number, [body.len(), 0], body)
}

/// A ServerHello like that of a current server, with a forged random.
fn server_hello(turn: u64) -> Vec<u8> {
    let mut body = vec![0xFE, 0xFD];
    body.extend([turn as u8; 32]);
    body.extend([0, 0xC0, 0x2B, 0]);
    body.extend([0, 4, 0, 23, 0, 0]);
    body
}

/// A Certificate message with an invalid certificate.
fn certificate(turn: u64) -> Vec<u8> {
    let mut body = vec![0, 0, 203, 0, 0, 200];
    body.extend([turn as u8; 200]);
    body
}

/// Duration of the handshakes of DTLS and SCTP over a link with a delay of 10 ms, without
/// retransmissions or timeouts.
const UNDISTURBED: u64 = 80 * MS;

type Forge = fn(u64) -> Vec<u8>;

/// All kinds of datagrams that an attacker may send; `turn` is a sequence number.
const KINDS: &[(&str, Forge)] = &[
    ("headers", |turn| record(22, 0, turn, &[])),
    ("protected headers", |turn| record(22, 1, turn, &[])),
    ("changes", |turn| record(20, 0, turn, &[1])),
    ("changes that are none", |turn| record(20, 0, turn, &[2])),
    ("long changes", |turn| record(20, 0, turn, &[1, 1])),
    ("fatal alerts", |turn| record(21, 0, turn, &[2, 40])),
    ("farewells", |turn| record(21, 0, turn, &[1, 0])),
    ("protected alerts", |turn| record(21, 1, turn, &[7; 26])),
    ("Finished", |turn| record(22, 1, turn, &[7; 40])),
    ("the same Finished", |_| record(22, 1, 0, &[7; 40])),
    ("early data", |turn| record(23, 1, turn, &[7; 100])),
    ("plain data", |turn| record(23, 0, turn, &[7; 100])),
    ("later epochs", |turn| {
        record(22, 2 + (turn % 9) as u16, turn, &[7; 40])
    }),
    ("unknown kinds", |turn| {
        record(24 + (turn % 40) as u8, 0, turn, &[7; 40])
    }),
    ("versions", |turn| {
        let mut out = record(22, 0, turn, &[7; 40]);
        out[1] = 3;
        out
    }),
    ("cut records", |turn| {
        record(22, 0, turn, &[7; 40])[..20].to_vec()
    }),
    ("noise", |turn| {
        let byte = |at: u64| (turn.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (at % 57)) as u8;
        std::iter::once(20 + (turn % 44) as u8)
            .chain((0..60).map(byte))
            .collect()
    }),
    ("messages to come", |turn| {
        whole(11, 5 + turn as u16 % 60_000, &[7; 20])
    }),
    ("messages of no kind", |turn| {
        whole(99, turn as u16 % 6, &[7; 20])
    }),
    ("pieces", |turn| {
        message(
            11,
            turn as u16 % 6,
            [2_000, 10 * (turn as usize % 190)],
            &[7; 9],
        )
    }),
    ("long pieces", |turn| {
        message(11, turn as u16 % 6, [8_192, 7], &[7; 9])
    }),
    ("endless messages", |turn| {
        message(11, turn as u16 % 6, [0xFF_FFFF, 0], &[7; 9])
    }),
    ("pieces beyond", |turn| {
        message(11, turn as u16 % 6, [10, 8], &[7; 9])
    }),
    ("empty pieces", |turn| {
        message(11, turn as u16 % 6, [10, 0], &[])
    }),
    ("HelloVerifyRequest", |turn| {
        let mut body = vec![0xFE, 0xFF, 16];
        body.extend([turn as u8; 16]);
        whole(3, 0, &body)
    }),
    ("ServerHello", |turn| whole(2, 0, &server_hello(turn))),
    ("Certificate", |turn| {
        whole(11, 1 + (turn % 2) as u16, &certificate(turn))
    }),
    ("ServerKeyExchange", |turn| {
        whole(12, 2, &[3, 0, 23, turn as u8, 7, 7])
    }),
    ("CertificateRequest", |turn| {
        whole(13, 3, &[1, 64, 0, 2, 4, 3, 0, turn as u8])
    }),
    ("ServerHelloDone", |turn| {
        whole(14, 3 + (turn % 2) as u16, &[])
    }),
    ("ClientKeyExchange", |turn| {
        whole(16, 2 + (turn % 2) as u16, &[turn as u8; 66])
    }),
    ("CertificateVerify", |turn| {
        whole(15, 3 + (turn % 2) as u16, &[turn as u8; 76])
    }),
    ("ClientHello that is none", |turn| {
        whole(1, (turn % 2) as u16, &[turn as u8; 60])
    }),
    ("whole flights", |turn| {
        let messages = [
            whole(2, 0, &server_hello(turn)),
            whole(11, 1, &certificate(turn)),
            whole(12, 2, &[3, 0, 23, turn as u8, 7, 7]),
            whole(14, 3, &[]),
            record(20, 0, 9, &[1]),
            record(22, 1, 0, &[7; 40]),
        ];
        messages.concat()
    }),
];

/// Sends `count` datagrams to `end`, from the address of its peer.
fn flood(world: &mut World, end: usize, forge: Forge, count: u64) {
    for turn in 0..count {
        let forged = forge(turn);
        world.ends[end].handle_datagram(world.now, address(1 - end), &forged);
    }
}

fn is_up(world: &World) -> bool {
    world.events.iter().all(|it| it.contains(&Event::Connected))
}

/// Runs the handshake to its end; calls `before` with the number of each step before that step.
fn shake(mut world: World, mut before: impl FnMut(&mut World, usize)) -> World {
    for step in 0.. {
        if is_up(&world) {
            break;
        }
        before(&mut world, step);
        assert!(world.step(30 * SECOND), "{:?}", world.events);
    }
    world
}

/// Checks that one message arrives, and no other.
fn use_it(world: &mut World) {
    let now = world.now;
    let id = world.ends[0].open(now, ChannelOptions::new("")).unwrap();
    world.ends[0].send(now, id, Payload::from("sound")).unwrap();
    world.run_until(|world| !world.messages(1, id).is_empty());
    assert_eq!(world.messages(1, id), [&Payload::from("sound")]);
}

/// The attacker sends datagrams of one kind before every step of the handshake, to one of the two
/// ends.
#[test]
fn every_kind_at_all_times() {
    for (name, forge) in KINDS {
        for end in 0..2 {
            println!("{name} to {end}");
            let mut world = shake(World::new(1, 0), |world, _| flood(world, end, *forge, 40));
            assert_eq!(world.now, UNDISTURBED, "{name}");
            assert!(world.ends[end].discards().iter().count() > 0 || name.contains("changes"));
            use_it(&mut world);
        }
    }
}

/// In one state of the handshake, a different one in each run, the attacker sends many datagrams of
/// all kinds to both ends.
#[test]
fn each_state() {
    let mut steps = 0;
    let world = shake(World::new(1, 0), |_, step| steps = step);
    assert_eq!(world.now, UNDISTURBED);
    assert!(steps > 6, "{steps}");
    for state in 0..=steps {
        for count in [40, 400] {
            let mut world = shake(World::new(1, 0), |world, step| {
                if step == state {
                    for (_, forge) in KINDS {
                        for end in 0..2 {
                            flood(world, end, *forge, count);
                        }
                    }
                }
            });
            assert_eq!(world.now, UNDISTURBED, "{state}");
            use_it(&mut world);
        }
    }
}

#[test]
fn ten_thousand_of_each() {
    let mut world = shake(World::new(1, 0), |world, step| {
        if step % 3 == 0 {
            for (_, forge) in KINDS {
                for end in 0..2 {
                    flood(world, end, *forge, 10_000);
                }
            }
        }
    });
    assert_eq!(world.now, UNDISTURBED);
    use_it(&mut world);
}

/// The handshake should also complete over a link that loses, duplicates and reorders packets in
/// addition to the attacker.
#[test]
fn a_link_with_flaws() {
    for seed in 1..=10 {
        let mut world = shake(World::new(seed, 15), |world, step| {
            let (name, forge) = KINDS[(step * 7 + seed as usize) % KINDS.len()];
            // The attacker sends no HelloVerifyRequest, because a client that has lost the server's
            // flight cannot distinguish it from one of the server.
            if name != "HelloVerifyRequest" {
                flood(world, step % 2, forge, 40);
            }
        });
        use_it(&mut world);
    }
}

/// Different ClientHellos of a client.
fn hellos(count: u64) -> Vec<Bytes> {
    let hello = |seed| {
        let mut world = World::new(seed, 0);
        let is_hello = |it: &&Bytes| it[0] == 22 && it[13] == 1;
        while !world.wire.iter().any(|it| is_hello(&it)) {
            assert!(world.step(SECOND));
        }
        world.wire.iter().find(is_hello).cloned().unwrap()
    };
    (0..count).map(hello).collect()
}

/// A ClientHello in fragments that are reordered and duplicated, each preceded by forged fragments,
/// should be reassembled.
#[test]
fn a_hello_in_pieces() {
    let hello = hellos(1).remove(0);
    let mut body = hello[25..].to_vec();
    // The extension `padding` (RFC 7685) is the last one of the ClientHello.
    let session = 34 + 1 + usize::from(body[34]);
    let cookie = session + 1 + usize::from(body[session]);
    let suites = cookie + 2 + usize::from(u16::from_be_bytes([body[cookie], body[cookie + 1]]));
    let extensions = suites + 1 + usize::from(body[suites]);
    body.extend([0, 21, 0x0B, 0xB8]);
    body.extend([0; 3_000]);
    let length = (body.len() - extensions - 2) as u16;
    body[extensions..extensions + 2].copy_from_slice(&length.to_be_bytes());
    let pieces = body.chunks(1_000).enumerate();
    let pieces: Vec<_> = pieces
        .map(|(at, piece)| message(1, 0, [body.len(), at * 1_000], piece))
        .collect();
    for order in [&[0, 1, 2, 3][..], &[3, 1, 2, 0], &[2, 2, 3, 0, 3, 1]] {
        let mut world = World::new(1, 0);
        world.step(0);
        let forged = message(1, 0, [5_000, 100], &[7; 50]);
        world.ends[1].handle_datagram(0, address(0), &forged);
        let mut answered = false;
        for &at in order {
            assert!(!answered);
            for (_, forge) in KINDS
                .iter()
                .filter(|(name, _)| !name.contains("ClientHello"))
            {
                flood(&mut world, 1, *forge, 5);
            }
            world.ends[1].handle_datagram(0, address(0), &pieces[at]);
            while let Some((_, answer)) = world.ends[1].poll_transmit() {
                answered |= (answer[0], answer[13]) == (22, 2);
            }
        }
        assert!(answered, "{order:?}");
    }
}

/// If an attacker's ClientHello arrives first, the server should request a cookie from the client
/// and accept the client with this cookie, which the attacker cannot know.
#[test]
fn a_hello_before_the_peers() {
    let hellos = hellos(20);
    let mut world = World::new(1, 0);
    // From here on, the server knows the address of its peer.
    world.step(0);
    let before = world.ends[1].discards().of(DiscardReason::DtlsHello);
    for hello in &hellos {
        world.ends[1].handle_datagram(0, address(0), hello);
        // The responses should be small, because they go to a host that does not wait for them.
        while let Some((_, answer)) = world.ends[1].poll_transmit() {
            assert!(answer.len() < 1_200);
        }
    }
    // The number of responses is limited.
    let refused = world.ends[1].discards().of(DiscardReason::DtlsHello) - before;
    assert!((3..=5).contains(&refused), "{refused}");
    let mut world = shake(world, |_, _| ());
    assert!(world.now < 700 * MS, "{} ms", world.now / MS);
    use_it(&mut world);
}

/// ClientHellos of an attacker after that of the peer should be answered with a cookie request, and
/// have no other effect.
#[test]
fn hellos_after_the_peers() {
    let hellos = hellos(20);
    let mut given = 0;
    let mut world = shake(World::new(1, 0), |world, _| {
        // Reached when the server has answered.
        if world.wire.iter().any(|it| it[0] == 22 && it[13] == 2) {
            for hello in &hellos {
                world.ends[1].handle_datagram(world.now, address(0), hello);
                given += 1;
            }
        }
    });
    assert!(given > 20 && world.now == UNDISTURBED);
    use_it(&mut world);
}

/// An unencrypted alert should not end the handshake, but should be reported if the handshake times
/// out.
#[test]
fn an_alert_that_was_the_last_word() {
    let mut world = World::new(1, 0);
    // Waits until the server has answered.
    while !world.wire.iter().any(|it| it[0] == 22 && it[13] == 2) {
        world.step(SECOND);
    }
    world.flaws = 100;
    let alert = record(21, 0, 3, &[2, 42]);
    world.ends[1].handle_datagram(world.now, address(0), &alert);
    world.run(60 * SECOND);
    let Some(Event::Closed(Closed::Dtls(why))) = world.events[1].last() else {
        panic!("{:?}", world.events[1])
    };
    assert!(why.ends_with("came: 42"), "{why}");
}

/// After the handshake, unencrypted records should be ignored.
#[test]
fn after_the_handshake() {
    let mut world = World::new(1, 0).connect();
    world.run(SECOND);
    for (_, forge) in KINDS {
        for end in 0..2 {
            flood(&mut world, end, *forge, 400);
            assert!(world.ends[end].poll_transmit().is_none());
        }
    }
    use_it(&mut world);
}

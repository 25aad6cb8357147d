//! Table of attacks, each with an initial state and packets.

use anabranch_sctp::SendOptions;
use anabranch_transport::time::SECOND;
use anabranch_wire::chunk::kind;
use bytes::Bytes;

use super::states::*;
use super::victim::*;

/// Name of an attack, and function that creates the victim and the packets.
pub type Attack = (&'static str, fn() -> (Victim, Vec<Bytes>));

pub const ATTACKS: &[Attack] = &[
    ("nothing", || same(plain(), body(kind::PAD, 1_400))),
    ("FORWARD TSN, unread messages", || {
        let mut victim = Victim::new(&offer(&[kind::FORWARD_TSN]), |it| {
            it.partial_delivery_point = Some(500);
        });
        unread(&mut victim, 30_000, 1);
        let all = endless(&victim, 30_000);
        (victim, all)
    }),
    ("FORWARD TSN, messages wait in a row", || {
        let mut victim = plain();
        waiting(&mut victim, 30_000, 1);
        let skipped: Vec<_> = (0..360).map(|at| (1 + at, 0)).collect();
        let all = packets(&victim, |at| forward_tsn(40_000 + at, &skipped));
        (victim, all)
    }),
    ("FORWARD TSN, messages wait on streams", || {
        let mut victim = plain();
        waiting(&mut victim, 30_000, 30_000);
        let skipped: Vec<_> = (0..360).map(|at| (at, 0)).collect();
        let all = packets(&victim, |at| forward_tsn(40_000 + at, &skipped));
        (victim, all)
    }),
    ("FORWARD TSNs below gaps", || {
        let mut victim = plain();
        gaps(&mut victim, 15_000);
        let all = packets(&victim, |at| {
            (0..180)
                .flat_map(|it| forward_tsn((180 * at + it) / 2, &[]))
                .collect()
        });
        (victim, all)
    }),
    ("FORWARD TSN, same stream again and again", || {
        let mut victim = plain();
        waiting(&mut victim, 30_000, 3);
        let skipped: Vec<_> = (0..360).map(|_| (1, 30_000)).collect();
        let all = packets(&victim, |at| forward_tsn(40_000 + at, &skipped));
        (victim, all)
    }),
    ("DATA that fill gaps, one per packet", || {
        let mut victim = plain();
        gaps(&mut victim, 15_000);
        let all = packets(&victim, |at| data(29_990 - 2 * at, 1, 20_000, "BEU"));
        (victim, all)
    }),
    ("DATA, duplicates, with gaps", || {
        let mut victim = plain();
        gaps(&mut victim, 15_000);
        let chunks = (0..70)
            .flat_map(|at| data(1 + 2 * at, 1, at as u16, "BE"))
            .collect();
        same(victim, chunks)
    }),
    ("DATA, a duplicate a packet, with gaps", || {
        let mut victim = plain();
        gaps(&mut victim, 15_000);
        same(victim, data(1, 1, 1, "BE"))
    }),
    ("DATA on nonexistent streams", || {
        let victim = Victim::new(&offer(&[]), |it| it.inbound_streams = 10);
        let all = packets(&victim, |at| {
            (0..70)
                .flat_map(|it| data(70 * at + it, 20, 0, "BE"))
                .collect()
        });
        (victim, all)
    }),
    ("DATA into a full buffer", || {
        let mut victim = Victim::new(&offer(&[]), |it| it.receive_buffer = 1 << 20);
        gaps(&mut victim, 9_000);
        let all = packets(&victim, |at| {
            (0..70)
                .flat_map(|it| data(40_000 + 70 * at + it, 1, 0, "BEU"))
                .collect()
        });
        (victim, all)
    }),
    ("DATA that free space in a full buffer", || {
        let mut victim = Victim::new(&offer(&[]), |it| it.receive_buffer = 1 << 20);
        gaps(&mut victim, 9_000);
        let all = packets(&victim, |at| {
            sized_data(2 + 2 * at, 2, at as u16, "BE", 1_400)
        });
        (victim, all)
    }),
    ("I-DATA, pieces of one message, last first", || {
        let victim = interleaving();
        let all = packets(&victim, |at| {
            (0..60)
                .flat_map(|it| i_data(60 * at + it, 1, (0, 9_000 - 60 * at - it), ""))
                .collect()
        });
        (victim, all)
    }),
    ("I-DATA into a closed window", || {
        let mut victim = Victim::new(
            &offer(&[kind::I_DATA, kind::I_FORWARD_TSN, kind::FORWARD_TSN]),
            |it| {
                it.receive_buffer = 1 << 20;
                it.interleaving = true;
            },
        );
        victim.says_all((0..8_900).map(|at| i_data(1 + 2 * at, at as u16, (1, 1), "")));
        let all = packets(&victim, |at| {
            (0..60)
                .flat_map(|it| i_data(2 + 2 * (60 * at + it), 9, (2 + at, 1 + it), ""))
                .collect()
        });
        (victim, all)
    }),
    ("I-FORWARD-TSN over unfinished messages that stay", || {
        let mut victim = interleaving();
        victim.says_all(
            (0..20_000).map(|at| i_data(1 + at, (at % 100) as u16, (at / 100 + 1_000, 1), "")),
        );
        let skipped: Vec<_> = (0..180).map(|at| (at % 100, false, 2)).collect();
        let all = packets(&victim, |at| i_forward_tsn(30_000 + at, &skipped));
        (victim, all)
    }),
    ("I-FORWARD-TSN, unread messages", || {
        let mut victim = Victim::new(
            &offer(&[kind::I_DATA, kind::I_FORWARD_TSN, kind::FORWARD_TSN]),
            |it| {
                it.interleaving = true;
                it.partial_delivery_point = Some(1);
            },
        );
        victim.says_all((0..20_000).map(|at| i_data(at, 1, (at, 0), "BE")));
        let all = packets(&victim, |at| {
            let mut chunks = Vec::new();
            let mut skipped = Vec::new();
            for stream in 100..140 {
                chunks.extend(i_data(
                    20_000 + 40 * at + u32::from(stream - 100),
                    stream,
                    (at, 0),
                    "B",
                ));
                skipped.push((stream, false, at));
            }
            chunks.extend(i_forward_tsn(20_000 + 40 * at + 39, &skipped));
            chunks
        });
        (victim, all)
    }),
    ("SACK with 360 gaps, much in flight", || {
        let victim = sent(plain(), IN_FLIGHT, 1, &SendOptions::default());
        let blocks: Vec<_> = (1..=360).map(|at| (2 * at, 2 * at)).collect();
        let chunks = victim.sack(victim.acknowledged, &blocks, &[]);
        same(victim, chunks)
    }),
    ("SACK with 360 gaps that change, much in flight", || {
        let victim = sent(plain(), IN_FLIGHT, 1, &SendOptions::default());
        let all = packets(&victim, |at| {
            let blocks: Vec<_> = (1..=360)
                .map(|it| (2 * it + at as u16 % 2, 2 * it + at as u16 % 2))
                .collect();
            victim.sack(victim.acknowledged, &blocks, &[])
        });
        (victim, all)
    }),
    ("SACK with 360 gaps far apart", || {
        let victim = sent(plain(), IN_FLIGHT, 1, &SendOptions::default());
        let all = packets(&victim, |at| {
            let first = 2 + (at as u16 % 50);
            let blocks: Vec<_> = (0..360)
                .map(|it| (first + 30 * it, first + 30 * it))
                .collect();
            victim.sack(victim.acknowledged, &blocks, &[])
        });
        once_more((victim, all))
    }),
    ("SACKs that alternately acknowledge all and nothing", || {
        let victim = sent(plain(), IN_FLIGHT, 1, &SendOptions::default());
        let last = victim.highest.wrapping_sub(victim.origin).wrapping_add(1) - victim.acknowledged;
        let all = packets(&victim, |at| match at % 2 {
            0 => victim.sack(victim.acknowledged, &[(2, last as u16)], &[]),
            _ => victim.sack(victim.acknowledged, &[], &[]),
        });
        once_more((victim, all))
    }),
    (
        "SACKs, 90 a packet, that alternately acknowledge all and nothing",
        || {
            let victim = sent(plain(), IN_FLIGHT, 1, &SendOptions::default());
            let last =
                victim.highest.wrapping_sub(victim.origin).wrapping_add(1) - victim.acknowledged;
            let all = packets(&victim, |_| {
                (0..40)
                    .flat_map(|_| {
                        let mut both = victim.sack(victim.acknowledged, &[(2, last as u16)], &[]);
                        both.extend(victim.sack(victim.acknowledged, &[], &[]));
                        both
                    })
                    .collect()
            });
            once_more((victim, all))
        },
    ),
    ("SACKs that move by one, much in flight", || {
        let victim = sent(plain(), IN_FLIGHT, 1, &SendOptions::default());
        let all = packets(&victim, |at| {
            victim.sack(victim.acknowledged + at, &[(100, 101)], &[])
        });
        (victim, all)
    }),
    ("SACK with 360 duplicates", || {
        let victim = sent(plain(), IN_FLIGHT, 1, &SendOptions::default());
        let duplicates: Vec<_> = (0..360).map(|at| victim.origin + at).collect();
        let chunks = victim.sack(victim.acknowledged, &[], &duplicates);
        same(victim, chunks)
    }),
    ("SACK with 360 duplicates, RACK", || {
        let victim = Victim::new(&offer(&[]), |it| it.rack = true);
        let victim = sent(victim, IN_FLIGHT, 1, &SendOptions::default());
        let duplicates: Vec<_> = (0..360).map(|at| victim.origin + at).collect();
        let chunks = victim.sack(victim.acknowledged, &[], &duplicates);
        same(victim, chunks)
    }),
    ("SACKs with gaps, RACK", || {
        let victim = Victim::new(&offer(&[]), |it| it.rack = true);
        let victim = sent(victim, IN_FLIGHT, 1, &SendOptions::default());
        let all = packets(&victim, |at| {
            let first = 2 + 2 * (at as u16);
            victim.sack(victim.acknowledged, &[(first, first)], &[])
        });
        (victim, all)
    }),
    ("SACKs that make messages lost, which are abandoned", || {
        let mut options = SendOptions::default();
        options = options.with_max_retransmits(Some(0));
        let victim = sent(plain(), IN_FLIGHT, 1, &options);
        let all = packets(&victim, |at| {
            (0..3)
                .flat_map(|it| {
                    let last = 3 + 3 * at + it;
                    victim.sack(victim.acknowledged, &[(2 + at as u16, last as u16)], &[])
                })
                .collect()
        });
        (victim, all)
    }),
    ("SHUTDOWNs", || {
        let mut victim = sent(plain(), IN_FLIGHT, 1, &SendOptions::default());
        victim.may_end = true;
        let number = victim
            .origin
            .wrapping_sub(1)
            .wrapping_add(victim.acknowledged);
        let chunks = filled(&chunk(kind::SHUTDOWN, 0, &number.to_be_bytes()));
        same(victim, chunks)
    }),
    ("HEARTBEATs", || {
        same(
            plain(),
            filled(&chunk(kind::HEARTBEAT, 0, &parameter(1, &[0; 4]))),
        )
    }),
    ("HEARTBEAT ACKs", || {
        same(
            plain(),
            filled(&chunk(kind::HEARTBEAT_ACK, 0, &parameter(1, &[0; 40]))),
        )
    }),
    ("a long HEARTBEAT", || {
        same(
            plain(),
            chunk(kind::HEARTBEAT, 0, &parameter(1, &[0; 1_400])),
        )
    }),
    ("ERRORs", || {
        same(plain(), filled(&chunk(kind::ERROR, 0, &parameter(99, &[]))))
    }),
    ("ERROR with many causes", || {
        same(
            plain(),
            chunk(kind::ERROR, 0, &parameter(99, &[]).repeat(360)),
        )
    }),
    ("ERROR, stale cookie, unknown parameters", || {
        same(
            plain(),
            chunk(
                kind::ERROR,
                0,
                &parameter(8, &parameter(0x8008, &[1])).repeat(100),
            ),
        )
    }),
    ("ECNEs", || {
        same(
            sent(plain(), IN_FLIGHT, 1, &SendOptions::default()),
            filled(&body(kind::ECNE, 4)),
        )
    }),
    ("CWRs", || same(plain(), filled(&body(kind::CWR, 4)))),
    ("PADs", || same(plain(), filled(&body(kind::PAD, 0)))),
    ("unknown chunks, to be reported", || {
        same(plain(), filled(&body(0xFE, 0)))
    }),
    ("an unknown chunk, to be reported", || {
        same(plain(), body(0xFE, 1_400))
    }),
    ("unknown chunks, to be skipped", || {
        same(plain(), filled(&body(0xBE, 0)))
    }),
    ("COOKIE ACKs", || {
        same(plain(), filled(&body(kind::COOKIE_ACK, 0)))
    }),
    ("a COOKIE ECHO that is wrong", || {
        same(plain(), body(kind::COOKIE_ECHO, 1_400))
    }),
    ("COOKIE ECHOes that are wrong", || {
        same(plain(), filled(&body(kind::COOKIE_ECHO, 300)))
    }),
    ("INIT ACKs", || {
        same(plain(), filled(&body(kind::INIT_ACK, 20)))
    }),
    ("ABORTs of others", || {
        let victim = plain();
        let tag = victim.tag.wrapping_add(1);
        let all = (0..PACKETS)
            .map(|_| packet(tag, &filled(&body(kind::ABORT, 0))))
            .collect();
        (victim, all)
    }),
    ("INIT", || {
        let victim = plain();
        let all = (0..PACKETS)
            .map(|_| packet(0, &init(&offer(&[RE_CONFIG]))))
            .collect();
        (victim, all)
    }),
    ("INIT with many addresses", || {
        let victim = plain();
        let addresses: Vec<u8> = (0..180)
            .flat_map(|at| parameter(5, &address_of(at)))
            .collect();
        let all = (0..PACKETS).map(|_| packet(0, &init(&addresses))).collect();
        (victim, all)
    }),
    ("INIT with parameters to be reported", || {
        let victim = plain();
        let unknown = parameter(0xFFFE, &[]).repeat(360);
        let all = (0..PACKETS).map(|_| packet(0, &init(&unknown))).collect();
        (victim, all)
    }),
    ("INIT of a restart, many addresses", || {
        let addresses: Vec<u8> = (0..180)
            .flat_map(|at| parameter(5, &address_of(at)))
            .collect();
        let victim = Victim::new(&addresses, |_| {});
        let all = (0..PACKETS).map(|_| packet(0, &init(&addresses))).collect();
        (victim, all)
    }),
    ("INIT with long lists", || {
        let victim = plain();
        let lists = [parameter(0x8008, &[0x55; 700]), parameter(12, &[0; 700])].concat();
        let all = (0..PACKETS).map(|_| packet(0, &init(&lists))).collect();
        (victim, all)
    }),
    ("INIT with AUTH, long lists", || {
        let victim = Victim::new(&[], |it| {
            it.authentication = anabranch_sctp::Authentication::On
        });
        let lists = [
            parameter(0x8002, &[0x55; 32]),
            parameter(0x8003, &[0x55; 250]),
            parameter(0x8004, &[0, 9].repeat(500)),
        ]
        .concat();
        let all = (0..PACKETS).map(|_| packet(0, &init(&lists))).collect();
        (victim, all)
    }),
    ("ASCONF with many additions", || {
        let victim = changing();
        let all = packets(&victim, |at| {
            let parameters: Vec<u8> = (0..10)
                .flat_map(|it| asked(0xC001, it, address_of(10 * at + it)))
                .collect();
            asconf(at, &parameters)
        });
        (victim, all)
    }),
    ("ASCONF that adds and takes away", || {
        let victim = changing();
        let all = packets(&victim, |at| {
            let parameters: Vec<u8> = (0..10)
                .flat_map(|it| asked(0xC001 + (it as u16 % 2), it, address_of(10 * at + it / 2)))
                .collect();
            asconf(at, &parameters)
        });
        (victim, all)
    }),
    ("ASCONF that adds and takes away, much in flight", || {
        let victim = sent(changing(), IN_FLIGHT, 1, &SendOptions::default());
        let all = packets(&victim, |at| {
            let parameters: Vec<u8> = (0..10)
                .flat_map(|it| asked(0xC001 + (it as u16 % 2), it, address_of(10 * at + it / 2)))
                .collect();
            asconf(at, &parameters)
        });
        (victim, all)
    }),
    ("ASCONF again and again", || {
        let victim = changing();
        let parameters: Vec<u8> = (0..10)
            .flat_map(|it| asked(0xC001, it, address_of(it)))
            .collect();
        let all = packets(&victim, |_| asconf(0, &parameters));
        (victim, all)
    }),
    ("ASCONFs that set the primary", || {
        let victim = changing();
        let all = requests(&victim, 35, |serial| {
            asconf(serial, &asked(0xC004, 0, [10, 0, 0, 1]))
        });
        (victim, all)
    }),
    ("ASCONF ACKs", || {
        let victim = changing();
        // The serial number is one below that of the first ASCONF, which equals the first TSN (RFC
        // 5061 §5.1). An ASCONF-ACK for an ASCONF that was not sent yet would end the association.
        let before = victim.origin.wrapping_sub(1).to_be_bytes();
        same(victim, filled(&chunk(kind::ASCONF_ACK, 0, &before)))
    }),
    ("restarts", || restarts(plain(), &offer(&[]))),
    ("restarts, unread messages", || {
        let mut victim = plain();
        unread(&mut victim, 30_000, 30_000);
        restarts(victim, &offer(&[]))
    }),
    ("restarts, many addresses", || {
        let addresses: Vec<u8> = (0..180)
            .flat_map(|at| parameter(5, &address_of(at)))
            .collect();
        restarts(Victim::new(&addresses, |_| {}), &addresses)
    }),
    ("zero-length parameters", || {
        same(plain(), filled(&chunk(RE_CONFIG, 0, &[0; 4])))
    }),
    ("from an address of no association", || {
        let mut victim = plain();
        victim.waits(SECOND);
        let all = (0..PACKETS)
            .map(|at| packet(at + 1, &filled(&body(kind::DATA, 13))))
            .collect();
        (victim, all)
    }),
];

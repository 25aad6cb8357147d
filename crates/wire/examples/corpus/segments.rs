//! Seeds of the fuzz target for TCP segments.

use std::net::IpAddr;

use anabranch_wire::tcp::{self, Flags, Options, SackBlock, Timestamps};
use anabranch_wire::{SeqNumber, checksum};
use bytes::{Bytes, BytesMut};

const ADDRESSES: (IpAddr, IpAddr) = (
    IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)),
    IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2)),
);

pub fn sound_segments() -> Vec<(String, Bytes)> {
    let timestamps = Some(Timestamps {
        value: 1_000,
        echo_reply: 900,
    });
    let syn = Options {
        maximum_segment_size: Some(1_460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps,
        ..Options::default()
    };
    let plain = Options::default();
    let mut seeds = vec![
        segment("syn", Flags::SYN, syn.clone(), b""),
        segment("syn-ack", Flags::SYN | Flags::ACK, syn, b""),
        segment(
            "syn-mss",
            Flags::SYN,
            Options {
                maximum_segment_size: Some(536),
                ..plain.clone()
            },
            b"",
        ),
        segment("ack", Flags::ACK, plain.clone(), b""),
        segment(
            "data",
            Flags::ACK | Flags::PSH,
            plain.clone(),
            b"some bytes",
        ),
        segment(
            "data-timestamps",
            Flags::ACK,
            Options {
                timestamps,
                ..plain.clone()
            },
            b"some bytes",
        ),
        segment("fin", Flags::FIN | Flags::ACK, plain.clone(), b"the last"),
        segment("rst", Flags::RST, plain.clone(), b""),
        segment(
            "urgent-ecn",
            Flags::URG | Flags::ECE | Flags::CWR,
            plain.clone(),
            b"!",
        ),
    ];
    for count in 1..=4 {
        let mut options = plain.clone();
        for i in 0..count {
            let left = SeqNumber(u32::MAX - 1_000).add(i * 1_000);
            options
                .sack_blocks
                .push(SackBlock {
                    left,
                    right: left.add(500),
                })
                .expect("there are four");
        }
        seeds.push(segment(
            &format!("sack-{count}"),
            Flags::ACK,
            options.clone(),
            b"",
        ));
        options.timestamps = timestamps;
        seeds.push(segment(
            &format!("sack-{count}-timestamps"),
            Flags::ACK,
            options,
            b"",
        ));
    }
    seeds
}

fn segment(name: &str, flags: Flags, options: Options, payload: &[u8]) -> (String, Bytes) {
    let header = tcp::Header {
        source_port: 5000,
        destination_port: 5001,
        sequence_number: SeqNumber(u32::MAX - 3),
        acknowledgment_number: SeqNumber(77),
        flags,
        window: 8_192,
        urgent_pointer: 0,
        options,
    };
    let mut out = BytesMut::new();
    header.encode(&mut out, ADDRESSES, true, [payload]);
    (name.to_owned(), out.freeze())
}

pub fn unsound_segments() -> Vec<(String, Bytes)> {
    let with = |words: u8, rest: &[u8]| {
        let mut bytes = vec![
            0x13,
            0x88,
            0x13,
            0x89,
            0,
            0,
            0,
            1,
            0,
            0,
            0,
            2,
            words << 4,
            0x10,
            0x20,
            0,
            0,
            0,
            0,
            0,
        ];
        bytes.extend(rest);
        let sum = checksum::internet_tcp(ADDRESSES.0, ADDRESSES.1, &bytes);
        bytes[16..18].copy_from_slice(&sum.to_be_bytes());
        Bytes::from(bytes)
    };
    vec![
        ("header-cut".into(), with(5, &[]).slice(..19)),
        ("offset-small".into(), with(4, &[])),
        ("offset-large".into(), with(15, &[1; 8])),
        ("option-length-0".into(), with(6, &[2, 0, 0, 0])),
        ("option-length-1".into(), with(6, &[99, 1, 0, 0])),
        ("option-past-header".into(), with(6, &[99, 5, 0, 0, 0])),
        ("option-cut".into(), with(6, &[1, 1, 1, 8])),
        (
            "sack-odd".into(),
            with(8, &[1, 1, 5, 9, 0, 0, 0, 1, 0, 0, 0, 2]),
        ),
        ("option-after-end".into(), with(6, &[0, 2, 4, 9])),
    ]
}

//! Inputs that caused failures of other stacks, processed in every state. The inputs are not stored
//! here: `SCTP_CORPUS=DIR cargo test -p anabranch-sctp --test foreign_corpus -- --ignored
//! --nocapture`, with files in DIR and its subdirectories that hold complete packets, chunks, or
//! one byte followed by chunks.

mod common;

use std::path::{Path as FilePath, PathBuf};

use anabranch_transport::time::SECOND;
use anabranch_transport::{Ecn, Path, Transport};
use bytes::{Bytes, BytesMut};
use common::*;

/// Maximum number of packets that may answer one packet.
const MAX_ANSWERS: usize = 48;

fn files(dir: &FilePath, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
    found.sort();
}

fn give(world: &mut World, bytes: Bytes) {
    let path = Path::new(address(A, 0), address(Z, 0));
    world.endpoints[A].handle_datagram(world.now, path, Ecn::NotEct, bytes);
    let mut out = BytesMut::new();
    let mut answers = 0;
    while world.endpoints[A]
        .poll_transmit(world.now, &mut out)
        .is_some()
    {
        answers += 1;
        assert!(answers <= MAX_ANSWERS, "a storm");
    }
    assert!(out.len() <= 60_000, "{} bytes of answers", out.len());
    while world.endpoints[A].poll_event().is_some() {}
}

#[test]
#[ignore = "needs SCTP_CORPUS, a directory of inputs that are not part of this repository"]
fn nothing_of_a_foreign_corpus_does_harm() {
    let dir = std::env::var("SCTP_CORPUS").expect("SCTP_CORPUS=DIR");
    let mut found = Vec::new();
    files(FilePath::new(&dir), &mut found);
    assert!(!found.is_empty());
    let mut packets = 0;
    for file in &found {
        println!("{}", file.display());
        let content = std::fs::read(file).expect("readable");
        // The input is read as chunks, as one byte followed by chunks, and as a packet, whose
        // 12-byte header is replaced. Long inputs are split into several packets.
        for start in [0, 1, 12] {
            let body = content.get(start..).unwrap_or_default();
            for piece in body.chunks(65_000).take(8) {
                for state in STATES {
                    let (mut world, tag) = in_state(state);
                    for tag in [tag, 0, 1] {
                        give(&mut world, raw_packet(Z, tag, piece));
                        packets += 1;
                    }
                    world.fate = Box::new(|_| Fate::Deliver);
                    world.run_for(100 * SECOND);
                    assert!(world.endpoints[A].associations().count() <= 2);
                }
            }
        }
    }
    println!("{} files, {packets} packets", found.len());
}

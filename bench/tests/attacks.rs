//! Limits for the cost of an attacker's packet in all states of an association.
//! `valgrind --tool=callgrind` counts instructions, as in `limits.rs`, in a test build with
//! assertions.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use anabranch_bench::callgrind::within;

/// Number of packets whose cost is counted.
const PACKETS: usize = 40;
/// Maximum number of instructions per packet, and per byte of it: at least 7 % above the counted
/// values.
const PER_PACKET: u64 = 40_000;
const PER_BYTE: u64 = 120;
/// Number of instructions that is allowed for each message that is delivered, acknowledged or
/// abandoned, and for each hundred bytes sent.
const PER_MESSAGE: u64 = 1_000;
/// Minimum number of instructions for reading any packet.
const MIN_COST: u64 = 100;
/// Number of random states and packets.
const SEEDS: u64 = 24;

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_attacks"))
}

fn told(arguments: &[&str]) -> String {
    let output = Command::new(program()).args(arguments).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Number of packets of an attack, their bytes, the number of one-time operations, and the number
/// of bytes sent.
fn about(attack: &str) -> [u64; 4] {
    let told = told(&[attack]);
    let numbers = told.split_whitespace().map(|it| it.parse::<u64>());
    let numbers: Vec<u64> = numbers.map(|it| it.expect("a number")).collect();
    numbers.try_into().expect("four numbers")
}

/// Instructions per packet of an attack, and their limit.
fn cost_of(attack: &str) -> (u64, u64) {
    let arguments = [attack.to_string(), PACKETS.to_string()];
    let [packets, bytes, done, sent] = about(attack);
    if packets == 0 {
        // The peer has closed the association already.
        return (MIN_COST, MIN_COST);
    }
    let count = within("*::packets_arrive*", program(), &arguments).expect("valgrind");
    let (each, bytes) = (count / PACKETS as u64, bytes / packets);
    // Messages that are delivered, acknowledged or abandoned raise the limit only for random
    // packets. In all other attacks this happens once, before the instructions are counted.
    let done = match attack.starts_with("random") {
        true => done / packets,
        false => 0,
    };
    let sent = sent / packets;
    println!("{attack}: {each} instructions for {bytes} bytes that do {done}, {sent} bytes back");
    (each, PER_PACKET + PER_BYTE * bytes + PER_MESSAGE * done)
}

#[test]
fn no_packet_costs_more_than_its_bytes_may() {
    let attacks = told(&[]);
    let random = (0..SEEDS).map(|seed| format!("random {seed}"));
    let attacks = attacks.lines().map(String::from).chain(random);
    let next = Mutex::new(attacks);
    let beyond = Mutex::new(Vec::new());
    let count_some = || {
        while let Some(attack) = { next.lock().expect("no panic").next() } {
            let (each, most) = cost_of(&attack);
            // A count close to zero means that the packets were not processed.
            if each > most || each < MIN_COST {
                beyond.lock().expect("no panic").push((attack, each, most));
            }
        }
    };
    // In parallel, because each count is a separate program, which takes seconds to reach the
    // attacked state.
    let threads = thread::available_parallelism().map_or(1, Into::into);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(count_some);
        }
    });
    let beyond = beyond.into_inner().expect("no panic");
    assert!(beyond.is_empty(), "{beyond:#?}");
}

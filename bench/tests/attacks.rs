//! What a packet of an attacker's may cost at most, whatever state it has brought an association into: instructions, counted by `valgrind
//! --tool=callgrind` as in `limits.rs`. The build is that of the tests, with its assertions.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use anabranch_bench::callgrind::within;

/// Packets that are counted.
const PACKETS: usize = 40;
/// What a packet may cost, and each byte of it beside: 7 % or more above what was counted.
const PER_PACKET: u64 = 40_000;
const PER_BYTE: u64 = 120;
/// What may be done once for each message that is delivered, acknowledged or given up, and for each hundred bytes that are sent.
const PER_MESSAGE: u64 = 1_000;
/// To read a packet at all costs more.
const LEAST: u64 = 100;
/// States and packets at random: those of so many seeds.
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

/// Packets of the attack, their bytes, what they do once, and bytes that are sent.
fn about(attack: &str) -> [u64; 4] {
    let told = told(&[attack]);
    let numbers = told.split_whitespace().map(|it| it.parse::<u64>());
    let numbers: Vec<u64> = numbers.map(|it| it.expect("a number")).collect();
    numbers.try_into().expect("four numbers")
}

/// Instructions of a packet, and how many they may be.
fn cost_of(attack: &str) -> (u64, u64) {
    let arguments = [attack.to_string(), PACKETS.to_string()];
    let [packets, bytes, done, sent] = about(attack);
    if packets == 0 {
        // The peer had brought the association to its end before.
        return (LEAST, LEAST);
    }
    let count = within("*::packets_arrive*", program(), &arguments).expect("valgrind");
    let (each, bytes) = (count / PACKETS as u64, bytes / packets);
    // What is done once makes room for no attack: only at random it is done while packets are counted.
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
            // A count of next to nothing is none of what arrives.
            if each > most || each < LEAST {
                beyond.lock().expect("no panic").push((attack, each, most));
            }
        }
    };
    // Each count is a program of its own, which takes seconds to come to the state that is attacked.
    let threads = thread::available_parallelism().map_or(1, Into::into);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(count_some);
        }
    });
    let beyond = beyond.into_inner().expect("no panic");
    assert!(beyond.is_empty(), "{beyond:#?}");
}

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
/// What a packet may cost, and each byte of it beside: some 40 % above what was counted for the dearest.
const PER_PACKET: u64 = 110_000;
const PER_BYTE: u64 = 110;
/// To read a packet at all costs more.
const LEAST: u64 = 100;
/// What costs more, and how much that may be: a search for each of 700 streams.
const DEARER: (&str, u64) = ("RE-CONFIG, many streams of the peer", 650_000);

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_attacks"))
}

fn told(arguments: &[&str]) -> String {
    let output = Command::new(program()).args(arguments).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Bytes of a packet of the attack.
fn bytes_of(attack: &str) -> u64 {
    let told = told(&[attack]);
    let mut numbers = told.split_whitespace().map(|it| it.parse::<u64>());
    let mut next = || numbers.next().and_then(Result::ok).expect("a number");
    let (packets, bytes) = (next(), next());
    bytes / packets
}

/// Instructions a packet, and the bytes of one.
fn cost_of(attack: &str) -> (u64, u64) {
    let arguments = [attack.to_string(), PACKETS.to_string()];
    let count = within("*::packets_arrive*", program(), &arguments).expect("valgrind");
    let (each, bytes) = (count / PACKETS as u64, bytes_of(attack));
    println!("{attack}: {each} instructions for {bytes} bytes");
    (each, bytes)
}

#[test]
fn no_packet_costs_more_than_its_bytes_may() {
    let attacks = told(&[]);
    let next = Mutex::new(attacks.lines());
    let beyond = Mutex::new(Vec::new());
    let count_some = || {
        while let Some(attack) = { next.lock().expect("no panic").next() } {
            let (each, bytes) = cost_of(attack);
            let most = match attack == DEARER.0 {
                true => DEARER.1,
                false => PER_PACKET + PER_BYTE * bytes,
            };
            // A count of next to nothing is none of what arrives.
            if each > most || each < LEAST {
                beyond.lock().expect("no panic").push((attack, each, bytes));
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

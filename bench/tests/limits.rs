//! Limits for the cost of a byte of user data, and of a packet on a link.
//! `valgrind --tool=callgrind` counts instructions, which do not depend on the clock or the load of
//! the machine. The numbers are larger than those in `bench/README.md`, because the runs are much
//! shorter and use a test build. Changes that make the benchmarks slower increase these numbers
//! too.
//!
//! A limit is about 8 % above the count at the time when it was set. A change that makes a row
//! faster should lower its limit. A change that makes it slower for a good reason must raise the
//! limit, and state the reason.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::path::Path;

use anabranch_bench::callgrind::between;
use anabranch_bench::{geo_of, hops_of};

/// Checks the instructions per byte of user data, both ends together.
fn core(message: usize, batch: usize, limit: f64) {
    let program = Path::new(env!("CARGO_BIN_EXE_in_memory"));
    let few = (1024 * 1024 / message).min(2_500);
    let arguments = |messages: usize| {
        let numbers = [message, 1200, batch, 1, messages].map(|it| it.to_string());
        let begin = ["work", "anabranch"].map(str::to_string);
        begin.into_iter().chain(numbers).collect::<Vec<_>>()
    };
    let count = between(program, &arguments(few), &arguments(3 * few)).expect("valgrind");
    let each = count as f64 / (2 * few * message) as f64;
    holds(
        &format!("{message} B, {batch} at a time, a byte"),
        each,
        limit,
    );
}

/// Checks the instructions per packet and hop, without a transport.
fn hops(air: bool, limit: f64) {
    let program = Path::new(env!("CARGO_BIN_EXE_hops"));
    let arguments = |packets: u32| {
        let words = [packets.to_string(), "1480".to_string()];
        let air = air.then(|| "air".to_string());
        words.into_iter().chain(air).collect::<Vec<_>>()
    };
    let count = between(program, &arguments(1_000), &arguments(3_000)).expect("valgrind");
    let each = count as f64 / (2_000 * 2) as f64;
    holds(
        if air {
            "a wire and 802.11b, a packet and hop"
        } else {
            "two wires, a packet and hop"
        },
        each,
        limit,
    );
}

/// Checks the instructions per packet and hop in the GEO dumbbell with eight flows, TCP and SCTP.
fn geo(limit: f64) {
    let program = Path::new(env!("CARGO_BIN_EXE_run_spec"));
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("geo/geo.toml");
    let (less, more) = (geo_of(&spec, 10), geo_of(&spec, 30));
    let hops = |arguments: &[String]| hops_of(program, arguments).expect("a run");
    let hops = hops(&more) - hops(&less);
    let count = between(program, &less, &more).expect("valgrind");
    holds("GEO, a packet and hop", count as f64 / hops as f64, limit);
}

fn holds(what: &str, each: f64, limit: f64) {
    println!("{what}: {each:.2} instructions, limit {limit}");
    assert!(
        each <= limit,
        "{what}: {each:.2} instructions, and {limit} are the limit"
    );
    assert!(
        each >= limit * 0.75,
        "{what}: {each:.2} instructions: lower the limit, which is {limit}"
    );
}

#[test]
fn messages_of_100_bytes() {
    // The count was 33.0 before the send functions were merged into one, which has to examine its
    // options.
    core(100, 1, 33.0);
}

#[test]
fn messages_of_1_kib() {
    core(1024, 1, 5.75);
}

#[test]
fn messages_of_1_kib_in_batches() {
    // The count was 3.55 before the send functions were merged into one.
    core(1024, 64, 3.60);
}

#[test]
fn messages_of_16_kib() {
    core(16 * 1024, 1, 6.95);
}

#[test]
fn messages_of_16_kib_in_batches() {
    core(16 * 1024, 64, 3.15);
}

#[test]
fn two_wires() {
    hops(false, 700.0);
}

#[test]
fn a_wire_and_the_air() {
    hops(true, 2_750.0);
}

#[test]
fn a_geo_dumbbell() {
    geo(1_950.0);
}

//! Comparison of the 802.11 medium with analytical models: the maximum throughput of one station,
//! one to ten saturated stations (Bianchi), hidden stations with and without RTS/CTS, and capture.
//! It also prints the cost of simulating a packet.
//!
//! `cargo run --release -p anabranch-sim --example wifi_saturation`

#[path = "../tests/wifi_support/mod.rs"]
mod models;

use anabranch_sim::wifi::WifiParameters;
use models::{CIRCLE, UDP_IP, bianchi, largest_rate, saturate};

const SECONDS: u64 = 60;
const PACKET: u32 = 1500;

fn main() {
    let standard = WifiParameters::ieee80211b();
    let announced = WifiParameters {
        rts_threshold: 0,
        ..standard
    };
    let sets = [
        ("802.11b", standard),
        ("802.11b, RTS/CTS", announced),
        ("rafiq2007", WifiParameters::rafiq2007()),
    ];

    println!("One station's largest UDP rate, Mb/s");
    println!(
        "{:<18} {:>7} {:>9} {:>9} {:>7}",
        "parameters", "packet", "formula", "measured", "off"
    );
    for (name, parameters) in &sets {
        for packet in [128, 576, 1500] {
            let measured =
                saturate(*parameters, &CIRCLE[..1], packet, SECONDS, 1).rate(packet - UDP_IP);
            row(
                name,
                packet,
                largest_rate(parameters, packet, packet - UDP_IP),
                measured,
            );
        }
    }

    println!("\nSaturated stations, packets of {PACKET} bytes, UDP goodput, Mb/s");
    println!(
        "{:<18} {:>7} {:>9} {:>9} {:>7}",
        "parameters", "n", "Bianchi", "measured", "off"
    );
    for (name, parameters) in &sets {
        for n in 1..=10 {
            let measured = saturate(*parameters, &CIRCLE[..n as usize], PACKET, SECONDS, 1)
                .rate(PACKET - UDP_IP);
            row(
                name,
                n,
                bianchi(parameters, n, PACKET, PACKET - UDP_IP),
                measured,
            );
        }
    }

    println!(
        "\nTwo senders 300 m either side of the receiver, who hear it and not each other, and two who hear each other"
    );
    println!(
        "{:<18} {:>12} {:>12} {:>14}",
        "parameters", "hidden Mb/s", "heard Mb/s", "ACKs missing"
    );
    for (name, parameters) in &sets[..2] {
        let hidden = saturate(
            *parameters,
            &[(-300.0, 0.0), (300.0, 0.0)],
            PACKET,
            SECONDS,
            1,
        );
        let heard = saturate(
            *parameters,
            &[(10.0, 0.0), (-10.0, 0.0)],
            PACKET,
            SECONDS,
            1,
        );
        let sent: u64 = hidden.stats[..2].iter().map(|stats| stats.data_sent).sum();
        let missing: u64 = hidden.stats[..2]
            .iter()
            .map(|stats| stats.ack_missing)
            .sum();
        let (hidden, heard) = (
            hidden.rate(PACKET - UDP_IP) / 1e6,
            heard.rate(PACKET - UDP_IP) / 1e6,
        );
        let share = 100.0 * missing as f64 / sent as f64;
        println!("{name:<18} {hidden:>12.3} {heard:>12.3} {share:>12.1} %");
    }

    println!("\nOne sender at 10 m, one at 40 m (a sixteenth of the power), 802.11b");
    let captured = saturate(standard, &[(10.0, 0.0), (40.0, 0.0)], PACKET, SECONDS, 1);
    for (place, (delivered, stats)) in ["10 m", "40 m"]
        .iter()
        .zip(captured.delivered.iter().zip(&captured.stats))
    {
        println!(
            "{place}: {delivered} packets delivered, {} of {} ACKs missing",
            stats.ack_missing, stats.data_sent
        );
    }
    cost(standard);
}

fn row(name: &str, count: u32, model: f64, measured: f64) {
    let off = 100.0 * (measured / model - 1.0);
    println!(
        "{name:<18} {count:>7} {:>9.4} {:>9.4} {off:>+6.2} %",
        model / 1e6,
        measured / 1e6
    );
}

/// Measures the time for simulating a packet.
#[allow(clippy::disallowed_methods)] // a benchmark reads a clock; the simulation does not
fn cost(standard: WifiParameters) {
    println!("\nCost");
    for (name, parameters) in [
        ("802.11b", standard),
        ("rafiq2007", WifiParameters::rafiq2007()),
    ] {
        for n in [1, 2, 5, 10] {
            let start = std::time::Instant::now();
            let run = saturate(parameters, &CIRCLE[..n], PACKET, 300, 1);
            let spent = start.elapsed().as_nanos() as f64;
            let (packets, events) = (run.ledger.delivered as f64, run.events as f64);
            let (per_packet, per_event) = (spent / packets, spent / events);
            println!(
                "{name:<10} n = {n:<2}  {per_packet:>6.0} ns a packet, {:>5.1} events of {per_event:.0} ns",
                events / packets
            );
        }
    }
}

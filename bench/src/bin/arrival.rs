//! Receiver cost per byte sent by an attacker, depending on the arrival order of chunks with one
//! byte of user data.
//!
//! Usage: `arrival [ROUNDS]`, seven rounds by default. Instructions are counted if valgrind is
//! installed.
#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::env;
use std::error::Error;

use anabranch_bench::arrival::{Flood, ORDERS};
use anabranch_bench::{callgrind, median};
use cpu_time::ThreadTime;

/// Number of chunks in a timed run, and in a run under valgrind.
const CHUNKS: u32 = 60_000;
const COUNTED: u32 = 30_000;
/// Numbers of chunks per packet.
const BUNDLES: [usize; 2] = [70, 1];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.first().is_some_and(|it| it == "one") {
        return one(&arguments[1..]);
    }
    let rounds: usize = arguments.first().map_or(Ok(7), |text| text.parse())?;
    for bundle in BUNDLES {
        table(bundle, rounds)?;
    }
    Ok(())
}

/// Runs one order in this process. Arguments: order, chunks per packet, and number of packets that
/// are delivered; the remaining packets are only created.
fn one(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let numbers: Vec<usize> = arguments
        .iter()
        .map(|it| it.parse())
        .collect::<Result<_, _>>()?;
    let &[order, bundle, packets] = &numbers[..] else {
        return Err("one: ORDER BUNDLE PACKETS".into());
    };
    let mut flood = Flood::new(&(ORDERS[order].1)(COUNTED), bundle)?;
    flood.truncate(packets);
    flood.run()
}

fn table(bundle: usize, rounds: usize) -> Result<(), Box<dyn Error>> {
    println!("\n{bundle} chunks a packet\n");
    println!("| order | ns per byte | times in-order | instructions per byte | times in-order |");
    println!("|---|---|---|---|---|");
    let mut spent = vec![Vec::new(); ORDERS.len()];
    for _ in 0..rounds {
        for (of_one, (_, order)) in spent.iter_mut().zip(ORDERS) {
            let flood = Flood::new(&order(CHUNKS), bundle)?;
            let bytes = flood.bytes();
            let begin = ThreadTime::now();
            flood.run()?;
            of_one.push(begin.elapsed().as_secs_f64() * 1e9 / bytes as f64);
        }
    }
    let mut first = None;
    for (index, (name, _)) in ORDERS.iter().enumerate() {
        let time = median(spent[index].iter().copied());
        let count = instructions(index, bundle);
        let (of_time, of_count) = *first.get_or_insert((time, count));
        let shown = |value: Option<f64>| value.map_or("-".to_string(), |it| format!("{it:.1}"));
        let times = count.zip(of_count).map(|(it, first)| it / first);
        println!(
            "| {name} | {time:.1} | {:.1} | {} | {} |",
            time / of_time,
            shown(count),
            shown(times),
        );
    }
    Ok(())
}

/// Instructions per byte: the difference between a run and a run in which no packet is delivered.
fn instructions(order: usize, bundle: usize) -> Option<f64> {
    let flood = Flood::new(&(ORDERS[order].1)(COUNTED), bundle).ok()?;
    let words = |packets: usize| -> Vec<String> {
        let numbers = [order, bundle, packets].map(|number| number.to_string());
        std::iter::once("one".to_string()).chain(numbers).collect()
    };
    let count = callgrind::between_own(&words(0), &words(flood.packets())).ok()?;
    Some(count as f64 / flood.bytes() as f64)
}

//! SCTP stacks in memory: both ends on one thread, no sockets, nothing lost. Every contestant has each row's race once in
//! a round, one after the other, so that all meet the same machine; what counts is the thread's processor time.
//!
//! `memory [ROUNDS] [scaling]`: seven rounds unless told otherwise; with `scaling` only the rows of ours alone.
//! `memory instructions`: what a message of each row costs ours, counted by valgrind.
#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::env;
use std::error::Error;
use std::time::Duration;

use anabranch_bench::contest::dcsctp::DcSctp;
use anabranch_bench::contest::ours::Ours;
use anabranch_bench::contest::rtc_sctp::RtcSctp;
use anabranch_bench::contest::sctp_proto::SctpProto;
use anabranch_bench::contest::{Conditions, Score, crowd, race, work};
use anabranch_bench::{callgrind, median};

const SIZES: [usize; 4] = [100, 1024, 16 * 1024, 256 * 1024];
const WINDOW: usize = 1 << 20;
const WARM_UP: Duration = Duration::from_millis(40);
const LONG: Duration = Duration::from_millis(120);

type Race = fn(&Conditions, Duration, Duration) -> Result<Score, Box<dyn Error>>;

/// The first is ours, which the others are compared with; the checksum decides which of ours that is.
const CONTESTANTS: [(&str, bool, Race); 6] = [
    ("anabranch", true, race::<Ours<true>>),
    ("rtc-sctp", true, race::<RtcSctp>),
    ("dcsctp", true, race::<DcSctp<true>>),
    ("sctp-proto", true, race::<SctpProto>),
    ("anabranch, no CRC", false, race::<Ours<false>>),
    ("dcsctp, no CRC", false, race::<DcSctp<false>>),
];

/// Packet sizes, and datagrams taken in at a time.
const WIRES: [(usize, usize); 3] = [(1200, 1), (1472, 1), (1200, 32)];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("instructions") => return instructions(),
        Some("work") => return fixed(&arguments[1..]),
        _ => {}
    }
    let rounds: usize = arguments.first().map_or(Ok(7), |text| text.parse())?;
    let wanted = arguments.get(1).map_or("", String::as_str);
    println!("processor time, both ends on one thread, median of {rounds} alternating rounds");
    if wanted != "scaling" {
        beside_others(rounds)?;
    }
    scaling(rounds)
}

/// Message, packet, batch, streams: so many messages of ours.
fn fixed(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let numbers: Vec<usize> = arguments
        .iter()
        .map(|it| it.parse())
        .collect::<Result<_, _>>()?;
    let &[message, packet, batch, streams, messages] = &numbers[..] else {
        return Err("work: MESSAGE PACKET BATCH STREAMS MESSAGES".into());
    };
    let conditions = Conditions {
        message,
        packet,
        window: WINDOW,
        streams: u16::try_from(streams)?,
        batch,
    };
    let score = work::<Ours<true>>(&conditions, messages as u64)?;
    println!("{} messages, {} packets", score.messages, score.packets);
    Ok(())
}

/// Instructions a message, both ends with CRC32c, by the difference of two runs.
fn instructions() -> Result<(), Box<dyn Error>> {
    println!("packet batch streams message instructions-a-message");
    for (packet, batch) in WIRES {
        for message in SIZES {
            instructions_of(message, packet, batch, 1)?;
        }
    }
    for streams in [10, 1_000, 65_535] {
        instructions_of(SIZES[0], 1200, 1, streams)?;
    }
    Ok(())
}

fn instructions_of(
    message: usize,
    packet: usize,
    batch: usize,
    streams: usize,
) -> Result<(), Box<dyn Error>> {
    let arguments = |messages: usize| -> Vec<String> {
        let numbers = [message, packet, batch, streams, messages];
        let words = numbers.map(|number| number.to_string());
        std::iter::once("work".to_string()).chain(words).collect()
    };
    // Beyond slow start, and then as much again.
    let few = ((8 << 20) / message).clamp(60, 20_000);
    let count = callgrind::between(&arguments(few), &arguments(3 * few))?;
    let each = count as f64 / (2 * few) as f64;
    println!("{packet} {batch} {streams} {message} {each:.0}");
    Ok(())
}

fn beside_others(rounds: usize) -> Result<(), Box<dyn Error>> {
    for (packet, batch) in WIRES {
        println!("\npackets of at most {packet} bytes, {batch} at a time, window {WINDOW}");
        println!(
            "{:>8} {:<18} {:>10} {:>12} {:>19} {:>12} {:>7}",
            "message", "stack", "MB/s", "messages/s", "least - most", "ns a packet", "ours"
        );
        for message in SIZES {
            let conditions = Conditions {
                message,
                packet,
                window: WINDOW,
                streams: 1,
                batch,
            };
            row(&conditions, rounds)?;
        }
    }
    Ok(())
}

fn row(conditions: &Conditions, rounds: usize) -> Result<(), Box<dyn Error>> {
    let mut scores: [Vec<Score>; CONTESTANTS.len()] = Default::default();
    for _ in 0..rounds {
        for (of_one, (name, _, race)) in scores.iter_mut().zip(CONTESTANTS) {
            let score = race(conditions, WARM_UP, LONG);
            of_one.push(score.map_err(|error| format!("{name}: {error}"))?);
        }
    }
    for (index, (name, checksum, _)) in CONTESTANTS.into_iter().enumerate() {
        let ours = CONTESTANTS
            .iter()
            .position(|(_, its, _)| *its == checksum)
            .map_or(0, |at| at);
        let rates = |at: usize| scores[at].iter().map(Score::messages_per_second);
        let ratios = rates(ours).zip(rates(index)).map(|(o, t)| o / t);
        println!(
            "{:>8} {:<18} {:>10.1} {:>12.0} {:>19} {:>12.0} {:>7.2}",
            conditions.message,
            name,
            median(scores[index].iter().map(Score::megabytes_per_second)),
            median(rates(index)),
            span(rates(index)),
            median(scores[index].iter().map(Score::ns_per_packet)),
            median(ratios),
        );
    }
    Ok(())
}

/// Ours alone, messages of 100 bytes: what a message costs must not depend on how many of anything there are.
fn scaling(rounds: usize) -> Result<(), Box<dyn Error>> {
    let usual = Conditions {
        message: 100,
        packet: 1200,
        window: WINDOW,
        streams: 1,
        batch: 1,
    };
    println!("\nanabranch alone, messages of {} bytes", usual.message);
    println!(
        "{:<20} {:>8} {:>12} {:>12} {:>19} {:>12}",
        "what grows", "to", "outstanding", "messages/s", "least - most", "ns a packet"
    );
    scaling_rows("window, KiB", &[16, 64, 256, 1024, 4096], rounds, |kib| {
        let window = kib * 1024;
        race::<Ours<true>>(&Conditions { window, ..usual }, WARM_UP, LONG)
    })?;
    let streams = [1, 10, 100, 1_000, 10_000, 65_535];
    scaling_rows("streams", &streams, rounds, |streams| {
        let streams = u16::try_from(streams)?;
        race::<Ours<true>>(&Conditions { streams, ..usual }, WARM_UP, LONG)
    })?;
    associations(&usual, rounds)
}

/// The same by the number of associations; beside it what their memory alone costs, once it is more than the caches hold.
fn associations(usual: &Conditions, rounds: usize) -> Result<(), Box<dyn Error>> {
    const MANY: [usize; 5] = [1, 10, 100, 1_000, 10_000];
    let mut scores = vec![Vec::new(); MANY.len()];
    let mut floors = vec![Vec::new(); MANY.len()];
    for _ in 0..rounds {
        for (at, &many) in MANY.iter().enumerate() {
            scores[at].push(crowd::race(usual, many, WARM_UP, LONG)?);
            floors[at].push(crowd::floor(many, WARM_UP) * 1e9);
        }
    }
    println!(
        "\n{:>12} {:>12} {:>12} {:>19} {:>12} {:>12} {:>12} {:>9} {:>13}",
        "associations",
        "at a time",
        "messages/s",
        "least - most",
        "ns a packet",
        "ns a message",
        "of it memory",
        "by first",
        "memory aside"
    );
    let per_message = |at: usize| {
        scores[at]
            .iter()
            .map(|score: &Score| 1e9 / score.messages_per_second())
    };
    let by_first = |own: &dyn Fn(usize, usize) -> f64, at: usize| {
        median((0..rounds).map(|round| own(at, round) / own(0, round)))
    };
    let whole = |at: usize, round: usize| 1e9 / scores[at][round].messages_per_second();
    let aside = |at: usize, round: usize| whole(at, round) - floors[at][round];
    for (at, many) in MANY.into_iter().enumerate() {
        let rates = || scores[at].iter().map(Score::messages_per_second);
        println!(
            "{many:>12} {:>12.0} {:>12.0} {:>19} {:>12.0} {:>12.0} {:>12.0} {:>9.2} {:>13.2}",
            median(scores[at].iter().map(|score| score.outstanding as f64)),
            median(rates()),
            span(rates()),
            median(scores[at].iter().map(Score::ns_per_packet)),
            median(per_message(at)),
            median(floors[at].iter().copied()),
            by_first(&whole, at),
            by_first(&aside, at),
        );
    }
    Ok(())
}

fn scaling_rows(
    what: &str,
    numbers: &[usize],
    rounds: usize,
    race: impl Fn(usize) -> Result<Score, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut scores = vec![Vec::new(); numbers.len()];
    for _ in 0..rounds {
        for (of_one, &number) in scores.iter_mut().zip(numbers) {
            of_one.push(race(number)?);
        }
    }
    for (number, of_one) in numbers.iter().zip(&scores) {
        let rates = || of_one.iter().map(Score::messages_per_second);
        println!(
            "{what:<20} {number:>8} {:>12.0} {:>12.0} {:>19} {:>12.0}",
            median(of_one.iter().map(|score| score.outstanding as f64)),
            median(rates()),
            span(rates()),
            median(of_one.iter().map(Score::ns_per_packet)),
        );
    }
    Ok(())
}

/// The least and the most.
fn span(rates: impl Iterator<Item = f64>) -> String {
    let (least, most) = rates.fold((f64::MAX, 0.0_f64), |(l, m), r| (l.min(r), m.max(r)));
    format!("{least:.0} - {most:.0}")
}

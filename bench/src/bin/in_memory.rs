//! SCTP stacks in memory: both ends on one thread, without sockets and loss. In each round, every
//! stack runs each row once, one after the other, because all should run under the same conditions.
//! The result is the processor time of the thread. In addition, valgrind counts instructions,
//! because these do not depend on the load of the machine.
//!
//! - `in_memory [ROUNDS] [--write]`: seven rounds by default. `--write` updates the tables in
//!   `bench/README.md`, and the results in `bench/scoreboard.json`.
//! - `in_memory [ROUNDS] scaling`: only this stack, by window, number of streams, and number of
//!   associations.
//! - `in_memory instructions [--write]`: instructions of this stack per byte, for each row.
//!   `--write` records them in `bench/scoreboard.json`, next to the limits that were counted last.
#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::error::Error;
use std::time::Duration;

use anabranch_bench::harness::dcsctp::DcSctp;
use anabranch_bench::harness::dcsctp_silent::DcSctp as Silent;
use anabranch_bench::harness::ours::Ours;
use anabranch_bench::harness::rtc_sctp::RtcSctp;
use anabranch_bench::harness::sctp_proto::SctpProto;
use anabranch_bench::harness::{Conditions, Score, crowd, limit, race, work};
use anabranch_bench::page::{self, Page};
use anabranch_bench::scoreboard::{self, BenchResult};
use anabranch_bench::{callgrind, median};

const SIZES: [usize; 4] = [100, 1024, 16 * 1024, 256 * 1024];
const WINDOW: usize = 1 << 20;
const WARM_UP: Duration = Duration::from_millis(40);
const DURATION: Duration = Duration::from_millis(120);

type Race = fn(&Conditions, Duration, Duration) -> Result<Score, Box<dyn Error>>;
type Work = fn(&Conditions, u64) -> Result<Score, Box<dyn Error>>;

struct Contestant {
    name: &'static str,
    /// Whether CRC32c is computed. Ratios are relative to this stack with the same value.
    checksum: bool,
    race: Race,
    work: Work,
    /// Bytes of user data in the shorter of the runs whose instructions are counted, beyond slow
    /// start; 0: not counted.
    counted: usize,
}

const fn contestant(
    name: &'static str,
    checksum: bool,
    race: Race,
    work: Work,
    counted: usize,
) -> Contestant {
    Contestant {
        name,
        checksum,
        race,
        work,
        counted,
    }
}

const OURS: &str = "anabranch";
const LIMIT: &str = "limit";
/// Values of `counted`: stacks that are a hundred times slower are not counted.
const FAST: usize = 4 << 20;
const SLOW: usize = 0;

/// `limit` is not a stack, but a lower bound: see [`limit`].
const CONTESTANTS: [Contestant; 8] = [
    contestant(OURS, true, race::<Ours<true>>, work::<Ours<true>>, FAST),
    contestant("rtc-sctp", true, race::<RtcSctp>, work::<RtcSctp>, FAST),
    contestant(
        "dcsctp",
        true,
        race::<DcSctp<true>>,
        work::<DcSctp<true>>,
        SLOW,
    ),
    contestant(
        "dcsctp, no log",
        true,
        race::<Silent<true>>,
        work::<Silent<true>>,
        FAST,
    ),
    contestant(
        "sctp-proto",
        true,
        race::<SctpProto>,
        work::<SctpProto>,
        SLOW,
    ),
    contestant(LIMIT, true, limit::race, limit::work, FAST),
    contestant(
        "anabranch, no CRC",
        false,
        race::<Ours<false>>,
        work::<Ours<false>>,
        FAST,
    ),
    contestant(
        "dcsctp, no log, no CRC",
        false,
        race::<Silent<false>>,
        work::<Silent<false>>,
        FAST,
    ),
];

/// Packet sizes in bytes, each with the number of datagrams that an end receives before it is
/// polled.
const WIRES: [(usize, usize); 3] = [(1200, 1), (1200, 64), (1472, 1)];

/// Instructions of this stack per payload byte at commit 3763e40, by message size and number of
/// datagrams, with packets of 1200 bytes.
const BEFORE: [(usize, usize, f64); 6] = [
    (100, 1, 27.3),
    (1024, 1, 8.51),
    (1024, 64, 6.67),
    (16 * 1024, 1, 7.05),
    (16 * 1024, 64, 5.52),
    (256 * 1024, 64, 5.32),
];

fn main() -> Result<(), Box<dyn Error>> {
    let (arguments, write) = page::arguments();
    match arguments.first().map(String::as_str) {
        Some("instructions") => return instructions(write),
        Some("work") => return fixed(&arguments[1..]),
        _ => {}
    }
    let rounds: usize = arguments.first().map_or(Ok(7), |text| text.parse())?;
    match arguments.get(1).map(String::as_str) {
        None => beside_others(rounds, write),
        Some("scaling") => scaling(rounds),
        Some(other) => Err(format!("found {other}; only `scaling` may follow ROUNDS").into()),
    }
}

/// Runs one stack with a fixed number of messages. Arguments: stack, message size, packet size,
/// batch, streams, and number of messages.
fn fixed(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [name, numbers @ ..] = arguments else {
        return Err("work: STACK MESSAGE PACKET BATCH STREAMS MESSAGES".into());
    };
    let numbers: Vec<usize> = numbers
        .iter()
        .map(|it| it.parse())
        .collect::<Result<_, _>>()?;
    let &[message, packet, batch, streams, messages] = &numbers[..] else {
        return Err("work: STACK MESSAGE PACKET BATCH STREAMS MESSAGES".into());
    };
    let named = CONTESTANTS.iter().find(|it| it.name == name);
    let conditions = Conditions {
        message,
        packet,
        window: WINDOW,
        streams: u16::try_from(streams)?,
        batch,
    };
    let work = named.ok_or("no such contestant")?.work;
    let score = work(&conditions, messages as u64)?;
    println!("{} messages, {} packets", score.messages, score.packets);
    Ok(())
}

/// Counts instructions of this stack per byte of user data.
fn instructions(write: bool) -> Result<(), Box<dyn Error>> {
    println!("packet batch streams message instructions-a-byte");
    let known = scoreboard::figures()?;
    let mut fresh = Vec::new();
    let mut of = |message, packet, batch, streams| -> Result<(), Box<dyn Error>> {
        let each = count(&CONTESTANTS[0], message, packet, batch, streams)?;
        println!("{packet} {batch} {streams} {message} {each:.2}");
        let what = figure_of(message, batch);
        if (packet, streams) == (1200, 1)
            && let Some(before) = known.get(&what)
        {
            let now = each;
            fresh.push((
                what,
                BenchResult {
                    now,
                    ..before.clone()
                },
            ));
        }
        Ok(())
    };
    for (packet, batch) in WIRES {
        for message in SIZES {
            of(message, packet, batch, 1)?;
        }
    }
    for streams in [10, 1_000, 65_535] {
        of(SIZES[0], 1200, 1, streams)?;
    }
    if write {
        scoreboard::note(fresh)?;
    }
    Ok(())
}

/// Name in the scoreboard of the cost per byte.
fn figure_of(message: usize, batch: usize) -> String {
    format!("core, {message} B, {batch} at a time")
}

/// Instructions per byte of user data at both ends, from the difference between two runs.
fn count(
    who: &Contestant,
    message: usize,
    packet: usize,
    batch: usize,
    streams: usize,
) -> Result<f64, Box<dyn Error>> {
    let arguments = |messages: usize| -> Vec<String> {
        let numbers = [message, packet, batch, streams, messages];
        let words = numbers.map(|number| number.to_string());
        let begin = ["work", who.name].map(str::to_string);
        begin.into_iter().chain(words).collect()
    };
    // The shorter run ends after slow start; the longer one has three times as many messages.
    let few = (who.counted / message).clamp(16, 20_000);
    let more = callgrind::between_own(&arguments(few), &arguments(3 * few))?;
    Ok(more as f64 / (2 * few * message) as f64)
}

fn beside_others(rounds: usize, write: bool) -> Result<(), Box<dyn Error>> {
    let mut page = Page::open("in_memory", write)?;
    page.line(&format!("Median of {rounds} rounds."));
    let mut figures = Vec::new();
    for (packet, batch) in WIRES {
        page.line(&format!(
            "\nPackets of at most {packet} bytes, messages sent {batch} at a time:\n"
        ));
        page.line(
            "| message | stack | MB/s | messages/s | least - most | ns a packet | instructions a byte | ours by it | |",
        );
        page.line("|---|---|---|---|---|---|---|---|---|");
        for message in SIZES {
            let conditions = Conditions {
                message,
                packet,
                window: WINDOW,
                streams: 1,
                batch,
            };
            row(&conditions, rounds, &mut page, &mut figures)?;
        }
    }
    page.close()?;
    if write {
        scoreboard::note(figures)?;
    }
    Ok(())
}

fn row(
    conditions: &Conditions,
    rounds: usize,
    page: &mut Page,
    figures: &mut Vec<(String, BenchResult)>,
) -> Result<(), Box<dyn Error>> {
    let Conditions {
        message,
        packet,
        batch,
        ..
    } = *conditions;
    let mut scores: [Vec<Score>; CONTESTANTS.len()] = Default::default();
    for _ in 0..rounds {
        for (of_one, who) in scores.iter_mut().zip(&CONTESTANTS) {
            let score = (who.race)(conditions, WARM_UP, DURATION);
            of_one.push(score.map_err(|error| format!("{}: {error}", who.name))?);
        }
    }
    let mut counts = Vec::new();
    for (index, who) in CONTESTANTS.iter().enumerate() {
        let same = |it: &Contestant| it.checksum == who.checksum;
        let ours = CONTESTANTS.iter().position(same).unwrap_or(0);
        let rates = |at: usize| scores[at].iter().map(Score::messages_per_second);
        let ratio = median(rates(ours).zip(rates(index)).map(|(o, t)| o / t));
        let counted = (who.counted > 0).then(|| count(who, message, packet, batch, 1));
        let each = counted.transpose()?;
        counts.push(each.unwrap_or(f64::NAN));
        page.line(&format!(
            "| {message} | {} | {:.1} | {:.0} | {} | {:.0} | {} | {ratio:.2} | {} |",
            who.name,
            median(scores[index].iter().map(Score::megabytes_per_second)),
            median(rates(index)),
            span(rates(index)),
            median(scores[index].iter().map(Score::ns_per_packet)),
            each.map_or("-".to_string(), |each| format!("{each:.2}")),
            if ratio < 1.0 && who.name != LIMIT {
                "**ahead of ours**"
            } else {
                ""
            },
        ));
        if packet == 1200 && who.name == "rtc-sctp" {
            let what = format!("core, {message} B, {batch} at a time, rate by rtc-sctp's");
            figures.push((what, BenchResult::ratio(ratio, None, 2.0)));
        }
    }
    let limit = CONTESTANTS.iter().position(|it| it.name == LIMIT);
    let before = BEFORE.iter().find(|it| (it.0, it.1) == (message, batch));
    if let (Some(limit), Some(&(.., before)), 1200) = (limit, before, packet) {
        let what = figure_of(message, batch);
        let figure = BenchResult::instructions(counts[0], Some(before), counts[limit]);
        figures.push((what, figure));
    }
    Ok(())
}

/// Runs only this stack, with messages of 100 bytes. The cost of a message should not depend on the
/// window or on the numbers of streams and associations.
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
        race::<Ours<true>>(&Conditions { window, ..usual }, WARM_UP, DURATION)
    })?;
    let streams = [1, 10, 100, 1_000, 10_000, 65_535];
    scaling_rows("streams", &streams, rounds, |streams| {
        let streams = u16::try_from(streams)?;
        race::<Ours<true>>(&Conditions { streams, ..usual }, WARM_UP, DURATION)
    })?;
    associations(&usual, rounds)
}

/// Cost of a message by number of associations, compared with the cost of only accessing their
/// memory, which matters once it exceeds the caches.
fn associations(usual: &Conditions, rounds: usize) -> Result<(), Box<dyn Error>> {
    const ASSOCIATION_COUNTS: [usize; 5] = [1, 10, 100, 1_000, 10_000];
    let mut scores = vec![Vec::new(); ASSOCIATION_COUNTS.len()];
    let mut floors = vec![Vec::new(); ASSOCIATION_COUNTS.len()];
    for _ in 0..rounds {
        for (at, &many) in ASSOCIATION_COUNTS.iter().enumerate() {
            scores[at].push(crowd::race(usual, many, WARM_UP, DURATION)?);
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
    for (at, many) in ASSOCIATION_COUNTS.into_iter().enumerate() {
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

/// Minimum and maximum, as text.
fn span(rates: impl Iterator<Item = f64>) -> String {
    let (least, most) = rates.fold((f64::MAX, 0.0_f64), |(l, m), r| (l.min(r), m.max(r)));
    format!("{least:.0} - {most:.0}")
}

//! Debian's `iperf3 --sctp` with this stack and with the Linux kernel, alternating in each round in
//! a User Mode Linux over its loopback interface. In addition, this stack is measured outside of
//! the guest, because system calls are more expensive inside.
//!
//! Usage: `iperf [ROUNDS] [--write]`, 5 rounds by default. `--write` updates the table in
//! `bench/README.md`. Requires root (network namespace), the packages installed by `scripts/setup`,
//! and the command and the C library in the directory of this program (`cargo build --profile fair
//! -p anabranch-cli -p anabranch-capi`). The variable `ANABRANCH_FOLDER` can name another directory
//! for them.
#![allow(clippy::disallowed_methods, reason = "a bench has a clock")]

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anabranch_bench::page::{self, Page};
use anabranch_interop::namespace::{self, Family, GUEST};
use anabranch_interop::peer::Peer;
use anabranch_interop::programs::Programs;

/// Duration of an iperf3 test, seconds.
const SECONDS: u32 = 2;
/// Message sizes, bytes.
const SIZES: [u32; 3] = [1024, 16 * 1024, 64 * 1024];
/// Additional iperf3 options for each number of streams. Version 3.12 needs `-b 0`, because it
/// otherwise stops after one message if the number of streams is given.
const STREAMS: [(&str, &str); 2] = [("1", ""), ("8", "--nstreams 8 -b 0")];
/// Options for each direction, by the sender.
const DIRECTIONS: [(&str, &str); 2] = [("client", ""), ("server", "-R")];
/// Stacks, in the order of the columns of the table.
const STACKS: [&str; 4] = ["kernel-ip", "kernel-udp", "ours", "outside"];

/// Shell functions that run iperf3 at both ends. The client retries until the server listens; the
/// server ends after one test.
const RUNS: &str = r#"
    one() { # STACK ROUND SIZE STREAMS SENDER OPTIONS...
        local stack=$1 name="$1 $2 $3 $4 $5" size=$3 said=; shift 5
        local server= client= port=$((5300 + ++count))
        case $stack in
            kernel-ip) echo 0 >/proc/sys/net/sctp/udp_port; echo 0 >/proc/sys/net/sctp/encap_port; ip link set lo gso_max_size 65536;;
            # The kernel's segments of several packets do not pass inside UDP, and it waits for a timeout after each.
            kernel-udp) ip link set lo gso_max_size 1500; echo 9898 >/proc/sys/net/sctp/encap_port; echo 9898 >/proc/sys/net/sctp/udp_port;;
            *) server="$FOLDER/anabranch wrap --" client="$FOLDER/anabranch wrap --udp-port=0 --";;
        esac
        $server iperf3 -s -1 -p $port >/dev/null 2>&1 &
        for try in $(seq 100); do
            said=$($client iperf3 -c 127.0.0.1 -p $port --sctp -l $size -t $SECONDS_EACH -i 0 -J "$@" </dev/null 2>&1 | tr -d '\n\t')
            [[ $said == *'unable to connect'* ]] || break
            sleep 0.1
        done
        wait
        echo "run $name $said"
    }
    calls() { # What a system call costs, nanoseconds: half of what a byte costs dd.
        local from=$(date +%s%N)
        dd if=/dev/zero of=/dev/null bs=1 count=4000 status=none
        echo "call $1 $((($(date +%s%N) - from) / 8000))"
    }
"#;

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("iperf: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Rates of the rounds in bit/s, by stack, message size, streams and sender.
type Rates = BTreeMap<(String, u32, String, String), Vec<f64>>;
/// Duration of a system call by environment, nanoseconds.
type Calls = BTreeMap<String, Vec<f64>>;

fn measure() -> Result<(), Box<dyn Error>> {
    let (arguments, write) = page::arguments();
    let rounds = arguments.first().map_or(Ok(5), |it| it.parse::<u32>())?;
    namespace::allowed()?;
    let folder = folder()?;
    let scratch = tempfile::tempdir()?;
    let programs = Programs::new(&scratch.path().to_string_lossy(), "", "");
    let mut said = Vec::new();
    for round in 0..rounds.max(1) {
        let inside = inside(round, &folder, scratch.path(), &programs)?;
        said.extend(inside);
        said.extend(outside(round, &folder)?);
        eprintln!("round {} of {rounds}", round + 1);
    }
    let (rates, calls) = read(&said)?;
    let mut page = Page::open("iperf", write)?;
    print(&mut page, &rates, &calls, rounds);
    page.close()
}

/// Directory with the command and the library.
fn folder() -> Result<PathBuf, Box<dyn Error>> {
    let folder = match env::var_os("ANABRANCH_FOLDER") {
        Some(folder) => PathBuf::from(folder),
        None => env::current_exe()?
            .parent()
            .map(Path::to_owned)
            .unwrap_or_default(),
    };
    for name in ["anabranch", "libanabranch_preload.so"] {
        if !folder.join(name).is_file() {
            return Err(format!(
                "there is no {name} in {}; build it: cargo build --profile fair -p anabranch-cli -p anabranch-capi",
                folder.display()
            )
            .into());
        }
    }
    Ok(fs::canonicalize(folder)?)
}

/// Shell commands of a round for these stacks, in this order.
fn script(round: u32, folder: &Path, stacks: &[&str], place: &str) -> String {
    let mut out = format!(
        "FOLDER={}; SECONDS_EACH={SECONDS}; count=0\nexport ANABRANCH_PRELOAD=$FOLDER/libanabranch_preload.so\n{RUNS}\ncalls {place}\n",
        folder.display()
    );
    for size in SIZES {
        for (streams, with) in STREAMS {
            for (sender, reverse) in DIRECTIONS {
                for stack in stacks {
                    out += &format!(
                        "one {stack} {round} {size} {streams} {sender} {with} {reverse}\n"
                    );
                }
            }
        }
    }
    out
}

/// Runs a round in a new guest.
fn inside(
    round: u32,
    folder: &Path,
    scratch: &Path,
    programs: &Programs,
) -> Result<Vec<String>, String> {
    let path = scratch.join("guest.sh");
    let (guests, _) = STACKS.split_at(STACKS.len() - 1);
    let head = "ip link set lo mtu 1500\n";
    let text = format!("{head}{}", script(round, folder, guests, "inside"));
    fs::write(&path, text).map_err(|error| error.to_string())?;
    let runs = guests.len() * SIZES.len() * STREAMS.len() * DIRECTIONS.len();
    let until = Instant::now() + Duration::from_secs(60 + 12 * runs as u64);
    let run = || {
        namespace::tap(0, Family::V4)?;
        let own: IpAddr = namespace::address(Family::V4, 0, GUEST);
        let mut guest = Peer::script(&path, own, None, programs)?;
        let ended = guest.wait("ended", until)?;
        match ended.as_str() {
            "ended 0" => Ok(guest.said().to_vec()),
            _ => Err(guest.to_string()),
        }
    };
    namespace::inside(run)
}

/// Runs a round with only this stack, in a separate network namespace.
fn outside(round: u32, folder: &Path) -> Result<Vec<String>, String> {
    let text = script(round, folder, &STACKS[STACKS.len() - 1..], "outside");
    let run = || {
        let mut bash = Command::new("bash");
        let output = bash.args(["-c", &text]).output();
        let output = output.map_err(|error| format!("bash: {error}"))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(said.lines().map(str::to_owned).collect())
    };
    namespace::inside(run)
}

/// Parses the output: rates of all runs, and durations of system calls inside and outside of the
/// guest, nanoseconds.
fn read(said: &[String]) -> Result<(Rates, Calls), Box<dyn Error>> {
    let (mut rates, mut calls) = (Rates::new(), Calls::new());
    for line in said {
        if let Some(rest) = line.strip_prefix("call ") {
            let (place, cost) = rest.split_once(' ').ok_or("no cost")?;
            calls
                .entry(place.to_owned())
                .or_default()
                .push(cost.parse::<f64>()?);
        }
        let Some(rest) = line.strip_prefix("run ") else {
            continue;
        };
        let mut parts = rest.splitn(6, ' ');
        let mut next = || parts.next().unwrap_or_default().to_owned();
        let (stack, _, size, streams, sender, json) =
            (next(), next(), next(), next(), next(), next());
        let begin = json.find('{').unwrap_or(json.len());
        let report: serde_json::Value = serde_json::from_str(&json[begin..])
            .map_err(|error| format!("{stack} {size}: {error}: {json}"))?;
        let rate = report["end"]["sum_received"]["bits_per_second"].as_f64();
        let rate = rate.ok_or_else(|| format!("{stack} {size}: {}", report["error"]))?;
        let row = (stack, size.parse()?, streams, sender);
        rates.entry(row).or_default().push(rate);
    }
    Ok((rates, calls))
}

/// Mean, minimum and maximum, as text.
fn spread(all: &[f64], unit: f64) -> String {
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(0.0, f64::max);
    format!(
        "{:.0} ({:.0} to {:.0})",
        mean / unit,
        least / unit,
        most / unit
    )
}

fn print(page: &mut Page, rates: &Rates, calls: &Calls, rounds: u32) {
    let cost = |place: &str| spread(calls.get(place).map_or(&[][..], |it| it), 1.0);
    page.line(&format!(
        "Mean of {rounds} rounds of {SECONDS} s, with the least and greatest in parentheses. A system call of `dd` takes {} ns in the guest and {} ns outside.",
        cost("inside"),
        cost("outside")
    ));
    page.line("");
    page.line("| message | streams | sender | kernel over IP, Mbit/s | kernel inside UDP | ours inside UDP | ours by the kernel inside UDP | ours outside the guest |");
    page.line("|---|---|---|---|---|---|---|---|");
    for size in SIZES {
        for (streams, _) in STREAMS {
            for (sender, _) in DIRECTIONS {
                let of = |stack: &str| {
                    let row = (
                        stack.to_owned(),
                        size,
                        streams.to_owned(),
                        sender.to_owned(),
                    );
                    rates.get(&row).map_or(&[][..], |it| it)
                };
                let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len().max(1) as f64;
                let ratio = mean(of("ours")) / mean(of("kernel-udp"));
                let cells: Vec<_> = STACKS.iter().map(|it| spread(of(it), 1e6)).collect();
                page.line(&format!(
                    "| {size} | {streams} | {sender} | {} | {} | {} | {ratio:.2} | {} |",
                    cells[0], cells[1], cells[2], cells[3]
                ));
            }
        }
    }
}

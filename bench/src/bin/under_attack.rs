//! Throughput of a normal client while a server is attacked, and memory of the server.
//!
//! Usage: `under_attack [ROUNDS] [PROGRAM] [ATTACK...]`. By default there are 3 rounds with all
//! attacks, and PROGRAM is the `anabranch` in the directory of this program; an attack is selected
//! by words of its name. Each round starts a server for every attack, and `perf` sends to it for 3
//! s: before the attack, and again 6 s after the start of the attack. An attack at full speed
//! occupies a processor, which on a small machine slows down any server. Therefore `perf` also
//! sends while the same packets go to a socket without a reader. Only the loopback interface is
//! used.
#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anabranch_bench::attack::Attack;
use serde_json::Value;

/// SCTP port of the server.
const PORT: u16 = 5_911;
/// Duration of an attack before the second transfer of the normal client starts.
const UNFOLDING: Duration = Duration::from_secs(6);

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("under_attack: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let program = match arguments.next() {
        Some(path) => PathBuf::from(path),
        None => std::env::current_exe()?.with_file_name("anabranch"),
    };
    let wanted: Vec<String> = arguments.collect();
    println!(
        "{} on loopback, median of {rounds} rounds; Mbit/s, MiB",
        program.display()
    );
    println!(
        "{:<30} {:>8} {:>8} {:>8} {:>8} {:>10} {:>10} {:>8}",
        "attack", "attacker", "before", "beside", "under", "of before", "of beside", "peak RSS"
    );
    let is_wanted = |attack: &Attack| {
        wanted.is_empty() || wanted.iter().any(|word| attack.name().contains(word))
    };
    for attack in Attack::ALL.into_iter().filter(is_wanted) {
        let mut results = Vec::new();
        for _ in 0..rounds.max(1) {
            results.push(round(&program, attack)?);
        }
        let median = |of: fn(&Round) -> f64| {
            let mut values: Vec<f64> = results.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let (mut beside, mut of_beside) = ("-".to_owned(), "-".to_owned());
        if attack.takes_a_processor() {
            beside = format!("{:.0}", median(|it| it.beside.unwrap_or(f64::NAN)) / 1e6);
            of_beside = format!(
                "{:.2}",
                median(|it| it.under / it.beside.unwrap_or(f64::NAN))
            );
        }
        println!(
            "{:<30} {:>8.1} {:>8.0} {:>8} {:>8.0} {:>10.2} {:>10} {:>8.0}",
            attack.name(),
            median(|it| it.attacker) / 1e6,
            median(|it| it.before) / 1e6,
            beside,
            median(|it| it.under) / 1e6,
            median(|it| it.under / it.before),
            of_beside,
            median(|it| it.peak_mib)
        );
    }
    Ok(())
}

/// Results of one round: rates in bit/s, and memory in MiB.
struct Round {
    attacker: f64,
    before: f64,
    /// Rate while an attacker sends at full speed to a socket without a reader; `None` for other
    /// attacks.
    beside: Option<f64>,
    under: f64,
    peak_mib: f64,
}

/// A server process, which is killed when this is dropped.
struct Server {
    child: Child,
    udp_port: u16,
}

impl Server {
    fn start(program: &Path) -> Result<Self, Box<dyn Error>> {
        let port = PORT.to_string();
        let mut child = Command::new(program)
            .args(["serve", "sink", "--udp-port", "0", "-p", &port])
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().ok_or("no output")?;
        let mut output = BufReader::new(output);
        let mut first = String::new();
        output.read_line(&mut first)?;
        // The output is read by a thread, because the server would block when the pipe is full.
        thread::spawn(move || output.lines().count());
        let digits = first.split("UDP port ").nth(1).unwrap_or_default();
        let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
        let udp_port = digits
            .parse()
            .map_err(|_| format!("no port in {first:?}"))?;
        Ok(Self { child, udp_port })
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.udp_port))
    }

    /// Maximum resident memory of the server, MiB.
    fn peak_mib(&self) -> Result<f64, Box<dyn Error>> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        Ok(kib.ok_or("no VmHWM")?.trim().parse::<f64>()? / 1_024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn round(program: &Path, attack: Attack) -> Result<Round, Box<dyn Error>> {
    let server = Server::start(program)?;
    let before = client(program, server.udp_port)?;
    let unread = UdpSocket::bind("127.0.0.1:0")?;
    let beside = if attack.takes_a_processor() {
        Some(under(program, &server, attack, unread.local_addr()?)?.0)
    } else {
        None
    };
    let (under, attacker) = under(program, &server, attack, server.address())?;
    Ok(Round {
        attacker,
        before,
        beside,
        under,
        peak_mib: server.peak_mib()?,
    })
}

/// Rates of the client and of the attacker while the attack is directed at `aim`.
fn under(
    program: &Path,
    server: &Server,
    attack: Attack,
    aim: SocketAddr,
) -> Result<(f64, f64), Box<dyn Error>> {
    let over = AtomicBool::new(false);
    let begin = std::time::Instant::now();
    thread::scope(|scope| {
        let attacking = scope.spawn(|| {
            let sent = attack.run(server.address(), PORT, aim, &over);
            (sent, begin.elapsed().as_secs_f64())
        });
        thread::sleep(UNFOLDING);
        let under = client(program, server.udp_port);
        over.store(true, Ordering::Relaxed);
        let (sent, seconds) = attacking.join().map_err(|_| "the attacker panicked")?;
        Ok((under?, sent? as f64 * 8.0 / seconds))
    })
}

/// User data of a normal client that was acknowledged during 3 s, as a rate in bit/s; 0 if it
/// cannot connect.
fn client(program: &Path, udp_port: u16) -> Result<f64, Box<dyn Error>> {
    // The timeout is for versions that hang if the server is stopped.
    let output = Command::new("timeout")
        .arg("30")
        .arg(program)
        .args(["perf", "127.0.0.1", "-J", "-i", "0", "-t", "3"])
        .args(["-p", &PORT.to_string()])
        .args(["--peer-udp-port", &udp_port.to_string()])
        .output()?;
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let rate = &document["end"]["sum_sent"]["bits_per_second"];
    Ok(rate.as_f64().unwrap_or(0.0))
}

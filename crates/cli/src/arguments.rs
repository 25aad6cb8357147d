//! The command line: commands, arguments and options.

use std::path::PathBuf;
use std::str::FromStr;

use anabranch_advise::parse::{rate, share};
use anabranch_lab::shard::ShardSpec;
use anabranch_orbit::{Date, Place};
use anabranch_scenario::quantity::{Capacity, Probability, Rate, Size, TimeSpan};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::net::arguments::NetCommand;
use crate::number;

/// Reproduces published comparisons of SCTP and TCP, runs experiments of your own, and speaks SCTP
/// on real sockets.
#[derive(Debug, Parser)]
#[command(
    name = "anabranch",
    version = crate::version::version(),
    after_help = "Examples:
  anabranch papers                         what can be reproduced
  anabranch reproduce alamgir2002 --quick  a first look, in about ten seconds
  anabranch reproduce alamgir2002          all runs of the paper
  anabranch show alamgir2002               its tables in the terminal
  anabranch run my.toml                    an experiment of your own
  anabranch explore my.toml                its values as sliders in the browser
  anabranch advise --rtt 560ms --rate 10Mbit --loss 1%
                                           settings for a path
  anabranch serve sink                     a server on real sockets
  anabranch perf 127.0.0.1                 measure the throughput to it

Exit status: 0 done; 1 something failed (a full disk, a lost association); 2 the command line or the spec is wrong and \
nothing was run; 130 interrupted. The help of a command says more."
)]
pub struct Arguments {
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

// With `defer`, clap builds the arguments of a command only when that command is requested. It
// would then print a doc comment of the struct as the help of the command, so these structs have no
// doc comments.
/// Command to run.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum Command {
    /// List the papers that can be reproduced, with the location of each.
    #[command(
        after_help = "A paper is a folder with paper.toml and the CSV files that it names. Papers are found in ./papers, in \
$XDG_DATA_HOME/anabranch/papers or ~/.local/share/anabranch/papers, and in the program itself.
To add one, see docs/extending/paper.md."
    )]
    Papers,
    /// Run the experiments of a paper and compare the results with the printed values.
    #[command(after_help = "Examples:
  anabranch reproduce alamgir2002
  anabranch reproduce alamgir2002 --only table-2,fig-8 --replications 50
  anabranch reproduce alamgir2002 --quick --out /tmp/look

The directory then holds report.html, verdicts.csv, claims.csv, tables/*.csv, figures/*.svg, measures/*.parquet, \
series/*.parquet, spec.toml and manifest.json.
After an interruption, repeat the command: it continues.")]
    Reproduce(Reproduce),
    /// Run a spec of your own.
    #[command(after_help = "Examples:
  anabranch run my.toml
  anabranch run my.toml --set rate='4 Mbit/s' --out fast
  anabranch run my.toml --set link.satellite.delay='270 ms'
  anabranch run my.toml --capture satellite=satellite.pcapng
  anabranch run failover         an example that needs no file: a path fails
  anabranch run examples/geo-real.toml --live real
                                 an experiment, simulated and on real sockets

`--set` changes a parameter of the spec, or any key by its path. In a path, a node, link, flow or experiment is named by its \
name. Quote a value that contains a space.")]
    Run(RunArguments),
    /// Explore a spec on a page in the browser, with its values as sliders.
    #[command(after_help = "Examples:
  anabranch explore my.toml
  anabranch explore own               an example that needs no file
  anabranch explore --paper alamgir2002

Open the printed address in a browser on this machine. It contains a token; other requests are refused. Ctrl-C ends the \
server. docs/EXPLORE.md describes the page.")]
    Explore(Explore),
    /// Recommend receive buffer, streams, congestion control and profile for a path, by simulation.
    #[command(after_help = "Examples:
  anabranch advise --rtt 560ms --rate 10Mbit --loss 1%
                   a GEO satellite: 95 % of the goodput with an unlimited buffer
  anabranch advise --rtt 60ms --rate 10Mbit --loss 2% --goodput 90% --out leo
                   90 % is enough; write the evidence into the directory leo
  anabranch advise --rtt 560ms --rate 10Mbit --loss 1% --congestion sctp
                   only the sender of the standard, as in a kernel
  anabranch advise --rtt 1ms --rate 100Mbit --loss 0.1% --streams 1,16

One link with these properties is simulated. The answer is the smallest buffer, then the fewest streams, that give the wanted \
share of the goodput with 95 % confidence. There is one answer for the sender of the standard, with the names of the settings in \
Linux, usrsctp, WebRTC and this stack. There is another for a better sender of this stack, if there is one. Each answer is \
confirmed with new random losses. The last line reports how much was simulated.
DIR then contains advice.txt, report.html, tables/*.csv, figures/*.svg, manifest.json, and spec.toml to change and rerun;
DIR/better contains the same for the better sender.
docs/ADVISE.md explains the method and its limits.")]
    Advise(Box<Advise>),
    /// Show the path between two places over satellites: its delay over time, its satellites and
    /// handovers.
    #[command(after_help = "Examples:
  anabranch satellite-path --from 40.7,-74.0 --to 51.5,-0.1
  anabranch satellite-path --from 40.7,-74.0 --to 51.5,-0.1 --shell kuiper-1
  anabranch satellite-path --from 46.2,6.1 --to 50.1,8.7 --gateway 48.9,2.4 \\
      --set relay=bent-pipe
  anabranch satellite-path --from 46.2,6.1 --to 50.1,8.7 --tle starlink.txt
  anabranch satellite-path --from 46.2,6.1 --to 50.1,8.7 --tle starlink.xml \\
      --start 2026-03-14T05:00
  anabranch satellite-path --from 40.7,-74.0 --to 51.5,-0.1 --csv path.csv
  anabranch satellite-path --places cities.csv --shell hypatia-kuiper-630 \\
      --duration 200s --csv pairs.csv --parquet pairs.parquet

Delays are one-way and without queues. In a spec, the same path is the delay of a link:
  delay = { kind = \"satellites\", from = \"40.7,-74.0\", to = \"51.5,-0.1\" }
docs/howto/satellites.md explains every convention.")]
    SatellitePath(SatellitePath),
    /// Merge the shards of a sweep that `--shard` made, on one machine or several.
    #[command(after_help = "Examples:
  anabranch run my.toml --shard 1/3 --out one    and 2/3, 3/3 on other machines
  anabranch merge one two three --out my

The result equals that of one run of the whole sweep, byte for byte.")]
    Merge(Merge),
    /// Run a spec as a job array of Slurm, and merge its shards in a dependent job.
    #[command(after_help = "Examples:
  anabranch slurm my.toml --array 64 --out /shared/my
  anabranch slurm my.toml --array 64 --jobs 4 --sbatch=--partition=long
  anabranch slurm my.toml --array 8 --dry-run    write the scripts only

DIR must be on a file system that all nodes share. DIR/slurm contains the two scripts and a log of each task. DIR/shards contains \
the shards. DIR contains the merged results, which equal those of one run, byte for byte. A task has one processor, or as many as \
--jobs says. It restarts work that fails, at most three times, and continues where it stopped. Repeat the command after a failure: \
it continues, too.")]
    Slurm(Slurm),
    /// Show the tables and key figures of a finished run in the terminal.
    Show {
        /// Results directory of a run.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Commands on real sockets.
    #[command(flatten)]
    Net(NetCommand),
    /// Print the JSON Schema of a spec, for editors.
    #[command(after_help = "Examples:
  anabranch schema > anabranch.schema.json
  # first line of a spec, for editors that read it:
  #:schema ./anabranch.schema.json")]
    Schema,
    /// Print a completion script for a shell.
    #[command(after_help = "Examples:
  anabranch completions bash > /etc/bash_completion.d/anabranch
  anabranch completions zsh > ~/.zfunc/_anabranch
  anabranch completions fish > ~/.config/fish/completions/anabranch.fish")]
    Completions {
        /// The shell.
        #[arg(value_name = "SHELL")]
        shell: Shell,
    },
    /// Print a man page, or write all of them.
    #[command(after_help = "Examples:
  anabranch man | man -l -         the page of the whole command
  anabranch man run | man -l -     the page of one subcommand
  anabranch man --out /usr/local/share/man/man1")]
    Man(Man),
    /// Print every setting, key of a spec or metric: type, range, default and reason, in Markdown.
    #[command(after_help = "Examples:
  anabranch settings
  anabranch settings sctp | grep rto
  anabranch settings keys           sections of a spec, and their keys
  anabranch settings metrics        what can be measured

A spec sets them in [flow.transport]; perf, serve and cat by --set KEY=VALUE.")]
    Settings {
        /// One transport: sctp, tcp, quic, udp, or a stack; `keys` or `metrics` of specs [default:
        /// all transports, links and workloads].
        #[arg(value_name = "TRANSPORT")]
        transport: Option<String>,
    },
}

// Arguments of `reproduce`.
#[derive(Debug, Args)]
pub struct Reproduce {
    /// Short name of the paper; `anabranch papers` lists them.
    #[arg(value_name = "PAPER")]
    pub paper: String,
    /// Options that `reproduce`, `run` and `slurm` share.
    #[command(flatten)]
    pub common: Common,
}

// Arguments of `run`.
#[derive(Debug, Args)]
#[command(mut_args = number::signed)]
pub struct RunArguments {
    /// Spec (a TOML file), or the name of an example: `own`, `failover`, ...
    #[arg(value_name = "SPEC.toml")]
    pub spec: PathBuf,
    /// Capture the packets of a link in the first run, as pcapng (repeatable).
    #[arg(long, value_name = "LINK=FILE.pcapng", value_parser = capture)]
    pub capture: Vec<(String, PathBuf)>,
    /// Run this experiment on real sockets over the emulated network, in real time (repeatable).
    #[arg(long, value_name = "EXPERIMENT")]
    pub live: Vec<String>,
    /// Options that `reproduce`, `run` and `slurm` share.
    #[command(flatten)]
    pub common: Common,
}

// Arguments of `explore`.
#[derive(Debug, Args)]
#[command(mut_args = number::signed)]
pub struct Explore {
    /// Spec (a TOML file), or the name of an example: `own`, `failover`, ...
    #[arg(
        value_name = "SPEC.toml",
        required_unless_present = "paper",
        conflicts_with = "paper"
    )]
    pub spec: Option<PathBuf>,
    /// Explore the spec of this paper instead; `anabranch papers` lists them.
    #[arg(long, value_name = "PAPER")]
    pub paper: Option<String>,
    /// Port on the loopback interface [default: any free port].
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 0,
        hide_default_value = true,
        value_parser = number::port_or_any()
    )]
    pub port: u16,
}

// Arguments of `slurm`.
#[derive(Debug, Args)]
#[command(mut_args = number::signed)]
pub struct Slurm {
    /// Spec (a TOML file), or the name of an example.
    #[arg(value_name = "SPEC.toml")]
    pub spec: PathBuf,
    /// Number of tasks that share the runs.
    #[arg(long, value_name = "N", value_parser = number::whole::<u32>(1..=10_000))]
    pub array: u32,
    /// Option for sbatch: --sbatch=--partition=long (repeatable).
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub sbatch: Vec<String>,
    /// Write the scripts and submit nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Options of `run`; --jobs: processors of a task.
    #[command(flatten)]
    pub common: Common,
}

// Arguments of `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// Subcommand [default: the page of the whole command].
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    pub command: Option<String>,
    /// Write all pages into this directory.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Start time of a path over satellites.
#[derive(Clone, Copy, Debug)]
pub enum PathStart {
    /// A date in UTC.
    Date(Date),
    /// Time after the epoch.
    After(TimeSpan),
}

impl FromStr for PathStart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text.parse(), quantity::<TimeSpan>(text)) {
            (Ok(date), _) => Ok(PathStart::Date(date)),
            (_, Ok(span)) => Ok(PathStart::After(span)),
            (Err(error), Err(_)) => Err(error.to_string()),
        }
    }
}

// Arguments of `satellite-path`.
#[derive(Debug, Args)]
#[command(mut_args = number::signed)]
pub struct SatellitePath {
    /// One end, degrees north and east: 40.7,-74.0.
    #[arg(
        long,
        value_name = "LATITUDE,LONGITUDE",
        required_unless_present = "places",
        requires = "to"
    )]
    pub from: Option<Place>,
    /// The other end.
    #[arg(long, value_name = "LATITUDE,LONGITUDE", requires = "from")]
    pub to: Option<Place>,
    /// Instead, compute the paths between all pairs of places in a CSV file with the columns name,
    /// latitude, longitude: a table of their round-trip times. Places do not relay.
    #[arg(long, value_name = "FILE.csv", conflicts_with_all = ["from", "to", "gateway"])]
    pub places: Option<PathBuf>,
    /// The satellites.
    #[arg(long, value_name = "SHELL", default_value = "starlink-1", long_help = crate::satellite_help::shells())]
    pub shell: String,
    /// Use real satellites instead, with relay=bent-pipe: a file of two-line elements, or of OMM as
    /// XML, KVN, CSV or JSON.
    #[arg(long, value_name = "FILE", conflicts_with = "shell")]
    pub tle: Option<PathBuf>,
    /// Start of the path: a date in UTC with --tle, such as 2026-03-14T05:00 [default: the latest
    /// of the elements], or a time after the epoch of a shell, such as 2h.
    #[arg(long, value_name = "DATE")]
    pub start: Option<PathStart>,
    /// Use also elements whose date is more than 14 days from the start: their positions may be
    /// wrong by hundreds of kilometres.
    #[arg(long, requires = "tle")]
    pub old_elements: bool,
    /// A gateway: a place at which the path may reach the ground, to continue by fibre to the other
    /// end (repeatable).
    #[arg(long, value_name = "LATITUDE,LONGITUDE")]
    pub gateway: Vec<Place>,
    /// Time to compute the path for: 95min, 24h.
    #[arg(long, value_name = "TIME", default_value = "2h", value_parser = quantity::<TimeSpan>)]
    pub duration: TimeSpan,
    /// Interval between computed delays.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::<TimeSpan>)]
    pub step: TimeSpan,
    /// Set a convention: min_elevation=40, interval='1 s' (repeatable).
    #[arg(long, value_name = "KEY=VALUE", long_help = crate::satellite_help::conventions())]
    pub set: Vec<String>,
    /// Draw a map of the satellites at the start; the colour of a link shows the number of shortest
    /// paths over it.
    #[arg(long, value_name = "FILE.svg", conflicts_with = "gateway")]
    pub map: Option<PathBuf>,
    /// Write time, delay, satellites and gateway of each step; with --places a row for each pair.
    #[arg(long, value_name = "FILE.csv")]
    pub csv: Option<PathBuf>,
    /// With --places, write the same rows as a Parquet file.
    #[arg(long, value_name = "FILE.parquet", conflicts_with_all = ["from", "to"])]
    pub parquet: Option<PathBuf>,
}

// Arguments of `merge`.
#[derive(Debug, Args)]
pub struct Merge {
    /// Directories of all shards, in any order.
    #[arg(value_name = "DIR", required = true)]
    pub shards: Vec<PathBuf>,
    /// Results directory [default: the name of the spec].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

// Arguments of `advise`.
#[derive(Debug, Args)]
#[command(mut_args = number::signed)]
pub struct Advise {
    /// Round-trip time without queueing: 560ms.
    #[arg(long, value_name = "TIME", value_parser = quantity::<TimeSpan>, required_unless_present = "from", conflicts_with = "from")]
    pub rtt: Option<TimeSpan>,
    /// Instead of --rtt, one end of a path over satellites, degrees north and east: 40.7,-74.0.
    #[arg(
        long,
        value_name = "PLACE",
        requires = "to",
        allow_hyphen_values = true
    )]
    pub from: Option<String>,
    /// The other end.
    #[arg(
        long,
        value_name = "PLACE",
        requires = "from",
        allow_hyphen_values = true
    )]
    pub to: Option<String>,
    /// The satellites of --from and --to; `anabranch satellite-path --help` lists the shells
    /// [default: starlink-1].
    #[arg(long, value_name = "SHELL")]
    pub shell: Option<String>,
    /// Outage after each change of the path of --from and --to [default: 0 s].
    #[arg(long, value_name = "TIME", value_parser = quantity::<TimeSpan>)]
    pub handover: Option<TimeSpan>,
    /// Rate of the link: 10Mbit.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub rate: Rate,
    /// Share of data packets lost: 1%.
    #[arg(long, value_name = "SHARE", value_parser = loss)]
    pub loss: Probability,
    /// Goodput wanted, as a share of that with an unlimited buffer.
    #[arg(long, value_name = "SHARE", default_value = "95%", value_parser = share)]
    pub goodput: f64,
    /// Largest IP packet.
    #[arg(long, value_name = "SIZE", default_value = "1500 B", value_parser = quantity::<Size>)]
    pub mtu: Size,
    /// Message size [default: one that fills a packet].
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Size>)]
    pub message_size: Option<Size>,
    /// Queue of the link: '50 packets' or 64KiB [default: bandwidth x RTT].
    #[arg(long, value_name = "AMOUNT", value_parser = quantity::<Capacity>)]
    pub queue: Option<Capacity>,
    /// Discipline of the queue: codel, fq-codel, pie, red or another.
    #[arg(long, value_name = "NAME", default_value = "drop-tail")]
    pub qdisc: String,
    /// Numbers of streams to try [default: 1,2,4,8].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = number::whole::<u16>(1..=u16::MAX.into()))]
    pub streams: Vec<u16>,
    /// Congestion controls to try, the preferred one first [default:
    /// sctp,westwood,binomial,cubic,bbr].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub congestion: Vec<String>,
    /// Loss recoveries to try with each: standard, rack, paced [default: by the control; standard
    /// with --congestion].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub recovery: Vec<String>,
    /// Profiles to try, the preferred one first [default: rfc9260].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub profile: Vec<String>,
    /// Simulated time of each run [default: depends on the path].
    #[arg(long, value_name = "TIME", value_parser = quantity::<TimeSpan>)]
    pub duration: Option<TimeSpan>,
    /// Seed of all random numbers.
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = number::seed())]
    pub seed: u64,
    /// Number of parallel runs [default: one per core].
    #[arg(long, value_name = "J", value_parser = number::count())]
    pub jobs: Option<u32>,
    /// Directory for the evidence [default: none is written].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// No progress bar.
    #[arg(long)]
    pub quiet: bool,
}

/// Parses a quantity with its unit, as in a spec; the space between number and unit is optional.
fn quantity<T: FromStr<Err = String>>(text: &str) -> Result<T, String> {
    text.parse()
}

/// Parses a probability as a share.
fn loss(text: &str) -> Result<Probability, String> {
    share(text).map(Probability)
}

// Options that `reproduce`, `run` and `slurm` share.
#[derive(Debug, Args)]
#[command(mut_args = number::signed)]
pub struct Common {
    /// Only these tables, figures or experiments: ids separated by commas (repeatable).
    #[arg(long, value_name = "ID,ID,...", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Runs of each point [default: that of the spec].
    #[arg(long, value_name = "N", value_parser = number::count())]
    pub replications: Option<u32>,
    /// Seed of all random numbers.
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = number::seed())]
    pub seed: u64,
    /// Number of parallel runs [default: one per core].
    #[arg(long, value_name = "J", value_parser = number::count())]
    pub jobs: Option<u32>,
    /// Fewer replications, for quick results.
    #[arg(long)]
    pub quick: bool,
    /// Results directory [default: the name of the spec].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Run only shard I of N, for `merge`: 1/4 to 4/4. The default of --out is then NAME-I-of-N.
    #[arg(long, value_name = "I/N")]
    pub shard: Option<ShardSpec>,
    /// Keep the series of all replications.
    #[arg(long)]
    pub record_all: bool,
    /// Threads that share the world of each run, at most 512. Results do not depend on the number.
    /// --jobs is then the number of cores divided by the number of threads that a world can use,
    /// unless it is given.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number::whole::<u32>(1..=512))]
    pub threads: u32,
    /// Set a parameter, or a key by its path (repeatable).
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// Parses `LINK=FILE` of --capture.
fn capture(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((link, file)) if !link.is_empty() && !file.is_empty() => {
            Ok((link.to_owned(), file.into()))
        }
        _ => Err(format!(
            "found {text:?}; write LINK=FILE.pcapng, for example satellite=satellite.pcapng"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }

    #[test]
    fn quantities_are_read_without_spaces() {
        assert_eq!(quantity::<TimeSpan>("560ms"), Ok(TimeSpan(560_000_000)));
    }

    #[test]
    fn a_capture_names_a_link_and_a_file() {
        assert_eq!(
            capture("wire=a=b.pcapng"),
            Ok(("wire".to_owned(), PathBuf::from("a=b.pcapng")))
        );
        for wrong in ["wire", "=file", "wire="] {
            assert!(capture(wrong).is_err(), "{wrong}");
        }
    }
}

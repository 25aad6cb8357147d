//! `anabranch advise`: searches for the best settings for a path, and prints them.

use std::io::{self, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anabranch_advise::outcome::BETTER;
use anabranch_advise::spec::FIGURE;
use anabranch_advise::{
    AdviceProgress, AdviseError, NoProgress, Question, Satellites, TrialExecutor,
};
use anabranch_lab::run::Simulator;
use anabranch_report::terminal::{self, Terminal};
use anabranch_scenario::quantity::TimeSpan;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::arguments::Advise;
use crate::failure::Failure;
use crate::interrupt::Interruption;
use crate::lab_commands::jobs;
use crate::shell_quote::quoted;

/// Runs the search, and prints the recommended settings.
pub fn advise(arguments: &Advise) -> Result<(), Failure> {
    check(arguments)?;
    let _interruption = Interruption::watch();
    let bar = (!arguments.quiet).then(Bar::new);
    let work = TrialExecutor {
        jobs: jobs(arguments.jobs),
        runner: &Simulator::default(),
        progress: bar.as_ref().map_or(&NoProgress, |bar| bar),
    };
    let directory = arguments.out.as_deref();
    let outcome = question(arguments)
        .and_then(|question| anabranch_advise::advise(question, directory, work));
    if let Some(bar) = &bar {
        bar.clear();
    }
    let outcome = outcome?;
    let mut out = io::stdout().lock();
    write!(out, "{}", outcome.words)?;
    let outputs = outcome.first.outputs()?;
    if let Some(figure) = outputs.figures.iter().find(|figure| figure.id == FIGURE) {
        terminal::show_figure(figure, Terminal::detect(), &mut out)?;
    }
    let Some(directory) = directory else {
        return Ok(());
    };
    let shown = directory.display();
    writeln!(out, "\nreport: {shown}/report.html")?;
    if outcome.better.is_some() {
        writeln!(
            out,
            "of the sender that carries more: {shown}/{BETTER}/report.html"
        )?;
    }
    let spec = quoted(&format!("{shown}/spec.toml"))?;
    let again = quoted(&shown.to_string())?;
    writeln!(
        out,
        "change and rerun: anabranch run {spec} --seed {} --out {again}",
        outcome.question.seed
    )?;
    Ok(())
}

/// Refuses options about satellites if the path is not given by --from and --to.
fn check(arguments: &Advise) -> Result<(), Failure> {
    let of_satellites = [
        ("--shell", arguments.shell.is_some()),
        ("--handover", arguments.handover.is_some()),
    ];
    let given = of_satellites.iter().find(|(_, given)| *given);
    match given.filter(|_| arguments.from.is_none()) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::Usage(format!(
            "{option}: found with --rtt; allowed for a path over satellites, with --from and --to"
        ))),
    }
}

fn question(arguments: &Advise) -> Result<Question, AdviseError> {
    let (rate, loss) = (arguments.rate, arguments.loss);
    let mut question = match (arguments.rtt, &arguments.from, &arguments.to) {
        (None, Some(from), Some(to)) => {
            let mut satellites = Satellites::new(from, to);
            satellites.handover = arguments.handover.unwrap_or(satellites.handover);
            if let Some(shell) = &arguments.shell {
                satellites.shell.clone_from(shell);
            }
            Question::over(satellites, rate, loss)?
        }
        // The parser ensures that either --rtt or --from is present.
        (rtt, ..) => Question::new(rtt.unwrap_or(TimeSpan(0)), rate, loss),
    };
    question.qdisc.clone_from(&arguments.qdisc);
    question.share = arguments.goodput;
    question.mtu = arguments.mtu;
    question.message_size = arguments.message_size;
    question.queue = arguments.queue;
    question.duration = arguments.duration;
    question.seed = arguments.seed;
    let lists = [
        (&arguments.profile, &mut question.profiles),
        (&arguments.congestion, &mut question.congestion),
        (&arguments.recovery, &mut question.recovery),
    ];
    for (named, list) in lists {
        if !named.is_empty() {
            list.clone_from(named);
        }
    }
    if !arguments.streams.is_empty() {
        question.streams.clone_from(&arguments.streams);
    }
    Ok(question)
}

impl From<AdviseError> for Failure {
    fn from(error: AdviseError) -> Self {
        match error {
            AdviseError::Question(refused) if refused.key.is_empty() => {
                Failure::Usage(refused.to_string())
            }
            AdviseError::Question(mut refused) => {
                refused.key = format!("--{}", refused.key.replace('_', "-"));
                Failure::Usage(refused.to_string())
            }
            AdviseError::Spec(error) => Failure::Spec(error),
            AdviseError::Run(error) => Failure::Search(error),
            AdviseError::Directory(error) => Failure::Directory(error),
            AdviseError::Evidence(error, directory) => Failure::Run(error, directory),
            AdviseError::Show(error) => Failure::Show(error),
            AdviseError::Outputs(error, directory) => Failure::Outputs(error, directory),
            error => Failure::Usage(error.to_string()),
        }
    }
}

/// Progress bar on standard error that counts runs. Not shown if standard error is not a terminal.
struct Bar {
    bar: ProgressBar,
    begun: Instant,
    /// Simulated seconds and number of runs so far.
    done: Mutex<(f64, usize)>,
}

impl Bar {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(5));
        let style = ProgressStyle::with_template(
            "{bar:14} {percent:>3} %  {prefix}  {wide_msg}  {eta} left",
        );
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        #[allow(
            clippy::disallowed_methods,
            reason = "a guess at the time left, which decides nothing"
        )]
        let begun = Instant::now();
        Self {
            bar,
            begun,
            done: Mutex::default(),
        }
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Adds finished work; returns the simulated seconds and the number of runs so far.
    fn done(&self, seconds: f64, runs: usize) -> (f64, usize) {
        let mut done = self
            .done
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        done.0 += seconds;
        done.1 += runs;
        *done
    }
}

impl AdviceProgress for Bar {
    fn stage(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    fn outlook(&self, ahead: u64, done: u64) {
        let speed = done as f64 / self.begun.elapsed().as_secs_f64().max(1e-3);
        self.bar.println(format!(
            "up to about {} million events, {:.0} s at this machine's speed",
            ahead / 1_000_000,
            (ahead as f64 / speed).ceil()
        ));
    }

    fn expect(&self, seconds: f64) {
        self.bar
            .set_length((self.done(0.0, 0).0 + seconds).ceil() as u64);
    }

    fn did(&self, seconds: f64) {
        let (seconds, runs) = self.done(seconds, 1);
        self.bar.set_prefix(format!("{runs} runs"));
        self.bar.set_position(seconds as u64);
    }
}

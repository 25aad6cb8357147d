//! Recommendation for a path: receive buffer, number of streams, congestion control.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::thread;

use anabranch_advise::{
    AdviceReport, InvalidQuestion, Question, Satellites, SenderAnswer, TrialExecutor, parse,
};
use anabranch_lab::reference::Loaded;
use anabranch_report::statistics::Summary;
use anabranch_scenario::quantity::Probability;
use anabranch_scenario::tree::NodeValue;
use pyo3::prelude::*;
use tempfile::TempDir;

use crate::background;
use crate::convert::to_node;
use crate::error;
use crate::job::place;
use crate::kinds::{self, Stoppable};
use crate::results::Results;

/// Advice for one sender on a path. Rates are in bit/s, sizes in bytes, and shares from 0 to 1. An
/// interval is the half width of the 95 % confidence interval.
#[pyclass(module = "anabranch", frozen, get_all)]
#[derive(Debug)]
pub struct Advice {
    /// Profile of the sender.
    profile: String,
    /// Congestion control of the sender.
    congestion: String,
    /// The smallest receive buffer that reaches the requested share with 95 % confidence, bytes;
    /// `None` if no setting was confirmed.
    buffer: Option<u64>,
    /// The smallest number of streams that suffices with this buffer.
    streams: Option<u16>,
    /// Goodput with this setting, bit/s, and its interval.
    goodput: Option<(f64, f64)>,
    /// Goodput as a share of the goodput with an unlimited buffer, and its interval.
    share: Option<(f64, f64)>,
    /// The share that is reached with half of the buffer, and its interval, if this was run.
    half: Option<(f64, f64)>,
    /// Goodput with an unlimited buffer, bit/s, and its interval.
    unlimited: (f64, f64),
    /// Whether the sender had reached a steady state when the measurement started.
    settled: bool,
    /// The advice as text, as the command prints it.
    text: String,
    /// The results of the runs on which the advice is based.
    results: Py<Results>,
    /// The advice for a sender that reaches significantly more on this path, if there is one.
    better: Option<Py<Advice>>,
    /// Every candidate with its goodput with an unlimited buffer, as a tuple: profile, congestion
    /// control, bit/s, interval.
    candidates: Vec<(String, String, f64, f64)>,
}

#[pymethods]
impl Advice {
    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        let sender = format!("{} {}", self.profile, self.congestion);
        match (self.buffer, self.streams) {
            (Some(buffer), Some(streams)) => {
                format!("Advice({sender:?}, buffer={buffer}, streams={streams})")
            }
            _ => format!("Advice({sender:?}, nothing confirmed)"),
        }
    }
}

fn interval(summary: &Summary) -> (f64, f64) {
    (summary.mean, summary.confidence().unwrap_or(f64::NAN))
}

impl Advice {
    fn new(
        py: Python<'_>,
        found: SenderAnswer,
        all: &AdviceParts,
        guard: Option<TempDir>,
        better: Option<Py<Advice>>,
    ) -> PyResult<Self> {
        let SenderAnswer {
            advice,
            results,
            directory,
            introduction,
        } = found;
        let control = advice.question.controls().swap_remove(0);
        let advised = advice.advised();
        let directory = directory.unwrap_or_default();
        let results = Results::new(results, Loaded::default(), directory, guard)
            .with_introduction(introduction);
        Ok(Self {
            profile: control.profile,
            congestion: control.congestion,
            buffer: advised.and_then(|tried| tried.setting.buffer),
            streams: advised.map(|tried| tried.setting.streams),
            goodput: advised.map(|tried| interval(&tried.goodput)),
            share: advised.map(|tried| interval(&tried.share)),
            half: advice.half().map(|tried| interval(&tried.share)),
            unlimited: interval(&advice.unlimited),
            settled: advice.has_settled(),
            text: all.words.clone(),
            results: Py::new(py, results)?,
            better,
            candidates: all.candidates.clone(),
        })
    }
}

/// Parts that the advice and the better advice (`better`) have in common.
struct AdviceParts {
    words: String,
    candidates: Vec<(String, String, f64, f64)>,
}

/// Parses a quantity of a question: a text with its unit, or a `timedelta`.
fn quantity<T: FromStr<Err = String>>(key: &str, value: &Bound<'_, PyAny>) -> PyResult<T> {
    read(key, value, str::parse)
}

fn read<T>(
    key: &str,
    value: &Bound<'_, PyAny>,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> PyResult<T> {
    let text = match to_node(value)?.value {
        NodeValue::Text(text) => text,
        NodeValue::Integer(number) => number.to_string(),
        NodeValue::Float(number) => number.to_string(),
        _ => value.repr()?.to_string(),
    };
    parse(&text).map_err(|message| error::refused(&InvalidQuestion::unread(key, message)))
}

/// advise(rtt, rate, loss, ...): see `anabranch.advise`.
#[pyfunction]
#[pyo3(signature = (rtt, rate, loss, *, goodput=None, mtu=None, message_size=None, queue=None, qdisc=None, satellites=None, streams=Vec::new(), congestion=Vec::new(), profile=Vec::new(), recovery=Vec::new(), duration=None, seed=1, out=None, jobs=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "those of the question, by name")]
pub fn advise(
    py: Python<'_>,
    rtt: Option<&Bound<'_, PyAny>>,
    rate: &Bound<'_, PyAny>,
    loss: &Bound<'_, PyAny>,
    goodput: Option<&Bound<'_, PyAny>>,
    mtu: Option<&Bound<'_, PyAny>>,
    message_size: Option<&Bound<'_, PyAny>>,
    queue: Option<&Bound<'_, PyAny>>,
    qdisc: Option<String>,
    satellites: Option<BTreeMap<String, Bound<'_, PyAny>>>,
    streams: Vec<u16>,
    congestion: Vec<String>,
    profile: Vec<String>,
    recovery: Vec<String>,
    duration: Option<&Bound<'_, PyAny>>,
    seed: u64,
    out: Option<PathBuf>,
    jobs: Option<usize>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Advice> {
    let rate = read("rate", rate, parse::rate)?;
    let loss = Probability(read("loss", loss, parse::share)?);
    let mut question = match (rtt, satellites) {
        (Some(rtt), None) => Question::new(quantity("rtt", rtt)?, rate, loss),
        (None, Some(given)) => Question::over(over(&given)?, rate, loss).map_err(failed)?,
        _ => {
            let message = "give one of `rtt` and `satellites`; the other is None";
            return Err(error::refused(&InvalidQuestion::whole(message)));
        }
    };
    question.seed = seed;
    question.recovery = recovery;
    if let Some(qdisc) = qdisc {
        question.qdisc = qdisc;
    }
    if let Some(share) = goodput {
        question.share = read("goodput", share, parse::share)?;
    }
    if let Some(mtu) = mtu {
        question.mtu = quantity("mtu", mtu)?;
    }
    let optional =
        |key, value: Option<&Bound<'_, PyAny>>| value.map(|value| quantity(key, value)).transpose();
    question.message_size = optional("message_size", message_size)?;
    question.duration = duration
        .map(|value| quantity("duration", value))
        .transpose()?;
    question.queue = queue.map(|value| quantity("queue", value)).transpose()?;
    if !streams.is_empty() {
        question.streams = streams;
    }
    if !profile.is_empty() {
        question.profiles = profile;
    }
    if !congestion.is_empty() {
        question.congestion = congestion;
    }
    answer(py, question, out, jobs, progress)
}

/// Parses a satellite path: `from` and `to`, and optionally `shell` and `handover`.
fn over(given: &BTreeMap<String, Bound<'_, PyAny>>) -> PyResult<Satellites> {
    const KEYS: [&str; 4] = ["from", "to", "shell", "handover"];
    if let Some(key) = given.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(error::refused(&InvalidQuestion::unknown(
            "satellites",
            key,
            &KEYS,
        )));
    }
    let text = |key: &str| {
        given
            .get(key)
            .map(|value| read(key, value, |it| Ok(it.to_owned())))
    };
    let place = |key: &str| {
        let missing =
            || InvalidQuestion::unread(key, "missing; write latitude,longitude".to_owned());
        text(key).unwrap_or_else(|| Err(error::refused(&missing())))
    };
    let (from, to): (String, String) = (place("from")?, place("to")?);
    let mut satellites = Satellites::new(&from, &to);
    if let Some(shell) = text("shell") {
        satellites.shell = shell?;
    }
    if let Some(handover) = given.get("handover") {
        satellites.handover = quantity("handover", handover)?;
    }
    Ok(satellites)
}

fn answer(
    py: Python<'_>,
    question: Question,
    out: Option<PathBuf>,
    jobs: Option<usize>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Advice> {
    let tried: Vec<&String> = question.congestion.iter().collect();
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let jobs = match jobs {
        Some(jobs) => jobs,
        // One thread, because threads would only wait for each other if a kind is written in
        // Python.
        None if !kinds::written_in_python(&tried).is_empty() => 1,
        None => cores(),
    };
    // Checked before any directory is created, so that an invalid question leaves no files.
    let named: Vec<String> = tried.into_iter().cloned().collect();
    let question = question.checked().map_err(failed)?;
    let (directory, mut guard) = place(out)?;
    let outcome = background::wait(py, progress.as_ref(), move |state| {
        let runner = Stoppable::new(state, &named.iter().collect::<Vec<_>>());
        let work = TrialExecutor {
            jobs,
            runner: &runner,
            progress: state.as_ref(),
        };
        let outcome = anabranch_advise::advise(question, Some(&directory), work);
        outcome.map_err(|error| runner.instead(failed(error)))
    })??;
    let AdviceReport {
        ranking,
        first,
        better,
        words,
        ..
    } = outcome;
    let candidates = ranking.candidates.into_iter().map(|(control, goodput)| {
        let (mean, half) = interval(&goodput);
        (control.profile, control.congestion, mean, half)
    });
    let parts = AdviceParts {
        words,
        candidates: candidates.collect(),
    };
    // The better advice needs no guard, because its directory is within that of the first advice,
    // whose guard removes both.
    let better = better
        .map(|found| Advice::new(py, found, &parts, None, None))
        .transpose()?;
    let better = better.map(|better| Py::new(py, better)).transpose()?;
    Advice::new(py, first, &parts, guard.take(), better)
}

fn failed(error: anabranch_advise::AdviseError) -> PyErr {
    match error {
        anabranch_advise::AdviseError::Question(refused) => error::refused(&refused),
        anabranch_advise::AdviseError::Spec(faults) => error::spec(&faults),
        other => error::failed(other),
    }
}

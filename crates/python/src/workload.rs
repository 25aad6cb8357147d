//! Workloads written in Python.

use anabranch_settings::{Datum, Kind, KindEntry, KindError, Setting, Variant};
use anabranch_sim::workload::{BoxedWorkload, Context, Facts, Message, NextMessage, Workload};
use anabranch_transport::Nanos;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use crate::kinds::{self, Language};

/// Classes by the names of their kinds. Needed because one function creates all workloads.
static CLASSES: RwLock<BTreeMap<&'static str, Py<PyAny>>> = RwLock::new(BTreeMap::new());

/// Maximum message size, bytes.
const MAX_MESSAGE: u64 = 1 << 40;

/// A workload that a Python object implements.
struct PythonWorkload {
    /// The Python object; `None` after an exception, when the run has failed.
    object: Option<Py<PyAny>>,
    facts: Facts,
}

fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / 1e9
}

/// Converts an offer from Python. An int is the size in bytes of a message to send now, and a float
/// is the time in seconds of the next offer. "waiting" means that the workload waits for a
/// delivery, and None that there are no more messages.
fn offer(now: Nanos, made: &Bound<'_, PyAny>) -> PyResult<NextMessage> {
    if made.is_none() {
        return Ok(NextMessage::Done);
    }
    if let Ok(at) = made.cast::<PyFloat>() {
        let at: f64 = at.extract()?;
        let at = (at * 1e9).round();
        if !(at > now as f64 && at < u64::MAX as f64) {
            return Err(PyValueError::new_err(format!(
                "next: found the time {} s at {} s; a workload waits for a time to come",
                at / 1e9,
                seconds(now)
            )));
        }
        return Ok(NextMessage::At(at as Nanos));
    }
    if let Ok(size) = made.extract::<u64>()
        && (1..=MAX_MESSAGE).contains(&size)
    {
        return Ok(NextMessage::Now(Message::new(size as usize)));
    }
    if made.cast::<PyString>().is_ok_and(|text| text == "waiting") {
        return Ok(NextMessage::Waiting);
    }
    Err(PyTypeError::new_err(format!(
        "next: found {made:?}; allowed: an int (a message of so many bytes now), a float (nothing before that second), \"waiting\" (for an answer), or None (nothing any more)"
    )))
}

impl PythonWorkload {
    fn ask(
        &mut self,
        what: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<NextMessage>,
    ) -> NextMessage {
        let Some(object) = &self.object else {
            return NextMessage::Done;
        };
        match Python::attach(|py| what(object.bind(py))) {
            Ok(offer) => offer,
            Err(error) => {
                kinds::raised(error);
                self.object = None;
                NextMessage::Done
            }
        }
    }
}

impl Workload for PythonWorkload {
    fn next(&mut self, now: Nanos) -> NextMessage {
        self.ask(|object| offer(now, &object.call_method1("next", (seconds(now),))?))
    }

    fn answered(&mut self, now: Nanos) {
        let heard = |object: &Bound<'_, PyAny>| {
            object.call_method1("answered", (seconds(now),))?;
            Ok(NextMessage::Done)
        };
        self.ask(heard);
    }

    fn facts(&self) -> Facts {
        self.facts
    }
}

/// Properties that a workload declares before it runs. `sizes`: minimum and maximum message size,
/// bytes. `paced`: whether offers follow the workload's own clock; default True. `endless`: whether
/// it never ends; default False.
fn facts(object: &Bound<'_, PyAny>) -> PyResult<Facts> {
    let mut facts = Facts::default();
    let sizes = object.getattr_opt("sizes")?.filter(|it| !it.is_none());
    if let Some((least, most)) = sizes.map(|it| it.extract()).transpose()? {
        let sizes: [u64; 2] = [least, most];
        if !(1 <= sizes[0] && sizes[0] <= sizes[1] && sizes[1] <= MAX_MESSAGE) {
            let message = format!(
                "sizes: found {sizes:?}; allowed: the least and the largest message, 1 to 2**40 bytes"
            );
            return Err(PyValueError::new_err(message));
        }
        facts.sizes = sizes;
    }
    if let Some(paced) = object.getattr_opt("paced")? {
        facts.paced = paced.extract()?;
    }
    if let Some(endless) = object.getattr_opt("endless")? {
        facts.endless = endless.extract()?;
    }
    Ok(facts)
}

/// Creates a workload; the kind's name determines the class.
fn make(
    parameters: &anabranch_settings::KindParameters<'_>,
    mut context: Context,
) -> Result<BoxedWorkload, KindError> {
    let values = parameters.all()?;
    let seed = context.rng.bits();
    let made = Python::attach(|py| -> PyResult<PythonWorkload> {
        let classes = CLASSES.read().unwrap_or_else(PoisonError::into_inner);
        let class = classes.get(parameters.kind());
        let class = class
            .ok_or_else(|| PyValueError::new_err("the kind was taken away"))?
            .clone_ref(py);
        drop(classes);
        let keywords = PyDict::new(py);
        keywords.set_item("seed", seed)?;
        keywords.set_item("packet", context.packet)?;
        for ((name, datum), setting) in values.iter().zip(settings_of(parameters, &values)) {
            match (datum, setting) {
                (Datum::Flag(flag), _) => keywords.set_item(name, flag)?,
                (Datum::Whole(number), Kind::Duration { .. }) => {
                    keywords.set_item(name, seconds(*number))?
                }
                (Datum::Whole(number), _) => keywords.set_item(name, number)?,
                (Datum::Real(number), _) => keywords.set_item(name, number)?,
                (Datum::Word(word), _) => keywords.set_item(name, word)?,
                (other, _) => return Err(PyTypeError::new_err(format!("{name}: found {other:?}"))),
            }
        }
        let object = class.call(py, (), Some(&keywords))?;
        let facts = facts(object.bind(py))?;
        Ok(PythonWorkload {
            object: Some(object),
            facts,
        })
    });
    match made {
        Ok(made) => Ok(Box::new(made)),
        Err(error) => Err(KindError::together(error.to_string())),
    }
}

/// The kinds (declarations) of the parameters that have values.
fn settings_of(
    parameters: &anabranch_settings::KindParameters<'_>,
    values: &[(&'static str, Datum)],
) -> Vec<Kind> {
    let kind = |name: &str| {
        parameters
            .declared()
            .iter()
            .find(|setting| setting.name == name)
    };
    values
        .iter()
        .map(|(name, _)| kind(name).map_or(Kind::Flag, |setting| setting.kind))
        .collect()
}

/// Type of a parameter, which follows from its default: a time span ("1 s"), a size ("100 B"), a
/// rate ("2 Mbit/s"), any other text, a bool, an int of at least 0, or a float.
fn declared(name: String, default: &Bound<'_, PyAny>) -> PyResult<Setting> {
    let text: String = default.str()?.extract()?;
    let kinds = [
        Kind::duration(0, Nanos::MAX),
        Kind::bytes(0, MAX_MESSAGE),
        Kind::Rate {
            least: 0,
            most: 1_000_000_000_000,
        },
    ];
    let kind = if default.is_instance_of::<PyBool>() {
        Kind::Flag
    } else if default.is_instance_of::<PyInt>() {
        Kind::count(0, u64::MAX)
    } else if default.is_instance_of::<PyFloat>() {
        Kind::Number {
            least: f64::MIN,
            most: f64::MAX,
            above: false,
            step: 0.0,
        }
    } else if default.is_instance_of::<PyString>() {
        let quantity = kinds.into_iter().find(|kind| kind.parse(&text).is_ok());
        quantity.unwrap_or(Kind::Text("text"))
    } else {
        let found = default.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "{name}: found a default of type {found}; allowed: str, bool, int, float"
        )));
    };
    let text = if text == "True" || text == "False" {
        text.to_lowercase()
    } else {
        text
    };
    let name = Box::leak(name.into_boxed_str());
    Ok(Setting::new(name, "", kind).or(Box::leak(text.into_boxed_str())))
}

/// add_workload(name, about, cls, parameters, code): adds a workload;
/// `cls(seed=, packet=, **parameters)` creates one. `parameters` contains the defaults. Runs depend
/// on `code`.
#[pyfunction]
pub fn add_workload(
    name: String,
    about: String,
    class: Py<PyAny>,
    parameters: &Bound<'_, PyDict>,
    code: String,
) -> PyResult<()> {
    kinds::check_name(&name)?;
    let mut settings = Vec::new();
    for (name, default) in parameters {
        settings.push(declared(name.extract()?, &default)?);
    }
    // Leaked, because declarations must live until the end of the program.
    let kind: &'static str = Box::leak(name.clone().into_boxed_str());
    let entry: &'static KindEntry<BoxedWorkload, Context> = Box::leak(Box::new(KindEntry {
        variant: Variant {
            name: kind,
            about: Box::leak(about.into_boxed_str()),
            parameters: Box::leak(settings.into_boxed_slice()),
        },
        build: make,
        effects: |_, _| Ok(Vec::new()),
    }));
    let mut classes = CLASSES.write().unwrap_or_else(PoisonError::into_inner);
    classes.insert(kind, class);
    drop(classes);
    kinds::depends(&name, &code, Language::Python);
    kinds::add(|kinds| kinds.with_workload(entry));
    Ok(())
}

//! Congestion controls written in Python, for prototypes. The same algorithm in Rust is about a
//! hundred times faster (docs/extending/congestion-control.md).

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anabranch_congestion::{
    AckSample, Algorithm, Base as ProtocolBase, CongestionControl, Factory, Feedback, LossCause,
    Requirement, WindowControl, registry,
};
use anabranch_transport::Nanos;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::kinds::{self, Language};

/// Number of nanoseconds per second.
const SECOND: f64 = 1e9;

fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / SECOND
}

fn nanos(seconds: f64) -> Nanos {
    (seconds * SECOND).round() as Nanos
}

/// An acknowledgement on one path. Times are in seconds, sizes in bytes.
#[pyclass(module = "anabranch", frozen, get_all)]
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Arrival time.
    now: f64,
    /// Bytes newly acknowledged.
    bytes_acked: u64,
    /// Segments (chunks) newly acknowledged.
    segments_acked: u32,
    /// Whether the cumulative acknowledgement point has advanced.
    cumulative_advanced: bool,
    /// Bytes outstanding before the acknowledgement.
    flightsize_before: u64,
    /// Bytes outstanding after the acknowledgement.
    flightsize_after: u64,
    /// Whether the sender is in fast recovery.
    in_recovery: bool,
    /// The round-trip time that the acknowledgement measured, or None.
    rtt: Option<f64>,
    /// The round-trip time of the newest segment newly acknowledged, or None if it was sent more
    /// than once.
    latest_rtt: Option<f64>,
    /// The smoothed round-trip time, or None before the first measurement.
    srtt: Option<f64>,
}

impl Ack {
    fn of(ack: &AckSample) -> Self {
        Self {
            now: seconds(ack.now),
            bytes_acked: ack.bytes_acked,
            segments_acked: ack.segments_acked,
            cumulative_advanced: ack.cumulative_advanced,
            flightsize_before: ack.flightsize_before,
            flightsize_after: ack.flightsize_after,
            in_recovery: ack.in_recovery,
            rtt: ack.rtt.map(seconds),
            latest_rtt: ack.latest_rtt.map(seconds),
            srtt: ack.srtt.map(seconds),
        }
    }

    fn sample(&self) -> AckSample {
        AckSample {
            now: nanos(self.now),
            bytes_acked: self.bytes_acked,
            segments_acked: self.segments_acked,
            cumulative_advanced: self.cumulative_advanced,
            flightsize_before: self.flightsize_before,
            flightsize_after: self.flightsize_after,
            in_recovery: self.in_recovery,
            rtt: self.rtt.map(nanos),
            latest_rtt: self.latest_rtt.map(nanos),
            srtt: self.srtt.map(nanos),
            ..AckSample::default()
        }
    }
}

/// The protocol's own controller of a path, as the base of a control: it behaves as the protocol
/// specifies, and its windows can be set.
#[pyclass(module = "anabranch", frozen)]
#[derive(Debug)]
pub struct Base(Mutex<ProtocolBase>);

impl Base {
    fn own(&self) -> MutexGuard<'_, ProtocolBase> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Name of a cause of loss in Python.
fn cause_name(cause: LossCause) -> &'static str {
    match cause {
        LossCause::FastRetransmit => "fast-retransmit",
        LossCause::Timeout => "timeout",
    }
}

#[pymethods]
impl Base {
    fn on_ack(&self, ack: &Bound<'_, Ack>) {
        self.own().on_ack(&ack.get().sample());
    }

    fn on_loss(&self, now: f64, cause: &str, flightsize: u64) -> PyResult<()> {
        let causes = [LossCause::FastRetransmit, LossCause::Timeout];
        let Some(cause) = causes.into_iter().find(|it| cause_name(*it) == cause) else {
            return Err(PyValueError::new_err(format!(
                "found the cause {cause:?}; allowed: \"fast-retransmit\", \"timeout\""
            )));
        };
        self.own().on_loss(nanos(now), cause, flightsize);
        Ok(())
    }

    fn on_ecn(&self, now: f64, flightsize: u64) {
        self.own().on_ecn(nanos(now), flightsize);
    }

    fn on_idle(&self, now: f64, idle_for: f64, rto: f64) {
        self.own().on_idle(nanos(now), nanos(idle_for), nanos(rto));
    }

    /// The congestion window, bytes.
    #[getter]
    fn get_cwnd(&self) -> f64 {
        self.own().cwnd_exact()
    }

    #[setter]
    fn set_cwnd(&self, cwnd: f64) -> PyResult<()> {
        self.own().set_cwnd(size("cwnd", cwnd)?);
        Ok(())
    }

    /// The slow-start threshold, bytes.
    #[getter]
    fn get_ssthresh(&self) -> u64 {
        self.own().ssthresh()
    }

    #[setter]
    fn set_ssthresh(&self, ssthresh: f64) -> PyResult<()> {
        self.own().set_ssthresh(size("ssthresh", ssthresh)?);
        Ok(())
    }

    /// Growth of the window per round trip of congestion avoidance, bytes.
    #[getter]
    fn unit(&self) -> u64 {
        self.own().unit()
    }

    /// Whether the next acknowledgement will be processed in slow start.
    #[getter]
    fn in_slow_start(&self) -> bool {
        self.own().in_slow_start()
    }

    /// Minimum of ssthresh after a loss, bytes.
    #[getter]
    fn least_ssthresh(&self) -> u64 {
        self.own().least_ssthresh()
    }
}

fn size(name: &str, bytes: f64) -> PyResult<f64> {
    if bytes.is_finite() && bytes >= 0.0 {
        Ok(bytes)
    } else {
        Err(PyValueError::new_err(format!(
            "{name}: found {bytes}; a window is 0 bytes or more"
        )))
    }
}

/// Congestion control of one path, implemented by a Python object.
struct PythonControl {
    name: &'static str,
    base: Py<Base>,
    /// The Python object; `None` after an exception: the run has failed, and ends with the
    /// protocol's own windows.
    object: Option<Py<PyAny>>,
    /// Whether the object has a method for each sent packet, whose calls are expensive.
    has_on_sent: bool,
    cwnd: f64,
    ssthresh: f64,
    pacing: Option<f64>,
}

impl fmt::Debug for PythonControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonControl")
            .field("name", &self.name)
            .field("cwnd", &self.cwnd)
            .finish_non_exhaustive()
    }
}

impl PythonControl {
    fn new(name: &'static str, class: &Py<PyAny>, own: ProtocolBase) -> Self {
        let (cwnd, ssthresh) = (own.cwnd_exact(), own.ssthresh() as f64);
        Python::attach(|py| {
            let base = Py::new(py, Base(Mutex::new(own)));
            let base = base.expect("the class of bases is there");
            let object = class.call1(py, (base.clone_ref(py),));
            let mut written = Self {
                name,
                base,
                object: None,
                has_on_sent: class.bind(py).hasattr("on_sent").unwrap_or(false),
                cwnd,
                ssthresh,
                pacing: None,
            };
            match object {
                Ok(object) => {
                    written.object = Some(object);
                    written.call_python(py, |_| Ok(()));
                }
                Err(error) => kinds::raised(error),
            }
            written
        })
    }

    /// Calls a method of the object, and reads the windows that it has set.
    fn call_python(
        &mut self,
        py: Python<'_>,
        what: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>,
    ) {
        let Some(object) = &self.object else { return };
        let object = object.bind(py);
        let read = |name: &str| -> PyResult<f64> {
            let value: f64 = object.getattr(name)?.extract()?;
            size(name, value)
        };
        let windows = || -> PyResult<_> {
            what(object)?;
            let pacing: Option<f64> = object.getattr("pacing_rate")?.extract()?;
            // Refused, because a negative rate is invalid and a rate of zero would wait forever.
            let pacing = match pacing {
                Some(rate) if !(rate.is_finite() && rate > 0.0) => {
                    let message = format!(
                        "pacing_rate: found {rate}; allowed: bytes per second above 0, or None"
                    );
                    return Err(PyValueError::new_err(message));
                }
                pacing => pacing,
            };
            Ok((read("cwnd")?, read("ssthresh")?, pacing))
        };
        match windows() {
            Ok(windows) => (self.cwnd, self.ssthresh, self.pacing) = windows,
            Err(error) => {
                kinds::raised(error);
                self.object = None;
            }
        }
    }

    fn call(&mut self, method: &str, arguments: impl for<'py> pyo3::call::PyCallArgs<'py>) {
        Python::attach(|py| {
            self.call_python(py, |object| {
                object.call_method1(method, arguments).map(drop)
            });
        });
    }
}

impl CongestionControl for PythonControl {
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        if self.has_on_sent {
            self.call("on_sent", (seconds(now), bytes, flightsize));
        }
    }

    fn wants_latest_rtt(&self) -> bool {
        true
    }

    fn on_app_limited(&mut self, now: Nanos) {
        self.base.get().own().on_app_limited(now);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.call("on_ack", (Ack::of(ack),));
    }

    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        self.call("on_ecn", (seconds(now), flightsize));
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        self.call("on_loss", (seconds(now), cause_name(cause), flightsize));
    }

    fn on_heartbeat_lost(&mut self, now: Nanos) {
        self.base.get().own().on_heartbeat_lost(now);
    }

    fn on_feedback(&mut self, now: Nanos, feedback: &Feedback) {
        self.base.get().own().on_feedback(now, feedback);
    }

    fn on_idle(&mut self, now: Nanos, idle_for: Nanos, rto: Nanos) {
        self.call("on_idle", (seconds(now), seconds(idle_for), seconds(rto)));
    }

    fn on_mtu(&mut self, segment: u64) {
        self.base.get().own().on_mtu(segment);
        Python::attach(|py| self.call_python(py, |_| Ok(())));
    }

    fn cwnd(&self) -> u64 {
        self.cwnd as u64
    }

    fn cwnd_exact(&self) -> f64 {
        self.cwnd
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh as u64
    }

    fn pacing_rate(&self) -> Option<f64> {
        self.pacing
    }

    fn name(&self) -> &'static str {
        self.name
    }
}

/// add_congestion(name, about, cls, code): adds a congestion control for SCTP and TCP; `cls(base)`
/// creates one for a path. Runs depend on `code`.
#[pyfunction]
pub fn add_congestion(name: String, about: String, class: Py<PyAny>, code: String) -> PyResult<()> {
    kinds::check_name(&name)?;
    kinds::depends(&name, &code, Language::Python);
    // Leaked, because declarations must live until the end of the program.
    let name: &'static str = Box::leak(name.into_boxed_str());
    let make = move |base: ProtocolBase, _: &dyn anabranch_congestion::ParameterLookup| {
        Box::new(PythonControl::new(name, &class, base)) as Box<dyn CongestionControl>
    };
    let make: Factory = Box::leak(Box::new(make));
    let about = Box::leak(about.into_boxed_str());
    let only = None;
    registry::add(Box::leak(Box::new(Algorithm {
        name,
        about,
        only,
        needs: Requirement::Nothing,
        properties: &[],
        make,
    })));
    Ok(())
}

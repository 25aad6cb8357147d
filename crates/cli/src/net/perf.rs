//! `anabranch perf`: measures the throughput of associations in intervals.

mod associations;
mod counters;
mod cpu_time;
mod paths;
mod report;
mod scale;
mod session;

use std::time::Duration;

use anabranch_net::{AssociationError, CloseReason, Endpoint};
use anabranch_settings::counted;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::arguments::Perf;
use super::bind::{Bound, Ports};
use super::connection::Connection;
use super::print::{Printer, Written};
use super::{FAR_FUTURE, Interrupts, SHUTDOWN_TIMEOUT, connect, limit, peer};
use crate::failure::Failure;
use crate::stderr::note;
use associations::Associations;
use cpu_time::CpuTimer;
use report::{Peers, ReportWriter};
use session::{PerfPlan, SessionEnd};

/// Interval at which associations are checked for idleness.
const WATCH: Duration = Duration::from_millis(100);

/// Runs a measurement.
pub async fn perf(arguments: Perf) -> Result<(), Failure> {
    let mut interrupts = Interrupts::new();
    let Opened {
        bound,
        begun,
        missing,
    } = tokio::select! {
        opened = open(&arguments) => opened?,
        () = interrupts.next() => return Err(Failure::Interrupted),
    };
    let (plans, associations): (Vec<_>, Vec<_>) = begun.into_iter().unzip();
    if let Some(missing) = &missing {
        note(format_args!("anabranch: {missing}"));
    }
    bound.moves.start(&bound.endpoints);
    associations
        .iter()
        .for_each(|it| bound.moves.print_outcomes(it.association()));
    let (printer, written) = Printer::stdout();
    let mut report = ReportWriter::begin(&arguments, &peers(&associations), printer)?;
    let processor = CpuTimer::begin();
    let mut flows = Associations::begin(plans, associations);
    let attended = attend(
        &arguments,
        &bound.endpoints,
        &mut flows,
        &mut report,
        &mut interrupts,
    );
    let (failed, interrupted) = attended.await?;
    let failed = failed.or(missing);
    let last = flows.lines();
    // Prints another interval if data has arrived since the last line.
    if last.seconds() > 0.05 || !last.is_empty() {
        report.lines(&last)?;
    }
    report.end(&flows.summary(), &processor.used(), failed.as_deref())?;
    read(written, interrupted, &mut interrupts).await;
    let receives = arguments.reverse || arguments.bidir;
    bound
        .watched
        .finish(&bound.sctp.transport, receives, failed.clone())?;
    match failed {
        None => Ok(()),
        Some(reason) => Err(Failure::Net(reason)),
    }
}

/// Result of starting the associations of a measurement.
struct Opened {
    bound: Bound,
    /// The established associations, each with its plan.
    begun: Vec<(PerfPlan, Connection)>,
    /// Why some associations could not be established.
    missing: Option<String>,
}

/// Binds the endpoints, and starts the associations. If the peer refuses one association, the
/// others are still used.
async fn open(arguments: &Perf) -> Result<Opened, Failure> {
    let certificates = &arguments.wire.certificates;
    certificates.check_message_size(arguments.message_size)?;
    let (peer, zone) = peer(&arguments.host, arguments.port, &arguments.path).await?;
    let plans = PerfPlan::each(arguments);
    let mut bound = arguments
        .wire
        .bind(Ports::Own(arguments.local_port, plans.len()), zone)?;
    let timeout = limit(arguments.connect_timeout);
    let (all, mut begun, mut why) = (plans.len(), Vec::new(), None);
    for (number, plan) in plans.into_iter().enumerate() {
        match connect(&mut bound, number, &arguments.host, &peer, timeout).await {
            Ok(association) => begun.push((plan, association)),
            // Stops if the first association gets no answer, because each of the others would wait
            // as long.
            Err(error) if begun.is_empty() && !error.refused => return Err(error.into()),
            Err(error) => {
                let goes_on = error.refused;
                why.get_or_insert(error.failure);
                if !goes_on {
                    break;
                }
            }
        }
    }
    let missing = match why {
        Some(why) if begun.is_empty() => return Err(why),
        Some(why) => Some(format!(
            "{} of {} did not come up; {why}",
            all - begun.len(),
            counted(all, "association")
        )),
        None => None,
    };
    Ok(Opened {
        bound,
        begun,
        missing,
    })
}

fn peers(associations: &[Connection]) -> Peers {
    let status = associations
        .first()
        .and_then(|it| it.association().status());
    let paths = status.iter().flat_map(|status| &status.paths);
    Peers {
        paths: paths.map(|path| path.address.to_string()).collect(),
        streams: status.as_ref().map_or(0, |status| status.outstrms),
        mtu: status.as_ref().map_or(0, |status| status.primary.mtu),
        extensions: associations
            .first()
            .map_or_else(Vec::new, |it| it.association().negotiated().names()),
    }
}

/// Waits until all lines are printed; after an interrupt only for a short time.
async fn read(written: Written, interrupted: bool, interrupts: &mut Interrupts) {
    let bound = if interrupted {
        SHUTDOWN_TIMEOUT
    } else {
        FAR_FUTURE
    };
    tokio::select! {
        _ = tokio::time::timeout(bound, written.wait()) => {}
        () = interrupts.next() => {}
    }
}

/// Prints lines until every association has ended. Returns why an association failed, and whether
/// there was an interrupt.
async fn attend(
    arguments: &Perf,
    endpoints: &[Endpoint],
    flows: &mut Associations,
    report: &mut ReportWriter,
    interrupts: &mut Interrupts,
) -> Result<(Option<String>, bool), Failure> {
    let mut ends: JoinSet<(usize, SessionEnd)> = flows.work();
    let mut failed = None;
    let mut interrupted = false;
    let idle = limit(arguments.idle_timeout);
    let period = Duration::from_nanos(arguments.interval.0);
    let silent = period.is_zero();
    let mut ticks = every(if silent { FAR_FUTURE } else { period });
    let mut watches = every(WATCH);
    loop {
        tokio::select! {
            end = ends.join_next() => match end {
                None => return Ok((failed, interrupted)),
                Some(Ok((index, end))) => {
                    failed = failed.or(why(&end));
                    flows.end(index, end);
                }
                Some(Err(error)) => return Err(Failure::Net(error.to_string())),
            },
            _ = ticks.tick(), if !silent && !flows.are_done() => report.lines(&flows.lines())?,
            _ = watches.tick() => {
                for association in flows.idle_for(idle) {
                    let idle = idle.as_secs_f64();
                    failed.get_or_insert(format!("nothing arrived for {idle} s (--idle-timeout)"));
                    association.association().abort("nothing arrived any more");
                }
            }
            // The first interrupt ends the measurement as the end of its time would; the second
            // ends the command immediately.
            () = interrupts.next() => {
                if interrupted {
                    endpoints.iter().for_each(|endpoint| endpoint.abort("interrupted"));
                }
                interrupted = true;
                flows.stop();
            }
        }
    }
}

fn every(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

/// Why an association failed; `None` if it succeeded.
fn why(end: &SessionEnd) -> Option<String> {
    match &end.reason {
        CloseReason::Shutdown => None,
        // The association was aborted at the end of the time, because data in flight was not
        // acknowledged in time.
        _ if end.cut && end.progressed => None,
        _ if end.cut => Some("the peer does not answer any more".to_owned()),
        reason => Some(AssociationError(reason.clone()).to_string()),
    }
}

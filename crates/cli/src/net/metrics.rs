//! `serve --metrics`: metrics of a server in the format of Prometheus.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_explore::LimitedListener;
use anabranch_net::sctp::PathState;
use anabranch_net::sctp::stats::AssociationStatistics;
use anabranch_net::{Association, Endpoint, EndpointStatistics, Status};
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use tokio::net::TcpListener;

use crate::failure::Failure;

/// A counter: its name, description, and field of the association statistics.
type Counter = (
    &'static str,
    &'static str,
    fn(&AssociationStatistics) -> u64,
);

/// Counters that are summed over all associations, including ended ones.
const COUNTERS: &[Counter] = &[
    (
        "sctp_data_chunks_sent_total",
        "DATA chunks sent for the first time",
        |it| it.sender.chunks_sent,
    ),
    (
        "sctp_data_bytes_sent_total",
        "User data sent for the first time, bytes",
        |it| it.sender.bytes_sent,
    ),
    (
        "sctp_data_bytes_acknowledged_total",
        "User data acknowledged by peers, bytes",
        |it| it.sender.bytes_acknowledged,
    ),
    (
        "sctp_data_chunks_retransmitted_total",
        "DATA chunks retransmitted",
        |it| it.sender.chunks_retransmitted,
    ),
    (
        "sctp_data_bytes_retransmitted_total",
        "User data retransmitted, bytes",
        |it| it.sender.bytes_retransmitted,
    ),
    (
        "sctp_fast_retransmits_total",
        "DATA chunks retransmitted after missing reports (fast retransmit)",
        |it| it.sender.fast_retransmits,
    ),
    ("sctp_t3_timeouts_total", "Expiries of T3-rtx", |it| {
        it.sender.timeouts
    }),
    (
        "sctp_messages_abandoned_total",
        "Messages abandoned by their policy (RFC 7496)",
        |it| it.sender.abandoned_unsent + it.sender.abandoned_sent,
    ),
    (
        "sctp_data_chunks_received_total",
        "DATA chunks received for the first time",
        |it| it.receiver.chunks,
    ),
    (
        "sctp_data_bytes_received_total",
        "User data received for the first time, bytes",
        |it| it.receiver.bytes,
    ),
    (
        "sctp_data_chunks_duplicate_total",
        "Duplicate DATA chunks received",
        |it| it.receiver.duplicates,
    ),
    (
        "sctp_data_chunks_dropped_total",
        "DATA chunks dropped because the receive buffer was full",
        |it| it.receiver.dropped_full,
    ),
    ("sctp_messages_received_total", "Messages delivered", |it| {
        it.receiver.messages
    }),
    ("sctp_heartbeats_sent_total", "HEARTBEATs sent", |it| {
        it.control.heartbeats
    }),
    (
        "sctp_primary_changes_total",
        "Changes of the primary path by the stack, after failures",
        |it| it.control.primary_changes,
    ),
];

/// A gauge: its name, description, unit, and value for the open associations.
type Gauge = (&'static str, &'static str, Unit, fn(&[Status]) -> f64);

/// All gauges, except the number of paths by state.
const GAUGES: &[Gauge] = &[
    (
        "sctp_associations",
        "Open associations",
        Unit::Count,
        |it| it.len() as f64,
    ),
    (
        "sctp_send_buffer_bytes",
        "User data queued and not yet sent",
        Unit::Bytes,
        |it| sum(it, |of| of.penddata as u64),
    ),
    (
        "sctp_flight_bytes",
        "User data in flight, all paths",
        Unit::Bytes,
        |it| sum(it, |of| of.paths.iter().map(|path| path.flightsize).sum()),
    ),
    (
        "sctp_cwnd_bytes",
        "Congestion windows, all paths",
        Unit::Bytes,
        |it| sum(it, |of| of.paths.iter().map(|path| path.cwnd).sum()),
    ),
    (
        "sctp_peer_rwnd_bytes",
        "Receive windows of peers, less what is in flight",
        Unit::Bytes,
        |it| sum(it, |of| of.rwnd),
    ),
    (
        "sctp_unacknowledged_chunks",
        "DATA chunks not yet acknowledged",
        Unit::Count,
        |it| sum(it, |of| of.unackdata as u64),
    ),
    (
        "sctp_srtt_seconds_max",
        "The largest smoothed round-trip time of a path in use",
        Unit::Seconds,
        |it| {
            let srtt = it.iter().filter_map(|of| of.in_use.srtt).max();
            srtt.unwrap_or_default().as_secs_f64()
        },
    ),
];

fn sum(open: &[Status], of: fn(&Status) -> u64) -> f64 {
    open.iter().map(of).sum::<u64>() as f64
}

/// Sources of the metrics. Clones share the same state.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Mutex<MetricsState>>);

#[derive(Default)]
struct MetricsState {
    next: u64,
    open: BTreeMap<u64, Association>,
    /// Totals of ended associations, in the order of `COUNTERS`.
    ended: [u64; COUNTERS.len()],
    begun: u64,
    failed: u64,
}

impl Metrics {
    /// Starts an HTTP server for the metrics. Returns its address.
    pub async fn serve(
        &self,
        at: SocketAddr,
        endpoints: Vec<Endpoint>,
        ports: usize,
    ) -> Result<SocketAddr, Failure> {
        let cannot = |error| Failure::Net(format!("cannot serve metrics at {at}: {error}"));
        let listener = TcpListener::bind(at).await.map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let kept = self.clone();
        let text = "text/plain; version=0.0.4; charset=utf-8";
        let page = move || async move { ([(CONTENT_TYPE, text)], kept.text(&endpoints, ports)) };
        let router = Router::new().route("/metrics", get(page));
        tokio::spawn(async move { axum::serve(LimitedListener::new(listener), router).await });
        Ok(address)
    }

    /// Adds an established association; returns its number.
    pub fn begin(&self, association: &Association) -> u64 {
        let mut kept = self.lock();
        kept.begun += 1;
        kept.next += 1;
        let number = kept.next;
        kept.open.insert(number, association.clone());
        number
    }

    /// Removes an association that has ended; `failed`: it did not end gracefully.
    pub fn end(&self, number: u64, failed: bool) {
        let mut kept = self.lock();
        let status = kept.open.remove(&number).and_then(|it| it.status());
        kept.failed += u64::from(failed);
        if let Some(status) = status {
            for (sum, (_, _, of)) in kept.ended.iter_mut().zip(COUNTERS) {
                *sum += of(&status.counters);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, MetricsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All metrics in the text format.
    fn text(&self, endpoints: &[Endpoint], ports: usize) -> String {
        let recorder: PrometheusRecorder = PrometheusBuilder::new().build_recorder();
        let kept = self.lock();
        let open: Vec<Status> = kept.open.values().filter_map(Association::status).collect();
        metrics::with_local_recorder(&recorder, || {
            associations(&kept, &open);
            paths(&open);
            sockets(endpoints, ports);
        });
        recorder.handle().render()
    }
}

fn associations(kept: &MetricsState, open: &[Status]) {
    for &(name, help, unit, of) in GAUGES {
        describe_gauge!(name, unit, help);
        gauge!(name).set(of(open));
    }
    for ((name, help, of), ended) in COUNTERS.iter().zip(kept.ended) {
        describe_counter!(*name, *help);
        let sum: u64 = open.iter().map(|status| of(&status.counters)).sum();
        counter!(*name).absolute(ended + sum);
    }
    describe_counter!(
        "sctp_associations_begun_total",
        "Associations set up by peers"
    );
    counter!("sctp_associations_begun_total").absolute(kept.begun);
    describe_counter!(
        "sctp_associations_failed_total",
        "Associations that did not end gracefully"
    );
    counter!("sctp_associations_failed_total").absolute(kept.failed);
}

fn paths(open: &[Status]) {
    describe_gauge!(
        "sctp_paths",
        Unit::Count,
        "Paths of open associations, by state"
    );
    for &state in PathState::ALL {
        let all = open.iter().flat_map(|status| &status.paths);
        let count = all.filter(|path| path.state == state).count();
        let name = state.name().replace(' ', "_");
        gauge!("sctp_paths", "state" => name).set(count as f64);
    }
}

/// Formats counters of the sockets, which all endpoints of a thread share, and the drops of each
/// endpoint.
fn sockets(endpoints: &[Endpoint], ports: usize) {
    let all: Vec<_> = endpoints.iter().map(Endpoint::statistics).collect();
    let received: u64 = all.iter().map(|it| it.packets_received).sum();
    let sum =
        |of: fn(&EndpointStatistics) -> u64| -> u64 { all.iter().step_by(ports).map(of).sum() };
    for (name, help, count) in [
        (
            "sctp_packets_sent_total",
            "Packets handed to the sockets",
            sum(|it| it.packets_sent),
        ),
        (
            "sctp_send_errors_total",
            "Packets that the system refused to send",
            sum(|it| it.send_errors),
        ),
        ("sctp_packets_received_total", "Packets received", received),
        (
            "sctp_packets_dropped_total",
            "Received packets dropped because too many were queued",
            sum(|it| it.packets_dropped),
        ),
        (
            "sctp_datagrams_foreign_total",
            "Datagrams without an SCTP packet for this endpoint",
            sum(|it| it.foreign),
        ),
        (
            "sctp_packets_handed_over_total",
            "Received packets that another thread's socket got (--threads)",
            sum(|it| it.packets_handed_over),
        ),
    ] {
        describe_counter!(name, help);
        counter!(name).absolute(count);
    }
    describe_counter!(
        "sctp_discards_total",
        "Packets and chunks discarded, by reason"
    );
    let mut by_reason: BTreeMap<&str, u64> = BTreeMap::new();
    for (reason, count) in all.iter().flat_map(|it| it.discards.iter()) {
        *by_reason.entry(reason.name()).or_default() += count;
    }
    for (reason, count) in by_reason {
        counter!("sctp_discards_total", "reason" => reason).absolute(count);
    }
}

//! Formats the paths of an association for a report.

use std::time::Duration;

use anabranch_net::PathStatus;
use serde_json::{Value, json};

use super::scale::{BYTES, scaled};

/// The state of a path as JSON.
pub(super) fn path_json(path: &PathStatus) -> Value {
    json!({
        "address": path.address.to_string(),
        "local": path.local.to_string(),
        "state": path.state.name(),
        "mtu": path.mtu,
        "snd_cwnd": path.cwnd,
        "in_flight": path.flightsize,
        "rtt": path.srtt.map(|srtt| srtt.as_secs_f64()),
        "rto": path.rto.as_secs_f64(),
        "bytes_sent": path.bytes_sent,
    })
}

/// The state of a path as text.
pub(super) fn path_text(path: &PathStatus) -> String {
    let size = |bytes: u64| scaled(bytes as f64, 1024.0, BYTES);
    let milliseconds = |time: Duration| format!("{:.3} ms", time.as_secs_f64() * 1e3);
    format!(
        "      {}: {}, MTU {} B, cwnd {}, in flight {}, RTT {}, RTO {}, sent {}",
        path.address,
        path.state.name(),
        path.mtu,
        size(path.cwnd),
        size(path.flightsize),
        path.srtt.map_or_else(|| "-".to_owned(), milliseconds),
        milliseconds(path.rto),
        size(path.bytes_sent)
    )
}

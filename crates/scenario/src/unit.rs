//! Units of probes, and the units that tables and figures may ask for.

/// Units that a curve or a row may ask for.
pub const UNITS: &[&str] = &[
    "bytes", "segments", "streams", "KiB", "bit/s", "kbit/s", "Mbit/s", "packets", "s", "ms", "1",
    "%",
];

/// The unit in which a probe is recorded.
pub fn of_probe(probe: &str) -> &'static str {
    match probe {
        "cwnd" | "ssthresh" | "flightsize" | "pipe" | "peer_rwnd" | "a_rwnd" | "delivered"
        | "buffered" | "heartbeat_bytes" => "bytes",
        "rto" | "srtt" | "head_of_line_wait" => "s",
        "throughput" | "goodput" | "available_bandwidth" => "bit/s",
        "queue" => "packets",
        "rate_estimate" => "B/s",
        "streams_in_use" => "streams",
        "sent" | "retransmitted" | "cumulative_ack" | "duplicate_ack" | "fast_retransmit"
        | "mark_answered" | "timeout" | "received" | "duplicate" => "segments",
        _ => "1",
    }
}

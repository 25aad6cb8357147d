//! Final report of `shell`, as JSON.

use std::fmt;
use std::time::Duration;

use anabranch_emulate::tun::TunReport;
use anabranch_sim::DropReason;
use serde_json::{Value, json};

use crate::net::emulate::drops;

/// Percentiles of the reported lateness of packets.
const SHARES: [(f64, &str); 4] = [(0.5, "50"), (0.9, "90"), (0.99, "99"), (0.999, "99.9")];

/// The final report.
pub struct ShellReport {
    emulated: TunReport,
    /// Number of packets that were lost because they arrived faster than they could be read.
    overrun: u64,
    length: Duration,
}

impl ShellReport {
    /// Creates the report. `untaken` is the number of packets that the devices dropped.
    pub fn new(emulated: TunReport, untaken: u64, length: Duration) -> Self {
        Self {
            overrun: emulated.overrun + untaken,
            emulated,
            length,
        }
    }

    /// The report as JSON.
    pub fn json(&self) -> String {
        let TunReport {
            hosts,
            dropped,
            damaged,
            timing,
            ..
        } = &self.emulated;
        let hosts: Vec<Value> = hosts
            .iter()
            .map(|it| {
                json!({
                    "node": it.name, "entered": it.entered, "left": it.left, "rejected": it.rejected,
                })
            })
            .collect();
        let dropped: serde_json::Map<String, Value> = DropReason::ALL
            .iter()
            .map(|&reason| (reason.name().to_owned(), dropped.count(reason).into()))
            .collect();
        let quantiles: serde_json::Map<String, Value> = SHARES
            .iter()
            .map(|&(share, name)| (name.to_owned(), timing.quantile(share).into()))
            .collect();
        let report = json!({
            "seconds": self.length.as_secs_f64(),
            "nodes": hosts,
            "dropped": dropped,
            "overrun": self.overrun,
            "damaged": damaged,
            "late_ns": {
                "packets": timing.count(),
                "mean": timing.mean(),
                "percentiles": quantiles,
                "max": timing.most(),
            },
        });
        format!("{report:#}\n")
    }
}

impl fmt::Display for ShellReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TunReport {
            hosts,
            dropped,
            damaged,
            timing,
            ..
        } = &self.emulated;
        let us = |nanos: u64| nanos as f64 / 1e3;
        for host in hosts {
            write!(
                f,
                "{} sent {} and was given {}; ",
                host.name, host.entered, host.left
            )?;
        }
        write!(f, "dropped: {}, overrun: {}", drops(dropped), self.overrun)?;
        if *damaged > 0 {
            write!(f, ", damaged: {damaged}")?;
        }
        write!(f, "; late by {:.0} us on average", us(timing.mean()))?;
        for (share, name) in SHARES {
            write!(f, ", {:.0} us ({name} %)", us(timing.quantile(share)))?;
        }
        write!(f, ", {:.0} us at most", us(timing.most()))
    }
}

//! A deterministic network: nodes, links, queues, losses, workloads, capture
#![forbid(unsafe_code)]

pub mod wifi;

//! Planning and running of specs. A spec is resolved once ([`Plan`](plan::Plan)) and run in the
//! simulator ([`world`]), and the results are written to a [`Sink`](sink::Sink). This crate uses no
//! files, threads, clocks or terminals.
#![forbid(unsafe_code)]

pub mod agent;
pub mod arguments;
pub mod files;
mod flows;
pub mod ineffective_settings;
pub mod kinds;
pub mod live;
pub mod manual;
pub mod medium;
pub mod metric;
mod network;
pub mod parallel;
pub mod plan;
pub mod planner;
pub mod point;
pub mod probe;
pub mod proxy;
pub mod resolved_point;
pub mod runner;
pub mod sink;
mod traces;
pub mod transport;
pub mod vocabulary;
pub mod workload;
pub mod world;

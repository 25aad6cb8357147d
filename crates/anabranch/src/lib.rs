//! anabranch is an SCTP stack (RFC 9260) and a laboratory around it. The same code runs on real sockets and in a deterministic
//! network simulator.
//!
//! The project is a set of crates, and this one gives them under one name. It has no code of its own. A program may as well depend
//! on the crate that it needs, such as `anabranch-net`.
//!
//! # Where to start
//!
//! | you want to | module | feature | crate |
//! |---|---|---|---|
//! | send and receive messages over SCTP | [`net`] | `net` (default) | `anabranch-net` |
//! | open data channels to browsers | [`datachannel`] | `datachannel` | `anabranch-datachannel` |
//! | run the protocol on your own sockets, or on none | [`sctp`] | always | `anabranch-sctp` |
//! | read and write packets | [`wire`] | always | `anabranch-wire` |
//! | write a congestion control | [`congestion`] | always | `anabranch-congestion` |
//! | simulate a network of your own agents | [`sim`] | `sim` | `anabranch-sim` |
//! | put a program on a simulated path in real time | [`emulate`] | `emulate` | `anabranch-emulate` |
//! | run a spec, or add a kind that specs can name | [`engine`] | `engine` | `anabranch-engine` |
//! | run experiments into files, or reproduce a paper | [`lab`] | `lab` | `anabranch-lab` |
//! | ask which settings suit a path | [`advise`] | `lab` | `anabranch-advise` |
//! | use the `anabranch` command | | | `cargo install anabranch-cli` |
//! | use the laboratory from Python | | | the package `anabranch` for Python |
//!
//! The feature `full` turns all of them on. The front page of each crate is written for its kind of user and has an example. Four other
//! modules are shared parts: [`transport`] is the contract between a protocol and its driver, [`settings`] describes what can be set,
//! [`tcp`] is TCP for comparison, and [`scenario`] and [`report`] are the grammar of specs and the output of the laboratory.
//!
//! # Messages over SCTP
//!
//! ```
//! use anabranch::net::{Carrier, Config, Endpoint, Peer, SendOptions};
//! use std::net::Ipv4Addr;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! // SCTP inside UDP (RFC 6951), at any free UDP port.
//! let carrier = Carrier::Encapsulated { port: 0, peer_port: 0 };
//! let server = Endpoint::bind(Config::server(5001).with(|it| it.carrier = carrier))?;
//! let peer = Peer::new([Ipv4Addr::LOCALHOST.into()], 5001).over_udp(server.udp_port());
//! let serving = tokio::spawn(async move {
//!     let association = server.accept().await?;
//!     while let Some(message) = association.recv().await? {
//!         association.send(message.stream, message.bytes, SendOptions::default()).await?;
//!     }
//!     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
//! });
//!
//! let client = Endpoint::bind(Config::default().with(|it| it.carrier = carrier))?;
//! let association = client.connect(peer).await?;
//! association.send(3, "hello", SendOptions::default()).await?;
//! let echo = association.recv().await?.ok_or("closed early")?;
//! assert_eq!((echo.stream, &echo.bytes[..]), (3, &b"hello"[..]));
//! association.shutdown().await?;
//! serving.await??;
//! # Ok(())
//! # }
//! ```
//!
//! # An experiment
//!
//! ```
//! use anabranch::engine::plan::{Plan, Request, Unit};
//! use anabranch::lab::run::{Simulator, in_memory};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = r#"
//!     anabranch = 1
//!     name = "satellite"
//!     world = { duration = "20 s" }
//!     node = [{ name = "ship" }, { name = "shore" }]
//!     measure = [{ metric = "goodput", flow = "file" }]
//!
//!     [[link]]
//!     name = "geo"
//!     between = ["ship", "shore"]
//!     rate = "2 Mbit/s"
//!     delay = "270 ms"
//!
//!     [[flow]]
//!     name = "file"
//!     from = "ship"
//!     to = "shore"
//!     transport = { protocol = "sctp", profile = "rfc9260" }
//!     workload = { kind = "bulk", message = "1 KiB" }
//! "#;
//! let plan = Plan::new(Request::new("satellite.toml", text).with(|it| it.seed = 1))?;
//! let records = in_memory(&Unit::all(&plan), 1, &Simulator::default(), 1, &|_| {})?;
//! let goodput = records[0].value("file", "goodput").ok_or("no goodput")?;
//! assert!(goodput > 0.0);
//! # Ok(())
//! # }
//! ```
//!
//! # Versions
//!
//! All crates have one version. Before 1.0 a minor version may change an interface; CHANGELOG.md names each change.
//!
//! Structures and enumerations that will grow are `#[non_exhaustive]`: configurations, profiles, options, events, errors, reasons and
//! statistics. Begin a structure with its constructor or `Default`, and set what differs: by `with`, which takes a closure, or by
//! assignment. What a standard or the contract between the crates fixes is exhaustive: packets on the wire, states, the trait
//! [`transport::Transport`] and what goes through it, the switches inside congestion controls. A new one there must be decided
//! wherever it is met, and the compiler shows where.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub use anabranch_congestion as congestion;
pub use anabranch_sctp as sctp;
pub use anabranch_settings as settings;
pub use anabranch_transport as transport;
pub use anabranch_wire as wire;

#[cfg(feature = "lab")]
pub use anabranch_advise as advise;
#[cfg(feature = "datachannel")]
pub use anabranch_datachannel as datachannel;
#[cfg(feature = "emulate")]
pub use anabranch_emulate as emulate;
#[cfg(feature = "engine")]
pub use anabranch_engine as engine;
#[cfg(feature = "lab")]
pub use anabranch_lab as lab;
#[cfg(feature = "net")]
pub use anabranch_net as net;
#[cfg(feature = "lab")]
pub use anabranch_report as report;
#[cfg(feature = "engine")]
pub use anabranch_scenario as scenario;
#[cfg(feature = "sim")]
pub use anabranch_sim as sim;
#[cfg(feature = "sim")]
pub use anabranch_tcp as tcp;

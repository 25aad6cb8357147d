//! anabranch is an SCTP stack (RFC 9260) and a laboratory around it. The same code runs on real
//! sockets and in a deterministic network simulator.
//!
//! The project consists of several crates. This crate re-exports them under one name, without
//! additional code; a program may also depend directly on the crate that it needs, such as
//! `anabranch-net`.
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
//! | run a program on an emulated path | [`emulate`] | `emulate` | `anabranch-emulate` |
//! | compute satellite paths | [`orbit`] | `orbit` | `anabranch-orbit` |
//! | run a spec, or add a kind that specs can name | [`engine`] | `engine` | `anabranch-engine` |
//! | run experiments into files, or reproduce a paper | [`lab`] | `lab` | `anabranch-lab` |
//! | find suitable settings for a path | [`advise`] | `lab` | `anabranch-advise` |
//! | use the `anabranch` command | | | `cargo install anabranch-cli` |
//! | use the laboratory from Python | | | the package `anabranch` for Python |
//!
//! The feature `full` enables all of them, with `quic` (a transport in specs) and `codecs`
//! (compressed Parquet input). With the feature `smol`, endpoints of [`net`] can also run on smol
//! instead of tokio; with `thread`, on a thread of a program without an async runtime. The
//! documentation of each of these crates is for its users. The other modules are parts that the
//! crates share: [`transport`] is the interface between a protocol and its driver, [`settings`]
//! describes configurable parameters, [`tcp`] is TCP for comparison, and [`scenario`] and
//! [`report`] are the grammar of specs and the output of the laboratory.
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
//!         association.send(message.bytes, SendOptions::on(message.stream)).await?;
//!     }
//!     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
//! });
//!
//! let client = Endpoint::bind(Config::default().with(|it| it.carrier = carrier))?;
//! let association = client.connect(peer).await?;
//! association.send("hello", SendOptions::on(3)).await?;
//! let echo = association.recv().await?.ok_or("closed early")?;
//! assert_eq!((echo.stream, &echo.bytes[..]), (3, &b"hello"[..]));
//! association.shutdown().await?;
//! serving.await??;
//! # Ok(())
//! # }
//! ```
//!
//! # The protocol without sockets
//!
//! An [`sctp::Endpoint`] does no I/O and reads no clock. Its driver passes received packets and the
//! time to it, and polls packets and deadlines. In this example the driver is a loop that transfers
//! packets between two endpoints without delay:
//!
//! ```
//! use anabranch::sctp::{Config, Endpoint, SendOptions};
//! use anabranch::transport::{Ecn, Transport};
//! use bytes::BytesMut;
//! use std::net::IpAddr;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let address = |host: u8| IpAddr::from([192, 0, 2, host]);
//! let endpoint = |host: u8, port: u16| {
//!     // The seed of cookies and tags must be secret and random in a real program.
//!     let config = Config::default().with(|it| it.addresses = vec![address(host)]);
//!     Endpoint::new(config, port, [host; 32])
//! };
//! let mut hosts = [endpoint(1, 5000)?, endpoint(2, 5001)?];
//! hosts[1].listen(true);
//! let now = 0; // nanoseconds
//! let id = hosts[0].connect(now, &[address(2)], 5001)?;
//! hosts[0].association_mut(id).ok_or("gone")?.send(now, "hello".into(), &SendOptions::on(3))?;
//!
//! let (mut out, mut quiet) = (BytesMut::new(), false);
//! while !quiet {
//!     quiet = true;
//!     for from in [0, 1] {
//!         while let Some(transmit) = hosts[from].poll_transmit(now, &mut out) {
//!             let path = transmit.path.reversed();
//!             hosts[1 - from].handle_datagram(now, path, Ecn::NotEct, out.split().freeze());
//!             quiet = false;
//!         }
//!     }
//! }
//!
//! let id = hosts[1].associations().next().ok_or("no association")?;
//! let received = hosts[1].association_mut(id).ok_or("gone")?.poll_message().ok_or("no message")?;
//! assert_eq!((received.stream, &received.payload.into_bytes()[..]), (3, &b"hello"[..]));
//! # Ok(())
//! # }
//! ```
//!
//! # A simulated network
//!
//! ```
//! use anabranch::sim::udp::{UdpSink, UdpSource, UdpSourceConfig};
//! use anabranch::sim::workload::Cbr;
//! use anabranch::sim::{
//!     AddressFamily, Attachment, DirectionConfig, LinkConfig, Seed, Topology, World,
//! };
//! use anabranch::transport::{Path, time::SECOND};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut topology = Topology::new();
//! let (near, far) = (topology.add_node("near")?, topology.add_node("far")?);
//! // 1 Mbit/s and 20 ms in each direction.
//! let direction = || DirectionConfig::new(1_000_000, 20_000_000);
//! let (forward, backward) = (direction(), direction());
//! topology.add_link(LinkConfig { name: "wire".into(), between: [near, far], forward, backward })?;
//! let address = |node| topology.addresses(node, AddressFamily::V4).next().ok_or("no address");
//! let path = Path::new(address(near)?, address(far)?);
//!
//! let mut world = World::new(topology, Seed::new(1, 0))?;
//! let udp = 17;
//! let sink = world.attach(Attachment::new(far, udp, 9), UdpSink::new())?;
//! let config = UdpSourceConfig { path, source_port: 7, destination_port: 9 };
//! // 100 datagrams of 1,000 bytes a second.
//! let source = UdpSource::new(config, Cbr::new(800_000, 1_000)?);
//! world.attach(Attachment::new(near, udp, 7), source)?;
//! world.run_until(2 * SECOND)?;
//! let received = world.agent::<UdpSink>(sink).ok_or("no sink")?.stats().received;
//! assert!(received > 190, "{received}");
//! # Ok(())
//! # }
//! ```
//!
//! # An experiment
//!
//! ```
//! use anabranch::engine::plan::{Plan, PlanRequest, PlannedRun};
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
//! let plan = Plan::new(PlanRequest::new("satellite.toml", text).with(|it| it.seed = 1))?;
//! let records = in_memory(&PlannedRun::all(&plan), 1, &Simulator::default(), 1, &|_| {})?;
//! let goodput = records[0].value("file", "goodput").ok_or("no goodput")?;
//! assert!(goodput > 0.0);
//! # Ok(())
//! # }
//! ```
//!
//! # Versions
//!
//! All crates have the same version. Before 1.0, a minor version may change an interface;
//! CHANGELOG.md lists each change.
//!
//! Structures and enumerations that will grow are `#[non_exhaustive]`: configurations, profiles,
//! options, events, errors, reasons and statistics. Create a structure with its constructor or
//! `Default`, and change fields with `with`, which takes a closure, or by assignment. Types that
//! are fixed by a standard or by the interface between the crates are exhaustive: packets on the
//! wire, states, the trait [`transport::Transport`] and its arguments, the switches inside
//! congestion controls. A new variant of these must be handled at every use, and the compiler
//! should report each use.
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
#[cfg(feature = "orbit")]
pub use anabranch_orbit as orbit;
#[cfg(feature = "lab")]
pub use anabranch_report as report;
#[cfg(feature = "engine")]
pub use anabranch_scenario as scenario;
#[cfg(feature = "sim")]
pub use anabranch_sim as sim;
#[cfg(feature = "sim")]
pub use anabranch_tcp as tcp;

//! Proxies: process the transit packets of a node, in addition to forwarding.
//!
//! To add a proxy, write one file here and add one line to [`KINDS`].

pub mod split_tcp;

use std::fmt::Debug;

use anabranch_scenario::checker::Checker;
use anabranch_scenario::world::Proxy as Written;
use anabranch_sim::{Agent, Rng};

/// A proxy that was built from the settings of a node.
pub type BoxedProxy = Box<dyn Proxy>;

/// All proxies that a spec can name.
pub const KINDS: &[&ProxyEntry] = &[&split_tcp::ENTRY];
/// Name that stands for no proxy, so that a sweep can switch the proxy off.
const NONE: &str = "none";

/// All names of proxies that specs may contain.
pub fn names() -> Vec<&'static str> {
    let kinds = KINDS.iter().map(|entry| entry.name);
    [NONE].into_iter().chain(kinds).collect()
}

/// A proxy that specs can name.
#[derive(Debug)]
pub struct ProxyEntry {
    /// Name of the proxy in specs.
    pub name: &'static str,
    /// Builds the proxy of a node from its settings. Errors in the settings are reported at `path`,
    /// and the result is `None`.
    pub build: fn(&mut Checker<'_>, &Written, &str) -> Option<BoxedProxy>,
}

/// A proxy at a node, which processes the transit packets of one IP protocol.
pub trait Proxy: Debug + Send + Sync {
    /// IP protocol number of the packets that it processes.
    fn protocol(&self) -> u8;

    /// Creates the agent of the proxy for a run, with a separate random stream. If `checksum` is
    /// set, the agent computes and verifies checksums.
    fn agent(&self, rng: Rng, checksum: bool) -> Box<dyn Agent>;
}

/// Builds the proxy of a node from its settings; `None` if the node has none.
pub fn build(c: &mut Checker<'_>, written: &Written, path: &str) -> Option<BoxedProxy> {
    let mut all = KINDS.iter();
    let entry = all.find(|entry| entry.name == written.kind)?;
    (entry.build)(c, written, path)
}

//! Proxies: processing of transit packets at a node, in addition to forwarding.
//!
//! A kind is one file here and one line in [`KINDS`].

pub mod split_tcp;

use std::fmt::Debug;

use anabranch_scenario::checker::Checker;
use anabranch_scenario::world::Proxy as Written;
use anabranch_sim::{Agent, Rng};

/// A proxy built from a node's settings.
pub type BoxedProxy = Box<dyn Proxy>;

/// All proxies, one line for each.
pub const KINDS: &[&ProxyEntry] = &[&split_tcp::ENTRY];
/// The name for no proxy, so that a sweep can switch it off.
const NONE: &str = "none";

/// The names allowed in specs.
pub fn names() -> Vec<&'static str> {
    let kinds = KINDS.iter().map(|entry| entry.name);
    [NONE].into_iter().chain(kinds).collect()
}

/// A proxy that specs can name.
#[derive(Debug)]
pub struct ProxyEntry {
    /// Name.
    pub name: &'static str,
    /// Builds the proxy of a node. Faults in its settings are reported at its path, and the result
    /// is `None`.
    pub build: fn(&mut Checker<'_>, &Written, &str) -> Option<BoxedProxy>,
}

/// A component of a node that processes the transit packets of one IP protocol.
pub trait Proxy: Debug + Send + Sync {
    /// The protocol's number.
    fn protocol(&self) -> u8;

    /// Builds its agent for a run, with a separate random stream. `checksum`: checksums are
    /// computed and verified.
    fn agent(&self, rng: Rng, checksum: bool) -> Box<dyn Agent>;
}

/// Builds the proxy of a checked node, if it has one.
pub fn build(c: &mut Checker<'_>, written: &Written, path: &str) -> Option<BoxedProxy> {
    let mut all = KINDS.iter();
    let entry = all.find(|entry| entry.name == written.kind)?;
    (entry.build)(c, written, path)
}

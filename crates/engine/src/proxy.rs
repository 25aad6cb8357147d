//! Proxies: what a node does with packets that are not for it, beside forwarding them.
//!
//! A kind is one file here and one line in [`KINDS`].

pub mod split_tcp;

use std::fmt::Debug;

use anabranch_scenario::checker::Checker;
use anabranch_scenario::world::Proxy as Written;
use anabranch_sim::{Agent, Rng};

/// A proxy as a node's settings made it.
pub type Made = Box<dyn Proxy>;

/// Every proxy: one line for each.
pub const KINDS: &[&Entry] = &[&split_tcp::ENTRY];
/// The name of no proxy, so that a sweep can leave it out.
const NONE: &str = "none";

/// What specs may name.
pub fn names() -> Vec<&'static str> {
    let kinds = KINDS.iter().map(|entry| entry.name);
    [NONE].into_iter().chain(kinds).collect()
}

/// A proxy that specs can name.
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Builds a node's; what is wrong with its settings is noted at its path, and it is `None`.
    pub build: fn(&mut Checker<'_>, &Written, &str) -> Option<Made>,
}

/// What a node runs on the packets of one IP protocol that pass through it.
pub trait Proxy: Debug + Send + Sync {
    /// The protocol's number.
    fn protocol(&self) -> u8;

    /// Makes it for a run, with a random stream of its own; `checksum`: checksums are computed and verified.
    fn agent(&self, rng: Rng, checksum: bool) -> Box<dyn Agent>;
}

/// Builds the proxy of a checked node, if it has one.
pub fn build(c: &mut Checker<'_>, written: &Written, path: &str) -> Option<Made> {
    let mut all = KINDS.iter();
    let entry = all.find(|entry| entry.name == written.kind)?;
    (entry.build)(c, written, path)
}

//! The plan of `shell`: hosts, commands and captures. It is checked before any namespace is
//! created.

use std::ffi::OsString;
use std::fmt::Write;
use std::fs::File;
use std::io::BufWriter;
use std::net::IpAddr;

use anabranch_emulate::namespace::Setup;
use anabranch_engine::kinds::Standard;
use anabranch_engine::world::{self, WorldError};
use anabranch_scenario::Spec;
use anabranch_sim::{
    AddressFamily, BuildError, CaptureError, LinkId, NodeId, Seed, Topology, World,
};

use crate::failure::Failure;
use crate::net::arguments::ShellArguments;
use crate::net::emulate::network;

/// Maximum packet size if no link specifies one, bytes.
const USUAL_MTU: usize = 1500;

/// Captures to start: node, link, and file.
pub type Captures = Vec<(NodeId, LinkId, File)>;

/// A background command of --run.
pub struct ExtraCommand {
    /// Number of the host on which it runs.
    pub host: usize,
    pub command: String,
}

/// The commands and the hosts on which they run.
pub struct ShellPlan {
    spec: Spec,
    seed: u64,
    /// A world built from the spec, used only for names and addresses; the emulator builds another
    /// one.
    world: World,
    hosts: Vec<NodeId>,
    at: usize,
    runs: Vec<ExtraCommand>,
    waits: Vec<(usize, u16)>,
    command: Vec<OsString>,
    captures: Vec<(NodeId, LinkId, String)>,
}

impl ShellPlan {
    pub fn new(arguments: &ShellArguments) -> Result<Self, Failure> {
        let spec = network(&arguments.spec, &arguments.set)?;
        let (world, [first, last]) = build(&spec, arguments.seed)?;
        let mut plan = Self {
            spec,
            seed: arguments.seed,
            world,
            hosts: Vec::new(),
            at: 0,
            runs: Vec::new(),
            waits: Vec::new(),
            command: arguments.command.clone(),
            captures: Vec::new(),
        };
        if plan.command.is_empty() {
            let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
            plan.command.push(shell);
        }
        for node in [first, last] {
            if plan.is_linked(node) {
                plan.host_at(node);
            }
        }
        plan.at = match &arguments.at {
            Some(name) => plan.named_host("--at", name)?,
            None => {
                let name = plan.topology().node_name(first).to_owned();
                plan.named_host("SPEC", &name)?
            }
        };
        for name in &arguments.host {
            plan.named_host("--host", name)?;
        }
        for text in &arguments.run {
            let Some((name, command)) = text.split_once('=') else {
                return Err(Failure::Usage(format!(
                    "--run: found {text:?}; write NODE=COMMAND"
                )));
            };
            let host = plan.named_host("--run", name)?;
            let command = command.to_owned();
            plan.runs.push(ExtraCommand { host, command });
        }
        for text in &arguments.wait_for {
            let wait = plan.wait(text)?;
            plan.waits.push(wait);
        }
        for text in &arguments.capture {
            let capture = plan.capture(text)?;
            plan.captures.push(capture);
        }
        Ok(plan)
    }

    fn topology(&self) -> &Topology {
        self.world.topology()
    }

    fn is_linked(&self, node: NodeId) -> bool {
        self.topology()
            .addresses(node, AddressFamily::V4)
            .next()
            .is_some()
    }

    /// The number of the host at a node; adds the host if it is new.
    fn host_at(&mut self, node: NodeId) -> usize {
        let place = self.hosts.iter().position(|&it| it == node);
        place.unwrap_or_else(|| {
            self.hosts.push(node);
            self.hosts.len() - 1
        })
    }

    /// Like `host_at`, for the name of a node.
    fn named_host(&mut self, argument: &str, name: &str) -> Result<usize, Failure> {
        let node = self.named(argument, name)?;
        if !self.is_linked(node) {
            return Err(Failure::Usage(format!(
                "{argument}: node {name} has no link; name one with a link"
            )));
        }
        Ok(self.host_at(node))
    }

    fn named(&self, argument: &str, name: &str) -> Result<NodeId, Failure> {
        let topology = self.topology();
        topology.node(name).ok_or_else(|| {
            let known = topology.nodes().map(|it| topology.node_name(it));
            Failure::unknown(argument, name, known)
        })
    }

    fn wait(&mut self, text: &str) -> Result<(usize, u16), Failure> {
        let parts = text.rsplit_once(':');
        let parsed = parts.and_then(|(name, port)| Some((name, port.parse::<u16>().ok()?)));
        match parsed {
            Some((name, port)) if port > 0 => Ok((self.named_host("--wait-for", name)?, port)),
            _ => Err(Failure::Usage(format!(
                "--wait-for: found {text:?}; write NODE:PORT, with a port of 1 to 65535"
            ))),
        }
    }

    fn capture(&self, text: &str) -> Result<(NodeId, LinkId, String), Failure> {
        let parts = text.split_once('=');
        let parts = parts.and_then(|(place, file)| Some((place.split_once('@')?, file)));
        let Some(((node, link), file)) = parts else {
            return Err(Failure::Usage(format!(
                "--capture: found {text:?}; write NODE@LINK=FILE"
            )));
        };
        let at = self.named("--capture", node)?;
        let topology = self.topology();
        let Some(id) = topology.link(link) else {
            let known = topology.links().map(|it| topology.link_name(it));
            return Err(Failure::unknown("--capture", link, known));
        };
        topology
            .address(at, id, AddressFamily::V4)
            .map_err(|error| Failure::Usage(format!("--capture: {error}")))?;
        Ok((at, id, file.to_owned()))
    }

    /// Range of the numbers of hosts.
    pub fn hosts(&self) -> std::ops::Range<usize> {
        0..self.hosts.len()
    }

    /// The node of a host.
    pub fn node(&self, host: usize) -> NodeId {
        self.hosts[host]
    }

    /// The name of a host.
    pub fn name(&self, host: usize) -> &str {
        self.topology().node_name(self.hosts[host])
    }

    /// Number of the host of the main command.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The main command.
    pub fn command(&self) -> &[OsString] {
        &self.command
    }

    /// The background commands.
    pub fn runs(&self) -> &[ExtraCommand] {
        &self.runs
    }

    /// Hosts and ports at which a program must listen before the command starts.
    pub fn waits(&self) -> &[(usize, u16)] {
        &self.waits
    }

    /// Parameters of the namespace of a host.
    pub fn setup(&self, host: usize) -> Setup {
        let node = self.hosts[host];
        let families = [AddressFamily::V4, AddressFamily::V6];
        let addresses = families
            .into_iter()
            .flat_map(|family| self.topology().addresses(node, family));
        let mtu = self.world.largest_packet(node).unwrap_or(USUAL_MTU);
        Setup {
            name: self.name(host).to_owned(),
            addresses: addresses.collect(),
            mtu: u16::try_from(mtu).unwrap_or(u16::MAX),
            hosts: self.names(),
        }
    }

    /// All interfaces of the network: node, link, and addresses.
    fn interfaces(&self) -> impl Iterator<Item = (NodeId, LinkId, [IpAddr; 2])> + '_ {
        let topology = self.topology();
        topology.nodes().flat_map(move |node| {
            topology.links().filter_map(move |link| {
                let v4 = topology.address(node, link, AddressFamily::V4).ok()?;
                let v6 = topology.address(node, link, AddressFamily::V6).ok()?;
                Some((node, link, [v4, v6]))
            })
        })
    }

    /// The content of `/etc/hosts`.
    fn names(&self) -> String {
        let mut out = String::new();
        for (node, link, addresses) in self.interfaces() {
            let name = self.topology().node_name(node);
            let link = self.topology().link_name(link);
            for address in addresses {
                // Writing to a string cannot fail.
                let _ = writeln!(out, "{address} {name} {name}.{link}");
            }
        }
        out
    }

    /// The table of `--dry-run`.
    pub fn addresses(&self) -> String {
        let mut out = String::new();
        for (node, link, [v4, v6]) in self.interfaces() {
            let name = self.topology().node_name(node);
            let link = self.topology().link_name(link);
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{name:<16} {link:<16} {v4:<15} {v6}");
        }
        out
    }

    /// Creates the files of the captures.
    pub fn open_captures(&self) -> Result<Captures, Failure> {
        let open = |(node, link, path): &(NodeId, LinkId, String)| match File::create(path) {
            Ok(file) => Ok((*node, *link, file)),
            Err(error) => Err(Failure::Usage(format!(
                "--capture: cannot write {path}: {error}"
            ))),
        };
        self.captures.iter().map(open).collect()
    }

    /// A function that builds the emulator's world.
    pub fn builder(
        &self,
        captures: Captures,
    ) -> impl FnOnce() -> Result<World, BuildError> + Send + 'static {
        let (spec, seed) = (self.spec.clone(), self.seed);
        move || {
            let built = world::network(&spec, &Standard::default(), None, Seed::new(seed, 0));
            let (mut world, _) = built.map_err(|error| match error {
                WorldError::Build(error) => error,
                // Not reached, because the plan has found all nodes already.
                _ => BuildError::UnknownNode(0),
            })?;
            for (node, link, file) in captures {
                let begun = world.capture(Box::new(BufWriter::new(file)), &[(node, link)]);
                if let Err(CaptureError::Interface(error)) = begun {
                    return Err(error);
                }
            }
            Ok(world)
        }
    }
}

fn build(spec: &Spec, seed: u64) -> Result<(World, [NodeId; 2]), Failure> {
    world::network(spec, &Standard::default(), None, Seed::new(seed, 0))
        .map_err(|error| Failure::Usage(error.to_string()))
}

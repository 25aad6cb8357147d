//! A resolved point: names are resolved and configurations are built once for all replications.

mod sizes;

use std::net::IpAddr;

use anabranch_scenario::checker::Checker;
use anabranch_scenario::diagnostic::Diagnostic;
use anabranch_scenario::measure::{LinkProbe, LinkQuantity};
use anabranch_scenario::quantity::TimeSpan;
use anabranch_scenario::spec::Record;
use anabranch_scenario::tree::SpecNode;
use anabranch_scenario::{Experiment, Metric, Spec, names};
use anabranch_settings::Prepared;
use anabranch_sim::workload::{self as workload_kinds, BoxedWorkload as Workload};
use anabranch_sim::{NodeId, PathFinder};
use anabranch_transport::{Nanos, Probe};
use serde_json::Value;

use crate::flows::{self, FlowIndex, NumberedMember};
use crate::ineffective_settings::{self, KeyJudgement};
use crate::kinds::Standard;
use crate::metric::{self, FlowFacts, IdealTransfer, Life, Measures};
use crate::network::{self, Built, Layout, NetworkError, Parts, multihoming, routes};
use crate::proxy;
use crate::transport::{self, SharedTransport};
use crate::workload;

/// Resolved names and built configurations of a point.
#[derive(Debug)]
pub struct ResolvedPoint {
    /// Transports of the flows, in the order of the spec.
    pub transports: Vec<SharedTransport>,
    /// Workloads of the flows, in the order of the spec.
    pub workloads: Vec<Prepared<Workload, workload_kinds::Context>>,
    /// Members of all flows, in the order of their numbers.
    pub members: Vec<PlannedMember>,
    /// Metrics of the runs.
    pub measures: Measures,
    /// Addresses and routes of the network.
    pub layout: Layout,
    /// Prepared kinds of the links.
    pub parts: Parts,
    /// Flows of the spec, as loss models need them.
    pub known: FlowIndex,
    /// Proxies, each with the name of its node.
    pub proxies: Vec<(String, proxy::BoxedProxy)>,
    /// Transport settings that have no effect at this point.
    pub idle: Vec<UnusedSetting>,
    /// Results of the check of keys of links, cells and workloads for an effect.
    pub key_judgements: Vec<KeyJudgement>,
}

/// A setting of a flow's transport that has no effect because of the other settings.
#[derive(Clone, Debug)]
pub struct UnusedSetting {
    /// Index of the flow in the spec, from 0.
    pub flow: usize,
    /// Name of the setting.
    pub setting: String,
    /// Problem to report if the setting has no effect at any point; it states the setting that
    /// would be required.
    pub problem: Diagnostic,
}

/// A member of a flow, with its resolved nodes and paths.
#[derive(Clone, Debug)]
pub struct PlannedMember {
    /// Index of the flow in the spec, from 0.
    pub flow: usize,
    /// Index of the member in the flow, from 0.
    pub index: u32,
    /// Name of the member.
    pub name: String,
    /// Nodes of the source and of the sink.
    pub nodes: [NodeId; 2],
    /// Pairs of source and sink addresses that the member uses, with the primary path first.
    pub paths: Vec<[IpAddr; 2]>,
    /// Outages of the links at both ends of each path.
    pub outages: Vec<[crate::transport::Outages; 2]>,
    /// Delay and rate of the member's path without other traffic, if known.
    pub alone: Option<IdealTransfer>,
}

impl ResolvedPoint {
    /// Resolves a spec whose parts are valid, for the experiment with this index. `root` is the
    /// tree from which it was decoded.
    ///
    /// # Errors
    /// All contradictions between parts of the spec.
    pub fn new(
        spec: &Spec,
        experiment: usize,
        kinds: &Standard,
        root: &SpecNode,
    ) -> Result<Self, Vec<Diagnostic>> {
        let mut checker = Checker::new(root);
        let c = &mut checker;
        let transports = transports(c, spec, kinds);
        let proxies = proxies(c, spec);
        let measures = match &transports {
            Some(transports) => measures(c, spec, experiment, kinds, transports),
            None => Measures::default(),
        };
        let transports = transports.filter(|_| checker.is_content());
        let Some(transports) = transports else {
            return Err(checker.into_problems());
        };
        let known = flows::known(spec, &transports);
        let built = build(&mut checker, spec, kinds, &known, &transports);
        let (Some((built, layout, parts)), true) = (built, checker.is_content()) else {
            return Err(checker.into_problems());
        };
        let resolved = members(&built, spec, kinds, &transports).and_then(|members| {
            let workloads = spec.flows.iter();
            let workloads = workloads.map(|flow| kinds.prepare_workload(&flow.workload));
            Ok((members, workloads.collect::<Result<_, _>>()?))
        });
        if let Ok((members, _)) = &resolved {
            let checker = &mut checker;
            sizes::check(checker, &built, spec, kinds, &transports, members);
        }
        if !checker.is_content() {
            return Err(checker.into_problems());
        }
        match resolved {
            Ok((members, workloads)) => Ok(Self {
                idle: idle_settings(&checker, spec, &transports, &members),
                key_judgements: ineffective_settings::judge(&checker, spec, kinds),
                transports,
                workloads,
                members,
                measures,
                layout,
                parts,
                known,
                proxies,
            }),
            Err(error) => {
                checker.problem("flow", error.to_string());
                Err(checker.into_problems())
            }
        }
    }
}

/// Checks the addresses and routes of a network without flows.
pub fn check_network(spec: &Spec, kinds: &Standard, root: &SpecNode) -> Vec<Diagnostic> {
    let mut checker = Checker::new(root);
    build(&mut checker, spec, kinds, &flows::known(spec, &[]), &[]);
    checker.into_problems()
}

/// Builds the transports of all flows and checks their workloads; `None` if one cannot be built.
fn transports(c: &mut Checker<'_>, spec: &Spec, kinds: &Standard) -> Option<Vec<SharedTransport>> {
    let mut all = Vec::with_capacity(spec.flows.len());
    for (index, flow) in spec.flows.iter().enumerate() {
        let path = format!("flow.{index}");
        let at = format!("{path}.transport");
        let Some(built) = kinds.transports.build(c, &flow.transport, flow.ip, &at) else {
            continue;
        };
        if built.is_multihomed() && !flow.paths.is_empty() {
            c.problem(
                &format!("{at}.multihomed"),
                "found both `paths` and `multihomed`; `paths` says which interfaces are used",
            );
        }
        if built.needs_sound_links() && network::corrupts(spec) {
            c.problem(
                &at,
                "found packets without a checksum and links that corrupt packets; use one of them, since only a checksum detects corruption",
            );
        }
        if flow.resume.is_some() && !built.resumes() {
            c.problem(
                &format!("{path}.resume"),
                "found a name; this transport has no Careful Resume (RFC 9959); allowed: SCTP without RSCTP, and TCP",
            );
        }
        workload::check(c, kinds, spec, flow, &*built, &path);
        all.push(built);
    }
    (all.len() == spec.flows.len()).then_some(all)
}

/// Transport settings of all flows that have no effect.
fn idle_settings(
    c: &Checker<'_>,
    spec: &Spec,
    transports: &[SharedTransport],
    members: &[PlannedMember],
) -> Vec<UnusedSetting> {
    // For a flow without members the number of paths is unknown, so the maximum is assumed.
    let most = |flow: Option<usize>| {
        let own = members
            .iter()
            .filter(|it| flow.is_none_or(|flow| it.flow == flow));
        own.map(|it| it.paths.len()).max().unwrap_or(0)
    };
    let flows = spec.flows.iter().zip(transports).enumerate();
    flows
        .filter_map(|(flow, (written, made))| {
            let transport::InvalidSetting { setting, message } =
                made.idle([most(Some(flow)), most(None)])?;
            let key = written.transport.key_of(&setting);
            let problem = c.located(&format!("flow.{flow}.transport.{key}"), message);
            Some(UnusedSetting {
                flow,
                setting,
                problem,
            })
        })
        .collect()
}

/// Builds the proxies of all nodes; each member of a group gets a separate proxy.
fn proxies(c: &mut Checker<'_>, spec: &Spec) -> Vec<(String, proxy::BoxedProxy)> {
    let mut all = Vec::new();
    for (index, node) in spec.nodes.iter().enumerate() {
        let Some(written) = &node.proxy else {
            continue;
        };
        for member in 0..node.count.0 {
            let name = names::member_name(&node.name, node.count.0, member);
            let made = proxy::build(c, written, &format!("node.{index}.proxy"));
            all.extend(made.map(|made| (name, made)));
        }
    }
    all
}

/// Builds the metrics of an experiment, and checks each against its flow.
fn measures(
    c: &mut Checker<'_>,
    spec: &Spec,
    experiment: usize,
    kinds: &Standard,
    transports: &[SharedTransport],
) -> Measures {
    let Some(own) = spec.experiments.get(experiment) else {
        return Measures::default();
    };
    let wanted = spec.measures_of(own);
    let duration = own.duration.unwrap_or(spec.world.duration);
    for (index, flow) in spec.flows.iter().enumerate() {
        let start = flow.start.earliest();
        // A start after the end of the run is accepted, because it is a way to omit a flow.
        if let Some(stop) = flow.stop.filter(|stop| *stop <= start && start < duration) {
            let message = format!("found {stop}, and a start at {start}; nothing would be offered");
            c.problem(&format!("flow.{index}.stop"), message);
        }
    }
    for (index, metric) in wanted.iter().enumerate() {
        if let Some((key, end)) = end_after(metric, duration) {
            let path = path_of(spec, own, experiment, index);
            let message = format!("found a window up to {end} in a run of {duration}");
            c.problem(&format!("{path}.{key}"), message);
        }
    }
    let measures = Measures::new(&kinds.metrics, &wanted);
    for (index, metric) in measures.all().enumerate() {
        let path = path_of(spec, own, experiment, index);
        if let Err(message) = check_measure(spec, kinds, transports, metric) {
            c.problem(&format!("{path}.flow"), message);
        }
    }
    for (index, record) in own.records.iter().enumerate() {
        check_record(
            c,
            spec,
            kinds,
            record,
            &format!("experiment.{experiment}.record.{index}"),
        );
    }
    measures
}

/// Checks that the flow of a record supports each of its probes.
fn check_record(c: &mut Checker<'_>, spec: &Spec, kinds: &Standard, record: &Record, path: &str) {
    if record.constellation.is_some() && record.window.is_some() {
        let message = "a constellation is recorded for the whole run, because its stations and links are recorded at the start; leave it out";
        c.problem(&format!("{path}.window"), message);
    }
    let in_bins = |name: &String| match LinkProbe::from_name(name) {
        Some(probe) => probe.quantity == LinkQuantity::Throughput,
        None => Probe::from_name(name).is_none(),
    };
    if record.bin.is_some() && !record.probes.iter().any(in_bins) {
        let message = "it has no effect on these probes, which are not counted in bins as `goodput` and `throughput` are; leave it out";
        c.problem(&format!("{path}.bin"), message);
    }
    let group = record
        .flow
        .as_deref()
        .map(|it| names::MemberSelection::parse(it).group);
    let mut flows = spec.flows.iter();
    let flow = flows.find(|flow| group == Some(&*flow.name));
    let Some(kind) = flow.and_then(|flow| kinds.transports.kind(&flow.transport)) else {
        return;
    };
    for (index, name) in record.probes.iter().enumerate() {
        let probe = Probe::from_name(name);
        if let Some(message) = probe.and_then(|probe| kind.refuses(probe)) {
            c.problem(&format!("{path}.probes.{index}"), message);
        }
    }
}

/// Key of the metric with this index, which counts the metrics of the file and then those of the
/// experiment.
fn path_of(spec: &Spec, own: &Experiment, experiment: usize, index: usize) -> String {
    let shared: &[Metric] = &spec.measures;
    match index.checked_sub(shared.len()) {
        Some(index) if !own.measures.is_empty() => {
            format!("experiment.{experiment}.measure.{index}")
        }
        _ => format!("measure.{index}"),
    }
}

/// Key and end time of a window that ends after the run. Such a window is an error, because a mean
/// over the window would be too small. Windows relative to the start of each flow may end later.
fn end_after(metric: &Metric, duration: TimeSpan) -> Option<(String, TimeSpan)> {
    let parameters = &metric.parameters;
    if parameters.get("clock").and_then(Value::as_str) == Some("flow") {
        return None;
    }
    let one = parameters.get("window").map(|it| ("window".to_owned(), it));
    let several = parameters.get("windows").and_then(Value::as_object);
    let several = several.into_iter().flatten();
    let several = several.map(|(name, it)| (format!("windows.{name}"), it));
    one.into_iter().chain(several).find_map(|(key, window)| {
        let end: TimeSpan = window.get(1)?.as_str()?.parse().ok()?;
        (end > duration).then_some((key, end))
    })
}

fn check_measure(
    spec: &Spec,
    kinds: &Standard,
    transports: &[SharedTransport],
    metric: &dyn metric::Metric,
) -> Result<(), String> {
    let counts = metric.counts();
    let watched = metric.flow().or(counts.map(|(flow, _)| flow));
    if metric.needs().packets {
        check_packets(spec, kinds, metric)?;
    }
    let watched = watched.map(|name| names::MemberSelection::parse(name).group);
    let mut flows = spec.flows.iter().zip(transports);
    let Some((flow, built)) = flows.find(|(flow, _)| watched == Some(&*flow.name)) else {
        return Ok(());
    };
    let facts = workload::facts(kinds, flow, &**built);
    let kind = kinds.transports.kind(&flow.transport);
    let (Some(facts), Some(kind)) = (facts, kind) else {
        return Ok(());
    };
    // The lifetime is arbitrary, because the probes of observers do not depend on it.
    let life = Life {
        start: 0,
        end: Nanos::MAX,
        alone: None,
    };
    let observers = metric.observers(life);
    let of_observers = observers.iter().flat_map(|it| it.probes().iter().copied());
    let mut probes = of_observers.chain(counts.map(|(_, probe)| probe));
    if let Some(message) = probes.find_map(|probe| kind.refuses(probe)) {
        return Err(message);
    }
    metric.check(&FlowFacts {
        flow,
        workload: facts,
        messages: kind.messages,
        window: kind.window,
    })
}

/// Checks that a metric of packets can recognise data packets of its flows; encrypted packets do
/// not show whether they carry data. The flow is found by the series of the metric, because such a
/// metric has no observers for its flow.
fn check_packets(spec: &Spec, kinds: &Standard, metric: &dyn metric::Metric) -> Result<(), String> {
    for name in metric.names() {
        let group = names::MemberSelection::parse(&name.series).group;
        let flow = spec.flows.iter().find(|flow| flow.name == group);
        let kind = flow.and_then(|flow| kinds.transports.kind(&flow.transport));
        if let Some(kind) = kind.filter(|kind| !kind.shows_data) {
            let title = kind.title();
            return Err(format!(
                "{title} does not show which of its packets carry data; what is measured of packets needs another transport"
            ));
        }
    }
    Ok(())
}

/// Builds the network with its addresses and routes, and reports errors.
fn build(
    c: &mut Checker<'_>,
    spec: &Spec,
    kinds: &Standard,
    known: &FlowIndex,
    transports: &[SharedTransport],
) -> Option<(Built, Layout, Parts)> {
    let parts = Parts::new(spec, kinds).map_err(NetworkError::from);
    let built = parts.and_then(|parts| {
        let built = network::build(spec, &parts, &known.traffic())?;
        Ok((built, parts))
    });
    let (mut built, parts) = match built {
        Ok(both) => both,
        Err(error) => {
            c.problem("link", error.to_string());
            return None;
        }
    };
    let layout = match layout(&mut built, spec, transports) {
        Ok(layout) => layout,
        Err((path, error)) => {
            c.problem(&path, error.to_string());
            return None;
        }
    };
    if !spec.routes.is_empty()
        && let Some((path, error)) = routes::check(&built.topology, spec)
    {
        c.problem(&path, error);
    }
    Some((built, layout, parts))
}

/// Resolves the addresses and routes, and applies them to the topology; on error returns the key
/// and the message.
fn layout(
    built: &mut Built,
    spec: &Spec,
    transports: &[SharedTransport],
) -> Result<Layout, (String, NetworkError)> {
    let routes = routes::resolve(built, spec);
    let routes = routes.map_err(|error| ("route".to_owned(), error.into()))?;
    let several = |(flow, transport): (&anabranch_scenario::Flow, &SharedTransport)| {
        flow.paths.len() > 1 || transport.is_multihomed()
    };
    let flow = spec.flows.iter().zip(transports).rposition(several);
    let addresses = multihoming::resolve(built, spec, transports).map_err(|error| {
        let path = flow.map_or("flow".to_owned(), |flow| format!("flow.{flow}.paths"));
        (path, error)
    })?;
    let layout = Layout { routes, addresses };
    layout.apply(&mut built.topology).map_err(|error| {
        let node = spec.nodes.iter();
        let node = node.into_iter().position(|node| !node.addresses.is_empty());
        let path = node.map_or("node".to_owned(), |node| format!("node.{node}.addresses"));
        (path, error.into())
    })?;
    Ok(layout)
}

fn members(
    built: &Built,
    spec: &Spec,
    kinds: &Standard,
    transports: &[SharedTransport],
) -> Result<Vec<PlannedMember>, NetworkError> {
    let mut ways = PathFinder::new(&built.topology);
    let member = |member: NumberedMember<'_>| {
        let nodes = network::ends(&built.topology, spec, &member)?;
        let paths = multihoming::paths(built, spec, transports, &member)?;
        let outages = multihoming::outages(built, spec, transports, &member)?;
        let path = transport::first_path(&paths);
        let path = [path.local, path.remote];
        Ok(PlannedMember {
            flow: member.place,
            index: member.index,
            name: member.name(),
            nodes,
            alone: network::ideal_transfer::ideal_transfer(
                &mut ways,
                spec,
                kinds,
                &built.links,
                nodes,
                path,
            ),
            paths,
            outages,
        })
    };
    flows::members(spec).map(member).collect()
}

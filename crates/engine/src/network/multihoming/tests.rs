use std::net::IpAddr;

use anabranch_scenario::checker::Checker;
use anabranch_scenario::tree::SpecNode;

use super::*;
use crate::flows::known;
use crate::kinds::Standard;
use crate::network::{Layout, Parts, build};
use crate::plan::{Plan, PlanRequest};
use crate::transport::Transports;

/// A spec of two senders and one receiver with two interfaces each, and two routers; `flows` is
/// appended to its text.
fn spec(flows: &str) -> Result<Spec, String> {
    let text = format!(
        r#"
anabranch = 1
name = "homes"
[world]
duration = "1 s"
[[node]]
name = "sender"
count = 2
[[node]]
name = "router"
count = 2
[[node]]
name = "receiver"
[[link]]
name = "near-1"
between = ["sender", "router[0]"]
rate = "1 Mbit/s"
delay = "1 ms"
[[link]]
name = "near-2"
between = ["sender", "router[1]"]
rate = "1 Mbit/s"
delay = "1 ms"
[[link]]
name = "far-1"
between = ["router[0]", "receiver"]
rate = "1 Mbit/s"
delay = "1 ms"
[[link]]
name = "far-2"
between = ["router[1]", "receiver"]
rate = "1 Mbit/s"
delay = "1 ms"
{flows}
"#
    );
    let request = PlanRequest {
        file: "homes.toml".to_owned(),
        text,
        seed: 1,
        ..PlanRequest::default()
    };
    let plan = Plan::new(request).map_err(|error| error.to_string())?;
    Ok(plan.spec)
}

fn flow(name: &str, rest: &str) -> String {
    format!(
        r#"
[[flow]]
name = "{name}"
to = "receiver"
workload = {{ kind = "bulk" }}
{rest}
"#
    )
}

const CROSSWISE: &str =
    r#"paths = [{ from = "near-2", to = "far-2" }, { from = "near-1", to = "far-1" }]"#;
const SCTP: &str = r#"transport = { protocol = "sctp" }"#;

fn both(paths: &str) -> String {
    flow(
        "both",
        &format!("from = \"sender\"\ncount = 2\n{paths}\n{SCTP}"),
    )
}

fn transports(spec: &Spec) -> Vec<SharedTransport> {
    let root = SpecNode::parse("").expect("an empty file");
    let flows = spec.flows.iter();
    flows
        .map(|flow| {
            let mut c = Checker::new(&root);
            let built = Transports::default().build(&mut c, &flow.transport, flow.ip, "");
            built.expect("a transport")
        })
        .collect()
}

/// The network of a spec, with its addresses.
fn built(spec: &Spec) -> Built {
    let transports = transports(spec);
    let traffic = known(spec, &transports).traffic();
    let parts = Parts::new(spec, &Standard::default()).expect("parts");
    let mut built = build(spec, &parts, &traffic).expect("a topology");
    let layout = Layout {
        addresses: resolve(&built, spec, &transports).expect("addresses"),
        ..Layout::default()
    };
    layout.apply(&mut built.topology).expect("they are free");
    built
}

/// Address pairs of each member of each flow.
fn pairs_of(spec: &Spec) -> Vec<Vec<[IpAddr; 2]>> {
    let built = built(spec);
    let transports = transports(spec);
    members(spec)
        .map(|member| paths(&built, spec, &transports, &member).expect("paths"))
        .collect()
}

fn network(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets()[..3].to_vec(),
        IpAddr::V6(_) => panic!("IPv4 is used"),
    }
}

#[test]
fn paired_interfaces_share_a_network_and_no_others_do() {
    let spec = spec(&both(CROSSWISE)).expect("a spec");
    let members = pairs_of(&spec);
    let mut all: Vec<IpAddr> = Vec::new();
    for pairs in &members {
        let networks: Vec<_> = pairs.iter().map(|pair| pair.map(network)).collect();
        assert_eq!(networks[0][0], networks[0][1]);
        assert_eq!(networks[1][0], networks[1][1]);
        assert_ne!(networks[0][0], networks[1][0]);
        all.extend(pairs.iter().flatten());
    }
    // Both flows use the same two interfaces of the receiver, so there are two networks with
    // interfaces of both flows, and six addresses in total.
    assert_eq!(members[0][0][1], members[1][0][1]);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 6);
}

#[test]
fn the_first_path_named_is_the_first() {
    let named = pairs_of(&spec(&both(CROSSWISE)).expect("a spec"));
    let in_order = pairs_of(
        &spec(&flow(
            "both",
            "from = \"sender\"\ncount = 2\ntransport = { protocol = \"sctp\", multihomed = true }",
        ))
        .expect("a spec"),
    );
    assert_eq!(named[0].len(), 2);
    // The flow without `paths` uses the same interfaces in the opposite order. Networks should be
    // numbered in the order of the paths.
    assert_eq!(network(named[0][0][0]), network(in_order[0][0][0]));
    let address = |spec: &Spec| {
        let built = built(spec);
        let node = built.topology.node("sender[0]").expect("a node");
        let link = built.topology.link("near-2[0]").expect("a link");
        built
            .topology
            .address(node, link, AddressFamily::V4)
            .expect("an address")
    };
    assert_eq!(
        address(&spec(&both(CROSSWISE)).expect("a spec")),
        named[0][0][0]
    );
}

#[test]
fn a_host_has_each_network_once() {
    // One flow uses near-1 with far-1, and the other near-2 with far-1, so both interfaces of the
    // sender would be in one network.
    let straight =
        r#"paths = [{ from = "near-1", to = "far-1" }, { from = "near-2", to = "far-2" }]"#;
    let crossed =
        r#"paths = [{ from = "near-2", to = "far-1" }, { from = "near-1", to = "far-2" }]"#;
    let one =
        |name: &str, paths: &str| flow(name, &format!("from = \"sender[0]\"\n{paths}\n{SCTP}"));
    let flows = one("a", straight) + &one("b", crossed);
    let error = spec(&flows).expect_err("no addresses");
    assert!(error.contains("two interfaces of \"sender[0]\""), "{error}");
    assert!(error.contains("`flow.b.paths`"), "{error}");
}

#[test]
fn many_small_networks_and_few_large_ones_find_space() {
    let first = |networks, hosts| {
        Range::new(networks, hosts).map(|range| {
            let last = range.addresses(networks - 1, hosts - 1)[0];
            (range.addresses(0, 0)[0].to_string(), last.to_string())
        })
    };
    let text = |a: &str, b: &str| Ok((a.to_owned(), b.to_owned()));
    assert_eq!(first(2, 2), text("172.16.0.1", "172.16.1.2"));
    assert_eq!(first(20_000, 2), text("172.16.0.1", "172.17.56.126"));
    assert_eq!(first(2, 10_001), text("172.16.0.1", "172.16.103.17"));
    assert!(first(20_000, 10_000).is_err());
}

#[test]
fn a_flow_speaks_ipv6_over_networks_of_its_own() {
    let v6 = both(CROSSWISE).replace("count = 2\n", "count = 2\nip = \"ipv6\"\n");
    let members = pairs_of(&spec(&v6).expect("a spec"));
    let shown = |pair: [IpAddr; 2]| pair.map(|address| address.to_string());
    assert_eq!(
        [shown(members[0][0]), shown(members[0][1])],
        [
            ["fd00:ac10::1", "fd00:ac10::2"],
            ["fd00:ac10:0:1::1", "fd00:ac10:0:1::2"]
        ]
    );
}

/// A spec in which a node has explicit addresses at two links.
fn addressed(far: &str) -> String {
    let text = both(CROSSWISE);
    format!(
        r#"
[[node]]
name = "host"
addresses = {{ extra = "192.0.2.9, 2001:db8::9" }}
[[node]]
name = "peer"
addresses = {{ extra = "{far}" }}
[[link]]
name = "extra"
between = ["host", "peer"]
rate = "1 Mbit/s"
delay = "1 ms"
[[flow]]
name = "given"
from = "host"
to = "peer"
ip = "ipv6"
workload = {{ kind = "bulk" }}
transport = {{ protocol = "tcp" }}
{text}"#
    )
}

#[test]
fn an_interface_has_the_address_it_is_given() {
    let members = pairs_of(&spec(&addressed("2001:db8::7")).expect("a spec"));
    let shown: Vec<String> = members[0][0].iter().map(IpAddr::to_string).collect();
    assert_eq!(shown, ["2001:db8::9", "2001:db8::7"]);
}

#[test]
fn an_address_is_given_once() {
    let error = spec(&addressed("192.0.2.9")).expect_err("it is the host's");
    assert!(error.contains("`node.peer.addresses"), "{error}");
    assert!(
        error.contains("192.0.2.9 is already the address of \"host\" at \"extra\""),
        "{error}"
    );
    // This is the automatic address at the first link.
    let error = spec(&addressed("10.0.0.1")).expect_err("it is taken");
    assert!(error.contains("10.0.0.1 is already in use"), "{error}");
}

//! Workloads of flows: default message sizes, and checks against the transports.

use anabranch_scenario::checker::Checker;
use anabranch_scenario::limits::MAX_MESSAGES;
use anabranch_scenario::quantity::Size;
use anabranch_scenario::transport::TransportKind;
use anabranch_scenario::validate::limits::active_time;
use anabranch_scenario::vocabulary::names_of;
use anabranch_scenario::{Flow, Spec};
use anabranch_sim::workload::Facts;

use crate::kinds::Standard;
use crate::transport::{Transport, sctp};

/// Static properties of a checked workload over a transport; `None` if it cannot be built.
pub fn facts(kinds: &Standard, flow: &Flow, transport: &dyn Transport) -> Option<Facts> {
    let rng = anabranch_sim::Seed::default().stream("facts");
    let made = kinds.workload(&flow.workload, rng, transport.packet());
    Some(made.ok()?.facts())
}

/// Checks that the transport of a flow can carry its workload. The transport and the workload are
/// already valid by themselves.
pub fn check(
    c: &mut Checker<'_>,
    kinds: &Standard,
    spec: &Spec,
    flow: &Flow,
    transport: &dyn Transport,
    path: &str,
) {
    let facts = facts(kinds, flow, transport);
    let (Some(facts), Some(kind)) = (facts, kinds.transports.kind(&flow.transport)) else {
        return;
    };
    let path = format!("{path}.workload");
    check_streams(c, kinds, flow, &path);
    check_count(c, &facts, spec, flow, &path);
    let buffer = transport.receive_buffer();
    check_largest(c, &facts, kind, buffer, flow, &path);
    let name = kind.title();
    if !kind.answers && facts.answered {
        let others = names_of(kinds, |kind| kind.answers);
        let message =
            format!("{name} carries no answers; a request and its response need {others}");
        c.problem(&path, message);
    } else if !kind.window && !facts.paced {
        let message =
            format!("{name} has no window that could pace a bulk workload; use `cbr` or `on-off`");
        c.problem(&path, message);
    }
}

/// Checks that the association has all streams on which messages are sent. Otherwise a message
/// could not be sent, and would block all later messages.
fn check_streams(c: &mut Checker<'_>, kinds: &Standard, flow: &Flow, path: &str) {
    if !sctp::ENTRY.kind.is_of(&flow.transport) {
        return;
    }
    let given = flow.workload.values(&kinds.workloads);
    let of = |name: &str| given.iter().find(|(known, _)| known == name);
    let (key, most) = match &*flow.workload.kind {
        "mixed" => {
            let large = of("large_streams").and_then(|(_, datum)| datum.whole());
            ("large_streams", large.unwrap_or(1))
        }
        "trace" => {
            let messages = of("messages").map_or(&[][..], |(_, datum)| datum.items());
            let named = messages.iter().filter_map(|it| it.key("stream")?.whole());
            ("messages", named.max().unwrap_or(0))
        }
        _ => return,
    };
    let streams = u64::from(sctp::config(&flow.transport).outbound_streams);
    if most >= streams {
        let message = format!(
            "found messages on stream {most}; `streams` of the transport negotiates {streams}, which are 0 to {}; set `streams = {}`",
            streams - 1,
            most + 1
        );
        c.problem(&format!("{path}.{key}"), message);
    }
}

/// Checks that the number of messages in the longest run does not exceed the limit.
fn check_count(c: &mut Checker<'_>, facts: &Facts, spec: &Spec, flow: &Flow, path: &str) {
    let Some(gap) = facts.gap else { return };
    let active = active_time(spec, flow);
    let in_time = u128::from(active.0) / u128::from(gap.max(1));
    let messages = in_time.min(facts.messages.map_or(u128::MAX, u128::from));
    if messages > MAX_MESSAGES {
        let key = ["rate", "every"];
        let key = key
            .iter()
            .find(|key| flow.workload.parameters.contains_key(**key));
        let path = key.map_or_else(|| path.to_owned(), |key| format!("{path}.{key}"));
        let message = format!(
            "found {messages} messages in {active}; a member of a flow offers at most {MAX_MESSAGES} in a run"
        );
        c.problem(&path, message);
    }
}

/// Checks that no message is larger than the transport can carry in one piece.
fn check_largest(
    c: &mut Checker<'_>,
    facts: &Facts,
    kind: &TransportKind,
    buffer: u64,
    flow: &Flow,
    path: &str,
) {
    let bulk = !facts.paced && !flow.workload.parameters.contains_key("message");
    if bulk && !facts.answered {
        // A bulk workload whose messages fill packets never exceeds the limit.
        return;
    }
    match kind.largest_message {
        Some(most) if facts.sizes[1] > most => {
            let (name, largest) = (kind.title(), Size(facts.sizes[1]));
            let message =
                format!("found a message of {largest}; {name} carries at most {most} B in one");
            c.problem(path, message);
        }
        None if kind.messages => {
            let largest = facts.pieces()[1];
            if largest > buffer {
                let message = format!(
                    "found a message of {}; the receive buffer of {} could never hold it (set transport.receive_buffer)",
                    Size(largest),
                    Size(buffer)
                );
                c.problem(path, message);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::{Plan, PlanRequest};

    /// Plans a run of one hour with this workload.
    fn plan(workload: &str) -> Result<Plan, String> {
        let text = format!(
            "anabranch = 1\nname = \"t\"\nworld = {{ duration = \"1 h\" }}\nnode = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n\
             link = [{{ name = \"wire\", between = [\"a\", \"b\"], rate = \"1 Gbit/s\", delay = \"1 ms\" }}]\n\
             [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\ntransport = {{ protocol = \"tcp\" }}\nworkload = {{ {workload} }}\n"
        );
        let request = PlanRequest {
            file: "t.toml".into(),
            text,
            ..PlanRequest::default()
        };
        Plan::new(request).map_err(|error| error.to_string())
    }

    const SIZE: &str = "size = { kind = \"fixed\", bytes = \"100 kB\" }";

    #[test]
    fn a_workload_that_ends_by_itself_offers_no_more_than_it_has() {
        for workload in [
            format!("kind = \"transfers\", arrivals = \"fixed\", every = \"1 us\", count = 1, {SIZE}"),
            "kind = \"cbr\", rate = \"1 Gbit/s\", message = \"100 B\", count = 5".to_owned(),
            // The workload is on for one millisecond in each second.
            "kind = \"on-off\", rate = \"10 Gbit/s\", message = \"100 B\", on = \"1 ms\", off = \"999 ms\"".to_owned(),
        ] {
            plan(&workload).unwrap_or_else(|error| panic!("{workload}: {error}"));
        }
    }

    #[test]
    fn too_many_messages_are_refused_whichever_class_they_are_of() {
        for workload in [
            format!("kind = \"transfers\", arrivals = \"fixed\", every = \"1 us\", {SIZE}"),
            format!("kind = \"transfers\", every = \"1 us\", count = 2_000_000_000, {SIZE}"),
            "kind = \"cbr\", rate = \"1 Gbit/s\", message = \"100 B\"".to_owned(),
            "kind = \"on-off\", rate = \"10 Gbit/s\", message = \"100 B\", on = \"999 ms\", off = \"1 ms\"".to_owned(),
        ] {
            let error = plan(&workload).expect_err(&workload);
            assert!(error.contains("offers at most 1000000000"), "{error}");
        }
    }
}

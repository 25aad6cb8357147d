//! Tests of links in a world: directions, values over time, jitter, marks and routes must be as in
//! the spec.

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::NullSink;
use anabranch_engine::world;
use anabranch_scenario::records::RunRecord;

fn plan(text: &str) -> Result<Plan, String> {
    let request = PlanRequest::new(
        "links.toml",
        format!("anabranch = 1\nname = \"links\"\nworld = {{ duration = \"10 s\" }}\n{text}"),
    )
    .with(|it| {
        it.seed = 1;
    });
    Plan::new(request).map_err(|error| error.to_string())
}

fn run(text: &str) -> RunRecord {
    let plan = plan(text).unwrap_or_else(|error| panic!("{error}"));
    world::run(&PlannedRun::all(&plan)[0], 1, &mut NullSink, &[]).expect("a run")
}

fn value(record: &RunRecord, series: &str) -> f64 {
    let found = record.metrics.iter().find(|value| value.series == series);
    found
        .unwrap_or_else(|| panic!("{series}: {:?}", record.metrics))
        .value
}

/// Two nodes, a link with the given keys, and flows of 1000 B messages (1028 B on the wire) at
/// constant rates.
fn pair(link: &str, flows: &[(&str, [&str; 2], &str)], measure: &str) -> String {
    let flows: String = flows
        .iter()
        .map(|(name, [from, to], rate)| {
            format!(
                "[[flow]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\ntransport = {{ protocol = \"udp\" }}\n\
                 workload = {{ kind = \"cbr\", rate = \"{rate}\", message = \"1000 B\" }}\n"
            )
        })
        .collect();
    format!(
        "node = [{{ name = \"a\" }}, {{ name = \"b\" }}]\nmeasure = [{measure}]\n\
         [[link]]\nname = \"wire\"\nbetween = [\"a\", \"b\"]\n{link}\n{flows}"
    )
}

const GOODPUT: &str =
    "{ metric = \"goodput\", flow = \"there\" }, { metric = \"goodput\", flow = \"back\" }";

#[test]
fn each_direction_has_its_own_rate() {
    let text = pair(
        "rate = { forward = \"1 Mbit/s\", backward = \"102.8 kbit/s\" }\ndelay = \"1 ms\"\nqueue = \"5 packets\"",
        &[
            ("there", ["a", "b"], "400 kbit/s"),
            ("back", ["b", "a"], "400 kbit/s"),
        ],
        GOODPUT,
    );
    let record = run(&text);
    let there = value(&record, "there");
    let back = value(&record, "back");
    // A quarter of the messages should arrive: 1028 bytes at 102.8 kbit/s take 80 ms, which are
    // 12.5 messages per second.
    assert!((back / there - 0.25).abs() < 0.01, "{there} {back}");
}

#[test]
fn each_direction_has_its_own_delay_and_it_may_change() {
    let delay = "{ metric = \"mean_one_way_delay\", flow = \"there\" }, { metric = \"mean_one_way_delay\", flow = \"back\" }";
    let text = pair(
        "rate = \"1 Gbit/s\"\ndelay = { forward = { steps = [[\"0 s\", \"10 ms\"], [\"5 s\", \"30 ms\"]] }, \
         backward = { kind = \"jitter\", delay = \"5 ms\", jitter = \"4 ms\", allow_reordering = true } }",
        &[
            ("there", ["a", "b"], "800 kbit/s"),
            ("back", ["b", "a"], "8 Mbit/s"),
        ],
        delay,
    );
    let record = run(&text);
    let unit = &record.metrics[0].unit;
    let scale = if unit == "ms" { 1.0 } else { 1000.0 };
    let there = value(&record, "there") * scale;
    let back = value(&record, "back") * scale;
    // Each delay applies for half of the time; in the other direction the mean is 5 ms plus 2 ms of
    // jitter, over 10,000 packets.
    assert!((there - 20.0).abs() < 0.2, "{there} {unit}");
    assert!((back - 7.0).abs() < 0.1, "{back} {unit}");
}

#[test]
fn utilization_takes_the_mean_rate_of_its_window() {
    let text = pair(
        "rate = { steps = [[\"0 s\", \"3 Mbit/s\"], [\"5 s\", \"1 Mbit/s\"]] }\ndelay = \"1 ms\"",
        &[("there", ["a", "b"], "800 kbit/s")],
        "{ metric = \"link_utilization\", link = \"wire\", counting = \"wire\" }",
    );
    // With headers the flow uses 822.4 kbit/s, which are 41.12 % of the mean rate of 2 Mbit/s.
    // Packets in transit at the end do not count.
    let percent = run(&text).metrics[0].value;
    assert!((percent - 41.12).abs() < 0.2, "{percent}");
}

#[test]
fn a_loss_probability_may_change() {
    let text = pair(
        "rate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
         loss = { forward = { model = \"bernoulli\", probability = { steps = [[\"0 s\", 0.0], [\"4 s\", 1.0]], repeat = \"5 s\" } } }",
        &[("there", ["a", "b"], "800 kbit/s")],
        "{ metric = \"drops\", link = \"wire\", reason = \"loss\" }",
    );
    // 100 messages per second are sent, and those of the fifth and the tenth second are lost.
    let lost = run(&text).metrics[0].value;
    assert!((199.0..=201.0).contains(&lost), "{lost}");
}

/// The channel is good and without loss for 4 of 5 s; in the fifth second it turns bad at the first
/// packet. Per period, two of a hundred further packets differ: the packet at which the state turns
/// bad still passes, and the first packet after the fifth second is lost.
#[test]
fn a_burst_model_may_change() {
    let text = pair(
        "rate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
         loss = { forward = { model = \"gilbert-elliott\", \
         to_bad = { steps = [[\"0 s\", 0.0], [\"4 s\", 1.0]], repeat = \"5 s\" }, \
         to_good = { steps = [[\"0 s\", 1.0], [\"4 s\", 0.0]], repeat = \"5 s\" } } }",
        &[("there", ["a", "b"], "800 kbit/s")],
        "{ metric = \"drops\", link = \"wire\", reason = \"loss\" }",
    );
    let lost = run(&text).metrics[0].value;
    assert!((197.0..=202.0).contains(&lost), "{lost}");
}

#[test]
fn a_jitter_may_be_what_was_measured() {
    let jitter = |keys: &str| {
        let link = format!(
            "rate = \"1 Gbit/s\"\ndelay = {{ kind = \"listed-jitter\", delay = \"5 ms\"{keys} }}"
        );
        pair(
            &link,
            &[("there", ["a", "b"], "8 Mbit/s")],
            "{ metric = \"one_way_delay\", flow = \"there\", statistic = [\"least\", \"p50\", \"most\", \"mean\"] }",
        )
    };
    let listed = ", allow_reordering = true, delays = [\"0 ms\", \"2 ms\", \"2 ms\", \"8 ms\"]";
    let values: Vec<f64> = run(&jitter(listed))
        .metrics
        .iter()
        .map(|it| it.value * 1e3)
        .collect();
    for (value, expected) in values.iter().zip([5.0, 7.0, 13.0, 8.0]) {
        assert!((value - expected).abs() < 0.15, "{values:?}");
    }
    for (keys, words) in [
        ("", "`delays` is missing"),
        (", delays = []", "one at least"),
        (
            ", delays = [\"1 ms\"], jitter = \"1 ms\"",
            "unknown key `jitter`",
        ),
    ] {
        let error = plan(&jitter(keys)).expect_err(keys);
        assert!(error.contains(words), "{keys}: {error}");
    }
}

/// 1028 bytes at 1.028 Mbit/s take 8 ms. One packet arrives every 20 ms, so none waits, and the
/// link is busy for two fifths of the time. In the other direction more packets arrive than can
/// leave, into a queue of 5. The queue is full, and each packet stays for about 40 ms.
#[test]
fn a_queue_has_lengths_and_delays() {
    let measure = "{ metric = \"queue_length\", link = \"wire\", statistic = [\"mean\", \"p50\", \"p99.9\"], windows = { all = [\"0 s\", \"10 s\"], late = [\"9.7 s\", \"10 s\"] } }, \
         { metric = \"queue_delay\", link = \"wire\", statistic = [\"least\", \"cdf\"] }, \
         { metric = \"queue_length\", link = \"wire\", direction = \"backward\", statistic = [\"most\"] }, \
         { metric = \"queue_delay\", link = \"wire\", direction = \"backward\", statistic = [\"p5\", \"p95\", \"count\"], window = [\"5 s\", \"10 s\"] }";
    let text = pair(
        "rate = \"1.028 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"5 packets\"",
        &[
            ("there", ["a", "b"], "400 kbit/s"),
            ("back", ["b", "a"], "1.6 Mbit/s"),
        ],
        measure,
    );
    let record = run(&text);
    let value = |metric: &str| {
        let found = record.metrics.iter().find(|value| value.metric == metric);
        found
            .unwrap_or_else(|| panic!("{metric}: {:?}", record.metrics))
            .value
    };
    for (metric, expected) in [
        ("queue_length_all_mean", 0.4),
        ("queue_length_late_mean", 0.4),
        ("queue_length_all_p50", 0.0),
        ("queue_length_all_p99_9", 1.0),
        ("queue_delay_least", 0.008),
        ("queue_delay_p0", 0.008),
        ("queue_delay_p50", 0.008),
        ("queue_delay_p100", 0.008),
        ("queue_length_backward_most", 5.0),
    ] {
        let found = value(metric);
        assert!(
            (found - expected).abs() < 1e-9,
            "{metric}: {found}, {expected} expected"
        );
    }
    // The queue holds five packets, each of which takes 8 ms to transmit. The next packet is
    // admitted less than 5 ms after one of them has left, so it stays for 40 ms minus this time.
    let [least, most] = ["p5", "p95"].map(|take| value(&format!("queue_delay_backward_{take}")));
    assert!(
        0.035 <= least && least < most && most <= 0.040 + 1e-9,
        "{least} {most}"
    );
    assert!((value("queue_delay_backward_count") - 625.0).abs() <= 1.0);
}

/// CoDel should mark ECN-capable packets and drop others (RFC 3168 §5), so an overload with ECT
/// should cause no drops.
#[test]
fn a_queue_marks_senders_that_use_ecn() {
    let dropped = |queue: &str, transport: &str| {
        let text = pair(
            &format!(
                "rate = \"1 Mbit/s\"\ndelay = \"5 ms\"\nqueue = {{ kind = \"codel\"{queue} }}"
            ),
            &[("there", ["a", "b"], "1.2 Mbit/s")],
            "{ metric = \"drops\", link = \"wire\", reason = \"aqm\" }",
        );
        run(&text.replace("protocol = \"udp\"", transport)).metrics[0].value
    };
    let uses_ecn = "protocol = \"udp\", ecn = true";
    assert_eq!(dropped(", ecn = true", uses_ecn), 0.0);
    assert!(dropped("", uses_ecn) > 10.0);
    assert!(dropped(", ecn = true", "protocol = \"udp\"") > 10.0);
}

#[test]
fn a_direction_without_a_rate_is_an_error() {
    let link = "rate = { forward = \"1 Mbit/s\" }\ndelay = { backward = \"1 ms\" }";
    let error = plan(&pair(link, &[("there", ["a", "b"], "8 kbit/s")], "")).unwrap_err();
    assert!(
        error.contains("`link.wire.rate`: the key `backward` is missing"),
        "{error}"
    );
    assert!(
        error.contains("`link.wire.delay`: the key `forward` is missing"),
        "{error}"
    );
}

/// A spec in which `a` reaches `b` over the node `up` or `low` and the router `r`. `up` and `low`
/// are additional keys of the links from these nodes to `r`, and `more` has static routes.
fn square(up: &str, low: &str, more: &str) -> String {
    let link = |name: &str, ends: &str, keys: &str| {
        format!(
            "[[link]]\nname = \"{name}\"\nbetween = {ends}\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n{keys}\n"
        )
    };
    let links = [
        link("a-up", "[\"a\", \"up\"]", ""),
        link("a-low", "[\"a\", \"low\"]", ""),
        link("up-low", "[\"up\", \"low\"]", ""),
        link("up-r", "[\"up\", \"r\"]", up),
        link("low-r", "[\"low\", \"r\"]", low),
        link("r-b", "[\"r\", \"b\"]", ""),
    ];
    format!(
        "node = [{{ name = \"a\" }}, {{ name = \"up\" }}, {{ name = \"low\" }}, {{ name = \"r\" }}, {{ name = \"b\" }}]\n\
         measure = [{{ metric = \"goodput\", flow = \"f\" }}, {{ metric = \"link_utilization\", link = \"a-low\", counting = \"wire\" }}]\n\
         {}{more}\n[[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nstart = \"1 s\"\ntransport = {{ protocol = \"udp\" }}\n\
         workload = {{ kind = \"cbr\", rate = \"80 kbit/s\", message = \"1000 B\" }}\n",
        links.concat()
    )
}

#[test]
fn a_given_route_is_taken() {
    let by = |via: &str| {
        let routes = format!("[[route]]\nnode = \"a\"\nto = \"b\"\nvia = \"{via}\"\n");
        let record = run(&square("", "", &routes));
        assert_eq!(record.failures, Vec::<String>::new());
        record.metrics[1].value > 1.0
    };
    assert!(by("a-low"));
    assert!(!by("a-up"));
}

#[test]
fn wrong_routes_say_what_is_wrong() {
    let route = |node: &str, to: &str, via: &str| {
        format!("[[route]]\nnode = \"{node}\"\nto = \"{to}\"\nvia = \"{via}\"\n")
    };
    for (routes, words) in [
        (
            route("c", "b", "a-up"),
            "found \"c\", but no node has this name",
        ),
        (
            route("a", "b", "a-upp"),
            "found \"a-upp\", but no link has this name",
        ),
        (route("a", "b", "up-r"), "it is not at \"a\""),
        (route("a", "a", "a-up"), "leads from \"a\" to itself"),
        (
            route("up", "b", "up-low") + &route("low", "b", "up-low"),
            "packets from up to b go in a circle",
        ),
    ] {
        let error = plan(&square("", "", &routes)).unwrap_err();
        assert!(error.contains(words), "{routes}: {error}");
    }
}

#[test]
fn a_flow_that_can_reach_nothing_says_so() {
    let down = |until: &str| format!("down = [[\"0 s\", \"{until}\"]]");
    // The route should avoid a link that is down.
    let record = run(&square(&down("20 s"), "", ""));
    assert_eq!(record.failures, Vec::<String>::new());
    assert!(record.metrics[0].value > 0.0);
    // There is no path until 3 s, and in the next case during the whole run.
    let record = run(&square(&down("20 s"), &down("3 s"), ""));
    let words =
        "f: no path leads from a to b at its start, 1 s, up to 3 s: a link on the path is down";
    assert_eq!(record.failures, [words]);
    let record = run(&square(&down("20 s"), &down("20 s"), ""));
    let words = "f: no path leads from a to b as long as it runs: a link on the path is down";
    assert_eq!(record.failures, [words]);
    // The flow also needs a path in the reverse direction.
    let back = "down = { backward = [[\"0 s\", \"20 s\"]] }";
    let record = run(&square(back, back, ""));
    let words = "f: no path leads from b to a as long as it runs: a link on the path is down";
    assert_eq!(record.failures, [words]);
}

/// If a link can carry the packets of a flow only after the flow has ended, the plan is valid. The
/// flow then delivers nothing, and the record of the run should contain a message about this.
#[test]
fn a_flow_whose_packets_are_too_large_says_so() {
    let narrow = |until: &str| {
        let keys = format!("mtu = \"1000 B\"\nmtu_changes = [[\"{until}\", \"1500 B\"]]");
        run(&square(&keys, &keys, ""))
    };
    let record = narrow("3 s");
    assert_eq!(record.failures, Vec::<String>::new());
    assert!(record.metrics[0].value > 0.0);
    let record = narrow("19 s");
    let [failure] = &record.failures[..] else {
        panic!("{:?}", record.failures);
    };
    let before = "f: it delivered nothing, and the link up-r dropped ";
    let after = " packets larger than it carries (`mtu`)";
    let dropped = failure
        .strip_prefix(before)
        .and_then(|it| it.strip_suffix(after))
        .and_then(|it| it.parse::<u64>().ok());
    assert!(dropped.is_some_and(|it| it > 10), "{failure}");
}

/// All tables of a run without deliveries contain zeros, so its record should state that the flow
/// delivered nothing.
#[test]
fn a_flow_that_delivers_nothing_says_so() {
    let all = "loss = { model = \"bernoulli\", probability = 1 }";
    let record = run(&square(all, all, ""));
    assert_eq!(record.failures, ["f: it delivered nothing"]);
    // A message with the reason of the failure is sufficient; no second message is needed.
    let quick = "streams = 1, max_init_retransmits = 0, rto_max = \"1 s\"";
    let text = square(all, all, "").replace("\"udp\"", &format!("\"sctp\", {quick}"));
    assert!(text.contains(quick), "{text}");
    assert_eq!(run(&text).failures, ["f: the peer does not answer"]);
}

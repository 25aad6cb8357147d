//! Tests of the errors of invalid specs, with file, line, key, value found, allowed values and
//! nearest spelling.

use anabranch_engine::plan::{Plan, PlanRequest};

const GOOD: &str = r#"anabranch = 1
name = "pair"

[parameters]
rate = "2 Mbit/s"
pairs = 1

[world]
duration = "10 s"

[[node]]
name = "source"
count = "$pairs"

[[node]]
name = "sink"

[[link]]
name = "wire"
between = ["source", "sink"]
rate = "$rate"
delay = "5 ms"
queue = "10 packets"
loss = { forward = { model = "bernoulli", probability = 0.01 } }

[[flow]]
name = "sctp"
count = "$pairs"
from = "source"
to = "sink"
start = { uniform = ["0 s", "1 s"] }
workload = { kind = "bulk", message = "1432 B" }
transport = { protocol = "sctp", profile = "rfc9260", switches = { missing_reports = 3 } }

[[experiment]]
id = "rates"
replications = 2
record = [{ flow = "sctp", probes = ["cwnd"], window = ["1 s", "2 s"] }]
sweep = [{ parameter = "rate", values = ["1 Mbit/s", "2 Mbit/s"] }]
measure = [{ metric = "mean_cwnd", flow = "sctp", weighting = "samples" }]
"#;

fn request(text: &str, overrides: &[&str]) -> PlanRequest {
    PlanRequest::new("pair.toml", text).with(|it| {
        it.overrides = overrides
            .iter()
            .map(|&argument| argument.to_owned())
            .collect();
        it.seed = 1;
    })
}

/// Plans the valid spec with some parts replaced. Returns the text of the error.
fn error(replacements: &[(&str, &str)], overrides: &[&str]) -> String {
    let mut text = GOOD.to_owned();
    for (from, to) in replacements {
        assert!(text.contains(from), "{from:?} is not in the good spec");
        text = text.replacen(from, to, 1);
    }
    match Plan::new(request(&text, overrides)) {
        Ok(plan) => panic!("planned {} runs of a wrong spec", plan.runs()),
        Err(error) => error.to_string(),
    }
}

macro_rules! wrong {
    ($($name:ident: $replacements:expr $(, set $overrides:expr)?;)*) => {$(
        #[test]
        fn $name() {
            #[allow(unused_mut, unused_assignments)]
            let mut overrides: &[&str] = &[];
            $(overrides = &$overrides;)?
            insta::assert_snapshot!(error(&$replacements, overrides));
        }
    )*};
}

wrong! {
    syntax: [("delay = \"5 ms\"", "delay = \"5 ms")];
    key_twice: [("delay = \"5 ms\"", "delay = \"5 ms\"\ndelay = \"6 ms\"")];
    section_that_repeats_as_one: [("[[link]]", "[link]")];
    section_that_stands_once_as_list: [("[world]", "[[world]]")];
    transport_as_text: [("{ protocol = \"sctp\", profile = \"rfc9260\", switches = { missing_reports = 3 } }", "\"sctp\"")];
    one_end_of_a_link: [("[\"source\", \"sink\"]", "[\"source\"]")];
    loss_without_its_probability: [("loss = { forward = { model = \"bernoulli\", probability = 0.01 } }", "loss = { model = \"bernoulli\" }")];
    decimal_comma: [("delay = \"5 ms\"", "delay = \"5,5 ms\"")];
    window_beyond_the_run: [("flow = \"sctp\", weighting = \"samples\"", "flow = \"sctp\", window = [\"1 s\", \"20 s\"]")];
    named_window_beyond_the_run: [("flow = \"sctp\", weighting = \"samples\"", "flow = \"sctp\", windows = { late = [\"1 s\", \"20 s\"] }")];
    flow_that_stops_before_it_starts: [("start = { uniform = [\"0 s\", \"1 s\"] }", "start = \"2 s\"\nstop = \"1 s\"")];
    record_of_no_probe: [("probes = [\"cwnd\"]", "probes = []")];
    measure_of_the_file_again_in_an_experiment: [("[[experiment]]", "[[measure]]\nmetric = \"mean_cwnd\"\nflow = \"sctp\"\nweighting = \"samples\"\n\n[[experiment]]")];
    setting_without_its_partner: [("profile = \"rfc9260\",", "profile = \"rfc9260\", cmt_delayed_ack = false,")];
    setting_without_effect_by_another: [("profile = \"rfc9260\",", "profile = \"rfc9260\", cmt = true, frto = true,")];
    sack_delay_without_its_partner: [("profile = \"rfc9260\",", "profile = \"rfc9260\", delayed_sack = false, sack_delay = \"100 ms\",")];
    more_replications_than_a_number_holds: [("replications = 2", "replications = 99999999999")];
    zero_twice_in_a_sweep: [("[{ parameter = \"rate\", values = [\"1 Mbit/s\", \"2 Mbit/s\"] }]", "[{ parameter = \"link.wire.loss.forward.probability\", values = [0, 0.1, -0.0] }]")];
    number_in_addition_to_off: [("profile = \"rfc9260\",", "profile = \"rfc9260\", pacing = 0,")];
    micro_sign: [("\"5 ms\"", "\"5 \u{b5}s\"")];
    bytes_for_bits: [("\"1 Mbit/s\"", "\"1 MB/s\"")];
    setting_misspelt: [("profile = \"rfc9260\",", "profile = \"rfc9260\", recieve_buffer = \"64 KiB\",")];
    unknown_key: [("delay = \"5 ms\"", "delai = \"5 ms\"")];
    unknown_section: [("[[flow]]", "[[flows]]")];
    unknown_key_of_variant: [("probability = 0.01", "probability = 0.01, plaice = \"before-queue\"")];
    wrong_unit: [("\"5 ms\"", "\"5 msec\"")];
    too_many_runs: [("replications = 2", "replications = 1000000000")];
    bins_too_narrow: [("probes = [\"cwnd\"]", "probes = [\"goodput\"], bin = \"1 ns\"")];
    too_many_messages: [("kind = \"bulk\", message = \"1432 B\"", "kind = \"cbr\", rate = \"1e12 bit/s\", message = \"100 B\"")];
    too_many_nodes: [("name = \"sink\"", "name = \"sink\"\ncount = 4000000000")];
    name_too_long: [("id = \"rates\"", "id = \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"")];
    wrong_kind_of_unit: [("\"5 ms\"", "\"5 Mbit/s\"")];
    damage_without_checksums: [
        ("loss = { forward = { model = \"bernoulli\", probability = 0.01 } }", "impairment = { forward = { corrupt = 0.01 } }"),
        ("profile = \"rfc9260\",", "profile = \"rfc9260\", zero_checksum = \"dtls\","),
    ];
    unit_missing: [("\"5 ms\"", "\"5\"")];
    number_without_unit: [("\"5 ms\"", "5")];
    unit_of_another_measure: [("weighting = \"samples\" }]", "weighting = \"samples\" }]\n\n[[table]]\nid = \"t\"\ntitle = \"T\"\nrow = [{ series = \"sctp\", metric = \"mean_cwnd_samples\", unit = \"ms\" }]")];
    unit_of_another_probe: [("weighting = \"samples\" }]", "weighting = \"samples\" }]\n\n[[figure]]\nid = \"f\"\ntitle = \"F\"\nkind = \"time\"\ncurve = [{ label = \"cwnd\", flow = \"sctp\", probe = \"cwnd\", unit = \"Mbit/s\" }]")];
    segments_without_a_size: [("weighting = \"samples\" }]", "weighting = \"samples\" }]\n\n[[table]]\nid = \"t\"\ntitle = \"T\"\nkind = \"steps\"\nrow = [{ flow = \"sctp\", unit = \"segments\" }]")];
    unit_of_the_time_of_an_event: [("weighting = \"samples\" }]", "weighting = \"samples\" }]\n\n[[table]]\nid = \"t\"\ntitle = \"T\"\nkind = \"events\"\nrow = [{ flow = \"sctp\", probe = \"cwnd\", unit = \"bytes\" }]")];
    negative_rate: [("rate = \"2 Mbit/s\"\npairs", "rate = \"-2 Mbit/s\"\npairs"), ("sweep = [{ parameter = \"rate\", values = [\"1 Mbit/s\", \"2 Mbit/s\"] }]", "")];
    negative_rate_in_sweep: [("\"1 Mbit/s\", ", "\"-1 Mbit/s\", ")];
    link_to_nowhere: [("between = [\"source\", \"sink\"]", "between = [\"source\", \"sinc\"]")];
    no_members: [("pairs = 1", "pairs = -1")];
    slice_beyond_the_group: [("[\"source\", \"sink\"]", "[\"source\", \"sink[0..2]\"]")];
    slice_backwards: [("pairs = 1", "pairs = 4"), ("flow = \"sctp\", probes", "flow = \"sctp[3..1]\", probes")];
    member_of_no_link: [("record = [{ flow = \"sctp\", probes = [\"cwnd\"]", "record = [{ link = \"wire[1]\", probes = [\"queue\"]")];
    counts_that_do_not_fit: [("name = \"sink\"", "name = \"sink\"\ncount = 3"), ("pairs = 1", "pairs = 2")];
    sweep_over_nothing: [("parameter = \"rate\"", "parameter = \"ratte\"")];
    sweep_over_unknown_path: [("parameter = \"rate\"", "parameter = \"link.wir.rate\"")];
    sweep_over_unknown_key_of_path: [("parameter = \"rate\"", "parameter = \"link.wire.raten\"")];
    probability_above_one: [("0.01", "1.01")];
    duplicate_names: [("name = \"sink\"", "name = \"source\""), ("[\"source\", \"sink\"]", "[\"source\", \"source\"]")];
    unknown_model: [("\"bernoulli\"", "\"bernuolli\"")];
    unknown_protocol: [("protocol = \"sctp\"", "protocol = \"stcp\"")];
    unknown_profile: [("rfc9260", "rfc9620")];
    unknown_congestion: [("profile = \"rfc9260\"", "profile = \"rfc9260\", congestion = \"westwod\"")];
    unknown_switch: [("missing_reports", "mising_reports")];
    wrong_switch_value: [("missing_reports = 3", "missing_reports = \"many\"")];
    unknown_parameter: [("delay = \"5 ms\"", "delay = \"$dealy\"")];
    parameter_ring: [("rate = \"2 Mbit/s\"\npairs", "rate = \"$other\"\nother = \"$rate\"\npairs"), ("sweep = [{ parameter = \"rate\", values = [\"1 Mbit/s\", \"2 Mbit/s\"] }]", "")];
    unknown_probe: [("probes = [\"cwnd\"]", "probes = [\"cwind\"]")];
    unknown_metric: [("\"mean_cwnd\"", "\"mean_cwmd\"")];
    unknown_flow_in_measure: [("flow = \"sctp\", weighting", "flow = \"stcp\", weighting")];
    window_backwards: [("[\"1 s\", \"2 s\"]", "[\"2 s\", \"1 s\"]")];
    zero_replications: [("replications = 2", "replications = 0")];
    missing_key: [("delay = \"5 ms\"\n", "")];
    several_at_once: [("delay = \"5 ms\"", "delay = \"5 parsecs\"\ncolour = 3"), ("from = \"source\"", "from = 7"), ("queue = \"10 packets\"", "queue = \"ten packets\""), ("duration = \"10 s\"", "duration = \"-1 s\"")];
    set_unknown_parameter: [], set ["raet=3 Mbit/s"];
    set_wrong_value: [], set ["link.wire.delay=fast"];
    set_without_value: [], set ["rate"];
    set_list_without_numbers: [], set ["experiment.rates.sweep.0.values=[1, nan]"];
    set_empty_list: [], set ["experiment.rates.sweep.0.values=[]"];
    set_one_value_for_a_list: [], set ["experiment.rates.sweep.0.values=5"];
    sweep_of_no_values: [("values = [\"1 Mbit/s\", \"2 Mbit/s\"]", "values = []")];
    set_name_of_a_node: [], set ["node.sink.name=other"];
    set_version: [], set ["anabranch=2"];
    set_section: [], set ["link=3"];
    packets_too_large_for_a_link: [("delay = \"5 ms\"", "delay = \"5 ms\"\nmtu = \"1400 B\"")];
    packets_too_large_for_a_link_in_a_sweep: [("delay = \"5 ms\"", "delay = \"5 ms\"\nmtu = \"1500 B\""), ("sweep = [{ parameter = \"rate\", values = [\"1 Mbit/s\", \"2 Mbit/s\"]", "sweep = [{ parameter = \"flow.sctp.transport.mtu\", values = [\"1500 B\", \"9000 B\"]")];
    segments_too_large_for_a_link: [("delay = \"5 ms\"", "delay = \"5 ms\"\nmtu = \"1500 B\""), ("{ protocol = \"sctp\", profile = \"rfc9260\", switches = { missing_reports = 3 } }", "{ protocol = \"tcp\", mss = \"9000 B\" }")];
    record_of_an_unreported_probe: [("probes = [\"cwnd\"]", "probes = [\"cwnd\", \"pipe\"]")];
    measure_of_an_unreported_probe: [("metric = \"mean_cwnd\", flow = \"sctp\", weighting = \"samples\"", "metric = \"probe\", name = \"w\", flow = \"sctp\", probe = \"pipe\", statistic = \"count\"")];
    chain_of_one: [("[\"source\", \"sink\"]", "[\"source\", \"source\"]")];
    member_beyond_the_group: [("[\"source\", \"sink\"]", "[\"source\", \"sink[1]\"]")];
    unknown_allocation: [("profile = \"rfc9260\"", "profile = \"rfc9260\", stream_allocation = { kind = \"adaptiv\" }")];
    more_streams_in_use_than_negotiated: [("profile = \"rfc9260\"", "streams = 4, stream_allocation = { kind = \"fixed\", streams = 5 }")];
    unknown_round_trip: [("profile = \"rfc9260\"", "stream_allocation = { kind = \"adaptive-step\", rtt_source = \"lest\" }")];
    unknown_rate_estimate: [("profile = \"rfc9260\"", "rate_estimate = \"westwood_er\"")];
    two_ends_of_a_flow: [("workload = {", "stop = \"3 s\"\nduration = \"2 s\"\nworkload = {")];
    unknown_probe_in_measure: [("metric = \"mean_cwnd\", flow = \"sctp\", weighting = \"samples\"", "metric = \"probe\", name = \"w\", flow = \"sctp\", probe = \"peer_rwmd\", statistic = \"mean\"")];
    statistic_below_without_threshold: [("metric = \"mean_cwnd\", flow = \"sctp\", weighting = \"samples\"", "metric = \"probe\", name = \"w\", flow = \"sctp\", probe = \"peer_rwnd\", statistic = \"below\"")];
    derived_from_nothing: [("[[experiment]]", "[[derived]]\nid = \"more\"\nkind = \"relative\"\nexperiment = \"rats\"\nseries = \"sctp\"\nmetric = \"mean_cwnd_samples\"\nto = { rate = \"1 Mbit/s\" }\nname = \"more\"\n\n[[experiment]]")];
    derived_along_no_sweep: [("[[experiment]]", "[[derived]]\nid = \"least\"\nkind = \"smallest-x\"\nexperiment = \"rates\"\nseries = \"sctp\"\nmetric = \"mean_cwnd_samples\"\nalong = \"rat\"\nat_most = 1.0\nname = \"least\"\n\n[[experiment]]")];
    claim_about_an_absent_measure: [("[[experiment]]", "[[claim]]\nid = \"c\"\ntext = \"C\"\nkind = \"greater\"\nseries = \"sctp\"\nmetric = \"mean_cwmd_samples\"\nof = { where = { raet = 1 } }\nreference = { where = { rate = \"1 Mbit/s\" }, metric = \"goodput\" }\n\n[[experiment]]")];
    claim_without_its_keys: [("[[experiment]]", "[[claim]]\nid = \"c\"\ntext = \"C\"\nkind = \"crosses\"\nseries = \"sctp\"\nmetric = \"mean_cwnd_samples\"\nwithin = 0.05\nbest = \"least\"\n\n[[experiment]]")];
    claim_along_no_sweep: [("[[experiment]]", "[[claim]]\nid = \"c\"\ntext = \"C\"\nkind = \"rises\"\nalong = \"raet\"\nseries = \"sctp\"\nmetric = \"mean_cwnd_samples\"\nreference = { value = 1 }\nwhere = { rate = [] }\n\n[[experiment]]")];
    claim_with_a_margin_of_everything: [("[[experiment]]", "[[claim]]\nid = \"c\"\ntext = \"C\"\nkind = \"equal\"\nwithin = 1.5\nseries = \"sctp\"\nmetric = \"mean_cwnd_samples\"\nof = { value = 1 }\nreference = { value = 1 , series = \"sctp\" }\n\n[[experiment]]")];
    claim_at_no_point: [("[[experiment]]", "[[claim]]\nid = \"c\"\ntext = \"C\"\nkind = \"greater\"\nseries = \"sctp\"\nmetric = \"mean_cwnd_samples\"\nwhere = { rate = [\"1 Mbit/s\", \"2 Mbits/s\"] }\nreference = { where = { rate = 3 } }\n\n[[experiment]]")];
    position_without_point: [("[[experiment]]", "[[table]]\nid = \"t\"\ntitle = \"T\"\nwhere = { rate = \"1 Mbits/s\" }\nrow = [{ series = \"sctp\", metric = \"mean_cwnd_samples\" }]\n\n[[experiment]]")];
    key_as_others_call_it: [("rate = \"$rate\"", "bandwidth = \"$rate\"\nrtt = \"10 ms\"")];
    metric_as_others_call_it: [("\"mean_cwnd\"", "\"throughput\"")];
    loss_as_a_number: [("{ forward = { model = \"bernoulli\", probability = 0.01 } }", "0.01")];
    size_of_transfers_as_text: [("kind = \"bulk\", message = \"1432 B\"", "kind = \"transfers\", every = \"1 s\", size = \"10 MB\"")];
    size_of_transfers_with_another_key: [("kind = \"bulk\", message = \"1432 B\"", "kind = \"transfers\", every = \"1 s\", size = { kind = \"fixed\", size = \"10 MB\" }")];
    key_that_one_of_the_swept_protocols_has: [("profile = \"rfc9260\", switches = { missing_reports = 3 }", "streams = 2"), ("parameter = \"rate\", values = [\"1 Mbit/s\", \"2 Mbit/s\"]", "parameter = \"flow.sctp.transport.protocol\", values = [\"sctp\", \"tcp\"]")];
    points_with_a_table_of_parameters: [("{ parameter = \"rate\", values = [\"1 Mbit/s\", \"2 Mbit/s\"] }", "{ name = \"path\", points = [{ x = \"slow\", parameters = { rate = \"1 Mbit/s\" } }, { x = \"fast\", rate = \"2 Mbit/s\" }] }")];
    set_key_of_a_parameter: [("pairs = 1", "pairs = 1\nhow = { protocol = \"sctp\" }"), ("{ protocol = \"sctp\", profile = \"rfc9260\", switches = { missing_reports = 3 } }", "\"$how\"")], set ["flow.sctp.transport.streams=2"];
    row_without_series: [("weighting = \"samples\" }]", "weighting = \"samples\" }]\n\n[[table]]\nid = \"t\"\ntitle = \"T\"\nrow = [{ metric = \"mean_cwnd_samples\" }]")];
    unit_as_others_write_it: [("weighting = \"samples\" }]", "weighting = \"samples\" }]\n\n[[table]]\nid = \"t\"\ntitle = \"T\"\nrow = [{ series = \"sctp\", metric = \"mean_cwnd_samples\", unit = \"Mbps\" }]")];
    position_without_sweep: [("[[experiment]]", "[[table]]\nid = \"t\"\ntitle = \"T\"\nwhere = { raet = 1 }\nrow = [{ series = \"sctp\", metric = \"mean_cwnd_samples\" }]\n\n[[experiment]]")];
    choice_among_paths_with_one_path: [("profile = \"rfc9260\",", "retransmission_path = \"same_path\",")];
    several_paths_over_one_link: [("profile = \"rfc9260\",", "multihomed = true,")];
    marks_without_ecn: [("{ protocol = \"sctp\", profile = \"rfc9260\", switches = { missing_reports = 3 } }", "{ protocol = \"tcp\", congestion = \"dctcp\" }")];
    keys_of_a_link_without_effect: [
        ("delay = \"5 ms\"", "delay = { kind = \"deterministic\", delay = \"5 ms\", allow_reordering = true }\nimpairment = { reorder_delay = \"20 ms\" }"),
        ("{ model = \"bernoulli\", probability = 0.01 }", "{ model = \"none\", position = \"after-queue\" }"),
    ];
    pauses_without_length: [("kind = \"bulk\", message = \"1432 B\"", "kind = \"request-response\", request = { kind = \"fixed\", bytes = \"1 kB\" }, response = { kind = \"fixed\", bytes = \"1 kB\" }, exponential = true")];
    messages_over_tcp: [("kind = \"bulk\", message = \"1432 B\"", "kind = \"transfers\", every = \"1 s\", size = { kind = \"fixed\", bytes = \"10 kB\" }, message = \"500 B\""), ("{ protocol = \"sctp\", profile = \"rfc9260\", switches = { missing_reports = 3 } }", "{ protocol = \"tcp\" }")];
    stream_that_is_not_negotiated: [("kind = \"bulk\", message = \"1432 B\"", "kind = \"mixed\", small = \"100 B\", small_every = \"20 ms\", large = \"9 kB\", large_every = \"300 ms\""), ("profile = \"rfc9260\",", "streams = 1,")];
    key_that_every_flow_has: [("workload = { kind = \"bulk\", message = \"1432 B\" }\n", ""), ("count = \"$pairs\"\nfrom", "count = 1.5\nfrom")];
    clock_without_a_window: [("metric = \"mean_cwnd\", flow = \"sctp\", weighting = \"samples\"", "metric = \"segments_delivered\", flow = \"sctp\", clock = \"flow\"")];
    bins_of_a_probe_without_counts: [("probes = [\"cwnd\"]", "probes = [\"cwnd\"], bin = \"1 s\"")];
    keys_that_another_kind_reads: [("weighting = \"samples\" }]", "weighting = \"samples\" }]\n\n[[table]]\nid = \"t\"\ntitle = \"T\"\nrow = [{ series = \"sctp\", metric = \"mean_cwnd_samples\", occurrence = 2 }]\n\n[[figure]]\nid = \"f\"\ntitle = \"F\"\nkind = \"sweep\"\nwindow = [\"1 s\", \"2 s\"]\ncurve = [{ label = \"cwnd\", series = \"sctp\", metric = \"mean_cwnd_samples\", cumulative = true }]")];
}

#[test]
fn the_good_spec_is_planned() {
    let plan = Plan::new(request(GOOD, &[])).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan.runs(), 4);
    let experiment = &plan.experiments[0];
    let points = &experiment.points;
    for (point, rate) in points.iter().zip([1_000_000, 2_000_000]) {
        let point = experiment.resolve(point).expect("a point");
        assert_eq!(point.spec.links[0].rate.side(true), Some(&rate.into()));
    }
    assert_ne!(points[0].hash(), points[1].hash());
}

#[test]
fn overrides_reach_parameters_and_paths() {
    let overrides = ["link.wire.delay=7 ms", "pairs=3", "world.duration=\"1 s\""];
    let plan = Plan::new(request(GOOD, &overrides)).unwrap_or_else(|error| panic!("{error}"));
    let spec = &plan.spec;
    assert_eq!(
        (
            spec.links[0]
                .delay
                .side(true)
                .map(|delay| &delay.parameters["delay"]),
            spec.nodes[0].count.0,
            spec.world.duration.0
        ),
        (Some(&"7 ms".into()), 3, 1_000_000_000)
    );
}

/// If only some points of a sweep are requested, claims about the other points need not be removed.
#[test]
fn fewer_points_leave_claims_about_the_others() {
    let claim = r#"[[claim]]
id = "c"
text = "C"
kind = "greater"
series = "sctp"
metric = "mean_cwnd_samples"
of = { where = { rate = "2 Mbit/s" } }
reference = { where = { rate = "1 Mbit/s" } }

[[experiment]]"#;
    let text = GOOD.replace("[[experiment]]", claim);
    let fewer = [r#"experiment.rates.sweep.0.values=["2 Mbit/s"]"#];
    let plan = Plan::new(request(&text, &fewer)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan.experiments[0].points.len(), 1);
}

#[test]
fn several_sweeps_make_every_combination_the_last_fastest() {
    let text = GOOD.replace(
        "] }]\nmeasure",
        "] }, { name = \"n\", points = [{ x = 1, pairs = 1 }, { x = 2, pairs = 2 }] }]\nmeasure",
    );
    let plan = Plan::new(request(&text, &[])).unwrap_or_else(|error| panic!("{error}"));
    let points: Vec<String> = plan.experiments[0]
        .points
        .iter()
        .map(|point| {
            let point = plan.experiments[0].point(point);
            point
                .iter()
                .map(|(name, x)| format!("{name}={x}"))
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    assert_eq!(
        points,
        [
            "rate=1 Mbit/s n=1",
            "rate=1 Mbit/s n=2",
            "rate=2 Mbit/s n=1",
            "rate=2 Mbit/s n=2"
        ]
    );
}

#[test]
fn a_file_without_experiments_has_one() {
    let text = &GOOD[..GOOD.find("[[experiment]]").unwrap_or(GOOD.len())];
    let plan = Plan::new(request(text, &[])).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((plan.experiments[0].id.as_str(), plan.runs()), ("main", 1));
}

#[test]
fn titles_do_not_change_what_is_run() {
    let titled = GOOD.replace("id = \"rates\"", "id = \"rates\"\ntitle = \"Rates\"");
    let hash = |text: &str| {
        Plan::new(request(text, &[]))
            .unwrap_or_else(|error| panic!("{error}"))
            .experiments[0]
            .points[0]
            .hash()
    };
    assert_eq!(hash(GOOD), hash(&titled));
    assert_ne!(hash(GOOD), hash(&GOOD.replace("5 ms", "6 ms")));
}

/// A product of sweeps with too many points (300 * 300) should be rejected before any world is
/// built.
#[test]
fn too_many_points() {
    let values: Vec<String> = (1..=300).map(|n| format!("\"{n} kbit/s\"")).collect();
    let sweep = |parameter: &str| {
        format!(
            "{{ parameter = \"{parameter}\", values = [{}] }}",
            values.join(", ")
        )
    };
    let sweeps = format!("sweep = [{}, {}]", sweep("rate"), sweep("link.wire.rate"));
    let sweep = r#"sweep = [{ parameter = "rate", values = ["1 Mbit/s", "2 Mbit/s"] }]"#;
    let error = error(&[(sweep, &sweeps)], &[]);
    let found = "found 300 points, 90000 with the sweeps before; an experiment has at most 20000";
    assert!(error.contains(found), "{error}");
}

#[test]
fn a_key_at_the_top_can_be_set() {
    let plan = Plan::new(request(GOOD, &["name=other"]));
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan.spec.name, "other");
}

/// A key should be accepted if it has an effect at some points of a sweep.
#[test]
fn a_key_may_be_idle_at_some_points_of_a_sweep() {
    let loss = "loss = { forward = { model = \"bernoulli\", probability = 0.01 } }";
    let plan = |jitters: &str| {
        let delay = "delay = { kind = \"jitter\", delay = \"5 ms\", jitter = \"2 ms\", allow_reordering = true }";
        let text = GOOD
            .replacen("delay = \"5 ms\"", delay, 1)
            .replacen(loss, "", 1);
        let sweep = format!("parameter = \"link.wire.delay.jitter\", values = [{jitters}]");
        let rates = "parameter = \"rate\", values = [\"1 Mbit/s\", \"2 Mbit/s\"]";
        Plan::new(request(&text.replacen(rates, &sweep, 1), &[]))
    };
    assert!(plan("\"0 s\", \"2 ms\"").is_ok());
    let error = plan("\"0 s\"").expect_err("it is idle at the only point");
    assert!(error.to_string().contains("allow_reordering"), "{error}");
}

/// All paths of a flow should be checked at all times, except for flows that discover the path MTU,
/// and for links whose MTU is sufficient later.
#[test]
fn packets_are_held_against_the_links_of_their_ways() {
    let of = |replacements: &[(&str, &str)]| {
        let mut text = GOOD.to_owned();
        for (from, to) in replacements {
            assert!(text.contains(from), "{from:?} is not in the good spec");
            text = text.replacen(from, to, 1);
        }
        Plan::new(request(&text, &[]))
            .map(|plan| plan.notes)
            .map_err(|it| it.to_string())
    };
    let narrow = ("delay = \"5 ms\"", "delay = \"5 ms\"\nmtu = \"1400 B\"");
    let searching = (
        "profile = \"rfc9260\",",
        "profile = \"rfc9260\", path_mtu_discovery = true,",
    );
    assert_eq!(of(&[narrow, searching]), Ok(Vec::new()));
    let later = (
        "delay = \"5 ms\"",
        "delay = \"5 ms\"\nmtu = \"1400 B\"\nmtu_changes = [[\"2 s\", \"1500 B\"]]",
    );
    assert_eq!(of(&[later]), Ok(Vec::new()));
    // A second link between the same two nodes is not used, and therefore not checked, unless the
    // first link is down or the transport is multihomed.
    let second = "[[link]]\nname = \"second\"\nbetween = [\"source\", \"sink\"]\nrate = \"1 Mbit/s\"\ndelay = \"50 ms\"\nmtu = \"1400 B\"\n\n[[flow]]";
    let second = ("[[flow]]", second);
    assert_eq!(of(&[second]), Ok(Vec::new()));
    let both = (
        "profile = \"rfc9260\",",
        "profile = \"rfc9260\", multihomed = true,",
    );
    let error = of(&[second, both]).expect_err("the second path is too narrow");
    assert!(
        error.contains("the link `second` on the way carries at most 1400 B"),
        "{error}"
    );
}

/// A time that no run reaches should cause a note and no error, because it may be intended.
#[test]
fn times_after_the_end_of_all_runs_give_a_note() {
    let notes = |from: &str, to: &str| {
        assert!(GOOD.contains(from), "{from:?} is not in the good spec");
        let plan = Plan::new(request(&GOOD.replacen(from, to, 1), &[]));
        plan.unwrap_or_else(|error| panic!("{error}")).notes
    };
    let start = "start = { uniform = [\"0 s\", \"1 s\"] }";
    assert_eq!(
        notes(start, "start = \"10 s\""),
        ["`flow.sctp.start`: 10 s, and no run is longer than 10 s: the flow never starts"]
    );
    assert_eq!(notes(start, "start = \"9 s\""), [""; 0]);
    let delay = "delay = \"5 ms\"";
    assert_eq!(
        notes(delay, "delay = \"5 ms\"\ndown = [[\"100 s\", \"101 s\"]]"),
        [
            "`link.wire.down`: 100 s at the earliest, and no run is longer than 10 s: the link is never down"
        ]
    );
    assert_eq!(
        notes(delay, "delay = \"5 ms\"\ndown = [[\"9 s\", \"101 s\"]]"),
        [""; 0]
    );
    // There should be no note if one point reaches the time.
    let longer = "parameter = \"world.duration\", values = [\"5 s\", \"20 s\"]";
    let text = GOOD.replacen(start, "start = \"10 s\"", 1);
    let text = text.replacen(
        "parameter = \"rate\", values = [\"1 Mbit/s\", \"2 Mbit/s\"]",
        longer,
        1,
    );
    let plan = Plan::new(request(&text, &[])).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan.notes, [""; 0]);
}

/// A redundant key should cause a note and no error; a key that cannot have its intended effect
/// should be an error.
#[test]
fn a_key_that_says_what_holds_without_it_is_a_note() {
    let plan = |queue: &str| {
        let text = GOOD.replacen(
            "queue = \"10 packets\"",
            &format!("queue = {{ kind = \"red\", {queue} }}"),
            1,
        );
        Plan::new(request(&text, &[]))
    };
    let noted = plan("gentle = false, max_p = 1").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        noted.notes,
        [
            "`link.wire.queue.gentle`: found false; it holds without that with `max_p = 1`, above which nothing rises"
        ]
    );
    assert_eq!(
        plan("gentle = false").expect("it has an effect").notes,
        [""; 0]
    );
    let steps = "rate = { steps = [[\"0 s\", \"2 Mbit/s\"]], repeat = \"5 s\" }";
    let text = GOOD.replacen("rate = \"$rate\"", steps, 1);
    let text = text.replacen(
        "parameter = \"rate\", values = [\"1 Mbit/s\", \"2 Mbit/s\"]",
        "parameter = \"pairs\", values = [1]",
        1,
    );
    let text = text.replacen("rate = \"2 Mbit/s\"\n", "", 1);
    let noted = Plan::new(request(&text, &[])).unwrap_or_else(|error| panic!("{error}"));
    assert!(
        noted.notes[0].starts_with("`link.wire.rate.repeat`: found 5 s; it holds"),
        "{:?}",
        noted.notes
    );
}

/// An unknown key that was written by mistake for a required key should cause only one error.
#[test]
fn a_misspelt_key_is_not_missing_besides() {
    let text = GOOD.replace("[[flow]]", "[[flows]]");
    let error = Plan::new(request(&text, &[]))
        .expect_err("flows")
        .to_string();
    assert!(
        error.contains("did you mean `flow`?") && error.ends_with("1 error; nothing was run"),
        "{error}"
    );
}

/// Default windows are small by today's standards. If a default window limits a flow, it determines
/// the result, so there should be a note.
#[test]
fn a_window_that_was_left_out_and_binds_is_reported() {
    let notes = |replacements: &[(&str, &str)]| {
        let mut text = GOOD.to_owned();
        for (from, to) in replacements {
            assert!(text.contains(from), "{from:?} is not in the good spec");
            text = text.replacen(from, to, 1);
        }
        let plan = Plan::new(request(&text, &[]));
        plan.unwrap_or_else(|error| panic!("{error}")).notes
    };
    let far = ("delay = \"5 ms\"", "delay = \"500 ms\"");
    assert_eq!(
        notes(&[far]),
        [
            "`flow.sctp.transport.receive_buffer`: left out, so 64 KiB; with a round trip of 1 s no more than 0.524 Mbit/s pass, and the path \
             carries 1 Mbit/s (rate 1 Mbit/s)"
        ]
    );
    // An explicit value is intended, so it should cause no note. The windows of two flows together
    // do not fill the path and its queue, which should cause a note; those of five flows do.
    let set = ("profile = \"rfc9260\",", "receive_buffer = \"64 KiB\",");
    assert_eq!(notes(&[far, set]), [""; 0]);
    assert_eq!(notes(&[far, ("pairs = 1", "pairs = 2")]).len(), 1);
    assert_eq!(notes(&[far, ("pairs = 1", "pairs = 5")]), [""; 0]);
    assert_eq!(notes(&[]), [""; 0]);
    // There should also be a note if the window holds more than half of the path, and if the window
    // fills the path but not its queue.
    let near = ("delay = \"5 ms\"", "delay = \"200 ms\"");
    let told = notes(&[near]);
    assert!(
        told[0].ends_with(
            "no more than 1.311 Mbit/s pass, and the path carries 2 Mbit/s (rate 2 Mbit/s)"
        ),
        "{told:?}"
    );
    let told = notes(&[("queue = \"10 packets\"", "queue = \"50 packets\"")]);
    assert_eq!(
        told,
        [
            "`flow.sctp.transport.receive_buffer`: left out, so 64 KiB; the path of 1 Mbit/s and 10 ms holds 1250 bytes and its queue 75000, \
             which the flow never fills (rate 1 Mbit/s)"
        ]
    );
    // A window does not limit a transfer that fits into it, but it limits a larger one.
    let transfers = |bytes: &str| {
        let kind = format!(
            "kind = \"transfers\", every = \"5 s\", size = {{ kind = \"fixed\", bytes = \"{bytes}\" }}"
        );
        notes(&[far, ("kind = \"bulk\", message = \"1432 B\"", &kind)]).len()
    };
    assert_eq!([transfers("60 kB"), transfers("600 kB")], [0, 1]);
    let tcp = (
        "{ protocol = \"sctp\", profile = \"rfc9260\", switches = { missing_reports = 3 } }",
        "{ protocol = \"tcp\", profile = \"linux\" }",
    );
    let notes = notes(&[("delay = \"5 ms\"", "delay = \"2 s\""), tcp]);
    assert!(notes[0].starts_with("`flow.sctp.transport.receive_buffer`: left out, so 65535 B;"));
}

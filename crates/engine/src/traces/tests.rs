use std::collections::BTreeMap;

use super::*;
use crate::plan::{Plan, PlanRequest};

fn plan(link: &str, files: &[(&str, &str)]) -> Result<Plan, String> {
    let text = format!(
        "anabranch = 1\nname = \"t\"\nworld = {{ duration = \"20 s\" }}\nnode = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n\
         flow = []\n[[link]]\nname = \"wire\"\nbetween = [\"a\", \"b\"]\n{link}\n"
    );
    let texts: BTreeMap<String, String> = files
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    let request = PlanRequest {
        file: "t.toml".into(),
        text,
        files: Files::of(texts),
        ..PlanRequest::default()
    };
    Plan::new(request).map_err(|error| error.to_string())
}

const CSV: &str = "time,rate\n# what was measured\n0,2e6\n1.5,500 kbit/s\n\n10 s,0\n";

#[test]
fn a_trace_stands_for_its_steps() {
    let by_file = plan(
        "rate = { trace = \"r.csv\", repeat = \"11 s\" }\ndelay = \"1 ms\"",
        &[("r.csv", CSV)],
    );
    let by_hand = plan(
        "rate = { steps = [[\"0 s\", \"2 Mbit/s\"], [\"1.5 s\", \"500 kbit/s\"], [\"10 s\", \"0 bit/s\"]], repeat = \"11 s\" }\n\
         delay = \"1 ms\"",
        &[],
    );
    let [by_file, by_hand] =
        [by_file, by_hand].map(|plan| plan.unwrap_or_else(|error| panic!("{error}")));
    assert_eq!(by_file.spec.links[0].rate, by_hand.spec.links[0].rate);
    assert_eq!(
        by_file.request.files.all().get("r.csv").map(String::as_str),
        Some(CSV)
    );
}

/// A number under a title in megabits must not be read as bits.
#[test]
fn titles_say_the_units_of_their_columns() {
    let link = "rate = { trace = \"r.csv\" }\ndelay = { trace = \"d.csv\" }";
    let files = [
        ("r.csv", "time_ms,mbps\n0,2\n1500,500 kbit/s\n"),
        ("d.csv", "t,delay (ms)\n0,20\n3,30\n"),
    ];
    let by_file = plan(link, &files).unwrap_or_else(|error| panic!("{error}"));
    let by_hand = plan(
        "rate = { steps = [[\"0 s\", \"2 Mbit/s\"], [\"1.5 s\", \"500 kbit/s\"]] }\n\
         delay = { steps = [[\"0 s\", \"20 ms\"], [\"3 s\", \"30 ms\"]] }",
        &[],
    );
    let by_hand = by_hand.unwrap_or_else(|error| panic!("{error}"));
    let [file, hand] = [&by_file, &by_hand].map(|plan| &plan.spec.links[0]);
    assert_eq!(file.rate, hand.rate);
    let steps = |plan: &Plan| {
        let experiment = &plan.experiments[0];
        let point = experiment.resolve(&experiment.points[0]);
        format!("{:?}", point.expect("a point").resolved.parts)
    };
    assert_eq!(steps(&by_file), steps(&by_hand));
    let error = plan(link, &[("r.csv", "time,MBps\n0,2\n"), files[1]]).expect_err("bytes");
    assert!(error.contains("line 1: found the title"), "{error}");
}

/// Units should be read in the spellings of iperf and other programs, also after a byte order mark,
/// and in a header row as numpy writes it.
#[test]
fn spellings_of_units_are_one_unit() {
    let rate = |text: &str| {
        let link = "rate = { trace = \"r.csv\" }\ndelay = \"1 ms\"";
        let plan = plan(link, &[("r.csv", text)])?;
        Ok::<_, String>(plan.spec.links[0].rate.side(true).unwrap().steps().to_vec())
    };
    let wanted = Ok(vec![(0, 20_000_000), (10_000_000_000, 8_000_000)]);
    for text in [
        "time,Mbits/sec\n0,20\n10,8\n",
        "\u{feff}time,rate_mbps\n0,20\n10,8\n",
        "# time_ms,rate_kbit\n0,20000\n10000,8000\n",
        "\"Time (\u{b5}s)\",\"megabits per second\"\n0,20\n10000000,8\n",
    ] {
        assert_eq!(rate(text), wanted, "{text}");
    }
    let error = rate("time,furlongs\n0,20\n").expect_err("no unit of a rate");
    assert!(
        error.contains("line 1: found the title \"furlongs\"")
            && error.contains("allowed units: bit/s, kbit/s, Mbit/s, Gbit/s"),
        "{error}"
    );
    let error = rate("time,rate\n0,20\n1,\n").expect_err("no value");
    assert!(
        error.contains("line 3") && error.contains("without a value"),
        "{error}"
    );
}

/// If a file with the same name has other contents, the world differs, so the hash must differ,
/// too.
#[test]
fn the_hash_covers_the_contents_of_trace_files() {
    let hash = |text: &str| {
        let link =
            "rate = { forward = { trace = \"r.csv\" }, backward = \"1 Mbit/s\" }\ndelay = \"1 ms\"";
        let plan = plan(link, &[("r.csv", text)]).unwrap_or_else(|error| panic!("{error}"));
        plan.experiments[0].points[0].hash()
    };
    assert_eq!(hash("0,1000\n"), hash("0,1000\n"));
    assert_ne!(hash("0,1000\n"), hash("0,2000\n"));
}

#[test]
fn a_trace_of_opportunities_is_a_rate_that_restarts() {
    let link = "rate = { opportunities = \"up\" }\ndelay = \"1 ms\"";
    let plan = plan(link, &[("up", "1\n1\n3\n")]).unwrap_or_else(|error| panic!("{error}"));
    let rate = plan.spec.links[0].rate.side(true).unwrap();
    let ms = 1_000_000;
    // Two packets of 1500 bytes leave in the first millisecond, none in the second, and one in the
    // third.
    assert_eq!(
        rate.steps(),
        [(0, 24_000_000), (ms, 0), (2 * ms, 12_000_000)]
    );
    assert_eq!(rate.repeat(), Some(3 * ms));
}

#[test]
fn delays_and_losses_have_traces_too() {
    let link = "rate = \"1 Mbit/s\"\ndelay = { trace = \"d\" }\n\
                loss = { model = \"bernoulli\", probability = { trace = \"p\" } }";
    let plan = plan(link, &[("d", "0,0.005\n1,10 ms\n"), ("p", "0,0\n5,0.25\n")]);
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    let link = &plan.spec.links[0];
    let json = serde_json::to_value(link).unwrap();
    let steps = |value: &serde_json::Value| value["steps"].to_string();
    assert_eq!(
        steps(&json["delay"]["delay"]),
        r#"[["0 s","0.005 s"],["1 s","10 ms"]]"#
    );
    assert_eq!(
        steps(&json["loss"]["probability"]),
        r#"[["0 s",0.0],["5 s",0.25]]"#
    );
}

#[test]
fn wrong_files_say_what_is_wrong() {
    for (rate, text, words) in [
        (
            "trace = \"x\"",
            "0,1\n",
            "`link.wire.rate.trace`: cannot read \"x\"",
        ),
        (
            "trace = \"f\"",
            "0,1\nnonsense\n",
            "line 2: found \"nonsense\"",
        ),
        ("trace = \"f\"", "1,1000\n", "a first step at \"1 s\""),
        ("trace = \"f\"", "0,1000\n0,2000\n", "times that rise"),
        ("trace = \"f\"", "a,b\n", "no line has a time and a value"),
        (
            "trace = \"f\", steps = []",
            "0,1\n",
            "found both a file and `steps`",
        ),
        ("opportunities = \"f\"", "3\n1\n", "do not rise"),
        (
            "opportunities = \"f\"",
            "3.5\n",
            "a whole number of milliseconds",
        ),
        (
            "opportunities = \"f\", packet = 1500",
            "3\n",
            "`packet` is a size",
        ),
    ] {
        let link = format!("rate = {{ {rate} }}\ndelay = \"1 ms\"");
        let error = plan(&link, &[("f", text)]).unwrap_err();
        assert!(error.contains(words), "{rate}: {error}");
    }
}

/// The workload of a flow whose trace has the given keys.
fn workload(keys: &str, files: &[(&str, &str)]) -> Result<anabranch_scenario::Workload, String> {
    let text = format!(
        "anabranch = 1\nname = \"t\"\nworld = {{ duration = \"20 s\" }}\nnode = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n\
         link = [{{ name = \"wire\", between = [\"a\", \"b\"], rate = \"1 Mbit/s\", delay = \"1 ms\" }}]\n\
         [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\ntransport = {{ protocol = \"sctp\" }}\n\
         workload = {{ kind = \"trace\", {keys} }}\n"
    );
    let texts = files.iter();
    let texts = texts.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    let request = PlanRequest {
        file: "t.toml".into(),
        text,
        files: Files::of(texts.collect()),
        ..PlanRequest::default()
    };
    let plan = Plan::new(request).map_err(|error| error.to_string())?;
    Ok(plan.spec.flows[0].workload.clone())
}

#[test]
fn a_file_of_messages_stands_for_them() {
    let by_file = workload(
        "file = \"m.csv\"",
        &[(
            "m.csv",
            "time,size,stream\n# a day\n0,100,3\n\n0.5,2 kB,0\n",
        )],
    );
    let by_hand = workload(
        "messages = [{ at = \"0 s\", size = \"100 B\", stream = 3 }, { at = \"0.5 s\", size = \"2 kB\", stream = 0 }]",
        &[],
    );
    assert_eq!(by_file.unwrap(), by_hand.unwrap());
}

#[test]
fn titles_say_the_units_of_messages() {
    let by_file = |text: &str| workload("file = \"m.csv\"", &[("m.csv", text)]);
    let by_hand = workload(
        "messages = [{ at = \"0 ms\", size = \"100 B\" }, { at = \"500 ms\", size = \"2000 B\", stream = 3 }]",
        &[],
    );
    let by_hand = by_hand.unwrap();
    for text in [
        "time_ms,size_bytes,stream\n0,100,\n500,2000,3\n",
        "t [ms],bytes,sid\n0,100\n500,2000 B,3\n",
    ] {
        assert_eq!(by_file(text).unwrap(), by_hand, "{text}");
    }
    assert_eq!(
        by_file("time_min,size_kb\n1,2\n").unwrap(),
        workload("messages = [{ at = \"1 min\", size = \"2 kB\" }]", &[]).unwrap()
    );
    for (text, words) in [
        (
            "time,size_bits\n0,100\n",
            "found the title \"size_bits\", which is in bits",
        ),
        ("size,time\n0,100\n", "found the title \"size\""),
        ("time,size,delay\n0,100,1\n", "allowed: stream"),
        ("time,size,stream\n0,,700\n", "without a value in column 2"),
    ] {
        let error = by_file(text).unwrap_err();
        assert!(error.contains(words), "{text:?}: {error}");
    }
}

#[test]
fn wrong_files_of_messages_say_what_is_wrong() {
    for (text, words) in [
        ("0,100,1,1\n", "line 1"),
        ("0,100\nx,100\n", "line 2"),
        ("# nothing\n", "no line has a time and a size"),
        ("1,100\n0,100\n", "order of time"),
        ("0,0\n", "0 B"),
    ] {
        let error = workload("file = \"m.csv\"", &[("m.csv", text)]).unwrap_err();
        assert!(error.contains(words), "{text:?}: {error}");
    }
    let error = workload("file = \"other.csv\"", &[("m.csv", "0,1\n")]).unwrap_err();
    assert!(
        error.contains("`flow.f.workload.file`: cannot read"),
        "{error}"
    );
}

const STATION: &str = "ISS (ZARYA)
1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927
2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537
";

/// The file of elements has one satellite, and the path leads over it between two places on the
/// ground.
#[test]
fn a_file_of_elements_is_a_path_over_its_satellites() {
    let link = |more: &str| {
        format!(
            "rate = \"1 Mbit/s\"\ndelay = {{ kind = \"satellites\", file = \"s.tle\", from = \"53,160\", to = \"54,161\", min_elevation = 5{more} }}"
        )
    };
    let read = |more: &str, text: &str| plan(&link(more), &[("s.tle", text)]);
    let it = read("", STATION).unwrap_or_else(|error| panic!("{error}"));
    let delay = serde_json::to_value(&it.spec.links[0]).unwrap()["delay"].clone();
    assert_eq!(
        (&delay["elements"], &delay["file"]),
        (&STATION.into(), &serde_json::Value::Null)
    );
    let odd = format!("{STATION}B\nC\n");
    let it = read(", date = \"2008-264T12:20:00Z\", jitter = \"2 ms\"", &odd);
    let it = it.unwrap_or_else(|error| panic!("{error}"));
    let notes = it.notes.join("\n");
    let dates = "`link.wire.delay`: elements of 2008-09-20 12:25:40 UTC, 0.0 to 0.0 days from the start, 2008-09-20 12:20:00 UTC";
    assert!(notes.contains(dates), "{notes}");
    assert!(
        notes.contains("`link.wire.delay`: 2 entries are left out; the first: line 5"),
        "{notes}"
    );
    for (more, text, words) in [
        (
            ", date = \"2008-11-01\"",
            STATION,
            "1 of 1 satellites have elements of a date more than 14 days from the start",
        ),
        (", date = \"today\"", STATION, "found \"today\""),
        (", relay = \"isl\"", STATION, "bent-pipe"),
        ("", "nonsense", "line 1: found \"nonsense\""),
        (
            ", elements = \"x\"",
            STATION,
            "found both a file and `elements`",
        ),
    ] {
        let error = read(more, text).expect_err(more);
        assert!(error.contains(words), "{more}: {error}");
    }
    let other = "rate = \"1 Mbit/s\"\ndelay = { kind = \"satellites\", from = \"53,160\", to = \"54,161\", date = \"2008-09-20\" }";
    let error = plan(other, &[]).expect_err("a shell has no dates");
    assert!(
        error.contains("`start` is a time after its epoch"),
        "{error}"
    );
}

#[test]
fn an_attenuation_has_a_trace() {
    let link = |attenuation: &str| {
        format!(
            "rate = \"5 Mbit/s\"\ndelay = \"1 ms\"\n\
             queue = {{ forward = {{ kind = \"dvb-s2\", clear_sky = 12, attenuation = {attenuation} }} }}"
        )
    };
    let file = ("fade.csv", "time (s),attenuation (dB)\n0,0\n2.5,4.25\n");
    let by_file = plan(&link("{ trace = \"fade.csv\" }"), &[file]);
    let by_hand = plan(
        &link("{ steps = [[\"0 s\", 0.0], [\"2.5 s\", 4.25]] }"),
        &[],
    );
    let [by_file, by_hand] =
        [by_file, by_hand].map(|plan| plan.unwrap_or_else(|error| panic!("{error}")));
    assert_eq!(by_file.spec.links[0].queue, by_hand.spec.links[0].queue);
    let wrong = ("fade.csv", "time,mbps\n0,0\n");
    let error = plan(&link("{ trace = \"fade.csv\" }"), &[wrong]).unwrap_err();
    assert!(error.contains("mbps"), "{error}");
}

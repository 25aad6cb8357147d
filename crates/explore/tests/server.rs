//! Tests of the server with raw HTTP requests on a socket.

use anabranch_engine::plan::{Plan, PlanRequest};
use anabranch_explore::{LoadedSpec, Server, Session};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SPEC: &str = r#"
anabranch = 1
name = "pair"
title = "Two hosts"

[parameters]
rate = "2 Mbit/s"
loss = 0.01
other = "10 ms"

[world]
duration = "20 s"

[[node]]
name = "a"
[[node]]
name = "b"

[[link]]
name = "wire"
between = ["a", "b"]
rate = "$rate"
delay = "100 ms"
queue = "20 packets"
loss = { forward = { model = "bernoulli", probability = "$loss" } }

[[flow]]
name = "sctp"
from = "a"
to = "b"
workload = { kind = "bulk" }
transport = { protocol = "sctp" }

[[measure]]
metric = "goodput"
flow = "sctp"

[[experiment]]
id = "losses"
replications = 5
[[experiment.sweep]]
parameter = "loss"
values = [0.0, 0.02]

[[experiment]]
id = "slow"
parameters = { "link.wire.delay" = "$other" }

[[table]]
id = "losses"
title = "Goodput"
row = [{ series = "sctp", metric = "goodput" }]
"#;

/// A server for the spec of these tests, which ends with the runtime of the test.
async fn served() -> Page {
    served_of(SPEC).await
}

async fn served_of(text: &str) -> Page {
    let session = Session::new(LoadedSpec {
        file: "pair.toml".to_owned(),
        text: text.to_owned(),
        ..LoadedSpec::default()
    });
    let server = Server::bind(session.expect("a spec"), 0).await;
    let server = server.expect("a port");
    let url = server.url();
    tokio::spawn(server.serve());
    let rest = url.strip_prefix("http://").expect("a URL");
    let (host, path) = rest.split_once('/').expect("a path");
    Page {
        host: host.to_owned(),
        path: format!("/{path}"),
    }
}

struct Page {
    host: String,
    path: String,
}

impl Page {
    /// Sends a request; returns status and body of the response.
    async fn ask(&self, head: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.host).await.expect("a server");
        let length = body.len();
        let request =
            format!("{head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = Vec::new();
        // Fails if the server rejects a request without reading its body.
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).expect("text");
        let status = answer.split(' ').nth(1).expect("a status");
        (status.parse().expect("a number"), answer)
    }

    async fn get(&self, name: &str) -> (u16, String) {
        let (host, path) = (&self.host, &self.path);
        self.ask(&format!("GET {path}{name} HTTP/1.1\r\nhost: {host}"), "")
            .await
    }

    async fn post(&self, name: &str, body: &Value) -> (u16, String) {
        let (host, path) = (&self.host, &self.path);
        let head = format!("POST {path}{name} HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}");
        self.ask(&head, &body.to_string()).await
    }

    /// Executes a run; returns its lines of JSON.
    async fn run(&self, choice: &Value) -> Vec<Value> {
        let (status, answer) = self
            .post("run", &json!({ "pane": 0, "choice": choice }))
            .await;
        assert_eq!(status, 200, "{answer}");
        lines(&answer)
    }
}

/// Parses the lines of JSON in a response, chunked or not.
fn lines(answer: &str) -> Vec<Value> {
    let lines = answer.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn choice(set: &[(&str, &str)]) -> Value {
    json!({ "experiment": 0, "point": 1, "seed": 1, "set": set })
}

#[tokio::test]
async fn the_page_and_all_that_it_is_made_of_come_from_this_server() {
    let page = served().await;
    let (status, html) = page.get("").await;
    assert_eq!(status, 200);
    assert!(html.contains("default-src 'none'") && html.contains("no-referrer"));
    let quoted = html
        .split('"')
        .filter(|it| it.ends_with(".js") || it.ends_with(".css"));
    let mut names: Vec<&str> = quoted.collect();
    assert_eq!(names.len(), 3, "{names:?}");
    let (_, script) = page.get("page.js").await;
    names.extend(script.split('"').filter_map(|it| it.strip_prefix("./")));
    assert_eq!(names.len(), 8, "{names:?}");
    for name in names {
        let (status, text) = page.get(name).await;
        assert_eq!(status, 200, "{name}");
        assert!(text.len() > 1000, "{name}");
        for elsewhere in ["src=\"http", "href=\"http", "from \"http"] {
            assert!(
                name == "plotly.js" || !text.contains(elsewhere),
                "{name}: {elsewhere}"
            );
        }
    }
    let (_, plotly) = page.get("plotly.js").await;
    assert!(plotly.contains("plotly.js v") && plotly.contains("MIT license"));
}

#[tokio::test]
async fn requests_without_token_of_other_hosts_or_names_are_refused() {
    let page = served().await;
    let (host, path) = (&page.host, &page.path);
    let port = host.rsplit(':').next().expect("a port");
    for head in [
        format!("GET / HTTP/1.1\r\nhost: {host}"),
        format!("GET /page.js HTTP/1.1\r\nhost: {host}"),
        format!("GET /{}/ HTTP/1.1\r\nhost: {host}", "0".repeat(32)),
        format!(
            "GET /?token={} HTTP/1.1\r\nhost: {host}",
            path.trim_matches('/')
        ),
        format!("GET {path} HTTP/1.1\r\nhost: evil.example:{port}"),
        format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1"),
        format!("POST {path}run HTTP/1.1\r\nhost: {host}\r\norigin: http://evil.example"),
        format!("POST {path}run HTTP/1.1\r\nhost: {host}\r\norigin: null"),
        format!("GET {path}spec HTTP/1.1\r\nhost: {host}\r\nsec-fetch-site: cross-site"),
    ] {
        let (status, answer) = page.ask(&head, "").await;
        assert_eq!(status, 403, "{head}\n{answer}");
        assert!(!answer.contains("<html"), "{head}");
        assert!(
            !answer.to_lowercase().contains("access-control-allow"),
            "{head}"
        );
    }
    let (status, _) = page.get("spec").await;
    assert_eq!(status, 200);
    assert_eq!(page.get("nothing").await.0, 404);
}

#[tokio::test]
async fn a_moved_value_gives_another_run_and_the_same_value_the_same() {
    let page = served().await;
    let curve = |lines: &[Value]| {
        let points = lines.iter().filter(|line| line["is"] == "points");
        points.map(|line| line["lines"].clone()).collect::<Vec<_>>()
    };
    let first = page.run(&choice(&[])).await;
    assert_eq!(first[0]["is"], "begin");
    assert_eq!(first[0]["duration"], 20.0);
    let end = first.last().expect("an end");
    assert_eq!(end["is"], "end", "{end}");
    assert_eq!(end["measures"][0]["metric"], "goodput");
    let probes: Vec<Value> = curve(&first)
        .iter()
        .flat_map(|lines| lines.as_array().expect("lines").clone())
        .map(|line| line["probe"].clone())
        .collect();
    for probe in [
        "cwnd",
        "queue",
        "cumulative_ack",
        "goodput",
        "retransmitted",
        "drop",
    ] {
        assert!(probes.contains(&json!(probe)), "{probe}: {probes:?}");
    }
    let all = |lines: &[Value]| {
        let curve = curve(lines);
        let points = curve
            .iter()
            .flat_map(|it| it.as_array().expect("lines").clone());
        points
            .map(|it| it["x"].as_array().expect("x").len())
            .sum::<usize>()
    };
    assert!(
        all(&first) > 500 && all(&first) < 64 * 1700,
        "{}",
        all(&first)
    );
    let moved = page.run(&choice(&[("rate", "1 Mbit/s")])).await;
    let goodput = |lines: &[Value]| {
        let end = lines.last().expect("an end");
        end["measures"][0]["value"].as_f64().expect("a number")
    };
    assert!(goodput(&moved) < 1e6 && goodput(&moved) != goodput(&first));
    assert_eq!(goodput(&page.run(&choice(&[])).await), goodput(&first));
}

#[tokio::test]
async fn the_spec_of_a_run_stands_alone_and_gives_the_same() {
    let page = served().await;
    let told = page.run(&choice(&[("rate", "1.5 Mbit/s")])).await;
    let toml = told[0]["toml"].as_str().expect("a spec");
    assert!(
        toml.contains("rate = \"1.5 Mbit/s\"") && toml.contains("loss = 0.02"),
        "{toml}"
    );
    for gone in ["sweep", "table", "slow", "other"] {
        assert!(!toml.contains(gone), "{gone} in {toml}");
    }
    let plan = Plan::new(PlanRequest::new("", toml).with(|it| it.seed = 1));
    let plan = plan.expect("a spec that is right");
    let units = anabranch_engine::plan::PlannedRun::all(&plan);
    assert_eq!(units.len(), 1);
    let mut sink = anabranch_engine::sink::Memory::default();
    let record = anabranch_engine::world::run(&units[0], 1, &mut sink, &[]).expect("a run");
    let end = told.last().expect("an end");
    assert_eq!(end["measures"], json!(record.metrics));
}

#[tokio::test]
async fn a_mistaken_value_is_answered_with_the_specs_own_diagnostics() {
    let page = served().await;
    for (key, value, words) in [
        ("rate", "5 Mbits", "did you mean \"Mbit/s\"?"),
        ("rat", "5 Mbit/s", "did you mean `rate`?"),
        ("link.wire.quue", "5 packets", "did you mean `queue`?"),
        ("loss", "1.5", "0 to 1"),
        ("", "", "no parameter"),
    ] {
        let told = page.run(&choice(&[(key, value)])).await;
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0]["is"], "refused");
        let text = told[0]["text"].as_str().expect("text");
        assert!(text.contains(words), "{key}={value}: {text}");
    }
}

#[tokio::test]
async fn experiments_bring_their_own_values_and_unknown_ones_are_refused() {
    let page = served().await;
    let (_, spec) = page.get("spec").await;
    let spec = &lines(&spec)[0];
    assert_eq!(
        spec["experiments"][0]["points"],
        json!(["loss 0", "loss 0.02"])
    );
    let slow = json!({ "experiment": 1, "point": 0, "seed": 1 });
    let (status, controls) = page.post("controls", &slow).await;
    assert_eq!(status, 200, "{controls}");
    let keys: Vec<&str> = controls
        .split("\"key\":\"")
        .skip(1)
        .filter_map(|it| it.split('"').next())
        .collect();
    assert_eq!(keys[..3], ["rate", "loss", "other"], "{controls}");
    assert!(keys.contains(&"link.wire.queue") && !keys.contains(&"link.wire.delay"));
    for (experiment, point) in [(2, 0), (0, 2), (1, 1)] {
        let wrong = json!({ "experiment": experiment, "point": point, "seed": 1 });
        assert_eq!(page.post("controls", &wrong).await.0, 400);
        assert_eq!(page.run(&wrong).await[0]["is"], "refused");
    }
}

#[tokio::test]
async fn the_ladder_has_the_packets_of_its_window() {
    let page = served().await;
    let wanted = json!({ "pane": 0, "choice": choice(&[]), "flow": "sctp", "member": 0, "window": [5.0, 6.0] });
    let (status, answer) = page.post("ladder", &wanted).await;
    assert_eq!(status, 200);
    let ladder = &lines(&answer)[0];
    let segments = ladder["segments"].as_array().expect("segments");
    assert!(segments.len() > 10, "{answer}");
    for segment in segments {
        let departed = segment["departed"].as_f64().expect("a time");
        let arrived = segment["arrived"].as_f64();
        assert!(
            departed <= 6.0 && arrived.unwrap_or(departed) >= 5.0,
            "{segment}"
        );
        // The transit time is at least the delay of the link.
        assert!(arrived.is_none_or(|at| at > departed + 0.1), "{segment}");
    }
    assert!(!ladder["acks"].as_array().expect("acks").is_empty());
}

#[tokio::test]
async fn the_samples_are_a_table_with_every_sample() {
    let page = served().await;
    let (status, answer) = page
        .post(
            "samples.csv",
            &json!({ "pane": 0, "choice": choice(&[("loss", "0.0")]) }),
        )
        .await;
    assert_eq!(status, 200);
    assert!(answer.contains("series,member,probe,unit,index,time,value\n"));
    let rows = |start: &str| {
        answer
            .lines()
            .filter(|line| line.starts_with(start))
            .count()
    };
    assert!(rows("sctp,0,cumulative_ack,") > 500, "{}", rows("sctp,0,"));
    assert!(rows("wire,0,queue,packets,") > 1000);
}

/// A constellation of twelve satellites over the equator, and a flow from 0° E to 60° E over three
/// of them.
const RING: &str = r#"
anabranch = 1
name = "ring"
world = { duration = "10 s" }
[[constellation]]
name = "ring"
shells = [{ kind = "walker", planes = 1, satellites = 12, phasing = 0, altitude = 1000, inclination = 0, min_elevation = 10 }]
isl = { rate = "1 Mbit/s" }
up = { rate = "1 Mbit/s" }
down = { rate = "1 Mbit/s" }
[[ground]]
name = "city"
stations = ["0,0", "0,60"]
[[flow]]
name = "f"
from = "city[0]"
to = "city[1]"
transport = { protocol = "udp" }
workload = { kind = "cbr", rate = "800 kbit/s", message = "1000 B" }
[[measure]]
metric = "goodput"
flow = "f"
"#;

#[tokio::test]
async fn a_constellation_has_a_map() {
    let page = served_of(RING).await;
    assert!(page.get("spec").await.1.contains("\"map\":true"));
    let choice = json!({ "experiment": 0, "point": 0, "seed": 1, "set": [] });
    let wanted = json!({ "pane": 0, "choice": choice, "window": [0.0, 5.0] });
    let (status, answer) = page.post("map", &wanted).await;
    assert_eq!(status, 200, "{answer}");
    let frames = answer.matches("<g class=\"frame-10\"").count();
    assert_eq!(frames, 10, "{answer}");
    assert!(answer.contains("load from 4.5 to 5 s"), "{answer}");
    // Each frame contains the path, and its two links have a load above 75 %; the legend contains
    // both colours once.
    assert_eq!(answer.matches("stroke-opacity=\"0.45\"").count(), 10);
    assert_eq!(answer.matches("stroke=\"#D55E00\"").count(), 11);
    let wrong = json!({ "pane": 2, "choice": choice });
    assert_eq!(page.post("map", &wrong).await.0, 400);
    let plain = served().await;
    assert!(plain.get("spec").await.1.contains("\"map\":false"));
}

#[tokio::test]
async fn invalid_requests_are_refused_and_large_ones_are_not_read() {
    let page = served().await;
    for wrong in [
        json!({}),
        json!({ "pane": 2, "choice": choice(&[]) }),
        json!({ "pane": 0, "choice": choice(&[]), "more": 1 }),
    ] {
        assert_eq!(page.post("run", &wrong).await.0, 400, "{wrong}");
    }
    let large = json!({ "pane": 0, "choice": choice(&[("rate", &"x".repeat(100_000))]) });
    assert_eq!(page.post("run", &large).await.0, 413);
    let many: Vec<(&str, &str)> = vec![("rate", "1 Mbit/s"); 257];
    assert_eq!(page.run(&choice(&many)).await[0]["is"], "refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_run_of_a_pane_ends_the_one_before_it() {
    let page = served().await;
    // Executing the whole run would take minutes.
    let long = choice(&[
        ("world.duration", "100000 s"),
        ("loss", "0.0"),
        ("rate", "100 Mbit/s"),
    ]);
    let body = json!({ "pane": 0, "choice": long }).to_string();
    let (host, path, length) = (&page.host, &page.path, body.len());
    let mut stream = TcpStream::connect(host).await.expect("a server");
    let request = format!(
        "POST {path}run HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut ended = Vec::new();
    while !String::from_utf8_lossy(&ended).contains("\"begin\"") {
        assert!(stream.read_buf(&mut ended).await.expect("more") > 0);
    }
    // The output of the first run must be read, because the run may block on it.
    let rest = tokio::spawn(async move {
        stream.read_to_end(&mut ended).await.expect("an end");
        ended
    });
    let told = page.run(&choice(&[])).await;
    assert_eq!(told.last().expect("a line")["is"], "end");
    let ended = String::from_utf8(rest.await.expect("the rest")).expect("text");
    assert_eq!(lines(&ended).last().expect("a line")["is"], "superseded");
}

/// A page may stop reading, for example in an inactive browser tab.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_nothing_delays_no_other() {
    let page = served().await;
    let long = choice(&[("world.duration", "100000 s"), ("loss", "0.0")]);
    let body = json!({ "pane": 0, "choice": long }).to_string();
    let (host, path, length) = (&page.host, &page.path, body.len());
    let mut asleep = TcpStream::connect(host).await.expect("a server");
    let request = format!(
        "POST {path}samples.csv HTTP/1.1\r\nhost: {host}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    asleep.write_all(request.as_bytes()).await.expect("sent");
    // Some time after this read, all buffers of the system are full.
    let mut begun = [0; 1 << 16];
    asleep.read_exact(&mut begun).await.expect("samples");
    for _ in 0..3 {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let short = json!({ "pane": 0, "choice": choice(&[]) });
        let asked = page.post("samples.csv", &short);
        let minutes = std::time::Duration::from_secs(300);
        let (status, answer) = tokio::time::timeout(minutes, asked).await.expect("an end");
        assert_eq!(status, 200);
        assert!(answer.contains("sctp,0,cumulative_ack,"));
    }
    drop(asleep);
}

//! Tests with generated inputs: the round trips `Spec -> TOML -> Spec` and `Document -> TOML ->
//! Document` should change nothing.
//!
//! A failure prints the smallest failing case and its seed; `PROPTEST_RNG_SEED` repeats a case.

use anabranch_scenario::Spec;
use anabranch_scenario::decode::decode;
use anabranch_scenario::document::{Document, SpecTable};
use anabranch_scenario::quantity::{Capacity, Probability, Rate, Size, TimeSpan};
use anabranch_scenario::source_span::SourceSpan;
use anabranch_scenario::tree::{NodeValue, SpecNode, TableEntry};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn span() -> impl Strategy<Value = TimeSpan> {
    prop_oneof![
        0..10_u64.pow(18),
        (0..1000_u64).prop_map(|ms| ms * 1_000_000)
    ]
    .prop_map(TimeSpan)
}

fn size() -> impl Strategy<Value = Size> {
    prop_oneof![1..10_u64.pow(15), (1..1000_u64).prop_map(|kib| kib << 10)].prop_map(Size)
}

fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![
        1..10_u64.pow(15),
        (1..1000_u64).prop_map(|it| it * 1_000_000)
    ]
    .prop_map(Rate)
}

fn amount() -> impl Strategy<Value = Capacity> {
    prop_oneof![
        (1..10_000_u64).prop_map(Capacity::Packets),
        (1..10_000_u64).prop_map(Capacity::Segments),
        (1..10_u64.pow(15)).prop_map(Capacity::Bytes),
    ]
}

fn probability() -> impl Strategy<Value = Probability> {
    (0.0..=1.0_f64).prop_map(Probability)
}

fn prose() -> impl Strategy<Value = String> {
    "[ -~\\n\\tä€\u{7f}]{0,20}"
}

/// A value for both directions, for one of them, or for none.
fn directed<T: Clone + std::fmt::Debug + serde::Serialize + 'static>(
    of: impl Strategy<Value = T> + Clone + 'static,
) -> impl Strategy<Value = Option<SpecNode>> {
    let node = |value| {
        Document::new("n")
            .with("value", value)
            .root()
            .get("value")
            .cloned()
    };
    prop_oneof![
        Just(None),
        of.clone().prop_map(node),
        (option::of(of.clone()), of).prop_map(move |(forward, backward)| {
            let sides = SpecTable::new().with("backward", backward);
            let sides = forward
                .into_iter()
                .fold(sides, |it, side| it.with("forward", side));
            Document::new("n")
                .with("value", sides)
                .root()
                .get("value")
                .cloned()
        }),
    ]
}

fn text(text: &str) -> SpecNode {
    SpecNode {
        place: SourceSpan::Program,
        value: NodeValue::Text(text.to_owned()),
    }
}

fn loss() -> impl Strategy<Value = SpecTable> + Clone {
    let place = prop_oneof![Just("before-queue"), Just("after-queue")];
    prop_oneof![
        (probability(), place.clone()).prop_map(|(probability, place)| SpecTable::new()
            .with("model", "bernoulli")
            .with("probability", probability)
            .with("place", place)),
        (probability(), probability(), probability()).prop_map(|(bad, good, lost)| SpecTable::new(
        )
        .with("model", "gilbert-elliott")
        .with("to_bad", bad)
        .with("to_good", good)
        .with("loss_good", lost)),
        vec((span(), probability()), 1..4).prop_map(|steps| SpecTable::new()
            .with("model", "schedule")
            .with("steps", steps)),
        Just(SpecTable::new().with("model", "none")),
    ]
    .boxed()
}

fn link() -> impl Strategy<Value = SpecTable> {
    let delay = prop_oneof![
        span().prop_map(|delay| SpecTable::new()
            .with("kind", "deterministic")
            .with("delay", delay)),
        (span(), span()).prop_map(|(delay, jitter)| SpecTable::new()
            .with("kind", "jitter")
            .with("delay", delay)
            .with("jitter", jitter)),
    ];
    let parts = (
        directed(rate().boxed()).prop_map(|it| it.unwrap_or(text("2 Mbit/s"))),
        directed(delay.boxed()).prop_map(|it| it.unwrap_or(text("5 ms"))),
        directed(amount().boxed()),
        directed(loss().boxed()),
        option::of(size()),
        directed(vec([span(), span()], 0..3).boxed()),
    );
    parts.prop_map(|(rate, delay, queue, loss, mtu, down)| {
        let link = SpecTable::new()
            .with("name", "wire")
            .with("between", ["a", "b[last]"])
            .with("rate", rate)
            .with("delay", delay);
        let parts = [("queue", queue), ("loss", loss), ("down", down)];
        let link = parts
            .into_iter()
            .fold(link, |link, (key, value)| match value {
                Some(value) => link.with(key, value),
                None => link,
            });
        mtu.into_iter()
            .fold(link, |link, mtu| link.with("mtu", mtu))
    })
}

fn workload() -> impl Strategy<Value = SpecTable> {
    prop_oneof![
        size().prop_map(|message| SpecTable::new()
            .with("kind", "bulk")
            .with("message", message)),
        (rate(), size(), span()).prop_map(|(rate, message, on)| SpecTable::new()
            .with("kind", "on-off")
            .with("rate", rate)
            .with("message", message)
            .with("on", on)
            .with("off", on)
            .with("exponential", true)),
        vec((span(), size()), 1..4).prop_map(|messages| {
            let message =
                |(at, size): (TimeSpan, Size)| SpecTable::new().with("at", at).with("size", size);
            let messages: Vec<SpecTable> = messages.into_iter().map(message).collect();
            SpecTable::new()
                .with("kind", "trace")
                .with("messages", messages)
        }),
    ]
}

fn flow() -> impl Strategy<Value = SpecTable> {
    let start = prop_oneof![
        span().prop_map(|at| SpecTable::new().with("start", at)),
        (0..1000_u64, 0..1000_u64).prop_map(|(from, more)| {
            let uniform = [TimeSpan(from), TimeSpan(from + more)];
            SpecTable::new().with("start", SpecTable::new().with("uniform", uniform))
        }),
    ];
    (start, workload(), 1..9_u32, any::<i32>(), probability()).prop_map(
        |(flow, workload, count, streams, share)| {
            let switches = SpecTable::new()
                .with("share", share)
                .with("words", ["a", "b"]);
            let transport = SpecTable::new()
                .with("protocol", "sctp")
                .with("streams", streams)
                .with("switches", switches);
            flow.with("name", "one")
                .with("count", count)
                .with("from", "a")
                .with("to", "b")
                .with("workload", workload)
                .with("transport", transport)
        },
    )
}

fn experiment() -> impl Strategy<Value = SpecTable> {
    let value = prop_oneof![
        any::<i64>().prop_map(|it| SpecTable::new().with("x", it)),
        (-1e12..1e12_f64).prop_map(|it| SpecTable::new().with("x", it)),
        prose().prop_map(|it| SpecTable::new().with("x", it)),
    ];
    let points = vec((value, amount()), 1..4);
    (prose(), points, option::of(span()), 1..100_u32).prop_map(|(title, points, window, n)| {
        let points: Vec<SpecTable> = points
            .into_iter()
            .map(|(point, it)| point.with("queue", it))
            .collect();
        let sweep = SpecTable::new().with("name", "size").with("points", points);
        let measure = SpecTable::new()
            .with("metric", "goodput")
            .with("flow", "one");
        let measure = window.into_iter().fold(measure, |measure, begin| {
            measure.with("window", [begin, TimeSpan(begin.0 + 1)])
        });
        SpecTable::new()
            .with("id", "sizes")
            .with("title", title)
            .with("replications", n)
            .with("parameters", SpecTable::new().with("queue", "1 packet"))
            .with("sweep", [sweep])
            .with(
                "measure",
                [measure, SpecTable::new().with("metric", "jain_fairness")],
            )
            .with(
                "record",
                [SpecTable::new()
                    .with("flow", "one")
                    .with("probes", ["cwnd"])],
            )
    })
}

fn spec() -> impl Strategy<Value = Document> {
    let parts = (
        prose(),
        span(),
        link(),
        vec(flow(), 0..3),
        vec(experiment(), 0..3),
    );
    parts.prop_map(|(title, duration, link, flows, experiments)| {
        let document = Document::new("made")
            .with("title", title)
            .table("world", SpecTable::new().with("duration", duration))
            .push("node", SpecTable::new().with("name", "a"))
            .push("node", SpecTable::new().with("name", "b").with("count", 2))
            .push("link", link)
            .with("flow", flows);
        experiments
            .into_iter()
            .fold(document, |document, it| document.push("experiment", it))
    })
}

fn node() -> impl Strategy<Value = SpecNode> {
    let leaf = prop_oneof![
        prose().prop_map(NodeValue::Text),
        any::<i64>().prop_map(NodeValue::Integer),
        any::<f64>()
            .prop_filter("finite", |it| it.is_finite())
            .prop_map(NodeValue::Float),
        any::<bool>().prop_map(NodeValue::Boolean),
    ];
    let place = || SourceSpan::Program;
    let of = move |value| SpecNode {
        place: place(),
        value,
    };
    leaf.prop_map(of).prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(move |items| of(NodeValue::Array(items))),
            table(inner),
        ]
    })
}

fn table(inner: impl Strategy<Value = SpecNode>) -> impl Strategy<Value = SpecNode> {
    proptest::collection::btree_map("[a-z .\"$-]{0,6}", inner, 0..6).prop_map(|entries| {
        let entry = |(key, node)| TableEntry {
            key,
            key_place: SourceSpan::Program,
            node,
        };
        SpecNode {
            place: SourceSpan::Program,
            value: NodeValue::Table(entries.into_iter().map(entry).collect()),
        }
    })
}

fn read_back(document: &Document) -> Document {
    let written = document.to_toml();
    Document::parse(&written).unwrap_or_else(|error| panic!("{error:?}\n{written}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_spec_written_back_is_the_same(document in spec()) {
        prop_assert_eq!(document.problems(), &[]);
        let spec: Spec = decode(document.root(), "").map_err(|error| {
            TestCaseError::fail(format!("{error:?}\n{}", document.to_toml()))
        })?;
        let again = read_back(&Document::of(&spec).expect("a document"));
        let read: Result<Spec, _> = decode(again.root(), "");
        prop_assert_eq!(read, Ok(spec));
        prop_assert_eq!(read_back(&document), document);
    }

    #[test]
    fn a_document_written_back_is_the_same(root in table(node())) {
        let document = Document::from(root);
        prop_assert_eq!(read_back(&document), document);
    }
}

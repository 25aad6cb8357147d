//! Tests of kinds by name: every registered kind can be built from named values, and a program can
//! add its own kinds.

use anabranch_settings::{Datum, Fallback, Kind, KindEntry, Registry, Setting, kind};
use anabranch_sim::loss::{Loss, Traffic};
use anabranch_sim::{Packet, Rng, loss, propagation, queue, workload};
use anabranch_transport::Nanos;

/// A value that a required parameter accepts, such as the minimum of its value kind; `None` if it
/// has a default.
fn sample(setting: &Setting) -> Option<Datum> {
    if let Fallback::Is(_) | Fallback::Nothing = setting.fallback {
        return None;
    }
    // The lower limit of `clear_sky` depends on the table of MODCODs.
    if setting.name == "clear_sky" {
        return Some(Datum::Real(10.0));
    }
    Some(least(&setting.kind))
}

fn least(kind: &Kind) -> Datum {
    match *kind {
        Kind::Number {
            most, above: true, ..
        } => Datum::Real(most),
        Kind::Number { least, .. } => Datum::Real(least),
        Kind::Count { least, .. }
        | Kind::Duration { least, .. }
        | Kind::Bytes { least, .. }
        | Kind::Rate { least, .. } => Datum::Whole(least),
        Kind::List(item) => Datum::List(vec![least(item)]),
        Kind::Tuple(kinds) => Datum::List(kinds.iter().map(least).collect()),
        Kind::StepFunction(inner) => least(inner),
        Kind::Name(_) => Datum::word("anything"),
        Kind::Choice(choices) => Datum::word(choices[0].name),
        // Coordinates are the only required text parameters so far.
        Kind::Text(_) => Datum::word("0,0"),
        Kind::Amount { bytes, .. } => Datum::Whole(bytes[0]),
        Kind::Table(settings) => Datum::Table(required(settings)),
        Kind::Variant(variants) => {
            let first = variants()[0];
            Datum::Variant {
                kind: first.name.to_owned(),
                parameters: required(first.parameters),
            }
        }
        ref other => panic!("no sample of {other:?}"),
    }
}

/// Values of the parameters that have no default.
fn required(parameters: &[Setting]) -> Vec<(String, Datum)> {
    let samples = parameters
        .iter()
        .filter_map(|setting| Some((setting.name.to_owned(), sample(setting)?)));
    samples.collect()
}

/// Checks that every kind can be built from its required parameters, and that it rejects an unknown
/// parameter.
fn all_are_made<T, C>(registry: &Registry<T, C>, context: impl Fn() -> C) {
    assert!(!registry.variants().is_empty());
    for variant in registry.variants() {
        assert!(!variant.text().is_empty(), "{}", variant.name);
        let required = required(variant.parameters);
        let built = registry.build(variant.name, &required, context());
        assert!(built.is_ok(), "{}: {:?}", variant.name, built.err());
        for missing in 0..required.len() {
            let mut fewer = required.clone();
            let (name, _) = fewer.remove(missing);
            let refusal = registry.build(variant.name, &fewer, context()).err();
            let message = refusal.map(|refusal| refusal.to_string());
            assert_eq!(message, Some(format!("`{name}` is missing")));
        }
        let unknown = [("no_such_thing".to_owned(), Datum::Flag(true))];
        assert!(registry.build(variant.name, &unknown, context()).is_err());
    }
}

#[test]
fn every_kind_is_made_from_named_values() {
    all_are_made(&loss::kinds(), Traffic::default);
    all_are_made(&queue::kinds(), || ());
    all_are_made(&propagation::kinds(), || ());
    all_are_made(&workload::size::kinds(), || ());
    all_are_made(&workload::kinds(), workload::Context::default);
}

#[test]
fn defaults_are_those_of_the_texts() {
    // Defaults of RFC 8289 §4.4, §5.1 and §4.3, and of RFC 8033 §4.2 and §4.4.
    let codel = queue::CoDelConfig::default();
    let expected = (5_000_000, 100_000_000, 1500, false);
    assert_eq!(
        (codel.target, codel.interval, codel.mtu, codel.ecn),
        expected
    );
    let pie = queue::PieConfig::default();
    let expected = (15_000_000, 15_000_000, 150_000_000);
    assert_eq!((pie.target, pie.update, pie.burst), expected);
    let limit = [("limit".to_owned(), Datum::Segments(7))];
    let tail = queue::kinds().build("drop-tail", &limit, ()).unwrap();
    assert_eq!(
        tail.as_drop_tail(),
        Some(anabranch_sim::QueueLimit::Packets(7))
    );
    let all = queue::kinds().build("drop-tail", &[], ()).unwrap();
    assert_eq!(
        all.as_drop_tail(),
        Some(anabranch_sim::QueueLimit::Unlimited)
    );
}

/// Loss model that drops every n-th packet, defined outside the simulator.
struct EveryNth {
    n: u64,
    seen: u64,
}

impl Loss for EveryNth {
    fn takes(&mut self, _at: Nanos, _packet: &Packet, _rng: &mut Rng) -> bool {
        self.seen += 1;
        self.seen.is_multiple_of(self.n)
    }
}

kind! {
    /// The parameter of [`EveryNth`].
    struct Nth {
        /// Number of packets per loss.
        n: u64, Kind::count(1, 1_000_000);
    }
    /// Loses every n-th packet.
    static EVERY_NTH: KindEntry<Box<dyn Loss>, Traffic> =
        "every-nth", |it, _| Ok(Box::new(EveryNth { n: it.n, seen: 0 }));
}

#[test]
fn a_program_adds_a_kind_of_its_own() {
    let registry = loss::kinds().with(&EVERY_NTH);
    assert_eq!(registry.variants().len(), loss::KINDS.len() + 1);
    let three = [("n".to_owned(), Datum::Whole(3))];
    assert!(
        registry
            .build("every-nth", &three, Traffic::default())
            .is_ok()
    );
    let zero = [("n".to_owned(), Datum::Whole(0))];
    let refusal = registry
        .build("every-nth", &zero, Traffic::default())
        .err()
        .unwrap();
    assert!(refusal.to_string().contains("1 to 1000000"), "{refusal}");
}

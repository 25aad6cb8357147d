//! Tests of the declaration, construction and checks of kinds.

use crate::datum::Datum;
use crate::effect::Effect;
use crate::registry::{KindEntry, KindError, KindParameters, Registry};
use crate::setting::{Kind, Setting};
use crate::{idle_if, kind};

kind! {
    /// A whole number and a real one.
    #[derive(Debug, PartialEq)]
    struct Numbers {
        /// More than the context.
        whole: u64, Kind::count(1, 9);
        /// A share from 0 to 1.
        real: f64 = 0.5, CHANCE;
    }
    idle {
        real: |it, least| idle_if(it.whole > *least + 3, "far above");
        shared: |_, _| None;
    }
    /// A whole number and a real one.
    static PAIR: KindEntry<(u64, f64), u64> = "pair", |it, least| match it.whole > least {
        true => Ok((it.whole, it.real)),
        false => Err(KindError::together(format!("{} is not above {least}", it.whole))),
    };
}

const CHANCE: Kind = Kind::Number {
    least: 0.0,
    most: 1.0,
    above: false,
    step: 0.0,
};

fn given(values: &[(&str, Datum)]) -> Vec<(String, Datum)> {
    let owned = values
        .iter()
        .map(|(name, datum)| ((*name).to_owned(), datum.clone()));
    owned.collect()
}

#[test]
fn a_kind_is_made_from_named_values_and_defaults() {
    let registry = Registry::new(&[&PAIR]);
    let build = |values: &[(&str, Datum)]| registry.build("pair", &given(values), 2);
    assert_eq!(build(&[("whole", Datum::Whole(3))]).unwrap(), (3, 0.5));
    let both = [("real", Datum::Real(1.0)), ("whole", Datum::Whole(9))];
    assert_eq!(build(&both).unwrap(), (9, 1.0));
    let message = |values: &[(&str, Datum)]| build(values).unwrap_err().to_string();
    assert_eq!(message(&[]), "`whole` is missing");
    assert_eq!(message(&[("whole", Datum::Whole(2))]), "2 is not above 2");
    assert!(message(&[("whole", Datum::Whole(10))]).contains("1 to 9"));
    assert!(message(&[("wole", Datum::Whole(3))]).contains("`whole`"));
}

type Made = (&'static str, Vec<(&'static str, Datum)>);

/// Name and material.
static ALL: KindEntry<Made, u64> = KindEntry {
    variant: PAIR.variant,
    build: |parameters, _| Ok((parameters.kind(), parameters.all()?)),
    effects: |_, _| Ok(Vec::new()),
};

#[test]
fn all_values_are_handed_over_with_their_defaults() {
    let registry = Registry::new(&[&ALL]);
    let build = |value: Datum| registry.build("pair", &given(&[("whole", value)]), 0);
    let (kind, all) = build(Datum::Whole(3)).unwrap();
    let expected = vec![("whole", Datum::Whole(3)), ("real", Datum::Real(0.5))];
    assert_eq!((kind, all), ("pair", expected));
    assert!(build(Datum::Whole(10)).is_err());
    let missing = registry.build("pair", &[], 0).unwrap_err();
    assert_eq!(missing.to_string(), "`whole` is missing");
}

#[test]
fn an_unknown_kind_says_what_there_is() {
    let registry = Registry::new(&[&PAIR]);
    let refusal = registry.build("pear", &[], 0).unwrap_err().to_string();
    assert_eq!(
        refusal,
        "there is no kind `pear`; it is one of `pair`; did you mean `pair`?"
    );
}

#[test]
fn a_program_may_add_and_replace_kinds() {
    kind! {
        /// Nothing.
        struct Empty {}
        /// The context alone.
        static OTHER: KindEntry<(u64, f64), u64> = "other", |_, context| Ok((context, 0.0));
        /// Another kind with the name of `PAIR`.
        static PAIR_AGAIN: KindEntry<(u64, f64), u64> = "pair", |_, _| Ok((0, 0.0));
    }
    let registry = Registry::new(&[&PAIR]).with(&OTHER).with(&PAIR_AGAIN);
    assert_eq!(registry.variants().len(), 2);
    assert_eq!(registry.build("other", &[], 7).unwrap(), (7, 0.0));
    assert_eq!(registry.build("pair", &[], 7).unwrap(), (0, 0.0));
}

#[test]
fn a_rule_judges_what_differs_from_its_default() {
    let registry = Registry::new(&[&PAIR]);
    let effects = |whole: u64, real: &[f64]| {
        let mut values = vec![("whole", Datum::Whole(whole))];
        values.extend(real.iter().map(|&real| ("real", Datum::Real(real))));
        let prepared = registry.prepare("pair", given(&values)).unwrap();
        prepared.effects(&2).unwrap()
    };
    let shared = Effect {
        key: "shared",
        idle: None,
        redundant: false,
    };
    let real = |idle: Option<&str>| Effect {
        key: "real",
        idle: idle.map(str::to_owned),
        redundant: false,
    };
    // Parameters that are omitted or set to their default have no entry.
    assert_eq!(effects(6, &[]), std::slice::from_ref(&shared));
    assert_eq!(effects(6, &[0.5]), std::slice::from_ref(&shared));
    assert_eq!(
        effects(6, &[0.25]),
        [real(Some("far above")), shared.clone()]
    );
    assert_eq!(effects(5, &[0.25]), [real(None), shared]);
}

const SHARED: Setting =
    Setting::new("shared", " Shared.", Kind::List(&Kind::count(0, 9))).optional();

kind! {
    /// Fields of all forms.
    #[derive(Debug, PartialEq)]
    struct Forms: Default {
        own: Vec<u16> as SHARED;
        /// With a text.
        other: Option<Vec<u16>> as SHARED;
        sum: Sum as [SHARED];
    }
    /// All forms.
    static FORMS: KindEntry<Forms> = "forms", |it, ()| Ok(it);
}

/// The sum of the shared list.
#[derive(Debug, PartialEq)]
struct Sum(u16);

impl crate::FromParameters for Sum {
    fn read(parameters: &KindParameters<'_>) -> Result<Self, KindError> {
        Ok(Self(parameters.get::<Vec<u16>>("shared")?.iter().sum()))
    }
}

#[test]
fn shared_parameters_make_one_field_or_several() {
    let parameters = FORMS.variant.parameters;
    let names: Vec<(&str, String)> = parameters.iter().map(|it| (it.name, it.text())).collect();
    let expected = [
        ("own", "Shared."),
        ("other", "With a text."),
        ("shared", "Shared."),
    ];
    assert_eq!(names, expected.map(|(name, text)| (name, text.to_owned())));
    let registry = Registry::new(&[&FORMS]);
    let list = |numbers: &[u64]| Datum::List(numbers.iter().copied().map(Datum::Whole).collect());
    let values = [("other", list(&[1, 2])), ("shared", list(&[3, 4]))];
    let forms = registry.build("forms", &given(&values), ()).unwrap();
    let expected = Forms {
        own: Vec::new(),
        other: Some(vec![1, 2]),
        sum: Sum(7),
    };
    assert_eq!(forms, expected);
    let default = Forms {
        own: Vec::new(),
        other: None,
        sum: Sum(0),
    };
    assert_eq!(Forms::default(), default);
}

//! Tests of specs that try to exhaust the stack, the memory or the time of the program.

use std::collections::BTreeSet;
use std::fmt::Write;

use anabranch_scenario::decode::decode;
use anabranch_scenario::diagnostic::{Diagnostic, SpecError};
use anabranch_scenario::limits::{MAX_CHAIN, MAX_DEPTH, MAX_PROBLEMS};
use anabranch_scenario::spec::Spec;
use anabranch_scenario::substitute::substitute;
use anabranch_scenario::tree::SpecNode;

/// Substitutes the last parameter of a chain, in which `p0` is `first`, and each further parameter
/// is made from the previous one by `next`.
fn put_in(
    first: &str,
    levels: usize,
    next: impl Fn(&str) -> String,
) -> Result<SpecNode, Diagnostic> {
    let mut text = format!("[parameters]\np0 = {first}\n");
    for level in 1..=levels {
        let before = format!("$p{}", level - 1);
        writeln!(text, "p{level} = {}", next(&before)).expect("text");
    }
    writeln!(text, "[world]\nx = \"$p{levels}\"").expect("text");
    let root = SpecNode::parse(&text).unwrap_or_else(|problems| panic!("{problems:?}"));
    let resolved = substitute(root, &mut BTreeSet::new());
    resolved.map_err(|problems| problems.into_iter().next().expect("a problem"))
}

#[test]
fn parameters_in_a_row_are_followed_so_far() {
    let same = |before: &str| format!("\"{before}\"");
    assert!(put_in("1", MAX_CHAIN - 1, same).is_ok());
    for levels in [MAX_CHAIN, 20_000] {
        let error = put_in("1", levels, same).expect_err("too many");
        assert!(
            error.message.contains("name each other in a row"),
            "{error:?}"
        );
    }
    // Each reference is inside the maximum number of nested parentheses of an expression.
    let deep = |before: &str| format!("\"{}{before} + 1{}\"", "(".repeat(60), ")".repeat(60));
    let sum = put_in("1", MAX_CHAIN - 1, deep).expect("a sum");
    let sum = sum.get("world").and_then(|world| world.get("x"));
    assert_eq!(sum.expect("x").describe(), MAX_CHAIN.to_string());
}

#[test]
fn parameters_that_double_each_other_end() {
    for (first, next) in [
        ("[1]", "[\"$\", \"$\"]"),
        ("{ a = 1 }", "{ a = \"$\", b = \"$\" }"),
        ("\"a text of some length\"", "[\"$\", \"$\"]"),
    ] {
        let twice = |before: &str| next.replace('$', before);
        assert!(put_in(first, 10, twice).is_ok(), "{first}");
        let error = put_in(first, 60, twice).expect_err("too much");
        assert!(error.message.contains("more than 16 MiB"), "{error:?}");
    }
}

#[test]
fn parameters_do_not_add_up_to_a_tree_without_end() {
    let nested = |depth: usize| {
        move |before: &str| format!("{}\"{before}\"{}", "[".repeat(depth), "]".repeat(depth))
    };
    assert!(put_in("1", 4, nested(MAX_DEPTH / 8)).is_ok());
    let error = put_in("1", 5, nested(MAX_DEPTH / 4)).expect_err("too deep");
    assert!(error.message.contains("within one another"), "{error:?}");
}

/// Decodes a faulty spec, and returns its errors as the text that is printed for the user.
fn faults(text: &str) -> String {
    let root = SpecNode::parse(text).unwrap_or_else(|problems| panic!("{problems:?}"));
    let problems = decode::<Spec>(&root, "").expect_err("wrong");
    SpecError::new("t.toml", text, &[], problems).to_string()
}

#[test]
fn of_very_many_faults_the_first_are_reported() {
    let unknown = |count: usize| -> String {
        let keys = (0..count).map(|key| format!("k{key} = 1\n"));
        "anabranch = 1\nname = \"t\"\n".to_owned() + &keys.collect::<String>()
    };
    let few = faults(&unknown(3));
    assert!(few.ends_with(" errors; nothing was run"), "{few}");
    let flows = |count: usize| {
        let flows = (0..count).map(|flow| format!("[[flow]]\nname = \"f{flow}\"\nfrm = \"a\"\n"));
        "anabranch = 1\nname = \"t\"\n".to_owned() + &flows.collect::<String>()
    };
    // If a key is misspelled, the correct key should not also be reported as missing.
    let half = MAX_PROBLEMS / 2 + 1;
    for (text, shown) in [(flows(500), half), (unknown(20_000), MAX_PROBLEMS)] {
        let told = faults(&text);
        let end = format!("t.toml: {shown} errors and more; nothing was run");
        assert!(told.ends_with(&end), "{}", &told[told.len() - 200..]);
    }
}

#[test]
fn a_message_does_not_quote_without_end() {
    let long = "k".repeat(5_000_000);
    let told = faults(&format!("{long} = 1\n"));
    assert!(told.len() < 20_000, "{} bytes", told.len());
}

#[test]
fn of_very_many_names_some_are_listed() {
    let names: Vec<String> = (0..100_000).map(|name| format!("node{name}")).collect();
    let problem = Diagnostic::new(
        anabranch_scenario::source_span::SourceSpan::Program,
        "",
        "no such node",
    );
    let problem = problem.allowed("node7x", names.iter().map(String::as_str));
    assert_eq!(problem.nearest.as_deref(), Some("node7"));
    assert_eq!(problem.allowed.len(), 501);
    assert_eq!(problem.allowed[500], "and 99500 more");
}

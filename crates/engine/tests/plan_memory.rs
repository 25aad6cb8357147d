//! Test of the memory that a plan needs. It is a separate program, because it counts allocations of
//! the whole process.

use std::alloc::System;
use std::fmt::Write;

use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use cap::Cap;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Number of links in a chain, with a flow over all of them.
const LINKS: usize = 100;

/// A spec of one experiment with three sweeps, which have these numbers of values.
fn spec(counts: [usize; 3]) -> String {
    let mut text = String::from(
        "anabranch = 1\nname = \"row\"\nworld = { duration = \"1 s\" }\n\
         parameters = { rate = \"1 Mbit/s\", delay = \"1 ms\", loss = 0.0 }\n",
    );
    let mut add = |part: String| text += &part;
    for node in 0..=LINKS {
        add(format!("[[node]]\nname = \"n{node}\"\n"));
    }
    for link in 0..LINKS {
        add(format!(
            "[[link]]\nname = \"l{link}\"\nbetween = [\"n{link}\", \"n{}\"]\nrate = \"$rate\"\n\
             delay = \"$delay\"\nloss = {{ model = \"bernoulli\", probability = \"$loss\" }}\n",
            link + 1
        ));
    }
    add(format!(
        "[[flow]]\nname = \"f\"\nfrom = \"n0\"\nto = \"n{LINKS}\"\nworkload = {{ kind = \"bulk\" }}\n\
         transport = {{ protocol = \"tcp\" }}\n[[measure]]\nmetric = \"goodput\"\nflow = \"f\"\n\
         [[experiment]]\nid = \"e\"\n"
    ));
    let sweeps = [("rate", " Mbit/s"), ("delay", " ms"), ("loss", "")];
    for ((parameter, unit), count) in sweeps.into_iter().zip(counts) {
        let mut values = String::new();
        for value in 1..=count {
            let _ = match unit {
                "" => write!(values, "{}, ", value as f64 / 1000.0),
                unit => write!(values, "\"{value}{unit}\", "),
            };
        }
        add(format!(
            "[[experiment.sweep]]\nparameter = \"{parameter}\"\nvalues = [{values}]\n"
        ));
    }
    text
}

/// A plan, and the number of bytes that it retains.
fn planned(counts: [usize; 3]) -> (Plan, usize) {
    let before = ALLOCATOR.allocated();
    let plan = Plan::new(PlanRequest::new("row.toml", spec(counts)));
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    (plan, ALLOCATOR.allocated() - before)
}

/// 2,000 points should take little more memory than one point: 64 bytes for each further point,
/// even after many points have been resolved.
#[test]
fn memory_does_not_depend_on_the_number_of_points() {
    // The first plan is not measured, because it includes memory that the process initialises only
    // once.
    drop(planned([1, 1, 1]));
    let (one, of_one) = planned([1, 1, 1]);
    assert_eq!(one.runs(), 1);
    drop(one);
    let (plan, of_many) = planned([20, 10, 10]);
    assert_eq!(plan.experiments[0].points.len(), 2_000);
    println!("{of_one} bytes for one point, {of_many} for 2,000");
    assert!(of_many <= of_one + 64 * 2_000, "{of_one}, {of_many}");
    let before = ALLOCATOR.allocated();
    for unit in PlannedRun::all(&plan).iter().step_by(200) {
        let point = unit.resolve().expect("a point");
        assert_eq!(
            (point.point.clone(), point.hash()),
            (unit.point(), unit.point.hash())
        );
    }
    // The last resolved point is kept for the next run of the same point.
    let kept = ALLOCATOR.allocated() - before;
    assert!(kept < of_one, "{kept} of {of_one}");
}

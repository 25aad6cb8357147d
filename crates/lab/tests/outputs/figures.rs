//! Contents of figures: ladders, bands, bars, distributions, axes.

use std::sync::Arc;

use anabranch_report::figure::Content;
use anabranch_report::figure::ladder::Fate;
use anabranch_report::figure::plot::{Axis, Mark, Plot};
use anabranch_scenario::records::{Measure, SeriesQuery};
use anabranch_scenario::value::SweepValue;

use crate::{fake, figure, results};

#[test]
fn the_ladder_marks_the_lost_segment_and_its_repair() {
    let results = results(20);
    for id in ["fig-10", "fig-11"] {
        let Some(Content::Ladder(ladder)) = figure(&results, id).content else {
            panic!("{id} is no ladder")
        };
        let eighth: Vec<_> = ladder
            .segments
            .iter()
            .filter(|segment| segment.number == 8)
            .collect();
        assert_eq!(eighth.len(), 2, "{id}");
        assert_eq!(
            (eighth[0].fate, eighth[0].again),
            (Fate::Lost, false),
            "{id}"
        );
        assert!(
            matches!(eighth[1].fate, Fate::Arrived(_)) && eighth[1].again,
            "{id}"
        );
        let others = ladder.segments.iter().filter(|segment| segment.number != 8);
        assert!(
            others
                .into_iter()
                .all(|segment| matches!(segment.fate, Fate::Arrived(_))),
            "{id}"
        );
    }
}

/// Five runs have the rates 1, 2, 3, 4 and 9: the third is the median, and the band extends from
/// the 10th to the 90th percentile. The first run is also drawn separately.
#[test]
fn a_figure_over_time_shows_the_middle_of_all_recorded_runs() {
    let mut results = results(20);
    let query = SeriesQuery {
        experiment: "two-sources",
        probe: Some("throughput"),
        ..SeriesQuery::default()
    };
    let one = results.series(&query).expect("in memory").remove(0);
    let run = |(replication, factor): (u32, f64)| {
        let mut run = one.clone();
        run.replication = replication;
        run.samples.iter_mut().for_each(|it| it.value *= factor);
        run
    };
    let runs = [1.0, 2.0, 3.0, 4.0, 9.0];
    results.series = Arc::new((0..).zip(runs).map(run).collect::<Vec<_>>());
    let made = figure(&results, "fig-5");
    assert!(made.made.contains("the median of 5 runs"), "{}", made.made);
    let Some(Content::Plot(plot)) = made.content else {
        panic!("no plot")
    };
    let band = &plot.layers[0].points;
    let single = &plot.layers[1].points;
    assert_eq!((band.len(), plot.layers.len()), (one.samples.len(), 3));
    assert_eq!(single.len(), one.samples.len());
    for ((point, sample), single) in band.iter().zip(&one.samples).zip(single) {
        let mbit = sample.value / 1e6;
        assert_eq!(point.y, 3.0 * sample.value / 1e6);
        // The first run equals the figure of a single run.
        assert_eq!((single.x, single.y), (sample.time, mbit));
        let (low, high) = point.span.expect("a band");
        // The band extends from the 10th to the 90th percentile of the five runs: from 0.4 of the
        // way between the first and the second run to 0.6 of the way between the fourth and the
        // fifth.
        assert!((low - 1.4 * mbit).abs() < 1e-9 && (high - 7.0 * mbit).abs() < 1e-9);
    }
}

/// Horizontal axis of a figure over these values of a link's delay, and the marks of its curve.
fn swept(values: &[&str], keys: &str) -> (Axis, Vec<Mark>) {
    let plot = swept_as("sweep", values, keys);
    (plot.x, plot.layers.iter().map(|it| it.mark).collect())
}

/// A figure of this kind over these values of a link's delay, with one run at each value, whose
/// rates are 1, 2, ... Mbit/s.
fn swept_as(kind: &str, values: &[&str], keys: &str) -> Plot {
    let one = "curve = [{ label = \"f\", series = \"f\", metric = \"goodput\" }]";
    let curve = if keys.contains("curve") { "" } else { one };
    let text = format!(
        r#"
        anabranch = 1
        name = "delays"
        world = {{ duration = "10 s" }}
        node = [{{ name = "a" }}, {{ name = "b" }}]
        link = [{{ name = "wire", between = ["a", "b"], rate = "1 Mbit/s", delay = "1 ms" }}]
        flow = [{{ name = "f", from = "a", to = "b", workload = {{ kind = "bulk" }}, transport = {{ protocol = "sctp" }} }}]
        measure = [{{ metric = "goodput", flow = "f" }}]
        [[experiment]]
        id = "delays"
        sweep = [{{ name = "delay", parameter = "link.wire.delay", values = {values:?} }}]
        [[figure]]
        id = "delays"
        title = "Delays"
        kind = "{kind}"
        {keys}
        {curve}
        "#
    );
    let mut results = fake::results(fake::spec(&text), 1);
    let record = results.records[0].clone();
    let at = |(index, x): (usize, &&str)| {
        let mut record = record.clone();
        record.experiment = "delays".to_owned();
        record.point = vec![("delay".to_owned(), SweepValue::Text((*x).to_owned()))];
        record.metrics = vec![Measure {
            series: "f".to_owned(),
            metric: "goodput".to_owned(),
            value: 1e6 * (index + 1) as f64,
            unit: "bit/s".to_owned(),
        }];
        record
    };
    results.records = values.iter().enumerate().map(at).collect();
    match figure(&results, "delays").content {
        Some(Content::Plot(plot)) => plot,
        other => panic!("{other:?}"),
    }
}

#[test]
fn bars_stand_side_by_side_and_begin_at_zero() {
    let two = "curve = [{ label = \"f\", series = \"f\", metric = \"goodput\" }, { label = \"g\", series = \"f\", metric = \"goodput\" }]";
    let plot = swept_as("bars", &["10 ms", "1 s"], two);
    assert!(plot.layers.iter().all(|it| it.mark == Mark::Bars));
    let places = |at: usize| -> Vec<f64> { plot.layers[at].points.iter().map(|it| it.x).collect() };
    assert_eq!((places(0), places(1)), (vec![-0.2, 0.8], vec![0.2, 1.2]));
    assert_eq!((plot.y.low, plot.y.cut), (0.0, false));
    assert!(plot.x.low < -0.6 + 0.1 && plot.x.high > 1.4);
}

#[test]
fn a_distribution_counts_each_run_once() {
    let plot = swept_as("cdf", &["10 ms", "50 ms", "100 ms", "1 s"], "");
    let shares: Vec<(f64, f64)> = plot.layers[0]
        .points
        .iter()
        .map(|it| (it.x, it.y))
        .collect();
    assert_eq!(
        shares,
        [(1.0, 0.0), (1.0, 0.25), (2.0, 0.5), (3.0, 0.75), (4.0, 1.0)]
    );
    assert_eq!(
        (plot.x.label.as_str(), plot.y.high),
        ("goodput (Mbit/s)", 1.0)
    );
}

#[test]
fn a_logarithmic_axis_goes_up_too() {
    let plot = swept_as("sweep", &["10 ms", "50 ms", "100 ms"], "y_scale = \"log\"");
    assert!(plot.y.log && plot.y.low > 0.0 && plot.y.high > 3.0);
}

#[test]
fn quantities_along_x_are_numbers_of_one_unit() {
    let (x, marks) = swept(&["1 s", "50 ms", "10 ms"], "");
    assert_eq!(x.label, "delay (ms)");
    let ticks = [(10.0, "10"), (50.0, "50"), (1000.0, "1000")];
    assert_eq!(x.ticks, ticks.map(|(at, text)| (at, text.to_owned())));
    assert_eq!((marks, x.log), (vec![Mark::Means], false));
    // A unit that is already part of the label is not repeated.
    let (x, _) = swept(
        &["10 ms", "1 s"],
        "x_label = \"one way (ms)\"\nx_scale = \"log\"",
    );
    assert_eq!((x.label.as_str(), x.log), ("one way (ms)", true));
    assert!(x.low > 0.0 && x.low < 10.0 && x.high > 1000.0);
    // The axis is linear, because zero has no logarithm.
    let (x, _) = swept(&["0 s", "1 s"], "x_scale = \"log\"");
    assert_eq!((x.label.as_str(), x.log), ("delay (s)", false));
}

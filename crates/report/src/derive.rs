//! Computes the records of derived experiments from the records of the runs.

use anabranch_scenario::Spec;
use anabranch_scenario::derived::Derived;
use anabranch_scenario::records::{Measure, RunRecord};
use anabranch_scenario::value::{Point, SweepValue};

/// Computes the records of every derived experiment whose source was run, or was derived before.
pub fn records(spec: &Spec, runs: &[RunRecord]) -> Vec<RunRecord> {
    let mut all: Vec<RunRecord> = Vec::new();
    for derived in &spec.derived {
        let source: Vec<&RunRecord> = runs
            .iter()
            .chain(&all)
            .filter(|run| run.experiment == derived.experiment())
            .collect();
        let made = match derived {
            Derived::Relative { .. } => relative(derived, &source),
            Derived::SmallestX { .. } => smallest_x(derived, &source),
            Derived::Greatest { along, .. } => greatest(derived, along, &source),
        };
        all.extend(made);
    }
    all
}

/// Whether two x values are equal. Integers and fractions are comparable.
pub fn same(left: &SweepValue, right: &SweepValue) -> bool {
    left.is_same(right)
}

fn measured(derived: &Derived, run: &RunRecord) -> Option<(f64, String)> {
    let (series, metric) = derived.source();
    let found = |measure: &&Measure| measure.series == series && measure.metric == metric;
    run.metrics
        .iter()
        .find(found)
        .map(|measure| (measure.value, measure.unit.clone()))
}

fn record(derived: &Derived, point: Point, replication: u32, value: f64, unit: &str) -> RunRecord {
    let (series, metric) = derived.names();
    let measure = Measure {
        series,
        metric,
        value,
        unit: unit.to_owned(),
    };
    RunRecord {
        experiment: derived.id().to_owned(),
        point,
        replication,
        metrics: vec![measure],
        events: 0,
        simulated: 0.0,
        packet_hops: 0,
        failures: Vec::new(),
    }
}

fn relative(derived: &Derived, runs: &[&RunRecord]) -> Vec<RunRecord> {
    let Derived::Relative { to, .. } = derived else {
        return Vec::new();
    };
    let base_point = |point: &Point| -> Point {
        let moved = point
            .iter()
            .map(|(name, x)| (name.clone(), to.get(name).unwrap_or(x).clone()));
        moved.collect()
    };
    let same_point =
        |a: &Point, b: &Point| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(&a.1, &b.1));
    let one = |run: &&RunRecord| {
        let at = base_point(&run.point);
        let base = runs
            .iter()
            .find(|other| other.replication == run.replication && same_point(&other.point, &at))?;
        let (value, base) = (measured(derived, run)?.0, measured(derived, base)?.0);
        let increase = (value - base) / base * 100.0;
        increase
            .is_finite()
            .then(|| record(derived, run.point.clone(), run.replication, increase, "%"))
    };
    runs.iter().filter_map(one).collect()
}

fn without(point: &Point, along: &str) -> Point {
    point
        .iter()
        .filter(|(name, _)| name != along)
        .cloned()
        .collect()
}

fn distinct(points: impl Iterator<Item = Point>) -> Vec<Point> {
    let mut all: Vec<Point> = Vec::new();
    for point in points {
        if !all.contains(&point) {
            all.push(point);
        }
    }
    all
}

fn greatest(derived: &Derived, along: &str, runs: &[&RunRecord]) -> Vec<RunRecord> {
    let values = |at: &Point| -> Vec<(u32, f64, String)> {
        let here = runs.iter().filter(|run| run.point == *at);
        here.filter_map(|run| {
            let (value, unit) = measured(derived, run)?;
            Some((run.replication, value, unit))
        })
        .collect()
    };
    let mean = |at: &Point| {
        let values = values(at);
        values.iter().map(|(_, value, _)| value).sum::<f64>() / values.len() as f64
    };
    let full = distinct(runs.iter().map(|run| run.point.clone()));
    let rest = distinct(full.iter().map(|point| without(point, along)));
    let of_rest = |rest: &Point| {
        let candidates = full.iter().filter(|point| without(point, along) == *rest);
        let known = candidates.filter(|point| mean(point).is_finite());
        let best = known.max_by(|a, b| mean(a).total_cmp(&mean(b)));
        let values = best.map(&values).unwrap_or_default().into_iter();
        values
            .map(|(replication, value, unit)| {
                record(derived, rest.clone(), replication, value, &unit)
            })
            .collect::<Vec<_>>()
    };
    rest.iter().flat_map(of_rest).collect()
}

fn smallest_x(derived: &Derived, runs: &[&RunRecord]) -> Vec<RunRecord> {
    let Derived::SmallestX {
        along,
        at_most,
        unit,
        ..
    } = derived
    else {
        return Vec::new();
    };
    let unit = unit.as_deref().unwrap_or("1");
    let without = |point: &Point| without(point, along);
    let points = distinct(runs.iter().map(|run| without(&run.point)));
    let at = |point: &Point| {
        let here: Vec<&&RunRecord> = runs
            .iter()
            .filter(|run| without(&run.point) == *point)
            .collect();
        let mut replications: Vec<u32> = here.iter().map(|run| run.replication).collect();
        replications.sort_unstable();
        replications.dedup();
        let smallest = |replication: u32| {
            let mut all: Vec<(f64, f64)> = here
                .iter()
                .filter(|run| run.replication == replication)
                .filter_map(|run| {
                    let x = run
                        .point
                        .iter()
                        .find(|(name, _)| name == along)?
                        .1
                        .as_f64()?;
                    Some((x, measured(derived, run)?.0))
                })
                .collect();
            all.sort_by(|a, b| b.0.total_cmp(&a.0));
            let kept = all.iter().take_while(|(_, value)| value <= at_most);
            let (x, _) = kept.last()?;
            Some(record(derived, point.clone(), replication, *x, unit))
        };
        // Either all replications have a result or none is used, because a mean over only those
        // with a result would be too small.
        let found: Option<Vec<RunRecord>> = replications.into_iter().map(smallest).collect();
        found.unwrap_or_default()
    };
    points.iter().flat_map(at).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn run(x: &[(&str, SweepValue)], replication: u32, value: f64) -> RunRecord {
        let metric = Measure {
            series: "s".into(),
            metric: "m".into(),
            value,
            unit: "1".into(),
        };
        RunRecord {
            experiment: "e".into(),
            point: x
                .iter()
                .map(|(name, x)| ((*name).to_owned(), x.clone()))
                .collect(),
            replication,
            metrics: vec![metric],
            events: 7,
            simulated: 1.0,
            packet_hops: 3,
            failures: Vec::new(),
        }
    }

    #[test]
    fn the_greatest_mean_names_the_x_whose_values_are_kept() {
        let runs = [
            run(
                &[
                    ("loss", SweepValue::Integer(0)),
                    ("k", SweepValue::Integer(1)),
                ],
                0,
                9.0,
            ),
            run(
                &[
                    ("loss", SweepValue::Integer(0)),
                    ("k", SweepValue::Integer(1)),
                ],
                1,
                1.0,
            ),
            run(
                &[
                    ("loss", SweepValue::Integer(5)),
                    ("k", SweepValue::Integer(1)),
                ],
                0,
                6.0,
            ),
            run(
                &[
                    ("loss", SweepValue::Integer(5)),
                    ("k", SweepValue::Integer(1)),
                ],
                1,
                5.0,
            ),
            run(
                &[
                    ("loss", SweepValue::Integer(5)),
                    ("k", SweepValue::Integer(2)),
                ],
                0,
                -1.0,
            ),
        ];
        let derived = Derived::Greatest {
            id: "g".into(),
            experiment: "e".into(),
            series: "s".into(),
            metric: "m".into(),
            along: "loss".into(),
            name: "most".into(),
        };
        let all: Vec<&RunRecord> = runs.iter().collect();
        let found: Vec<(String, u32, f64)> = greatest(&derived, "loss", &all)
            .iter()
            .map(|run| {
                let k = run.point[0].1.to_string();
                (
                    k,
                    run.replication,
                    run.value("s", "most").unwrap_or(f64::NAN),
                )
            })
            .collect();
        // The x with the greatest single value, 9, is not used, because its mean is only 5.
        let expected = [
            ("1".to_owned(), 0, 6.0),
            ("1".to_owned(), 1, 5.0),
            ("2".to_owned(), 0, -1.0),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_increase_is_taken_over_the_base_of_the_same_replication() {
        let derived = Derived::Relative {
            id: "d".into(),
            experiment: "e".into(),
            series: "s".into(),
            metric: "m".into(),
            to: BTreeMap::from([("n".to_owned(), SweepValue::Integer(1))]),
            name: "increase".into(),
        };
        let at = |e: f64, n: i64| [("e", SweepValue::Float(e)), ("n", SweepValue::Integer(n))];
        let runs = [
            run(&at(0.1, 1), 0, 100.0),
            run(&at(0.1, 1), 1, 200.0),
            run(&at(0.1, 4), 0, 150.0),
            run(&at(0.1, 4), 1, 220.0),
            run(&at(0.2, 4), 0, 150.0),
        ];
        let made = relative(&derived, &runs.iter().collect::<Vec<_>>());
        let seen: Vec<(u32, f64)> = made
            .iter()
            .map(|r| (r.replication, r.metrics[0].value))
            .collect();
        assert_eq!(
            seen,
            [(0, 0.0), (1, 0.0), (0, 50.0), (1, 10.0)],
            "e = 0.2 has no base"
        );
        assert_eq!(
            (
                made[2].experiment.as_str(),
                made[2].metrics[0].metric.as_str()
            ),
            ("d", "increase")
        );
    }

    #[test]
    fn the_smallest_x_is_the_one_beyond_which_the_bound_always_holds() {
        let derived = Derived::SmallestX {
            id: "d".into(),
            experiment: "e".into(),
            series: "s".into(),
            metric: "m".into(),
            along: "b".into(),
            at_most: 0.01,
            name: "b_opt".into(),
            unit: Some("KiB".into()),
        };
        let mut runs = Vec::new();
        // At 10 the value is below the bound, and at 20 above it, so the result is 30. The second
        // replication of s = 4 never reaches the bound.
        let values = [
            (1, 0, [0.0, 0.5, 0.01]),
            (1, 1, [0.5, 0.0, 0.0]),
            (4, 0, [0.5, 0.0, 0.0]),
            (4, 1, [0.5, 0.5, 0.5]),
        ];
        for (s, replication, values) in values {
            for (b, value) in [10, 20, 30].into_iter().zip(values) {
                let point = [("s", SweepValue::Integer(s)), ("b", SweepValue::Integer(b))];
                runs.push(run(&point, replication, value));
            }
        }
        let made = smallest_x(&derived, &runs.iter().collect::<Vec<_>>());
        let seen: Vec<(u32, f64)> = made
            .iter()
            .map(|r| (r.replication, r.metrics[0].value))
            .collect();
        assert_eq!(seen, [(0, 30.0), (1, 20.0)]);
        assert_eq!(made[0].point, [("s".to_owned(), SweepValue::Integer(1))]);
    }
}

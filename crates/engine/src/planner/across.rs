//! Checks that concern all points of a plan together. Points may be added in any order, and none is
//! kept in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_scenario::Spec;
use anabranch_scenario::diagnostic::Diagnostic;

use super::notes::PointNotes;
use super::{add_new, constellations, elements, point_errors, unreached_times, windows};
use crate::ineffective_settings::IneffectiveKeys;
use crate::point::{PlannedPoint, PointIndex, PointSummary, Shape};

/// Findings over all points added so far.
#[derive(Default)]
pub struct Across {
    /// Names of the parameters that were used.
    pub used: BTreeSet<String>,
    first: Option<(PointIndex, Arc<Spec>)>,
    shape: Option<Arc<Shape>>,
    /// Problems of points at which a transport setting has no effect, by flow and setting.
    idle: BTreeMap<(usize, String), Vec<(PointIndex, Diagnostic)>>,
    /// For each flow, the settings that have an effect at some point.
    effective: Vec<BTreeSet<&'static str>>,
    everywhere: IneffectiveKeys,
    beyond: unreached_times::Times,
    windows: windows::WindowNotes,
    elements: PointNotes,
    constellations: PointNotes,
}

impl Across {
    /// Adds a point. Returns its summary for the plan.
    pub fn add(&mut self, order: PointIndex, point: &PlannedPoint) -> PointSummary {
        if self.first.as_ref().is_none_or(|(first, _)| order < *first) {
            self.first = Some((order, Arc::clone(&point.spec)));
        }
        self.add_idle(order, point);
        self.everywhere.add(order, &point.resolved.key_judgements);
        self.beyond.add(&point.spec);
        self.windows.add(order, point);
        elements::add(&mut self.elements, order, point);
        constellations::add(&mut self.constellations, order, point);
        let mut summary = point.summary(order.1);
        summary.share(&mut self.shape);
        summary
    }

    /// The spec at the first point.
    pub fn spec(&self) -> Option<&Spec> {
        self.first.as_ref().map(|(_, spec)| &**spec)
    }

    fn add_idle(&mut self, order: PointIndex, point: &PlannedPoint) {
        let idle = &point.resolved.idle;
        for it in idle {
            let key = (it.flow, it.setting.clone());
            let known = self.idle.entry(key).or_default();
            let same = known.iter_mut();
            let mut same = same.filter(|(_, problem)| point_errors::is_same(problem, &it.problem));
            match same.next() {
                Some(first) if first.0 <= order => {}
                Some(first) => *first = (order, it.problem.clone()),
                None => known.push((order, it.problem.clone())),
            }
        }
        let flows = point.spec.flows.iter().enumerate();
        for (number, flow) in flows {
            let Some(kind) = point.kinds.transports.kind(&flow.transport) else {
                continue;
            };
            if self.effective.len() <= number {
                self.effective.resize_with(number + 1, BTreeSet::new);
            }
            let is_idle = |name: &str| {
                let mut idle = idle.iter();
                idle.any(|it| it.flow == number && it.setting == name)
            };
            let given = flow.transport.values(kind).map(|(setting, _)| setting.name);
            self.effective[number].extend(given.filter(|name| !is_idle(name)));
        }
    }

    /// Problems of transport settings that have no effect at any point that sets them. A setting
    /// with an effect at some point is not reported, because experiments often switch a feature off
    /// at some points.
    pub fn idle(&self) -> Vec<Diagnostic> {
        let without = self.idle.iter().filter(|((flow, setting), _)| {
            let effective = self.effective.get(*flow);
            !effective.is_some_and(|it| it.contains(setting.as_str()))
        });
        let mut all: Vec<&(PointIndex, Diagnostic)> =
            without.flat_map(|(_, found)| found).collect();
        all.sort_by_key(|(order, _)| *order);
        let mut problems = Vec::new();
        for (_, problem) in all {
            add_new(&mut problems, vec![problem.clone()]);
        }
        problems
    }

    /// Keys of links, cells and workloads that have no effect at any point: errors, and notes.
    pub fn everywhere(&self) -> (Vec<Diagnostic>, Vec<String>) {
        (self.everywhere.mistakes(), self.everywhere.redundant())
    }

    /// Notes about settings that are valid but possibly not intended.
    pub fn notes(&self) -> Vec<String> {
        let beyond = self.spec().map(|spec| self.beyond.notes(spec));
        let mut notes = beyond.unwrap_or_default();
        notes.extend(self.windows.notes());
        notes.extend(self.elements.notes());
        notes.extend(self.constellations.notes());
        notes
    }
}

//! Figures: recorded series and measures as SVG, with the printed points beside them.
//!
//! A figure is built in two steps: data ([`plot::Plot`] or [`ladder::Ladder`]), which the terminal shows too, and its
//! drawing. The bytes of an SVG depend on the data alone.

pub mod ladder;
pub mod plot;
mod sparse;

mod canvas;
mod cdf;
mod curves;
mod draw;
mod draw_ladder;
mod time;

use std::collections::BTreeMap;

use anabranch_scenario::Spec;
use anabranch_scenario::output::{Curve, Figure as FigureSpec, FigureKind};
use anabranch_scenario::records::SeriesError;
use anabranch_scenario::records::{Results, Series, SeriesQuery};
use anabranch_scenario::value::{Point, Value};

use crate::reference::Reference;
use crate::table::{axis, joined, named_or_own, same_x, within};

pub use canvas::for_page;
pub(crate) use draw::wrapped;

/// A finished figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its short name.
    pub id: String,
    /// Head line.
    pub title: String,
    /// Its name in the paper.
    pub place: Option<String>,
    /// What to look at.
    pub caption: Option<String>,
    /// A sentence on how it was made.
    pub made: String,
    /// What it shows; `None` where the runs hold nothing to draw.
    pub content: Option<Content>,
}

/// What a figure shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Curves in a plane.
    Plot(plot::Plot),
    /// Packets between two lifelines.
    Ladder(ladder::Ladder),
}

/// A figure that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum FigureError {
    /// Its series cannot be read.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// The drawing failed.
    #[error("figure {id}: {what}")]
    Draw {
        /// Which figure.
        id: String,
        /// What the drawing library said.
        what: String,
    },
}

impl Figure {
    /// Makes a figure of finished runs.
    ///
    /// # Errors
    /// A series file that cannot be read.
    pub fn make(
        spec: &FigureSpec,
        results: &Results,
        reference: &Reference,
    ) -> Result<Figure, FigureError> {
        let maker = Maker {
            spec,
            results,
            reference,
            experiment: experiment_of(spec, results),
        };
        let (content, made) = match spec.kind {
            FigureKind::Sweep | FigureKind::Bars => {
                (maker.sweep().map(Content::Plot), maker.made_of_measures())
            }
            FigureKind::Cdf => {
                let (plot, made) = maker.distribution()?;
                (plot.map(Content::Plot), made)
            }
            FigureKind::Time => {
                let (plot, made) = maker.time()?;
                (plot.map(Content::Plot), made)
            }
            FigureKind::Sequence => (maker.sequence()?.map(Content::Plot), maker.made_of_series()),
            FigureKind::Ladder => (maker.ladder()?.map(Content::Ladder), maker.made_of_series()),
        };
        Ok(Figure {
            id: spec.id.clone(),
            title: spec.title.clone(),
            place: spec.published.clone(),
            caption: spec.caption.clone(),
            made,
            content,
        })
    }

    /// The head line with the paper's name before it: `Fig. 5: Throughput of the satellite link`.
    pub fn headline(&self) -> String {
        match &self.place {
            Some(place) => format!("{place}: {}", self.title),
            None => self.title.clone(),
        }
    }

    /// The drawing as an SVG document; `None` where there is nothing to draw.
    ///
    /// # Errors
    /// What the drawing library says; with text as its target it has no reason to.
    pub fn svg(&self) -> Result<Option<String>, FigureError> {
        let drawn = match &self.content {
            None => return Ok(None),
            Some(Content::Plot(plot)) => draw::svg(plot, &self.headline()),
            Some(Content::Ladder(ladder)) => draw_ladder::svg(ladder, &self.headline()),
        };
        drawn.map(Some).map_err(|what| FigureError::Draw {
            id: self.id.clone(),
            what,
        })
    }
}

fn experiment_of<'a>(spec: &'a FigureSpec, results: &'a Results) -> &'a str {
    named_or_own(spec.experiment.as_deref(), &spec.id, &results.spec)
}

/// What all kinds of figures need while they are made.
struct Maker<'a> {
    spec: &'a FigureSpec,
    results: &'a Results,
    reference: &'a Reference,
    experiment: &'a str,
}

impl<'a> Maker<'a> {
    /// Whether the figure, or its curve that fixes some sweeps, is about this point.
    fn is_at(&self, point: &Point, fixed: &BTreeMap<String, Value>) -> bool {
        let Some(rest) = within(point, &joined(&self.spec.at_point, fixed)) else {
            return false;
        };
        let wanted = self.spec.at.as_ref();
        wanted.is_none_or(|wanted| same_x(&wanted.to_string(), &axis(&rest).1))
    }

    /// The series of one probe of one member of a flow or link, of the figure's replication and point (the first
    /// recorded one if it names none), cut to its window.
    fn series(
        &self,
        entity: &str,
        member: u32,
        probe: &str,
    ) -> Result<Option<Series>, SeriesError> {
        let query = SeriesQuery {
            experiment: self.experiment,
            entity: Some(entity),
            member: Some(member),
            probe: Some(probe),
            replication: Some(self.spec.replication),
        };
        let mut all = self.results.series(&query)?.into_iter();
        Ok(all.find(|series| self.is_at(&series.point, &BTreeMap::new())))
    }

    /// The series that a curve of kind `time` shows, run by run: one, or one for each member. Every run that was recorded; the
    /// figure's own first.
    fn series_of(&self, curve: &Curve) -> Result<Vec<Vec<Series>>, SeriesError> {
        let query = SeriesQuery {
            experiment: curve.experiment.as_deref().unwrap_or(self.experiment),
            entity: curve.flow.as_deref().or(curve.link.as_deref()),
            member: (!curve.every_member).then_some(curve.member),
            probe: curve.probe.as_deref(),
            replication: None,
        };
        if query.entity.is_none() || query.probe.is_none() {
            return Ok(Vec::new());
        }
        let mut all = self.results.series(&query)?;
        all.retain(|series| self.is_at(&series.point, &curve.at_point));
        // Of several points that fit, the first.
        let first = all.first().map(|series| series.point.clone());
        all.retain(|series| Some(&series.point) == first.as_ref());
        for series in &mut all {
            series
                .samples
                .retain(|sample| curve.index.is_none_or(|index| index == sample.index));
            if curve.cumulative {
                let mut sum = 0.0;
                for sample in &mut series.samples {
                    sum += sample.value;
                    sample.value = sum;
                }
            }
        }
        let own = |series: &Series| series.replication != self.spec.replication;
        all.sort_by_key(|series| (own(series), series.replication));
        let same = |a: &Series, b: &Series| a.replication == b.replication;
        Ok(all.chunk_by(same).map(<[Series]>::to_vec).collect())
    }

    /// Begin and end of the window, seconds.
    fn window(&self) -> Option<(f64, f64)> {
        self.spec
            .window
            .map(|window| (window.0[0].seconds(), window.0[1].seconds()))
    }

    fn made_of_series(&self) -> String {
        format!(
            "Drawn from series/{}.parquet: one run, replication {}.",
            self.experiment, self.spec.replication
        )
    }

    fn made_of_measures(&self) -> String {
        let counts = self.results.manifest.replications.iter();
        let mut own = counts.filter(|(id, _)| id == source_of(&self.results.spec, self.experiment));
        let id = self.experiment;
        match own.next().map_or(0, |(_, runs)| *runs) {
            0 | 1 => format!("One run of experiment {id} at each point: there is no interval."),
            runs => format!(
                "Means over {runs} runs of experiment {id} with their 95 % intervals; faint dots are single runs."
            ),
        }
    }
}

/// The experiment that is run for one.
fn source_of<'a>(spec: &'a Spec, id: &'a str) -> &'a str {
    // A derived experiment stands behind the one it is made of, so that this ends.
    let derived = spec.derived.iter().find(|derived| derived.id() == id);
    derived.map_or(id, |derived| source_of(spec, derived.experiment()))
}

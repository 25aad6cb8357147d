//! Figures: recorded series and measures as SVG, together with the printed points.
//!
//! A figure is built in two steps. The first produces data ([`plot::Plot`] or [`ladder::Ladder`]),
//! which the terminal also displays; the second draws it. The bytes of an SVG depend only on the
//! data.

mod downsample;
pub mod ladder;
pub mod map;
pub mod plot;

mod canvas;
mod cdf;
mod curves;
mod draw;
mod draw_ladder;
mod draw_map;
mod time;

use std::collections::BTreeMap;

use anabranch_scenario::Spec;
use anabranch_scenario::output::{Curve, FigureKind, FigureOutput as FigureSpec};
use anabranch_scenario::records::SeriesError;
use anabranch_scenario::records::{Results, SeriesQuery, SeriesRecord};
use anabranch_scenario::value::{Point, SweepValue};

use crate::reference::Reference;
use crate::table::{axis, joined, named_or_own, same_x, within};

pub use canvas::for_page;
pub(crate) use draw::wrapped;
pub use draw_map::svg as map_svg;

/// A finished figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Short name.
    pub id: String,
    /// Title.
    pub title: String,
    /// Name in the paper.
    pub place: Option<String>,
    /// Caption with a hint for the reader.
    pub caption: Option<String>,
    /// A sentence about how the figure was computed.
    pub made: String,
    /// Contents; `None` if the runs contain no data for it.
    pub content: Option<Content>,
}

/// Contents of a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Curves in a coordinate system.
    Plot(plot::Plot),
    /// Packets between two lifelines.
    Ladder(ladder::Ladder),
    /// A map of a constellation, at one or several times.
    Map(Vec<map::Map>),
}

/// Error of making a figure.
#[derive(Debug, thiserror::Error)]
pub enum FigureError {
    /// The series cannot be read.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// The drawing library failed.
    #[error("figure {id}: {what}")]
    Draw {
        /// The figure.
        id: String,
        /// Message of the drawing library.
        what: String,
    },
}

impl Figure {
    /// Makes a figure from finished runs.
    ///
    /// # Errors
    /// A series file cannot be read.
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
            FigureKind::Map => (maker.map()?.map(Content::Map), maker.made_of_series()),
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

    /// The title after the name in the paper, such as `Fig. 5: Throughput of the satellite link`.
    pub fn headline(&self) -> String {
        match &self.place {
            Some(place) => format!("{place}: {}", self.title),
            None => self.title.clone(),
        }
    }

    /// The drawing as an SVG document; `None` if there is no data to draw.
    ///
    /// # Errors
    /// Any error of the drawing library; none is expected, because the output is text.
    pub fn svg(&self) -> Result<Option<String>, FigureError> {
        let drawn = match &self.content {
            None => return Ok(None),
            Some(Content::Plot(plot)) => draw::svg(plot, &self.headline()),
            Some(Content::Ladder(ladder)) => draw_ladder::svg(ladder, &self.headline()),
            Some(Content::Map(maps)) => draw_map::svg(maps, &self.headline()),
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

/// Inputs from which a figure of any kind is made.
struct Maker<'a> {
    spec: &'a FigureSpec,
    results: &'a Results,
    reference: &'a Reference,
    experiment: &'a str,
}

impl<'a> Maker<'a> {
    /// Whether the point matches the sweeps that the figure or one of its curves fixes.
    fn is_at(&self, point: &Point, fixed: &BTreeMap<String, SweepValue>) -> bool {
        let Some(rest) = within(point, &joined(&self.spec.at_point, fixed)) else {
            return false;
        };
        let wanted = self.spec.at.as_ref();
        wanted.is_none_or(|wanted| same_x(&wanted.to_string(), &axis(&rest).1))
    }

    /// Series of a probe of one member of a flow or link, for the replication and point of the
    /// figure and cut to its window. If the figure does not name a point, the first recorded one is
    /// used.
    fn series(
        &self,
        entity: &str,
        member: u32,
        probe: &str,
    ) -> Result<Option<SeriesRecord>, SeriesError> {
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

    /// Series of a curve of kind `time` for every recorded run: one per run, or one per member. The
    /// run that the figure selects is the first.
    fn series_of(&self, curve: &Curve) -> Result<Vec<Vec<SeriesRecord>>, SeriesError> {
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
        // If several points match, the first is used.
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
        let own = |series: &SeriesRecord| series.replication != self.spec.replication;
        all.sort_by_key(|series| (own(series), series.replication));
        let same = |a: &SeriesRecord, b: &SeriesRecord| a.replication == b.replication;
        Ok(all.chunk_by(same).map(<[SeriesRecord]>::to_vec).collect())
    }

    /// Start and end of the window, seconds.
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

/// The id of the experiment that is run; for a derived experiment, its source.
fn source_of<'a>(spec: &'a Spec, id: &'a str) -> &'a str {
    // The recursion ends because a derived experiment must be declared after its source.
    let derived = spec.derived.iter().find(|derived| derived.id() == id);
    derived.map_or(id, |derived| source_of(spec, derived.experiment()))
}

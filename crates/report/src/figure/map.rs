//! Maps: positions of satellites and stations, load of the links between satellites, and paths.

use std::collections::BTreeMap;

use anabranch_scenario::measure::{ENDS, PATH, POSITION, UTILIZATION};
use anabranch_scenario::records::{Series, SeriesError, SeriesQuery};
use anabranch_scenario::value::Point;
use anabranch_scenario::{Experiment, Record};

use super::Maker;

/// Degrees north and east.
pub type Place = [f64; 2];

/// A map.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map {
    /// Time of the positions and paths, seconds.
    pub time: f64,
    /// From when to when the load was measured, seconds.
    pub window: (f64, f64),
    /// The satellites.
    pub satellites: Vec<Place>,
    /// The stations.
    pub stations: Vec<Place>,
    /// The links between satellites that carried something, with the load of the busier direction
    /// in %, in ascending order of load.
    pub links: Vec<([Place; 2], f64)>,
    /// The named paths.
    pub paths: Vec<(String, Vec<Place>)>,
}

/// The places of the numbered satellites and stations of a constellation.
#[derive(Default)]
struct Bodies {
    satellites: BTreeMap<u32, Place>,
    /// Number of satellites, with those without a position.
    count: u32,
    stations: Vec<Place>,
}

impl Bodies {
    fn place(&self, number: f64) -> Option<Place> {
        let number = number as u32;
        match number.checked_sub(self.count) {
            Some(station) => self.stations.get(station as usize).copied(),
            None => self.satellites.get(&number).copied(),
        }
    }
}

impl Maker<'_> {
    /// The map of the recorded constellations.
    pub(super) fn map(&self) -> Result<Option<Map>, SeriesError> {
        let spec = &self.results.spec;
        let mut experiments = spec.experiments.iter();
        let Some(experiment) = experiments.find(|it| it.id == self.experiment) else {
            return Ok(None);
        };
        let end = experiment.duration.unwrap_or(spec.world.duration).seconds();
        let window = self.window().unwrap_or((0.0, end));
        let mut map = Map {
            time: window.0,
            window,
            ..Map::default()
        };
        for record in &experiment.records {
            if let Some(name) = &record.constellation {
                self.add_constellation(&mut map, experiment, record, name)?;
            }
        }
        map.links.sort_by(|one, other| one.1.total_cmp(&other.1));
        Ok((!map.satellites.is_empty()).then_some(map))
    }

    fn add_constellation(
        &self,
        map: &mut Map,
        experiment: &Experiment,
        record: &Record,
        name: &str,
    ) -> Result<(), SeriesError> {
        let mut bodies = Bodies::default();
        for series in self.all_of(name, POSITION)? {
            bodies.count = bodies.count.max(series.member + 1);
            if let Some(place) = place_at(&series, map.time) {
                bodies.satellites.insert(series.member, place);
            }
        }
        let grounds = self.results.spec.grounds.iter();
        for ground in grounds.filter(|it| it.uses(name)) {
            let mut all = self.all_of(&ground.name, POSITION)?;
            all.sort_by_key(|series| series.member);
            let places = all.iter().filter_map(|series| place_at(series, map.time));
            bodies.stations.extend(places);
        }
        map.satellites.extend(bodies.satellites.values());
        map.stations.extend(&bodies.stations);
        let (from, until) = map.window;
        let end = experiment
            .duration
            .unwrap_or(self.results.spec.world.duration)
            .seconds();
        let bin = record.bin.map_or(1.0, |bin| bin.seconds());
        let isls = format!("{name}-isl");
        let ends: BTreeMap<u32, [f64; 2]> = self
            .all_of(&isls, ENDS)?
            .iter()
            .filter_map(|it| {
                Some((
                    it.member,
                    [it.samples.first()?.value, it.samples.get(1)?.value],
                ))
            })
            .collect();
        for series in self.all_of(&isls, UTILIZATION)? {
            let mut load = [0.0; 2];
            for sample in &series.samples {
                if (from..until).contains(&sample.time) {
                    let lasts = bin.min(end - sample.time).min(until - sample.time);
                    load[usize::from(sample.index.min(1))] += sample.value * lasts;
                }
            }
            let load = load[0].max(load[1]) / (until - from);
            let places = ends
                .get(&series.member)
                .map(|it| it.map(|it| bodies.place(it)));
            if let (Some([Some(one), Some(other)]), true) = (places, load > 0.0) {
                map.links.push(([one, other], load));
            }
        }
        for curve in &self.spec.curves {
            let Some(flow) = &curve.flow else { continue };
            let Some(series) = self.series_within(flow, curve.member)? else {
                continue;
            };
            let numbers = path_at(&series, map.time);
            let places = numbers.iter().filter_map(|it| bodies.place(*it)).collect();
            map.paths.push((curve.label.clone(), places));
        }
        Ok(())
    }

    /// The path of a member of a flow.
    fn series_within(&self, flow: &str, member: u32) -> Result<Option<Series>, SeriesError> {
        self.series(flow, member, PATH)
    }

    /// All members of a recorded probe, at the figure's point.
    fn all_of(&self, entity: &str, probe: &str) -> Result<Vec<Series>, SeriesError> {
        let mut all = self.results.series(&SeriesQuery {
            experiment: self.experiment,
            entity: Some(entity),
            member: None,
            probe: Some(probe),
            replication: Some(self.spec.replication),
        })?;
        all.retain(|series| self.is_at(&series.point, &BTreeMap::new()));
        let first: Option<Point> = all.first().map(|series| series.point.clone());
        all.retain(|series| Some(&series.point) == first.as_ref());
        Ok(all)
    }
}

/// The last position up to a time; the first if there is none.
fn place_at(series: &Series, time: f64) -> Option<Place> {
    let value = |index: u16| {
        let own = series.samples.iter().filter(|it| it.index == index);
        let last = own.clone().take_while(|it| it.time <= time).last();
        last.or(own.clone().next()).map(|it| it.value)
    };
    Some([value(0)?, value(1)?])
}

/// The numbers of the last path up to a time.
fn path_at(series: &Series, time: f64) -> Vec<f64> {
    let before = series.samples.iter().filter(|it| it.time <= time);
    let last = before.clone().map(|it| it.time).fold(f64::NAN, f64::max);
    let path = before.filter(|it| it.time == last && it.value >= 0.0);
    path.map(|it| it.value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_scenario::records::SeriesSample;

    fn series(samples: &[(u16, f64, f64)]) -> Series {
        let sample = |&(index, time, value): &_| SeriesSample { index, time, value };
        Series {
            experiment: String::new(),
            point: Point::new(),
            replication: 0,
            entity: String::new(),
            member: 0,
            probe: String::new(),
            samples: samples.iter().map(sample).collect(),
        }
    }

    #[test]
    fn a_path_holds_until_the_next() {
        let path = series(&[
            (0, 0.0, 7.0),
            (1, 0.0, 3.0),
            (2, 0.0, 8.0),
            (0, 5.0, -1.0),
            (0, 6.0, 7.0),
            (1, 6.0, 8.0),
        ]);
        assert_eq!(path_at(&path, 4.9), [7.0, 3.0, 8.0]);
        assert_eq!(path_at(&path, 5.5), [0.0; 0]);
        assert_eq!(path_at(&path, 9.0), [7.0, 8.0]);
    }

    #[test]
    fn a_position_is_the_last_one() {
        let place = series(&[(0, 0.0, 1.0), (1, 0.0, 2.0), (0, 3.0, 4.0), (1, 3.0, 5.0)]);
        assert_eq!(place_at(&place, 2.0), Some([1.0, 2.0]));
        assert_eq!(place_at(&place, 3.0), Some([4.0, 5.0]));
    }
}

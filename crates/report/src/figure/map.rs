//! Maps: positions of satellites and stations, load of the links between satellites, and paths.

use std::collections::BTreeMap;

use anabranch_scenario::Record;
use anabranch_scenario::constellation::Class;
use anabranch_scenario::measure::{ENDS, PATH, POSITION, UTILIZATION};
use anabranch_scenario::records::{SeriesError, SeriesQuery, SeriesRecord, SeriesSample};
use anabranch_scenario::value::Point;

use super::Maker;

/// Coordinates: degrees north and degrees east.
pub type MapPlace = [f64; 2];

/// A map at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map {
    /// Time of the latest position on the map, seconds.
    pub time: f64,
    /// Start and end of the measurement of the load, seconds. Paths are those at the start.
    pub window: (f64, f64),
    /// Positions of the satellites.
    pub satellites: Vec<MapPlace>,
    /// Positions of the stations.
    pub stations: Vec<MapPlace>,
    /// The links between satellites that carried traffic, in ascending order of load. The load in
    /// percent is that of the busier direction.
    pub links: Vec<([MapPlace; 2], f64)>,
    /// Paths with their names.
    pub paths: Vec<(String, Vec<MapPlace>)>,
}

/// The recorded series of a constellation.
#[derive(Clone, Debug, Default)]
pub struct ConstellationSeries {
    /// Number of satellites.
    pub satellites: u32,
    /// Series of the positions of the satellites.
    pub positions: Vec<SeriesRecord>,
    /// Series of the positions of the stations, in the order of their numbers.
    pub stations: Vec<SeriesRecord>,
    /// Series of the two satellites at the ends of each link.
    pub ends: Vec<SeriesRecord>,
    /// Series of the utilization of each link, with the same member numbers as in `ends`.
    pub utilization: Vec<SeriesRecord>,
    /// Paths of flows, by their labels.
    pub paths: Vec<(String, SeriesRecord)>,
    /// Width of the bins of utilization, seconds.
    pub bin: f64,
    /// End of the run, seconds.
    pub end: f64,
}

impl ConstellationSeries {
    /// Adds all positions and paths at the start of the map's window, and the load within it.
    fn add_to(&self, map: &mut Map) {
        let (from, until) = map.window;
        let positions = self.positions.iter();
        let times = positions.clone().filter_map(|it| sample_at(it, 0, from));
        map.time = times.map(|it| it.time).fold(map.time, f64::max);
        let positions = positions.filter_map(|it| Some((it.member, place_at(it, from)?)));
        let positions: BTreeMap<u32, MapPlace> = positions.collect();
        let stations = self.stations.iter().map(|it| place_at(it, from));
        let stations: Vec<Option<MapPlace>> = stations.collect();
        let place = |number: f64| {
            let number = number as u32;
            match number.checked_sub(self.satellites) {
                Some(station) => stations.get(station as usize).copied().flatten(),
                None => positions.get(&number).copied(),
            }
        };
        map.satellites.extend(positions.values());
        map.stations.extend(stations.iter().flatten());
        let ends = self.ends.iter().filter_map(|it| {
            let [one, other] = [0, 1].map(|index| it.samples.get(index));
            Some((it.member, [one?.value, other?.value]))
        });
        let ends: BTreeMap<u32, [f64; 2]> = ends.collect();
        for series in &self.utilization {
            let mut load = [0.0; 2];
            for sample in &series.samples {
                let begin = sample.time.max(from);
                let lasts = (sample.time + self.bin).min(self.end).min(until) - begin;
                if lasts > 0.0 {
                    load[usize::from(sample.index.min(1))] += sample.value * lasts;
                }
            }
            let load = load[0].max(load[1]) / (until - from);
            let places = ends.get(&series.member).map(|it| it.map(place));
            if let (Some([Some(one), Some(other)]), true) = (places, load > 0.0) {
                map.links.push(([one, other], load));
            }
        }
        for (label, series) in &self.paths {
            let numbers = path_at(series, from);
            let places = numbers.iter().filter_map(|it| place(*it)).collect();
            map.paths.push((label.clone(), places));
        }
    }
}

/// Divides a window into equal parts, and creates a map for each part, with the positions and paths
/// at its start and the load during the part. Empty if there is no satellite.
pub fn frames(all: &[ConstellationSeries], (from, until): (f64, f64), count: u32) -> Vec<Map> {
    let count = count.max(1);
    // Computed in whole nanoseconds like the times of samples, so that equal times are equal
    // numbers.
    let [from, until] = [from, until].map(|it| (it * 1e9).round() as u128);
    let lasts = until.saturating_sub(from);
    let begin = |number: u32| {
        let passed = lasts * u128::from(number) / u128::from(count);
        (from + passed) as f64 / 1e9
    };
    let maps = (0..count).map(|number| {
        let mut map = Map {
            window: (begin(number), begin(number + 1)),
            ..Map::default()
        };
        all.iter().for_each(|it| it.add_to(&mut map));
        map.links.sort_by(|one, other| one.1.total_cmp(&other.1));
        map
    });
    maps.filter(|map| !map.satellites.is_empty()).collect()
}

impl Maker<'_> {
    /// The maps of the recorded constellations, one for each frame.
    pub(super) fn map(&self) -> Result<Option<Vec<Map>>, SeriesError> {
        let spec = &self.results.spec;
        let mut experiments = spec.experiments.iter();
        let Some(experiment) = experiments.find(|it| it.id == self.experiment) else {
            return Ok(None);
        };
        let end = experiment.duration.unwrap_or(spec.world.duration).seconds();
        let window = self.window().unwrap_or((0.0, end));
        let is_swept = !experiment.sweeps.is_empty();
        let records = experiment.records.iter();
        let records = records.filter_map(|it| Some((it, it.constellation.as_deref()?)));
        let all = records.map(|(record, name)| self.constellation(record, name, (end, is_swept)));
        let all: Vec<ConstellationSeries> = all.collect::<Result<_, _>>()?;
        let maps = frames(&all, window, self.spec.frames.map_or(1, |it| it.0));
        Ok((!maps.is_empty()).then_some(maps))
    }

    fn constellation(
        &self,
        record: &Record,
        name: &str,
        (end, is_swept): (f64, bool),
    ) -> Result<ConstellationSeries, SeriesError> {
        let positions = self.all_of(name, POSITION)?;
        let grounds = self.results.spec.grounds.iter();
        let mut stations = Vec::new();
        for ground in grounds.filter(|it| it.uses(name)) {
            let mut all = self.all_of(&ground.name, POSITION)?;
            all.sort_by_key(|series| series.member);
            stations.extend(all);
        }
        let isls = format!("{name}-{}", Class::Isl.name());
        let mut paths = Vec::new();
        for curve in &self.spec.curves {
            let Some(flow) = &curve.flow else { continue };
            let series = self.series(flow, curve.member, PATH)?;
            paths.extend(series.map(|it| (curve.label.clone(), it)));
        }
        let mut all = self.results.spec.constellations.iter();
        let counted = all.find(|it| it.name == name);
        let counted = counted.map_or(0, |it| it.counted.satellites);
        Ok(ConstellationSeries {
            satellites: satellites(counted, is_swept, &positions),
            positions,
            stations,
            ends: self.all_of(&isls, ENDS)?,
            utilization: self.all_of(&isls, UTILIZATION)?,
            paths,
            bin: record.bin_width().seconds(),
            end,
        })
    }

    /// Series of a recorded probe for all members, at the figure's point.
    fn all_of(&self, entity: &str, probe: &str) -> Result<Vec<SeriesRecord>, SeriesError> {
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

/// Number of satellites: the larger of the number in the plan, `counted`, and the number according
/// to the recorded positions. In a sweep, only the recorded positions count.
fn satellites(counted: u32, is_swept: bool, positions: &[SeriesRecord]) -> u32 {
    let members = positions.iter().map(|series| series.member + 1);
    let seen = members.max().unwrap_or(0);
    match is_swept {
        // In a sweep, the number in the plan belongs to its first point.
        true => seen,
        false => seen.max(counted),
    }
}

/// The last sample of an index up to a time, or the first sample if there is none.
fn sample_at(series: &SeriesRecord, index: u16, time: f64) -> Option<&SeriesSample> {
    let mut own = series.samples.iter().filter(|it| it.index == index);
    let last = own.clone().take_while(|it| it.time <= time).last();
    last.or(own.next())
}

/// The last position up to a time, or the first position if there is none.
fn place_at(series: &SeriesRecord, time: f64) -> Option<MapPlace> {
    let value = |index: u16| sample_at(series, index, time).map(|it| it.value);
    Some([value(0)?, value(1)?])
}

/// The numbers of the nodes on the last path up to a time.
fn path_at(series: &SeriesRecord, time: f64) -> Vec<f64> {
    let before = series.samples.iter().filter(|it| it.time <= time);
    let last = before.clone().map(|it| it.time).fold(f64::NAN, f64::max);
    let path = before.filter(|it| it.time == last && it.value >= 0.0);
    path.map(|it| it.value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(samples: &[(u16, f64, f64)]) -> SeriesRecord {
        let sample = |&(index, time, value): &_| SeriesSample { index, time, value };
        SeriesRecord {
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

    /// Two satellites, and a station with number 2. The link is loaded in the second of two bins of
    /// 10 s, so frames of 5 s have either its whole load or none.
    #[test]
    fn frames_have_the_load_of_their_time() {
        let place = |north: f64| series(&[(0, 0.0, north), (1, 0.0, 0.0)]);
        let other = SeriesRecord {
            member: 1,
            ..place(10.0)
        };
        let sky = ConstellationSeries {
            satellites: 2,
            positions: vec![place(0.0), other],
            stations: vec![place(20.0)],
            ends: vec![series(&[(0, 0.0, 0.0), (1, 0.0, 1.0)])],
            utilization: vec![series(&[(0, 10.0, 40.0), (1, 10.0, 60.0)])],
            paths: vec![("f".to_owned(), series(&[(0, 0.0, 2.0), (1, 0.0, 1.0)]))],
            bin: 10.0,
            end: 20.0,
        };
        let maps = frames(std::slice::from_ref(&sky), (0.0, 20.0), 4);
        let loads = maps.iter().map(|map| map.links.first().map(|it| it.1));
        assert_eq!(
            loads.collect::<Vec<_>>(),
            [None, None, Some(60.0), Some(60.0)]
        );
        assert_eq!((maps[3].time, maps[3].window), (0.0, (15.0, 20.0)));
        assert_eq!(
            maps[0].paths,
            [("f".to_owned(), vec![[20.0, 0.0], [10.0, 0.0]])]
        );
        let whole = frames(&[sky], (0.0, 20.0), 1);
        assert_eq!(whole[0].links, [([[0.0, 0.0], [10.0, 0.0]], 30.0)]);
        assert!(frames(&[], (0.0, 20.0), 4).is_empty());
    }

    /// A satellite with one position every `bin` nanoseconds, whose latitude is the number of the
    /// position.
    fn moving(bin: u64, count: u64) -> ConstellationSeries {
        let samples = (0..count).flat_map(|number| {
            let time = (number * bin) as f64 / 1e9;
            [(0, time, number as f64), (1, time, 0.0)]
        });
        ConstellationSeries {
            satellites: 1,
            positions: vec![series(&samples.collect::<Vec<_>>())],
            bin: bin as f64 / 1e9,
            end: (count * bin) as f64 / 1e9,
            ..ConstellationSeries::default()
        }
    }

    /// In floating point, 3 * 70.3 is less than 210.9; other products have similar errors.
    #[test]
    fn each_frame_has_the_position_of_its_beginning() {
        let sky = moving(70_300_000_000, 10);
        let maps = frames(&[sky], (0.0, 703.0), 10);
        let north = maps.iter().map(|map| map.satellites[0][0]);
        let numbers = (0..10).map(f64::from);
        assert_eq!(north.collect::<Vec<_>>(), numbers.collect::<Vec<_>>());
        assert_eq!((maps[3].time, maps[3].window), (210.9, (210.9, 281.2)));
    }

    /// The last recorded position may be up to one bin older than the start of the frame.
    #[test]
    fn a_frame_has_the_time_of_its_positions() {
        let maps = frames(&[moving(10_000_000_000, 3)], (5.0, 25.0), 2);
        let times = maps.iter().map(|map| (map.time, map.satellites[0][0]));
        assert_eq!(times.collect::<Vec<_>>(), [(0.0, 0.0), (10.0, 1.0)]);
        assert_eq!(maps[1].window, (15.0, 25.0));
    }

    #[test]
    fn a_satellite_without_a_position_counts() {
        let positions = [series(&[(0, 0.0, 1.0), (1, 0.0, 2.0)])];
        assert_eq!(satellites(3, false, &positions), 3);
        assert_eq!(satellites(3, true, &positions), 1);
        assert_eq!(satellites(0, false, &positions), 1);
        assert_eq!(satellites(0, false, &[]), 0);
    }

    #[test]
    fn a_position_is_the_last_one() {
        let place = series(&[(0, 0.0, 1.0), (1, 0.0, 2.0), (0, 3.0, 4.0), (1, 3.0, 5.0)]);
        assert_eq!(place_at(&place, 2.0), Some([1.0, 2.0]));
        assert_eq!(place_at(&place, 3.0), Some([4.0, 5.0]));
    }
}

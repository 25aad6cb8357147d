//! Files of places on the ground, in CSV format. Columns are identified by their titles: a name,
//! and a latitude and a longitude in degrees north and east. Other columns are ignored.

/// A place in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedPlace {
    /// Name of the place, if the file has names.
    pub name: Option<String>,
    /// Position in degrees north and east: `35.69,139.69`.
    pub at: String,
    /// Population of the place, if the file has populations.
    pub population: Option<f64>,
}

/// Titles by which each column is recognised.
const NAME: &[&str] = &["name", "city", "place"];
const LATITUDE: &[&str] = &["latitude", "latitude_deg", "lat", "lat_deg"];
const POPULATION: &[&str] = &["population", "pop"];
const LONGITUDE: &[&str] = &["longitude", "longitude_deg", "lon", "lon_deg", "lng"];

/// Parses the places of a file. Lines that begin with `#` are ignored.
///
/// # Errors
/// A description of the first fault.
pub fn places(text: &str) -> Result<Vec<NamedPlace>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let titles = reader.headers().map_err(|error| error.to_string())?.clone();
    let column = |names: &[&str]| {
        let mut titles = titles.iter();
        titles.position(|title| names.iter().any(|name| title.eq_ignore_ascii_case(name)))
    };
    let needed = |names: &[&str]| {
        column(names).ok_or_else(|| {
            let found: Vec<&str> = titles.iter().collect();
            let (allowed, found) = (names.join(", "), found.join(", "));
            format!("found the columns {found}; one must be called {allowed}")
        })
    };
    let (latitude, longitude) = (needed(LATITUDE)?, needed(LONGITUDE)?);
    let (name, population) = (column(NAME), column(POPULATION));
    let rows = (1..).zip(reader.records()).map(|(row, record)| {
        let record = record.map_err(|error| error.to_string())?;
        let cell = |column: usize| record.get(column).unwrap_or_default();
        let population = population.map(cell).filter(|it| !it.is_empty());
        let population = population.map(|it| {
            let number = it
                .parse()
                .ok()
                .filter(|it: &f64| it.is_finite() && *it >= 0.0);
            number.ok_or_else(|| {
                format!("row {row}: found the population {it:?}; expected a number from 0 on")
            })
        });
        Ok(NamedPlace {
            population: population.transpose()?,
            name: name.map(|name| cell(name).to_owned()),
            at: format!("{},{}", cell(latitude), cell(longitude)),
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_their_titles() {
        let found = places("# cities\nnumber,City,lat,population,LON\n0,Tokyo,35.69,37,139.69\n")
            .expect("places");
        let tokyo = NamedPlace {
            name: Some("Tokyo".to_owned()),
            at: "35.69,139.69".to_owned(),
            population: Some(37.0),
        };
        assert_eq!(found, [tokyo]);
        let without = places("lat,lon,pop\n1,2,\n").expect("places");
        assert_eq!(without[0].population, None);
        let error = places("lat,lon,pop\n1,2,3\n1,3,-3\n").expect_err("a population");
        assert!(
            error.contains("row 2: found the population \"-3\""),
            "{error}"
        );
        let error = places("name,north,east\na,1,2\n").expect_err("titles");
        assert!(error.contains("latitude, latitude_deg, lat"), "{error}");
        assert!(places("lat,lon\n1\n").is_err());
    }
}

//! Paths over satellites from orbital elements.

use std::fs;

use super::anabranch;

/// The International Space Station in September 2008, as two-line elements and as an OMM, and an
/// invalid entry.
#[test]
fn elements_are_reported_with_their_dates_and_old_ones_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let lines = "ISS (ZARYA)\n1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927\n\
                 2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537\n";
    fs::write(directory.path().join("s.tle"), format!("{lines}B\nC\n")).expect("a file");
    let message = "OBJECT_NAME,EPOCH,MEAN_MOTION,ECCENTRICITY,INCLINATION,RA_OF_ASC_NODE,ARG_OF_PERICENTER,MEAN_ANOMALY,NORAD_CAT_ID,BSTAR\n\
                   ISS,2008-264T12:25:40Z,15.72125391,.0006703,51.6416,247.4627,130.5360,325.0288,123456789,-.11606E-4\n";
    fs::write(directory.path().join("s.csv"), message).expect("a file");
    let path = |file: &str, more: &[&str]| {
        let mut words = vec![
            "satellite-path",
            "--from",
            "53,160",
            "--to",
            "54,161",
            "--set",
            "min_elevation=5",
            "--duration",
            "10s",
            "--tle",
            file,
        ];
        words.extend(more);
        let ran = anabranch(directory.path(), &words);
        let [out, error] =
            [ran.stdout, ran.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        (ran.status.code(), out, error)
    };
    let (status, out, error) = path("s.tle", &[]);
    assert_eq!(status, Some(0), "{error}");
    let head = "10s from 2008-09-20 12:25:40 UTC\n1 satellite of s.tle\n\
                elements of 2008-09-20 12:25:40 UTC, 0.0 to 0.0 days from the start, 2008-09-20 12:25:40 UTC (median 0.0)\n";
    assert!(out.contains(head), "{out}");
    assert!(
        error.contains("note: 2 entries are left out; the first: line 5: "),
        "{error}"
    );
    let (status, of_message, error) = path("s.csv", &["--start", "2008-09-19T12:25:40"]);
    assert_eq!(status, Some(0), "{error}");
    assert!(
        of_message.contains("1.0 to 1.0 days from the start, 2008-09-19 12:25:40 UTC"),
        "{of_message}"
    );
    for file in ["s.tle", "s.csv"] {
        let (status, _, error) = path(file, &["--start", "2008-11-01"]);
        assert_eq!(status, Some(2), "{error}");
        assert!(
            error.contains("1 of 1 satellites have elements of a date more than 14 days")
                && error.contains("--old-elements"),
            "{error}"
        );
        let (status, out, error) = path(file, &["--start", "2008-11-01", "--old-elements"]);
        assert_eq!(status, Some(0), "{error}");
        assert!(out.contains("41.5 to 41.5 days from the start"), "{out}");
    }
    let ran = anabranch(
        directory.path(),
        &[
            "satellite-path",
            "--from",
            "40.7,-74.0",
            "--to",
            "51.5,-0.1",
            "--duration",
            "10s",
            "--start",
            "2h",
        ],
    );
    let out = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(out.contains("10s from 2h after the epoch"), "{out}");
}

/// A file in the format of Hypatia's satgenpy, which starts with the number of planes and the
/// number of satellites in each.
#[test]
fn counts_of_planes_and_satellites_are_compared_with_the_satellites() {
    let directory = tempfile::tempdir().expect("a directory");
    let set = "Starlink-550 0\n1 00001U 00000ABC 00001.00000000  .00000000  00000-0  00000+0 0    04\n\
               2 00001  53.0000   0.0000 0000001   0.0000   0.0000 15.19000000    08\n";
    for (counts, noted) in [("1 1", false), ("72 22", true)] {
        fs::write(
            directory.path().join("tles.txt"),
            format!("{counts}\n{set}"),
        )
        .expect("a file");
        let words = [
            "satellite-path",
            "--from",
            "0,-100",
            "--to",
            "1,-101",
            "--duration",
            "10s",
        ];
        let more = ["--set", "min_elevation=1", "--tle", "tles.txt"];
        let ran = anabranch(directory.path(), &[&words[..], &more].concat());
        let [out, error] =
            [ran.stdout, ran.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        assert_eq!(ran.status.code(), Some(0), "{error}");
        assert!(out.contains("1 satellite of tles.txt\n"), "{out}");
        let note = "note: line 1: found 72 planes of 22 satellites, 1584 in all; the file has usable elements of 1\n";
        assert_eq!(error.contains(note), noted, "{error}");
        assert_eq!(error.contains("note: "), noted, "{error}");
    }
}

//! Presets: shells with names.

use anabranch_transport::time::MILLISECOND;

use crate::conventions::{Earth, OrbitConfig, Pattern, Propagator, Seam, Stagger};

/// A preset: a shell that is often modelled.
#[derive(Clone, Copy, Debug)]
pub struct ShellPreset {
    /// Name of the preset.
    pub name: &'static str,
    /// Description of the shell, and the source of its numbers.
    pub about: &'static str,
    make: fn() -> OrbitConfig,
}

impl ShellPreset {
    /// Conventions of the shell; those that the preset does not set have their defaults.
    pub fn sky(&self) -> OrbitConfig {
        (self.make)()
    }
}

fn delta(
    altitude: f64,
    inclination: f64,
    planes: u32,
    satellites: u32,
    phasing: f64,
) -> OrbitConfig {
    OrbitConfig {
        altitude,
        inclination,
        planes,
        satellites,
        phasing,
        ..OrbitConfig::default()
    }
}

fn star(
    altitude: f64,
    inclination: f64,
    planes: u32,
    satellites: u32,
    phasing: f64,
) -> OrbitConfig {
    OrbitConfig {
        pattern: Pattern::Star,
        seam: Seam::Open,
        ..delta(altitude, inclination, planes, satellites, phasing)
    }
}

/// A shell of Hypatia, from its revolutions per day, inclination in degrees, number of planes and
/// satellites per plane. `altitude` and `max_range`, the maximum length of a ground link, are in
/// km. In Hypatia, only this length limits a ground link. The epoch is 2000-01-01 00:00 UTC. At
/// this time Greenwich is 99.96748° east of the first node, according to the sidereal time of the
/// library ephem (libastro, `earthsat.c`, `SidReference`); by IAU 1982 it is 99.96779°.
fn hypatia(
    (mean_motion, inclination, planes, satellites): (f64, f64, u32, u32),
    altitude: f64,
    max_range: f64,
) -> OrbitConfig {
    OrbitConfig {
        mean_motion: Some(mean_motion),
        propagator: Propagator::Sgp4,
        stagger: Stagger::Alternating,
        earth: Earth::Ephem,
        rotation: 99.967_477_7,
        min_elevation: 0.0,
        max_range: Some(max_range),
        interval: 100 * MILLISECOND,
        ..delta(altitude, inclination, planes, satellites, 0.0)
    }
}

/// All presets.
pub const SHELLS: &[ShellPreset] = &[
    ShellPreset {
        name: "starlink-1",
        about: "550 km, 53°, 24 planes of 66, phasing 1, as often modelled (filed as 72 planes of 22)",
        make: || delta(550.0, 53.0, 24, 66, 1.0),
    },
    ShellPreset {
        name: "starlink-72x22",
        about: "550 km, 53°, 72 planes of 22, as filed in 2019; the filing gives no phasing, 39 is often taken",
        make: || delta(550.0, 53.0, 72, 22, 39.0),
    },
    ShellPreset {
        name: "starlink-2",
        about: "540 km, 53.2°, 72 planes of 22, the second shell as modified in 2021 (FCC 21-48); no phasing is filed",
        make: || delta(540.0, 53.2, 72, 22, 39.0),
    },
    ShellPreset {
        name: "starlink-3",
        about: "570 km, 70°, 36 planes of 20, the third shell as modified in 2021 (FCC 21-48); no phasing is filed",
        make: || delta(570.0, 70.0, 36, 20, 1.0),
    },
    ShellPreset {
        name: "starlink-4",
        about: "560 km, 97.6°, 6 planes of 58, the fourth shell as modified in 2021 (FCC 21-48); no phasing is filed",
        make: || star(560.0, 97.6, 6, 58, 1.0),
    },
    ShellPreset {
        name: "starlink-5",
        about: "560 km, 97.6°, 4 planes of 43, the fifth shell as modified in 2021 (FCC 21-48); no phasing is filed",
        make: || star(560.0, 97.6, 4, 43, 1.0),
    },
    ShellPreset {
        name: "kuiper-1",
        about: "630 km, 51.9°, 34 planes of 34; least elevation 35°",
        make: || OrbitConfig {
            min_elevation: 35.0,
            ..delta(630.0, 51.9, 34, 34, 1.0)
        },
    },
    ShellPreset {
        name: "hypatia-kuiper-630",
        about: "Kuiper's first shell as Hypatia (IMC 2020) has it: 14.80 revolutions a day, 51.9°, 34 planes of 34, SGP4; ground links up to 1,260 km",
        make: || hypatia((14.80, 51.9, 34, 34), 630.0, 1260.0),
    },
    ShellPreset {
        name: "hypatia-starlink-550",
        about: "Starlink's first shell as Hypatia (IMC 2020) has it: 15.19 revolutions a day, so at 509 km, 53°, 72 planes of 22, SGP4; ground links up to 1,089.7 km",
        make: || hypatia((15.19, 53.0, 72, 22), 550.0, 1089.6864),
    },
    ShellPreset {
        name: "hypatia-telesat-1015",
        about: "Telesat's polar shell as Hypatia (IMC 2020) has it: 13.66 revolutions a day, 98.98°, 27 planes of 13 over the whole circle, SGP4; ground links up to 5,845 km, which pass below the horizon",
        make: || OrbitConfig {
            min_elevation: -90.0,
            ..hypatia((13.66, 98.98, 27, 13), 1015.0, 5845.152)
        },
    },
    ShellPreset {
        name: "oneweb",
        about: "1200 km, 87.9°, 12 planes of 49, a star without links between satellites",
        make: || OrbitConfig {
            relay: crate::conventions::Relay::BentPipe,
            ..star(1200.0, 87.9, 12, 49, 6.0)
        },
    },
    ShellPreset {
        name: "iridium",
        about: "780 km, 86.4°, 6 planes of 11, a star; least elevation 8.2°",
        make: || OrbitConfig {
            min_elevation: 8.2,
            ..star(780.0, 86.4, 6, 11, 3.0)
        },
    },
];

/// The preset named `name`.
pub fn shell(name: &str) -> Option<&'static ShellPreset> {
    SHELLS.iter().find(|shell| shell.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_holds_together() {
        for shell in SHELLS {
            assert_eq!(shell.sky().check(), Ok(()), "{}", shell.name);
        }
        let of = |name: &str| shell(name).map(|shell| shell.sky().planes);
        assert_eq!((of("starlink-1"), of("starlink-9")), (Some(24), None));
    }

    #[test]
    fn inconsistent_presets_are_reported() {
        let closed = OrbitConfig {
            pattern: Pattern::Star,
            ..OrbitConfig::default()
        };
        assert!(
            closed
                .check()
                .is_err_and(|error| error.to_string().contains("seam"))
        );
        let turned = OrbitConfig {
            phasing: 24.0,
            ..OrbitConfig::default()
        };
        let told = turned.check().expect_err("a whole turn").to_string();
        assert_eq!(
            told,
            "`phasing`: found 24; allowed: 0 to 23, less than the number of planes"
        );
        let many = OrbitConfig {
            planes: 1000,
            satellites: 1000,
            ..OrbitConfig::default()
        };
        assert!(
            many.check()
                .is_err_and(|error| error.to_string().contains("50000"))
        );
    }
}

//! Shells by name.

use crate::sky::{Pattern, Seam, Sky};

/// A shell that is often modelled.
#[derive(Clone, Copy, Debug)]
pub struct Shell {
    /// Its name.
    pub name: &'static str,
    /// What it is, and where its numbers are from.
    pub about: &'static str,
    make: fn() -> Sky,
}

impl Shell {
    /// Its numbers, all else by default.
    pub fn sky(&self) -> Sky {
        (self.make)()
    }
}

fn delta(altitude: f64, inclination: f64, planes: u32, satellites: u32, phasing: u32) -> Sky {
    Sky {
        altitude,
        inclination,
        planes,
        satellites,
        phasing,
        ..Sky::default()
    }
}

fn star(altitude: f64, inclination: f64, planes: u32, satellites: u32, phasing: u32) -> Sky {
    Sky {
        pattern: Pattern::Star,
        seam: Seam::Open,
        ..delta(altitude, inclination, planes, satellites, phasing)
    }
}

/// Every shell: one line for each.
pub const SHELLS: &[Shell] = &[
    Shell {
        name: "starlink-1",
        about: "550 km, 53°, 24 planes of 66, phasing 1, as often modelled (filed as 72 planes of 22)",
        make: || delta(550.0, 53.0, 24, 66, 1),
    },
    Shell {
        name: "starlink-72x22",
        about: "550 km, 53°, 72 planes of 22, as filed in 2019; the filing gives no phasing, 39 is often taken",
        make: || delta(550.0, 53.0, 72, 22, 39),
    },
    Shell {
        name: "kuiper-1",
        about: "630 km, 51.9°, 34 planes of 34; least elevation 35°",
        make: || Sky {
            min_elevation: 35.0,
            ..delta(630.0, 51.9, 34, 34, 1)
        },
    },
    Shell {
        name: "oneweb",
        about: "1200 km, 87.9°, 12 planes of 49, a star without links between satellites",
        make: || Sky {
            relay: crate::sky::Relay::BentPipe,
            ..star(1200.0, 87.9, 12, 49, 6)
        },
    },
    Shell {
        name: "iridium",
        about: "780 km, 86.4°, 6 planes of 11, a star; least elevation 8.2°",
        make: || Sky {
            min_elevation: 8.2,
            ..star(780.0, 86.4, 6, 11, 3)
        },
    },
];

/// The shell of that name.
pub fn shell(name: &str) -> Option<&'static Shell> {
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
    fn what_does_not_go_together_is_told() {
        let closed = Sky {
            pattern: Pattern::Star,
            ..Sky::default()
        };
        assert!(
            closed
                .check()
                .is_err_and(|error| error.to_string().contains("seam"))
        );
        let turned = Sky {
            phasing: 24,
            ..Sky::default()
        };
        let told = turned.check().expect_err("a whole turn").to_string();
        assert_eq!(
            told,
            "`phasing`: found 24; allowed: 0 to 23, less than the number of planes"
        );
        let many = Sky {
            planes: 1000,
            satellites: 1000,
            ..Sky::default()
        };
        assert!(
            many.check()
                .is_err_and(|error| error.to_string().contains("50000"))
        );
    }
}

//! A path over satellites, as a question names it.

use anabranch_orbit::{Constellation, Place, SHELLS, follow, shell};
use anabranch_scenario::document::Table;
use anabranch_scenario::quantity::Span;
use anabranch_transport::time::{SECOND, seconds};

use crate::refused::Refused;

/// The shell that is taken unless another is named.
pub const SHELL: &str = "starlink-1";
/// How long the path is looked at for its round-trip time, and in which steps, seconds: about half of an orbit of a low shell.
const LOOKED_AT: [f64; 2] = [3000.0, 15.0];

/// A path between two places over a shell of satellites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Satellites {
    /// One end, `latitude,longitude` in degrees.
    pub from: String,
    /// The other.
    pub to: String,
    /// The shell's name.
    pub shell: String,
    /// Outage after each change to another path.
    pub handover: Span,
}

impl Satellites {
    /// A path over the usual shell, whose handovers cost nothing.
    pub fn new(from: &str, to: &str) -> Self {
        Self {
            from: from.to_owned(),
            to: to.to_owned(),
            shell: SHELL.to_owned(),
            handover: Span(0),
        }
    }

    /// The median round-trip time.
    ///
    /// # Errors
    /// No such shell or place, handovers that never end, or no path.
    pub fn rtt(&self) -> Result<Span, Refused> {
        let names: Vec<&str> = SHELLS.iter().map(|shell| shell.name).collect();
        let known = shell(&self.shell);
        let known = known.ok_or_else(|| Refused::unknown("shell", &self.shell, &names))?;
        let sky = known.sky();
        if self.handover.0 >= sky.interval {
            let allowed = format!(
                "less than {} s, the interval of changes",
                seconds(sky.interval)
            );
            return Err(Refused::new("handover", self.handover, &allowed));
        }
        let place = |key, text: &str| {
            let read: Result<Place, _> = text.parse();
            read.map_err(|error| Refused::unread(key, error.to_string()))
        };
        let (from, to) = (place("from", &self.from)?, place("to", &self.to)?);
        let constellation = Constellation::walker(&sky)
            .map_err(|error| Refused::unread("shell", error.to_string()))?;
        let [duration, step] = LOOKED_AT;
        let summary = follow(&constellation, from, to, &[], duration, step).summary();
        let Some([_, median, ..]) = summary.delay else {
            let message = format!(
                "from, to: no path over {} leads from {from} to {to}",
                self.shell
            );
            return Err(Refused::whole(&message));
        };
        Ok(Span((2.0 * median * SECOND as f64) as u64))
    }

    /// It as the delay of a link in a spec.
    pub fn delay(&self) -> Table {
        Table::new()
            .with("kind", "satellites")
            .with("shell", &self.shell)
            .with("from", &self.from)
            .with("to", &self.to)
            .with("handover", self.handover)
    }

    /// It as options of the command.
    pub fn options(&self) -> String {
        format!(
            "--from \"{}\" --to \"{}\" --shell {} --handover \"{}\"",
            self.from, self.to, self.shell, self.handover
        )
    }
}

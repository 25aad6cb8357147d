//! Satellite paths of questions.

use anabranch_orbit::{Constellation, Place, SHELLS, follow, shell};
use anabranch_scenario::document::SpecTable;
use anabranch_scenario::quantity::TimeSpan;
use anabranch_transport::time::{SECOND, seconds};

use crate::invalid_question::InvalidQuestion;

/// Default satellite shell.
pub const SHELL: &str = "starlink-1";
/// Duration over which the round-trip time is sampled (about half an orbit of a low shell), and the
/// sampling interval, seconds.
const RTT_SAMPLING: [f64; 2] = [3000.0, 15.0];

/// A path between two locations over a satellite shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Satellites {
    /// First location, `latitude,longitude` in degrees.
    pub from: String,
    /// Second location, in the same format.
    pub to: String,
    /// Name of the shell.
    pub shell: String,
    /// Duration of the outage after each route change.
    pub handover: TimeSpan,
}

impl Satellites {
    /// A path over the default shell without outages.
    pub fn new(from: &str, to: &str) -> Self {
        Self {
            from: from.to_owned(),
            to: to.to_owned(),
            shell: SHELL.to_owned(),
            handover: TimeSpan(0),
        }
    }

    /// Median round-trip time.
    ///
    /// # Errors
    /// The shell or a location does not exist, the outages overlap, or there is no path.
    pub fn rtt(&self) -> Result<TimeSpan, InvalidQuestion> {
        let names: Vec<&str> = SHELLS.iter().map(|shell| shell.name).collect();
        let known = shell(&self.shell);
        let known = known.ok_or_else(|| InvalidQuestion::unknown("shell", &self.shell, &names))?;
        let sky = known.sky();
        if self.handover.0 >= sky.interval {
            let allowed = format!(
                "less than {} s, the interval of changes",
                seconds(sky.interval)
            );
            return Err(InvalidQuestion::new("handover", self.handover, &allowed));
        }
        let place = |key, text: &str| {
            let read: Result<Place, _> = text.parse();
            read.map_err(|error| InvalidQuestion::unread(key, error.to_string()))
        };
        let (from, to) = (place("from", &self.from)?, place("to", &self.to)?);
        let constellation = Constellation::walker(&sky)
            .map_err(|error| InvalidQuestion::unread("shell", error.to_string()))?;
        let [duration, step] = RTT_SAMPLING;
        let summary = follow(&constellation, from, to, &[], duration, step).summary();
        let Some([_, median, ..]) = summary.delay else {
            let message = format!(
                "from, to: no path over {} leads from {from} to {to}",
                self.shell
            );
            return Err(InvalidQuestion::whole(&message));
        };
        Ok(TimeSpan((2.0 * median * SECOND as f64) as u64))
    }

    /// The path as the delay of a link, for a spec.
    pub fn delay(&self) -> SpecTable {
        SpecTable::new()
            .with("kind", "satellites")
            .with("shell", &self.shell)
            .with("from", &self.from)
            .with("to", &self.to)
            .with("handover", self.handover)
    }

    /// The path as options of the command line.
    pub fn options(&self) -> String {
        format!(
            "--from \"{}\" --to \"{}\" --shell {} --handover \"{}\"",
            self.from, self.to, self.shell, self.handover
        )
    }
}

//! Adaptive coding and modulation (ACM) as in DVB-S2 and DVB-S2X (ETSI EN 302 307-1, -2). The rate
//! follows the signal-to-noise ratio, by a table of modulations and code rates (MODCODs) with the
//! minimum Es/N0 of each.
//!
//! Es/N0 is its value under clear sky minus the attenuation. The attenuation consists of given
//! steps over time, and of rain that is synthesised as in ITU-R P.1853. Es/N0 is measured at
//! regular intervals. The sender chooses a MODCOD by a measurement that is `reaction_delay` old,
//! with a margin. A change back to a faster MODCOD requires an additional hysteresis. A packet is
//! lost if Es/N0 is below the minimum of its MODCOD when its transmission begins.

mod modcods;
mod rain;

use std::collections::VecDeque;

use anabranch_settings::{Kind, KindEntry, SettingValue, idle_if, kind, spelled};
use anabranch_transport::Nanos;

use super::timed::{PacketTiming, TimedQueue, Transmission};
use super::{LIMIT, PERIOD, QueueDiscipline, QueueLimit, QueuedPacket};
use crate::error::BuildError;
use crate::rng::Rng;
use crate::step_function::{Cursor, StepFunction};
use modcods::Modcod;
use rain::Rain;

/// A table of MODCODs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModcodTable {
    /// The MODCODs of DVB-S2.
    S2,
    /// The MODCODs of DVB-S2 and DVB-S2X.
    S2x,
}
spelled!(ModcodTable: ModcodTable::S2 = "s2", ModcodTable::S2x = "s2x");

/// Value kind of a ratio in dB.
const RATIO: Kind = Kind::number(0.0, 100.0);

kind! {
    /// Settings of [`DvbS2`].
    #[derive(Clone, Debug, PartialEq)]
    pub struct DvbS2Config {
        /// Table of MODCODs: `s2` has those of DVB-S2, and `s2x` also those of DVB-S2X. Both tables
        /// are for normal FECFRAMEs.
        modcods: ModcodTable = "s2", ModcodTable::KIND, "EN 302 307-1 table 13, EN 302 307-2 table 20a";
        /// Es/N0 without attenuation, dB. The rate of the link is that of the MODCOD for this
        /// Es/N0; the rates of the other MODCODs are in proportion to their spectral efficiency.
        clear_sky: f64, Kind::number(-5.0, 40.0);
        /// Attenuation in dB: a constant, or a function of time. Default: none.
        attenuation: Option<StepFunction<f64>> = none, Kind::StepFunction(&RATIO);
        /// Percentage of time with rain attenuation. 0: no rain is synthesised.
        rain_probability: f64 = 0, Kind::number(0.0, 100.0), "ITU-R P.1853-1 Annex 1 §2";
        /// Mean of the natural logarithm of the rain attenuation (dB), before the offset that makes
        /// it positive for `rain_probability` of the time.
        rain_m: f64 = 0, Kind::number(-50.0, 50.0), "ITU-R P.1853-1 Annex 1 §2";
        /// Standard deviation of the natural logarithm of the rain attenuation.
        rain_sigma: f64 = 1, Kind::number(0.0, 20.0), "ITU-R P.1853-1 Annex 1 §2";
        /// Minimum difference between the measured Es/N0 and the minimum of a MODCOD, dB.
        margin: f64 = 1, RATIO;
        /// Additional margin for a change to a faster MODCOD, dB.
        hysteresis: f64 = 0.5, RATIO;
        /// Time between two measurements of Es/N0. The model changes Es/N0 only at these times.
        measurement_interval: Nanos = "100 ms", PERIOD;
        /// Age of the measurement that determines the MODCOD, which the receiver reports over the
        /// satellite; rounded up to whole measurement intervals.
        reaction_delay: Nanos = "500 ms", Kind::duration(0, 3_600_000_000_000);
        limit: QueueLimit as LIMIT;
    }
    idle {
        modcods: |it, ()| clear(it);
        clear_sky: |it, ()| clear(it);
        margin: |it, ()| clear(it);
        hysteresis: |it, ()| constant(it);
        measurement_interval: |it, ()| constant(it);
        reaction_delay: |it, ()| constant(it);
        rain_m: |it, ()| dry(it);
        rain_sigma: |it, ()| dry(it);
    }
    /// Adaptive coding and modulation (DVB-S2, DVB-S2X): the rate of the link follows the
    /// attenuation, and packets are lost until the sender has changed to a more robust MODCOD.
    /// Packets leave in the order of arrival. The rate of the link, which must be constant, is the
    /// rate under clear sky.
    pub(super) static ENTRY: KindEntry<Box<dyn QueueDiscipline>> =
        "dvb-s2", |config, ()| Ok(Box::new(DvbS2::new(config)?));
}

/// The reason why a parameter has no effect, if there is no attenuation.
fn clear(config: &DvbS2Config) -> Option<String> {
    idle_if(
        config.attenuation.is_none() && config.rain_probability == 0.0,
        "without `attenuation` and `rain_probability`: the MODCOD never changes",
    )
}

/// The reason why a parameter of MODCOD changes has no effect, if the MODCOD never changes: without
/// attenuation, or with constant attenuation and no rain.
fn constant(config: &DvbS2Config) -> Option<String> {
    let attenuation = config.attenuation.as_ref();
    let steady = attenuation.is_some_and(|it| it.as_constant().is_some());
    clear(config).or_else(|| {
        idle_if(
            steady && config.rain_probability == 0.0,
            "with a constant `attenuation` and without `rain_probability`: the MODCOD never changes",
        )
    })
}

/// The reason why a parameter of the rain has no effect, if no rain is synthesised.
fn dry(config: &DvbS2Config) -> Option<String> {
    idle_if(
        config.rain_probability == 0.0,
        "with a `rain_probability` of 0",
    )
}

/// The radio channel: Es/N0 in each measurement interval.
struct Channel {
    clear_sky: f64,
    attenuation: Option<Cursor<f64>>,
    rain: Option<Rain>,
}

impl Channel {
    /// Es/N0 in dB of the interval that begins at `at`; must be called once for each interval, in
    /// the order of time.
    fn next(&mut self, at: Nanos, rng: &mut Rng) -> f64 {
        let steps = self.attenuation.as_mut();
        let steps = steps.map_or(0.0, |cursor| cursor.at(at).0);
        let rain = self.rain.as_mut().map_or(0.0, |rain| rain.next(rng));
        self.clear_sky - steps - rain
    }
}

/// The discipline for adaptive coding and modulation.
pub type DvbS2 = TimedQueue<Acm>;

/// Packet timing of adaptive coding and modulation: measurements, and the choice of the MODCOD.
pub struct Acm {
    margin: f64,
    hysteresis: f64,
    interval: Nanos,
    /// Measurements that the sender has not received yet, and the number of intervals after which
    /// it receives one.
    measured: VecDeque<f64>,
    delay: usize,
    table: Vec<Modcod>,
    channel: Channel,
    /// Number of the next measurement.
    next: u64,
    /// Current Es/N0, dB.
    snr: f64,
    modcod: Modcod,
    /// Spectral efficiency of the clear-sky MODCOD, bits per symbol.
    efficiency: f64,
}

impl DvbS2 {
    /// Creates an empty queue.
    ///
    /// # Errors
    /// [`BuildError::EmptyQueue`] for a limit of 0, [`BuildError::Parameters`] if `clear_sky` is
    /// below the minimum Es/N0 of all MODCODs.
    pub fn new(config: DvbS2Config) -> Result<Self, BuildError> {
        let limit = config.limit.checked()?;
        let table = match config.modcods {
            ModcodTable::S2 => modcods::fastest(&[modcods::S2]),
            ModcodTable::S2x => modcods::fastest(&[modcods::S2, modcods::S2X]),
        };
        let clear = choose(&table, config.clear_sky - config.margin);
        if clear.least > config.clear_sky {
            return Err(BuildError::Parameters(
                "`clear_sky` is below the least Es/N0 of all MODCODs",
            ));
        }
        let interval = config.measurement_interval;
        let rain = (config.rain_probability > 0.0).then(|| {
            let spread = [config.rain_m, config.rain_sigma];
            Rain::new(config.rain_probability / 100.0, spread, interval)
        });
        let acm = Acm {
            margin: config.margin,
            hysteresis: config.hysteresis,
            interval,
            measured: VecDeque::new(),
            delay: config.reaction_delay.div_ceil(interval) as usize,
            table,
            channel: Channel {
                clear_sky: config.clear_sky,
                attenuation: config.attenuation.map(Cursor::new),
                rain,
            },
            next: 0,
            snr: config.clear_sky,
            modcod: clear,
            efficiency: clear.efficiency,
        };
        Ok(Self::with(limit, acm))
    }
}

impl Acm {
    /// Performs the measurements up to `now`, and chooses the MODCOD after each.
    fn advance(&mut self, now: Nanos, rng: &mut Rng) {
        while self.next * self.interval <= now {
            let first = self.next == 0;
            self.snr = self.channel.next(self.next * self.interval, rng);
            self.next += 1;
            self.measured.push_back(self.snr);
            if first {
                self.modcod = choose(&self.table, self.snr - self.margin);
            }
            if self.measured.len() > self.delay
                && let Some(measured) = self.measured.pop_front()
            {
                self.adapt(measured - self.margin);
            }
        }
    }

    /// Chooses a MODCOD for a measured Es/N0 from which the margin is subtracted.
    fn adapt(&mut self, snr: f64) {
        let slower = choose(&self.table, snr);
        let faster = choose(&self.table, snr - self.hysteresis);
        if slower.efficiency < self.modcod.efficiency {
            self.modcod = slower;
        } else if faster.efficiency > self.modcod.efficiency {
            self.modcod = faster;
        }
    }
}

/// The fastest MODCOD that is usable at an Es/N0, or the most robust one if none is.
fn choose(table: &[Modcod], snr: f64) -> Modcod {
    let usable = table.partition_point(|modcod| modcod.least <= snr);
    table[usable.max(1) - 1]
}

impl PacketTiming for Acm {
    const NOT_CONSTANT: &'static str =
        "a queue of the kind `dvb-s2` needs a constant rate of its link: that of clear sky";

    fn next(&mut self, now: Nanos, _: &QueuedPacket, rate: f64, rng: &mut Rng) -> Transmission {
        self.advance(now, rng);
        Transmission {
            begin: now,
            rate: rate * self.modcod.efficiency / self.efficiency,
            lost: self.snr < self.modcod.least,
        }
    }
}

#[cfg(test)]
mod tests;

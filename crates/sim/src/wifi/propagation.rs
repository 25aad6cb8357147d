//! Radio propagation: received power and propagation delay.
//!
//! Powers are linear (watts) and computed only by `+ - * /` and `sqrt`, so that all machines agree
//! on which stations hear each other.

use anabranch_transport::Nanos;

/// Speed of light in vacuum, m/s.
pub const SPEED_OF_LIGHT: f64 = 299_792_458.0;

/// Position of an antenna, in metres on a plane.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AntennaPosition {
    /// Metres east of the origin.
    pub x: f64,
    /// Metres north of the origin.
    pub y: f64,
}

impl AntennaPosition {
    /// The position `(x, y)`, in metres.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }

    /// Distance to `other`, metres.
    pub fn distance(self, other: AntennaPosition) -> f64 {
        let (dx, dy) = (self.x - other.x, self.y - other.y);
        (dx * dx + dy * dy).sqrt()
    }
}

/// Propagation delay over `distance` metres in nanoseconds, rounded down; 0.3 m take 1 ns.
pub fn propagation_delay(distance: f64) -> Nanos {
    (distance * 1e9 / SPEED_OF_LIGHT) as Nanos
}

/// Propagation loss model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PropagationLoss {
    /// Friis' equation: power decreases with the square of the distance.
    FreeSpace,
    /// Friis' equation up to the crossover distance `4 pi h_t h_r / lambda`. Beyond it, power
    /// decreases with the fourth power of the distance, because the ray reflected by the ground
    /// increasingly cancels the direct ray.
    #[default]
    TwoRayGround,
}

/// Radio properties, which are the same for all stations of a medium.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Radio {
    /// Power fed to the antenna, watts.
    pub transmit_power: f64,
    /// Carrier frequency, hertz.
    pub frequency: f64,
    /// Power in watts below which a frame cannot be decoded.
    pub receive_threshold: f64,
    /// Power in watts below which a signal is not detected: the medium appears idle, and the signal
    /// disturbs no frame. It must not be above `receive_threshold`.
    pub carrier_sense_threshold: f64,
    /// Minimum ratio (not in dB) of a frame's power to the sum of overlapping signals at which the
    /// frame is still decoded.
    pub capture_ratio: f64,
    /// Gain of the transmitting antenna, a ratio.
    pub transmit_gain: f64,
    /// Gain of the receiving antenna, a ratio.
    pub receive_gain: f64,
    /// Height of every antenna above the ground, metres.
    pub antenna_height: f64,
    /// System losses other than propagation, a ratio of at least 1.
    pub system_loss: f64,
    /// Propagation loss model.
    pub propagation: PropagationLoss,
}

impl Radio {
    /// Whether a frame received with `power` watts can be decoded while no other signal overlaps
    /// it.
    pub fn decodes(&self, power: f64) -> bool {
        power >= self.receive_threshold
    }

    /// Wavelength, metres.
    pub fn wavelength(&self) -> f64 {
        SPEED_OF_LIGHT / self.frequency
    }

    /// Distance in metres beyond which [`PropagationLoss::TwoRayGround`] differs from Friis'
    /// equation.
    pub fn crossover_distance(&self) -> f64 {
        4.0 * std::f64::consts::PI * self.antenna_height * self.antenna_height / self.wavelength()
    }

    /// Received power in watts at a distance of `distance` metres. It is limited to the power sent,
    /// because Friis' equation does not hold in the near field, for which it would result in a
    /// gain.
    pub fn received_power(&self, distance: f64) -> f64 {
        let sent = self.transmit_power * self.transmit_gain * self.receive_gain / self.system_loss;
        let square = distance * distance;
        let gain = if self.propagation == PropagationLoss::TwoRayGround
            && distance > self.crossover_distance()
        {
            let height = self.antenna_height * self.antenna_height;
            height * height / (square * square)
        } else {
            let reach = self.wavelength() / (4.0 * std::f64::consts::PI);
            if square <= reach * reach {
                1.0
            } else {
                reach * reach / square
            }
        };
        sent * gain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::WifiParameters;

    fn close(found: f64, expected: f64) {
        assert!(
            (found / expected - 1.0).abs() < 1e-3,
            "{found:e} instead of {expected:e}"
        );
    }

    #[test]
    fn friis_by_hand() {
        // From Rafiq's access point at (1, 2) to his first node at (80, 30) the distance is 83.815
        // m. With lambda = 0.124914 m, (lambda / 4 pi d)^2 = 1.40657e-8, times 33.962527 mW.
        let radio = WifiParameters::rafiq2007().radio;
        let distance = AntennaPosition::new(1.0, 2.0).distance(AntennaPosition::new(80.0, 30.0));
        close(distance, 83.815);
        close(radio.received_power(distance), 4.7771e-10);
        assert_eq!(propagation_delay(distance), 279);
    }

    #[test]
    fn two_rays_take_over_beyond_the_crossover() {
        let mut radio = WifiParameters::rafiq2007().radio;
        close(radio.crossover_distance(), 226.35);
        // At 400 m, h^4 / d^4 = 5.0625 / 2.56e10 = 1.97754e-10.
        close(radio.received_power(400.0), 3.3962527e-2 * 1.97754e-10);
        radio.propagation = PropagationLoss::FreeSpace;
        close(radio.received_power(400.0), 3.3962527e-2 * 6.1755e-10);
    }

    #[test]
    fn the_two_laws_meet_at_the_crossover() {
        let radio = WifiParameters::ieee80211b().radio;
        let crossover = radio.crossover_distance();
        close(
            radio.received_power(crossover * 1.000_001),
            radio.received_power(crossover * 0.999_999),
        );
    }

    #[test]
    fn power_is_never_gained_and_never_grows_with_distance() {
        let radio = WifiParameters::ieee80211b().radio;
        let mut last = radio.received_power(0.0);
        assert_eq!(last, radio.transmit_power);
        for step in 1..20_000 {
            let power = radio.received_power(f64::from(step) * 0.05);
            assert!(
                power > 0.0 && power <= last * (1.0 + 1e-12),
                "at step {step}"
            );
            last = power;
        }
    }
}

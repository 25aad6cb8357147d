//! Physical layer: air times, and a receiver of overlapping signals.

use anabranch_transport::Nanos;
use anabranch_transport::time::{MICROSECOND, SECOND};

use super::parameters::{ResponseTimeout, WifiParameters};
use super::propagation::Radio;

/// All times derived from [`WifiParameters`], nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct PhyTiming {
    /// DIFS, the gap before a frame that starts an exchange: SIFS and two slots.
    pub difs: Nanos,
    /// EIFS, the gap after an error: SIFS, the air time of an ACK at the basic rate, and DIFS.
    pub eifs: Nanos,
    /// Air time of PLCP preamble and header.
    pub plcp: Nanos,
    /// Air time of an RTS.
    pub rts: Nanos,
    /// Air time of a CTS.
    pub cts: Nanos,
    /// Air time of an ACK.
    pub ack: Nanos,
    /// CTS timeout, counted from the end of the RTS.
    pub cts_timeout: Nanos,
    /// ACK timeout, counted from the end of the data frame.
    pub ack_timeout: Nanos,
}

impl PhyTiming {
    /// Computes the times for `parameters`, which must be valid.
    pub fn new(parameters: &WifiParameters) -> Self {
        let plcp = u64::from(parameters.preamble_bits + parameters.plcp_header_bits) * SECOND
            / parameters.plcp_rate;
        let control = |bytes| plcp + body(parameters, bytes, parameters.basic_rate);
        let difs = parameters.sifs + 2 * parameters.slot;
        let (cts, ack) = (control(parameters.cts_bytes), control(parameters.ack_bytes));
        let timeout = |response| {
            parameters.sifs
                + match parameters.response_timeout {
                    ResponseTimeout::Header => parameters.slot + plcp,
                    ResponseTimeout::WholeFrame(slack) => response + slack,
                }
        };
        Self {
            difs,
            eifs: parameters.sifs + ack + difs,
            plcp,
            rts: control(parameters.rts_bytes),
            cts,
            ack,
            cts_timeout: timeout(cts),
            ack_timeout: timeout(ack),
        }
    }

    /// Air time of a data frame that carries a packet of `packet` bytes, nanoseconds.
    pub fn data(&self, parameters: &WifiParameters, packet: u32) -> Nanos {
        self.plcp
            + body(
                parameters,
                packet + parameters.data_overhead,
                parameters.data_rate,
            )
    }
}

/// Air time of the part of a frame after its PLCP header, nanoseconds.
fn body(parameters: &WifiParameters, bytes: u32, rate: u64) -> Nanos {
    (u64::from(bytes) * 8 * SECOND)
        .div_ceil(rate)
        .next_multiple_of(parameters.air_time_unit)
}

/// Value of the Duration field for `span`: rounded up to a whole microsecond (IEEE 802.11-1999
/// §7.1.3.2, §9.2.5.4).
pub fn duration_field(span: Nanos) -> Nanos {
    span.next_multiple_of(MICROSECOND)
}

/// Number of a transmission, in order of start; never reused.
pub type TransmissionId = u64;

/// A signal present at an antenna.
#[derive(Clone, Copy, Debug)]
struct Signal {
    transmission: TransmissionId,
    power: f64,
    /// Whether the signal is strong enough to detect but too weak to decode, at a station that
    /// could otherwise have received it.
    weak: bool,
}

/// The frame that a receiver is following, that is, trying to decode.
#[derive(Clone, Copy, Debug)]
struct Lock {
    transmission: TransmissionId,
    power: f64,
    spoiled: bool,
}

/// Effect of the start of a signal on a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalStart {
    /// The receiver follows the new frame.
    Followed,
    /// The new frame is too weak to decode.
    Weak,
    /// The station is transmitting and cannot receive the frame.
    WhileTransmitting,
    /// The receiver continues to follow the previous frame, which is strong enough.
    Captured,
    /// The new frame overlaps other signals and is lost. A frame that the receiver was following is
    /// then lost, too.
    Collided,
}

/// Effect of the end of a signal on a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalEnd {
    /// The frame was decoded.
    Decoded,
    /// A frame was detected and could not be decoded.
    Spoiled,
    /// The station detected only a carrier.
    Ignored,
}

/// Receiver of one station: all signals at its antenna, and the frame that it follows.
#[derive(Clone, Debug, Default)]
pub struct StationReceiver {
    signals: Vec<Signal>,
    lock: Option<Lock>,
    transmitting_until: Nanos,
}

impl StationReceiver {
    /// Whether a signal is present at the antenna.
    pub fn is_busy(&self) -> bool {
        !self.signals.is_empty()
    }

    /// Whether the receiver follows a frame, even one that is already lost.
    pub fn is_following(&self) -> bool {
        self.lock.is_some()
    }

    /// Whether the station is transmitting at `now`, so that it cannot receive.
    pub fn is_transmitting(&self, now: Nanos) -> bool {
        now < self.transmitting_until
    }

    /// Marks the station as transmitting until `until`; it loses the frame that it was following.
    /// Returns whether it was following a frame.
    pub fn transmit(&mut self, until: Nanos) -> bool {
        self.transmitting_until = until;
        for signal in &mut self.signals {
            signal.weak = false;
        }
        self.lock.take().is_some()
    }

    /// Handles the start of a signal of `power` watts, which is at least the carrier-sense
    /// threshold.
    pub fn begin(
        &mut self,
        now: Nanos,
        transmission: TransmissionId,
        power: f64,
        radio: &Radio,
    ) -> SignalStart {
        let followed = self.lock.map(|lock| lock.transmission);
        let disturbing = self
            .signals
            .iter()
            .filter(|signal| Some(signal.transmission) != followed);
        let others: f64 = disturbing.map(|signal| signal.power).sum();
        let arrival = if self.is_transmitting(now) {
            SignalStart::WhileTransmitting
        } else if let Some(lock) = &mut self.lock {
            if lock.power >= radio.capture_ratio * (others + power) {
                SignalStart::Captured
            } else {
                lock.spoiled = true;
                SignalStart::Collided
            }
        } else if !radio.decodes(power) {
            SignalStart::Weak
        } else if power >= radio.capture_ratio * others {
            self.lock = Some(Lock {
                transmission,
                power,
                spoiled: false,
            });
            SignalStart::Followed
        } else {
            SignalStart::Collided
        };
        self.signals.push(Signal {
            transmission,
            power,
            weak: arrival == SignalStart::Weak,
        });
        arrival
    }

    /// Handles the end of a signal.
    pub fn end(&mut self, transmission: TransmissionId) -> SignalEnd {
        let Some(index) = self
            .signals
            .iter()
            .position(|signal| signal.transmission == transmission)
        else {
            return SignalEnd::Ignored;
        };
        let signal = self.signals.swap_remove(index);
        match self.lock {
            Some(lock) if lock.transmission == transmission => {
                self.lock = None;
                if lock.spoiled {
                    SignalEnd::Spoiled
                } else {
                    SignalEnd::Decoded
                }
            }
            _ if signal.weak => SignalEnd::Spoiled,
            _ => SignalEnd::Ignored,
        }
    }
}

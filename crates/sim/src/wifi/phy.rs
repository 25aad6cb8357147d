//! The physical layer's arithmetic of time, and a receiver that hears signals come and go.

use anabranch_transport::Nanos;
use anabranch_transport::time::{MICROSECOND, SECOND};

use super::parameters::{Parameters, ResponseTimeout};
use super::propagation::Radio;

/// Every span that follows from [`Parameters`], worked out once.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The gap before a frame that opens an exchange: SIFS and two slots.
    pub difs: Nanos,
    /// The gap after an error: SIFS, an ACK's air time at the basic rate, DIFS.
    pub eifs: Nanos,
    /// PLCP preamble and header on the air.
    pub plcp: Nanos,
    /// An RTS on the air.
    pub rts: Nanos,
    /// A CTS on the air.
    pub cts: Nanos,
    /// An ACK on the air.
    pub ack: Nanos,
    /// From the end of an RTS to despair.
    pub cts_timeout: Nanos,
    /// From the end of a data frame to despair.
    pub ack_timeout: Nanos,
}

impl Timing {
    /// The spans of `parameters`, which must be valid.
    pub fn new(parameters: &Parameters) -> Self {
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

    /// A data frame on the air that carries a packet of `packet` bytes.
    pub fn data(&self, parameters: &Parameters, packet: u32) -> Nanos {
        self.plcp
            + body(
                parameters,
                packet + parameters.data_overhead,
                parameters.data_rate,
            )
    }
}

/// The part of a frame after its PLCP header, on the air.
fn body(parameters: &Parameters, bytes: u32, rate: u64) -> Nanos {
    (u64::from(bytes) * 8 * SECOND)
        .div_ceil(rate)
        .next_multiple_of(parameters.air_time_unit)
}

/// `span` as a Duration field carries it: rounded up to a microsecond (IEEE 802.11-1999 §7.1.3.2, §9.2.5.4).
pub fn duration_field(span: Nanos) -> Nanos {
    span.next_multiple_of(MICROSECOND)
}

/// A transmission's number, in order of its start; never used twice.
pub type TransmissionId = u64;

/// A signal that is now at an antenna.
#[derive(Clone, Copy, Debug)]
struct Signal {
    transmission: TransmissionId,
    power: f64,
    /// Strong enough to notice, too weak to decode, and nothing else kept the station from it.
    weak: bool,
}

/// The frame that a receiver is following.
#[derive(Clone, Copy, Debug)]
struct Lock {
    transmission: TransmissionId,
    power: f64,
    spoiled: bool,
}

/// What a signal's beginning did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The receiver follows it.
    Followed,
    /// It is too weak to decode.
    Weak,
    /// The station was transmitting and could not hear it.
    WhileTransmitting,
    /// The receiver goes on with the frame before, which is strong enough.
    Captured,
    /// It fell upon another frame, and both are lost.
    Collided,
}

/// What a signal's end left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The frame was decoded.
    Decoded,
    /// A frame was heard and could not be decoded.
    Spoiled,
    /// The station knows nothing of it but that there was a carrier.
    Ignored,
}

/// One station's receiver: which signals are at its antenna, and which of them it follows.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    signals: Vec<Signal>,
    lock: Option<Lock>,
    transmitting_until: Nanos,
}

impl Receiver {
    /// Whether any signal is at the antenna.
    pub fn is_busy(&self) -> bool {
        !self.signals.is_empty()
    }

    /// Whether a frame is being followed, be it spoiled or not.
    pub fn is_following(&self) -> bool {
        self.lock.is_some()
    }

    /// Whether the station transmits at `now`, and hears nothing.
    pub fn is_transmitting(&self, now: Nanos) -> bool {
        now < self.transmitting_until
    }

    /// The station transmits until `until`: what it was following is lost to it. Returns whether there was such a frame.
    pub fn transmit(&mut self, until: Nanos) -> bool {
        self.transmitting_until = until;
        for signal in &mut self.signals {
            signal.weak = false;
        }
        self.lock.take().is_some()
    }

    /// A signal of `power` watts, at least the carrier-sense threshold, reaches the antenna.
    pub fn begin(
        &mut self,
        now: Nanos,
        transmission: TransmissionId,
        power: f64,
        radio: &Radio,
    ) -> Arrival {
        let followed = self.lock.map(|lock| lock.transmission);
        let disturbing = self
            .signals
            .iter()
            .filter(|signal| Some(signal.transmission) != followed);
        let others: f64 = disturbing.map(|signal| signal.power).sum();
        let arrival = if self.is_transmitting(now) {
            Arrival::WhileTransmitting
        } else if let Some(lock) = &mut self.lock {
            if lock.power >= radio.capture_ratio * (others + power) {
                Arrival::Captured
            } else {
                lock.spoiled = true;
                Arrival::Collided
            }
        } else if !radio.decodes(power) {
            Arrival::Weak
        } else if power >= radio.capture_ratio * others {
            self.lock = Some(Lock {
                transmission,
                power,
                spoiled: false,
            });
            Arrival::Followed
        } else {
            Arrival::Collided
        };
        self.signals.push(Signal {
            transmission,
            power,
            weak: arrival == Arrival::Weak,
        });
        arrival
    }

    /// A signal leaves the antenna.
    pub fn end(&mut self, transmission: TransmissionId) -> Ending {
        let Some(index) = self
            .signals
            .iter()
            .position(|signal| signal.transmission == transmission)
        else {
            return Ending::Ignored;
        };
        let signal = self.signals.swap_remove(index);
        match self.lock {
            Some(lock) if lock.transmission == transmission => {
                self.lock = None;
                if lock.spoiled {
                    Ending::Spoiled
                } else {
                    Ending::Decoded
                }
            }
            _ if signal.weak => Ending::Spoiled,
            _ => Ending::Ignored,
        }
    }
}

//! What a wireless medium is made of, as data, with two named sets.

use anabranch_transport::Nanos;
use anabranch_transport::time::{MICROSECOND, SECOND};
use thiserror::Error;

use super::propagation::{Propagation, Radio};

/// How long a sender waits for the CTS or the ACK that it is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseTimeout {
    /// Until the response's PLCP header would have arrived: SIFS + slot + preamble and header (IEEE 802.11-2007
    /// §9.2.5.7, §9.2.8).
    Header,
    /// Until the whole response would have arrived: SIFS + its air time + this slack.
    WholeFrame(Nanos),
}

/// What a station does after a frame that it heard and could not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterError {
    /// It waits EIFS in place of DIFS; a frame decoded in between ends that (IEEE 802.11-1999 §9.2.3.4).
    EifsInsteadOfDifs,
    /// It sets its NAV to EIFS, so that the wait is EIFS and DIFS, and nothing shortens it.
    EifsThenDifs,
}

/// What a frame that finds an idle medium and no backoff in progress waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleAccess {
    /// For the medium to have been idle for DIFS, which may be so already (IEEE 802.11-1999 §9.2.5.1).
    Immediate,
    /// For DIFS from its own arrival and a backoff drawn for it.
    Backoff,
}

/// What a backoff is drawn from, uniformly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackoffRange {
    /// 0 to CW, both included (IEEE 802.11-1999 §9.2.4).
    ThroughWindow,
    /// 0 to CW - 1.
    BelowWindow,
}

/// Everything that stations of one medium share. Two sets are named: [`Parameters::ieee80211b`] and
/// [`Parameters::rafiq2007`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// A slot of the backoff.
    pub slot: Nanos,
    /// The gap before a CTS, an ACK, or the data frame after a CTS.
    pub sifs: Nanos,
    /// How long a carrier must last before a station notices it (clear channel assessment). Whoever's backoff ends
    /// within this time of another's start transmits too: it is this, and not the light's delay, that makes a slot one
    /// moment. Less than a slot.
    pub cca_time: Nanos,
    /// First contention window, slots.
    pub cw_min: u32,
    /// Largest contention window, slots.
    pub cw_max: u32,
    /// What a backoff is drawn from.
    pub backoff_range: BackoffRange,
    /// What a frame waits for that finds the medium idle.
    pub idle_access: IdleAccess,
    /// What a station does after an undecodable frame.
    pub after_error: AfterError,
    /// How long a sender waits for a response.
    pub response_timeout: ResponseTimeout,
    /// PLCP preamble, bits.
    pub preamble_bits: u32,
    /// PLCP header, bits.
    pub plcp_header_bits: u32,
    /// Rate of preamble and header, bits/s.
    pub plcp_rate: u64,
    /// Rate of data frames after the PLCP header, bits/s.
    pub data_rate: u64,
    /// Rate of RTS, CTS and ACK after the PLCP header, bits/s.
    pub basic_rate: u64,
    /// The part of a frame after the PLCP header lasts a whole multiple of this, rounded up.
    pub air_time_unit: Nanos,
    /// Bytes that a data frame adds to the packet: MAC header, FCS, and LLC with SNAP where there is one.
    pub data_overhead: u32,
    /// Bytes of an RTS.
    pub rts_bytes: u32,
    /// Bytes of a CTS.
    pub cts_bytes: u32,
    /// Bytes of an ACK.
    pub ack_bytes: u32,
    /// Data frames longer than this (bytes with their overhead) are announced by RTS; 0 announces all.
    pub rts_threshold: u32,
    /// Attempts for an RTS, and for a data frame sent without.
    pub short_retry_limit: u32,
    /// Attempts for a data frame sent after RTS and CTS.
    pub long_retry_limit: u32,
    /// Longest packet that is taken, bytes.
    pub longest_packet: u32,
    /// Packets that a station holds at most, that on its way included; one more is dropped.
    pub queue_limit: usize,
    /// What the layer above takes with each packet, before it joins the interface queue and again after it arrived. The
    /// [`Medium`](super::Medium) itself does not wait for it, a world's link does; it knows from it how late an outcome may be told.
    pub link_layer_delay: Nanos,
    /// Bytes that a station's routing adds to every packet which it sends as the first, and which stay on it to its
    /// destination. As `link_layer_delay` this is for a world's link.
    pub routing_header: u32,
    /// Antennas and thresholds.
    pub radio: Radio,
}

impl Parameters {
    /// IEEE 802.11b at 11 Mb/s with the long preamble, and the defaults of IEEE 802.11-1999's and -2007's MIB.
    ///
    /// The standard leaves open, and this set fills in: 100 mW on channel 6; antennas of gain 1 at 1.5 m over a flat
    /// ground; frames decoded from -76 dBm, the sensitivity that §18.4.8.1 asks at 11 Mb/s; a carrier noticed from -80
    /// dBm, what §15.4.8.1 asks at 2 Mb/s, since the preamble is sent slower still; capture from 10 dB; 50 packets.
    pub const fn ieee80211b() -> Self {
        Self {
            slot: 20 * MICROSECOND,
            sifs: 10 * MICROSECOND,
            cca_time: 15 * MICROSECOND,
            cw_min: 31,
            cw_max: 1023,
            backoff_range: BackoffRange::ThroughWindow,
            idle_access: IdleAccess::Immediate,
            after_error: AfterError::EifsInsteadOfDifs,
            response_timeout: ResponseTimeout::Header,
            preamble_bits: 144,
            plcp_header_bits: 48,
            plcp_rate: 1_000_000,
            data_rate: 11_000_000,
            basic_rate: 1_000_000,
            // §18.3.4: TXTIME takes the ceiling in microseconds.
            air_time_unit: MICROSECOND,
            // Header of three addresses 24, FCS 4, LLC 3 and SNAP 5.
            data_overhead: 36,
            rts_bytes: 20,
            cts_bytes: 14,
            ack_bytes: 14,
            rts_threshold: 2347,
            short_retry_limit: 7,
            long_retry_limit: 4,
            // An MSDU of 2304 bytes less LLC and SNAP.
            longest_packet: 2296,
            queue_limit: 50,
            link_layer_delay: 0,
            routing_header: 0,
            radio: Radio {
                transmit_power: 0.1,
                frequency: 2.437e9,
                receive_threshold: 2.511_886_4e-11,
                carrier_sense_threshold: 1e-11,
                capture_ratio: 10.0,
                transmit_gain: 1.0,
                receive_gain: 1.0,
                antenna_height: 1.5,
                system_loss: 1.0,
                propagation: Propagation::TwoRayGround,
            },
        }
    }

    /// The listing in Appendix 8.1 of Rafiq's thesis (2007), and where it is silent the defaults of ns-2.35, on whose
    /// predecessor it ran.
    ///
    /// Of the listing: slot, SIFS, preamble, PLCP header and its rate, data and basic rate (all as in 802.11b),
    /// 2.4 GHz, 33.96 mW, both thresholds -82 dBm, two-ray ground, 50 packets. The scan has lost the underscore of some
    /// names (`Pt`, `RXThresh`); if the listing had lost it too, ns-2 would have kept 281.8 mW and 3.652e-10 W. At
    /// the thesis' distances (84 m and 191 m) no reception depends on which.
    ///
    /// Where this departs from 802.11b ([`Parameters::ieee80211b`]):
    ///
    /// | here | 802.11b |
    /// |---|---|
    /// | every data frame is announced by RTS (`RTSThreshold_` 0, which the listing leaves alone) | only those over 2347 bytes: none |
    /// | a frame that finds the medium idle draws a backoff all the same | it goes after DIFS |
    /// | a backoff is drawn from 0 to CW - 1 | 0 to CW |
    /// | after an error EIFS, then DIFS | EIFS in place of DIFS |
    /// | a timeout waits for the whole response and 4 us | for its PLCP header and a slot |
    /// | a carrier is noticed at once | after 15 us |
    /// | header of four addresses, no LLC or SNAP: 34 bytes | 36 bytes |
    /// | air time exact | rounded up to a microsecond |
    /// | carrier sensed from the power at which 11 Mb/s is decoded, -82 dBm | the slower preamble is heard further than the data |
    /// | the link layer takes 25 us with each packet on either side (`LL delay_`) | nothing |
    /// | a station's own packets are 20 bytes longer all the way: DSDV adds an IP header to the one that they have | as long as they are |
    /// | 2.4 GHz, the lower edge of the band | channels centred from 2.412 GHz |
    ///
    /// Not taken over from ns-2: a captured frame sets the NAV of whoever captures it; a station that sent a CTS waits for the
    /// data before it contends; an RTS is refused once more, at the moment of the CTS; retries of a data frame given up for
    /// want of a CTS count against the next one. `tests/wifi_models.rs` shows how near the two come all the same.
    ///
    /// The listing's comment calls the values FHSS's; they are DSSS's (FHSS has 50 us slots and 28 us SIFS).
    pub const fn rafiq2007() -> Self {
        let standard = Self::ieee80211b();
        Self {
            cca_time: 0,
            backoff_range: BackoffRange::BelowWindow,
            idle_access: IdleAccess::Backoff,
            after_error: AfterError::EifsThenDifs,
            response_timeout: ResponseTimeout::WholeFrame(4 * MICROSECOND),
            air_time_unit: 1,
            data_overhead: 34,
            rts_threshold: 0,
            longest_packet: 2304,
            link_layer_delay: 25 * MICROSECOND,
            routing_header: 20,
            radio: Radio {
                transmit_power: 3.396_252_7e-2,
                frequency: 2.4e9,
                receive_threshold: 6.309_573e-12,
                carrier_sense_threshold: 6.309_573e-12,
                ..standard.radio
            },
            ..standard
        }
    }

    /// Whether a medium can be made of these.
    ///
    /// # Errors
    /// The first [`ParameterError`] met.
    pub fn validate(&self) -> Result<(), ParameterError> {
        use ParameterError::{Positive, Relation};
        for (name, value) in [
            ("slot", self.slot),
            ("sifs", self.sifs),
            ("cw_min", self.cw_min.into()),
            ("plcp_rate", self.plcp_rate),
            ("data_rate", self.data_rate),
            ("basic_rate", self.basic_rate),
            ("air_time_unit", self.air_time_unit),
            ("short_retry_limit", self.short_retry_limit.into()),
            ("long_retry_limit", self.long_retry_limit.into()),
            ("queue_limit", self.queue_limit as u64),
        ] {
            if value == 0 {
                return Err(Positive(name));
            }
        }
        let slack = match self.response_timeout {
            ResponseTimeout::Header => 0,
            ResponseTimeout::WholeFrame(slack) => slack,
        };
        let longest_span = self
            .slot
            .max(self.sifs)
            .max(self.air_time_unit)
            .max(slack)
            .max(self.link_layer_delay);
        let control = self.rts_bytes.max(self.cts_bytes).max(self.ack_bytes);
        let radio = &self.radio;
        for (name, value) in [
            ("transmit_power", radio.transmit_power),
            ("frequency", radio.frequency),
            ("receive_threshold", radio.receive_threshold),
            ("carrier_sense_threshold", radio.carrier_sense_threshold),
            ("capture_ratio", radio.capture_ratio),
            ("transmit_gain", radio.transmit_gain),
            ("receive_gain", radio.receive_gain),
            ("antenna_height", radio.antenna_height),
            ("system_loss", radio.system_loss),
        ] {
            if !(value.is_finite() && value > 0.0) {
                return Err(Positive(name));
            }
        }
        for (holds, relation) in [
            (self.cw_min <= self.cw_max, "cw_min must be at most cw_max"),
            (self.cw_max < LARGE, "cw_max must be below 65536"),
            (self.cca_time < self.slot, "cca_time must be less than slot"),
            (
                self.longest_packet < LARGE
                    && self.data_overhead < LARGE
                    && self.routing_header < LARGE,
                "longest_packet, data_overhead and routing_header must be below 65536",
            ),
            (
                control < LARGE,
                "rts_bytes, cts_bytes and ack_bytes must be below 65536",
            ),
            (
                self.preamble_bits.max(self.plcp_header_bits) < LARGE,
                "preamble_bits and plcp_header_bits must be below 65536",
            ),
            (
                longest_span <= SECOND,
                "slot, sifs, air_time_unit, link_layer_delay and a timeout's slack must be at most a second",
            ),
            (
                radio.carrier_sense_threshold <= radio.receive_threshold,
                "carrier_sense_threshold must be at most receive_threshold",
            ),
            (
                radio.capture_ratio >= 1.0,
                "capture_ratio must be at least 1",
            ),
            (radio.system_loss >= 1.0, "system_loss must be at least 1"),
        ] {
            if !holds {
                return Err(Relation(relation));
            }
        }
        Ok(())
    }
}

/// Counts and lengths stay below this, so that no span overflows.
const LARGE: u32 = 1 << 16;

impl Default for Parameters {
    fn default() -> Self {
        Self::ieee80211b()
    }
}

/// Why a medium cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ParameterError {
    /// This parameter must be a positive, finite number.
    #[error("{0} must be positive and finite")]
    Positive(&'static str),
    /// This must hold between parameters and does not.
    #[error("{0}")]
    Relation(&'static str),
    /// A station stands at no finite position.
    #[error("a station's position must be finite")]
    Position,
    /// There are too many stations: 65535 at most.
    #[error("a medium has 65535 stations at most")]
    Stations,
    /// A station came after the first packet.
    #[error("stations are added before the first packet")]
    Late,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_sets_are_valid() {
        assert_eq!(Parameters::ieee80211b().validate(), Ok(()));
        assert_eq!(Parameters::rafiq2007().validate(), Ok(()));
        assert_eq!(Parameters::default(), Parameters::ieee80211b());
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        let refused = |change: fn(&mut Parameters)| {
            let mut parameters = Parameters::ieee80211b();
            change(&mut parameters);
            parameters.validate().unwrap_err()
        };
        assert_eq!(refused(|p| p.slot = 0), ParameterError::Positive("slot"));
        assert_eq!(
            refused(|p| p.radio.frequency = f64::NAN),
            ParameterError::Positive("frequency")
        );
        assert_eq!(
            refused(|p| p.radio.transmit_power = -1.0),
            ParameterError::Positive("transmit_power")
        );
        assert_eq!(
            refused(|p| p.cw_max = 15),
            ParameterError::Relation("cw_min must be at most cw_max")
        );
        assert_eq!(
            refused(|p| p.radio.carrier_sense_threshold = 1.0),
            ParameterError::Relation("carrier_sense_threshold must be at most receive_threshold")
        );
    }
}

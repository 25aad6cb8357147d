//! Parameters of a wireless medium, and two named sets of them.

use anabranch_transport::Nanos;
use anabranch_transport::time::{MICROSECOND, SECOND};
use thiserror::Error;

use super::propagation::{PropagationLoss, Radio};

/// Time for which a sender waits for a CTS or an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseTimeout {
    /// Until the PLCP header of the response should have arrived: SIFS + slot + preamble and header
    /// (IEEE 802.11-2007 §9.2.5.7, §9.2.8).
    Header,
    /// Until the whole response should have arrived: SIFS + its air time + this slack, nanoseconds.
    WholeFrame(Nanos),
}

/// Behaviour of a station after a frame that it detected but could not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterError {
    /// The station waits for EIFS and not for DIFS, until it decodes a frame (IEEE 802.11-1999
    /// §9.2.3.4).
    EifsInsteadOfDifs,
    /// The station sets its NAV to EIFS, so that it always waits for EIFS and DIFS.
    EifsThenDifs,
}

/// Access to the medium for a frame that arrives while the medium is idle and no backoff is in
/// progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleAccess {
    /// The frame is sent when the medium has been idle for DIFS, which may already be the case
    /// (IEEE 802.11-1999 §9.2.5.1).
    Immediate,
    /// The frame is sent DIFS after its arrival, plus a backoff that is drawn for it.
    Backoff,
}

/// Range of the uniform draw of a backoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackoffRange {
    /// The number of slots is drawn from 0 to CW, both included (IEEE 802.11-1999 §9.2.4).
    ThroughWindow,
    /// The number of slots is drawn from 0 to CW - 1, both included.
    BelowWindow,
}

/// Parameters shared by all stations of a medium. There are two named sets:
/// [`WifiParameters::ieee80211b`] and [`WifiParameters::rafiq2007`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WifiParameters {
    /// Slot time of the backoff, nanoseconds.
    pub slot: Nanos,
    /// SIFS, nanoseconds: the gap before a CTS, an ACK, or the data frame after a CTS.
    pub sifs: Nanos,
    /// Time that a carrier must last before a station detects it (clear channel assessment),
    /// nanoseconds. Stations whose backoffs end within this time of each other transmit together.
    /// It must be less than a slot.
    pub cca_time: Nanos,
    /// Minimum contention window, slots.
    pub cw_min: u32,
    /// Maximum contention window, slots.
    pub cw_max: u32,
    /// Range of the uniform draw of a backoff.
    pub backoff_range: BackoffRange,
    /// Access for a frame that arrives while the medium is idle.
    pub idle_access: IdleAccess,
    /// Behaviour of a station after an undecodable frame.
    pub after_error: AfterError,
    /// Time for which a sender waits for a response.
    pub response_timeout: ResponseTimeout,
    /// Length of the PLCP preamble, bits.
    pub preamble_bits: u32,
    /// Length of the PLCP header, bits.
    pub plcp_header_bits: u32,
    /// Rate of PLCP preamble and header, bits/s.
    pub plcp_rate: u64,
    /// Rate of data frames after the PLCP header, bits/s.
    pub data_rate: u64,
    /// Rate of RTS, CTS and ACK after the PLCP header, bits/s.
    pub basic_rate: u64,
    /// The duration of the frame after the PLCP header is rounded up to a multiple of this time,
    /// nanoseconds.
    pub air_time_unit: Nanos,
    /// Bytes that a data frame adds to the packet: MAC header, FCS, and LLC and SNAP headers if
    /// present.
    pub data_overhead: u32,
    /// Length of an RTS, bytes.
    pub rts_bytes: u32,
    /// Length of a CTS, bytes.
    pub cts_bytes: u32,
    /// Length of an ACK, bytes.
    pub ack_bytes: u32,
    /// Length of a data frame in bytes (including its overhead) above which it is preceded by RTS;
    /// 0: every data frame.
    pub rts_threshold: u32,
    /// Maximum number of attempts for an RTS, and for a data frame without RTS.
    pub short_retry_limit: u32,
    /// Maximum number of attempts for a data frame after RTS and CTS.
    pub long_retry_limit: u32,
    /// Maximum length of a packet, bytes.
    pub longest_packet: u32,
    /// Maximum number of packets at a station, including the one being transmitted; further packets
    /// are dropped.
    pub queue_limit: usize,
    /// Processing time of the layer above for each packet, nanoseconds: before the packet joins the
    /// interface queue, and again after it has arrived. The [`Medium`](super::Medium) itself does
    /// not delay packets by it, but the wireless link of a world does. The medium may report an
    /// outcome late, but by less than this time.
    pub link_layer_delay: Nanos,
    /// Bytes that the routing of a station adds to every packet that it originates, on all links up
    /// to the destination. The wireless link of a world adds them, and not the
    /// [`Medium`](super::Medium) itself.
    pub routing_header: u32,
    /// Antennas, transmit power, and thresholds of receivers.
    pub radio: Radio,
}

impl WifiParameters {
    /// IEEE 802.11b at 11 Mb/s with the long preamble, and the MIB defaults of IEEE 802.11-1999 and
    /// -2007.
    ///
    /// Values that the standard does not define were chosen for this set: 100 mW on channel 6, and
    /// antennas of gain 1 at 1.5 m above flat ground. Frames are decoded from -76 dBm, the
    /// sensitivity that §18.4.8.1 requires at 11 Mb/s. A carrier is detected from -80 dBm, which
    /// §15.4.8.1 requires at 2 Mb/s, because the preamble is sent at an even lower rate. A frame is
    /// captured from a power ratio of 10 dB, and a station holds 50 packets.
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
            // §18.3.4: TXTIME is rounded up to whole microseconds.
            air_time_unit: MICROSECOND,
            // A MAC header with three addresses has 24 bytes, FCS 4, LLC 3 and SNAP 5.
            data_overhead: 36,
            rts_bytes: 20,
            cts_bytes: 14,
            ack_bytes: 14,
            rts_threshold: 2347,
            short_retry_limit: 7,
            long_retry_limit: 4,
            // The maximum MSDU of 2304 bytes, minus LLC and SNAP.
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
                propagation: PropagationLoss::TwoRayGround,
            },
        }
    }

    /// The parameters listed in Appendix 8.1 of Rafiq's thesis (2007). All other values are the
    /// defaults of ns-2.35, because the thesis used its predecessor.
    ///
    /// Taken from the listing: slot, SIFS, preamble, PLCP header and its rate, data and basic rate
    /// (all as in 802.11b), 2.4 GHz, 33.96 mW, both thresholds -82 dBm, two-ray ground, 50 packets.
    /// In the scan, some names lack their underscore (`Pt`, `RXThresh`); if the original listing
    /// lacked it too, ns-2 used 281.8 mW and 3.652e-10 W. At the distances of the thesis (84 m and
    /// 191 m) no reception depends on this difference.
    ///
    /// Differences from 802.11b ([`WifiParameters::ieee80211b`]):
    ///
    /// | here | 802.11b |
    /// |---|---|
    /// | RTS before every data frame (`RTSThreshold_` is 0) | only over 2347 bytes: none |
    /// | a frame that finds the medium idle draws a backoff nevertheless | it is sent after DIFS |
    /// | a backoff is drawn from 0 to CW - 1 | 0 to CW |
    /// | after an error EIFS, then DIFS | EIFS in place of DIFS |
    /// | a timeout waits for the whole response and 4 us | for its PLCP header and a slot |
    /// | a carrier is detected at once | after 15 us |
    /// | header of four addresses, no LLC or SNAP: 34 bytes | 36 bytes |
    /// | air time exact | rounded up to a microsecond |
    /// | carrier sense threshold -82 dBm, as for 11 Mb/s | that of the slower preamble, lower |
    /// | the link layer takes 25 us for each packet on either side (`LL delay_`) | nothing |
    /// | own packets 20 bytes longer on the whole path (second IP header of DSDV) | unchanged |
    /// | 2.4 GHz, the lower edge of the band | channels centred from 2.412 GHz |
    ///
    /// The following behaviour of ns-2 is not modelled: a captured frame sets the NAV of the
    /// station that captures it; a station that sent a CTS waits for the data before it contends;
    /// an RTS is refused once more, at the moment of the CTS; retries of a data frame that was
    /// dropped because no CTS arrived count against the next data frame. `tests/wifi_models.rs`
    /// shows how closely this model agrees with ns-2 nevertheless.
    ///
    /// The comment of the listing attributes the values to FHSS; they are those of DSSS (FHSS has
    /// 50 us slots and 28 us SIFS).
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

    /// Checks the parameters.
    ///
    /// # Errors
    /// The first [`ParameterError`] found.
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

/// Upper bound of counts and lengths, so that sums of times never overflow.
const LARGE: u32 = 1 << 16;

impl Default for WifiParameters {
    fn default() -> Self {
        Self::ieee80211b()
    }
}

/// Reason why a medium cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ParameterError {
    /// The parameter must be a positive, finite number.
    #[error("{0} must be positive and finite")]
    Positive(&'static str),
    /// The parameters violate this relation.
    #[error("{0}")]
    Relation(&'static str),
    /// The position of a station is not finite.
    #[error("a station's position must be finite")]
    Position,
    /// The medium already has 65535 stations, the maximum.
    #[error("a medium has 65535 stations at most")]
    Stations,
    /// A station was added after the first packet.
    #[error("stations are added before the first packet")]
    Late,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_sets_are_valid() {
        assert_eq!(WifiParameters::ieee80211b().validate(), Ok(()));
        assert_eq!(WifiParameters::rafiq2007().validate(), Ok(()));
        assert_eq!(WifiParameters::default(), WifiParameters::ieee80211b());
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        let refused = |change: fn(&mut WifiParameters)| {
            let mut parameters = WifiParameters::ieee80211b();
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

//! Parameters of a cell's 802.11 medium.

use anabranch_scenario::checker::Checker;
use anabranch_scenario::quantity::{Capacity, Frequency, Length, Power, Rate, Size, TimeSpan};
use anabranch_scenario::wifi::{
    AfterErrorRule, Backoff, IdleAccessRule, Overrides, ParameterSet, PropagationLaw,
    ResponseTimeoutRule, Wifi,
};
use anabranch_sim::wifi::{
    AfterError, BackoffRange, IdleAccess, ParameterError, PropagationLoss, ResponseTimeout,
    WifiParameters,
};

/// Replaces values of a parameter set by those that a spec sets.
macro_rules! put {
    ($from:ident, $into:expr; $($name:ident as $field:ident $(: $convert:expr)?),+ $(,)?) => {
        $(if let Some(value) = $from.$name {
            $into.$field = put!(@ value $(, $convert)?);
        })+
    };
    (@ $value:ident) => { $value };
    (@ $value:ident, $convert:expr) => { $convert($value) };
}

/// Parameters of the medium of a cell: its set, overridden by the values of the cell.
pub fn parameters(cell: &Wifi) -> WifiParameters {
    let mut all = match cell.set {
        ParameterSet::Ieee80211b => WifiParameters::ieee80211b(),
        ParameterSet::Rafiq2007 => WifiParameters::rafiq2007(),
    };
    let own = &cell.parameters;
    let span = |span: TimeSpan| span.0;
    let rate = |rate: Rate| rate.0;
    // A size above the maximum has the same effect as the maximum, because no frame is larger.
    let size = |size: Size| u32::try_from(size.0).unwrap_or(u32::MAX);
    let watts = |power: Power| power.0;
    put!(own, all;
        slot as slot: span, sifs as sifs: span, cca_time as cca_time: span,
        cw_min as cw_min, cw_max as cw_max,
        preamble_bits as preamble_bits, plcp_header_bits as plcp_header_bits,
        plcp_rate as plcp_rate: rate, data_rate as data_rate: rate, basic_rate as basic_rate: rate,
        air_time_unit as air_time_unit: span,
        data_overhead as data_overhead: size, rts_size as rts_bytes: size,
        cts_size as cts_bytes: size, ack_size as ack_bytes: size, rts_threshold as rts_threshold: size,
        short_retry_limit as short_retry_limit, long_retry_limit as long_retry_limit,
        longest_packet as longest_packet: size, link_layer_delay as link_layer_delay: span,
        routing_header as routing_header: size,
    );
    put!(own, all.radio;
        transmit_power as transmit_power: watts,
        frequency as frequency: |frequency: Frequency| frequency.0,
        receive_threshold as receive_threshold: watts,
        carrier_sense_threshold as carrier_sense_threshold: watts,
        capture_ratio as capture_ratio, transmit_gain as transmit_gain, receive_gain as receive_gain,
        antenna_height as antenna_height: |height: Length| height.0,
        system_loss as system_loss,
    );
    if let Some(Capacity::Packets(packets)) = own.queue {
        all.queue_limit = packets as usize;
    }
    choices(own, &mut all);
    all
}

fn choices(own: &Overrides, all: &mut WifiParameters) {
    if let Some(range) = own.backoff_range {
        all.backoff_range = match range {
            Backoff::ThroughWindow => BackoffRange::ThroughWindow,
            Backoff::BelowWindow => BackoffRange::BelowWindow,
        };
    }
    if let Some(idle) = own.idle_access {
        all.idle_access = match idle {
            IdleAccessRule::Immediate => IdleAccess::Immediate,
            IdleAccessRule::Backoff => IdleAccess::Backoff,
        };
    }
    if let Some(error) = own.after_error {
        all.after_error = match error {
            AfterErrorRule::EifsInsteadOfDifs => AfterError::EifsInsteadOfDifs,
            AfterErrorRule::EifsThenDifs => AfterError::EifsThenDifs,
        };
    }
    if let Some(law) = own.propagation {
        all.radio.propagation = match law {
            PropagationLaw::FreeSpace => PropagationLoss::FreeSpace,
            PropagationLaw::TwoRayGround => PropagationLoss::TwoRayGround,
        };
    }
    all.response_timeout = match (own.response_timeout, own.timeout_slack) {
        (Some(ResponseTimeoutRule::Header), _) => ResponseTimeout::Header,
        (Some(ResponseTimeoutRule::WholeFrame), slack) => {
            ResponseTimeout::WholeFrame(slack.map_or(0, |slack| slack.0))
        }
        (None, Some(slack)) if all.response_timeout != ResponseTimeout::Header => {
            ResponseTimeout::WholeFrame(slack.0)
        }
        (None, _) => all.response_timeout,
    };
}

/// Checks the parameters of a cell's medium for consistency.
pub fn check(c: &mut Checker<'_>, cell: &Wifi, path: &str) {
    let own = &cell.parameters;
    let path = format!("{path}.parameters");
    let whole_frame = matches!(
        parameters(cell).response_timeout,
        ResponseTimeout::WholeFrame(_)
    );
    if own.timeout_slack.is_some() && !whole_frame {
        c.problem(
            &format!("{path}.timeout_slack"),
            "has no effect without `response_timeout = \"whole-frame\"`",
        );
    }
    match parameters(cell).validate() {
        Ok(()) => {}
        Err(ParameterError::Positive(name)) => {
            let key = match name {
                "queue_limit" => "queue",
                name => name,
            };
            let message = format!("{key} must be a number above 0");
            c.problem(&format!("{path}.{key}"), message);
        }
        Err(error) => {
            let message = format!(
                "{error}; check these values, and those of the set that they do not replace"
            );
            c.problem(&path, message);
        }
    }
}

//! What decides when a path has failed.

use anabranch_sctp::Config;
use anabranch_transport::Nanos;

use super::Complain;
use crate::spec::quantity::Span;

/// Sets RTO.Initial, RTO.Min and RTO.Max as far as they are given, and checks that they are in order.
pub fn set_timeouts(
    config: &mut Config,
    [initial, min, max]: [Option<Nanos>; 3],
    complain: &mut Complain<'_>,
) {
    config.rto_initial = initial.or(config.rto_initial);
    config.rto_min = min.unwrap_or(config.rto_min);
    config.rto_max = max.unwrap_or(config.rto_max);
    let keys = [("rto_initial", initial), ("rto_min", min), ("rto_max", max)];
    for (key, _) in keys.iter().filter(|(_, value)| *value == Some(0)) {
        let message = "found a timeout of 0; everything would be lost at once".to_owned();
        complain(key, message, "", &[]);
    }
    if config.rto_min > config.rto_max {
        let key = if min.is_some() { "rto_min" } else { "rto_max" };
        let message = format!(
            "the floor of the timeout, \"{}\", is above its ceiling, \"{}\"",
            Span(config.rto_min),
            Span(config.rto_max)
        );
        complain(key, message, "", &[]);
    }
}

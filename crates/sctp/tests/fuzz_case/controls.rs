//! Fuzz cases with other congestion controls, and with pacing.

use anabranch_congestion::Protocol;
use anabranch_congestion::Requirement;
use anabranch_congestion::registry;
use anabranch_sctp::Config;

/// Replaces the congestion control in two cases of eight, selected by the last byte of the case.
/// The byte before it selects the congestion control and its options.
pub(super) fn set(config: &mut Config, [how, whether]: [u8; 2]) {
    if !matches!(whether & 0x07, 3 | 4) || config.profile.rsctp {
        return;
    }
    let mut controls = registry::all(Protocol::Sctp);
    controls.retain(|it| it.needs == Requirement::Nothing);
    config.congestion = controls[usize::from(how & 0x0F) % controls.len()];
    // At the slowest pace, the distance of two packets exceeds the RTO.
    config.pacing = match how & 0x90 {
        0x10 => Some(1.25),
        0x90 => Some(0.05),
        _ => None,
    };
    config.rack = how & 0x20 != 0;
    config.window_update = (how & 0x40 != 0).then_some(config.receive_buffer / 4);
}

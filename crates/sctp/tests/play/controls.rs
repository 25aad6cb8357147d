//! Plays in which a path has another congestion control, and packets may be spread over the round
//! trip.

use anabranch_congestion::Needs;
use anabranch_congestion::Protocol;
use anabranch_congestion::registry;
use anabranch_sctp::Config;

/// Two plays in eight, by the last byte; the one before it says which control, and how.
pub(super) fn set(config: &mut Config, [how, whether]: [u8; 2]) {
    if !matches!(whether & 0x07, 3 | 4) || config.profile.rsctp {
        return;
    }
    let mut controls = registry::all(Protocol::Sctp);
    controls.retain(|it| it.needs == Needs::Nothing);
    config.congestion = controls[usize::from(how & 0x0F) % controls.len()];
    // The slowest pace leaves more than a retransmission timeout between two packets.
    config.pacing = match how & 0x90 {
        0x10 => Some(1.25),
        0x90 => Some(0.05),
        _ => None,
    };
    config.rack = how & 0x20 != 0;
    config.window_update = (how & 0x40 != 0).then_some(config.receive_buffer / 4);
}

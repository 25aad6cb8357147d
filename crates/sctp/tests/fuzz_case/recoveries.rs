//! Fuzz cases with optional loss recovery algorithms.

use anabranch_sctp::Config;

/// The last byte of a case selects the algorithm: RACK in one case in eight, F-RTO without RACK in
/// another. The byte before it selects the options.
pub(super) fn set(config: &mut Config, [how, whether]: [u8; 2]) {
    match whether & 0x07 {
        5 => {
            config.rack = true;
            config.tail_loss_probe = how & 0x10 == 0;
            config.frto = how & 0x01 != 0;
        }
        6 => config.frto = true,
        _ => return,
    }
    config.proportional_rate_reduction = how & 0x02 != 0;
    config.undo_spurious_reductions = how & 0x04 != 0;
    config.pacing = (how & 0x08 != 0).then_some(1.25);
}

//! Rules of RSCTP's active path switch.

use crate::profile::Profile;

/// Rules for switching the primary path after a loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SwitchRules {
    /// MPLR: loss rate above which the primary path is left (0 to 1).
    pub(super) max_loss_rate: f64,
    pub(super) wireless_needs_bandwidth: bool,
}

impl SwitchRules {
    /// Rules of a profile; `None` if the profile does not switch paths.
    pub(crate) fn of(profile: &Profile) -> Option<Self> {
        profile.rsctp_path_switch.then_some(Self {
            max_loss_rate: profile.rsctp_max_loss_rate.0,
            wireless_needs_bandwidth: profile.rsctp_wireless_switch_needs_bandwidth,
        })
    }
}

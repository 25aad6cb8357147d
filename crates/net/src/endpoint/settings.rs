//! Settings of an endpoint that are changed at run time.

use anabranch_sctp::config::{Config as SctpConfig, ConfigError};

use super::{Endpoint, window_step};

impl Endpoint {
    /// Changes the settings of SCTP ([`Config::sctp`](crate::Config::sctp)) for future
    /// associations; existing associations keep theirs. The addresses, and the settings that follow
    /// from the carrier and from [`Config::max_message_size`](crate::Config::max_message_size),
    /// stay as they are.
    ///
    /// # Errors
    /// An invalid setting. After an error the settings are unchanged.
    pub fn change_sctp(&self, change: impl FnOnce(&mut SctpConfig)) -> Result<(), ConfigError> {
        let mut state = self.shared.lock();
        state.endpoint.change_config(|it| {
            let fixed = it.clone();
            change(it);
            it.window_update.get_or_insert(window_step(it));
            it.addresses = fixed.addresses;
            it.encapsulation = fixed.encapsulation;
            it.max_message = fixed.max_message;
            it.checksum = fixed.checksum;
            it.zero_checksum = fixed.zero_checksum;
            it.timer_slack = fixed.timer_slack;
        })
    }
}

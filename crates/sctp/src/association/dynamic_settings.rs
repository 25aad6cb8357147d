//! Dynamic settings of an association ([`crate::dynamic_settings`]).

use std::net::IpAddr;
use std::sync::Arc;

use anabranch_transport::Nanos;

use super::Association;
use crate::config::Config;
use crate::dynamic_settings::{AssociationSettings, DynamicSettingError, PathSettings};
use crate::path::PathId;
use crate::pr_sctp::SendOptions;
use crate::tx::LazySender;

impl Association {
    /// Current values of the settings that can change during the association.
    pub fn settings(&self) -> AssociationSettings {
        AssociationSettings {
            send_defaults: self.send_defaults(),
            ..AssociationSettings::of(&self.config)
        }
    }

    /// Changes settings, effective from the next packet on. The settings survive a restart.
    ///
    /// # Errors
    /// A setting is out of range, the stream of [`AssociationSettings::send_defaults`] does not
    /// exist, or the association is closed. After an error all settings are unchanged.
    pub fn set_settings(
        &mut self,
        settings: AssociationSettings,
    ) -> Result<(), DynamicSettingError> {
        let (config, defaults) = (self.changeable()?, settings.send_defaults);
        if let Some(stream) = defaults.stream.filter(|it| *it >= self.outbound_streams) {
            let most = self.outbound_streams - 1;
            return Err(DynamicSettingError::NoSuchStream { stream, most });
        }
        let (former, config) = (config.scheduler, settings.put_in(config)?);
        if let Some(tx) = self.tx.get_mut() {
            tx.set_max_burst(config.profile.max_burst);
        }
        if let Some(rx) = &mut self.rx {
            rx.set_sack_policy(&config);
        }
        self.config = Arc::new(config);
        if defaults != self.send_defaults() {
            self.slow_send = defaults.has_policy() || self.dtls.is_some();
            self.send_defaults = Some(Box::new(defaults.with_receipt(None)));
        }
        if settings.scheduler != former {
            self.change_scheduler();
        }
        Ok(())
    }

    /// Changes the settings of the path to `address`, or of all current and future paths if
    /// `address` is `None`. The current RTO is clamped to its new bounds; a running timer keeps its
    /// expiration time. The settings survive a restart.
    ///
    /// # Errors
    /// A setting is out of range, the peer has no such address, or the association is closed. After
    /// an error all settings are unchanged.
    pub fn set_path_settings(
        &mut self,
        now: Nanos,
        address: Option<IpAddr>,
        settings: PathSettings,
    ) -> Result<(), DynamicSettingError> {
        let config = settings.put_in(self.changeable()?)?;
        let Some(address) = address else {
            self.config = Arc::new(config);
            for path in self.path_ids() {
                self.set_path(now, path, settings);
            }
            return Ok(());
        };
        let path = self.paths.find(address);
        let path = path.ok_or(DynamicSettingError::NoSuchPath(address))?;
        self.set_path(now, path, settings);
        Ok(())
    }

    fn set_path(&mut self, now: Nanos, path: PathId, settings: PathSettings) {
        let before = self.paths.get_mut(path).set_settings(settings);
        let changed = before.heartbeat_interval != settings.heartbeat_interval;
        if changed && self.state.probes_paths() {
            self.schedule_heartbeat(now, path);
        }
    }

    /// Configuration of an association that is not closed.
    fn changeable(&self) -> Result<&Config, DynamicSettingError> {
        if self.is_closed() {
            return Err(DynamicSettingError::Closed);
        }
        Ok(&self.config)
    }

    /// Default send options: see [`AssociationSettings::send_defaults`].
    pub(super) fn send_defaults(&self) -> SendOptions {
        match self.send_defaults.as_deref() {
            Some(defaults) => *defaults,
            None => SendOptions::of(&self.config),
        }
    }

    /// Value that the user has set for `stream` by [`Self::set_stream_value`]; `None` if it was not
    /// set.
    pub fn stream_value(&self, stream: u16) -> Option<u16> {
        self.stream_values.get(&stream).copied()
    }

    /// Sets the value of a stream: its priority under the scheduler `priority` (smaller is
    /// earlier), or its weight under `weighted_fair`, for which 0 is treated as 1
    /// (SCTP_STREAM_SCHEDULER_VALUE, RFC 8260 §4.3.3). The value applies from the next message or
    /// fragment on, and survives a restart. The other schedulers ignore it.
    pub fn set_stream_value(&mut self, stream: u16, value: u16) {
        self.stream_values.make().insert(stream, value);
        self.sender().set_stream_value(stream, value);
    }

    /// Replaces the stream scheduler by `config.scheduler`.
    fn change_scheduler(&mut self) {
        let values = self
            .stream_values
            .iter()
            .map(|(stream, value)| (*stream, *value));
        let kind = self.config.scheduler;
        self.tx
            .make(&self.config, self.local_initial_tsn)
            .set_scheduler(kind, values);
    }

    /// New sender for a restarted association, with the user's settings.
    pub(super) fn new_sender(&self) -> LazySender {
        let mut tx = LazySender::new(&self.config, self.local_initial_tsn);
        for (&stream, &value) in self.stream_values.iter() {
            tx.make(&self.config, self.local_initial_tsn)
                .set_stream_value(stream, value);
        }
        tx
    }
}

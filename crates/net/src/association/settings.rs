//! Settings of an established association that can be changed.

use std::net::IpAddr;

use anabranch_sctp::DynamicSettingError;

use super::{Association, Protocol};
use crate::settings::{AssociationSettings, PathSettings};

impl Association {
    /// The current settings; `None` once the association is removed.
    pub fn settings(&self) -> Option<AssociationSettings> {
        let state = self.shared.lock();
        let association = state.endpoint.association(self.id);
        association.map(AssociationSettings::of)
    }

    /// Changes settings, with effect from the next packet. A restart by the peer keeps the new
    /// settings. To change a setting:
    ///
    /// ```no_run
    /// # use anabranch_net::{Association, DynamicSettingError};
    /// # fn change(association: &Association) -> Result<(), DynamicSettingError> {
    /// if let Some(settings) = association.settings() {
    ///     association.set_settings(settings.with(|it| it.sack_frequency = 4))?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A setting is outside its range, or the association is closed. After an error no setting is
    /// changed.
    pub fn set_settings(&self, settings: AssociationSettings) -> Result<(), DynamicSettingError> {
        self.change(|association| settings.put_in(association))
    }

    /// The current settings of the path to the peer's address `address`; `None` if the peer has no
    /// such address.
    pub fn path_settings(&self, address: IpAddr) -> Option<PathSettings> {
        let state = self.shared.lock();
        let association = state.endpoint.association(self.id)?;
        let path = association.paths().to(address)?;
        Some(PathSettings::of(path.settings()))
    }

    /// Changes the settings of the path to `address`. If `address` is `None`, changes all present
    /// paths, and paths that are added later. A restart by the peer keeps the new settings.
    ///
    /// # Errors
    /// A setting is outside its range, the peer has no such address, or the association is closed.
    /// After an error no setting is changed.
    pub fn set_path_settings(
        &self,
        address: Option<IpAddr>,
        settings: PathSettings,
    ) -> Result<(), DynamicSettingError> {
        let now = self.shared.now();
        self.change(|association| {
            let paths = association.paths();
            let path = match address {
                Some(any) => paths.to(any).ok_or(DynamicSettingError::NoSuchPath(any))?,
                None => paths.get(paths.primary()),
            };
            let mut changed = path.settings();
            settings.put_in(&mut changed);
            association.set_path_settings(now, address, changed)
        })
    }

    /// The scheduler value (priority or weight) of a stream, if one was set.
    pub fn stream_value(&self, stream: u16) -> Option<u16> {
        let state = self.shared.lock();
        let association = state.endpoint.association(self.id)?;
        association.stream_value(stream)
    }

    /// Sets the scheduler value of a stream: its priority under the scheduler `priority` (smallest
    /// number first), or its weight under `weighted_fair`. Other schedulers ignore the value. It
    /// applies from the next message or fragment on, and remains after a restart.
    ///
    /// # Errors
    /// The stream was not negotiated, or the association is closed. After an error the value is
    /// unchanged.
    pub fn set_stream_value(&self, stream: u16, value: u16) -> Result<(), DynamicSettingError> {
        self.change(|association| {
            let streams = association.status().outbound_streams;
            if stream >= streams {
                let most = streams.saturating_sub(1);
                return Err(DynamicSettingError::NoSuchStream { stream, most });
            }
            association.set_stream_value(stream, value);
            Ok(())
        })
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Protocol) -> Result<(), DynamicSettingError>,
    ) -> Result<(), DynamicSettingError> {
        let mut state = self.shared.lock();
        let association = state.association(self.id);
        let done = association.map_or(Err(DynamicSettingError::Closed), change);
        state.wake_driver();
        done
    }
}

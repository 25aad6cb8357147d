//! What can be changed while the association is up.

use std::net::IpAddr;

use anabranch_sctp::config::SchedulerKind;
use anabranch_sctp::{AssociationSettings, PathSettings, RuntimeError, SendDefaults};
use bytes::Bytes;

use super::{Association, Protocol};
use crate::error::SendError;

impl Association {
    /// The settings that can change while it is up; `None` once it is forgotten.
    pub fn settings(&self) -> Option<AssociationSettings> {
        let state = self.shared.lock();
        Some(state.endpoint.association(self.id)?.settings())
    }

    /// Changes settings, from the next packet on. They outlast a restart. To change one of them:
    ///
    /// ```no_run
    /// # fn change(association: &anabranch_net::Association) -> Result<(), anabranch_net::RuntimeError> {
    /// if let Some(settings) = association.settings() {
    ///     association.set_settings(settings.with(|it| it.sack_frequency = 4))?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// One of them is out of its range, or the association is closed; nothing changes then.
    pub fn set_settings(&self, settings: AssociationSettings) -> Result<(), RuntimeError> {
        self.change(|association| association.set_settings(settings))
    }

    /// The settings of the path to the peer's address `address`; `None` if the peer has no such address.
    pub fn path_settings(&self, address: IpAddr) -> Option<PathSettings> {
        let state = self.shared.lock();
        let association = state.endpoint.association(self.id)?;
        association.path_settings(address)
    }

    /// Changes the settings of the path to `address`; without an address, of all paths and of those to come. They outlast a
    /// restart.
    ///
    /// # Errors
    /// One of them is out of its range, the peer has no such address, or the association is closed; nothing changes then.
    pub fn set_path_settings(
        &self,
        address: Option<IpAddr>,
        settings: PathSettings,
    ) -> Result<(), RuntimeError> {
        let now = self.shared.now();
        self.change(|association| association.set_path_settings(now, address, settings))
    }

    /// How messages are sent of which nothing else is said: by [`Association::send_default`] all, by the others what
    /// [`SendOptions`](crate::SendOptions) leave open. `None` once the association is forgotten.
    pub fn send_defaults(&self) -> Option<SendDefaults> {
        let state = self.shared.lock();
        Some(state.endpoint.association(self.id)?.send_defaults())
    }

    /// Changes how messages are sent of which nothing else is said, from the next one on.
    ///
    /// # Errors
    /// The stream does not exist, the lifetime is 0 or above 86,400 s, or the association is closed; nothing changes then.
    pub fn set_send_defaults(&self, defaults: SendDefaults) -> Result<(), RuntimeError> {
        self.change(|association| association.set_send_defaults(defaults))
    }

    /// Queues a message as [`Association::send_defaults`] say, and waits while the send buffer is full.
    ///
    /// Cancel-safe: if the future is dropped before it is ready, the message was not queued.
    ///
    /// # Errors
    /// As [`Association::send`].
    pub async fn send_default(&self, bytes: impl Into<Bytes>) -> Result<(), SendError> {
        let defaults = self.send_defaults().ok_or(SendError::Closing)?;
        self.send(defaults.stream, bytes, defaults.options).await
    }

    /// Another scheduler decides which stream's message goes next (RFC 8260 §3), from the next message or piece on. Of the messages that wait, each
    /// stream keeps its order.
    ///
    /// # Errors
    /// The association is closed.
    pub fn set_scheduler(&self, kind: SchedulerKind) -> Result<(), RuntimeError> {
        self.change(|association| {
            association.set_scheduler(kind);
            Ok(())
        })
    }

    /// The value of a stream as it was set, if it was.
    pub fn stream_value(&self, stream: u16) -> Option<u16> {
        let state = self.shared.lock();
        let association = state.endpoint.association(self.id)?;
        association.stream_value(stream)
    }

    /// Sets the value of a stream: its priority, the smaller the sooner, under the scheduler `priority`; its weight under
    /// `weighted_fair`. It counts from the next message or piece on, and outlasts a restart. The other schedulers have no use for
    /// it.
    ///
    /// # Errors
    /// The stream is not among those negotiated, or the association is closed; nothing changes then.
    pub fn set_stream_value(&self, stream: u16, value: u16) -> Result<(), RuntimeError> {
        self.change(|association| {
            let streams = association.outbound_streams();
            if stream >= streams {
                let most = streams.saturating_sub(1);
                return Err(RuntimeError::NoSuchStream { stream, most });
            }
            association.set_stream_value(stream, value);
            Ok(())
        })
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Protocol) -> Result<(), RuntimeError>,
    ) -> Result<(), RuntimeError> {
        let mut state = self.shared.lock();
        let association = state.association(self.id);
        let done = association.map_or(Err(RuntimeError::Closed), change);
        state.wake_driver();
        done
    }
}

//! Adapter for the crate `rtc-sctp`.
#![allow(
    clippy::disallowed_methods,
    reason = "the stack counts its time from an instant"
)]

use rtc_sctp as stack;

#[path = "proto_adapter.rs"]
mod adapter;

pub use adapter::Adapter as RtcSctp;
pub(super) use adapter::settings;

/// Differences between the interfaces of `rtc-sctp` and `sctp-proto`.
pub(super) mod differ {
    use std::error::Error;
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::time::Instant;

    use bytes::Bytes;
    use rtc_shared::{TransportMessage, TransportProtocol};

    use super::stack::{
        Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig,
        Payload, PayloadProtocolIdentifier, ServerConfig, Stream, TransportConfig,
    };
    use crate::harness::Conditions;

    pub fn endpoint(
        local: SocketAddr,
        settings: Arc<EndpointConfig>,
        server: Option<Arc<ServerConfig>>,
    ) -> Endpoint {
        Endpoint::new(local, TransportProtocol::UDP, settings, server)
    }

    pub fn configs(conditions: &Conditions) -> (ClientConfig, ServerConfig) {
        let transport = || {
            TransportConfig::default()
                .with_max_receive_buffer_size(conditions.window as u32)
                .with_max_message_size(conditions.message as u32)
        };
        (
            ClientConfig::new(transport()),
            ServerConfig::new(transport()),
        )
    }

    pub fn connect(
        endpoint: &mut Endpoint,
        now: Instant,
        client: ClientConfig,
        remote: SocketAddr,
    ) -> Result<(AssociationHandle, Association), Box<dyn Error>> {
        Ok(endpoint.connect(now, client, remote)?)
    }

    #[inline]
    pub fn handle(
        endpoint: &mut Endpoint,
        now: Instant,
        remote: SocketAddr,
        packet: Bytes,
    ) -> Option<(AssociationHandle, DatagramEvent)> {
        endpoint.handle(now, remote, None, packet)
    }

    #[inline]
    pub fn write(
        stream: &mut Stream<'_>,
        now: Instant,
        payload: &Bytes,
        ppid: PayloadProtocolIdentifier,
    ) -> Result<usize, Box<dyn Error>> {
        Ok(stream.write_sctp(now, payload, ppid)?)
    }

    #[inline]
    pub fn packets(transmit: TransportMessage<Payload>) -> Vec<Bytes> {
        match transmit.message {
            Payload::RawEncode(packets) => packets,
            _ => Vec::new(),
        }
    }
}

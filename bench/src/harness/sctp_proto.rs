//! Adapter for the crate `sctp-proto`.
#![allow(
    clippy::disallowed_methods,
    reason = "the stack counts its time from an instant"
)]

use sctp_proto as stack;

#[path = "proto_adapter.rs"]
#[allow(
    clippy::duplicate_mod,
    reason = "one adapter for two crates of one origin"
)]
mod adapter;

pub use adapter::Adapter as SctpProto;

/// Differences between the interfaces of `sctp-proto` and `rtc-sctp`.
mod differ {
    use std::error::Error;
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::time::Instant;

    use bytes::Bytes;

    use super::stack::{
        Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig,
        Payload, PayloadProtocolIdentifier, ServerConfig, Stream, Transmit, TransportConfig,
    };
    use crate::harness::Conditions;

    pub fn endpoint(
        _: SocketAddr,
        settings: Arc<EndpointConfig>,
        server: Option<Arc<ServerConfig>>,
    ) -> Endpoint {
        Endpoint::new(settings, server)
    }

    pub fn configs(conditions: &Conditions) -> (ClientConfig, ServerConfig) {
        let transport = Arc::new(
            TransportConfig::default()
                .with_max_receive_buffer_size(conditions.window as u32)
                .with_max_send_message_size(conditions.message as u32)
                .with_max_receive_message_size(conditions.message as u32),
        );
        let (mut client, mut server) = (ClientConfig::new(), ServerConfig::new());
        server.transport = Arc::clone(&transport);
        client.transport = transport;
        (client, server)
    }

    pub fn connect(
        endpoint: &mut Endpoint,
        _: Instant,
        client: ClientConfig,
        remote: SocketAddr,
    ) -> Result<(AssociationHandle, Association), Box<dyn Error>> {
        Ok(endpoint.connect(client, remote)?)
    }

    #[inline]
    pub fn handle(
        endpoint: &mut Endpoint,
        now: Instant,
        remote: SocketAddr,
        packet: Bytes,
    ) -> Option<(AssociationHandle, DatagramEvent)> {
        endpoint.handle(now, remote, None, None, packet)
    }

    #[inline]
    pub fn write(
        stream: &mut Stream<'_>,
        _: Instant,
        payload: &Bytes,
        ppid: PayloadProtocolIdentifier,
    ) -> Result<usize, Box<dyn Error>> {
        Ok(stream.write_sctp(payload, ppid)?)
    }

    #[inline]
    pub fn packets(transmit: Transmit) -> Vec<Bytes> {
        match transmit.payload {
            Payload::RawEncode(packets) => packets,
            _ => Vec::new(),
        }
    }
}

//! Adapter for the crate `rtc-sctp`.

use rtc_sctp as stack;

#[path = "proto.rs"]
mod adapter;

pub(crate) use adapter::open;

/// Differences between the interfaces of `rtc-sctp` and `sctp-proto`.
mod differ {
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use bytes::Bytes;
    use rtc_shared::{TransportMessage, TransportProtocol};

    use super::adapter::RELIABLE;
    use super::stack::{
        Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig,
        Payload, PayloadProtocolIdentifier, ServerConfig, Stream, TransportConfig,
    };
    use crate::adapter::PORT;
    use crate::config::Config;

    /// RTO.Initial, which is the duration of the first timer.
    pub const FIRST_TIMEOUT: Duration = Duration::from_secs(1);

    pub fn endpoint(settings: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> Endpoint {
        let local = SocketAddr::from(([10, 0, 0, 1], PORT));
        Endpoint::new(local, TransportProtocol::UDP, settings, server)
    }

    pub fn configs(config: &Config) -> (ClientConfig, ServerConfig) {
        let transport = || {
            TransportConfig::default()
                .with_sctp_port(PORT)
                .with_max_receive_buffer_size(config.receive_buffer)
                .with_max_message_size(config.receive_buffer)
                .with_max_num_inbound_streams(config.streams)
                .with_max_num_outbound_streams(config.streams)
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
    ) -> Result<(AssociationHandle, Association), String> {
        let connected = endpoint.connect(now, client, remote);
        connected.map_err(|error| error.to_string())
    }

    pub fn handle(
        endpoint: &mut Endpoint,
        now: Instant,
        remote: SocketAddr,
        packet: Bytes,
    ) -> Option<(AssociationHandle, DatagramEvent)> {
        endpoint.handle(now, remote, None, packet)
    }

    pub fn reliable(mut stream: Stream<'_>, unordered: bool) -> Result<(), String> {
        let set = stream.set_reliability_params(unordered, RELIABLE, 0);
        set.map_err(|error| error.to_string())
    }

    pub fn write(
        stream: &mut Stream<'_>,
        now: Instant,
        payload: &Bytes,
        ppid: PayloadProtocolIdentifier,
    ) -> Result<(), String> {
        let written = stream.write_sctp(now, payload, ppid);
        written.map(drop).map_err(|error| error.to_string())
    }

    pub fn packets(transmit: TransportMessage<Payload>) -> Vec<Bytes> {
        match transmit.message {
            Payload::RawEncode(packets) => packets,
            _ => Vec::new(),
        }
    }
}

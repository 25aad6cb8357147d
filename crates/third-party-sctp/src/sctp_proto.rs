//! Adapter for the crate `sctp-proto`.

use sctp_proto as stack;

#[path = "proto.rs"]
#[allow(
    clippy::duplicate_mod,
    reason = "one adapter for two crates of one origin"
)]
mod adapter;

pub(crate) use adapter::open;

/// Differences between the interfaces of `sctp-proto` and `rtc-sctp`.
mod differ {
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use bytes::Bytes;

    use super::adapter::RELIABLE;
    use super::stack::{
        Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig,
        Payload, PayloadProtocolIdentifier, ServerConfig, Stream, Transmit, TransportConfig,
    };
    use crate::adapter::PORT;
    use crate::config::Config;

    /// RTO.Initial, which is the duration of the first timer.
    pub const FIRST_TIMEOUT: Duration = Duration::from_secs(3);

    pub fn endpoint(settings: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> Endpoint {
        Endpoint::new(settings, server)
    }

    pub fn configs(config: &Config) -> (ClientConfig, ServerConfig) {
        let transport = TransportConfig::default()
            .with_local_port(PORT)
            .with_remote_port(PORT)
            .with_max_receive_buffer_size(config.receive_buffer)
            .with_max_send_message_size(config.receive_buffer)
            .with_max_receive_message_size(config.receive_buffer)
            .with_max_num_inbound_streams(config.streams)
            .with_max_num_outbound_streams(config.streams);
        let transport = Arc::new(transport);
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
    ) -> Result<(AssociationHandle, Association), String> {
        let connected = endpoint.connect(client, remote);
        connected.map_err(|error| error.to_string())
    }

    pub fn handle(
        endpoint: &mut Endpoint,
        now: Instant,
        remote: SocketAddr,
        packet: Bytes,
    ) -> Option<(AssociationHandle, DatagramEvent)> {
        endpoint.handle(now, remote, None, None, packet)
    }

    pub fn reliable(mut stream: Stream<'_>, unordered: bool) -> Result<(), String> {
        let set = stream.set_reliability_params(unordered, RELIABLE, 0);
        set.map_err(|error| error.to_string())
    }

    pub fn write(
        stream: &mut Stream<'_>,
        _: Instant,
        payload: &Bytes,
        ppid: PayloadProtocolIdentifier,
    ) -> Result<(), String> {
        let written = stream.write_sctp(payload, ppid);
        written.map(drop).map_err(|error| error.to_string())
    }

    pub fn packets(transmit: Transmit) -> Vec<Bytes> {
        match transmit.payload {
            Payload::RawEncode(packets) => packets,
            _ => Vec::new(),
        }
    }
}

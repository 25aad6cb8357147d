//! Configuration of a connection.

use std::sync::Arc;
use std::time::Duration;

use anabranch_settings::{Kind, OFF, SettingValue, settings, spelled};
use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};
use quinn_proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{EndpointConfig, IdleTimeout, TransportConfig, VarInt};

use crate::ids::{Identifiers, ResetKey};

/// Congestion control algorithm of quinn-proto.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// CUBIC (RFC 8312).
    #[default]
    Cubic,
    /// NewReno (RFC 9002 §7).
    NewReno,
}
spelled!(Congestion: Congestion::Cubic = "cubic", Congestion::NewReno = "newreno");

/// Smallest IP packet that every path must carry: the smallest UDP payload (RFC 9000 §14) with its
/// UDP and IPv6 headers.
const MIN_PACKET: u64 = 1200 + 8 + 40;

settings! {
    /// Configuration of one end of a QUIC connection. The defaults are those of quinn-proto, except
    /// for `mtu`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Congestion control, as quinn-proto implements it. Its BBR is not available, because it
        /// uses random numbers that do not depend on the seed.
        congestion: Congestion = Congestion::Cubic, <Congestion as SettingValue>::KIND, "RFC 9002 §7";
        /// Congestion window at the beginning. If off, the default of quinn-proto applies: ten
        /// packets of 1200 B.
        initial_window: Option<u64> = None,
            Kind::Either(OFF, &Kind::Bytes { least: 2400, most: 1 << 30 }), "RFC 9002 §7.2";
        /// Maximum size of an IP packet. The path MTU is not discovered.
        mtu: u16 = 1500, Kind::Bytes { least: MIN_PACKET, most: 65_535 }, "RFC 9000 §14";
        /// Number of streams that the sender uses. The stream of a transfer is the transfer's
        /// number modulo this number.
        streams: u16 = 1, Kind::Count { least: 1, most: 65_535 }, "RFC 9000 §2";
        /// Flow control window: number of bytes that a sender may send beyond the data that the
        /// receiver has read, on each stream and on the connection.
        receive_window: u64 = 1_250_000, Kind::Bytes { least: 1_000, most: 1 << 40 }, "RFC 9000 §4.1";
        /// Number of bytes that a sender may keep until they are acknowledged.
        send_window: u64 = 10_000_000, Kind::Bytes { least: 1_000, most: 1 << 40 }, "";
        /// A connection that receives no packet for this time ends. 0: never.
        idle_timeout: Nanos = 30 * SECOND, Kind::Duration { least: 0, most: 86_400 * SECOND }, "RFC 9000 §10.1";
    }
    beside {}
}

impl Config {
    /// Maximum UDP payload of a packet to a peer with this IP version, bytes.
    pub(crate) fn payload(&self, is_ipv6: bool) -> u16 {
        self.mtu - 8 - if is_ipv6 { 40 } else { 20 }
    }

    /// Converts the configuration to that of quinn-proto for one connection.
    pub(crate) fn transport(&self, payload: u16) -> TransportConfig {
        let window = VarInt::from_u64(self.receive_window).unwrap_or(VarInt::MAX);
        let idle = VarInt::from_u64(self.idle_timeout / MILLISECOND).ok();
        let idle = idle.filter(|idle| idle.into_inner() > 0);
        let mut transport = TransportConfig::default();
        transport
            .max_concurrent_uni_streams(VarInt::from_u32(self.streams.into()))
            .max_concurrent_bidi_streams(VarInt::from_u32(0))
            .stream_receive_window(window)
            .receive_window(window)
            .send_window(self.send_window)
            .initial_mtu(payload)
            .mtu_discovery_config(None)
            .enable_segmentation_offload(false)
            .max_idle_timeout(idle.map(IdleTimeout::from))
            .datagram_receive_buffer_size(None)
            .congestion_controller_factory(self.controller());
        transport
    }

    fn controller(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        match self.congestion {
            Congestion::Cubic => {
                let mut cubic = CubicConfig::default();
                if let Some(window) = self.initial_window {
                    cubic.initial_window(window);
                }
                Arc::new(cubic)
            }
            Congestion::NewReno => {
                let mut reno = NewRenoConfig::default();
                if let Some(window) = self.initial_window {
                    reno.initial_window(window);
                }
                Arc::new(reno)
            }
        }
    }

    /// Creates the configuration of an endpoint. All random values are derived from `seed`.
    pub(crate) fn endpoint(payload: u16, seed: [u8; 32]) -> EndpointConfig {
        let mut endpoint = EndpointConfig::new(Arc::new(ResetKey));
        let identifiers = Identifiers::new(seed);
        // quinn-proto rejects a payload below the minimum that every path must carry. A checked
        // configuration never has such a payload.
        let _ = endpoint.max_udp_payload_size(payload);
        endpoint
            .cid_generator(move || Box::new(identifiers.clone()))
            .min_reset_interval(Duration::from_millis(20))
            .rng_seed(Some(seed));
        endpoint
    }
}

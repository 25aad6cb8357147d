//! SCTP: its settings in specs, and the construction of a flow's endpoints.

mod agents;
mod application_reader;
mod link_follower;
mod resume;

use std::rc::Rc;
use std::sync::Arc;

use anabranch_scenario::Transport as Written;
use anabranch_scenario::transport::TransportKind;
use anabranch_sctp::dtls::preshared::{Flights, PresharedSettings};
use anabranch_sctp::stream_allocation::AllocationKind;
use anabranch_sctp::{
    Authentication, Config, DTLS_OVERHEAD, Endpoint, KeyMethods, Profile, Security, ZeroChecksum,
};
use anabranch_settings::{Kind, SettingError, settings};
use anabranch_sim::workload::Facts;
use anabranch_sim::{Agent, Rng};
use anabranch_transport::Probe;
use anabranch_wire::chunk::kind as chunk;

use super::{
    FlowMember, InvalidSetting, PacketLimit, SharedTransport, Transport, TransportEntry,
    TransportInput, ip_header,
};
use crate::agent::Feed;
use crate::agent::inspect::PacketContent;
use link_follower::Follower;

/// IP protocol number of SCTP.
pub(crate) const PROTOCOL: u8 = 132;
/// Size of the SCTP common header, bytes.
const COMMON_HEADER: usize = 12;
/// Size of the header of a DATA chunk, bytes.
pub(crate) const DATA_HEADER: u64 = 16;
/// Reason why creating an endpoint cannot fail.
const CHECKED: &str = "the settings were checked with the spec";

/// Settings that have an effect only for programs on real sockets.
const ASKED_FOR: [&str; 3] = [
    "accept_stream_resets",
    "accept_association_reset",
    "accept_added_streams",
];

/// Settings that have an effect only if both ends offer them; the client offers them in its INIT.
const OFFERED: [&str; 7] = [
    "partial_reliability",
    "interleaving",
    "zero_checksum",
    "address_changes",
    "reconfiguration",
    "ecn",
    "rsctp",
];

/// Settings that select among the paths of an association, or require a second path.
const OF_PATHS: [&str; 4] = [
    "retransmission_path",
    "dormant_path",
    "ambiguous_answer_clears_errors",
    "primary_switchover_max_retrans",
];

/// Probes of SCTP: all except those that only TCP has.
const PROBES: &[Probe] = &{
    let mut probes = [Probe::Cwnd; Probe::ALL.len() - 1];
    let (mut from, mut to) = (0, 0);
    while from < Probe::ALL.len() {
        if Probe::ALL[from] as u8 != Probe::Pipe as u8 {
            probes[to] = Probe::ALL[from];
            to += 1;
        }
        from += 1;
    }
    probes
};

settings! {
    /// Settings of the applications at both ends of an SCTP flow.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Application {
        /// Send messages unordered, so that they may overtake one another.
        unordered: bool = false, Kind::Flag, "RFC 9260 §6.6";
        /// Rate at which the receiving application reads user data. Off: the application reads all
        /// data immediately.
        application_read_rate: Option<u64> = None,
            Kind::Either(anabranch_settings::OFF, &Kind::Rate { least: 1, most: 1_000_000_000_000 }), "";
        /// Use all interfaces of both hosts, paired in their order. Off: use only the first
        /// interface of each host. The key `paths` of the flow selects other pairs.
        multihomed: bool = false, Kind::Flag, "RFC 9260 §6.4";
        /// The hosts change the addresses of the association when their links go down or come up. A
        /// host notices a change of a link after this time. It then adds the address of a link that
        /// came up and requests that the peer sends to this address, and deletes the address of a
        /// link that went down (ASCONF). An association starts with the addresses of the links that
        /// are up. Requires `address_changes`. Off: a host always has all its addresses.
        asconf_on_link_change: Option<u64> = None,
            Kind::Either(anabranch_settings::OFF, &Kind::duration(0, 3_600_000_000_000)), "RFC 5061 §5";
    }
    beside {}
}

/// Registry entry of SCTP.
pub static ENTRY: TransportEntry = TransportEntry {
    kind: TransportKind {
        profiles: Profile::NAMES,
        settings: &[Config::SETTINGS, Application::SETTINGS],
        switches: Profile::SWITCHES,
        fallback: |profile, name| {
            Config::fallback(profile, name).or_else(|| Application::default().show(name))
        },
        multihoming: true,
        window: true,
        answers: true,
        probes: Some(PROBES),
        ..TransportKind::new("sctp", "SCTP (RFC 9260).")
    },
    build,
};

fn build(given: &TransportInput<'_>) -> Result<SharedTransport, Vec<InvalidSetting>> {
    let (config, application) = (config(given.written), application(given.written));
    let mut wrong = Vec::new();
    if let Err(error) = config.check() {
        let message = format!("found {}; allowed: {}", error.found, error.allowed);
        wrong.push(InvalidSetting::new(error.field, message));
    }
    if let AllocationKind::Fixed(streams) | AllocationKind::Adaptive { streams, .. } =
        config.stream_allocation
        && streams > config.outbound_streams
    {
        let negotiated = config.outbound_streams;
        let message = format!("found {streams}; `streams` negotiates only {negotiated}");
        wrong.push(InvalidSetting::new("stream_allocation.streams", message));
    }
    if application.asconf_on_link_change.is_some() && !config.address_changes {
        let message = "found a time; `address_changes` is off, without which no address changes";
        wrong.push(InvalidSetting::new("asconf_on_link_change", message));
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let ip = ip_header(given.ip);
    let sealing = match config.security {
        Security::Off => 0,
        _ => DTLS_OVERHEAD as u64,
    };
    Ok(Arc::new(Sctp {
        chunk: config.mtu as u64 - ip - COMMON_HEADER as u64 - sealing,
        ip,
        config,
        application,
    }))
}

/// Configuration of a checked SCTP transport; the default configuration for any other transport.
pub fn config(written: &Written) -> Config {
    let profile = written.profile().and_then(Profile::by_name);
    let mut config = Config::new(profile.unwrap_or_default());
    if ENTRY.kind.is_of(written) {
        for (setting, datum) in written.values(&ENTRY.kind) {
            // Ignores the error for settings of the application, because they are not part of the
            // configuration.
            let _ = config.assign(setting.name, &datum);
        }
    }
    // Both ends have this configuration, so each must permit as many streams as the other requests.
    config.inbound_streams = config.inbound_streams.max(config.outbound_streams);
    config
}

/// Settings of the applications of a checked SCTP transport.
pub fn application(written: &Written) -> Application {
    let mut application = Application::default();
    for (setting, datum) in written.values(&ENTRY.kind) {
        // Ignores the error for settings of the protocol, because they are not part of the
        // application's settings.
        let _ = application.put(setting.name, &datum);
    }
    application
}

/// SCTP transport of a flow.
#[derive(Debug)]
struct Sctp {
    config: Config,
    application: Application,
    /// Maximum size of a DATA chunk including its header, bytes; this is the segment size of cwnd.
    chunk: u64,
    /// Size of the IP header, bytes.
    ip: u64,
}

impl Sctp {
    /// Checks that each setting has an effect in a simulated world, whose applications do only what
    /// their flow specifies. `most_paths` is the maximum number of paths over all flows, because
    /// flows share profiles.
    fn check_effects(&self, most_paths: usize) -> Result<(), SettingError> {
        self.config.check_effects()?;
        for name in ASKED_FOR {
            let why = "in a world, where no application asks for such a thing";
            self.config.refuse_idle(name, why)?;
        }
        for name in OFFERED.iter().filter(|_| self.config.minimal_init) {
            let why = "with `minimal_init`, whose INIT does not offer it";
            self.config.refuse_idle(name, why)?;
        }
        if self.config.minimal_init && self.config.authentication == Authentication::On {
            let why = "with `minimal_init`, whose INIT does not offer it";
            self.config.refuse_idle("authentication", why)?;
        }
        if self.application.asconf_on_link_change.is_none() {
            let why = "without `asconf_on_link_change`";
            self.config.refuse_idle("accept_address_changes", why)?;
        }
        for name in OF_PATHS.iter().filter(|_| most_paths == 1) {
            let why = "over one path: `multihomed = true`, or `paths` of the flow, gives it several where there are links for them";
            self.config.refuse_idle(name, why)?;
        }
        Ok(())
    }
}

impl Transport for Sctp {
    fn protocol(&self) -> u8 {
        PROTOCOL
    }

    fn idle(&self, [paths, most_paths]: [usize; 2]) -> Option<InvalidSetting> {
        // With `address_changes`, listing all addresses of a host has an effect even if the host
        // has only one address.
        if self.application.multihomed && paths == 1 && !self.config.address_changes {
            let what = "found true; expected false, the default: it has no effect between hosts that have one interface each";
            return Some(InvalidSetting::new("multihomed", what));
        }
        let error = self.check_effects(most_paths).err()?;
        Some(InvalidSetting::new(error.setting(), error.what()))
    }

    fn packet(&self) -> usize {
        (self.chunk - DATA_HEADER) as usize
    }

    fn segment(&self) -> u64 {
        self.chunk
    }

    fn receive_buffer(&self) -> u64 {
        self.config.receive_buffer.into()
    }

    fn is_multihomed(&self) -> bool {
        self.application.multihomed
    }

    fn needs_sound_links(&self) -> bool {
        self.config.zero_checksum != ZeroChecksum::Off
    }

    fn largest_packet(&self, _: &Facts) -> Option<PacketLimit> {
        let (searches, can) = (self.config.path_mtu_discovery, !self.config.profile.rsctp);
        (!(searches && can)).then(|| PacketLimit {
            // The size is a multiple of 4, because chunks are padded to 4 bytes.
            bytes: ((self.config.mtu as u64 - self.ip) & !3) + self.ip,
            setting: "mtu",
            beside: 0,
            instead: if can {
                ", or `path_mtu_discovery = true`"
            } else {
                ""
            },
        })
    }

    fn resumes(&self) -> bool {
        !self.config.profile.rsctp
    }

    fn ends(&self, member: FlowMember<'_>) -> [Box<dyn Agent>; 2] {
        let mut rng = member.rng(ENTRY.kind.name);
        let mut near = self.config.clone();
        near.checksum = member.checksum;
        near.careful_resume = member.resume.as_ref().map(|it| it.parameters);
        if near.security != Security::Off {
            near.key_methods = key_methods(&mut rng);
        }
        let [near_resuming, far_resuming] = [0, 1].map(|end| member.resuming(end));
        let mut far = near.clone();
        let [mut near_links, mut far_links] = [0, 1].map(|end| {
            let after = self
                .application
                .asconf_on_link_change
                .filter(|_| member.bound);
            Follower::new(&member, end, after)
        });
        let remote = far_links.take_first();
        if member.bound {
            near.addresses = near_links.take_first();
            far.addresses.clone_from(&remote);
        }
        let facts = member.workload.facts();
        let (once, transfers) = {
            let flow_stats = member.flow_stats.borrow();
            (flow_stats.once.is_some(), flow_stats.transfers.is_some())
        };
        // A message without a specified stream is identified by its number.
        let numbered = transfers && facts.piece.is_none();
        let stamped = member.delays || once || numbered;
        let [source, sink] = member.ports;
        let source_config = agents::SourceConfig {
            remote,
            remote_port: sink,
            unordered: self.application.unordered,
            endless: facts.endless && !stamped,
            stamped,
            told: once || transfers,
            numbered,
            streams: near.outbound_streams,
            ahead: if facts.paced {
                near.send_buffer
            } else {
                near.mtu * 2
            },
        };
        let receiver = agents::SinkAgent::new(
            Endpoint::new(far, sink, secret(&mut rng)).expect(CHECKED),
            stamped,
            self.chunk - DATA_HEADER,
            self.application.application_read_rate,
            Rc::clone(&member.flow_stats),
            far_links,
            far_resuming,
        );
        let endpoint = Endpoint::new(near, source, secret(&mut rng)).expect(CHECKED);
        let feed = Feed::new(member.workload);
        let sender = agents::SourceAgent::new(
            endpoint,
            source_config,
            feed,
            member.flow_stats,
            near_links,
            near_resuming,
        );
        [Box::new(sender), Box::new(receiver)]
    }

    fn has_separate_ends(&self) -> bool {
        true
    }

    fn inspect(&self, packet: &[u8]) -> PacketContent {
        inspect(packet)
    }
}

/// Content of an SCTP packet, from the bytes after the IP header.
pub(crate) fn inspect(packet: &[u8]) -> PacketContent {
    seen(packet.get(COMMON_HEADER..).unwrap_or_default())
}

/// Key management of the DTLS chunk, in which both ends share a secret of the run. Its messages
/// have the lengths of a TLS 1.3 handshake with certificates, so that their transmission takes a
/// realistic time.
fn key_methods(rng: &mut Rng) -> KeyMethods {
    let mut settings = PresharedSettings::new(&secret(rng));
    settings.flights = Flights::CERTIFICATES;
    KeyMethods::preshared(settings)
}

pub(crate) fn secret(rng: &mut Rng) -> [u8; 32] {
    let mut secret = [0; 32];
    secret
        .chunks_exact_mut(8)
        .for_each(|word| word.copy_from_slice(&rng.bits().to_le_bytes()));
    secret
}

/// First TSN in the chunks of a packet: that of the first DATA chunk, or the initial TSN in an INIT
/// (RFC 9260 §3.3.1, §3.3.2).
fn seen(mut chunks: &[u8]) -> PacketContent {
    while let Some(&[kind, _, high, low]) = chunks.first_chunk::<4>() {
        let word = |at: usize| {
            let bytes = chunks.get(at..)?.first_chunk::<4>()?;
            Some(u32::from_be_bytes(*bytes))
        };
        match kind {
            chunk::DATA => return word(4).map_or(PacketContent::NoData, PacketContent::Data),
            chunk::INIT => return word(16).map_or(PacketContent::NoData, PacketContent::Begins),
            _ => {}
        }
        let length = usize::from(u16::from_be_bytes([high, low])).max(4);
        chunks = chunks.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    PacketContent::NoData
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_found_behind_other_chunks() {
        // A SACK (type 3) of 16 bytes, followed by DATA with TSN 7.
        let sack = [3, 0, 0, 16, 0, 0, 0, 1, 0, 0, 255, 255, 0, 0, 0, 0];
        let data = [0, 3, 0, 20, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];
        assert_eq!(seen(&sack), PacketContent::NoData);
        assert_eq!(
            seen(&[&sack[..], &data[..]].concat()),
            PacketContent::Data(7)
        );
        // Parsing should stop at a chunk length of 0, or at one beyond the end of the packet.
        assert_eq!(seen(&[3, 0, 0, 0]), PacketContent::NoData);
        assert_eq!(seen(&[3, 0, 255, 255, 0, 0]), PacketContent::NoData);
    }

    #[test]
    fn an_init_reports_where_data_begin() {
        let init = [
            1, 0, 0, 20, 0, 0, 0, 1, 0, 1, 0, 0, 0, 10, 0, 10, 0, 0, 3, 232,
        ];
        assert_eq!(seen(&init), PacketContent::Begins(1000));
        assert_eq!(seen(&init[..16]), PacketContent::NoData);
    }
}

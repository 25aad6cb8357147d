//! Settings of an endpoint and its associations.

mod buffer_split;
mod security;
mod validate;
mod zero_checksum;

use std::net::IpAddr;

use anabranch_congestion::careful_resume::ResumeParameters;
use anabranch_congestion::parameters::AlgorithmParameters;
use anabranch_congestion::registry::{own_unused_window, own_window, paces_itself};
use anabranch_congestion::sctp_newreno;
use anabranch_congestion::westwood_rate::RateParameters;
use anabranch_congestion::{Algorithm, registry, settings_with_bbr};
use anabranch_settings::{Kind, OFF, SettingValue, profiled};
use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::kind;

pub use crate::stream_scheduler::{SchedulerKind, StreamValues};
pub use buffer_split::BufferSplit;
pub use validate::{CheckedConfig, ConfigError};
use validate::{MAX_BYTES, MAX_ERRORS, MIN_RECEIVE_BUFFER};
pub(crate) use validate::{MAX_SACK_DELAY, MAX_SPAN, MIN_RTO};
pub use zero_checksum::ZeroChecksum;

use crate::address::common_prefix;
use crate::authentication::{
    AuthHmac, AuthParameters, Authentication, ChunkTypes, RANDOM_LEN, SharedKeys,
};
use crate::dtls_chunk::{KeyMethods, Security};
use crate::mtu::{self, MAX_MTU, MIN_MTU};
use crate::profile::Profile;
use crate::stream_allocation::AllocationKind;

settings_with_bbr! {
    /// Settings of an endpoint, except its ports. The defaults are those of RFC 9260 §16. Every
    /// switch of [`Config::profile`] is a setting, too.
    #[derive(Clone, Debug)]
    pub struct Config {
        /// Congestion control algorithm, used on every path. A program can add its own.
        congestion: &'static Algorithm = &sctp_newreno::ALGORITHM, registry::SCTP, "RFC 9260 §7.2";
        /// Spreads packets over the round-trip time: a packet follows the previous one after `bytes
        /// / (factor x cwnd / SRTT)`, unless the algorithm computes a rate itself. The factor
        /// should be above 1, because otherwise cwnd is never filled; RFC 9002 suggests 1.25. With
        /// pacing, chunks that fast recovery marks for retransmission wait for cwnd
        /// (`fast_retransmit_in_recovery_waits`). Off: packets are sent as soon as the window
        /// permits.
        pacing: Option<f64> = None,
            Kind::Either(anabranch_settings::OFF, &Kind::Number { least: 0.0, most: 1000.0, above: true, step: 0.0 }), "RFC 9002 §7.7",
            not with congestion in paces_itself;
        /// With `pacing`, or an algorithm that computes a rate: number of bytes that may be sent at
        /// once after a pause. 0: no burst; all packets are spaced. RFC 9002 allows the size of an
        /// initial window.
        pacing_burst: u64 = 0, Kind::Bytes { least: 0, most: 1 << 30 }, "RFC 9002 §7.7", needs pacing or congestion in paces_itself;
        /// Rate-limited increase: if the sender does not use its whole cwnd, cwnd grows to at most
        /// twice the largest flight in slow start, and to one segment more than the largest flight
        /// in congestion avoidance. Replaces `growth_needs_full_cwnd`. Off: a cwnd that is not
        /// fully used does not grow.
        rate_limited_increase: bool = false, Kind::Flag, "draft-ietf-ccwg-ratelimited-increase §4",
            not with congestion in own_unused_window;
        /// Detect losses by time (RACK): data is considered lost once data sent later on the same
        /// path has arrived, and a reordering window of a quarter of the minimum round-trip time
        /// has passed. Lost retransmissions are detected as well. Off: losses are detected by
        /// missing reports, and lost retransmissions by a timeout.
        rack: bool = false, Kind::Flag, "RFC 8985 §6";
        /// With `rack`: tail loss probe (TLP). If no SACK arrives for two round-trip times, send
        /// new data, or send the last data again. Off: the loss of the last packets is detected by
        /// a timeout.
        tail_loss_probe: bool = true, Kind::Flag, "RFC 8985 §7", needs rack;
        /// Proportional rate reduction: fast recovery sends new data in proportion to delivered
        /// data, in the ratio of the reduced cwnd to the flight at the start of recovery. Off: the
        /// sender waits until the flight has fallen below the reduced cwnd.
        proportional_rate_reduction: bool = false, Kind::Flag, "RFC 6937";
        /// Undo the cwnd reduction of a fast recovery if the peer reports all data retransmitted in
        /// it as duplicate TSNs, because the data was then only reordered.
        undo_spurious_reductions: bool = false, Kind::Flag, "RFC 3708";
        /// F-RTO: after a timeout, send new data when the first retransmitted packet is
        /// acknowledged. If the next SACK acknowledges data that was not retransmitted, the timeout
        /// was spurious: no more data is retransmitted, and cwnd is restored. Not used if
        /// retransmissions go to another address.
        frto: bool = false, Kind::Flag, "RFC 5682 §3, RFC 4138", not with cmt;
        /// Path MTU: the largest IP packet, including the IP header. With `path_mtu_discovery`: the
        /// upper limit of the search, which is the MTU of the interface.
        mtu: usize = 1500, Kind::bytes(MIN_MTU as u64, MAX_MTU as u64), "RFC 9260 §7.3";
        /// Discover the path MTU of each path, up to `mtu`, by HEARTBEATs with padding. The first
        /// packets have 1200 bytes over IPv4 and 1280 over IPv6. Not available with RSCTP, whose
        /// HEARTBEATs measure bandwidth. Off: packets have up to `mtu` bytes.
        path_mtu_discovery: bool = false, Kind::Flag, "RFC 8899", not with rsctp;
        /// Number of outbound streams to request. `stream_allocation` decides how many of them are
        /// used.
        outbound_streams as streams: u16 = 10, Kind::count(1, 65_535), "RFC 9260 §5.1.1";
        /// Maximum number of inbound streams to accept.
        inbound_streams: u16 = 2048, Kind::count(1, 65_535), "RFC 9260 §5.1.1";
        /// How many of the negotiated streams are used, round robin, for messages that name no
        /// stream.
        stream_allocation: AllocationKind = AllocationKind::Negotiated, AllocationKind::KIND, "tsunoda2007 §II-B";
        /// Stream scheduler: chooses the stream that sends the next message. `round_robin`: one
        /// message of each stream in turn. `fcfs`: first come, first served.
        /// `round_robin_per_packet`: one stream in each packet. `priority`: by `stream_values`.
        /// `fair_capacity`: equal bytes for each stream. `weighted_fair`: bytes in proportion to
        /// `stream_values`.
        scheduler: SchedulerKind = SchedulerKind::RoundRobin, SchedulerKind::KIND, "RFC 8260 §3", not with streams = 1;
        /// Values of the streams, from stream 0 on. With `scheduler = "priority"`: priorities, of
        /// which a smaller number goes first (0 for streams that are not listed). With
        /// `weighted_fair`: weights (1 for streams that are not listed). Off: no stream is listed.
        stream_values: Option<StreamValues> = None, <Option<StreamValues>>::KIND, "RFC 8260 §4.3.3",
            needs scheduler = "priority" | "weighted_fair", not with streams = 1;
        /// Bandwidth estimator to run for each path. Off: none, unless `stream_allocation` needs an
        /// estimate; `westwood_re` is then used.
        rate_estimate: Option<RateParameters> = None, <Option<RateParameters>>::KIND, "tsunoda2007 §II-B";
        /// Receive buffer: the initially advertised receiver window (a_rwnd), in bytes as
        /// `rwnd_counts` counts them.
        receive_buffer: u32 = 65_536, Kind::bytes(MIN_RECEIVE_BUFFER, u32::MAX as u64), "RFC 9260 §6";
        /// Delivery of a message starts before its end has arrived once this number of bytes has
        /// arrived without a gap and no earlier message of the stream is missing. Off: only if the
        /// message fills the receive buffer, because no other delivery can then free space (RFC
        /// 9260 §6.9). Programs read parts with [`Association::poll_part`].
        ///
        /// [`Association::poll_part`]: crate::Association::poll_part
        partial_delivery_point: Option<usize> = None,
            Kind::Either(OFF, &Kind::Bytes { least: 1, most: MAX_BYTES }), "RFC 6458 §8.1.21";
        /// Send buffer: maximum user data that is queued and not yet sent, in bytes. `send` refuses
        /// more. Sent data that is not acknowledged is kept in addition: at most the sum of
        /// `send_buffer` and twice `receive_buffer`, regardless of the peer's receiver window.
        send_buffer: usize = 256 * 1024, Kind::bytes(1, MAX_BYTES), "";
        /// Delayed acknowledgment: acknowledge every second packet (`sack_frequency`), or a single
        /// packet after `sack_delay`. Off: acknowledge every packet.
        delayed_sack: bool = true, Kind::Flag, "RFC 9260 §6.2";
        /// With `delayed_sack`: maximum delay of a SACK.
        sack_delay: Nanos = 200 * MILLISECOND, Kind::duration(0, MAX_SACK_DELAY), "RFC 9260 §6.2", needs delayed_sack,
            not with sack_frequency = 1;
        /// With `delayed_sack`: number of packets with DATA after which a SACK is sent. RFC 9260
        /// requires a SACK at least for every second packet.
        sack_frequency: u32 = 2, Kind::count(1, 100), "RFC 9260 §6.2", needs delayed_sack;
        /// RTO.Min: lower bound of the retransmission timeout. At most `rto_max`.
        rto_min: Nanos = SECOND, Kind::duration(MIN_RTO, MAX_SPAN), "RFC 9260 §6.3.1 C6";
        /// RTO.Max: upper bound of the retransmission timeout.
        rto_max: Nanos = 60 * SECOND, Kind::duration(MIN_RTO, MAX_SPAN), "RFC 9260 §6.3.1 C7";
        /// HB.interval: time between HEARTBEATs on an idle path, in addition to its RTO. Off: no
        /// HEARTBEAT on idle paths.
        heartbeat_interval: Option<Nanos> = Some(30 * SECOND),
            Kind::Either(OFF, &Kind::Duration { least: MILLISECOND, most: MAX_SPAN }), "RFC 9260 §8.3";
        /// Path.Max.Retrans: a path with more consecutive errors than this becomes inactive.
        path_max_retrans: u32 = 5, Kind::count(0, MAX_ERRORS), "RFC 9260 §8.2";
        /// PotentiallyFailed.Max.Retrans (PFMR): with `potentially_failed`, a path with more
        /// consecutive errors than this becomes potentially failed. RFC 7829 recommends 0.
        pf_max_retrans: u32 = 0, Kind::count(0, MAX_ERRORS), "RFC 7829 §3", needs potentially_failed;
        /// Primary.Switchover.Max.Retrans (PSMR): after more consecutive errors than this, the
        /// alternate path permanently becomes the primary. At least PFMR with `potentially_failed`,
        /// else at least `path_max_retrans`. Off: data returns to the primary path once it is
        /// active again.
        primary_switchover_max_retrans: Option<u32> = None,
            Kind::Either(OFF, &Kind::Count { least: 0, most: MAX_ERRORS }), "RFC 7829 §5";
        /// Association.Max.Retrans: an association with more consecutive errors than this fails.
        association_max_retrans: u32 = 10, Kind::count(0, MAX_ERRORS), "RFC 9260 §8.1";
        /// After either side has closed, the association is aborted
        /// ([`CloseReason::ShutdownTimeout`](crate::CloseReason::ShutdownTimeout)) if the peer
        /// acknowledges no new data for this time. The association is also aborted if its SHUTDOWN
        /// ACK is not answered, or is answered only by SHUTDOWNs. Without this limit, a peer that
        /// keeps its window closed and answers every probe keeps the association open permanently
        /// (RFC 9260 §6.1 A; RFC 6429 describes this problem for TCP). The default is longer than
        /// it takes to detect a silent peer. Off: no limit.
        drain_timeout: Option<Nanos> = Some(900 * SECOND),
            Kind::Either(OFF, &Kind::Duration { least: MILLISECOND, most: MAX_SPAN }), "RFC 9260 §9.2";
        /// Max.Init.Retransmits: setup fails after this many retransmissions of INIT or COOKIE
        /// ECHO.
        max_init_retransmits: u32 = 8, Kind::count(0, MAX_ERRORS), "RFC 9260 §5.1.6";
        /// Valid.Cookie.Life: time for which a cookie is valid.
        valid_cookie_life: Nanos = 60 * SECOND, Kind::duration(MILLISECOND, MAX_SPAN), "RFC 9260 §5.1.3";
        /// Bundle several DATA chunks into one packet if they fit.
        bundling: bool = true, Kind::Flag, "RFC 9260 §6.10";
        /// Start a message of several chunks in the space that the previous message left in its
        /// packet. Packets then have equal size and can be sent by one system call (GSO). Off: such
        /// a message starts in a new packet. Needs `bundling`.
        pack_messages: bool = false, Kind::Flag, "RFC 9260 §6.9, §6.10", needs bundling;
        /// Send DATA together with COOKIE ECHO, one round trip earlier than after COOKIE ACK. DATA
        /// may always accompany COOKIE ACK.
        data_with_cookie_echo: bool = false, Kind::Flag, "RFC 9260 §5.1 C";
        /// Window update: send a SACK when the application has read enough to widen the receiver
        /// window by this number of bytes beyond the last advertised one. Otherwise a sender with a
        /// narrow window sends one packet into it and waits up to `sack_delay` for the SACK. Off:
        /// such a SACK is sent only if the advertised window was closed.
        window_update: Option<u32> = None,
            Kind::Either(OFF, &Kind::Bytes { least: 1, most: u32::MAX as u64 }), "RFC 9260 §6.2";
        /// Send no optional parameter in INIT, for peers that refuse or misread unknown ones
        /// (pion/sctp, sctp-proto). Further local addresses are then not announced to the peer.
        minimal_init: bool = false, Kind::Flag, "RFC 9260 §3.3.2.1";
        /// Negotiate partial reliability (PR-SCTP): messages may be abandoned. Off: every message
        /// is delivered, regardless of its options.
        partial_reliability: bool = false, Kind::Flag, "RFC 3758 §3.1";
        /// Default lifetime of messages, with `partial_reliability`: a message that is not
        /// acknowledged after this time is abandoned.
        lifetime: Option<Nanos> = None,
            Kind::Either(OFF, &Kind::Duration { least: 1, most: MAX_SPAN }), "RFC 3758 §4.1", needs partial_reliability;
        /// Default limit of retransmissions, with `partial_reliability`: a message is abandoned
        /// when one of its chunks would be retransmitted more often than this.
        max_retransmits: Option<u32> = None,
            Kind::Either(OFF, &Kind::Count { least: 0, most: MAX_ERRORS }), "RFC 7496 §3.1", needs partial_reliability;
        /// Negotiate message interleaving (I-DATA): a long message does not delay messages of other
        /// streams. `scheduler` decides the order of fragments.
        interleaving: bool = false, Kind::Flag, "RFC 8260 §2";
        /// Concurrent multipath transfer: new data is sent over all active paths, round robin,
        /// while the cwnd of each path permits. Off: new data is sent over the primary path only.
        /// `retransmission_path` selects the path of retransmissions; `congestion` has algorithms
        /// that couple the cwnds of all paths (`cmt_rp`, `lia`, `olia`).
        cmt: bool = false, Kind::Flag, "iyengar2006";
        /// With `cmt`: a TSN counts as reported missing only if a later TSN of the same path was
        /// acknowledged, and each path has a separate fast recovery (SFR-CMT). Off: data on a slow
        /// path is considered lost when later data arrives over a faster path.
        cmt_split_fast_retransmit: bool = true, Kind::Flag, "iyengar2006", needs cmt;
        /// With `cmt`: if `growth_needs_cumulative_advance` is on, cwnd grows by the data that is
        /// acknowledged in order on the same path (CUC). Off: cwnd grows only when the cumulative
        /// TSN advances, which waits for the slowest path.
        cmt_cwnd_update: bool = true, Kind::Flag, "iyengar2006", needs cmt,
            not with growth_needs_cumulative_advance = false or congestion in own_window;
        /// With `cmt`: SACKs are also delayed while data is missing. Their flags contain the number
        /// of acknowledged packets, and the sender counts this number of missing reports (DAC).
        /// Both ends must support it. Off: while data is missing, each packet is acknowledged.
        cmt_delayed_ack: bool = true, Kind::Flag, "iyengar2006", needs cmt;
        /// With `cmt`: split buffers between the active paths, so that a slow path cannot fill a
        /// buffer alone. `sender`: data sent on a path occupies at most the path's share of
        /// `send_buffer` until the cumulative TSN passes it. `receiver`: a path has at most its
        /// share of the peer's receiver window in flight. `both`: both limits.
        cmt_buffer_split: BufferSplit = BufferSplit::Off, BufferSplit::KIND, "dreibholz2010", needs cmt;
        /// Negotiate zero checksums: packets are sent and accepted without a checksum if the peer
        /// agrees. The value is the method by which the lower layer detects damaged packets. In the
        /// simulator, use it only with links that do not corrupt packets.
        zero_checksum: ZeroChecksum = ZeroChecksum::Off, ZeroChecksum::KIND, "RFC 9653 §5";
        /// Negotiate authenticated chunks (AUTH): chunks of the types that an end lists are
        /// accepted by it only with a valid HMAC. `required`: associations with peers that do not
        /// support AUTH are refused.
        authentication: Authentication = Authentication::Off, Authentication::KIND, "RFC 4895 §6.1";
        /// With `authentication`: chunk types that the peer must authenticate. Chunks of these
        /// types are discarded without a valid HMAC. Off: no chunk types.
        authenticated_chunks: Option<ChunkTypes> = None, <Option<ChunkTypes>>::KIND, "RFC 4895 §3.2", needs authentication;
        /// With `authentication`: HMAC algorithm that this end requests. `sha256`: HMAC-SHA-256, or
        /// HMAC-SHA-1 if the peer supports no other. `sha1`: HMAC-SHA-1 only.
        authentication_hmac: AuthHmac = AuthHmac::Sha256, AuthHmac::KIND, "RFC 4895 §3.3", needs authentication;
        /// Negotiate the DTLS chunk: all chunks of a packet are encrypted and authenticated.
        /// `dtls-chunk`: associations with peers that do not support the DTLS chunk are refused.
        /// `dtls-chunk-loose`: such associations are not protected. Both ends must have the same
        /// key management.
        security: Security = Security::Off, Security::KIND, "draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.1",
            not with authentication or address_changes or minimal_init;
        /// With `security`: size of the replay window in packets, rounded up to a multiple of 64. A
        /// packet that arrives after more than this number of later packets is discarded.
        dtls_replay_window: u64 = 1024, Kind::Count { least: 64, most: 32_768 },
            "draft-ietf-tsvwg-sctp-dtls-chunk-04 §7.13", needs security;
        /// With `security`: number of packets after which new keys are negotiated. Off: new keys
        /// are negotiated only before the limit of the cipher is reached.
        dtls_rekey_packets: Option<u64> = None, Kind::Either(OFF, &Kind::Count { least: 1, most: 1 << 48 }),
            "RFC 9147 §4.5.3", needs security;
        /// Negotiate dynamic addresses (ASCONF): each end can add and delete its own addresses, and
        /// select the primary path of the other end. All requests are authenticated. Needs
        /// `authentication`, unless the switch `asconf_without_auth` is on.
        address_changes: bool = false, Kind::Flag, "RFC 5061 §5";
        /// With `address_changes`: perform the peer's requests. Off: the peer's requests are
        /// refused (No Authorization); this side can still change its own addresses.
        accept_address_changes: bool = true, Kind::Flag, "RFC 5061 §4.3.5", needs address_changes;
        /// Adaptation Layer Indication to send in the handshake: a number that identifies the
        /// carried protocol to the peer's application. SCTP gives it no meaning. Off: none is sent.
        adaptation_layer: Option<u32> = None,
            Kind::Either(OFF, &Kind::Count { least: 0, most: u32::MAX as u64 }), "RFC 5061 §4.2.6";
        /// Negotiate stream reconfiguration (RE-CONFIG): streams can be reset and added. Off:
        /// streams stay as negotiated in the handshake.
        reconfiguration: bool = false, Kind::Flag, "RFC 6525 §5.1.1";
        /// With `reconfiguration`: accept the peer's requests to reset outbound streams of either
        /// side. Off: such requests are denied.
        accept_stream_resets: bool = true, Kind::Flag, "RFC 6525 §6.3.1", needs reconfiguration;
        /// With `reconfiguration`: accept the peer's requests to reset the association, that is,
        /// all TSNs and sequence numbers of both sides.
        accept_association_reset: bool = true, Kind::Flag, "RFC 6525 §6.3.1", needs reconfiguration;
        /// With `reconfiguration`: accept the peer's requests to add streams: inbound streams up to
        /// `inbound_streams`, and outbound streams.
        accept_added_streams: bool = true, Kind::Flag, "RFC 6525 §6.3.1", needs reconfiguration;
    }
    beside {
        /// Largest message in bytes that [`Association::poll_message`] assembles from parts; the
        /// minimum is 1. A larger message aborts the association. Messages that fit into the
        /// receive buffer are not limited. Not a key of spec files, because the flows of a spec
        /// read messages in parts.
        ///
        /// [`Association::poll_message`]: crate::Association::poll_message
        max_message: usize = 16 << 20;
        /// Default priority of messages, with `partial_reliability`; a smaller number is a higher
        /// priority. If the send buffer is full, unsent messages of lower priority are abandoned
        /// for one of higher priority (RFC 7496 §3.2). Not a key of spec files, because the
        /// priority only matters to programs that send messages of different priorities.
        priority: Option<u32> = None;
        /// Profile: the RFC or implementation to follow, and the values of all switches, which the
        /// user can change one by one.
        profile: Profile = Profile::default();
        /// Parameters of the congestion control algorithms, without those of `bbr` and `bbr1`,
        /// which are settings, and those of `binomial` and `rsctp`, which are switches of the
        /// profile.
        tuning: AlgorithmParameters = AlgorithmParameters::default();
        /// Careful Resume (RFC 9959): observe the paths, and start a path from saved parameters if
        /// the driver [supplies](crate::Association::resume) them.
        careful_resume: Option<ResumeParameters> = None;
        /// Addresses of this host, listed in INIT or INIT ACK if there are several. If empty, only
        /// the source address of packets is used.
        addresses: Vec<IpAddr> = Vec::new();
        /// With `address_changes`: the local address that the peer should use as its primary
        /// destination, requested in the handshake (Set Primary, RFC 5061 §4.2.4).
        preferred_address: Option<IpAddr> = None;
        /// With `authentication`: initial shared keys of associations. Two ends without configured
        /// keys share the null key.
        auth_keys: SharedKeys = SharedKeys::default();
        /// With `security`: key management methods and their secrets. By default the user installs
        /// keys.
        key_methods: KeyMethods = KeyMethods::default();
        /// Length of the encapsulation header between IP and SCTP, in bytes: 0 to 32; 8 for UDP
        /// (RFC 6951).
        encapsulation: usize = 0;
        /// DTLS is the lower layer, which has no addresses, so INIT has no Supported Address Types
        /// (RFC 8261 §6.1). Some peers (pion) discard an INIT with that parameter.
        over_dtls: bool = false;
        /// Maximum delay of calls of `handle_timeout`, in nanoseconds. Paced packets that became
        /// due within this time are sent in one burst (RFC 9002 §7.7), because otherwise a timer of
        /// 1 ms would allow only one packet per millisecond. 0: no delay, as in a simulator.
        timer_slack: Nanos = 0;
        /// Compute and verify the CRC32c. A simulator may switch it off to save time.
        checksum: bool = true;
    }
}

profiled!(Config, Profile);

impl Config {
    /// Minimum of [`Config::primary_switchover_max_retrans`]: PFMR, or Path.Max.Retrans if paths
    /// cannot be potentially failed (RFC 7829 §5, rule 1).
    pub fn least_primary_switch(&self) -> u32 {
        if self.profile.potentially_failed {
            self.pf_max_retrans.min(self.path_max_retrans)
        } else {
            self.path_max_retrans
        }
    }

    /// T5-shutdown-guard: five times RTO.Max (RFC 9260 §9.2).
    pub fn shutdown_guard(&self) -> Nanos {
        5 * self.rto_max
    }

    /// AUTH parameters to offer.
    pub(crate) fn auth_offer(&self, random: [u8; RANDOM_LEN]) -> AuthParameters {
        let chunks = self.authenticated_chunks.unwrap_or_default();
        let chunks = match self.address_changes {
            true => chunks.and(&[kind::ASCONF, kind::ASCONF_ACK]),
            false => chunks,
        };
        AuthParameters::own(random, chunks, self.authentication_hmac)
    }

    /// Size of the largest SCTP packet to `remote` in bytes, with the common header, without IP and
    /// encapsulation.
    pub fn max_packet(&self, remote: IpAddr) -> usize {
        mtu::max_packet(self.mtu, remote, self.encapsulation)
    }

    /// Source address for packets to `remote`: the address of the same family in
    /// [`Config::addresses`] that has the longest prefix in common with `remote` (like RFC 6724 §5,
    /// rule 8). If several addresses share the longest prefix, `preferred` is used, so that both
    /// directions use the same network. If no addresses are configured, the result is `preferred`.
    /// `None` if no address has the family of `remote`.
    pub(crate) fn local_address_for(
        &self,
        remote: IpAddr,
        preferred: Option<IpAddr>,
    ) -> Option<IpAddr> {
        nearest(&self.addresses, remote, preferred)
    }
}

/// Like [`Config::local_address_for`], for a given list of addresses.
#[inline(never)] // one copy for all callers
pub(crate) fn nearest(
    addresses: &[IpAddr],
    remote: IpAddr,
    preferred: Option<IpAddr>,
) -> Option<IpAddr> {
    let preferred = preferred.filter(|local| local.is_ipv4() == remote.is_ipv4());
    let mut best = preferred.map(|local| (common_prefix(local, remote), local));
    for &local in addresses {
        let common = common_prefix(local, remote);
        if local.is_ipv4() == remote.is_ipv4() && best.is_none_or(|(most, _)| common > most) {
            best = Some((common, local));
        }
    }
    best.map(|(_, local)| local)
}

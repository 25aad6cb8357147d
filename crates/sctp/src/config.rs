//! Everything that can be set about an endpoint and its associations.

mod check;

use std::net::IpAddr;

use anabranch_congestion::sctp_newreno;
use anabranch_congestion::tuning::Tuning;
use anabranch_congestion::westwood_rate::RateParameters;
use anabranch_congestion::{Algorithm, registry};
use anabranch_settings::{Kind, OFF, Value, profiled, settings};
use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};

pub use crate::scheduling::{SchedulerKind, StreamValues};
pub use check::ConfigError;
use check::{LEAST_RECEIVE_BUFFER, MOST_BYTES, MOST_ERRORS};
pub(crate) use check::{LEAST_RTO, MOST_SACK_DELAY, MOST_SPAN};

use crate::address::common_prefix;
use crate::allocation::AllocationKind;
use crate::mtu::{self, LEAST_MTU, MOST_MTU};
use crate::profile::Profile;
use crate::zero_checksum::ZeroChecksum;

settings! {
    /// Settings of an endpoint; ports are the endpoint's own business. The defaults are those of RFC 9260 §16. Every switch
    /// of [`Config::profile`] is a setting, too.
    #[derive(Clone, Debug)]
    pub struct Config {
        /// Congestion control of every path: one of [`registry::KINDS`], or a program's own.
        congestion: &'static Algorithm = &sctp_newreno::ALGORITHM, registry::SCTP, "RFC 9260 §7.2";
        /// Spreads packets over the round trip: the next one goes `bytes / (factor x cwnd / SRTT)` after the last, where the
        /// algorithm has no rate of its own. Above 1, lest the window is never used up; 1.25 is what QUIC suggests. Off:
        /// packets go as soon as the window lets them.
        pacing: Option<f64> = None,
            Kind::Either(anabranch_settings::OFF, &Kind::Number { least: 0.0, most: 1000.0, above: true, step: 0.0 }), "RFC 9002 §7.7";
        /// Path MTU: the largest IP packet, with the IP header. With `path_mtu_discovery` the most that a path is tried with:
        /// the MTU of the interface.
        mtu: usize = 1500, Kind::bytes(LEAST_MTU as u64, MOST_MTU as u64), "RFC 9260 §7.3";
        /// Find out what each path carries, up to `mtu`, by HEARTBEATs with padding: packets begin at 1,200 bytes over IPv4 and
        /// 1,280 over IPv6. Not with RSCTP, whose HEARTBEATs measure something else. Off: packets have `mtu`.
        path_mtu_discovery: bool = false, Kind::Flag, "RFC 8899";
        /// Streams asked for outwards. How many of them are in use, `allocation` says.
        outbound_streams as streams: u16 = 10, Kind::count(1, 65_535), "RFC 9260 §5.1.1";
        /// The most streams allowed inwards.
        inbound_streams: u16 = 2048, Kind::count(1, 65_535), "RFC 9260 §5.1.1";
        /// How many of the negotiated streams carry the messages that are given without one, in turn.
        allocation: AllocationKind = AllocationKind::Negotiated, AllocationKind::KIND, "tsunoda2007 §II-B";
        /// Which stream's message goes next.
        scheduler: SchedulerKind = SchedulerKind::RoundRobin, SchedulerKind::KIND, "RFC 8260 §3";
        /// Values of the streams from 0 on, for schedulers that go by them: priorities, the smaller the sooner, under `priority`, where
        /// those that are not listed have 0; weights under `weighted_fair`, where they have 1. Off: none is listed.
        stream_values: Option<StreamValues> = None, <Option<StreamValues>>::KIND, "RFC 8260 §4.3.3";
        /// The rate estimate that each path keeps. An `allocation` that needs one has `westwood_re` where this is off.
        rate_estimate: Option<RateParameters> = None, <Option<RateParameters>>::KIND, "tsunoda2007 §II-B";
        /// Receive buffer: the first a_rwnd, bytes as the profile counts them.
        receive_buffer: u32 = 65_536, Kind::bytes(LEAST_RECEIVE_BUFFER, u32::MAX as u64), "RFC 9260 §6";
        /// A message of which so many bytes have come without a hole begins to be delivered before its end has, if nothing
        /// before it in its stream is missing. Off: only where it fills the receive buffer, which nothing else can make room in
        /// (RFC 9260 §6.9). See [`Association::poll_part`].
        ///
        /// [`Association::poll_part`]: crate::Association::poll_part
        partial_delivery_point: Option<usize> = None,
            Kind::Either(OFF, &Kind::Bytes { least: 1, most: MOST_BYTES }), "RFC 6458 §8.1.21";
        /// The largest message that [`Association::poll_message`] puts together of parts; one that is larger ends the
        /// association. A message that is not delivered in parts may be as large as the receive buffer.
        ///
        /// [`Association::poll_message`]: crate::Association::poll_message
        max_message: usize = 16 << 20, Kind::bytes(1, MOST_BYTES), "";
        /// Messages queued to be sent, bytes of user data; `send` refuses beyond it.
        send_buffer: usize = 256 * 1024, Kind::bytes(1, MOST_BYTES), "";
        /// Acknowledge every second packet, or after `sack_delay`; otherwise every packet.
        delayed_sack: bool = true, Kind::Flag, "RFC 9260 §6.2";
        /// How long a SACK may wait.
        sack_delay: Nanos = 200 * MILLISECOND, Kind::duration(0, MOST_SACK_DELAY), "RFC 9260 §6.2";
        /// RTO.Min, the floor of the retransmission timeout: no more than RTO.Max.
        rto_min: Nanos = SECOND, Kind::duration(LEAST_RTO, MOST_SPAN), "RFC 9260 §6.3.1 C6";
        /// RTO.Max, the ceiling of the retransmission timeout.
        rto_max: Nanos = 60 * SECOND, Kind::duration(LEAST_RTO, MOST_SPAN), "RFC 9260 §6.3.1 C7";
        /// HB.interval. Off: no HEARTBEAT on idle paths.
        hb_interval as heartbeat_interval: Option<Nanos> = Some(30 * SECOND),
            Kind::Either(OFF, &Kind::Duration { least: MILLISECOND, most: MOST_SPAN }), "RFC 9260 §8.3";
        /// Path.Max.Retrans: a path with more errors in a row is inactive.
        path_max_retrans: u32 = 5, Kind::count(0, MOST_ERRORS), "RFC 9260 §8.2";
        /// PotentiallyFailed.Max.Retrans (PFMR): with the switch `potentially_failed`, a path with more errors in a row is
        /// potentially failed. 0 is what the text recommends.
        pf_max_retrans: u32 = 0, Kind::count(0, MOST_ERRORS), "RFC 7829 §3";
        /// Primary.Switchover.Max.Retrans (PSMR): with more errors in a row the primary path gives its office to an active
        /// path for good: at least [`Config::least_primary_switch`]. Off: data returns to the primary once it answers again.
        primary_switch_max_retrans: Option<u32> = None,
            Kind::Either(OFF, &Kind::Count { least: 0, most: MOST_ERRORS }), "RFC 7829 §5";
        /// Association.Max.Retrans: with more errors in a row the association has failed.
        association_max_retrans: u32 = 10, Kind::count(0, MOST_ERRORS), "RFC 9260 §8.1";
        /// How long data that is left when either side has closed may go without the cumulative TSN of the peer's
        /// acknowledgements moving; then the association is aborted with
        /// [`CloseReason::ShutdownTimeout`](crate::CloseReason::ShutdownTimeout). Off: for ever. A policy of this host's: a peer that
        /// keeps its window closed and answers every probe is never found dead (RFC 9260 §6.1 A), and nobody is left here who
        /// would lose patience with it; TCP's like case is RFC 6429. Longer by default than it takes to find a silent peer dead.
        drain_timeout: Option<Nanos> = Some(900 * SECOND),
            Kind::Either(OFF, &Kind::Duration { least: MILLISECOND, most: MOST_SPAN }), "RFC 9260 §9.2";
        /// Max.Init.Retransmits: an INIT or COOKIE ECHO that was sent again so often gives up.
        max_init_retransmits: u32 = 8, Kind::count(0, MOST_ERRORS), "RFC 9260 §5.1.6";
        /// Valid.Cookie.Life.
        valid_cookie_life: Nanos = 60 * SECOND, Kind::duration(MILLISECOND, MOST_SPAN), "RFC 9260 §5.1.3";
        /// Several DATA chunks share a packet where they fit.
        bundling: bool = true, Kind::Flag, "RFC 9260 §6.10";
        /// A message that needs several chunks begins in the room that the end of the one before leaves in its packet. Packets are
        /// then of one size, which a system sends by one call, where they else end short with each message. Without `bundling` it
        /// has no effect.
        fill_packets: bool = false, Kind::Flag, "RFC 9260 §6.9, §6.10";
        /// DATA rides along with the COOKIE ECHO, half a round trip before the association is up on this side. With the COOKIE
        /// ACK it always may.
        data_with_cookie_echo: bool = false, Kind::Flag, "RFC 9260 §5.1 C";
        /// Reading sends a SACK of its own once the window is wider than the peer was told by so many bytes. Off: only where
        /// the peer had been told that it is closed. A peer that was told of a narrow window sends a lone packet into it, which
        /// waits for `sack_delay`; an application that reads at its own pace should not be slowed by that.
        window_update: Option<u32> = None,
            Kind::Either(OFF, &Kind::Bytes { least: 1, most: u32::MAX as u64 }), "RFC 9260 §6.2";
        /// The INIT has no optional parameter, for peers that refuse or misread one they do not know (pion/sctp, sctp-proto).
        /// Addresses beside the first are then not told.
        bare_init: bool = false, Kind::Flag, "RFC 9260 §3.3.2.1";
        /// Speak partial reliability with peers that do: messages may be given up. Off: every message is delivered, whatever is said
        /// of it.
        partial_reliability: bool = false, Kind::Flag, "RFC 3758 §3.1";
        /// With `partial_reliability`, messages that are not acknowledged after so long are given up, where nothing else is said of
        /// them.
        lifetime: Option<Nanos> = None,
            Kind::Either(OFF, &Kind::Duration { least: 1, most: MOST_SPAN }), "RFC 3758 §4.1";
        /// With `partial_reliability`, a message is given up when a chunk of it would be sent again more often than this, where nothing
        /// else is said of it.
        max_retransmits: Option<u32> = None,
            Kind::Either(OFF, &Kind::Count { least: 0, most: MOST_ERRORS }), "RFC 7496 §3.1";
        /// With `partial_reliability`, the priority of messages of which nothing else is said: the smaller the number, the higher. Where the
        /// send buffer is full, messages of a larger number that were not begun are given up for one of a smaller.
        priority: Option<u32> = None,
            Kind::Either(OFF, &Kind::Count { least: 0, most: MOST_ERRORS }), "RFC 7496 §3.2";
        /// Packets go without a checksum where the peer agrees, and are taken so: the lower layer finds damaged ones, by the method
        /// named. In the simulator that is true of links that do not corrupt.
        zero_checksum: ZeroChecksum = ZeroChecksum::Off, ZeroChecksum::KIND, "RFC 9653 §5";
        /// Speak RE-CONFIG with peers that do: streams can be reset and added. Off: streams are what the handshake settled.
        reconfiguration: bool = false, Kind::Flag, "RFC 6525 §5.1.1";
        /// With `reconfiguration`, the peer may reset streams, and have streams of this side reset. Off: it is told that this is
        /// denied.
        accept_stream_resets: bool = true, Kind::Flag, "RFC 6525 §6.3.1";
        /// With `reconfiguration`, the peer may let all numbers of both sides begin anew.
        accept_association_reset: bool = true, Kind::Flag, "RFC 6525 §6.3.1";
        /// With `reconfiguration`, the peer may add streams: its own up to `inbound_streams`, and this side's.
        accept_added_streams: bool = true, Kind::Flag, "RFC 6525 §6.3.1";
    }
    beside {
        /// Which text is followed, and the switches turned from it.
        profile: Profile = Profile::default();
        /// The numbers of algorithms that have their own, but those of `binomial` and `rsctp`, which are switches
        /// of the profile.
        tuning: Tuning = Tuning::default();
        /// This host's addresses, listed in INIT or INIT ACK if there are several; empty: the one the packets come from.
        addresses: Vec<IpAddr> = Vec::new();
        /// Bytes that an encapsulation puts between IP and SCTP (8 for UDP, RFC 6951): 32 at most.
        encapsulation: usize = 0;
        /// Compute and verify CRC32c; a simulator may save the time.
        checksum: bool = true;
    }
}

profiled!(Config, Profile);

impl Config {
    /// The least that [`Config::primary_switch_max_retrans`] may be: PFMR, or Path.Max.Retrans where paths cannot be
    /// potentially failed (RFC 7829 §5, rule 1).
    pub fn least_primary_switch(&self) -> u32 {
        if self.profile.potentially_failed {
            self.pf_max_retrans.min(self.path_max_retrans)
        } else {
            self.path_max_retrans
        }
    }

    /// The largest SCTP packet to `remote`, bytes with the common header, without IP and encapsulation.
    pub fn max_packet(&self, remote: IpAddr) -> usize {
        mtu::max_packet(self.mtu, remote, self.encapsulation)
    }

    /// The address of this host to reach `remote` from: of those in [`Config::addresses`] and of its family the one that
    /// has the longest prefix in common with it (as RFC 6724 §5, rule 8), `preferred` where several have. A second network
    /// is thus reached, and answered, over itself, and not over the one that may have failed. Without a list it is
    /// `preferred`. `None` if there is none of the family.
    pub(crate) fn local_address_for(
        &self,
        remote: IpAddr,
        preferred: Option<IpAddr>,
    ) -> Option<IpAddr> {
        let preferred = preferred.filter(|local| local.is_ipv4() == remote.is_ipv4());
        let mut best = preferred.map(|local| (common_prefix(local, remote), local));
        for &local in &self.addresses {
            let common = common_prefix(local, remote);
            if local.is_ipv4() == remote.is_ipv4() && best.is_none_or(|(most, _)| common > most) {
                best = Some((common, local));
            }
        }
        best.map(|(_, local)| local)
    }
}

//! Everything that can be set about an endpoint and its associations.

mod check;

use std::net::IpAddr;

use anabranch_congestion::CongestionControl;
use anabranch_congestion::estimator::PathEstimator;
use anabranch_congestion::sctp_algorithms::{self, Algorithm};
use anabranch_congestion::sctp_newreno::SctpParameters;
use anabranch_congestion::tuning::Tuning;
use anabranch_congestion::westwood_rate::{RateParameters, WestwoodRate};
use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};

pub use check::ConfigError;

use crate::path::{Discovery, mtu};
use crate::profile::{IdleDecay, Profile, WindowUnit};
use crate::tx::allocation::AllocationKind;

/// Which stream's message goes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchedulerKind {
    /// One message of each stream in turn.
    #[default]
    RoundRobin,
    /// Messages in the order in which they were given.
    Fcfs,
}

impl SchedulerKind {
    /// The scheduler of that name: `round_robin` or `fcfs`.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "round_robin" => Some(Self::RoundRobin),
            "fcfs" => Some(Self::Fcfs),
            _ => None,
        }
    }
}

/// Settings of an endpoint; ports are the endpoint's own business. The defaults are those of RFC 9260 §16.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which text is followed, and the switches turned from it.
    pub profile: Profile,
    /// The congestion control algorithm of every path; see [`sctp_algorithms::ALGORITHMS`].
    pub congestion: &'static Algorithm,
    /// The numbers of algorithms that have their own, but those of `binomial` and `rsctp`, which are switches
    /// of the profile.
    pub tuning: Tuning,
    /// This host's addresses, listed in INIT or INIT ACK if there are several; empty: the one the packets come from.
    pub addresses: Vec<IpAddr>,
    /// Path MTU: the largest IP packet, 128 to 65,535 bytes with the IP header. With [`Config::path_mtu_discovery`] the most that a path is
    /// tried with: the MTU of the interface.
    pub mtu: usize,
    /// Find out what each path carries, by HEARTBEATs with padding (RFC 8899, RFC 4820): packets begin at 1,200 bytes over IPv4
    /// and 1,280 over IPv6. Not with RSCTP, whose HEARTBEATs measure something else. Off: packets have [`Config::mtu`].
    pub path_mtu_discovery: bool,
    /// Bytes that an encapsulation puts between IP and SCTP (8 for UDP, RFC 6951): 32 at most.
    pub encapsulation: usize,
    /// Receive buffer: the first a_rwnd, bytes as the profile counts them. At least 1500 (RFC 9260 §6).
    pub receive_buffer: u32,
    /// A message of which so many bytes have come without a hole begins to be delivered before its end has, if nothing
    /// before it in its stream is missing (SCTP_PARTIAL_DELIVERY_POINT, RFC 6458 §8.1.21). `None`: only where it fills the
    /// receive buffer, which nothing else can make room in (RFC 9260 §6.9). See [`Association::poll_part`].
    ///
    /// [`Association::poll_part`]: crate::Association::poll_part
    pub partial_delivery_point: Option<usize>,
    /// The largest message that [`Association::poll_message`] puts together of parts, bytes; one that is larger ends the
    /// association. A message that is not delivered in parts may be as large as the receive buffer.
    ///
    /// [`Association::poll_message`]: crate::Association::poll_message
    pub max_message: usize,
    /// Messages queued to be sent, bytes of user data; `send` refuses beyond it.
    pub send_buffer: usize,
    /// ssthresh before the first loss, bytes; `None`: the profile's.
    pub initial_ssthresh: Option<u64>,
    /// Acknowledge every second packet, or after [`Config::sack_delay`]; otherwise every packet (RFC 9260 §6.2).
    pub delayed_sack: bool,
    /// How long a SACK may wait: 500 ms at most (RFC 9260 §6.2).
    pub sack_delay: Nanos,
    /// RTO.Initial, from RTO.Min to RTO.Max; `None`: the profile's.
    pub rto_initial: Option<Nanos>,
    /// RTO.Min: 1 ms or more, and no more than RTO.Max.
    pub rto_min: Nanos,
    /// RTO.Max: a day at most.
    pub rto_max: Nanos,
    /// HB.interval, a day at most; `None`: no HEARTBEAT on idle paths.
    pub hb_interval: Option<Nanos>,
    /// Path.Max.Retrans: a path with more errors in a row is inactive.
    pub path_max_retrans: u32,
    /// PotentiallyFailed.Max.Retrans (PFMR): with the switch `potentially_failed`, a path with more errors in a row is
    /// potentially failed (RFC 7829 §3). 0 is what that text recommends.
    pub pf_max_retrans: u32,
    /// Primary.Switchover.Max.Retrans (PSMR): with more errors in a row the primary path gives its office to an active
    /// path for good (RFC 7829 §5): at least [`Config::least_primary_switch`]. `None`: data returns to the primary once it answers
    /// again.
    pub primary_switch_max_retrans: Option<u32>,
    /// Association.Max.Retrans: with more errors in a row the association has failed.
    pub association_max_retrans: u32,
    /// How long data that is left when either side has closed may go without the cumulative TSN of the peer's
    /// acknowledgements moving; then the association is aborted with
    /// [`CloseReason::ShutdownTimeout`](crate::CloseReason::ShutdownTimeout). `None`: for ever. A policy of this host's: a peer that
    /// keeps its window closed and answers every probe is never found dead (RFC 9260 §6.1 A), and nobody is left here who
    /// would lose patience with it; TCP's like case is RFC 6429. Longer by default than it takes to find a silent peer dead.
    pub drain_timeout: Option<Nanos>,
    /// Max.Init.Retransmits.
    pub max_init_retransmits: u32,
    /// Valid.Cookie.Life: from 1 ms to a day.
    pub valid_cookie_life: Nanos,
    /// Streams asked for outwards: 1 to 65535.
    pub outbound_streams: u16,
    /// The most streams allowed inwards: 1 to 65535.
    pub inbound_streams: u16,
    /// Several DATA chunks share a packet where they fit (RFC 9260 §6.10).
    pub bundling: bool,
    /// DATA rides along with the COOKIE ECHO, half a round trip before the association is up on this side
    /// (RFC 9260 §5.1 C). With the COOKIE ACK it always may.
    pub data_with_cookie_echo: bool,
    /// Which stream's message goes next.
    pub scheduler: SchedulerKind,
    /// How many streams carry messages that are given without one.
    pub allocation: AllocationKind,
    /// The rate estimate each path keeps; `None`: none, unless [`Config::allocation`] needs one, which then is
    /// [`RateParameters::RE`].
    pub rate_estimate: Option<RateParameters>,
    /// Reading sends a SACK of its own once the window is wider than the peer was told by so many bytes; `None`: only where
    /// the peer had been told that it is closed. A peer that was told of a narrow window sends a lone packet into it, which
    /// waits for [`Config::sack_delay`]; an application that reads at its own pace should not be slowed by that.
    pub window_update: Option<u32>,
    /// The INIT has no optional parameter, for peers that refuse or misread one they do not know (pion/sctp, sctp-proto).
    /// Addresses beside the first are then not told.
    pub bare_init: bool,
    /// Compute and verify CRC32c; a simulator may save the time.
    pub checksum: bool,
}

impl Config {
    /// The defaults of RFC 9260 §16 under `profile`.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            congestion: &sctp_algorithms::ALGORITHMS[0],
            tuning: Tuning::default(),
            addresses: Vec::new(),
            mtu: 1500,
            path_mtu_discovery: false,
            encapsulation: 0,
            receive_buffer: 65536,
            partial_delivery_point: None,
            max_message: 16 << 20,
            send_buffer: 256 * 1024,
            initial_ssthresh: None,
            delayed_sack: true,
            sack_delay: 200 * MILLISECOND,
            rto_initial: None,
            rto_min: SECOND,
            rto_max: 60 * SECOND,
            hb_interval: Some(30 * SECOND),
            path_max_retrans: 5,
            pf_max_retrans: 0,
            primary_switch_max_retrans: None,
            association_max_retrans: 10,
            drain_timeout: Some(900 * SECOND),
            max_init_retransmits: 8,
            valid_cookie_life: 60 * SECOND,
            outbound_streams: 10,
            inbound_streams: 2048,
            bundling: true,
            data_with_cookie_echo: false,
            scheduler: SchedulerKind::RoundRobin,
            allocation: AllocationKind::Negotiated,
            rate_estimate: None,
            window_update: None,
            bare_init: false,
            checksum: true,
        }
    }

    /// The least that [`Config::primary_switch_max_retrans`] may be: PFMR, or Path.Max.Retrans where paths cannot be
    /// potentially failed (RFC 7829 §5, rule 1).
    pub fn least_primary_switch(&self) -> u32 {
        if self.profile.potentially_failed {
            self.pf_max_retrans.min(self.path_max_retrans)
        } else {
            self.path_max_retrans
        }
    }

    /// RTO.Initial, overridden or the profile's.
    pub fn rto_initial(&self) -> Nanos {
        self.rto_initial.unwrap_or(self.profile.rto_initial.0)
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

    /// The numbers that a congestion controller of a new path to `remote` starts with.
    pub fn congestion_parameters(&self, remote: IpAddr) -> SctpParameters {
        let profile = &self.profile;
        let unit = self.window_unit(remote, self.first_mtu(remote));
        SctpParameters {
            unit,
            initial_cwnd: profile.initial_cwnd.bytes(unit, remote.is_ipv6()),
            initial_ssthresh: self.initial_ssthresh.unwrap_or(profile.initial_ssthresh),
            floor_units: profile.ssthresh_floor,
            slow_start_at_ssthresh: profile.slow_start_at_ssthresh,
            growth_needs_full_cwnd: profile.growth_needs_full_cwnd,
            growth_needs_cumulative_advance: profile.growth_needs_cumulative_advance,
            unfilled_credit: profile.unfilled_credit,
            repeated_timeout_keeps_ssthresh: profile.repeated_timeout_keeps_ssthresh,
            idle_decay_above_units: (profile.idle_decay == IdleDecay::SinceLastSend).then_some(2),
            idle_decay_sets_ssthresh: profile.idle_decay_sets_ssthresh,
        }
    }

    /// The path MTU that a path to `remote` begins with.
    pub(crate) fn first_mtu(&self, remote: IpAddr) -> usize {
        self.new_discovery(remote)
            .map_or(self.mtu, |discovery| discovery.pmtu())
    }

    /// What finds the MTU of a path to `remote`.
    pub(crate) fn new_discovery(&self, remote: IpAddr) -> Option<Discovery> {
        let wanted = self.path_mtu_discovery && !self.profile.rsctp;
        wanted.then(|| Discovery::new(remote.is_ipv6(), self.mtu))
    }

    /// The unit of cwnd on a path of that MTU.
    pub(crate) fn window_unit(&self, remote: IpAddr, mtu: usize) -> u64 {
        match self.profile.window_unit {
            WindowUnit::Mtu => mtu as u64,
            WindowUnit::Pmdcs => {
                let max_packet = mtu::max_packet(mtu, remote, self.encapsulation);
                let counts = self.profile.cwnd_counts;
                counts.bytes(mtu::max_user_data(max_packet))
            }
        }
    }

    /// A rate estimator for a new path, if one is asked for or needed.
    pub(crate) fn new_path_estimator(&self) -> Option<Box<dyn PathEstimator>> {
        let needed = self.allocation.needs_rate().then_some(RateParameters::RE);
        let parameters = self.rate_estimate.or(needed)?;
        Some(Box::new(WestwoodRate::new(parameters)))
    }

    /// A congestion controller for a new path to `remote`.
    pub(crate) fn new_congestion_control(&self, remote: IpAddr) -> Box<dyn CongestionControl> {
        let tuning = Tuning {
            binomial: self.profile.binomial_parameters(),
            rsctp: self.profile.rsctp_parameters(),
            ..self.tuning
        };
        (self.congestion.make)(&self.congestion_parameters(remote), &tuning)
    }
}

/// Leading bits that two addresses of one family share; 0 for two families.
fn common_prefix(one: IpAddr, other: IpAddr) -> u32 {
    match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        _ => 0,
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new(Profile::default())
    }
}

//! Construction of a sender.

use anabranch_wire::Tsn;

use super::Sender;
use super::burst::Burst;
use super::cmt::Cmt;
use super::memory_limits::most_unacknowledged;
use super::optional_recovery::OptionalRecovery;
use super::outstanding::Outstanding;
use super::per_message_options::ChunkAuthKeys;
use super::send_queue::SendQueue;
use crate::config::Config;
use crate::mtu::DATA_HEADER;
use crate::profile::SenderProfile;
use crate::stats::SenderCounters;
use crate::stream_allocation::StreamsInUse;
use crate::stream_scheduler::Scheduler;

/// Components of a sender that need allocations, created before the sender itself.
pub(super) struct SenderComponents {
    scheduler: Scheduler,
    in_use: StreamsInUse,
    cmt: Option<Box<Cmt>>,
    optional_recovery: Option<Box<OptionalRecovery>>,
}

impl SenderComponents {
    /// Creates the components for these settings.
    pub(super) fn of(config: &Config) -> Self {
        Self {
            scheduler: Scheduler::new(config.scheduler),
            in_use: StreamsInUse::new(&config.stream_allocation),
            cmt: Cmt::of(config),
            optional_recovery: OptionalRecovery::of(config),
        }
    }
}

impl Sender {
    /// Sender whose first chunk will have TSN `initial_tsn`. No data is sent before
    /// [`Sender::set_peer`].
    pub fn new(config: &Config, initial_tsn: Tsn) -> Self {
        let mut sender = Self::with(config, initial_tsn, SenderComponents::of(config));
        sender.set_up(config);
        sender
    }

    /// Constructs the sender from components that are already allocated. Because nothing can fail
    /// after these allocations, the caller can build the sender in place, without a move. The
    /// caller must call [`Self::set_up`] next.
    #[inline(always)]
    pub(super) fn with(config: &Config, initial_tsn: Tsn, components: SenderComponents) -> Self {
        Self {
            profile: SenderProfile::of(&config.profile),
            bundling: config.bundling,
            paced: config.pacing.is_some(),
            pack_messages: config.pack_messages,
            header: DATA_HEADER,
            interleaving: false,
            send_buffer: config.send_buffer,
            most_unacknowledged: most_unacknowledged(config),
            initial_tsn,
            streams: 0,
            queue: SendQueue::of(components.scheduler),
            in_use: components.in_use,
            outstanding: Outstanding::new(initial_tsn),
            gaps: Vec::new(),
            reneged_on: None,
            a_rwnd: 0,
            peer_rwnd: 0,
            rwnd_in_flight: 0,
            rwnd_marked: 0,
            recovery_until: None,
            highest_newly_acked: None,
            one_packet: false,
            gate_closed: false,
            timed_out: false,
            probe: None,
            quiet_since: 0,
            finishing: false,
            echoed: false,
            pr_sctp: None,
            receipts: None,
            sent_streams: None,
            forward_due: false,
            tsns_reset: false,
            statistics: SenderCounters::default(),
            burst: Burst::default(),
            cmt: components.cmt,
            optional_recovery: components.optional_recovery,
            blocks: Vec::new(),
            acks: Vec::new(),
            last_data_at: 0,
            keys: ChunkAuthKeys::default(),
            not_granted: Default::default(),
        }
    }

    /// Applies settings that most associations do not use.
    pub(super) fn set_up(&mut self, config: &Config) {
        let values = config.stream_values.iter().flat_map(|it| &it.0);
        for (stream, value) in (0..=u16::MAX).zip(values) {
            self.queue.set_value(stream, *value);
        }
        if self.cmt.is_some() {
            self.outstanding.use_paths_at_once();
        }
    }
}

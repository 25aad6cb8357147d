//! Optional recovery algorithms of a sender, in addition to missing reports and T3-rtx: detection
//! of losses by time ([`rack`](super::rack)), reductions of cwnd that can be undone
//! ([`spurious_retransmission`](super::spurious_retransmission), [`f_rto`](super::f_rto)) or are
//! spread over a recovery ([`prr`](super::prr)), and measurement of delivery rates. Each is used
//! only if a setting or the congestion control needs it.
//!
//! A sender that uses none of these algorithms has no [`OptionalRecovery`], and pays one pointer
//! check per event.

use anabranch_congestion::recovery::{Prr, RackTransmission};
use anabranch_transport::{Nanos, Trace};
use anabranch_wire::Tsn;

use super::Sender;
use super::f_rto::FRto;
use super::spurious_retransmission::ReductionUndo;
use crate::config::Config;
use crate::path::{PathId, Paths, Sending};

/// Tail loss probe that must be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeDue {
    pub path: PathId,
    /// Chunk that the probe retransmits; `None`: the probe is new data.
    pub repeats: Option<Tsn>,
}

/// State of the optional recovery algorithms that is common to all paths.
#[derive(Debug)]
pub(super) struct OptionalRecovery {
    /// Whether losses are detected by time (RACK).
    pub rack: bool,
    /// Whether tail loss probes are sent (TLP).
    pub probes: bool,
    /// Maximum delay of the peer's SACKs, in nanoseconds.
    pub most_delay: Nanos,
    /// Tail loss probe that must be sent, if any.
    pub due: Option<ProbeDue>,
    /// TSNs that the current SACK reports as duplicates.
    pub duplicates: Vec<Tsn>,
    /// Whether the current chunk is marked for retransmission without being considered lost.
    pub no_loss: bool,
    /// Whether fast recovery sends in proportion to delivered data (PRR).
    pub proportional: bool,
    /// Whether reductions of cwnd are undone if all retransmissions were duplicates.
    pub undoes: bool,
    pub reduction_undo: Option<ReductionUndo>,
    /// F-RTO state, if spurious timeouts should be detected.
    pub f_rto: Option<FRto>,
}

impl OptionalRecovery {
    /// Whether `config` needs this state, for example for rate samples of the congestion control.
    pub fn is_wanted(config: &Config) -> bool {
        config.rack
            || config.proportional_rate_reduction
            || config.undo_spurious_reductions
            || config.frto
            || config.samples_rates()
    }

    /// State for `config`; `None` if it is not needed.
    pub fn of(config: &Config) -> Option<Box<Self>> {
        Self::is_wanted(config).then(|| {
            Box::new(Self {
                rack: config.rack,
                probes: config.rack && config.tail_loss_probe,
                most_delay: if config.delayed_sack {
                    config.sack_delay
                } else {
                    0
                },
                due: None,
                duplicates: Vec::new(),
                no_loss: false,
                proportional: config.proportional_rate_reduction,
                undoes: config.undo_spurious_reductions,
                reduction_undo: None,
                f_rto: config.frto.then(FRto::default),
            })
        })
    }
}

impl Sender {
    /// Whether losses are detected by time (RACK).
    pub(super) fn finds_by_time(&self) -> bool {
        self.optional_recovery.as_ref().is_some_and(|it| it.rack)
    }

    /// Number of a sent chunk, which does not wrap around: 0 for the first chunk of the
    /// association.
    pub(super) fn number_of(&self, tsn: Tsn) -> u64 {
        let behind = self.outstanding.next_tsn().distance_from(tsn);
        self.statistics.chunks_sent.saturating_sub(behind.into())
    }

    /// Records that chunk `tsn` is sent on path `id`. `flight`: bytes in flight including this
    /// chunk.
    fn note_sending(&mut self, now: Nanos, tsn: Tsn, id: PathId, flight: u64, paths: &mut Paths) {
        let transmission = RackTransmission {
            sent_at: now,
            number: self.number_of(tsn),
        };
        let length = self
            .outstanding
            .get(tsn)
            .map_or(0, |chunk| chunk.fragment.user_data.len());
        let size = self.profile.cwnd_counts.bytes(length);
        let entry = paths.get_mut(id);
        if let Some(state) = &mut entry.rack {
            state.sent.push_back(Sending { tsn, transmission });
        }
        if let Some(sampler) = &mut entry.sampler {
            sampler.on_sent(transmission, transmission.number, size, flight);
        }
    }

    /// Records that a chunk is retransmitted.
    #[cold]
    pub(super) fn note_sent_again(&mut self, now: Nanos, tsn: Tsn, id: PathId, paths: &mut Paths) {
        let flight = paths.get(id).flightsize;
        self.note_sending(now, tsn, id, flight, paths);
        self.count_sent_again(tsn);
    }

    /// Records that a packet of `bytes` bytes was sent on path `id`, with these numbers of
    /// retransmitted and new chunks.
    #[cold]
    pub(super) fn note_filled(
        &mut self,
        now: Nanos,
        id: PathId,
        (again, new): (usize, usize),
        bytes: u64,
        paths: &mut Paths,
    ) {
        let next = self.outstanding.next_tsn();
        let length = |sender: &Self, tsn: Tsn| {
            let chunk = sender.outstanding.get(tsn);
            let length = chunk.map_or(0, |chunk| chunk.fragment.user_data.len());
            sender.profile.cwnd_counts.bytes(length)
        };
        let tsns = |behind: u32| Tsn(next.0.wrapping_sub(behind));
        let new_bytes: u64 = (1..=new as u32)
            .map(|behind| length(self, tsns(behind)))
            .sum();
        let mut flight = paths.get(id).flightsize.saturating_sub(new_bytes);
        for behind in (1..=new as u32).rev() {
            flight += length(self, tsns(behind));
            self.note_sending(now, tsns(behind), id, flight, paths);
        }
        let entry = paths.get_mut(id);
        if let Some(prr) = &mut entry.prr {
            prr.on_sent(bytes);
        }
        if self.queue.is_empty() && entry.has_room() {
            let flight = entry.flightsize;
            if let Some(sampler) = &mut entry.sampler {
                sampler.on_app_limited(flight);
            }
        }
        if self.finds_by_time() {
            self.follow_filled(now, id, again > 0, paths);
        }
    }

    /// Records that a chunk was acknowledged, with path and time of its last transmission, and its
    /// number of transmissions.
    #[cold]
    pub(super) fn note_delivered(
        &mut self,
        now: Nanos,
        tsn: Tsn,
        (id, sent_at, times): (PathId, Nanos, u32),
        paths: &mut Paths,
    ) {
        let number = self.number_of(tsn);
        let transmission = RackTransmission { sent_at, number };
        let recovery = self
            .optional_recovery
            .as_mut()
            .and_then(|it| it.f_rto.as_mut());
        if let Some(recovery) = recovery {
            recovery.on_acknowledged(tsn, sent_at);
        }
        let entry = paths.get_mut(id);
        if let Some(state) = &mut entry.rack {
            state.rack.on_delivered(now, transmission, times > 1);
        }
        if let Some(sampler) = &mut entry.sampler {
            sampler.on_delivered(now, transmission);
        }
    }

    /// Records that a chunk is considered lost and no longer in flight.
    #[cold]
    pub(super) fn note_lost(&mut self, tsn: Tsn, paths: &mut Paths) {
        let number = self.number_of(tsn);
        let Some(chunk) = self.outstanding.get(tsn) else {
            return;
        };
        let transmission = RackTransmission {
            sent_at: chunk.sent_at,
            number,
        };
        let entry = paths.get_mut(chunk.path);
        let Some(sampler) = &mut entry.sampler else {
            return;
        };
        if self.optional_recovery.as_ref().is_some_and(|it| it.no_loss) {
            sampler.forget(transmission);
        } else if let Some(lost) = sampler.on_lost(transmission) {
            entry.cc.on_packet_lost(&lost);
        }
    }

    /// Records the duplicate TSNs in the current SACK.
    pub(super) fn note_duplicates(&mut self, duplicates: impl Iterator<Item = Tsn>) {
        if let Some(recovery) = &mut self.optional_recovery {
            recovery.duplicates.clear();
            recovery.duplicates.extend(duplicates);
        }
    }

    /// Called after a SACK that newly acknowledged `chunks` chunks was processed. `gaps`: the SACK
    /// reports gaps.
    #[cold]
    pub(super) fn follow_sack(
        &mut self,
        now: Nanos,
        chunks: u32,
        gaps: bool,
        paths: &mut Paths,
        trace: &mut Trace,
    ) {
        let recovery = self.optional_recovery.as_mut();
        let duplicates = recovery.map(|recovery| std::mem::take(&mut recovery.duplicates));
        let duplicates = duplicates.unwrap_or_default();
        self.undo_if_spurious(now, &duplicates, paths, trace);
        self.step_f_rto(now, paths, trace);
        if self.finds_by_time() {
            self.follow_by_time(now, chunks, gaps, &duplicates, paths, trace);
        }
        self.spread_reductions(paths);
        for (_, entry) in paths.iter_mut() {
            if let Some(sampler) = &mut entry.sampler
                && entry.cc.limits_itself()
            {
                sampler.on_app_limited(entry.flightsize);
            }
        }
        if let Some(recovery) = &mut self.optional_recovery {
            recovery.duplicates = duplicates;
            recovery.duplicates.clear();
        }
    }

    /// Called before cwnd of a path is reduced for a loss. `flight`: bytes sent and not
    /// acknowledged, including lost ones.
    #[cold]
    pub(super) fn note_cut(&mut self, now: Nanos, id: PathId, flight: u64, paths: &mut Paths) {
        self.remember_window(id, paths);
        let proportional = self
            .optional_recovery
            .as_ref()
            .is_some_and(|it| it.proportional);
        let entry = paths.get_mut(id);
        if let Some(state) = &mut entry.rack {
            state.cut_at = now;
        }
        if proportional {
            entry.prr = Some(Box::new(Prr::new(flight)));
        }
    }
}

//! RSCTP of an association: contents of the HEARTBEATs that measure paths, and processing of their
//! answers ([`crate::rsctp`]).

use anabranch_congestion::Feedback;
use anabranch_congestion::estimator::PathEstimator;
use anabranch_transport::time::MICROSECOND;
use anabranch_transport::{Nanos, Path, Probe};
use anabranch_wire::parameter::{Parameter, Parameters};
use anabranch_wire::rsctp::{HeartbeatAckFields, HeartbeatFields, NO_LOSS_RATE, WHOLE};
use bytes::Bytes;

use super::Association;
use crate::discard::{DiscardCounts, DiscardReason};
use crate::event::Event;
use crate::path::mtu::{self, COMMON_HEADER};
use crate::path::{PathId, PathState, Role, SwitchRules};
use crate::profile::ProbeSize;
use crate::rsctp::{PathReport, Report};

impl Association {
    /// Creates the RSCTP state if RSCTP was negotiated (`spoken`).
    pub(crate) fn settle_rsctp(&mut self, spoken: bool) {
        self.rsctp = spoken.then(Box::default);
        self.paths.switch_rules = SwitchRules::of(&self.config.profile).filter(|_| spoken);
    }

    /// Starts the measurement of all paths when the first DATA is sent.
    pub(crate) fn note_data_sent(&mut self) {
        match &mut self.rsctp {
            Some(rsctp) if !rsctp.sending => rsctp.sending = true,
            _ => return,
        }
        for path in self.path_ids() {
            self.heartbeat_mut(path).send_now();
        }
    }

    /// Interval of HEARTBEATs to `path`; `None` if RSCTP is not measuring.
    pub(crate) fn rsctp_interval(&self, path: PathId) -> Option<Nanos> {
        self.rsctp.as_ref().filter(|rsctp| rsctp.sending)?;
        let profile = &self.config.profile;
        Some(if path == self.active_path {
            profile.rsctp_primary_interval.0
        } else {
            profile.rsctp_secondary_interval.0
        })
    }

    /// Purpose of the HEARTBEAT that is being sent to `path`.
    pub(crate) fn role_of_heartbeat(&mut self, path: PathId) -> Role {
        let second = self.second_heartbeat_due(path);
        let unconfirmed = self.paths.get(path).state == PathState::Unconfirmed;
        let carries_data = path == self.active_path;
        match &mut self.rsctp {
            Some(_) if second => Role::PairSecond,
            None => Role::Alive,
            Some(rsctp) if unconfirmed || !rsctp.sending => Role::Alive,
            Some(rsctp) if carries_data => {
                if std::mem::replace(&mut rsctp.marked, true) {
                    Role::Measure
                } else {
                    Role::Alive
                }
            }
            Some(_) => Role::PairFirst,
        }
    }

    /// Heartbeat Info for `path`. With RSCTP, it starts with the transmission time and the number
    /// of DATA chunks sent.
    pub(crate) fn heartbeat_info(&self, now: Nanos, path: PathId, own: Bytes) -> Bytes {
        if self.rsctp.is_none() {
            return own;
        }
        let fields = HeartbeatFields {
            current_time: (now / MICROSECOND) as u32,
            chunk_count: self.paths.get(path).carried.chunks,
            own,
        };
        fields.encode()
    }

    /// Heartbeat Info for the HEARTBEAT ACK, if it differs from the received `info`.
    pub(crate) fn answer_info(&mut self, now: Nanos, path: Path, info: Bytes) -> Option<Bytes> {
        let chunk = (8 + info.len()).next_multiple_of(4);
        let size = match self.config.profile.rsctp_probe_size {
            ProbeSize::Chunk => chunk,
            ProbeSize::Packet => {
                let headers = mtu::ip_header(path.remote) + self.config.encapsulation;
                headers + COMMON_HEADER + chunk
            }
        };
        let rsctp = self.rsctp.as_mut()?;
        let fields = HeartbeatFields::decode(info.clone())?;
        let report = rsctp.meter.heartbeat(now, path, &fields, size as u64);
        let fields = HeartbeatAckFields {
            available_bandwidth: report.available_bandwidth,
            chunk_loss_rate: report.chunk_loss_rate,
            echoed: info,
        };
        let parameters = Parameters::of(&[Parameter::HeartbeatInfo(fields.encode())]);
        Some(parameters.as_bytes().clone())
    }

    /// Splits the info of a HEARTBEAT ACK into this side's original info and the receiver's report.
    pub(crate) fn read_heartbeat_ack(&self, info: Bytes) -> Option<(Bytes, Option<Report>)> {
        if self.rsctp.is_none() {
            return Some((info, None));
        }
        let answer = HeartbeatAckFields::decode(info)?;
        let own = HeartbeatFields::decode(answer.echoed)?.own;
        let report = Report {
            available_bandwidth: answer.available_bandwidth,
            chunk_loss_rate: answer.chunk_loss_rate,
        };
        Some((own, Some(report)))
    }

    /// Counts `bytes` bytes of DATA received over `path`, including chunk headers and padding.
    #[inline]
    pub(crate) fn meter_data(&mut self, path: Path, bytes: u64) {
        if let Some(rsctp) = &mut self.rsctp {
            rsctp.meter.data(path, bytes);
        }
    }

    /// Processes a report of the receiver about `path`, whose nonce was verified. An implausible
    /// report is counted and has no effect.
    pub(crate) fn on_report(
        &mut self,
        now: Nanos,
        path: PathId,
        claim: &PathReport,
        discards: &mut DiscardCounts,
    ) {
        if !claim.is_plausible() {
            return discards.count(DiscardReason::HeartbeatReport);
        }
        let Report {
            available_bandwidth,
            chunk_loss_rate,
        } = claim.report;
        let carries_data = match claim.role {
            Role::Alive | Role::PairFirst => return,
            Role::Measure => true,
            Role::PairSecond => false,
        };
        let loss_rate = (carries_data && chunk_loss_rate != NO_LOSS_RATE)
            .then(|| f64::from(chunk_loss_rate) / f64::from(WHOLE));
        let entry = self.paths.get_mut(path);
        let feedback = Feedback {
            available_bandwidth: (available_bandwidth > 0).then(|| available_bandwidth.into()),
            loss_rate,
            srtt: entry.rto.srtt(),
            carries_data,
            peer_window: self.tx.advertised_rwnd(),
        };
        entry.receiver_mut(&self.config).on_feedback(now, &feedback);
        entry.feed_back(now, path, &feedback, &mut self.trace);
        let index = path.0.into();
        if let Some(bandwidth) = feedback.available_bandwidth {
            self.trace
                .record(now, Probe::AvailableBandwidth, index, 8.0 * bandwidth);
        }
        if let Some(rate) = loss_rate {
            self.trace.record(now, Probe::ChunkLossRate, index, rate);
        }
    }

    /// Handles a change of the path for new data, and reports a new primary path to the user.
    #[inline(always)]
    pub(crate) fn note_data_path(&mut self, now: Nanos) {
        let told = [self.known_primary, self.active_path];
        if [self.paths.primary(), self.paths.choose_for_new_data()] != told {
            self.change_data_path(now);
        }
    }

    #[cold]
    #[inline(never)]
    fn change_data_path(&mut self, now: Nanos) {
        let primary = self.paths.primary();
        if primary != self.known_primary {
            self.known_primary = primary;
            self.control.rare().primary_changes += 1;
            self.events.push_back(Event::PrimaryChanged {
                path: primary,
                address: self.paths.get(primary).path.remote,
            });
        }
        let path = self.paths.choose_for_new_data();
        if path == self.active_path {
            return;
        }
        let before = std::mem::replace(&mut self.active_path, path);
        self.trace.record(now, Probe::ActivePath, 0, path.0.into());
        let Some(rsctp) = &mut self.rsctp else { return };
        // Discard earlier loss reports, because they were measured while the path carried no data.
        rsctp.marked = false;
        if let Some(receiver) = &mut self.paths.get_mut(path).receiver {
            receiver.forget_losses();
        }
        if self.state.probes_paths() {
            self.heartbeat_mut(path).send_now();
            self.schedule_heartbeat(now, before);
        }
    }
}

//! Processing of the peer's ASCONF chunks (RFC 5061 §5.2, §5.3).

use std::net::IpAddr;

use anabranch_transport::{Nanos, Path};
use anabranch_wire::cause::{Cause, Causes};
use anabranch_wire::extension::{
    Asconf, AsconfAck, AsconfParameter, AsconfRequest, AsconfResponse, ExtensionCause,
};
use anabranch_wire::parameter::Parameters;
use anabranch_wire::tlv::{Tlv, TlvItem, TlvList};
use bytes::Bytes;

use super::super::{Association, ControlTask, Reply};
use crate::address::{MAX_PEER_ADDRESSES, is_unicast};
use crate::asconf::{MAX_REQUESTS, SerialClass};
use crate::discard::{DiscardCounts, DiscardReason};
use crate::event::Event;
use crate::path::{PathId, PathState};

/// Maximum number of bytes of an unrecognized parameter that an error cause repeats.
const MAX_ECHOED: usize = 32;

/// Why a request of the peer was refused.
enum Refusal {
    LastAddress,
    NoRoom,
    SourceAddress,
    /// The address is not usable here, or is not an address of the peer.
    Unresolvable,
    Unrecognized,
    /// An earlier request in the same chunk was refused (RFC 5061 §5.3 F11).
    BehindAnother,
    /// The setting `accept_address_changes` is off.
    NotAllowed,
}

impl Association {
    /// Processes an ASCONF whose AUTH was already verified.
    pub(in crate::association) fn on_asconf(
        &mut self,
        now: Nanos,
        path: Path,
        asconf: &Asconf,
        discards: &mut DiscardCounts,
    ) {
        if !self.may_send_asconf() {
            return discards.count(DiscardReason::WrongState);
        }
        let Some(changes) = self.address_changes() else {
            return discards.count(DiscardReason::WrongState);
        };
        let parameters = match changes.ack_cache.judge(asconf.serial) {
            SerialClass::Strange => return discards.count(DiscardReason::BadAsconf),
            SerialClass::Answered(parameters) => parameters,
            SerialClass::Next => {
                let Ok(answer) = self.carry_out(now, path, asconf) else {
                    discards.count(DiscardReason::BadAsconf);
                    return self.refuse_protocol("malformed parameters of ASCONF");
                };
                if let Some(changes) = self.address_changes_mut() {
                    changes.ack_cache.answered(answer.clone());
                }
                answer
            }
        };
        // Respond to the source address, verified or not (RFC 5061 §5.2 E7).
        let to = self.paths.find(path.remote);
        let to = to.unwrap_or_else(|| self.paths.choose_for_new_data());
        let parameters = TlvList::from_bytes(parameters);
        let serial = asconf.serial;
        self.reply(
            Reply::AsconfAck {
                to,
                ack: AsconfAck { serial, parameters },
            },
            discards,
        );
        self.answer_beside_asconf();
    }

    /// Performs the requests in order, and returns the response parameters. If all succeed, there
    /// are none (RFC 5061 §4.2.5).
    fn carry_out(&mut self, now: Nanos, path: Path, asconf: &Asconf) -> Result<Bytes, ()> {
        let requests: Result<Vec<Tlv>, ()> = asconf
            .parameters
            .raw()
            .map(|it| it.map_err(|_| ()))
            .collect();
        let requests = requests?;
        if requests.len() > MAX_REQUESTS {
            return Err(());
        }
        let mut responses = Vec::new();
        let mut all_done = true;
        let mut refusing = false;
        for tlv in requests {
            let id = tlv.value().first_chunk().ok_or(())?;
            let correlation_id = u32::from_be_bytes(*id);
            let done = match AsconfParameter::decode(tlv.clone()) {
                Ok(AsconfParameter::Request {
                    request, address, ..
                }) => {
                    let done = if refusing && request != AsconfRequest::SetPrimary {
                        Err(Refusal::BehindAnother)
                    } else if !self.config.accept_address_changes {
                        Err(Refusal::NotAllowed)
                    } else {
                        self.change(now, path, request, address.to_canonical())
                    };
                    // After a failure, this ASCONF adds and removes no more addresses (RFC 5061
                    // §5.3 F11).
                    refusing |= done.is_err() && request != AsconfRequest::SetPrimary;
                    done
                }
                Ok(AsconfParameter::Unknown(_)) => Err(Refusal::Unrecognized),
                // Unsupported or unknown address family (CVE-2014-7841).
                Err(_) => Err(Refusal::Unresolvable),
            };
            responses.push(match done {
                Ok(()) => AsconfResponse::Success { correlation_id },
                Err(refusal) => {
                    all_done = false;
                    let causes = refusal.causes(&tlv);
                    AsconfResponse::Error {
                        correlation_id,
                        causes,
                    }
                }
            });
        }
        Ok(if all_done {
            Bytes::new()
        } else {
            TlvList::of(&responses).as_bytes().clone()
        })
    }

    fn change(
        &mut self,
        now: Nanos,
        path: Path,
        request: AsconfRequest,
        address: IpAddr,
    ) -> Result<(), Refusal> {
        let wildcard = address.is_unspecified();
        let source = path.remote;
        match request {
            AsconfRequest::Add => {
                self.add_peer_address(path, if wildcard { source } else { address })
            }
            AsconfRequest::Delete if wildcard => {
                let kept = self.paths.find(source).ok_or(Refusal::Unresolvable)?;
                let others: Vec<_> = self.path_ids().filter(|&id| id != kept).collect();
                for id in others {
                    self.remove_path(now, id);
                }
                Ok(())
            }
            AsconfRequest::Delete => {
                let id = self.paths.find(address).ok_or(Refusal::Unresolvable)?;
                let usable = self.path_ids().filter(|&it| it != id);
                if !usable.into_iter().any(|it| !self.paths.get(it).disowned) {
                    return Err(Refusal::LastAddress);
                }
                if address == source {
                    return Err(Refusal::SourceAddress);
                }
                self.remove_path(now, id);
                Ok(())
            }
            AsconfRequest::SetPrimary => {
                let address = if wildcard { source } else { address };
                // An unverified address becomes the primary path once it is verified.
                self.set_primary(now, address)
                    .then_some(())
                    .ok_or(Refusal::Unresolvable)
            }
        }
    }

    fn add_peer_address(&mut self, path: Path, address: IpAddr) -> Result<(), Refusal> {
        let on_this_host = address.is_loopback() && !path.remote.is_loopback();
        if !is_unicast(address) || on_this_host {
            return Err(Refusal::Unresolvable);
        }
        if self.paths.find(address).is_some() {
            return Ok(());
        }
        // Do not reply from a local address that is not configured here.
        let own = &self.config.addresses;
        let arrived = Some(path.local).filter(|it| own.is_empty() || own.contains(it));
        let local = self.config.local_address_for(address, arrived);
        let local = local.ok_or(Refusal::Unresolvable)?;
        if self.paths.addresses().count() >= MAX_PEER_ADDRESSES {
            return Err(Refusal::NoRoom);
        }
        let way = Path::new(local, address);
        let added = self
            .paths
            .add_or_replace(&self.config, way, PathState::Unconfirmed);
        let id = added.ok_or(Refusal::NoRoom)?;
        self.addresses_changed = true;
        self.heartbeat_mut(id).request();
        self.events
            .push_back(Event::PeerAddressAdded { path: id, address });
        Ok(())
    }

    /// Removes the peer's address `id`. Data in flight to it is retransmitted on another path.
    pub(super) fn remove_path(&mut self, now: Nanos, id: PathId) {
        if self.paths.get(id).disowned {
            return;
        }
        let address = self.paths.get(id).path.remote;
        self.tx.lose_path(now, id, &mut self.paths, &mut self.trace);
        self.paths.get_mut(id).t3_deadline = None;
        self.paths.deactivate(id);
        self.addresses_changed = true;
        self.forget_probes();
        let next = self.paths.choose_for_new_data();
        if self.sack_path == id {
            self.sack_path = next;
        }
        if self.cookie_ack == Some(id) {
            self.cookie_ack = Some(next);
        }
        if let Some(retry) = self.state.retry_mut().filter(|retry| retry.path == id) {
            retry.path = next;
        }
        let retry = self.asking_mut().and_then(|it| it.retry_mut());
        if let Some(retry) = retry.filter(|it| it.path == id) {
            retry.path = next;
        }
        if !self.paths.has_verified() {
            self.pending_control.set(ControlTask::NoVerifiedPath);
            // Probe all addresses, including inactive ones, because at least one must be verified
            // before data can be sent.
            for other in self.path_ids() {
                self.request_heartbeat(other);
            }
        }
        (self.replies).change(|it| it.retain(|reply| reply.to() != id));
        self.events
            .push_back(Event::PeerAddressRemoved { path: id, address });
        let primary = self.paths.primary();
        if primary != self.known_primary {
            self.known_primary = primary;
            let address = self.paths.get(primary).path.remote;
            self.events.push_back(Event::PrimaryChanged {
                path: primary,
                address,
            });
        }
        self.note_data_path(now);
    }
}

impl Refusal {
    /// Error causes that report `request` to the peer. A long request is truncated.
    fn causes(&self, request: &Tlv) -> Causes {
        let parameter = request
            .whole()
            .slice(..request.whole().len().min(MAX_ECHOED));
        let cause = match self {
            Self::LastAddress => ExtensionCause::DeleteLastAddress { parameter },
            Self::NoRoom | Self::BehindAnother => ExtensionCause::ResourceShortage { parameter },
            Self::SourceAddress => ExtensionCause::DeleteSourceAddress { parameter },
            Self::NotAllowed => ExtensionCause::NoAuthorization { parameter },
            Self::Unresolvable => return Causes::of(&[Cause::UnresolvableAddress { parameter }]),
            Self::Unrecognized => {
                let parameters = Parameters::from_bytes(parameter);
                return Causes::of(&[Cause::UnrecognizedParameters { parameters }]);
            }
        };
        Causes::from_bytes(TlvList::of(&[cause]).as_bytes().clone())
    }
}

//! Sender of ASCONF requests: pending requests, the outstanding ASCONF, and the resulting local
//! addresses (RFC 5061 §5.1).

use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_wire::cause::code;
use anabranch_wire::extension::{
    Asconf, AsconfAck, AsconfParameter, AsconfRequest, AsconfResponse,
};
use anabranch_wire::tlv::TlvList;

use super::request::{AddressChange, AddressChangeOutcome};
use crate::address::unspecified_like;
use crate::control_retransmission::ControlRetransmission;
use crate::path::PathId;

/// Maximum number of requests per ASCONF, so that the responses with their error causes fit into
/// one packet.
pub(crate) const MAX_REQUESTS: usize = 10;
/// Maximum number of outstanding ASCONFs: one, and a second ASCONF when the first is retransmitted
/// (RFC 5061 §5.5).
const MAX_FLIGHTS: usize = 2;
/// Number of recently removed addresses that are remembered, because packets to them may still
/// arrive.
const MAX_LEFT: usize = 8;

/// Outstanding ASCONF that waits for its ASCONF-ACK.
#[derive(Debug)]
pub(crate) struct OutstandingAsconf {
    /// The ASCONF chunk, which is retransmitted unchanged (RFC 5061 §5.1 B4).
    pub(crate) asconf: Asconf,
    /// Requests, by correlation ID.
    requests: Vec<(u32, AddressChange)>,
}

impl OutstandingAsconf {
    fn changes(&self) -> impl Iterator<Item = &AddressChange> {
        self.requests.iter().map(|(_, change)| change)
    }

    /// Outcome of each request according to the peer's ASCONF-ACK (RFC 5061 §5.1 A6 to A8).
    /// Unreadable parameters are ignored.
    fn outcomes(&self, ack: &AsconfAck) -> Vec<(AddressChange, AddressChangeOutcome)> {
        let mut said = Vec::new();
        for response in ack.parameters.iter().map_while(Result::ok) {
            match response {
                AsconfResponse::Success { correlation_id } => {
                    said.push((correlation_id, AddressChangeOutcome::Performed));
                }
                AsconfResponse::Error {
                    correlation_id,
                    causes,
                } => {
                    let first = causes.iter().next().and_then(Result::ok);
                    let cause = first.map(|cause| cause.code());
                    said.push((correlation_id, AddressChangeOutcome::Refused { cause }));
                }
                AsconfResponse::Unknown(_) => {}
            }
        }
        let mut unsaid = AddressChangeOutcome::Performed;
        let outcome = |&(id, change): &(u32, AddressChange)| {
            let of_it = said.iter().find(|(said, _)| *said == id);
            let outcome = of_it.map_or(unsaid, |(_, outcome)| *outcome);
            if outcome != AddressChangeOutcome::Performed {
                unsaid = AddressChangeOutcome::Refused { cause: None };
            }
            (change, outcome)
        };
        self.requests.iter().map(outcome).collect()
    }
}

/// Request types that the peer has reported as unknown; they are not sent again.
#[derive(Clone, Copy, Debug, Default)]
struct NotUnderstood {
    asconf: bool,
    /// Whether the request adds or deletes an address (Add or Delete IP Address, RFC 5061 §5.3
    /// F3a).
    addresses: bool,
    /// Whether the request sets the primary address (Set Primary IP Address, F3b).
    primary: bool,
}

/// Sender of ASCONF requests: queued and outstanding requests, and the local addresses.
#[derive(Debug)]
pub(crate) struct AsconfSender {
    next_serial: u32,
    next_request: u32,
    /// Requests that are not sent yet. The requests of one call go into one ASCONF.
    requests: VecDeque<Vec<AddressChange>>,
    /// Outstanding ASCONFs in the order of their serial numbers, sent in one packet.
    flights: VecDeque<OutstandingAsconf>,
    /// Destination of the outstanding ASCONFs, and the T-4 timer.
    retry: Option<ControlRetransmission>,
    /// Local addresses known to the peer, oldest first; empty until the first request.
    own: Vec<IpAddr>,
    /// Addresses recently removed from the association.
    left: VecDeque<IpAddr>,
    /// Peer addresses that no local address can reach.
    unreached: Vec<IpAddr>,
    not_understood: NotUnderstood,
}

impl AsconfSender {
    /// Maximum number of waiting requests.
    pub(crate) const MAX_PENDING_REQUESTS: usize = 64;

    pub(super) fn new(serial: u32) -> Self {
        Self {
            next_serial: serial,
            next_request: 1,
            requests: VecDeque::new(),
            flights: VecDeque::new(),
            retry: None,
            own: Vec::new(),
            left: VecDeque::new(),
            unreached: Vec::new(),
            not_understood: NotUnderstood::default(),
        }
    }

    /// Whether any request was ever made; otherwise the addresses of the handshake apply.
    pub(crate) fn has_begun(&self) -> bool {
        !self.own.is_empty()
    }

    /// Sets the local addresses that the handshake announced to the peer.
    pub(crate) fn begin(&mut self, own: Vec<IpAddr>) {
        self.own = own;
    }

    /// Local addresses known to the peer, oldest first.
    pub(crate) fn own(&self) -> &[IpAddr] {
        &self.own
    }

    /// Changes in the outstanding ASCONFs, in order.
    fn flying(&self) -> impl Iterator<Item = &AddressChange> {
        self.flights.iter().flat_map(OutstandingAsconf::changes)
    }

    /// Source address that the outstanding requests prescribe for their packet, if any.
    pub(crate) fn source(&self) -> Option<IpAddr> {
        self.flying().find_map(AddressChange::source)
    }

    /// Addresses that the outstanding requests add and do not remove.
    pub(crate) fn adding(&self) -> Vec<IpAddr> {
        let gone = |address: &IpAddr| self.flying().any(|it| it.removes(*address));
        let added = self.flying().filter_map(AddressChange::adds);
        added.filter(|address| !gone(address)).collect()
    }

    /// Changes that are outstanding or queued, in order.
    fn open(&self) -> impl Iterator<Item = &AddressChange> {
        self.flying().chain(self.requests.iter().flatten())
    }

    /// Whether a removal of the address is outstanding or waiting (RFC 5061 §5.3 F4).
    pub(crate) fn is_leaving(&self, address: IpAddr) -> bool {
        self.open().any(|it| it.removes(address))
    }

    /// Permitted source addresses: addresses without a removal request. The last address stays
    /// usable until its removal is sent to the peer.
    pub(crate) fn usable(&self) -> Vec<IpAddr> {
        let own = self.own.iter().copied();
        let usable: Vec<_> = own.clone().filter(|&it| !self.is_leaving(it)).collect();
        if !usable.is_empty() {
            return usable;
        }
        let asked = |address: IpAddr| self.flying().any(|it| it.removes(address));
        own.filter(|&it| !asked(it)).collect()
    }

    /// Whether an ABORT received at `local` should be ignored: the address is being removed or was
    /// removed recently, so the ABORT answers an earlier packet from this address (RFC 5061
    /// §5.3.1).
    pub(crate) fn is_of_the_past(&self, local: IpAddr) -> bool {
        self.left.contains(&local) || (self.own.contains(&local) && self.is_leaving(local))
    }

    /// Local addresses after all requests have been performed.
    pub(crate) fn afterwards(&self) -> Vec<IpAddr> {
        let mut addresses = self.own.clone();
        self.open().for_each(|it| it.apply(&mut addresses));
        addresses
    }

    /// Whether the peer may understand a request for `change`: true until it reports the contrary.
    pub(crate) fn is_understood(&self, change: &AddressChange) -> bool {
        let not = self.not_understood;
        let kind = match change {
            AddressChange::PeerPrimary(_) => not.primary,
            _ => not.addresses,
        };
        !(not.asconf || kind)
    }

    /// Whether `more` further requests can be queued.
    pub(crate) fn has_room(&self, more: usize) -> bool {
        let waiting: usize = self.requests.iter().map(Vec::len).sum();
        waiting + more <= Self::MAX_PENDING_REQUESTS
    }

    pub(crate) fn request(&mut self, changes: Vec<AddressChange>) {
        self.requests.push_back(changes);
    }

    /// Outstanding ASCONFs in the order of their serial numbers.
    pub(crate) fn flights(&self) -> impl Iterator<Item = &OutstandingAsconf> {
        self.flights.iter()
    }

    /// Destination of the outstanding ASCONFs, and the T-4 timer.
    pub(crate) fn retry(&self) -> Option<&ControlRetransmission> {
        self.retry.as_ref()
    }

    pub(crate) fn retry_mut(&mut self) -> Option<&mut ControlRetransmission> {
        self.retry.as_mut()
    }

    /// Serial number of the next ASCONF.
    pub(crate) fn next_serial(&self) -> u32 {
        self.next_serial
    }

    /// Sends waiting requests, at most `MAX_REQUESTS`, to `path` in one ASCONF, unless an ASCONF is
    /// outstanding. Returns the changes that have become impossible because a change they depend on
    /// was refused.
    pub(crate) fn launch(&mut self, path: PathId) -> Vec<AddressChange> {
        if !self.flights.is_empty() {
            return Vec::new();
        }
        let failed = self.take_wishes();
        self.retry = (!self.flights.is_empty()).then(|| ControlRetransmission::new(path));
        failed
    }

    /// Retransmits the outstanding ASCONF to `path`, and sends later requests in a separate ASCONF
    /// (RFC 5061 §5.1 B4, §5.5). The peer may be able to answer the first ASCONF only after the
    /// changes of the second one.
    pub(crate) fn again(&mut self, path: PathId) -> Vec<AddressChange> {
        if let Some(retry) = &mut self.retry {
            retry.again(path);
        }
        if self.flights.len() < MAX_FLIGHTS {
            return self.take_wishes();
        }
        Vec::new()
    }

    /// Builds an ASCONF from waiting requests. Returns the requests that are no longer possible.
    fn take_wishes(&mut self) -> Vec<AddressChange> {
        let mut failed = Vec::new();
        let mut requests = Vec::new();
        let mut source = self.source();
        // Assume that the outstanding requests succeed (RFC 5061 §5.5).
        let mut after = self.own.clone();
        self.flying().for_each(|it| it.apply(&mut after));
        let address = after.first().copied();
        while let Some(batch) = self.requests.front() {
            let of_batch = batch.iter().find_map(AddressChange::source);
            let one_source = source.is_none() || of_batch.is_none() || source == of_batch;
            if requests.len() + batch.len() > MAX_REQUESTS || !one_source {
                break;
            }
            for change in self.requests.pop_front().unwrap_or_default() {
                if !is_possible(&change, &after) || !self.is_understood(&change) {
                    failed.push(change);
                    continue;
                }
                change.apply(&mut after);
                source = source.or(change.source());
                requests.push((self.next_request, change));
                self.next_request = self.next_request.wrapping_add(1);
            }
        }
        if let (false, Some(address)) = (requests.is_empty(), address) {
            let parameters: Vec<_> = requests.iter().map(parameter).collect();
            let asconf = Asconf {
                serial: self.next_serial,
                // The peer finds the association by this address, so the peer must know it already.
                address,
                parameters: TlvList::of(&parameters),
            };
            self.next_serial = self.next_serial.wrapping_add(1);
            self.flights
                .push_back(OutstandingAsconf { asconf, requests });
        }
        failed
    }

    /// Whether `serial` is the serial number of the next expected ASCONF-ACK.
    pub(crate) fn expects(&self, serial: u32) -> bool {
        let sent = self.retry.is_some_and(|it| it.deadline.is_some());
        let next = self.flights.front();
        sent && next.is_some_and(|it| it.asconf.serial == serial)
    }

    /// Processes the expected ASCONF-ACK and returns the outcome of each request.
    pub(crate) fn settle(&mut self, ack: &AsconfAck) -> Vec<(AddressChange, AddressChangeOutcome)> {
        let Some(flight) = self.flights.pop_front() else {
            return Vec::new();
        };
        if self.flights.is_empty() {
            self.retry = None;
        }
        let outcomes = flight.outcomes(ack);
        for (change, outcome) in &outcomes {
            match outcome {
                AddressChangeOutcome::Performed => self.carry_out(change),
                AddressChangeOutcome::Refused { cause } => self.note_refusal(change, *cause),
                AddressChangeOutcome::Failed => {}
            }
        }
        outcomes
    }

    fn carry_out(&mut self, change: &AddressChange) {
        let before = self.own.clone();
        change.apply(&mut self.own);
        for gone in before.into_iter().filter(|it| !self.own.contains(it)) {
            if self.left.len() == MAX_LEFT {
                self.left.pop_front();
            }
            self.left.push_back(gone);
        }
        if let Some(added) = change.adds() {
            self.left.retain(|&it| it != added);
        }
    }

    fn note_refusal(&mut self, change: &AddressChange, cause: Option<u16>) {
        if cause != Some(code::UNRECOGNIZED_PARAMETERS) {
            return;
        }
        match change {
            AddressChange::PeerPrimary(_) => self.not_understood.primary = true,
            _ => self.not_understood.addresses = true,
        }
    }

    /// Cancels all outstanding and queued requests and returns them. `forever`: no more requests
    /// are sent, because the peer does not support ASCONF.
    pub(crate) fn give_up(&mut self, forever: bool) -> Vec<AddressChange> {
        self.not_understood.asconf |= forever;
        let open = self.open().copied().collect();
        self.flights.clear();
        self.retry = None;
        self.requests.clear();
        open
    }

    /// Records that no local address can reach the peer's address `remote`.
    pub(crate) fn lose(&mut self, remote: IpAddr) {
        self.unreached.push(remote);
    }

    /// Removes and returns the unreachable peer addresses for which `is_reached` is now true.
    pub(crate) fn regain(&mut self, is_reached: impl Fn(IpAddr) -> bool) -> Vec<IpAddr> {
        let (back, lost) = self.unreached.drain(..).partition(|&it| is_reached(it));
        self.unreached = lost;
        back
    }
}

/// Whether the peer, which knows the addresses `own`, can perform the change.
fn is_possible(change: &AddressChange, own: &[IpAddr]) -> bool {
    match *change {
        AddressChange::Add(_) | AddressChange::AddSource(_) => true,
        AddressChange::Remove(gone) => own.contains(&gone) && own.len() > 1,
        AddressChange::KeepOnly(address) | AddressChange::PeerPrimary(address) => {
            own.contains(&address)
        }
    }
}

fn parameter(&(correlation_id, change): &(u32, AddressChange)) -> AsconfParameter {
    let (request, address) = match change {
        AddressChange::Add(address) => (AsconfRequest::Add, address),
        AddressChange::AddSource(source) => (AsconfRequest::Add, unspecified_like(source)),
        AddressChange::Remove(address) => (AsconfRequest::Delete, address),
        AddressChange::KeepOnly(source) => (AsconfRequest::Delete, unspecified_like(source)),
        AddressChange::PeerPrimary(address) => (AsconfRequest::SetPrimary, address),
    };
    AsconfParameter::Request {
        request,
        correlation_id,
        address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn ack(serial: u32) -> AsconfAck {
        let parameters = TlvList::from_bytes(bytes::Bytes::new());
        AsconfAck { serial, parameters }
    }

    #[test]
    fn serials_wrap_and_one_chunk_takes_whole_calls() {
        let mut asking = AsconfSender::new(u32::MAX - 1);
        asking.begin(vec![ip(1)]);
        for round in 0..4 {
            let serial = (u32::MAX - 1).wrapping_add(round);
            assert_eq!(asking.next_serial(), serial);
            asking.request(vec![AddressChange::Add(ip(2)); 6]);
            asking.request(vec![AddressChange::Remove(ip(2)); 6]);
            assert!(asking.launch(PathId(0)).is_empty());
            assert!(asking.flights().map(|it| it.asconf.serial).eq([serial]));
            assert_eq!(asking.settle(&ack(serial)).len(), 6, "twelve are too many");
            assert_eq!(asking.own(), [ip(1), ip(2)]);
            asking.give_up(false);
            asking.begin(vec![ip(1)]);
        }
    }

    #[test]
    fn two_that_must_come_from_two_addresses_go_one_after_the_other() {
        let mut asking = AsconfSender::new(0);
        asking.begin(vec![ip(1)]);
        asking.request(vec![AddressChange::AddSource(ip(2))]);
        asking.request(vec![AddressChange::Add(ip(3))]);
        asking.request(vec![AddressChange::KeepOnly(ip(3))]);
        asking.launch(PathId(0));
        assert_eq!(asking.source(), Some(ip(2)));
        assert_eq!(asking.adding(), [ip(2), ip(3)]);
        // Addresses whose removal is queued are not used, except the last address.
        assert_eq!(asking.usable(), [ip(1)]);
        // A retransmission does not add a second ASCONF that needs another source address.
        asking.again(PathId(0));
        assert_eq!(asking.flights().count(), 1);
        asking.settle(&ack(0));
        asking.launch(PathId(0));
        assert_eq!(asking.source(), Some(ip(3)));
        assert!(asking.usable().contains(&ip(3)));
        asking.settle(&ack(1));
        assert_eq!(asking.own(), [ip(3)]);
        assert!(asking.is_of_the_past(ip(1)) && !asking.is_of_the_past(ip(3)));
    }

    #[test]
    fn requests_that_depend_on_a_refused_one_are_not_sent() {
        let mut asking = AsconfSender::new(0);
        asking.begin(vec![ip(1)]);
        asking.request(vec![AddressChange::Add(ip(2))]);
        asking.launch(PathId(0));
        let after = [
            AddressChange::PeerPrimary(ip(2)),
            AddressChange::Remove(ip(1)),
        ];
        asking.request(after.to_vec());
        let refusal = AsconfResponse::Error {
            correlation_id: 1,
            causes: anabranch_wire::cause::Causes::empty(),
        };
        let parameters = TlvList::of(&[refusal]);
        let outcome = AddressChangeOutcome::Refused { cause: None };
        let settled = asking.settle(&AsconfAck {
            serial: 0,
            parameters,
        });
        assert_eq!(settled, [(AddressChange::Add(ip(2)), outcome)]);
        assert_eq!(asking.launch(PathId(0)), after);
        assert!(asking.flights().next().is_none() && asking.own() == [ip(1)]);
    }
    #[test]
    fn requests_made_meanwhile_are_sent_with_the_retransmission() {
        let mut asking = AsconfSender::new(7);
        asking.begin(vec![ip(1)]);
        asking.request(vec![AddressChange::PeerPrimary(ip(1))]);
        asking.launch(PathId(0));
        asking.request(vec![
            AddressChange::Add(ip(2)),
            AddressChange::Remove(ip(1)),
        ]);
        asking.launch(PathId(0));
        assert_eq!(asking.flights().count(), 1);
        // The last address is used until its removal is sent to the peer.
        assert_eq!(asking.usable(), [ip(1)]);
        asking.again(PathId(0));
        let serials: Vec<_> = asking.flights().map(|it| it.asconf.serial).collect();
        assert_eq!(serials, [7, 8]);
        assert!(asking.usable().is_empty());
        assert_eq!(asking.adding(), [ip(2)]);
        asking.request(vec![AddressChange::Add(ip(3))]);
        asking.again(PathId(0));
        assert_eq!(asking.flights().count(), 2, "one beside it");
        assert_eq!(asking.settle(&ack(7)).len(), 1);
        assert!(asking.retry().is_some());
        assert_eq!(asking.settle(&ack(8)).len(), 2);
        assert!(asking.retry().is_none());
        assert_eq!(asking.own(), [ip(2)]);
    }
}

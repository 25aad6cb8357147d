//! Wireless links: a medium with the packets in the layers above it, and the counters of each
//! direction.

use std::collections::VecDeque;

use anabranch_transport::Nanos;

use super::LinkStats;
use crate::packet::{DropReason, Parcel};
use crate::probe::SimplexLinkProbes;
use crate::wifi::{self, Medium, StationId, TransmissionOutcome};

/// A packet on a medium.
#[derive(Debug)]
pub(crate) struct PacketOnMedium {
    pub packet: Parcel,
    /// Index of the packet's link direction.
    pub simplex_link: u32,
    /// Time at which the packet joined the interface queue.
    admitted: Nanos,
}

impl PacketOnMedium {
    pub fn new(packet: Parcel, simplex_link: u32) -> Self {
        Self {
            packet,
            simplex_link,
            admitted: 0,
        }
    }
}

/// One direction of a wireless link: its stations and its counters.
#[derive(Debug)]
pub(crate) struct WirelessLink {
    /// Index of the medium in the network.
    pub cell: usize,
    pub from: StationId,
    pub to: StationId,
    /// Packets accepted by this direction that have neither been delivered nor dropped.
    in_flight: u64,
    /// Number of packets in flight that are in the interface queue or on the air, and not in a
    /// layer above.
    queued: usize,
    stats: LinkStats,
    pub(crate) probes: Option<Box<SimplexLinkProbes>>,
}

impl WirelessLink {
    pub fn new(cell: usize, from: StationId, to: StationId) -> Self {
        Self {
            cell,
            from,
            to,
            in_flight: 0,
            queued: 0,
            stats: LinkStats::default(),
            probes: None,
        }
    }

    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub fn stats(&self) -> LinkStats {
        self.stats
    }

    pub fn settle(&mut self, now: Nanos) {
        if let Some(probes) = &mut self.probes {
            probes.close_bins(now);
        }
    }

    /// Counts a packet of `size` bytes that is offered to this direction.
    pub fn offered(&mut self, size: usize) {
        self.stats.offered.add(size);
        self.in_flight += 1;
    }

    /// Counts a packet that joins the interface queue at `now`.
    pub fn admitted(&mut self, now: Nanos) {
        self.queued += 1;
        self.stats.longest_queue = self.stats.longest_queue.max(self.queued);
        self.tell_queue(now);
    }

    /// Counts a packet that reached the receiving station; its data frame lasted `air_time`
    /// nanoseconds.
    pub fn delivered(&mut self, at: Nanos, admitted: Nanos, size: usize, air_time: Nanos) {
        self.left(at, admitted, size, air_time);
        self.stats.delivered.add(size);
        if let Some(probes) = &mut self.probes {
            probes.delivered(at, size);
        }
    }

    /// Counts a packet that the layer above the receiving station has processed.
    pub fn taken_in(&mut self) {
        self.in_flight -= 1;
    }

    /// Counts a packet that the interface has refused or dropped.
    pub fn dropped(&mut self, at: Nanos, reason: DropReason) {
        self.in_flight -= 1;
        self.stats.dropped.add(reason);
        if let Some(probes) = &mut self.probes {
            probes.dropped(at, reason, self.stats.dropped.count(reason));
        }
    }

    /// Counts a queued packet that is dropped; each of its data frames would have lasted `air_time`
    /// nanoseconds.
    pub fn given_up(
        &mut self,
        at: Nanos,
        admitted: Nanos,
        size: usize,
        air_time: Nanos,
        reason: DropReason,
    ) {
        self.left(at, admitted, size, air_time);
        self.dropped(at, reason);
    }

    fn left(&mut self, at: Nanos, admitted: Nanos, size: usize, air_time: Nanos) {
        self.queued -= 1;
        self.stats.transmitted.add(size);
        self.stats.busy += air_time;
        self.stats.sojourn += u128::from(at - admitted);
        if let Some(probes) = &mut self.probes {
            probes.sojourn(at, at - admitted);
        }
        self.tell_queue(at);
    }

    fn tell_queue(&mut self, at: Nanos) {
        if let Some(probes) = &mut self.probes {
            probes.queue_length(at, self.queued);
        }
    }
}

/// Outcome of a packet on a cell.
pub(crate) enum PacketOutcome {
    /// The packet reached the receiving station at `at`; the layer above processes it later.
    Delivered {
        simplex_link: u32,
        at: Nanos,
        admitted: Nanos,
        size: usize,
        air_time: Nanos,
    },
    /// The packet was dropped.
    GivenUp {
        on_medium: PacketOnMedium,
        at: Nanos,
        admitted: Nanos,
        air_time: Nanos,
        reason: DropReason,
    },
}

/// A medium as an event source of the world, together with the packets in the layers above it at
/// the senders and the receivers.
#[derive(Debug)]
pub(crate) struct Cell {
    medium: Medium<PacketOnMedium>,
    link_layer_delay: Nanos,
    /// Packets that will join an interface queue, each with the time.
    entering: VecDeque<(Nanos, PacketOnMedium)>,
    /// Packets that the layer above the receiving station will process, each with the time.
    leaving: VecDeque<(Nanos, PacketOnMedium)>,
}

impl Cell {
    pub fn new(medium: Medium<PacketOnMedium>) -> Self {
        Self {
            link_layer_delay: medium.parameters().link_layer_delay,
            medium,
            entering: VecDeque::new(),
            leaving: VecDeque::new(),
        }
    }

    pub fn medium(&self) -> &Medium<PacketOnMedium> {
        &self.medium
    }

    /// Bytes that the routing of a station adds to each packet that it originates.
    pub fn routing_header(&self) -> u16 {
        // Parameters are validated to be below 65536.
        self.medium.parameters().routing_header as u16
    }

    /// Whether the world can leave the medium unprocessed until an outcome is due. Packets that
    /// enter or leave a medium are known in advance, because the layers above delay them.
    #[inline]
    pub fn sees_ahead(&self) -> bool {
        self.has_layers() && self.medium.sees_ahead()
    }

    /// Time at which the next outcome of the unprocessed medium is due, nanoseconds; [`Nanos::MAX`]
    /// if there is none.
    pub fn next_outcome(&mut self) -> Nanos {
        debug_assert!(!self.medium.has_outcome());
        self.medium.next_outcome().min(self.next_packet())
    }

    /// Whether the medium has the outcome of a packet to report.
    #[inline]
    pub fn has_landing(&self) -> bool {
        self.medium.has_outcome()
    }

    /// Whether the layers above have a processing delay, so that the medium can be simulated ahead
    /// of the world.
    #[inline]
    pub fn has_layers(&self) -> bool {
        self.link_layer_delay > 0
    }

    /// Processes the events before `now` on a medium that was left unprocessed.
    pub fn catch_up(&mut self, now: Nanos) {
        self.medium.catch_up(now);
    }

    /// Processes all events up to `now`, one frame edge at a time.
    pub fn settle(&mut self, now: Nanos) {
        self.medium.advance(now);
    }

    /// Whether an event on the air is due at `now`; all earlier events must have been processed.
    pub fn moves(&self, now: Nanos) -> bool {
        self.medium.is_due(now)
    }

    /// Time of the next event, at the earliest `now`; [`Nanos::MAX`] if there is none.
    pub fn next(&self, now: Nanos) -> Nanos {
        if self.medium.has_outcome() {
            return now;
        }
        let at = self.medium.next_event().unwrap_or(Nanos::MAX);
        at.min(self.next_packet())
    }

    /// Time at which the next packet is due at the layer above a sender or a receiver.
    #[inline]
    pub fn next_packet(&self) -> Nanos {
        let waiting = |queue: &VecDeque<(Nanos, PacketOnMedium)>| queue.front().map(|(at, _)| *at);
        let entering = waiting(&self.entering).unwrap_or(Nanos::MAX);
        waiting(&self.leaving).unwrap_or(Nanos::MAX).min(entering)
    }

    /// Processes the events on the air instant by instant, until `end` or until a packet enters or
    /// leaves.
    pub fn advance_quietly(&mut self, end: Nanos) {
        self.medium.advance_quietly(end.min(self.next_packet()));
    }

    /// Last instant that the medium has processed, and the number of processed instants.
    pub fn reached(&self) -> (Nanos, u64) {
        self.medium.reached()
    }

    /// Accepts a packet from the layer above a station. Returns the time at which it joins the
    /// interface queue.
    pub fn enter(&mut self, now: Nanos, on_medium: PacketOnMedium) -> Nanos {
        let at = now + self.link_layer_delay;
        self.entering.push_back((at, on_medium));
        at
    }

    /// Whether a packet is due to join an interface queue.
    #[inline]
    pub fn is_entering(&self, now: Nanos) -> bool {
        self.entering.front().is_some_and(|(at, _)| *at <= now)
    }

    /// Next packet that is due to join an interface queue.
    pub fn poll_entering(&mut self, now: Nanos) -> Option<PacketOnMedium> {
        due(&mut self.entering, now)
    }

    /// Next packet that is due at the layer above the receiving station.
    pub fn poll_leaving(&mut self, now: Nanos) -> Option<PacketOnMedium> {
        due(&mut self.leaving, now)
    }

    /// Puts a packet into the interface queue of `simplex_link`.
    ///
    /// # Errors
    /// The packet and the drop reason, if the interface refuses the packet.
    pub fn enqueue(
        &mut self,
        now: Nanos,
        simplex_link: &WirelessLink,
        mut on_medium: PacketOnMedium,
    ) -> Result<(), (PacketOnMedium, DropReason)> {
        on_medium.admitted = now;
        let size = on_medium.packet.wire_size() as u32;
        self.medium
            .enqueue(now, simplex_link.from, simplex_link.to, size, on_medium)
            .map_err(|refused| (refused.payload, reason(refused.reason)))
    }

    /// Processes all events on the air up to `now`, and the events that follow from them, until
    /// `end` or until a packet enters or leaves.
    pub fn advance(&mut self, now: Nanos, end: Nanos) {
        self.medium.advance_ahead(now, end.min(self.next_packet()));
    }

    /// Outcome of the next packet that the medium delivered or dropped. A delivered packet is kept
    /// for the layer above.
    pub fn poll_landing(&mut self) -> Option<PacketOutcome> {
        let outcome = self.medium.poll_outcome()?;
        let bytes = match &outcome {
            TransmissionOutcome::Delivered(delivery) => delivery.bytes,
            TransmissionOutcome::Dropped(dropped) => dropped.bytes,
        };
        let air_time = self.medium.timing().data(self.medium.parameters(), bytes);
        Some(match outcome {
            TransmissionOutcome::Delivered(wifi::DeliveredPacket { at, payload, .. }) => {
                let PacketOnMedium {
                    simplex_link,
                    admitted,
                    ..
                } = payload;
                self.leaving
                    .push_back((at + self.link_layer_delay, payload));
                PacketOutcome::Delivered {
                    simplex_link,
                    at,
                    admitted,
                    size: bytes as usize,
                    air_time,
                }
            }
            TransmissionOutcome::Dropped(dropped) => PacketOutcome::GivenUp {
                at: dropped.at,
                admitted: dropped.payload.admitted,
                air_time,
                reason: reason(dropped.reason),
                on_medium: dropped.payload,
            },
        })
    }
}

fn due(queue: &mut VecDeque<(Nanos, PacketOnMedium)>, now: Nanos) -> Option<PacketOnMedium> {
    if queue.front()?.0 > now {
        return None;
    }
    queue.pop_front().map(|(_, on_medium)| on_medium)
}

/// Drop reason of the world that corresponds to a drop reason of the medium.
fn reason(reason: wifi::WifiDropReason) -> DropReason {
    match reason {
        wifi::WifiDropReason::QueueFull => DropReason::QueueFull,
        wifi::WifiDropReason::TooLong => DropReason::TooBig,
        wifi::WifiDropReason::ShortRetryLimit => DropReason::ShortRetryLimit,
        wifi::WifiDropReason::LongRetryLimit => DropReason::LongRetryLimit,
    }
}

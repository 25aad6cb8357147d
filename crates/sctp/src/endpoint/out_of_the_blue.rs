//! Packets that belong to no association (RFC 9260 §8.4).

use anabranch_wire::cause::{Cause, Causes};
use anabranch_wire::chunk::{Abort, Chunk, ShutdownComplete, kind};
use anabranch_wire::packet::{Chunks, Packet, RawChunk};

use super::{Arrival, Endpoint};
use crate::discard::DiscardReason;

/// Answer to an out of the blue packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutOfTheBlueReply {
    Nothing(DiscardReason),
    ShutdownComplete,
    /// Answer by an ABORT. `data`: the packet contains only DATA and SACKs.
    Abort {
        data: bool,
    },
}

impl Endpoint {
    /// Answers an out of the blue packet with the packet's tag and the T bit, or discards it. INIT
    /// and COOKIE ECHO (rules 3 and 4) are handled elsewhere.
    pub(super) fn out_of_the_blue(&mut self, arrival: Arrival, packet: &Packet<'_>) {
        let answer = judge(packet);
        let tag = arrival.header.verification_tag;
        match answer {
            // Data was overtaken by the shutdown. It is not answered, because an ABORT could in
            // turn overtake the SHUTDOWN COMPLETE.
            OutOfTheBlueReply::Abort { data: true }
                if (self.retired).change(|it| it.expects_late_data(arrival.now, tag))
                    == Some(true) => {}
            OutOfTheBlueReply::Nothing(reason) => return self.discards.count(reason),
            OutOfTheBlueReply::ShutdownComplete => self.answer(
                arrival,
                tag,
                &[&ShutdownComplete {
                    tag_reflected: true,
                }],
            ),
            OutOfTheBlueReply::Abort { .. } => self.abort_reflected(arrival),
        }
        self.discards.count(DiscardReason::OutOfTheBlue);
    }
}

/// Packets for other ports, if this endpoint answers for them.
impl Endpoint {
    pub(super) fn for_another_port(
        &mut self,
        arrival: Arrival,
        first: RawChunk,
        packet: &Packet<'_>,
    ) {
        let alone = packet.chunks().count() == 1;
        let has_tag = arrival.header.verification_tag != 0;
        match (first.kind, Chunk::decode(first)) {
            // Rule 3: the ABORT has the Initiate Tag, so that the sender accepts it.
            (kind::INIT, Ok(Chunk::Init(init))) if alone && !has_tag => {
                self.discards.count(DiscardReason::Port);
                self.refuse_init(arrival, init.initiate_tag, &[]);
            }
            // Rule 4: no cookie is valid at another port.
            (kind::COOKIE_ECHO, _) => self.discards.count(DiscardReason::Port),
            (kind::INIT, _) if !has_tag => self.discards.count(DiscardReason::Port),
            _ => self.out_of_the_blue(arrival, packet),
        }
    }
}

/// INITs with a nonzero verification tag.
impl Endpoint {
    /// Processes an INIT with a nonzero tag, followed by `rest`. Rule 3 only applies to tag 0, so
    /// the answer is that of rule 8. If there is an association with the sender, the INIT is
    /// discarded because of its tag (§8.5).
    #[cold]
    #[inline(never)]
    pub(super) fn on_tagged_init(&mut self, arrival: Arrival, mut rest: Chunks<'_>) {
        let (port, address) = (arrival.header.source_port, arrival.path.remote);
        let known =
            self.live(port, address).is_some() || self.table.shard().other(port, address).is_some();
        if known {
            return self.discards.count(DiscardReason::VerificationTag);
        }
        if rest.next().is_some() {
            return self.discards.count(DiscardReason::ForbiddenBundle);
        }
        self.discards.count(DiscardReason::OutOfTheBlue);
        self.abort_reflected(arrival);
    }

    /// Sends an ABORT with the packet's own tag.
    fn abort_reflected(&mut self, arrival: Arrival) {
        let abort = Abort {
            tag_reflected: true,
            causes: Causes::empty(),
        };
        self.answer(arrival, arrival.header.verification_tag, &[&abort]);
    }
}

/// Selects the answer by rules 2 and 5 to 8. If a packet is truncated, only its complete chunks are
/// considered (§6.10).
fn judge(packet: &Packet<'_>) -> OutOfTheBlueReply {
    let is_bundled = packet.chunks().count() > 1;
    let (mut shutdown_ack, mut unanswered, mut data) = (false, false, true);
    for chunk in packet.chunks().map_while(Result::ok) {
        match chunk.kind {
            kind::ABORT => return OutOfTheBlueReply::Nothing(DiscardReason::OutOfTheBlue),
            // INIT and INIT ACK must be the only chunk of their packet (§6.10).
            kind::INIT | kind::INIT_ACK if is_bundled => {
                return OutOfTheBlueReply::Nothing(DiscardReason::ForbiddenBundle);
            }
            kind::SHUTDOWN_ACK => shutdown_ack = true,
            kind::SHUTDOWN_COMPLETE | kind::COOKIE_ACK => unanswered = true,
            kind::ERROR => {
                unanswered |= has_stale_cookie(chunk);
                data = false;
            }
            kind::DATA | kind::I_DATA | kind::SACK | kind::ECNE | kind::CWR => {}
            // AUTH is ignored (RFC 4895 §6.3).
            kind::AUTH => {}
            _ => data = false,
        }
    }
    match (shutdown_ack, unanswered) {
        (true, _) => OutOfTheBlueReply::ShutdownComplete,
        (false, true) => OutOfTheBlueReply::Nothing(DiscardReason::OutOfTheBlue),
        (false, false) => OutOfTheBlueReply::Abort { data },
    }
}

/// Whether an ERROR has the cause Stale Cookie.
fn has_stale_cookie(error: RawChunk) -> bool {
    match Chunk::decode(error) {
        Ok(Chunk::Error(error)) => {
            (error.causes.iter()).any(|cause| matches!(cause, Ok(Cause::StaleCookie { .. })))
        }
        _ => false,
    }
}

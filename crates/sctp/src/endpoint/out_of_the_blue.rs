//! Packets that belong to no association (RFC 9260 §8.4).

use anabranch_wire::cause::Causes;
use anabranch_wire::chunk::{Abort, Chunk, ShutdownComplete, kind};
use anabranch_wire::packet::{Packet, RawChunk};

use super::{Arrival, Endpoint};
use crate::discard::Discard;

/// How a packet out of the blue is answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Nothing(Discard),
    ShutdownComplete,
    Abort,
}

impl Endpoint {
    /// Answers, with the packet's own tag and the T bit, or not at all. INIT and COOKIE ECHO (rules 3 and 4) do not
    /// come here.
    pub(super) fn out_of_the_blue(&mut self, arrival: Arrival, packet: &Packet<'_>) {
        let answer = judge(packet);
        let tag = arrival.header.verification_tag;
        match answer {
            // It is known what it belonged to: it was overtaken by the end, and may overtake our SHUTDOWN COMPLETE in turn. An ABORT would
            // end badly what ends well.
            Answer::Abort
                if (self.retired.change(|it| it.ended_well(arrival.now, tag))) == Some(true) =>
            {
                return self.discards.count(Discard::OutOfTheBlue);
            }
            Answer::Nothing(reason) => return self.discards.count(reason),
            Answer::ShutdownComplete => self.answer(
                arrival,
                tag,
                &[&ShutdownComplete {
                    tag_reflected: true,
                }],
            ),
            Answer::Abort => self.answer(
                arrival,
                tag,
                &[&Abort {
                    tag_reflected: true,
                    causes: Causes::empty(),
                }],
            ),
        }
        self.discards.count(Discard::OutOfTheBlue);
    }
}

/// Packets for a port that nobody has, where no other stack answers for them.
impl Endpoint {
    pub(super) fn for_another_port(
        &mut self,
        arrival: Arrival,
        first: RawChunk,
        packet: &Packet<'_>,
    ) {
        let alone = packet.chunks().count() == 1;
        match (first.kind, Chunk::decode(first)) {
            // Rule 3: with the tag that it asks for, so that its sender believes the answer.
            (kind::INIT, Ok(Chunk::Init(init)))
                if alone && arrival.header.verification_tag == 0 =>
            {
                self.discards.count(Discard::Port);
                self.refuse_init(arrival, init.initiate_tag, &[]);
            }
            // A cookie of nobody's.
            (kind::INIT | kind::COOKIE_ECHO, _) => self.discards.count(Discard::Port),
            _ => self.out_of_the_blue(arrival, packet),
        }
    }
}

/// Rules 2 and 5 to 8, in an order that lets no chunk hidden behind another draw an answer to an ABORT.
fn judge(packet: &Packet<'_>) -> Answer {
    let mut answer = Answer::Abort;
    for chunk in packet.chunks() {
        // A packet that cannot be read to its end is not answered: its sender speaks another language or an attack.
        let Ok(chunk) = chunk else {
            return Answer::Nothing(Discard::ChunkLength);
        };
        match chunk.kind {
            // It is as if it were not there (RFC 4895 §6.3).
            kind::AUTH => {}
            kind::ABORT | kind::SHUTDOWN_COMPLETE | kind::COOKIE_ACK => {
                return Answer::Nothing(Discard::OutOfTheBlue);
            }
            // Rule 7 names only a stale cookie's ERROR, but an ERROR answered by ABORT can only serve to start a war.
            kind::ERROR => return Answer::Nothing(Discard::OutOfTheBlue),
            // Bundled with others it is not allowed (§6.10).
            kind::INIT | kind::INIT_ACK if answer_is_bundled(packet) => {
                return Answer::Nothing(Discard::ForbiddenBundle);
            }
            kind::SHUTDOWN_ACK => answer = Answer::ShutdownComplete,
            _ => {}
        }
    }
    answer
}

fn answer_is_bundled(packet: &Packet<'_>) -> bool {
    packet.chunks().count() > 1
}

//! The common chunk: the next TSN, of a message that can be read at once or a further piece of the one that is coming.
//!
//! While nothing is missing, nothing waits, nobody records and there is plenty of room, most questions that DATA raises have their answer
//! before they are asked. What is done here is what [`Receiver::sort_data`] would do, no less; where any answer is another, that does it.

use anabranch_transport::Trace;
use anabranch_wire::chunk::Data;

use super::Receiver;
use super::delivery::Readable;
use super::message::{MessageBytes, ReceivedPart};
use super::room::Source;
use crate::config::Config;
use crate::path::PathId;
use crate::profile::WhenFull;

/// Whether the settings leave room for common chunks: what they ask for else is asked of every chunk.
pub(super) fn may_come(config: &Config) -> bool {
    config.profile.when_full != WhenFull::Silent
        && config.profile.window_counts_deliverable
        && config.partial_delivery_point.is_none()
}

impl Receiver {
    /// Takes a chunk, if it is a common one; whether it was.
    #[inline(always)]
    pub(super) fn take_next(
        &mut self,
        data: &Data<&[u8]>,
        source: &impl Source,
        from: PathId,
        trace: &Trace,
    ) -> bool {
        let length = data.user_data.len();
        let bytes = self.profile.rwnd_counts.bytes(length);
        let is_whole = data.beginning && data.ending;
        if self.tracker.has_gaps()
            || data.tsn != self.tracker.cumulative().next()
            || length == 0
            || data.beginning != data.ending
            || data.immediate
            || data.stream_id >= self.streams
            || !self.is_undisturbed(trace)
            || data.tsn == self.initial_tsn
            || !self.window.has_plenty_for(bytes, length)
        {
            return false;
        }
        let is_taken = if is_whole {
            self.take_whole(data, bytes, source)
        } else {
            self.take_piece(data, source)
        };
        if is_taken {
            self.from = from;
            self.tracker.insert(data.tsn);
            self.sack.saw_data();
            self.window.take(bytes, length);
            self.statistics.chunks += 1;
            self.statistics.bytes += length as u64;
        }
        is_taken
    }

    /// Whether nothing is asked of a chunk but where it belongs.
    #[inline(always)]
    fn is_undisturbed(&self, trace: &Trace) -> bool {
        self.common && trace.wants_nothing() && self.held.is_off() && self.unrecorded.is_empty()
    }

    /// A whole message, if it can be read at once.
    #[inline(always)]
    fn take_whole(&mut self, data: &Data<&[u8]>, bytes: u64, source: &impl Source) -> bool {
        if !self.reassembly.is_empty()
            || !self.long.is_empty()
            || !self.order.passes(data.stream_id, data.unordered, data.ssn)
        {
            return false;
        }
        let (payload, compact) = self.hold(data.user_data, false, source);
        self.statistics.messages += 1;
        self.ready.push_back(Readable {
            part: ReceivedPart {
                stream: data.stream_id,
                tsn: data.tsn,
                ppid: data.ppid,
                unordered: data.unordered,
                ssn: data.ssn,
                begins: true,
                ends: true,
                payload: MessageBytes::One(payload),
            },
            bytes,
            compact,
        });
        true
    }

    /// A piece that is neither the first nor the last of the only message that is not whole.
    #[inline(always)]
    fn take_piece(&mut self, data: &Data<&[u8]>, source: &impl Source) -> bool {
        let fills = self.nearly_fills(data.user_data.len());
        let Some(run) = self.reassembly.only(data) else {
            return false;
        };
        // What waits stays a slice only of a packet that it nearly fills; the others are copied where they always are.
        if !fills {
            return false;
        }
        run.append(data.with(source.user_data()));
        self.sliced += data.user_data.len();
        true
    }
}

//! Exactly-once delivery of messages.

use anabranch_settings::{KindEntry, kind};

use super::common_parameters::FLOW;
use super::{BoxedMetric, FlowFacts, MeasureNeeds, Metric, ResultName, RunData};
use crate::agent::duplicate_check::DuplicateCheck;

kind! {
    /// Parameter of the message counters: the flow whose messages are checked.
    struct MessagesConfig {
        flow: String as FLOW;
    }
    /// Number of repeated deliveries of messages to the receiving application, not counting the
    /// first delivery of each message. Requires a flow over SCTP with messages of at least 16 B, in
    /// which the number of the message fits.
    pub(super) static REPEATED: KindEntry<BoxedMetric> =
        "duplicate_messages", |it, ()| Ok(it.count("duplicate_messages", DuplicateCheck::repeated));
    /// Number of messages that the transport accepted but that never reached the receiving
    /// application. Messages in transit at the end of a run count as lost, so the flow should stop
    /// earlier.
    pub(super) static MISSING: KindEntry<BoxedMetric> =
        "lost_messages", |it, ()| Ok(it.count("lost_messages", DuplicateCheck::missing));
}

struct Messages {
    flow: String,
    name: &'static str,
    of: fn(&DuplicateCheck) -> u64,
}

impl MessagesConfig {
    fn count(self, name: &'static str, of: fn(&DuplicateCheck) -> u64) -> BoxedMetric {
        Box::new(Messages {
            flow: self.flow,
            name,
            of,
        })
    }
}

/// Size of the offer time and the number in a message, bytes.
pub(super) const ROOM: u64 = 16;

/// Checks that the messages of a flow are large enough to carry numbers, and are delivered
/// reliably.
pub(super) fn numbered(flow: &FlowFacts<'_>) -> Result<(), String> {
    let name = &flow.flow.name;
    // The transport must have a window and retransmit, because a lost datagram is never delivered.
    if !(flow.messages && flow.window) {
        return Err(format!(
            "{name:?} does not run over SCTP; only SCTP delivers messages"
        ));
    }
    let smallest = flow.workload.pieces()[0];
    if smallest < ROOM {
        return Err(format!(
            "{name:?} has messages of {smallest} B; a message is known again by a number, for which it needs {ROOM} B"
        ));
    }
    Ok(())
}

impl Metric for Messages {
    fn names(&self) -> Vec<ResultName> {
        vec![ResultName::new(&self.flow, self.name, "messages")]
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn needs(&self) -> MeasureNeeds {
        MeasureNeeds {
            numbers: true,
            ..MeasureNeeds::default()
        }
    }

    fn check(&self, flow: &FlowFacts<'_>) -> Result<(), String> {
        numbered(flow)
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let members = seen.members(&self.flow).iter();
        let kept: Vec<u64> = members
            .filter_map(|flow_stats| flow_stats.once.as_ref().map(self.of))
            .collect();
        if kept.is_empty() {
            return vec![f64::NAN];
        }
        vec![kept.iter().sum::<u64>() as f64]
    }
}

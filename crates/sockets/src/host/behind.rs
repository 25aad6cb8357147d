//! What an association tells its program, some of it behind messages that came before.
//!
//! Events and messages come from the protocol by two ways, and an event is heard of at once. Two kinds say something of the messages before them:
//! that the peer's stream begins anew (RFC 6525 §5.2.2), and that the peer shuts down (RFC 9260 §9.2).

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use anabranch_net::{Association, AssociationEvent, MessagePart, ReconfigOutcome, StreamDirection};

use super::link::Link;
use super::notification;
use super::tell::tell;
use crate::options::EXPOSE_POTENTIALLY_FAILED;

/// Events that wait at most: a peer that never stops to send can reset as many streams as it likes.
const MOST: usize = 64;

/// A message whose TSN is so close behind the one that the peer began again with came after that.
const RESTARTED: u32 = 1 << 24;

/// What an association tells its program.
pub struct Told<'a> {
    link: &'a Link,
    /// The peer's.
    port: u16,
    /// There may be more to tell, and somebody who hears it.
    goes_on: bool,
    /// The stream of a message that was given in part, where nothing may come between its parts, and whether it is unordered.
    pub unfinished: Option<(u16, bool)>,
    /// Told behind the part that was read and not given yet.
    after: Vec<AssociationEvent>,
    behind: Behind,
}

impl<'a> Told<'a> {
    /// Nothing was told yet. `port`: the peer's.
    pub fn new(link: &'a Link, port: u16) -> Self {
        Self {
            link,
            port,
            goes_on: true,
            unfinished: None,
            after: Vec::new(),
            behind: Behind::default(),
        }
    }

    /// Whether there may be more.
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Whether something is to be told once nothing is left to read.
    pub fn waits(&self) -> bool {
        self.unfinished.is_none() && !self.behind.0.is_empty()
    }

    /// The next event came, or there is none any more.
    pub async fn hear(&mut self, event: Option<(AssociationEvent, u32)>) {
        let Some((event, tsn)) = event else {
            self.goes_on = false;
            return;
        };
        self.note_cut(&event);
        if let AssociationEvent::PeerShutdown
        | AssociationEvent::Restarted { .. }
        | AssociationEvent::StreamsAdded { .. } = event
        {
            // Whether it takes messages, and on which streams, is to be asked again.
            self.link.advance();
        }
        if let Some(event) = self.behind.keep(event, tsn) {
            self.tell(event).await;
        }
    }

    /// Tells what is to be told before this part, which was read and not given yet.
    pub async fn hear_before(&mut self, part: &MessagePart, association: &Association) {
        // An event may have come since the last look, and then this part.
        while self.goes_on
            && self.after.len() < MOST
            && let Some((event, tsn)) = association.try_next_event_and_tsn()
        {
            match event {
                // It threw away what was not read.
                AssociationEvent::PartialDeliveryAborted { .. } => {
                    self.note_cut(&event);
                    self.after.push(event);
                }
                _ => self.hear(Some((event, tsn))).await,
            }
        }
        while let Some(event) = self.behind.next_before(part.stream, part.tsn) {
            self.tell(event).await;
        }
    }

    /// Tells what is to be told right behind the part that was given.
    pub async fn tell_after(&mut self) {
        for event in std::mem::take(&mut self.after) {
            self.tell(event).await;
        }
    }

    /// The other parts of the message never come.
    fn note_cut(&mut self, event: &AssociationEvent) {
        self.unfinished = self.unfinished.filter(|it| !may_cut(event, *it));
    }

    /// Tells what waits.
    pub async fn tell_all(&mut self) {
        while let Some(event) = self.behind.next() {
            self.tell(event).await;
        }
    }

    async fn tell(&mut self, event: AssociationEvent) {
        if told(self.link, &event, self.port).await.is_err() {
            self.goes_on = false;
            self.behind.0.clear();
        }
    }
}

/// Whether an event says that a message of that stream and kind has no end, or may have stood for one that said so.
fn may_cut(event: &AssociationEvent, message: (u16, bool)) -> bool {
    match event {
        AssociationEvent::PartialDeliveryAborted {
            stream, unordered, ..
        } => (*stream, *unordered) == message,
        AssociationEvent::Missed(_) => true,
        _ => false,
    }
}

/// What an event of the association's means to its program.
async fn told(link: &Link, event: &AssociationEvent, port: u16) -> io::Result<()> {
    if let AssociationEvent::MessageAbandoned {
        stream,
        policy,
        sent,
        ..
    } = event
    {
        link.count_given_up(stream.unwrap_or(0), *policy, *sent);
    }
    let confirms = link.confirms(event);
    // SCTP_EXPOSE_POTENTIALLY_FAILED_STATE.
    const TOLD: u32 = 2;
    let exposed = link.options().word(EXPOSE_POTENTIALLY_FAILED, 4) == TOLD;
    if matches!(event, AssociationEvent::PathPotentiallyFailed(_)) && !exposed {
        return Ok(());
    }
    let shown = |ip| link.shown(SocketAddr::new(ip, port));
    if let (AssociationEvent::PathUp(address), true) = (event, confirms) {
        // Linux tells nothing of those that the program gave itself (`sctp_connectx`).
        if link.was_called_at(*address) {
            return Ok(());
        }
        return tell(link, notification::confirmed(shown(*address), link.number)).await;
    }
    for it in notification::of_event(event, shown, link.number) {
        tell(link, it).await?;
    }
    Ok(())
}

/// Events that wait, in order, each with the last TSN before it.
#[derive(Default)]
struct Behind(VecDeque<(AssociationEvent, u32)>);

impl Behind {
    /// Keeps an event that waits until the messages before it are given. Gives what is to be told at once.
    fn keep(&mut self, event: AssociationEvent, tsn: u32) -> Option<AssociationEvent> {
        let waits = match &event {
            AssociationEvent::PeerShutdown | AssociationEvent::Restarted { .. } => true,
            AssociationEvent::StreamsReset {
                direction, outcome, ..
            } => (*direction, *outcome) == (StreamDirection::Incoming, ReconfigOutcome::Performed),
            _ => false,
        };
        if !waits {
            return Some(event);
        }
        self.0.push_back((event, tsn));
        match self.0.len() > MOST {
            true => self.next(),
            false => None,
        }
    }

    /// The next one, where one of those that wait comes before the message of that stream with that TSN.
    fn next_before(&mut self, stream: u16, tsn: u32) -> Option<AssociationEvent> {
        let is_before = |(event, last): &(AssociationEvent, u32)| match event {
            AssociationEvent::StreamsReset { streams, .. } => {
                let meant = streams.is_empty() || streams.contains(&stream);
                meant && (tsn.wrapping_sub(*last) as i32) > 0
            }
            // The peer's numbers begin again, anywhere: what is left of those before is hardly ever right behind the new ones.
            AssociationEvent::Restarted { .. } => (1..RESTARTED).contains(&tsn.wrapping_sub(*last)),
            _ => false,
        };
        match self.0.iter().any(is_before) {
            true => self.next(),
            false => None,
        }
    }

    /// The next one, where no message is before it.
    fn next(&mut self) -> Option<AssociationEvent> {
        self.0.pop_front().map(|(event, _)| event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reset(streams: &[u16], direction: StreamDirection) -> AssociationEvent {
        AssociationEvent::StreamsReset {
            direction,
            streams: streams.to_vec(),
            outcome: ReconfigOutcome::Performed,
        }
    }

    #[test]
    fn a_reset_is_between_the_messages_of_its_stream() {
        let mut behind = Behind::default();
        let [first, second] = [&[3][..], &[]].map(|it| reset(it, StreamDirection::Incoming));
        let own = reset(&[3], StreamDirection::Outgoing);
        assert_eq!(behind.keep(own.clone(), 9), Some(own));
        assert_eq!(behind.keep(first.clone(), u32::MAX), None);
        assert_eq!(behind.keep(second.clone(), 5), None);
        assert_eq!(behind.keep(AssociationEvent::PeerShutdown, 9), None);
        // The TSNs go on behind the largest.
        assert_eq!(behind.next_before(3, u32::MAX), None);
        assert_eq!(behind.next_before(4, 2), None, "of another stream");
        assert_eq!(behind.next_before(3, 2), Some(first));
        assert_eq!(behind.next_before(3, 2), None);
        assert_eq!(behind.next_before(7, 6), Some(second), "of any stream");
        assert_eq!(behind.next_before(7, 10), None);
        assert_eq!(behind.next(), Some(AssociationEvent::PeerShutdown));
        assert!(behind.0.is_empty());
    }

    #[test]
    fn a_restart_is_behind_the_messages_before_it() {
        let mut behind = Behind::default();
        let restart = AssociationEvent::Restarted { data_lost: false };
        assert_eq!(behind.keep(restart.clone(), 1_000), None);
        assert_eq!(behind.next_before(0, 0x7000_0000), None, "of before");
        assert_eq!(behind.next_before(0, 999), None, "of before");
        assert_eq!(behind.next_before(0, 1_001), Some(restart));
        assert_eq!(behind.next_before(0, 1_002), None);
    }

    #[test]
    fn a_message_is_cut_by_what_is_told_of_its_stream() {
        let aborted = AssociationEvent::PartialDeliveryAborted {
            stream: 3,
            unordered: false,
            ssn: 0,
            first_tsn: 1,
            ppid: 0,
        };
        assert!(may_cut(&aborted, (3, false)));
        assert!(!may_cut(&aborted, (4, false)) && !may_cut(&aborted, (3, true)));
        assert!(may_cut(&AssociationEvent::Missed(1), (3, false)));
        assert!(!may_cut(&AssociationEvent::PeerShutdown, (3, false)));
    }

    #[test]
    fn so_many_wait_at_most() {
        let mut behind = Behind::default();
        let all = (0..100).map(|it| reset(&[it], StreamDirection::Incoming));
        let told: Vec<_> = all.filter_map(|it| behind.keep(it, 1)).collect();
        assert_eq!(told.len(), 100 - MOST);
        assert_eq!(told[0], reset(&[0], StreamDirection::Incoming));
        assert_eq!(behind.0.len(), MOST);
    }
}

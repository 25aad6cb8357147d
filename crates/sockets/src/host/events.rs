//! Translation of association events to notifications for the program.

use std::io;
use std::net::SocketAddr;

use anabranch_net::{Event, PathState};

use super::notification::{self, AssocChange};
use super::notify::send_notification;
use super::socket::SocketAssociation;
use crate::options::EXPOSE_POTENTIALLY_FAILED;

/// Whether the event means that the last part of an incomplete message will never arrive. The
/// message is given by its stream and whether it is unordered. `Missed` counts too, because a
/// missed event may have been such an abort.
pub(super) fn cuts(event: &Event, (its_stream, is_unordered): (u16, bool)) -> bool {
    match event {
        Event::PartialDeliveryAborted {
            stream, unordered, ..
        } => (*stream, *unordered) == (its_stream, is_unordered),
        Event::Missed { .. } => true,
        _ => false,
    }
}

/// Notifies the program of an event; `port` is the peer's SCTP port.
///
/// # Errors
/// The program has ended.
pub(super) async fn notify(assoc: &SocketAssociation, event: &Event, port: u16) -> io::Result<()> {
    if let Event::MessageAbandoned(it) = event {
        assoc.count_abandoned(it.stream.unwrap_or(0), it.policy, it.sent);
    }
    if let Event::PeerShutdown | Event::Restarted { .. } | Event::StreamsAdded { .. } = event {
        // Invalidates the program's cache, because the event may change whether the association
        // accepts messages, and on which streams.
        assoc.advance();
    }
    if let (Event::Restarted { .. }, Some(association)) = (event, assoc.association()) {
        let restarted = AssocChange::Restart;
        let change = notification::begun(restarted, &association, [0; 2], assoc.number);
        return send_notification(assoc, change).await;
    }
    let confirms = assoc.confirms(event);
    let shown = |ip| assoc.shown(SocketAddr::new(ip, port));
    if let Event::PathChanged { address, state, .. } = event {
        // Value of SCTP_EXPOSE_POTENTIALLY_FAILED_STATE that enables notifications.
        const EXPOSED: u32 = 2;
        let exposed = assoc.options().word(EXPOSE_POTENTIALLY_FAILED, 4) == EXPOSED;
        if *state == PathState::PotentiallyFailed && !exposed {
            return Ok(());
        }
        if confirms {
            // No notification, like in Linux, for addresses that the program has passed itself
            // (`sctp_connectx`).
            if assoc.was_connected_to(*address) {
                return Ok(());
            }
            return send_notification(
                assoc,
                notification::addr_confirmed(shown(*address), assoc.number),
            )
            .await;
        }
    }
    for it in notification::of_event(event, shown, assoc.number) {
        send_notification(assoc, it).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_by_the_end_of_its_kind() {
        let aborted = |stream, unordered| Event::PartialDeliveryAborted {
            stream,
            unordered,
            ssn: Default::default(),
            first_tsn: Default::default(),
            ppid: 0,
        };
        assert!(cuts(&aborted(3, false), (3, false)));
        assert!(!cuts(&aborted(4, false), (3, false)) && !cuts(&aborted(3, false), (3, true)));
        assert!(cuts(&Event::Missed { events: 1 }, (3, false)));
        assert!(!cuts(&Event::PeerShutdown, (3, false)));
    }
}

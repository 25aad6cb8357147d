//! Processing of a COOKIE ECHO for an existing or new association (RFC 9260 §5.2.4).

use std::net::IpAddr;

use anabranch_transport::Nanos;
use anabranch_wire::cause::{Cause, Causes};

use super::{Association, Reply};
use crate::cookie::Cookie;
use crate::discard::DiscardCounts;
use crate::state::{EstablishedState, State, Tcb};

impl Association {
    /// Handles the COOKIE ECHO of a restarted peer in SHUTDOWN-ACK-SENT: resends the SHUTDOWN ACK,
    /// with an ERROR that reports why there is no new association (RFC 9260 §5.2.4.1, action A).
    pub(crate) fn refuse_cookie_at_end(&mut self, discards: &mut DiscardCounts) {
        if let Some(EstablishedState::ShutdownAckSent(closing)) = self.state.stage_mut() {
            closing.retry.due = true;
            let to = closing.retry.path;
            let causes = Causes::of(&[Cause::CookieReceivedWhileShuttingDown]);
            self.reply_room = None;
            self.reply(Reply::Error { to, causes }, discards);
        }
    }

    /// Sends the COOKIE ACK to the source of the COOKIE ECHO, verified or not, because the default
    /// path may be the path that lost the COOKIE ECHO before. Its packet then also has a HEARTBEAT
    /// (RFC 9260 §5.4).
    pub(crate) fn acknowledge_cookie(&mut self, source: IpAddr) {
        self.cookie_ack = self.paths.find(source).or(Some(self.paths.primary()));
    }

    /// Whether the peer announced its current tag after the tag in `cookie`, whose tag for this
    /// side is the current one. Every cookie with that tag was made while this side was connecting.
    ///
    /// In COOKIE-ECHOED, the peer's INIT and INIT ACK may have arrived in a different order than
    /// they were sent. The COOKIE ECHO of this side, which the peer answers if it is the later of
    /// the two, has one period of T1-cookie to be answered; afterwards the cookie is accepted.
    pub(crate) fn knows_better(&self, cookie: &Cookie) -> bool {
        let State::Active(Tcb { peer, stage, .. }) = &self.state else {
            return false;
        };
        if !self.config.profile.late_cookies_discarded {
            return false;
        }
        let older = cookie.created_at <= peer.since;
        match stage {
            EstablishedState::CookieEchoed(echoed) => older && echoed.echo.retransmissions == 0,
            _ => older,
        }
    }

    pub(crate) fn is_being_set_up(&self) -> bool {
        self.state.is_being_set_up()
    }

    /// Enters ESTABLISHED from COOKIE-WAIT or COOKIE-ECHOED; has no effect in other states.
    pub(crate) fn establish_unless_up(&mut self, now: Nanos) {
        if self.is_being_set_up() {
            self.establish(now);
        }
    }
}

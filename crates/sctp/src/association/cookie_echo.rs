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

    /// Sends the COOKIE ACK to the source of the COOKIE ECHO, verified or not, because the primary
    /// path may have lost an earlier COOKIE ECHO. If the source is unverified, the packet also
    /// contains a HEARTBEAT (RFC 9260 §5.4).
    pub(crate) fn acknowledge_cookie(&mut self, source: IpAddr) {
        self.cookie_ack = self.paths.find(source).or(Some(self.paths.primary()));
    }

    /// Whether `cookie` is outdated: it has the current local tag, but was created before the peer
    /// announced its current tag. In COOKIE-ECHOED this is uncertain, because the peer's INIT and
    /// INIT ACK may have arrived in the reverse order. If the peer sent the INIT ACK last, it will
    /// answer this side's COOKIE ECHO. Therefore the cookie is discarded until T1-cookie has
    /// expired once, and accepted afterwards.
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

    /// Enters ESTABLISHED from COOKIE-WAIT or COOKIE-ECHOED. Has no effect in other states.
    pub(crate) fn establish_unless_up(&mut self, now: Nanos) {
        if self.is_being_set_up() {
            self.establish(now);
        }
    }
}

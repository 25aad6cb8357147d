//! What a COOKIE ECHO does to an association that exists or has just come to be (RFC 9260 §5.2.4).

use std::net::IpAddr;

use anabranch_transport::Nanos;
use anabranch_wire::cause::{Cause, Causes};

use super::{Association, Reply};
use crate::cookie::Cookie;
use crate::discard::Discards;
use crate::state::{Known, Stage, State};

impl Association {
    /// COOKIE ECHO of a restarted peer in SHUTDOWN-ACK-SENT: the SHUTDOWN ACK again, and an ERROR that says why there is
    /// no new association (RFC 9260 §5.2.4.1, action A).
    pub(crate) fn refuse_cookie_at_end(&mut self, discards: &mut Discards) {
        if let Some(Stage::ShutdownAckSent(closing)) = self.state.stage_mut() {
            closing.retry.due = true;
            let to = closing.retry.path;
            let causes = Causes::of(&[Cause::CookieReceivedWhileShuttingDown]);
            self.reply_room = None;
            self.reply(Reply::Error { to, causes }, discards);
        }
    }

    /// COOKIE ACK to where the COOKIE ECHO came from, verified or not: the path it would take else may be the one that lost
    /// the COOKIE ECHO before. It then shares its packet with a HEARTBEAT (RFC 9260 §5.4).
    pub(crate) fn acknowledge_cookie(&mut self, source: IpAddr) {
        self.cookie_ack = self.paths.find(source).or(Some(self.paths.primary()));
    }

    /// Whether the peer named the tag it has now after the one in `cookie`, whose tag for us is ours. Every cookie with that
    /// tag was made while this side called.
    ///
    /// In COOKIE-ECHOED the order in which the peer's INIT and its INIT ACK came may not be that in which they were sent: our
    /// COOKIE ECHO, which the peer answers if it is the later, is given one T1-cookie; then the cookie counts.
    pub(crate) fn knows_better(&self, cookie: &Cookie) -> bool {
        let State::Known(Known { peer, stage, .. }) = &self.state else {
            return false;
        };
        if !self.config.profile.late_cookies_discarded {
            return false;
        }
        let older = cookie.created_at <= peer.since;
        match stage {
            Stage::CookieEchoed(echoed) => older && echoed.echo.retransmissions == 0,
            _ => older,
        }
    }

    pub(crate) fn is_being_set_up(&self) -> bool {
        self.state.is_being_set_up()
    }

    /// Enters ESTABLISHED from COOKIE-WAIT or COOKIE-ECHOED; elsewhere nothing changes.
    pub(crate) fn establish_unless_up(&mut self, now: Nanos) {
        if self.is_being_set_up() {
            self.establish(now);
        }
    }
}

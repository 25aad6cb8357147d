//! Where an association stands (RFC 9260 §4), each variant owning only what is alive in it.

use anabranch_transport::Nanos;
use bytes::Bytes;

use crate::event::CloseReason;
use crate::path::PathId;

/// A control chunk that is sent again until it is answered: INIT, COOKIE ECHO, SHUTDOWN or SHUTDOWN ACK, with its timer
/// (T1-init, T1-cookie or T2-shutdown).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry {
    /// Where it goes.
    pub(crate) path: PathId,
    /// It must be put into the next packet.
    pub(crate) due: bool,
    /// When it is sent again; `None` until it was sent.
    pub(crate) deadline: Option<Nanos>,
    /// How often it was sent again without an answer.
    pub(crate) retransmissions: u32,
    /// When it was sent, as long as it was sent once only (Karn's rule, RFC 9260 §6.3.1 C5).
    pub(crate) sent_once_at: Option<Nanos>,
}

impl Retry {
    /// To be sent to `path` at once.
    pub(crate) fn new(path: PathId) -> Self {
        Self {
            path,
            due: true,
            deadline: None,
            retransmissions: 0,
            sent_once_at: None,
        }
    }

    /// It was put into a packet.
    pub(crate) fn sent(&mut self, now: Nanos, rto: Nanos) {
        self.sent_once_at = match self.deadline {
            None => Some(now),
            Some(_) => None,
        };
        self.due = false;
        self.deadline = Some(now.saturating_add(rto));
    }

    /// Whether the timer expired.
    pub(crate) fn expired(&self, now: Nanos) -> bool {
        !self.due && self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Sends it again, to `path`.
    pub(crate) fn again(&mut self, path: PathId) {
        self.path = path;
        self.due = true;
        self.retransmissions += 1;
    }
}

/// The states of RFC 9260 §4 that have a TCB, and the end.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// INIT was sent; nothing is known of the peer.
    CookieWait(CookieWait),
    /// The cookie went back to the peer.
    CookieEchoed(CookieEchoed),
    Established,
    /// The user asked to close; outstanding data is being finished.
    ShutdownPending,
    /// SHUTDOWN was sent.
    ShutdownSent(Closing),
    /// The peer asked to close; outstanding data is being finished.
    ShutdownReceived,
    /// SHUTDOWN ACK was sent.
    ShutdownAckSent(Closing),
    /// Over.
    Closed(CloseReason),
}

#[derive(Clone, Debug)]
pub(crate) struct CookieWait {
    pub(crate) init: Retry,
    /// The longer life to ask for, in milliseconds, after a cookie of ours came too late (RFC 9260 §5.2.6).
    pub(crate) cookie_preservative: Option<u32>,
    /// Cookies that came too late so far.
    pub(crate) stale_cookies: u32,
    /// The user asked to close before the association was up.
    pub(crate) shutdown_when_open: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct CookieEchoed {
    pub(crate) echo: Retry,
    pub(crate) cookie: Bytes,
    /// Causes to report along with the COOKIE ECHO: parameters of the INIT ACK that are not known here, whole
    /// (RFC 9260 §3.2.1).
    pub(crate) unrecognized: Vec<Bytes>,
    /// Cookies that came too late so far.
    pub(crate) stale_cookies: u32,
    pub(crate) shutdown_when_open: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Closing {
    /// SHUTDOWN or SHUTDOWN ACK, with T2-shutdown.
    pub(crate) retry: Retry,
    /// T5-shutdown-guard: when patience ends. It belongs to the side that sent a SHUTDOWN (RFC 9260 §9.2); `None` on the
    /// other, and once it is over.
    pub(crate) guard: Option<Nanos>,
    /// It is over, and the peer was silent then.
    pub(crate) overdue: bool,
}

impl State {
    /// The state's name in the RFC.
    pub(crate) fn name(&self) -> StateName {
        match self {
            State::CookieWait(_) => StateName::CookieWait,
            State::CookieEchoed(_) => StateName::CookieEchoed,
            State::Established => StateName::Established,
            State::ShutdownPending => StateName::ShutdownPending,
            State::ShutdownSent(_) => StateName::ShutdownSent,
            State::ShutdownReceived => StateName::ShutdownReceived,
            State::ShutdownAckSent(_) => StateName::ShutdownAckSent,
            State::Closed(_) => StateName::Closed,
        }
    }

    /// The chunk being repeated, if there is one.
    pub(crate) fn retry(&self) -> Option<&Retry> {
        match self {
            State::CookieWait(wait) => Some(&wait.init),
            State::CookieEchoed(echoed) => Some(&echoed.echo),
            State::ShutdownSent(closing) | State::ShutdownAckSent(closing) => Some(&closing.retry),
            _ => None,
        }
    }

    /// As [`Self::retry`], to change it.
    pub(crate) fn retry_mut(&mut self) -> Option<&mut Retry> {
        match self {
            State::CookieWait(wait) => Some(&mut wait.init),
            State::CookieEchoed(echoed) => Some(&mut echoed.echo),
            State::ShutdownSent(closing) | State::ShutdownAckSent(closing) => {
                Some(&mut closing.retry)
            }
            _ => None,
        }
    }

    /// When the state's own timers are due: T1-init, T1-cookie, T2-shutdown, T5-shutdown-guard.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        let retry = self
            .retry()
            .filter(|retry| !retry.due)
            .and_then(|retry| retry.deadline);
        match self {
            State::ShutdownSent(closing) | State::ShutdownAckSent(closing) => {
                retry.into_iter().chain(closing.guard).min()
            }
            _ => retry,
        }
    }

    /// Whether DATA may be received (RFC 9260 §6).
    pub(crate) fn receives_data(&self) -> bool {
        matches!(
            self,
            State::Established | State::ShutdownPending | State::ShutdownSent(_)
        )
    }

    /// Whether DATA may be sent in any packet (RFC 9260 §6).
    pub(crate) fn sends_data(&self) -> bool {
        matches!(
            self,
            State::Established | State::ShutdownPending | State::ShutdownReceived
        )
    }

    /// Whether idle paths are probed (RFC 9260 §8.3: from COOKIE-ECHOED to the SHUTDOWN or SHUTDOWN ACK).
    pub(crate) fn probes_paths(&self) -> bool {
        matches!(
            self,
            State::Established | State::ShutdownPending | State::ShutdownReceived
        )
    }

    /// Whether the user may still offer messages.
    pub(crate) fn takes_messages(&self) -> bool {
        match self {
            State::CookieWait(wait) => !wait.shutdown_when_open,
            State::CookieEchoed(echoed) => !echoed.shutdown_when_open,
            State::Established => true,
            _ => false,
        }
    }
}

/// The name of a state (RFC 9260 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateName {
    /// COOKIE-WAIT.
    CookieWait,
    /// COOKIE-ECHOED.
    CookieEchoed,
    /// ESTABLISHED.
    Established,
    /// SHUTDOWN-PENDING.
    ShutdownPending,
    /// SHUTDOWN-SENT.
    ShutdownSent,
    /// SHUTDOWN-RECEIVED.
    ShutdownReceived,
    /// SHUTDOWN-ACK-SENT.
    ShutdownAckSent,
    /// CLOSED.
    Closed,
}

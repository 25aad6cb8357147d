//! Where an association stands (RFC 9260 §4): each state owns what is alive in it, and nothing else.

use anabranch_transport::Nanos;
use anabranch_wire::Tsn;
use bytes::Bytes;

use crate::address_changes::AddressChanges;
use crate::event::CloseReason;
use crate::extensions::Extensions;
use crate::path::PathId;
use crate::reconfig::ReconfigState;
pub(crate) use crate::retry::Retry;
use crate::state_name::StateName;
use crate::stats::SenderStatistics;

/// What is alive of an association.
#[derive(Debug)]
#[repr(u8)] // is asked for many times a packet, and quickly found out where it does not hide in what it holds
pub(crate) enum State {
    /// INIT was sent; nothing is known of the peer.
    CookieWait(CookieWait),
    /// The peer is known, and can be heard.
    Known(Known),
    /// Over.
    Closed(Box<Closed>),
}

/// An association whose peer is known.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) peer: Peer,
    /// What is spoken with it beyond RFC 9260.
    pub(crate) extensions: Extensions,
    /// Present while both ends speak RE-CONFIG.
    pub(crate) reconfig: Option<Box<ReconfigState>>,
    /// Present while both ends speak ASCONF.
    pub(crate) addresses: Option<Box<AddressChanges>>,
    pub(crate) stage: Stage,
}

/// What the peer said of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    /// The tag in packets to it; never 0.
    pub(crate) tag: u32,
    pub(crate) initial_tsn: Tsn,
    /// When it said so: its INIT ACK came, or the INIT whose cookie came back. A cookie that is no younger is of a life that
    /// the peer had given up before.
    pub(crate) since: Nanos,
    /// What the layer above it is, if it said so (RFC 5061 §4.2.6).
    pub(crate) adaptation: Option<u32>,
}

/// What is left of an association.
#[derive(Debug)]
pub(crate) struct Closed {
    pub(crate) reason: CloseReason,
    /// What the peer's user said when it aborted.
    pub(crate) peers_reason: Option<Box<[u8]>>,
    /// The tag in packets to the peer, if it was ever known.
    pub(crate) peer_tag: Option<u32>,
    /// What the sender had counted.
    pub(crate) sent: SenderStatistics,
}

/// The states of RFC 9260 §4 in which the peer is known. What only those hold that pass is apart: an association is established nearly all
/// its life.
#[derive(Clone, Debug)]
#[repr(u8)] // as `State`
pub(crate) enum Stage {
    /// The cookie went back to the peer.
    CookieEchoed(Box<CookieEchoed>),
    Established,
    /// The user asked to close; outstanding data is being finished.
    ShutdownPending,
    /// SHUTDOWN was sent.
    ShutdownSent(Box<Closing>),
    /// The peer asked to close; outstanding data is being finished.
    ShutdownReceived,
    /// SHUTDOWN ACK was sent.
    ShutdownAckSent(Box<Closing>),
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

impl CookieWait {
    /// To send the first INIT over the first path.
    pub(crate) fn first() -> Self {
        Self {
            init: Retry::new(PathId(0)),
            cookie_preservative: None,
            stale_cookies: 0,
            shutdown_when_open: false,
        }
    }
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
    /// When T5-shutdown-guard expires. Only the sender of a SHUTDOWN has it (RFC 9260 §9.2).
    pub(crate) guard: Option<Nanos>,
}

impl Stage {
    fn name(&self) -> StateName {
        match self {
            Stage::CookieEchoed(_) => StateName::CookieEchoed,
            Stage::Established => StateName::Established,
            Stage::ShutdownPending => StateName::ShutdownPending,
            Stage::ShutdownSent(_) => StateName::ShutdownSent,
            Stage::ShutdownReceived => StateName::ShutdownReceived,
            Stage::ShutdownAckSent(_) => StateName::ShutdownAckSent,
        }
    }
}

impl Stage {
    /// Whether SHUTDOWN or SHUTDOWN ACK was sent.
    #[inline]
    pub(crate) fn is_shutting_down(&self) -> bool {
        matches!(self, Stage::ShutdownSent(_) | Stage::ShutdownAckSent(_))
    }
}

impl State {
    /// The state's name in the RFC.
    pub(crate) fn name(&self) -> StateName {
        match self {
            State::CookieWait(_) => StateName::CookieWait,
            State::Known(known) => known.stage.name(),
            State::Closed(_) => StateName::Closed,
        }
    }

    /// Where an association stands whose peer is known.
    #[inline]
    pub(crate) fn stage(&self) -> Option<&Stage> {
        match self {
            State::Known(known) => Some(&known.stage),
            _ => None,
        }
    }

    /// As [`Self::stage`], to change it.
    pub(crate) fn stage_mut(&mut self) -> Option<&mut Stage> {
        match self {
            State::Known(known) => Some(&mut known.stage),
            _ => None,
        }
    }

    /// The tag in packets to the peer, once it is known.
    #[inline]
    pub(crate) fn peer_tag(&self) -> Option<u32> {
        match self {
            State::Known(known) => Some(known.peer.tag),
            State::Closed(closed) => closed.peer_tag,
            State::CookieWait(_) => None,
        }
    }

    /// Whether the handshake is under way on this side.
    pub(crate) fn is_being_set_up(&self) -> bool {
        matches!(self.name(), StateName::CookieWait | StateName::CookieEchoed)
    }

    /// The user's wish to close once the association is up, while this side sets it up.
    pub(crate) fn shutdown_when_open(&mut self) -> Option<&mut bool> {
        match self {
            State::CookieWait(wait) => Some(&mut wait.shutdown_when_open),
            State::Known(known) => match &mut known.stage {
                Stage::CookieEchoed(echoed) => Some(&mut echoed.shutdown_when_open),
                _ => None,
            },
            State::Closed(_) => None,
        }
    }

    /// The end that is under way: SHUTDOWN or SHUTDOWN ACK was sent.
    pub(crate) fn closing(&self) -> Option<&Closing> {
        match self.stage()? {
            Stage::ShutdownSent(closing) | Stage::ShutdownAckSent(closing) => Some(closing),
            _ => None,
        }
    }

    /// The chunk being repeated, if there is one.
    pub(crate) fn retry(&self) -> Option<&Retry> {
        match self {
            State::CookieWait(wait) => Some(&wait.init),
            State::Known(known) => match &known.stage {
                Stage::CookieEchoed(echoed) => Some(&echoed.echo),
                _ => self.closing().map(|closing| &closing.retry),
            },
            State::Closed(_) => None,
        }
    }

    /// As [`Self::retry`], to change it.
    pub(crate) fn retry_mut(&mut self) -> Option<&mut Retry> {
        match self {
            State::CookieWait(wait) => Some(&mut wait.init),
            State::Known(known) => match &mut known.stage {
                Stage::CookieEchoed(echoed) => Some(&mut echoed.echo),
                Stage::ShutdownSent(closing) | Stage::ShutdownAckSent(closing) => {
                    Some(&mut closing.retry)
                }
                _ => None,
            },
            State::Closed(_) => None,
        }
    }

    /// When the state's own timers are due: T1-init, T1-cookie, T2-shutdown, T5-shutdown-guard.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        let retry = self
            .retry()
            .filter(|retry| !retry.due)
            .and_then(|retry| retry.deadline);
        let guard = self.closing().and_then(|closing| closing.guard);
        retry.into_iter().chain(guard).min()
    }

    /// Whether all that may be sent is DATA and what goes with it.
    #[inline]
    pub(crate) fn is_established(&self) -> bool {
        matches!(self.stage(), Some(Stage::Established))
    }

    /// Whether the association is over.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self, State::Closed(_))
    }

    /// Whether DATA may be received (RFC 9260 §6).
    #[inline]
    pub(crate) fn receives_data(&self) -> bool {
        matches!(
            self.stage(),
            Some(Stage::Established | Stage::ShutdownPending | Stage::ShutdownSent(_))
        )
    }

    /// Whether DATA may be sent in any packet (RFC 9260 §6).
    #[inline]
    pub(crate) fn sends_data(&self) -> bool {
        matches!(
            self.stage(),
            Some(Stage::Established | Stage::ShutdownPending | Stage::ShutdownReceived)
        )
    }

    /// Whether idle paths are probed (RFC 9260 §8.3: from COOKIE-ECHOED to the SHUTDOWN or SHUTDOWN ACK).
    #[inline]
    pub(crate) fn probes_paths(&self) -> bool {
        self.sends_data()
    }

    /// Whether the user may still offer messages.
    pub(crate) fn takes_messages(&self) -> bool {
        match self {
            State::CookieWait(wait) => !wait.shutdown_when_open,
            State::Known(known) => match &known.stage {
                Stage::CookieEchoed(echoed) => !echoed.shutdown_when_open,
                Stage::Established => true,
                _ => false,
            },
            State::Closed(_) => false,
        }
    }
}

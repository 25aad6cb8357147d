//! State of an association (RFC 9260 §4); each variant owns the data that exists only in this
//! state.

use anabranch_transport::Nanos;
use anabranch_wire::Tsn;
use bytes::Bytes;

use crate::asconf::AsconfState;
use crate::association_state::AssociationState;
pub(crate) use crate::control_retransmission::ControlRetransmission;
use crate::event::CloseReason;
use crate::extensions::Extensions;
use crate::path::PathId;
use crate::reconfig::ReconfigState;
use crate::stats::SenderStatistics;

/// State of an association.
#[derive(Debug)]
#[repr(u8)] // read many times per packet, and fastest without niche encoding
pub(crate) enum State {
    /// INIT was sent; the peer has not answered.
    CookieWait(CookieWait),
    /// The peer's parameters are known, and packets can be exchanged.
    Active(Tcb),
    /// The association is closed.
    Closed(Box<Closed>),
}

/// Data of an association whose peer is known, in one of the states of [`EstablishedState`].
#[derive(Debug)]
pub(crate) struct Tcb {
    pub(crate) peer: Peer,
    /// Negotiated extensions.
    pub(crate) extensions: Extensions,
    /// RE-CONFIG state; present if both ends support RE-CONFIG.
    pub(crate) reconfig: Option<Box<ReconfigState>>,
    /// ASCONF state; present if both ends support ASCONF.
    pub(crate) addresses: Option<Box<AsconfState>>,
    pub(crate) stage: EstablishedState,
}

/// Parameters announced by the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    /// Verification tag of packets to the peer; never 0.
    pub(crate) tag: u32,
    pub(crate) initial_tsn: Tsn,
    /// Time of the peer's INIT ACK, or of the INIT whose cookie was returned. A cookie that is not
    /// newer belongs to an earlier setup, which the peer has abandoned.
    pub(crate) since: Nanos,
    /// Adaptation layer indication, if the peer sent one (RFC 5061 §4.2.6).
    pub(crate) adaptation: Option<u32>,
}

/// Remaining data of a closed association.
#[derive(Debug)]
pub(crate) struct Closed {
    pub(crate) reason: CloseReason,
    /// Text in the peer's ABORT.
    pub(crate) peers_reason: Option<Box<[u8]>>,
    /// Verification tag of packets to the peer, if it was ever known.
    pub(crate) peer_tag: Option<u32>,
    /// Counters of the dropped sender.
    pub(crate) sent: SenderStatistics,
}

/// States of RFC 9260 §4 in which the peer is known. The data of transient states is boxed, because
/// an association is in ESTABLISHED most of the time.
#[derive(Clone, Debug)]
#[repr(u8)] // as `State`
pub(crate) enum EstablishedState {
    /// COOKIE ECHO was sent.
    CookieEchoed(Box<CookieEchoed>),
    Established,
    /// The user has requested a shutdown; queued and outstanding data is still being sent.
    ShutdownPending,
    /// SHUTDOWN was sent.
    ShutdownSent(Box<Closing>),
    /// The peer has requested a shutdown; queued and outstanding data is still being sent.
    ShutdownReceived,
    /// SHUTDOWN ACK was sent.
    ShutdownAckSent(Box<Closing>),
}

#[derive(Clone, Debug)]
pub(crate) struct CookieWait {
    pub(crate) init: ControlRetransmission,
    /// Suggested cookie life-span increment in milliseconds, after a Stale Cookie error (RFC 9260
    /// §5.2.6).
    pub(crate) cookie_preservative: Option<u32>,
    /// Number of Stale Cookie errors received so far.
    pub(crate) stale_cookies: u32,
    /// Whether the user has requested a shutdown before the association was established.
    pub(crate) shutdown_when_open: bool,
}

impl CookieWait {
    /// Initial state, with the INIT to be sent over the first path.
    pub(crate) fn first() -> Self {
        Self {
            init: ControlRetransmission::new(PathId(0)),
            cookie_preservative: None,
            stale_cookies: 0,
            shutdown_when_open: false,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct CookieEchoed {
    pub(crate) echo: ControlRetransmission,
    pub(crate) cookie: Bytes,
    /// Complete unrecognized parameters of the INIT ACK, to be reported with the COOKIE ECHO (RFC
    /// 9260 §3.2.1).
    pub(crate) unrecognized: Vec<Bytes>,
    /// Number of Stale Cookie errors received so far.
    pub(crate) stale_cookies: u32,
    pub(crate) shutdown_when_open: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Closing {
    /// Retransmission state of SHUTDOWN or SHUTDOWN ACK, with T2-shutdown.
    pub(crate) retry: ControlRetransmission,
    /// Expiration time of T5-shutdown-guard, which only the sender of a SHUTDOWN starts (RFC 9260
    /// §9.2).
    pub(crate) guard: Option<Nanos>,
}

impl EstablishedState {
    fn name(&self) -> AssociationState {
        match self {
            EstablishedState::CookieEchoed(_) => AssociationState::CookieEchoed,
            EstablishedState::Established => AssociationState::Established,
            EstablishedState::ShutdownPending => AssociationState::ShutdownPending,
            EstablishedState::ShutdownSent(_) => AssociationState::ShutdownSent,
            EstablishedState::ShutdownReceived => AssociationState::ShutdownReceived,
            EstablishedState::ShutdownAckSent(_) => AssociationState::ShutdownAckSent,
        }
    }
}

impl EstablishedState {
    /// Whether SHUTDOWN or SHUTDOWN ACK was sent.
    #[inline]
    pub(crate) fn is_shutting_down(&self) -> bool {
        matches!(
            self,
            EstablishedState::ShutdownSent(_) | EstablishedState::ShutdownAckSent(_)
        )
    }
}

impl State {
    /// State as reported to the user.
    pub(crate) fn name(&self) -> AssociationState {
        match self {
            State::CookieWait(_) => AssociationState::CookieWait,
            State::Active(known) => known.stage.name(),
            State::Closed(_) => AssociationState::Closed,
        }
    }

    /// Detailed state of an association whose peer is known.
    #[inline]
    pub(crate) fn stage(&self) -> Option<&EstablishedState> {
        match self {
            State::Active(known) => Some(&known.stage),
            _ => None,
        }
    }

    /// Mutable version of [`Self::stage`].
    pub(crate) fn stage_mut(&mut self) -> Option<&mut EstablishedState> {
        match self {
            State::Active(known) => Some(&mut known.stage),
            _ => None,
        }
    }

    /// Verification tag of packets to the peer, once it is known.
    #[inline]
    pub(crate) fn peer_tag(&self) -> Option<u32> {
        match self {
            State::Active(known) => Some(known.peer.tag),
            State::Closed(closed) => closed.peer_tag,
            State::CookieWait(_) => None,
        }
    }

    /// Whether the handshake is not complete on this side.
    pub(crate) fn is_being_set_up(&self) -> bool {
        matches!(
            self.name(),
            AssociationState::CookieWait | AssociationState::CookieEchoed
        )
    }

    /// Flag that requests a shutdown as soon as the association is established; `None` after the
    /// handshake.
    pub(crate) fn shutdown_when_open(&mut self) -> Option<&mut bool> {
        match self {
            State::CookieWait(wait) => Some(&mut wait.shutdown_when_open),
            State::Active(known) => match &mut known.stage {
                EstablishedState::CookieEchoed(echoed) => Some(&mut echoed.shutdown_when_open),
                _ => None,
            },
            State::Closed(_) => None,
        }
    }

    /// Data of a shutdown in progress, in which SHUTDOWN or SHUTDOWN ACK was sent.
    pub(crate) fn closing(&self) -> Option<&Closing> {
        match self.stage()? {
            EstablishedState::ShutdownSent(closing)
            | EstablishedState::ShutdownAckSent(closing) => Some(closing),
            _ => None,
        }
    }

    /// Retransmission state of the current handshake or shutdown chunk, if there is one.
    pub(crate) fn retry(&self) -> Option<&ControlRetransmission> {
        match self {
            State::CookieWait(wait) => Some(&wait.init),
            State::Active(known) => match &known.stage {
                EstablishedState::CookieEchoed(echoed) => Some(&echoed.echo),
                _ => self.closing().map(|closing| &closing.retry),
            },
            State::Closed(_) => None,
        }
    }

    /// Mutable version of [`Self::retry`].
    pub(crate) fn retry_mut(&mut self) -> Option<&mut ControlRetransmission> {
        match self {
            State::CookieWait(wait) => Some(&mut wait.init),
            State::Active(known) => match &mut known.stage {
                EstablishedState::CookieEchoed(echoed) => Some(&mut echoed.echo),
                EstablishedState::ShutdownSent(closing)
                | EstablishedState::ShutdownAckSent(closing) => Some(&mut closing.retry),
                _ => None,
            },
            State::Closed(_) => None,
        }
    }

    /// Earliest deadline of T1-init, T1-cookie, T2-shutdown and T5-shutdown-guard.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        let retry = self
            .retry()
            .filter(|retry| !retry.due)
            .and_then(|retry| retry.deadline);
        let guard = self.closing().and_then(|closing| closing.guard);
        retry.into_iter().chain(guard).min()
    }

    /// Whether the association is in ESTABLISHED, in which usually only DATA and SACKs are sent.
    #[inline]
    pub(crate) fn is_established(&self) -> bool {
        matches!(self.stage(), Some(EstablishedState::Established))
    }

    /// Whether the association is closed.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self, State::Closed(_))
    }

    /// Whether DATA may be received (RFC 9260 §6).
    #[inline]
    pub(crate) fn receives_data(&self) -> bool {
        matches!(
            self.stage(),
            Some(
                EstablishedState::Established
                    | EstablishedState::ShutdownPending
                    | EstablishedState::ShutdownSent(_)
            )
        )
    }

    /// Whether DATA may be sent in any packet (RFC 9260 §6).
    #[inline]
    pub(crate) fn sends_data(&self) -> bool {
        matches!(
            self.stage(),
            Some(
                EstablishedState::Established
                    | EstablishedState::ShutdownPending
                    | EstablishedState::ShutdownReceived
            )
        )
    }

    /// Whether idle paths are probed: in all states from COOKIE-ECHOED to SHUTDOWN-SENT or
    /// SHUTDOWN-ACK-SENT (RFC 9260 §8.3).
    #[inline]
    pub(crate) fn probes_paths(&self) -> bool {
        self.sends_data()
    }

    /// Whether the user may still send messages.
    pub(crate) fn takes_messages(&self) -> bool {
        match self {
            State::CookieWait(wait) => !wait.shutdown_when_open,
            State::Active(known) => match &known.stage {
                EstablishedState::CookieEchoed(echoed) => !echoed.shutdown_when_open,
                EstablishedState::Established => true,
                _ => false,
            },
            State::Closed(_) => false,
        }
    }
}

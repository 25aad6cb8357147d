//! Key management by a secret that both ends share.
//!
//! Three messages prove to each end that the other has the secret, and that the DTLS Key Management
//! Parameters were not modified. The keys of the next epoch are derived from the secret, a random
//! number of each end, and both parameters:
//!
//! ```text
//!     client                                server
//!       | -- hello: random number ------------> | installs keys to open with
//!       | <- answer: random number, MAC ------- |
//!       |    installs both directions           |
//!       | -- finished: MAC -------------------> | installs keys to seal with,
//!       |                                       | accepts nothing unprotected
//!       | <- protection established ----------- |
//!       |    accepts nothing unprotected        |
//! ```
//!
//! The header of messages, the control message at the end and the lifetime of old keys are those of
//! draft-porfiri-tsvwg-sctp-dtls-handshake (§4, §6), which uses TLS 1.3 instead of the three
//! messages. In that draft the client protects its packets only after the last message, while the
//! server discards unprotected packets before: if an acknowledgement of the client is lost, its
//! retransmission is discarded, and the last message may never be sent. Here each end can open the
//! other's packets at any time, so that a loss delays the handshake but does not end it.
//!
//! There is no forward secrecy: an attacker who obtains the secret later can decrypt recorded
//! packets. Forward secrecy requires an exchange of ephemeral keys, like the TLS handshake of the
//! draft.

mod exchange;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use zeroize::Zeroizing;

use crate::contexts::KeyId;
use crate::management::{Action, KeyManagement, Role, Start};
use crate::suite::Suite;
use exchange::{Exchange, MAC, RANDOM};

/// The number of the method in offers. It is not registered, but belongs to the First Come First
/// Served range (draft-ietf-tsvwg-sctp-dtls-chunk-04 §9.1).
pub const METHOD: u8 = 250;

/// The first bit of a message: it is a control message.
const CONTROL: u8 = 0x80;
const EPOCH_BITS: u8 = 0x7F;
const PROTECTION_ESTABLISHED: u8 = 0x01;
const HELLO: u8 = 1;
const ANSWER: u8 = 2;
const FINISHED: u8 = 3;

const FIRST_EPOCH: u64 = 3;
const SECOND: u64 = 1_000_000_000;
/// Lifetime of keys of the previous epoch (draft-porfiri-tsvwg-sctp-dtls-handshake §6.2.3),
/// nanoseconds.
const DRAIN: u64 = 120 * SECOND;

/// Sizes to which the three messages are padded, bytes, so that their transmission takes the time
/// of another handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flights {
    /// The client's first.
    pub hello: usize,
    /// The server's answer.
    pub answer: usize,
    /// The client's last.
    pub finished: usize,
}

impl Flights {
    /// Approximately those of TLS 1.3 with certificates on both sides, two for each, of P-256.
    pub const CERTIFICATES: Self = Self {
        hello: 220,
        answer: 1_560,
        finished: 1_400,
    };
}

/// Settings that must be equal at both ends.
#[derive(Clone)]
pub struct Settings {
    /// The secret: at least 16 bytes, and not a password that can be guessed.
    pub secret: Zeroizing<Vec<u8>>,
    /// The cipher suite.
    pub suite: Suite,
    /// Keys for a protected restart are agreed on, too.
    pub restart: bool,
    /// Nanoseconds after which keys of the next epoch are agreed on. `None`: only when they are
    /// nearly exhausted, or the user requests it.
    pub rekey_interval: Option<u64>,
    /// Time limit for the first keys, nanoseconds; after that the association ends.
    pub handshake_timeout: u64,
    /// Sizes of messages.
    pub flights: Flights,
}

impl std::fmt::Debug for Settings {
    /// Shows everything except the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("suite", &self.suite)
            .field("restart", &self.restart)
            .field("rekey_interval", &self.rekey_interval)
            .field("handshake_timeout", &self.handshake_timeout)
            .field("flights", &self.flights)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// Settings with that secret, AES-128-GCM, restarts, and new keys each hour.
    pub fn new(secret: &[u8]) -> Self {
        Self {
            secret: Zeroizing::new(secret.to_vec()),
            suite: Suite::default(),
            restart: true,
            rekey_interval: Some(3_600 * SECOND),
            handshake_timeout: 60 * SECOND,
            flights: Flights::default(),
        }
    }
}

/// State of the agreement on the next epoch.
#[derive(Debug, Default)]
enum Step {
    #[default]
    Idle,
    /// The hello was sent.
    Hello(Box<Exchange>),
    /// The answer was sent.
    Answered(Box<Exchange>),
    /// The last message was sent.
    Finished(Box<Exchange>),
}

/// The method of one association.
#[derive(Debug)]
pub struct Preshared {
    settings: Settings,
    random: exchange::RandomNumbers,
    role: Role,
    parameters: [Vec<u8>; 2],
    /// The epoch of the keys in use; 2 before the first.
    epoch: u64,
    step: Step,
    rekey_at: Option<u64>,
    /// Deadline of the first keys.
    give_up_at: Option<u64>,
    /// Time to remove the keys of the previous epoch.
    drain_at: Option<u64>,
    /// The first agreement after a restart, whose keys are in use meanwhile: those of the next
    /// restart are installed when no packet of this one can be in flight
    /// (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.4).
    late: Option<Box<Exchange>>,
    /// The epoch of the restart keys that are in use, until they are removed.
    restarted: Option<u64>,
    actions: VecDeque<Action>,
    failed: bool,
}

impl Preshared {
    /// Creates it for one association; its random numbers are derived from `seed`, which must be
    /// secret and different for each association.
    pub fn new(settings: Settings, seed: [u8; 32]) -> Self {
        Self {
            settings,
            random: exchange::RandomNumbers::new(seed),
            role: Role::Client,
            parameters: Default::default(),
            epoch: FIRST_EPOCH - 1,
            step: Step::Idle,
            rekey_at: None,
            give_up_at: None,
            drain_at: None,
            late: None,
            restarted: None,
            actions: VecDeque::new(),
            failed: false,
        }
    }

    fn is_protected(&self) -> bool {
        self.epoch >= FIRST_EPOCH
    }

    /// Starts as client.
    fn begin(&mut self) {
        let random = self.random.draw();
        let exchange = self.exchange(self.epoch + 1, random);
        self.send(HELLO, exchange.epoch, &random, self.settings.flights.hello);
        self.step = Step::Hello(Box::new(exchange));
    }

    fn exchange(&self, epoch: u64, client_random: [u8; RANDOM]) -> Exchange {
        let [client, server] = &self.parameters;
        Exchange::new(&self.settings, epoch, client_random, client, server)
    }

    fn send(&mut self, kind: u8, epoch: u64, body: &[u8], filled_to: usize) {
        let mut message = vec![epoch as u8 & EPOCH_BITS, kind];
        message.extend_from_slice(body);
        message.resize(message.len().max(filled_to), 0);
        self.actions.push_back(Action::Send(message));
    }

    fn fail(&mut self, why: &'static str) {
        if !std::mem::replace(&mut self.failed, true) {
            self.actions.push_back(Action::Fail(why));
        }
    }

    fn on_hello(&mut self, body: &[u8]) {
        let Some(client_random) = body.first_chunk::<RANDOM>() else {
            return self.fail("the hello is too short");
        };
        match (&self.step, self.role) {
            (Step::Idle, _) => {}
            // Both started at the same time: the client's own agreement continues.
            (Step::Hello(_), Role::Client) => return,
            (Step::Hello(_), Role::Server) => {}
            _ => return self.fail("a hello in the middle of a handshake"),
        }
        if self.drain_at.is_some() {
            self.drain();
        }
        let mut exchange = self.exchange(self.epoch + 1, *client_random);
        let random = self.random.draw();
        let mac = exchange.answer(random);
        self.install(&exchange, Role::Client, false);
        self.install_restart_early(&exchange, Role::Server);
        let body = [&random[..], &mac].concat();
        self.send(ANSWER, exchange.epoch, &body, self.settings.flights.answer);
        self.step = Step::Answered(Box::new(exchange));
        self.rekey_at = None;
    }

    fn on_answer(&mut self, body: &[u8]) {
        let Step::Hello(mut exchange) = std::mem::take(&mut self.step) else {
            return self.fail("an answer to no hello");
        };
        let Some((random, mac)) = body
            .split_first_chunk::<RANDOM>()
            .and_then(|(random, rest)| Some((random, rest.first_chunk::<MAC>()?)))
        else {
            return self.fail("the answer is too short");
        };
        if !exchange.is_answer(*random, mac) {
            return self.fail("the server has another secret, or the handshake was changed");
        }
        // The server has done the same.
        if self.drain_at.is_some() {
            self.drain();
        }
        self.install(&exchange, Role::Server, false);
        self.install(&exchange, Role::Client, true);
        let mac = exchange.finished();
        let filled_to = self.settings.flights.finished;
        self.send(FINISHED, exchange.epoch, &mac, filled_to);
        self.step = Step::Finished(exchange);
    }

    fn on_finished(&mut self, now: u64, body: &[u8]) {
        let Step::Answered(exchange) = std::mem::take(&mut self.step) else {
            return self.fail("an end of no handshake");
        };
        let authentic = body
            .first_chunk::<MAC>()
            .is_some_and(|mac| exchange.is_finished(mac));
        if !authentic {
            return self.fail("the client has another secret, or the handshake was changed");
        }
        self.install(&exchange, Role::Server, true);
        let epoch = exchange.epoch;
        self.switch_to(now, exchange);
        let control = vec![CONTROL | (epoch as u8 & EPOCH_BITS), PROTECTION_ESTABLISHED];
        self.actions.push_back(Action::Send(control));
    }

    fn on_established(&mut self, now: u64) {
        let Step::Finished(exchange) = std::mem::take(&mut self.step) else {
            return self.fail("protection is said to be established, and is not");
        };
        self.switch_to(now, exchange);
    }

    /// Installs the keys of `sender`: for sealing, or for opening.
    fn install(&mut self, exchange: &Exchange, sender: Role, sealing: bool) {
        let epoch = exchange.epoch;
        self.install_one(exchange, KeyId::primary(epoch), sender, sealing);
        if self.settings.restart && self.restarted.is_none() {
            self.install_one(exchange, KeyId::restart(epoch), sender, sealing);
        }
    }

    /// Installs the keys for answering a restart before those of normal traffic of their epoch,
    /// because the client may restart as soon as it has the answer.
    fn install_restart_early(&mut self, exchange: &Exchange, own: Role) {
        if self.settings.restart && self.is_protected() && self.restarted.is_none() {
            self.install_one(exchange, KeyId::restart(exchange.epoch), own, true);
        }
    }

    fn install_one(&mut self, exchange: &Exchange, id: KeyId, sender: Role, sealing: bool) {
        let keys = exchange.export(sender, id.restart);
        self.actions.push_back(if sealing {
            Action::InstallSealing(id, keys)
        } else {
            Action::InstallOpening(id, keys)
        });
    }

    /// This end now uses the keys that were agreed on.
    fn switch_to(&mut self, now: u64, exchange: Box<Exchange>) {
        let first = !self.is_protected();
        self.give_up_at = None;
        self.epoch = exchange.epoch;
        let interval = self.settings.rekey_interval;
        self.rekey_at = interval.map(|it| now.saturating_add(it));
        if first {
            self.actions.push_back(Action::Protect);
        }
        if !first || self.restarted.is_some() {
            self.drain_at = Some(now.saturating_add(DRAIN));
        }
        let keeps = self.settings.restart && self.restarted.is_some();
        self.late = keeps.then_some(exchange);
    }

    /// This end's role in the first agreement, and the peer's.
    fn ends(&self) -> (Role, Role) {
        match self.role {
            Role::Client => (Role::Client, Role::Server),
            Role::Server => (Role::Server, Role::Client),
        }
    }

    /// Removes the keys of the previous epoch.
    fn drain(&mut self) {
        self.drain_at = None;
        if let Some(epoch) = self.restarted.take() {
            let used = KeyId::restart(epoch);
            self.actions.push_back(Action::Remove(used));
        }
        if let Some(exchange) = self.late.take() {
            let id = KeyId::restart(exchange.epoch);
            let (own, peer) = self.ends();
            self.install_one(&exchange, id, peer, false);
            self.install_one(&exchange, id, own, true);
            return;
        }
        for id in [
            KeyId::primary(self.epoch - 1),
            KeyId::restart(self.epoch - 1),
        ] {
            self.actions.push_back(Action::Remove(id));
        }
    }
}

impl KeyManagement for Preshared {
    fn start(&mut self, start: Start<'_>) {
        self.role = start.role;
        self.parameters = [
            start.client_parameter.to_vec(),
            start.server_parameter.to_vec(),
        ];
        self.epoch = FIRST_EPOCH - 1;
        (self.step, self.rekey_at, self.drain_at) = (Step::Idle, None, None);
        (self.late, self.restarted) = (None, start.restarted);
        self.actions.clear();
        // Keys of a restart protect the association meanwhile.
        let give_up_at = start.now.saturating_add(self.settings.handshake_timeout);
        self.give_up_at = start.restarted.is_none().then_some(give_up_at);
        if self.role == Role::Client {
            self.begin();
        }
    }

    fn handle_message(&mut self, now: u64, message: &[u8]) {
        let Some((&[first, kind], body)) = message.split_first_chunk() else {
            return self.fail("a message of key management is too short");
        };
        let epoch = (self.epoch + 1) as u8 & EPOCH_BITS;
        if self.failed {
            return;
        }
        if first & EPOCH_BITS != epoch {
            // A late message of an agreement that was abandoned for the peer's.
            return;
        }
        match (first & CONTROL != 0, kind) {
            (true, PROTECTION_ESTABLISHED) => self.on_established(now),
            (false, HELLO) => self.on_hello(body),
            (false, ANSWER) => self.on_answer(body),
            (false, FINISHED) => self.on_finished(now, body),
            _ => self.fail("a message of key management of an unknown kind"),
        }
    }

    fn handle_timeout(&mut self, now: u64) {
        if self.give_up_at.take_if(|at| *at <= now).is_some() {
            return self.fail("key management does not finish");
        }
        if self.drain_at.is_some_and(|at| at <= now) {
            self.drain();
        }
        if self.rekey_at.is_some_and(|at| at <= now) {
            self.rekey(now);
        }
    }

    fn rekey(&mut self, _now: u64) {
        self.rekey_at = None;
        if self.is_protected() && matches!(self.step, Step::Idle) && !self.failed {
            self.begin();
        }
    }

    fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    fn poll_timeout(&self) -> Option<u64> {
        let all = [self.rekey_at, self.give_up_at, self.drain_at];
        all.into_iter().flatten().min()
    }
}

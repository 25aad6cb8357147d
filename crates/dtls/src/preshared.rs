//! Key management with a secret that both ends share.
//!
//! Three messages prove to each end that the other has the secret, and that the DTLS Key Management
//! Parameters were not modified. The keys of the next epoch are derived from the secret, one random
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
//! messages. In that draft the client protects its packets only after the last message, but the
//! server discards unprotected packets earlier. If an acknowledgement of the client is lost, its
//! retransmission is discarded, and the last message may never be sent. In this implementation each
//! end can always open the other's packets, so that a loss only delays the handshake.
//!
//! The method has no forward secrecy: an attacker who obtains the secret later can decrypt recorded
//! packets. Forward secrecy requires an exchange of ephemeral keys, like the TLS handshake of the
//! draft.

mod exchange;
#[cfg(test)]
mod tests;

use zeroize::Zeroizing;

use crate::contexts::KeyId;
use crate::epochs::{CONTROL, Epochs, PROTECTION_ESTABLISHED, Policy, SECOND};
use crate::management::{AgreementStart, KeyManagement, KeyManagementAction, Role};
use crate::suite::Suite;
use exchange::{Exchange, MAC, RANDOM};

/// Number of the method in offers. It is not registered, but belongs to the First Come First Served
/// range (draft-ietf-tsvwg-sctp-dtls-chunk-04 §9.1).
pub const METHOD: u8 = 250;

const HELLO: u8 = 1;
const ANSWER: u8 = 2;
const FINISHED: u8 = 3;

/// Sizes in bytes to which the three messages are padded, so that their transmission takes as long
/// as that of another handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flights {
    /// Size of the client's first message.
    pub hello: usize,
    /// Size of the server's answer.
    pub answer: usize,
    /// Size of the client's last message.
    pub finished: usize,
}

impl Flights {
    /// Approximate sizes of TLS 1.3 with certificates at both ends, two in each chain, with P-256
    /// keys.
    pub const CERTIFICATES: Self = Self {
        hello: 220,
        answer: 1_560,
        finished: 1_400,
    };
}

/// Settings that must be equal at both ends.
#[derive(Clone)]
pub struct PresharedSettings {
    /// The secret: at least 16 bytes, and not a password that can be guessed.
    pub secret: Zeroizing<Vec<u8>>,
    /// The cipher suite of the keys.
    pub suite: Suite,
    /// Whether keys for a protected restart are agreed on too.
    pub restart: bool,
    /// Interval after which keys of the next epoch are agreed on, nanoseconds. `None`: only when
    /// the keys are nearly exhausted, or the user requests it.
    pub rekey_interval: Option<u64>,
    /// Time limit for the first keys, also after a restart, nanoseconds. If it expires, the
    /// association ends. Later keys must be agreed on within one interval after they were due, or
    /// within this time if it is longer. Without an interval there is no limit for later keys.
    pub handshake_timeout: u64,
    /// Sizes to which messages are padded.
    pub flights: Flights,
}

impl std::fmt::Debug for PresharedSettings {
    /// Writes everything except the secret.
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

impl PresharedSettings {
    /// Settings with this secret, AES-128-GCM, restarts, and new keys every hour.
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

/// Progress of the agreement on the next epoch.
#[derive(Debug, Default)]
enum Step {
    #[default]
    Idle,
    /// The client has sent its hello.
    Hello(Box<Exchange>),
    /// The server has sent its answer.
    Answered(Box<Exchange>),
    /// The client has sent its last message.
    Finished(Box<Exchange>),
}

/// Key management of one association.
#[derive(Debug)]
pub struct Preshared {
    settings: PresharedSettings,
    random: exchange::RandomNumbers,
    parameters: [Vec<u8>; 2],
    epochs: Epochs,
    step: Step,
}

impl Preshared {
    /// Creates the key management of one association. Its random numbers are derived from `seed`,
    /// which must be secret and different for each association.
    pub fn new(settings: PresharedSettings, seed: [u8; 32]) -> Self {
        let policy = Policy {
            restart: settings.restart,
            rekey_interval: settings.rekey_interval,
            handshake_timeout: settings.handshake_timeout,
        };
        Self {
            settings,
            random: exchange::RandomNumbers::new(seed),
            parameters: Default::default(),
            epochs: Epochs::new(policy),
            step: Step::Idle,
        }
    }

    /// Starts an agreement as the client.
    fn begin(&mut self) {
        let random = self.random.draw();
        let exchange = self.exchange(random);
        self.send(HELLO, &random, self.settings.flights.hello);
        self.step = Step::Hello(Box::new(exchange));
    }

    fn exchange(&self, client_random: [u8; RANDOM]) -> Exchange {
        let [client, server] = &self.parameters;
        let epoch = self.epochs.next();
        Exchange::new(&self.settings, epoch, client_random, client, server)
    }

    fn send(&mut self, kind: u8, body: &[u8], filled_to: usize) {
        let mut message = vec![self.epochs.header(), kind];
        message.extend_from_slice(body);
        message.resize(message.len().max(filled_to), 0);
        self.epochs.send(message);
    }

    fn fail(&mut self, why: &'static str) {
        self.epochs.fail(why);
    }

    fn on_hello(&mut self, body: &[u8]) {
        let Some(client_random) = body.first_chunk::<RANDOM>() else {
            return self.fail("the hello is too short");
        };
        match (&self.step, self.epochs.role()) {
            (Step::Idle, _) => {}
            // Both ends started at the same time: the agreement of the client continues.
            (Step::Hello(_), Role::Client) => return,
            (Step::Hello(_), Role::Server) => {}
            _ => return self.fail("a hello in the middle of a handshake"),
        }
        self.epochs.begin();
        let mut exchange = self.exchange(*client_random);
        let random = self.random.draw();
        let mac = exchange.answer(random);
        self.install(&exchange, Role::Client, false);
        // Restart keys are installed now, because the client may restart as soon as it has the
        // answer.
        if self.epochs.installs_restart_keys_early() {
            self.install_one(&exchange, true, Role::Server, true);
        }
        let body = [&random[..], &mac].concat();
        self.send(ANSWER, &body, self.settings.flights.answer);
        self.step = Step::Answered(Box::new(exchange));
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
        self.epochs.begin();
        self.install(&exchange, Role::Server, false);
        self.install(&exchange, Role::Client, true);
        let mac = exchange.finished();
        let filled_to = self.settings.flights.finished;
        self.send(FINISHED, &mac, filled_to);
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
        self.switch_to(now, &exchange);
        self.epochs.send_protection_established();
    }

    fn on_established(&mut self, now: u64) {
        let Step::Finished(exchange) = std::mem::take(&mut self.step) else {
            return self.fail("protection is said to be established, and is not");
        };
        self.switch_to(now, &exchange);
    }

    /// Installs the keys of `sender`, for sealing or for opening.
    fn install(&mut self, exchange: &Exchange, sender: Role, sealing: bool) {
        self.install_one(exchange, false, sender, sealing);
        if self.epochs.installs_restart_keys() {
            self.install_one(exchange, true, sender, sealing);
        }
    }

    fn install_one(&mut self, exchange: &Exchange, restart: bool, sender: Role, sealing: bool) {
        let epoch = exchange.epoch;
        let keys = exchange.export(sender, restart);
        self.epochs.install(KeyId { restart, epoch }, keys, sealing);
    }

    /// Switches this end to the keys that were agreed on.
    fn switch_to(&mut self, now: u64, exchange: &Exchange) {
        let ends = match self.epochs.role() {
            Role::Client => [Role::Client, Role::Server],
            Role::Server => [Role::Server, Role::Client],
        };
        self.epochs
            .switch(now, || ends.map(|it| exchange.export(it, true)));
    }
}

impl KeyManagement for Preshared {
    fn start(&mut self, start: AgreementStart<'_>) {
        self.parameters = [
            start.client_parameter.to_vec(),
            start.server_parameter.to_vec(),
        ];
        self.step = Step::Idle;
        self.epochs.start(&start);
        if start.role == Role::Client {
            self.begin();
        }
    }

    fn handle_message(&mut self, now: u64, message: &[u8]) {
        let Some((&[first, kind], body)) = message.split_first_chunk() else {
            return self.fail("a message of key management is too short");
        };
        if !self.epochs.accepts(first) {
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
        if self.epochs.handle_timeout(now) {
            self.rekey(now);
        }
    }

    fn rekey(&mut self, _now: u64) {
        let idle = matches!(self.step, Step::Idle);
        if self.epochs.is_protected() && idle && !self.epochs.has_failed() {
            self.begin();
        }
    }

    fn poll(&mut self) -> Option<KeyManagementAction> {
        self.epochs.poll()
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.epochs.poll_timeout()
    }
}

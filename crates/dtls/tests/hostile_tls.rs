//! Peers that send incomplete messages, random bytes or endless records to the key management with
//! certificates, or never finish the handshake. Memory must be limited, and the end must fail in
//! time. A separate program, because it counts allocations.
#![cfg(feature = "tls")]

use std::alloc;
use std::sync::Arc;

use anabranch_dtls::tls::{Credentials, METHOD, Tls, TlsSettings, Trust};
use anabranch_dtls::{AgreementStart, KeyManagement, KeyManagementAction, Role};
use cap::Cap;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use sha2::{Digest, Sha256};

#[global_allocator]
static MEMORY: Cap<alloc::System> = Cap::new(alloc::System, usize::MAX);

/// Maximum memory that one association may allocate for a peer that is not authenticated, bytes.
/// rustls accepts handshake messages of 64 KiB, and its buffer grows by doubling.
const MAX_MEMORY: usize = 512 * 1024;
const PARAMETER: [u8; 10] = [0x80, 6, 0, 10, 0, 0, 0, 1, 7, METHOD];
/// Number of messages of a peer that sends endlessly.
const MANY: usize = 2_000;

fn settings() -> Arc<TlsSettings> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let params = CertificateParams::new(vec!["example.org".to_string()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let chain = params.signed_by(&key, &issuer).unwrap().pem();
    let key = key.serialize_pem();
    let credentials = Credentials::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    let trust = Trust::default().with_authorities(issuer.pem().as_bytes());
    Arc::new(TlsSettings::new(credentials, trust.unwrap(), false).unwrap())
}

fn start(settings: &Arc<TlsSettings>, role: Role) -> Tls {
    let mut end = Tls::new(settings.clone());
    end.start(AgreementStart {
        now: 0,
        role,
        method: METHOD,
        client_parameter: &PARAMETER,
        server_parameter: &PARAMETER,
        restarted: None,
        identity: None,
    });
    end
}

/// Executes the actions of an end. Returns its messages, and whether it failed; it must never be
/// protected.
fn act(end: &mut Tls) -> (Vec<Vec<u8>>, bool) {
    let (mut sent, mut failed) = (Vec::new(), false);
    while let Some(action) = end.poll() {
        match action {
            KeyManagementAction::Send(message) => sent.push(message),
            KeyManagementAction::Fail(_) => failed = true,
            KeyManagementAction::InstallOpening(..) => {}
            other => panic!("{other:?}"),
        }
    }
    (sent, failed)
}

/// Sends `messages` to a new end until it fails. If it does not fail, lets its time limit expire.
fn attack(settings: &Arc<TlsSettings>, role: Role, messages: impl Iterator<Item = Vec<u8>>) {
    let before = MEMORY.allocated();
    let mut end = start(settings, role);
    let mut failed = act(&mut end).1;
    for message in messages {
        end.handle_message(0, &message);
        failed |= act(&mut end).1;
        let grown = MEMORY.allocated().saturating_sub(before);
        assert!(grown < MAX_MEMORY, "{grown} bytes");
        if failed {
            break;
        }
    }
    while !failed {
        let at = end.poll_timeout().expect("a time limit");
        assert!(at <= settings.handshake_timeout, "{at}");
        end.handle_timeout(at);
        failed |= act(&mut end).1;
    }
}

/// A TLS record in a message of epoch 3.
fn record(header: u8, kind: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u16).to_be_bytes();
    [&[header, kind, 3, 3, length[0], length[1]], content].concat()
}

/// Pseudorandom bytes for a seed.
fn random(seed: usize, length: usize) -> Vec<u8> {
    let blocks =
        (0..).flat_map(|block| Sha256::digest([seed, block].map(usize::to_be_bytes).concat()));
    blocks.take(length).collect()
}

#[test]
fn a_hostile_peer_has_bounded_memory_and_time() {
    let settings = settings();
    let hello = act(&mut start(&settings, Role::Client)).0.remove(0);
    let mut server = start(&settings, Role::Server);
    server.handle_message(0, &hello);
    let answer = act(&mut server).0.remove(0);
    let header = hello[0];
    for (role, genuine) in [(Role::Server, &hello), (Role::Client, &answer)] {
        // Only a part of a message, in one message or byte by byte.
        for length in (1..genuine.len()).step_by(7) {
            let part = genuine[..length].to_vec();
            attack(&settings, role, [part].into_iter());
        }
        let bytes = genuine[1..genuine.len() - 1].iter();
        attack(&settings, role, bytes.map(|&byte| vec![header, byte]));
        // A handshake message with a claimed size of 16 MiB, in endless records.
        let kind = genuine[6];
        let claim = [kind, 0xFF, 0xFF, 0xFF].into_iter();
        let first: Vec<u8> = claim.chain([0; 16_000]).collect();
        let more = (0..MANY).map(|_| record(header, 22, &[0; 16_000]));
        let first = [record(header, 22, &first)].into_iter();
        attack(&settings, role, first.chain(more));
        // A handshake message of the maximum size whose last byte never arrives.
        let claim = [kind, 0x00, 0xFF, 0xFF].into_iter();
        let first: Vec<u8> = claim.chain([0; 16_000]).collect();
        let more = (0..3).map(|_| record(header, 22, &[0; 16_000]));
        let first = [record(header, 22, &first)].into_iter();
        attack(&settings, role, first.chain(more));
        // Endless records of each type, with and without content, alone and after a valid message.
        for kind in [20, 21, 22, 23, 24] {
            for content in [&[][..], &[1], &[1, 0], &[2, 40], &[0; 16_384]] {
                let same = || (0..MANY).map(|_| record(header, kind, content));
                attack(&settings, role, same());
                attack(&settings, role, [genuine.clone()].into_iter().chain(same()));
            }
        }
        for seed in 0..MANY {
            let first = [genuine.clone()].into_iter().take(seed % 2);
            let content = random(seed, seed % 300);
            let forged = record(header, 20 + (seed % 5) as u8, &content);
            attack(&settings, role, first.chain([forged, content]));
        }
        // A valid message, repeated endlessly.
        attack(&settings, role, (0..MANY).map(|_| genuine.clone()));
    }
}

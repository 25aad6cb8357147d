//! Checks that any bytes are harmless as records and as messages of a key management method.

use anabranch_dtls::preshared::{Preshared, PresharedSettings};
use anabranch_dtls::{
    AgreementStart, Contexts, KeyId, KeyManagement, KeyManagementAction, KeyMaterial, Role, Suite,
};

/// Runs the check that the first byte selects.
pub fn check(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else {
        return;
    };
    match first % 4 {
        0 | 1 => record(usize::from(first / 4) % 3, first % 4 == 1, rest),
        2 => messages(Role::Client, rest),
        _ => messages(Role::Server, rest),
    }
}

/// Without the keys no record can be opened, and records that cannot be opened have no effect.
fn record(suite: usize, restart: bool, bytes: &[u8]) {
    let suite = Suite::ALL[suite];
    let keys = KeyMaterial::from_secret(
        suite,
        &[7; 48][..if suite == Suite::Aes256Gcm { 48 } else { 32 }],
    );
    let mut contexts = Contexts::new(64);
    contexts
        .install_sealing(KeyId::primary(3), &keys)
        .expect("the first");
    for id in [KeyId::primary(3), KeyId::restart(3)] {
        contexts.install_opening(id, &keys).expect("the first");
    }
    let mut copy = bytes.to_vec();
    assert!(contexts.open(restart, &mut copy).is_err());
    assert_eq!(contexts.counters().opened, 0);
    let mut own = [0; 64];
    contexts.seal(&mut own).expect("there are keys");
    assert!(contexts.open(false, &mut own).is_ok());
}

/// Passes messages to an end; the first byte of each is its length. The end must never consider
/// itself protected.
fn messages(role: Role, mut bytes: &[u8]) {
    let parameters = [
        &[0x80, 6, 0, 10, 0, 0, 0, 1, 7, 250],
        &[0x80, 6, 0, 10, 0, 0, 0, 2, 7, 250],
    ];
    let mut method = Preshared::new(PresharedSettings::new(b"a secret of both"), [1; 32]);
    method.start(AgreementStart {
        now: 0,
        role,
        method: 250,
        client_parameter: parameters[0],
        server_parameter: parameters[1],
        restarted: None,
        identity: None,
    });
    let (mut received, mut sent) = (0, 0);
    while let Some((&length, rest)) = bytes.split_first() {
        let (message, rest) = rest.split_at(usize::from(length).min(rest.len()));
        bytes = rest;
        received += 1;
        method.handle_message(received, message);
        while let Some(action) = method.poll() {
            match action {
                KeyManagementAction::Protect => panic!("protected by messages of nobody"),
                KeyManagementAction::Send(_) => sent += 1,
                _ => {}
            }
        }
    }
    assert!(sent <= 2, "{sent} messages sent");
}

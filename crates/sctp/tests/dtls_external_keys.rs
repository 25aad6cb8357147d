//! Keys of the DTLS chunk that the user installs (draft-ietf-tsvwg-sctp-dtls-chunk-04 §7).

use anabranch_dtls::{InstallError, KeyId, KeyMaterial, Suite};
use anabranch_sctp::{Event, Interest, KeyMethods, Output, SendError, SendOptions};
use anabranch_transport::time::SECOND;
use anabranch_wire::extension::PPID_DTLS_KEY_MANAGEMENT;
use bytes::Bytes;

use crate::common::*;
use crate::dtls::with_methods;

/// A user who is the key management sends its messages before there are keys, other messages as
/// soon as there are keys to send, and finds out which messages arrived protected (§8.2).
#[test]
fn the_user_exchanges_messages_before_there_are_keys() {
    let mut world = World::new(with_methods(KeyMethods::external(&[200])));
    let a = world.connect();
    world.run_for(SECOND);
    let z = world.only_association(Z);
    let send = |world: &mut World, text: &'static [u8], ppid| {
        let now = world.now;
        let association = world.endpoints[A].association_mut(a).expect("known");
        let options = SendOptions::on(1).with_ppid(ppid);
        let sent = association.send(now, Bytes::from_static(text), &options);
        world.drain(A);
        world.run_for(SECOND);
        sent
    };
    // Reads all messages, and whether they arrived protected.
    let read = |world: &mut World| {
        let messages = world.receive_all(Z, z);
        let association = world.endpoints[Z].association_mut(z).expect("known");
        let covered = |tsn| association.protection_mut().covers(tsn);
        messages
            .into_iter()
            .map(|it| it.tsn)
            .map(covered)
            .collect::<Vec<_>>()
    };
    let refused = Err(SendError::NotProtected);
    assert_eq!(send(&mut world, b"data", 0), refused);
    assert_eq!(send(&mut world, b"keys", PPID_DTLS_KEY_MANAGEMENT), Ok(()));
    assert_eq!(read(&mut world), [false]);
    // Is read only after there are keys.
    assert_eq!(send(&mut world, b"more", PPID_DTLS_KEY_MANAGEMENT), Ok(()));
    let keys = KeyMaterial::from_secret(Suite::Aes128Gcm, &[1; 32]);
    let id = KeyId::primary(3);
    let association = world.endpoints[Z].association_mut(z).expect("known");
    let installed = association.protection_mut().install_receive_keys(id, &keys);
    assert_eq!(installed, Ok(()));
    let association = world.endpoints[A].association_mut(a).expect("known");
    assert!(!association.protection().has_send_keys());
    let installed = association.protection_mut().install_send_keys(id, &keys);
    assert_eq!(installed, Ok(()));
    assert!(association.protection().has_send_keys());
    assert_eq!(send(&mut world, b"data", 0), Ok(()));
    assert_eq!(read(&mut world), [false, true]);
    let sealed = world.endpoints[Z].association(z).expect("known");
    assert_eq!(sealed.protection().statistics().received_protected, 1);
}

/// Z has keys to receive and A has none to send, so the message of A arrives in clear. It should be
/// discarded, even after Z has removed the keys.
#[test]
fn data_in_clear_is_discarded_once_there_were_keys_to_receive() {
    let mut world = World::new(with_methods(KeyMethods::external(&[200])));
    let a = world.connect();
    world.run_for(SECOND);
    let z = world.only_association(Z);
    let keys = KeyMaterial::from_secret(Suite::Aes128Gcm, &[1; 32]);
    let id = KeyId::primary(3);
    let of_z = world.endpoints[Z].association_mut(z).expect("known");
    let installed = of_z.protection_mut().install_receive_keys(id, &keys);
    assert_eq!(installed, Ok(()));
    let now = world.now;
    let of_a = world.endpoints[A].association_mut(a).expect("known");
    let options = SendOptions::on(1).with_ppid(PPID_DTLS_KEY_MANAGEMENT);
    let sent = of_a.send(now, Bytes::from_static(b"clear"), &options);
    assert_eq!(sent, Ok(()));
    world.drain(A);
    world.run_for(SECOND);
    assert!(world.receive_all(Z, z).is_empty());
    let of_z = world.endpoints[Z].association_mut(z).expect("known");
    assert!(of_z.protection().statistics().dropped_unprotected > 0);
    assert!(of_z.protection_mut().remove_keys(id));
    world.run_for(10 * SECOND);
    assert!(world.receive_all(Z, z).is_empty());
}

/// An association that has ended is not established by a later request of its user.
#[test]
fn protection_cannot_be_required_after_the_end() {
    let mut world = World::new(with_methods(KeyMethods::external(&[200])));
    let a = world.connect();
    world.run_for(SECOND);
    let now = world.now;
    let association = world.endpoints[A].association_mut(a).expect("known");
    while association.poll_output(Interest::EVENTS).is_some() {}
    (association.abort(now, Bytes::new())).expect("it is open");
    association.protection_mut().require();
    let keys = KeyMaterial::from_secret(Suite::Aes128Gcm, &[1; 32]);
    let installed = (association.protection_mut()).install_send_keys(KeyId::primary(3), &keys);
    assert_eq!(installed, Err(InstallError::NotUsed));
    let mut events = std::iter::from_fn(|| association.poll_output(Interest::EVENTS));
    assert!(!events.any(|it| matches!(it, Output::Event(Event::Established { .. }))));
}

use super::*;
use crate::end::{End, talk};
use crate::epochs::{DRAIN, SECOND};
use crate::material::KeyMaterial;
use crate::record::{HEADER, OpenError};

const PARAMETERS: [&[u8]; 2] = [
    &[0x80, 6, 0, 10, 0, 0, 0, 1, 7, METHOD],
    &[0x80, 6, 0, 10, 0, 0, 0, 2, 7, METHOD],
];

fn end(settings: PresharedSettings, seed: u8) -> End {
    End::new(Preshared::new(settings, [seed; 32]))
}

fn pair(
    first: PresharedSettings,
    second: PresharedSettings,
    parameters: [[&[u8]; 2]; 2],
) -> [End; 2] {
    let mut ends = [end(first, 1), end(second, 2)];
    ends[0].start(Role::Client, parameters[0], None);
    ends[1].start(Role::Server, parameters[1], None);
    talk(0, &mut ends);
    ends
}

fn established() -> [End; 2] {
    let settings = PresharedSettings::new(b"a secret of both");
    pair(settings.clone(), settings, [PARAMETERS; 2])
}

#[test]
fn both_ends_agree_on_keys() {
    let mut ends = established();
    assert!(ends.iter().all(|it| it.protected && it.failed.is_none()));
    for (from, to) in [(0, 1), (1, 0)] {
        let record = ends[from].seal(b"chunks");
        assert_ne!(&record[HEADER..][..6], b"chunks");
        assert_eq!(ends[to].open(false, record.clone()), Ok(b"chunks".to_vec()));
        assert_eq!(ends[to].open(false, record), Err(OpenError::Replayed));
    }
    let record = ends[0].seal(b"chunks");
    assert_eq!(
        ends[0].open(false, record),
        Err(OpenError::Forged),
        "directions have keys of their own"
    );
}

#[test]
fn another_secret_or_a_changed_parameter_fails() {
    let settings = PresharedSettings::new(b"a secret of both");
    let other = PresharedSettings::new(b"another secret!!");
    let changed = [PARAMETERS[0], &[0x80, 6, 0, 10, 0, 0, 0, 2, 3, METHOD]];
    let cases = [
        pair(settings.clone(), other, [PARAMETERS; 2]),
        pair(settings.clone(), settings, [PARAMETERS, changed]),
    ];
    for ends in cases {
        assert!(ends[0].failed.is_some(), "the client finds it by the MAC");
        assert!(ends.iter().all(|it| !it.protected));
    }
}

#[test]
fn messages_that_were_changed_anywhere_fail_or_are_ignored() {
    let settings = PresharedSettings::new(b"a secret of both");
    for (message, length) in [(0, 34), (1, 66), (2, 34)] {
        for at in 0..length {
            let mut ends = [end(settings.clone(), 1), end(settings.clone(), 2)];
            ends[0].start(Role::Client, PARAMETERS, None);
            ends[1].start(Role::Server, PARAMETERS, None);
            let mut number = 0;
            for from in [0, 1, 0, 1] {
                for mut sent in ends[from].act() {
                    if number == message {
                        sent[at] ^= 0x01;
                    }
                    number += 1;
                    ends[1 - from].method.handle_message(0, &sent);
                }
            }
            ends.iter_mut().for_each(|it| drop(it.act()));
            assert!(!ends[0].protected, "byte {at} of message {message}");
        }
    }
}

#[test]
fn keys_of_the_next_epoch_replace_those_in_use_without_a_gap() {
    let mut ends = established();
    for (round, by) in [(1, 0), (2, 1), (3, 0)] {
        let late = [ends[0].seal(b"late"), ends[1].seal(b"late")];
        ends[by].method.rekey(round);
        talk(round, &mut ends);
        for from in [0, 1] {
            assert_eq!(
                ends[from].contexts.sealing_id(),
                Some(KeyId::primary(3 + round))
            );
            let record = ends[from].seal(b"new");
            assert_eq!(ends[1 - from].open(false, record), Ok(b"new".to_vec()));
            let record = late[from].clone();
            assert_eq!(ends[1 - from].open(false, record), Ok(b"late".to_vec()));
        }
    }
    // After the drain time the old keys are removed.
    let late = ends[0].seal(b"late");
    ends[0].method.rekey(10);
    talk(10, &mut ends);
    let at = ends[1].method.poll_timeout().unwrap();
    ends[1].method.handle_timeout(at);
    ends[1].act();
    assert_eq!(ends[1].open(false, late), Err(OpenError::NoKey));
}

#[test]
fn of_two_that_begin_at_the_same_time_the_client_goes_on() {
    let mut ends = established();
    ends.iter_mut().for_each(|it| it.method.rekey(1));
    talk(1, &mut ends);
    for end in &ends {
        assert_eq!(end.failed, None);
        assert_eq!(end.contexts.sealing_id(), Some(KeyId::primary(4)));
    }
}

/// Without the deadline the peer could avoid proving its identity again.
#[test]
fn a_rekeying_that_is_not_answered_fails() {
    let mut settings = PresharedSettings::new(b"a secret of both");
    settings.rekey_interval = Some(1_000 * SECOND);
    let [mut end, _] = pair(settings.clone(), settings, [PARAMETERS; 2]);
    end.method.handle_timeout(1_000 * SECOND);
    assert!(!end.act().is_empty(), "it begins");
    assert_eq!(end.method.poll_timeout(), Some(2_000 * SECOND));
    end.method.handle_timeout(2_000 * SECOND);
    end.act();
    assert_eq!(end.failed, Some("key management does not finish"));
}

#[test]
fn keys_of_a_restart_that_are_not_replaced_fail() {
    let mut end = end(PresharedSettings::new(b"a secret of both"), 1);
    end.start(Role::Client, PARAMETERS, Some(4));
    end.act();
    assert_eq!(end.method.poll_timeout(), Some(60 * SECOND));
    end.method.handle_timeout(60 * SECOND);
    end.act();
    assert_eq!(end.failed, Some("key management does not finish"));
}

#[test]
fn keys_of_a_restart_serve_until_there_are_new_ones() {
    let settings = PresharedSettings::new(b"a secret of both");
    let mut ends = established();
    // The first end has lost all its state except the restart keys.
    let sealing = KeyMaterial::from_secret(Suite::Aes128Gcm, &[1; 32]);
    let opening = KeyMaterial::from_secret(Suite::Aes128Gcm, &[2; 32]);
    ends[0] = end(settings, 3);
    ends[0].contexts.restarting(4, &sealing, &opening);
    ends[1]
        .contexts
        .install_sealing(KeyId::restart(4), &opening)
        .unwrap();
    ends[1]
        .contexts
        .install_opening(KeyId::restart(4), &sealing)
        .unwrap();
    let record = ends[0].seal(b"cookie echo");
    assert_eq!(ends[1].open(true, record), Ok(b"cookie echo".to_vec()));
    ends[1].contexts.restarted(4);
    let record = ends[1].seal(b"cookie ack");
    assert_eq!(ends[0].open(true, record), Ok(b"cookie ack".to_vec()));
    ends[0].start(Role::Client, PARAMETERS, Some(4));
    ends[1].start(Role::Server, PARAMETERS, Some(4));
    talk(0, &mut ends);
    for end in &mut ends {
        assert!(end.protected);
        assert_eq!(end.contexts.sealing_id(), Some(KeyId::primary(3)));
        // The keys for the next restart are installed when no packet of this restart can be in
        // flight.
        let at = end.method.poll_timeout().unwrap();
        assert_eq!(at, DRAIN);
        end.method.handle_timeout(at);
        end.act();
        assert!(!end.contexts.seals_restart(4) && end.contexts.seals_restart(3));
    }
    // Next, keys are agreed on whose epoch equals that of the restart keys.
    ends[0].method.rekey(DRAIN);
    talk(DRAIN, &mut ends);
    let sealing = |end: &End| end.contexts.sealing_id();
    assert!(ends.iter().all(|it| sealing(it) == Some(KeyId::primary(4))));
}

#[test]
fn flights_have_the_lengths_that_were_asked_for() {
    let mut settings = PresharedSettings::new(b"a secret of both");
    settings.flights = Flights::CERTIFICATES;
    let mut ends = [end(settings.clone(), 1), end(settings, 2)];
    ends[0].start(Role::Client, PARAMETERS, None);
    ends[1].start(Role::Server, PARAMETERS, None);
    let mut lengths = Vec::new();
    for from in [0, 1, 0, 1] {
        for message in ends[from].act() {
            lengths.push(message.len());
            ends[1 - from].method.handle_message(0, &message);
        }
    }
    ends[0].act();
    assert_eq!(lengths, [220, 1_560, 1_400, 2]);
    assert!(ends.iter().all(|it| it.protected));
}

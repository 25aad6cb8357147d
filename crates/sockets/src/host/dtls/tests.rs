use anabranch_net::sctp::dtls::KeyId;

use super::structs::DtlsKeys;
use super::*;

/// struct sctp_dtls_config for SCTP_FUTURE_ASSOC.
fn config(flags: u16, count: u16, methods: &[u8]) -> Vec<u8> {
    let [flags, count] = [flags, count].map(u16::to_ne_bytes);
    [&[0; 4][..], &flags, &count, methods].concat()
}

#[test]
fn a_configuration_is_read_as_written_and_checked() {
    let both = CLIENT | SERVER;
    let read = DtlsConfig::decode(&config(both | REQUIRED, 2, &[200, 0])).expect("valid");
    assert_eq!(read.methods, [200, 0]);
    assert!(read.is_consistent());
    assert_eq!(read.encode(&[0; 4]), config(both | REQUIRED, 2, &[200, 0]));
    let padded = DtlsConfig::decode(&config(both, 1, &[200, 0])).expect("valid");
    assert_eq!(padded.methods, [200], "a struct may end with padding");
    let sizes = [&[][..], &config(both, 1, &[])];
    assert!(sizes.iter().all(|it| DtlsConfig::decode(it).is_none()));
    let inconsistent = [
        (16 | both, &[1][..]), // an unknown flag
        (0, &[1]),             // no role
        (both, &[1, 1]),
        (REQUIRED, &[]),
        (both, &[]),
    ];
    for (flags, methods) in inconsistent {
        let methods = methods.to_vec();
        assert!(!DtlsConfig { flags, methods }.is_consistent(), "{flags}");
    }
    assert!(DtlsConfig::default().is_consistent(), "not offered");
}

/// struct sctp_dtls_keys with these lengths of key, initialization vector and sequence number key.
fn keys(suite: [u8; 2], lengths: [u16; 3], bytes: usize) -> Vec<u8> {
    let mut out = vec![0; 24];
    out[4..6].copy_from_slice(&suite);
    out[6..8].copy_from_slice(&1_u16.to_ne_bytes());
    out[8..16].copy_from_slice(&7_u64.to_ne_bytes());
    for (at, length) in [16, 18, 20].into_iter().zip(lengths) {
        out[at..at + 2].copy_from_slice(&length.to_ne_bytes());
    }
    out.extend((0..bytes).map(|it| it as u8));
    out
}

#[test]
fn keys_have_the_lengths_of_their_suite() {
    let read = DtlsKeys::decode(&keys([0x13, 0x01], [16, 12, 16], 44)).expect("valid");
    assert_eq!(read.id, KeyId::restart(7));
    assert_eq!(read.keys.key()[..2], [0, 1]);
    assert_eq!(read.keys.iv()[..2], [16, 17]);
    assert_eq!(read.keys.sequence_key()[..2], [28, 29]);
    let wrong = [
        (keys([0x13, 0x01], [16, 12, 16], 43), libc::EINVAL),
        (keys([0x13, 0x02], [16, 12, 16], 44), libc::EINVAL),
        (keys([0x13, 0x01], [u16::MAX, 12, 16], 44), libc::EINVAL),
        (keys([0x13, 0x09], [16, 12, 16], 44), libc::EOPNOTSUPP),
        (vec![0; 23], libc::EINVAL),
        (vec![0; 5], libc::EINVAL),
    ];
    for (value, error) in wrong {
        assert_eq!(DtlsKeys::decode(&value).err(), Some(error), "{value:?}");
    }
}

/// Keys of a restart are used once, and only if both directions have them. Incomplete keys remain,
/// so that the program can add those of the other direction.
#[test]
fn keys_of_a_restart_are_complete_and_used_once() {
    let material = || KeyMaterial::from_secret(Default::default(), &[1; 32]);
    let mut settings = DtlsSettings::default();
    assert!(matches!(settings.take_restart_keys(), Ok(None)));
    settings.local = DtlsConfig {
        flags: CLIENT | RESTART,
        methods: vec![200],
    };
    settings.restart[0] = Some((3, material()));
    assert_eq!(settings.take_restart_keys().err(), Some(libc::EINVAL));
    settings.restart = [Some((3, material())), Some((4, material()))];
    assert_eq!(settings.take_restart_keys().err(), Some(libc::EINVAL));
    settings.restart[1] = Some((3, material()));
    let taken = settings.take_restart_keys().expect("complete");
    assert_eq!(taken.map(|it| it.epoch), Some(3));
    assert!(matches!(settings.take_restart_keys(), Ok(None)));
}

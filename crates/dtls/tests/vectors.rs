//! Test vectors: records that `vectors.py` has sealed with an independent library are compared byte
//! by byte, in both directions.

use anabranch_dtls::record::{HEADER, OVERHEAD};
use anabranch_dtls::{KeyMaterial, OpenError, OpeningKey, SealingKey, Suite};

struct Vector {
    suite: Suite,
    secret: &'static [u8],
    key: &'static [u8],
    iv: &'static [u8],
    sn: &'static [u8],
    epoch: u64,
    number: u64,
    padding: usize,
    content: &'static [u8],
    record: &'static [u8],
}

#[rustfmt::skip]
mod sealed {
    use super::*;
    include!("vectors/sealed.rs");
}

use sealed::SEALED;

fn room(content: &[u8]) -> Vec<u8> {
    let mut record = vec![0; HEADER];
    record.extend_from_slice(content);
    record.resize(content.len() + OVERHEAD, 0xEE);
    record
}

/// An opening key that expects the sequence number of `vector`, of which a record contains only 16
/// bits.
fn opening(vector: &Vector, keys: &KeyMaterial) -> OpeningKey {
    let mut opening = OpeningKey::new(keys, 64);
    if vector.number > 0 {
        let mut sealing = SealingKey::new(keys, vector.epoch);
        for number in 0..vector.number {
            let mut record = room(b"");
            sealing.seal(&mut record).unwrap();
            if number % 30_000 == 0 || number + 1 == vector.number {
                opening.open(&mut record).unwrap();
            }
        }
    }
    opening
}

#[test]
fn keys_follow_from_the_secret() {
    for vector in SEALED {
        let keys = KeyMaterial::from_secret(vector.suite, vector.secret);
        assert_eq!(keys.key(), vector.key, "{:?}", vector.suite);
        assert_eq!(keys.iv(), vector.iv);
        assert_eq!(keys.sequence_key(), vector.sn);
    }
}

#[test]
fn records_are_sealed_as_the_library_seals_them() {
    let mut compared = 0;
    for vector in SEALED.iter().filter(|it| it.padding == 0) {
        let keys = KeyMaterial::new(vector.suite, vector.key, vector.iv, vector.sn).unwrap();
        let mut sealing = SealingKey::new(&keys, vector.epoch);
        for _ in 0..vector.number {
            sealing.seal(&mut room(b"")).unwrap();
        }
        let mut record = room(vector.content);
        sealing.seal(&mut record).unwrap();
        assert_eq!(
            record, vector.record,
            "{:?} {}",
            vector.suite, vector.number
        );
        compared += 1;
    }
    assert_eq!(compared, 21);
}

#[test]
fn records_that_the_library_sealed_are_opened() {
    for vector in SEALED {
        let keys = KeyMaterial::from_secret(vector.suite, vector.secret);
        let mut opening = opening(vector, &keys);
        let mut record = vector.record.to_vec();
        let content = opening.open(&mut record).unwrap();
        assert_eq!(&record[HEADER..][..content], vector.content);
        let again = opening.open(&mut vector.record.to_vec());
        assert_eq!(again, Err(OpenError::Replayed));
    }
}

/// A record with any byte changed, or truncated to any length, is refused without other effects.
#[test]
fn records_that_were_changed_or_cut_are_refused() {
    for vector in SEALED.iter().filter(|it| it.number < 10) {
        let keys = KeyMaterial::from_secret(vector.suite, vector.secret);
        let mut opening = opening(vector, &keys);
        for at in 0..vector.record.len() {
            let mut record = vector.record.to_vec();
            record[at] ^= 0x10;
            let error = opening.open(&mut record).unwrap_err();
            match at {
                0 => assert_eq!(error, OpenError::Format),
                // A changed sequence number may be one that was accepted before.
                1 | 2 => assert!(matches!(error, OpenError::Forged | OpenError::Replayed)),
                _ => assert!(matches!(error, OpenError::Forged | OpenError::Replayed)),
            }
            let cut = opening.open(&mut vector.record[..at].to_vec()).unwrap_err();
            let short = at < OVERHEAD;
            assert_eq!(cut == OpenError::Format, short, "cut to {at}");
        }
        let mut record = vector.record.to_vec();
        assert!(
            opening.open(&mut record).is_ok(),
            "and the window is as before"
        );
    }
}

#[test]
fn lengths_of_keys_are_checked() {
    for suite in Suite::ALL {
        assert_eq!(Suite::of_code(suite.code()), Some(suite));
        let long = vec![0; suite.key_len()];
        assert!(KeyMaterial::new(suite, &long, &[0; 12], &long).is_ok());
        assert!(KeyMaterial::new(suite, &long[1..], &[0; 12], &long).is_err());
        assert!(KeyMaterial::new(suite, &long, &[0; 11], &long).is_err());
        let error = KeyMaterial::new(suite, &long, &[0; 12], &[0; 3]).unwrap_err();
        assert!(error.to_string().contains("3 bytes"), "{error}");
    }
}

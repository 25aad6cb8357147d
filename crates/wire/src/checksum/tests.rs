use super::*;

fn bitwise_crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            if crc & 1 == 1 {
                crc >> 1 ^ 0x82F6_3B78
            } else {
                crc >> 1
            }
        })
    })
}

/// Test vectors of RFC 3720 §B.4 and the usual check value.
#[test]
fn crc32c_known_vectors() {
    let ascending: Vec<u8> = (0..32).collect();
    let descending: Vec<u8> = (0..32).rev().collect();
    for (bytes, crc) in [
        (&[0; 32][..], 0x8A91_36AA),
        (&[0xFF; 32], 0x62A8_AB43),
        (&ascending, 0x46DD_794E),
        (&descending, 0x113F_DB5C),
        (b"123456789", 0xE306_9283),
    ] {
        assert_eq!(crc32c(bytes), crc);
        assert_eq!(bitwise_crc32c(bytes), crc);
    }
}

#[test]
fn crc32c_takes_the_field_as_zero() {
    for length in [
        12, 13, 16, 20, 44, 1_472, 1_535, 1_536, 1_537, 9_000, 65_535,
    ] {
        let mut packet: Vec<u8> = (0..length as u32).map(|i| (i * 7 + 3) as u8).collect();
        let crc = crc32c_packet(&packet);
        packet[8..12].fill(0);
        assert_eq!(crc, bitwise_crc32c(&packet), "length {length}");
        fill(&mut packet);
        assert_eq!(packet[8..12], crc.to_le_bytes(), "length {length}");
        assert!(verify(&packet));
    }
}

#[test]
fn verify_finds_each_flipped_bit() {
    let mut packet: Vec<u8> = (0..60).collect();
    fill(&mut packet);
    for bit in 0..packet.len() * 8 {
        packet[bit / 8] ^= 1 << (bit % 8);
        assert!(!verify(&packet), "bit {bit}");
        packet[bit / 8] ^= 1 << (bit % 8);
    }
    assert!(verify(&packet));
}

#[test]
fn shorter_than_a_header_is_never_right() {
    for length in 0..12 {
        let mut bytes = vec![0xAB; length];
        assert!(!verify(&bytes));
        fill(&mut bytes);
        assert_eq!(bytes, vec![0xAB; length]);
    }
}

/// Reference sum, word by word, as defined in RFC 1071 §4.1.
fn slow_internet(words: impl Iterator<Item = u16>) -> u16 {
    !words.fold(0u16, |sum, word| {
        let (sum, carry) = sum.overflowing_add(word);
        sum + u16::from(carry)
    })
}

#[test]
fn internet_checksum_of_every_length_and_of_the_worst_values() {
    let (v4, v6) = (
        IpAddr::from([192, 0, 2, 255]),
        IpAddr::from([0xFFFF_u16; 8]),
    );
    for byte in [0x00, 0x5A, 0xFF] {
        for length in [0, 1, 2, 3, 20, 21, 22, 23, 1_459, 65_535] {
            let segment = vec![byte; length];
            for address in [v4, v6] {
                let mut pseudo = match address {
                    IpAddr::V4(v4) => v4.octets().repeat(2),
                    IpAddr::V6(v6) => v6.octets().repeat(2),
                };
                pseudo.extend((length as u32).to_be_bytes());
                pseudo.extend([0, 0, 0, 6]);
                pseudo.extend(&segment);
                pseudo.resize(pseudo.len().next_multiple_of(2), 0);
                let words = pseudo
                    .chunks_exact(2)
                    .map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
                assert_eq!(
                    internet_tcp(address, address, &segment),
                    slow_internet(words),
                    "{byte} x {length}"
                );
            }
        }
    }
}

/// RFC 1071 §3: the words 0001 f203 f4f5 f6f7 sum to ddf2.
#[test]
fn rfc_1071_example() {
    let words = [0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7];
    assert_eq!(u16::from_be(fold(sum_words(&words))), 0xDDF2);
}

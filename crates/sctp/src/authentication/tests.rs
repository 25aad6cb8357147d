use anabranch_wire::Encode;
use anabranch_wire::tlv::Tlv;

use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Offer with a random number whose 32 bytes are `byte`. It requires authentication of `chunks` and
/// lists the algorithms `hmacs`.
fn offer(byte: u8, chunks: &[u8], hmacs: &[u8]) -> AuthParameters {
    let mut all = AuthParametersBuilder::default();
    let parameters = [(0x8002, &[byte; 32][..]), (0x8003, chunks), (0x8004, hmacs)];
    for (kind, value) in parameters.iter().filter(|(_, value)| !value.is_empty()) {
        let tlv = Tlv::new(*kind, value).expect("short");
        assert_eq!(all.take(&tlv), Ok(true));
    }
    all.finish().expect("whole")
}

/// Offer of this stack, with a random number whose 32 bytes are `byte`.
fn own(byte: u8) -> AuthParameters {
    let chunks = ChunkTypes::of(&[0xC1, 0x80]);
    AuthParameters::own([byte; 32], chunks, AuthHmac::Sha256)
}

/// Last part of a packet: an AUTH chunk and a COOKIE ACK.
fn signed(auth: &Authenticator) -> Vec<u8> {
    let mut out = BytesMut::new();
    auth.blank(auth.keys().active())
        .expect("agreed")
        .encode(&mut out);
    out.extend_from_slice(&[11, 0, 0, 4]);
    auth.sign(auth.keys().active(), &mut out);
    out.to_vec()
}

fn chunk_of(bytes: &[u8]) -> Auth {
    let end = usize::from(bytes[3]);
    Auth {
        shared_key_id: u16::from_be_bytes([bytes[4], bytes[5]]),
        hmac_id: u16::from_be_bytes([bytes[6], bytes[7]]),
        hmac: Bytes::copy_from_slice(&bytes[8..end]),
    }
}

/// The expected values were computed by an independent program (Python's `hmac` and `hashlib`) over
/// the bytes in the order of RFC 4895 §6.1 and §6.2: the secret, the peer's vector, and this end's
/// vector. The peer's vector is shorter and therefore the smaller number.
#[test]
fn an_hmac_computed_by_hand() {
    let peer = offer(3, &[0xC1], &[0, 3, 0, 1]);
    let auth = Authenticator::agreed(own(2), &peer, SharedKeys::only(7, "secret"));
    let packet = signed(&auth);
    assert_eq!(hex(&packet[..8]), "0f00002800070003");
    assert_eq!(hex(&packet[8..40]), SHA_256_BY_HAND);
    let peer = offer(3, &[0xC1], &[0, 1]);
    let auth = Authenticator::agreed(own(2), &peer, SharedKeys::only(7, "secret"));
    let packet = signed(&auth);
    assert_eq!(hex(&packet[..8]), "0f00001c00070001");
    assert_eq!(hex(&packet[8..28]), SHA_1_BY_HAND);
}

const SHA_256_BY_HAND: &str = "0ae4549347a93c49a16f8cdd0c6d7bd56849b8e0c150d503e575c4f8138e5e66";
const SHA_1_BY_HAND: &str = "85ef9f651d0649bea00973d264253df9d7c87d24";

#[test]
fn each_end_verifies_what_the_other_signs_and_nothing_else() {
    let a_says = own(9);
    let z_says = own(1);
    let mut a = Authenticator::agreed(own(9), &z_says, SharedKeys::default());
    let mut z = Authenticator::agreed(own(1), &a_says, SharedKeys::default());
    let packet = signed(&a);
    let chunk = chunk_of(&packet);
    assert_eq!(z.verify(&chunk, &packet), Ok(None));
    assert_eq!(a.verify(&chunk, &packet), Ok(None), "the key is of both");
    for at in 0..packet.len() {
        let mut altered = packet.clone();
        altered[at] ^= 1;
        // Bytes 6 and 7 are the HMAC identifier; a changed identifier was not offered.
        let read = chunk_of(&altered);
        if at == 3 {
            continue; // the length of the chunk, which is read before
        }
        assert!(z.verify(&read, &altered).is_err(), "byte {at}");
    }
    let mut other = Authenticator::agreed(own(1), &own(8), SharedKeys::default());
    assert_eq!(other.verify(&chunk, &packet), Err(AuthFailure::Wrong));
}

#[test]
fn lengths_keys_and_algorithms_that_do_not_fit_prove_nothing() {
    let peer = own(1);
    let mut auth = Authenticator::agreed(own(9), &peer, SharedKeys::default());
    let packet = signed(&auth);
    let good = chunk_of(&packet);
    for len in 0..good.hmac.len() {
        let cut = Auth {
            hmac: good.hmac.slice(..len),
            ..good.clone()
        };
        assert_eq!(auth.verify(&cut, &packet), Err(AuthFailure::Wrong), "{len}");
    }
    let mut key = good.clone();
    key.shared_key_id = 1;
    assert_eq!(auth.verify(&key, &packet), Err(AuthFailure::Wrong));
    for hmac_id in [0, 2, 4, 0xFFFF] {
        let other = Auth {
            hmac_id,
            ..good.clone()
        };
        assert_eq!(
            auth.verify(&other, &packet),
            Err(AuthFailure::Algorithm(hmac_id))
        );
    }
    let sha_1_alone = AuthParameters::own([9; 32], ChunkTypes::default(), AuthHmac::Sha1);
    let peer = offer(1, &[], &[0, 1]);
    let mut auth = Authenticator::agreed(sha_1_alone, &peer, SharedKeys::default());
    assert_eq!(auth.verify(&good, &packet), Err(AuthFailure::Algorithm(3)));
    auth.disagree();
    assert_eq!(auth.verify(&good, &packet), Err(AuthFailure::Wrong));
}

#[test]
fn cookies_hold_the_terms_and_no_key() {
    let terms = NegotiatedAuth {
        own: offer(4, &[0, 0xC0], &[0, 1]),
        peer: offer(5, &[0xC1, 0x80, 1, 2], &[0, 3, 0, 1]),
    };
    let mut out = BytesMut::new();
    terms.encode(&mut out);
    let whole = out.freeze();
    assert_eq!(NegotiatedAuth::decode(&mut whole.clone()), Some(terms));
    for len in 0..whole.len() {
        assert_eq!(
            NegotiatedAuth::decode(&mut whole.slice(..len)),
            None,
            "{len}"
        );
    }
}

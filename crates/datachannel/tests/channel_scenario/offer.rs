//! Checks the properties that the parser of offers must have for any input.

use std::net::SocketAddr;

use anabranch_datachannel::sdp::{IceCredentials, Local, Offer};

/// Parses `bytes` as an offer. An error message should be short, and an answer should consist of
/// valid SDP lines.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let offer = match Offer::parse(&text) {
        Ok(offer) => offer,
        Err(error) => return assert!(error.to_string().len() < 2_000, "{error}"),
    };
    let local = Local {
        address: SocketAddr::from(([127, 0, 0, 1], 9)),
        ice: IceCredentials {
            ufrag: "abcd".into(),
            pwd: "0123456789012345678901".into(),
        },
        fingerprint: offer.fingerprint,
        max_message: 262_144,
    };
    let answer = offer.answer(&local, 7);
    let (mut sections, mut data) = (0, 0);
    for line in answer.split_terminator("\r\n") {
        assert!(!line.contains(['\r', '\n', '\0']), "{line:?}");
        assert!(line.as_bytes().get(1) == Some(&b'='), "{line:?}");
        sections += usize::from(line.starts_with("m="));
        data += usize::from(line.starts_with("a=sctp-port:"));
    }
    let offered = text.lines().filter(|it| it.starts_with("m=")).count();
    assert_eq!((sections, data), (offered, 1));
    assert!(answer.len() <= text.len() + 1_000 + 100 * sections);
}

//! Messages of a peer that sends the offer and has full ICE.

use stun_types::attribute::{AttributeType, RawAttribute, Username};
use stun_types::message::{
    BINDING, IntegrityAlgorithm, Message, MessageIntegrityCredentials, MessageWriteVec,
    ShortTermCredentials,
};
use stun_types::prelude::*;

/// Value of an attribute of a description.
pub fn attribute(text: &str, name: &str) -> String {
    let start = format!("a={name}:");
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    line.unwrap_or_else(|| panic!("no {name} in {text}"))
        .to_owned()
}

/// An offer with the credentials and certificate of the answer.
pub fn offer_of(answer: &str, setup: &str) -> String {
    let own = |name| format!("a={name}:{}\r\n", attribute(answer, name));
    let lines: String = ["ice-ufrag", "ice-pwd", "fingerprint", "max-message-size"]
        .map(own)
        .concat();
    format!(
        "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n\
        m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\na=mid:0\r\n\
        a=setup:{setup}\r\na=sctp-port:5000\r\n{lines}"
    )
}

/// ICE-CONTROLLED and ICE-CONTROLLING (RFC 8445 §16.1).
pub const CONTROLLED: u16 = 0x8029;
pub const CONTROLLING: u16 = 0x802A;

/// A connectivity check (Binding request) from the peer that got `answer`.
pub fn check(answer: &str, offer: &str, nominate: bool, pwd: &str) -> Vec<u8> {
    check_as(CONTROLLING, answer, offer, nominate, pwd)
}

/// Like [`check`], with the attribute of the given role.
pub fn check_as(role: u16, answer: &str, offer: &str, nominate: bool, pwd: &str) -> Vec<u8> {
    let mut request = Message::builder_request(BINDING, MessageWriteVec::new());
    let name = format!(
        "{}:{}",
        attribute(answer, "ice-ufrag"),
        attribute(offer, "ice-ufrag")
    );
    request
        .add_attribute(&Username::new(&name).unwrap())
        .unwrap();
    let role = RawAttribute::new(AttributeType::new(role), &[1; 8]);
    request.add_attribute(&role).unwrap();
    if nominate {
        let nomination = RawAttribute::new(AttributeType::new(0x0025), &[]);
        request.add_attribute(&nomination).unwrap();
    }
    let key: MessageIntegrityCredentials = ShortTermCredentials::new(pwd.to_owned()).into();
    request
        .add_message_integrity(&key, IntegrityAlgorithm::Sha1)
        .unwrap();
    request.add_fingerprint().unwrap();
    request.finish()
}

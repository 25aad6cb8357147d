//! Subset of SDP for data channels (RFC 8866, RFC 8829, RFC 8839, RFC 8841, RFC 8842): an offer
//! with a section `m=application ... UDP/DTLS/SCTP webrtc-datachannel`, and its answer. Media
//! sections are rejected with port 0.
//!
//! Implemented here, because SDP crates either parse only the syntax of SDP or are part of a media
//! stack.

use std::fmt::Write;
use std::net::SocketAddr;

use thiserror::Error;

use crate::channels::DtlsRole;
use crate::fingerprint::Fingerprint;

pub use crate::ice::IceCredentials;

/// Maximum size of an offer, bytes.
const MAX_OFFER: usize = 256 << 10;
/// Maximum number of sections. A large conference has some dozens.
const MAX_SECTIONS: usize = 256;
/// Number of characters to which an invalid line is truncated in an error message.
const MAX_SHOWN: usize = 80;
/// Default maximum message size of a peer (RFC 8841 §6.1).
const DEFAULT_MAX_MESSAGE: usize = 64 << 10;

/// Reasons for which an offer is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SdpError {
    /// The offer is too long.
    #[error("an offer of {0} bytes; allowed: 262144")]
    TooLong(usize),
    /// A line is not of the form `x=value`.
    #[error("line {line}: found {found:?}; allowed: a letter, =, a value")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// Content of the line.
        found: String,
    },
    /// The first line is not `v=0`.
    #[error("line 1: found {0:?}; allowed: v=0")]
    Version(String),
    /// The offer has too many sections.
    #[error("line {line}: more than 256 sections")]
    TooManySections {
        /// Line number of the first excess section, from 1.
        line: usize,
    },
    /// The offer has no section for data channels.
    #[error("no section m=application ... UDP/DTLS/SCTP webrtc-datachannel")]
    NoDataChannels,
    /// A required attribute is missing.
    #[error("the data channels' section has no a={0}")]
    Missing(&'static str),
    /// A value is invalid.
    #[error("line {line}: found {found:?}; allowed: {allowed}")]
    Value {
        /// Line number, from 1.
        line: usize,
        /// The value that was found.
        found: String,
        /// Allowed values.
        allowed: &'static str,
    },
}

/// Data channel parameters of an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The peer's ICE credentials.
    pub ice: IceCredentials,
    /// SHA-256 of the peer's certificate.
    pub fingerprint: Fingerprint,
    /// DTLS role of this end that results from the offer.
    pub role: DtlsRole,
    /// The peer's SCTP port.
    pub sctp_port: u16,
    /// Maximum message size that the peer accepts, bytes.
    pub max_message: usize,
    sections: Vec<Section>,
    bundled: bool,
}

/// A section of the offer, which the answer must repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Section {
    media: String,
    protocol: String,
    format: String,
    mid: Option<String>,
    /// Whether the section describes data channels.
    data: bool,
}

/// Attributes of a section; those of the session are the defaults for all sections.
#[derive(Clone, Debug, Default)]
struct Attributes {
    ufrag: Option<String>,
    pwd: Option<String>,
    fingerprint: Option<Fingerprint>,
    role: Option<DtlsRole>,
    sctp_port: Option<u16>,
    max_message: Option<usize>,
}

impl Attributes {
    fn or(self, whole: Self) -> Self {
        Self {
            ufrag: self.ufrag.or(whole.ufrag),
            pwd: self.pwd.or(whole.pwd),
            fingerprint: self.fingerprint.or(whole.fingerprint),
            role: self.role.or(whole.role),
            sctp_port: self.sctp_port,
            max_message: self.max_message,
        }
    }

    fn take(&mut self, line: usize, name: &str, value: &str) -> Result<(), SdpError> {
        let wrong = |allowed| SdpError::Value {
            line,
            found: shown(value),
            allowed,
        };
        match name {
            "ice-ufrag" if ice_word(value, 4) => self.ufrag = Some(value.to_owned()),
            "ice-ufrag" => return Err(wrong("4 to 256 of A-Z a-z 0-9 + /")),
            "ice-pwd" if ice_word(value, 22) => self.pwd = Some(value.to_owned()),
            "ice-pwd" => return Err(wrong("22 to 256 of A-Z a-z 0-9 + /")),
            "fingerprint" => {
                let (hash, digits) = value.split_once(' ').unwrap_or((value, ""));
                // Fingerprints with other hash functions are ignored (RFC 8122 §5).
                if hash.eq_ignore_ascii_case("sha-256") {
                    let digest = digits.trim().parse();
                    let allowed = "sha-256 and 32 bytes as AA:BB:...";
                    self.fingerprint = Some(digest.map_err(|()| wrong(allowed))?);
                }
            }
            // This end gets the opposite role; with `actpass` the peer should be the client (RFC
            // 5763 §5).
            "setup" => {
                self.role = Some(match value {
                    "actpass" | "active" => DtlsRole::Server,
                    "passive" => DtlsRole::Client,
                    _ => return Err(wrong("actpass, active, passive")),
                });
            }
            "sctp-port" => {
                let port = value.parse().ok().filter(|&port| port != 0);
                self.sctp_port = Some(port.ok_or_else(|| wrong("1 to 65535"))?);
            }
            "max-message-size" => {
                let size: u64 = value.parse().map_err(|_| wrong("a number of bytes"))?;
                // The value 0 means unlimited.
                let size = if size == 0 { u64::MAX } else { size };
                self.max_message = Some(usize::try_from(size).unwrap_or(usize::MAX));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Whether `text` consists of `least` to 256 ICE characters (RFC 8839 §5.4).
fn ice_word(text: &str, least: usize) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    (least..=256).contains(&text.len()) && text.bytes().all(letter)
}

impl Offer {
    /// Parses an offer.
    ///
    /// # Errors
    /// Describes the error and its line.
    pub fn parse(text: &str) -> Result<Self, SdpError> {
        if text.len() > MAX_OFFER {
            return Err(SdpError::TooLong(text.len()));
        }
        let mut sections: Vec<Section> = Vec::new();
        let (mut whole, mut own) = (Attributes::default(), Attributes::default());
        let mut bundled = false;
        let mut lines = 0;
        for (at, content) in text.lines().enumerate() {
            let line = at + 1;
            lines = line;
            let content = content.trim_end();
            if line == 1 && content != "v=0" {
                return Err(SdpError::Version(shown(content)));
            }
            let (kind, value) = split(line, content)?;
            match kind {
                'm' if sections.len() >= MAX_SECTIONS => {
                    return Err(SdpError::TooManySections { line });
                }
                'm' => sections.push(section(line, value, &sections)?),
                'a' => {
                    let (name, value) = value.split_once(':').unwrap_or((value, ""));
                    match sections.last_mut() {
                        None if name == "group" => bundled |= value.starts_with("BUNDLE"),
                        None => whole.take(line, name, value)?,
                        Some(section) if name == "mid" => section.mid = Some(value.to_owned()),
                        Some(section) if section.data => own.take(line, name, value)?,
                        Some(_) => {}
                    }
                }
                _ => {}
            }
        }
        if lines == 0 {
            return Err(SdpError::Version(String::new()));
        }
        if !sections.iter().any(|section| section.data) {
            return Err(SdpError::NoDataChannels);
        }
        let all = own.or(whole);
        Ok(Self {
            ice: IceCredentials {
                ufrag: all.ufrag.ok_or(SdpError::Missing("ice-ufrag"))?,
                pwd: all.pwd.ok_or(SdpError::Missing("ice-pwd"))?,
            },
            fingerprint: all
                .fingerprint
                .ok_or(SdpError::Missing("fingerprint:sha-256"))?,
            role: all.role.ok_or(SdpError::Missing("setup"))?,
            sctp_port: all.sctp_port.unwrap_or(5_000),
            max_message: all.max_message.unwrap_or(DEFAULT_MAX_MESSAGE),
            sections,
            bundled,
        })
    }

    /// The answer of an end at address `local`. `session` is the session identifier and should be
    /// random.
    pub fn answer(&self, local: &Local, session: u64) -> String {
        let mut text = String::new();
        let _ = self.write_answer(&mut text, local, session);
        text
    }

    fn write_answer(&self, out: &mut String, local: &Local, session: u64) -> std::fmt::Result {
        let ip = local.address.ip();
        let family = if ip.is_ipv4() { "IP4" } else { "IP6" };
        // The session identifier must be positive in 63 bits (RFC 8829 §5.2.1).
        write!(
            out,
            "v=0\r\no=- {} 1 IN {family} {ip}\r\ns=-\r\nt=0 0\r\na=ice-lite\r\n",
            session >> 1
        )?;
        if self.bundled
            && let Some(mid) = self
                .sections
                .iter()
                .find(|it| it.data)
                .and_then(|it| it.mid.as_ref())
        {
            write!(out, "a=group:BUNDLE {mid}\r\n")?;
        }
        for section in &self.sections {
            let Section {
                media,
                protocol,
                format,
                ..
            } = section;
            let port = if section.data {
                local.address.port()
            } else {
                0
            };
            write!(
                out,
                "m={media} {port} {protocol} {format}\r\nc=IN {family} {ip}\r\n"
            )?;
            if let Some(mid) = &section.mid {
                write!(out, "a=mid:{mid}\r\n")?;
            }
            if section.data {
                self.write_data(out, local)?;
            } else {
                out.push_str("a=inactive\r\n");
            }
        }
        Ok(())
    }

    fn write_data(&self, out: &mut String, local: &Local) -> std::fmt::Result {
        let setup = match self.role {
            DtlsRole::Client => "active",
            DtlsRole::Server => "passive",
        };
        let (ip, port) = (local.address.ip(), local.address.port());
        write!(
            out,
            "a=ice-ufrag:{}\r\na=ice-pwd:{}\r\n",
            local.ice.ufrag, local.ice.pwd
        )?;
        write!(
            out,
            "a=fingerprint:sha-256 {}\r\na=setup:{setup}\r\n",
            local.fingerprint
        )?;
        write!(
            out,
            "a=sctp-port:{SCTP_PORT}\r\na=max-message-size:{}\r\n",
            local.max_message
        )?;
        // Priority of the only candidate, by the formula of RFC 8445 §5.1.2.1.
        write!(
            out,
            "a=candidate:1 1 udp 2130706431 {ip} {port} typ host\r\na=end-of-candidates\r\n"
        )
    }
}

/// SCTP port of this end.
pub(crate) const SCTP_PORT: u16 = 5_000;

/// Parameters of this end in an answer.
#[derive(Clone, Debug)]
pub struct Local {
    /// Address of this end.
    pub address: SocketAddr,
    /// ICE credentials.
    pub ice: IceCredentials,
    /// SHA-256 of the certificate.
    pub fingerprint: Fingerprint,
    /// Maximum size of received messages, bytes.
    pub max_message: usize,
}

/// Truncates the content of a line for an error message.
fn shown(text: &str) -> String {
    text.chars().take(MAX_SHOWN).collect()
}

/// Splits a line into letter and value. The value is repeated in the answer and must not break its
/// lines (RFC 8866 §9).
fn split(line: usize, content: &str) -> Result<(char, &str), SdpError> {
    let mut letters = content.chars();
    let whole = !content.contains(['\0', '\r']);
    match (letters.next(), letters.next()) {
        (Some(kind), Some('=')) if kind.is_ascii_lowercase() && whole => {
            Ok((kind, letters.as_str()))
        }
        _ => Err(SdpError::Line {
            line,
            found: shown(content),
        }),
    }
}

/// Parses an `m=` line. Only the first data channel section is accepted.
fn section(line: usize, value: &str, before: &[Section]) -> Result<Section, SdpError> {
    let mut words = value.splitn(4, ' ');
    let (Some(media), Some(port), Some(protocol), Some(format)) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(SdpError::Value {
            line,
            found: shown(value),
            allowed: "m=MEDIA PORT PROTOCOL FORMAT",
        });
    };
    let data = media == "application"
        && port != "0"
        && protocol == "UDP/DTLS/SCTP"
        && format.trim() == "webrtc-datachannel"
        && !before.iter().any(|section| section.data);
    Ok(Section {
        media: media.to_owned(),
        protocol: protocol.to_owned(),
        format: format.to_owned(),
        mid: None,
        data,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shortened offer of a browser.
    const OFFER: &str = "v=0\r\no=- 4611731400430051336 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n\
        a=group:BUNDLE 0\r\na=extmap-allow-mixed\r\na=msid-semantic: WMS\r\n\
        m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\n\
        a=candidate:1 1 udp 2122260223 192.0.2.9 50000 typ host\r\n\
        a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuv+/\r\na=ice-options:trickle\r\n\
        a=fingerprint:sha-256 00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13:14:15:16:17:18:19:1A:1B:1C:1D:1E:1F\r\n\
        a=setup:actpass\r\na=mid:0\r\na=sctp-port:5001\r\na=max-message-size:262144\r\n";

    fn local() -> Local {
        Local {
            address: "127.0.0.1:4000".parse().unwrap(),
            ice: IceCredentials {
                ufrag: "wxyz".into(),
                pwd: "0123456789012345678901".into(),
            },
            fingerprint: Fingerprint::of(b"mine"),
            max_message: 100,
        }
    }

    #[test]
    fn an_offer_of_a_browser() {
        let offer = Offer::parse(OFFER).unwrap();
        assert_eq!(offer.ice.ufrag, "abcd");
        assert_eq!(offer.ice.pwd, "abcdefghijklmnopqrstuv+/");
        assert!(offer.fingerprint.to_string().ends_with("1D:1E:1F"));
        assert_eq!((offer.role, offer.sctp_port), (DtlsRole::Server, 5_001));
        assert_eq!(offer.max_message, 262_144);
        // The offer is also accepted with line feeds only, and with the attributes at session
        // level.
        assert_eq!(Offer::parse(&OFFER.replace('\r', "")), Ok(offer.clone()));
        let (head, section) = OFFER.split_at(OFFER.find("m=").unwrap());
        let (shared, own) = section.split_at(section.find("a=mid").unwrap());
        let (m, shared) = shared.split_at(shared.find("a=ice-ufrag").unwrap());
        assert_eq!(Offer::parse(&[head, shared, m, own].concat()), Ok(offer));
    }

    #[test]
    fn the_answer() {
        let offer = Offer::parse(OFFER).unwrap();
        let fingerprint = local().fingerprint;
        assert_eq!(
            offer.answer(&local(), 6),
            format!(
                "v=0\r\no=- 3 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=ice-lite\r\na=group:BUNDLE 0\r\n\
                m=application 4000 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 127.0.0.1\r\na=mid:0\r\n\
                a=ice-ufrag:wxyz\r\na=ice-pwd:0123456789012345678901\r\na=fingerprint:sha-256 {fingerprint}\r\n\
                a=setup:passive\r\na=sctp-port:5000\r\na=max-message-size:100\r\n\
                a=candidate:1 1 udp 2130706431 127.0.0.1 4000 typ host\r\na=end-of-candidates\r\n"
            )
        );
        let passive = OFFER.replace("actpass", "passive");
        let answer = Offer::parse(&passive).unwrap().answer(&local(), 6);
        assert!(answer.contains("a=setup:active\r\n"));
    }

    #[test]
    fn media_with_it_is_refused() {
        let media = "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:audio\r\na=setup:bad\r\n";
        let at = OFFER.find("m=").unwrap();
        let offer = [&OFFER[..at], media, &OFFER[at..]].concat();
        let answer = Offer::parse(&offer).unwrap().answer(&local(), 6);
        let refused = "m=audio 0 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 127.0.0.1\r\na=mid:audio\r\na=inactive\r\n\
            m=application 4000";
        assert!(answer.contains(refused), "{answer}");
        assert!(answer.contains("a=group:BUNDLE 0\r\n"));
    }

    #[test]
    fn incomplete_or_invalid_sdp_is_refused() {
        let without = |name: &str| {
            let lines = OFFER.lines().filter(|line| !line.contains(name));
            lines.collect::<Vec<_>>().join("\r\n")
        };
        for (name, missing) in [
            ("a=ice-ufrag", "ice-ufrag"),
            ("a=ice-pwd", "ice-pwd"),
            ("a=fingerprint", "fingerprint:sha-256"),
            ("a=setup", "setup"),
        ] {
            assert_eq!(
                Offer::parse(&without(name)),
                Err(SdpError::Missing(missing))
            );
        }
        assert_eq!(Offer::parse(&without("m=")), Err(SdpError::NoDataChannels));
        let older = OFFER.replace("UDP/DTLS/SCTP webrtc-datachannel", "DTLS/SCTP 5000");
        assert_eq!(Offer::parse(&older), Err(SdpError::NoDataChannels));
        let rejected = OFFER.replace("application 9", "application 0");
        assert_eq!(Offer::parse(&rejected), Err(SdpError::NoDataChannels));
        for text in ["", "v=1\r\n", "o=- 0"] {
            let Err(SdpError::Version(found)) = Offer::parse(text) else {
                panic!("{text}")
            };
            assert_eq!(found, text.trim_end());
        }
        let wrong = |from: &str, to: &str| {
            Offer::parse(&OFFER.replace(from, to))
                .unwrap_err()
                .to_string()
        };
        assert!(wrong("s=-", "s").starts_with("line 3: found \"s\""));
        assert!(wrong("ufrag:abcd", "ufrag:abc").starts_with("line 11: found \"abc\""));
        assert!(wrong("pwd:abc", "pwd:ab c").starts_with("line 12: "));
        assert!(wrong("00:01", "00:0G").starts_with("line 14: "));
        assert!(wrong("actpass", "holdconn").ends_with("allowed: actpass, active, passive"));
        assert!(wrong("sctp-port:5001", "sctp-port:0").ends_with("allowed: 1 to 65535"));
        assert!(wrong("size:262144", "size:-1").ends_with("allowed: a number of bytes"));
        assert!(wrong("9 UDP/DTLS/SCTP webrtc-datachannel", "9").contains("m=MEDIA"));
        let long = "v=0\r\n".to_owned() + &"a=x\r\n".repeat(60_000);
        assert_eq!(Offer::parse(&long), Err(SdpError::TooLong(300_005)));
    }

    #[test]
    fn sizes_that_are_not_reported() {
        let offer = Offer::parse(&OFFER.replace("max-message-size:262144", "x:y")).unwrap();
        assert_eq!(offer.max_message, 65_536);
        let offer = Offer::parse(&OFFER.replace("size:262144", "size:0")).unwrap();
        assert_eq!(offer.max_message, usize::MAX);
        let offer = Offer::parse(&OFFER.replace("a=sctp-port:5001\r\n", "")).unwrap();
        assert_eq!(offer.sctp_port, 5_000);
    }

    proptest::proptest! {
        #[test]
        fn any_text(text in ".{0,200}") {
            let _ = Offer::parse(&text);
        }

        #[test]
        fn a_changed_offer(at: proptest::sample::Index, byte in 0x20u8..0x7F) {
            let mut bytes = OFFER.as_bytes().to_vec();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = Offer::parse(&String::from_utf8(bytes).unwrap());
        }
    }
}

//! State Cookie: all information from an INIT, signed and stored at the peer (RFC 9260 §5.1.3).
//!
//! No state is stored at INIT. The cookie of a COOKIE ECHO is accepted only if its MAC was created
//! here, so a flood of INITs costs time but no memory, and a cookie cannot be altered, extended or
//! forged.
//!
//! The MAC is SipHash-2-4 with a key and a tag of 128 bits each. The RFC requires a MAC with a
//! secret key and names HMAC (RFC 2104) as an example. Any MAC interoperates, because only the
//! creator of a cookie reads it. SipHash was designed for this use: messages of ten to some hundred
//! bytes from unknown senders, whose authentication must cost less than the packet. A forger has a
//! chance of 2^-128 per packet during the lifetime of the key, and finding the key takes the same
//! number of attempts. AUTH uses the HMAC algorithms of RFC 4895 instead.

use std::hash::Hasher;
use std::net::IpAddr;

use anabranch_transport::time::SECOND;
use anabranch_transport::{Nanos, Path};
use anabranch_wire::serial::Tsn;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use siphasher::sip128::{Hasher128, SipHasher24};
use subtle::ConstantTimeEq;

use crate::address::{Addresses, MAX_PEER_ADDRESSES, put_address, take_address};
use crate::authentication::NegotiatedAuth;
use crate::dtls_chunk::DtlsTerms;
use crate::extensions::{AUTH, DTLS, Extensions};
use crate::handshake::OptionalParameters;
use crate::random::Random;

const TAG_LEN: usize = 16;
/// Length in bytes of the tag and of the zeros after it. Cookies keep the length that they had with
/// a tag of 32 bytes, because shorter INIT ACKs and COOKIE ECHOs would change all simulated times
/// after them.
const MAC_LEN: usize = 32;
/// Length in bytes of the numbers at the start of a cookie's body.
const NUMBERS: usize = 1 + 2 * 8 + 2 * 2 + 7 * 4 + 2 * 2;
/// Length in bytes of a cookie's body without addresses.
const FIXED_LEN: usize = NUMBERS + 1 + 2;
/// Format number of cookies without optional parameters; it is larger by one if the peer's optional
/// parameters are appended.
const FORMAT: u8 = 3;
/// Time during which one secret signs cookies. The previous secret still verifies them, so each
/// cookie can be verified for at least this time.
const SECRET_LIFE: Nanos = 3_600 * SECOND;

/// Contents of a cookie. Tags, TSNs and streams are those of the future association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cookie {
    /// Creation time of the cookie.
    pub(crate) created_at: Nanos,
    /// Lifespan of the cookie.
    pub(crate) lifespan: Nanos,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    /// Initiate Tag of the INIT ACK that contains the cookie.
    pub(crate) local_tag: u32,
    /// Initiate Tag of the INIT.
    pub(crate) peer_tag: u32,
    /// Tie-Tags of the association that existed when the INIT arrived; 0 and 0 if there was none
    /// (RFC 9260 §5.2.2).
    pub(crate) tie_tags: TieTags,
    pub(crate) local_initial_tsn: Tsn,
    pub(crate) peer_initial_tsn: Tsn,
    pub(crate) peer_a_rwnd: u32,
    /// Number of outbound streams: the smaller of the number requested here and that accepted by
    /// the peer (RFC 9260 §5.1.1).
    pub(crate) outbound_streams: u16,
    pub(crate) inbound_streams: u16,
    /// Source and destination of the INIT.
    pub(crate) path: Path,
    /// All addresses of the peer, beginning with the INIT's source; at most [`MAX_PEER_ADDRESSES`].
    pub(crate) peer_addresses: Addresses,
    /// Extensions that both ends offered.
    pub(crate) extensions: Extensions,
    /// AUTH parameters of both ends, if AUTH is one of these extensions.
    pub(crate) auth: Option<Box<NegotiatedAuth>>,
    /// DTLS Key Management Parameters, if the DTLS chunk is used.
    pub(crate) dtls: Option<Box<DtlsTerms>>,
    /// Optional parameters of the peer.
    pub(crate) remarks: OptionalParameters,
}

/// 64-bit nonce that associates a restarted association with the association that it replaces
/// without disclosing the tags (RFC 9260 §1.3, §5.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TieTags {
    pub(crate) local: u32,
    pub(crate) peer: u32,
}

impl TieTags {
    /// Value in a cookie if no association existed when the INIT arrived.
    pub(crate) const NONE: TieTags = TieTags { local: 0, peer: 0 };

    pub(crate) fn draw(random: &mut Random) -> Self {
        Self {
            local: random.tag(),
            peer: random.tag(),
        }
    }
}

impl Cookie {
    /// Time since the cookie expired, at `now`; `None` if it is valid. An ERROR reports this
    /// staleness.
    pub(crate) fn staleness(&self, now: Nanos) -> Option<Nanos> {
        let expired_at = self.created_at.saturating_add(self.lifespan);
        (now > expired_at).then(|| now - expired_at)
    }

    /// Addresses of the peer that the cookie contains.
    fn told_addresses(&self) -> &[IpAddr] {
        &self.peer_addresses[..self.peer_addresses.len().min(MAX_PEER_ADDRESSES)]
    }

    /// Bytes that [`Self::encode`] writes if there are neither optional parameters nor AUTH,
    /// without padding.
    fn usual_len(&self) -> usize {
        let of = |address: &IpAddr| if address.is_ipv4() { 5 } else { 17 };
        let paths = of(&self.path.local) + of(&self.path.remote);
        let addresses: usize = self.told_addresses().iter().map(of).sum();
        FIXED_LEN + paths + addresses
    }

    /// Appends the cookie to `out`, whose length must be a multiple of 4.
    fn encode(&self, out: &mut BytesMut) {
        // The usual length is reserved at once, and the fields are written into it, so that `out`
        // grows only once.
        let (begin, usual) = (out.len(), self.usual_len());
        out.resize(begin + usual.next_multiple_of(4), 0);
        let mut to = &mut out[begin..];
        to.put_u8(FORMAT + u8::from(!self.remarks.are_none()));
        to.put_u64(self.created_at);
        to.put_u64(self.lifespan);
        to.put_u16(self.local_port);
        to.put_u16(self.remote_port);
        to.put_u32(self.local_tag);
        to.put_u32(self.peer_tag);
        to.put_u32(self.tie_tags.local);
        to.put_u32(self.tie_tags.peer);
        to.put_u32(self.local_initial_tsn.0);
        to.put_u32(self.peer_initial_tsn.0);
        to.put_u32(self.peer_a_rwnd);
        to.put_u16(self.outbound_streams);
        to.put_u16(self.inbound_streams);
        write_address(&mut to, self.path.local);
        write_address(&mut to, self.path.remote);
        let addresses = self.told_addresses();
        to.put_u8(addresses.len() as u8);
        for &address in addresses {
            write_address(&mut to, address);
        }
        to.put_u16(self.extensions.bits());
        // The remaining bytes pad the cookie to a multiple of 4 bytes, so that its chunk needs no
        // padding (RFC 9260 §3.2).
        debug_assert!(to.len() < 4);
        if self.auth.is_some() || self.dtls.is_some() || !self.remarks.are_none() {
            out.truncate(begin + usual);
            self.encode_more(out);
        }
    }

    /// Decodes the result of [`Self::encode`]. The signature was verified, but every length is
    /// checked again, because a parser that trusts its input is one bug away from trusting an
    /// attacker's input.
    fn decode(whole: &[u8]) -> Option<Self> {
        let (numbers, rest) = whole.split_first_chunk::<NUMBERS>()?;
        let (numbers, body) = (&mut &numbers[..], &mut &rest[..]);
        let remarked = match numbers.get_u8().checked_sub(FORMAT)? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let mut cookie = Cookie {
            created_at: numbers.get_u64(),
            lifespan: numbers.get_u64(),
            local_port: numbers.get_u16(),
            remote_port: numbers.get_u16(),
            local_tag: numbers.get_u32(),
            peer_tag: numbers.get_u32(),
            tie_tags: TieTags {
                local: numbers.get_u32(),
                peer: numbers.get_u32(),
            },
            local_initial_tsn: Tsn(numbers.get_u32()),
            peer_initial_tsn: Tsn(numbers.get_u32()),
            peer_a_rwnd: numbers.get_u32(),
            outbound_streams: numbers.get_u16(),
            inbound_streams: numbers.get_u16(),
            path: Path::new(read_address(body)?, read_address(body)?),
            peer_addresses: Addresses::new(),
            extensions: Extensions::default(),
            auth: None,
            dtls: None,
            remarks: OptionalParameters::default(),
        };
        let addresses = usize::from(body.try_get_u8().ok()?);
        if addresses > MAX_PEER_ADDRESSES {
            return None;
        }
        // Most peers list one address, which is read without a loop.
        if addresses == 1 {
            cookie.peer_addresses = Addresses::from_elem(read_address(body)?, 1);
        } else {
            cookie.read_addresses(addresses, body)?;
        }
        cookie.extensions = Extensions::from_bits(body.try_get_u16().ok()?)?;
        if cookie.extensions != Extensions::default() || remarked {
            cookie.decode_more(remarked, body)?;
        }
        (body.len() < 4).then_some(cookie)
    }

    #[cold]
    #[inline(never)]
    fn read_addresses(&mut self, number: usize, body: &mut &[u8]) -> Option<()> {
        for _ in 0..number {
            self.peer_addresses.push(read_address(body)?);
        }
        Some(())
    }

    /// Decodes parts that few cookies have: AUTH and DTLS parameters, and optional parameters of
    /// the peer.
    #[cold]
    #[inline(never)]
    fn decode_more(&mut self, remarked: bool, body: &mut &[u8]) -> Option<()> {
        if self.extensions.has(&AUTH) {
            let mut rest = Bytes::copy_from_slice(body);
            self.auth = Some(Box::new(NegotiatedAuth::decode(&mut rest)?));
            body.advance(body.len() - rest.len());
        }
        if self.extensions.has(&DTLS) {
            let mut rest = Bytes::copy_from_slice(body);
            self.dtls = Some(Box::new(DtlsTerms::decode(&mut rest)?));
            body.advance(body.len() - rest.len());
        }
        if remarked {
            let mut rest = Bytes::copy_from_slice(body);
            self.remarks = OptionalParameters::decode(&mut rest)?;
            body.advance(body.len() - rest.len());
        }
        Some(())
    }

    /// Encodes the parts that [`Self::decode_more`] decodes.
    #[cold]
    #[inline(never)]
    fn encode_more(&self, out: &mut BytesMut) {
        if let Some(auth) = &self.auth {
            auth.encode(out);
        }
        if let Some(dtls) = &self.dtls {
            dtls.encode(out);
        }
        if !self.remarks.are_none() {
            self.remarks.encode(out);
        }
        out.resize(out.len().next_multiple_of(4), 0);
    }
}

/// Like [`put_address`], but advances a slice.
#[inline(never)] // one copy for all addresses of a cookie
fn write_address(to: &mut &mut [u8], address: IpAddr) {
    put_address(to, address);
}

/// Like [`take_address`], but advances a slice.
#[inline(never)]
fn read_address(body: &mut &[u8]) -> Option<IpAddr> {
    take_address(body)
}

/// Secrets that sign cookies: the current and the previous secret (RFC 9260 §5.1.3 requires
/// changes).
#[derive(Clone)]
pub(crate) struct CookieJar {
    current: Secret,
    previous: Option<Box<Secret>>,
    changed_at: Nanos,
}

/// SipHash key of one secret.
#[derive(Clone, Copy)]
struct Secret([u8; 16]);

impl Secret {
    /// MAC of `body`, padded with zeros to [`MAC_LEN`].
    fn mac(&self, body: &[u8]) -> [u8; MAC_LEN] {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(body);
        let mut mac = [0; MAC_LEN];
        mac[..TAG_LEN].copy_from_slice(&hasher.finish128().as_bytes());
        mac
    }
}

/// Splits a MAC into integers, which are compared faster than bytes.
fn words(mac: &[u8]) -> [u64; MAC_LEN / 8] {
    let mut words = [0; MAC_LEN / 8];
    for (word, bytes) in words.iter_mut().zip(mac.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

impl std::fmt::Debug for CookieJar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CookieJar")
            .field("changed_at", &self.changed_at)
            .finish_non_exhaustive()
    }
}

impl CookieJar {
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        Self {
            current: Secret(secret),
            previous: None,
            changed_at: 0,
        }
    }

    /// Signed cookie for an INIT ACK, after `front` unused bytes for the headers.
    pub(crate) fn seal(
        &mut self,
        now: Nanos,
        cookie: &Cookie,
        random: &mut Random,
        front: usize,
    ) -> BytesMut {
        if now.saturating_sub(self.changed_at) >= SECRET_LIFE.max(cookie.lifespan) {
            self.change(now, random);
        }
        let usual = cookie.usual_len().next_multiple_of(4);
        let mut out = BytesMut::with_capacity(front + usual + MAC_LEN);
        out.put_bytes(0, front);
        cookie.encode(&mut out);
        let mac = self.current.mac(&out[front..]);
        out.put_slice(&mac);
        out
    }

    #[cold]
    #[inline(never)]
    fn change(&mut self, now: Nanos, random: &mut Random) {
        let [secret, _] = random.keys();
        let former = std::mem::replace(&mut self.current, Secret(secret));
        self.previous = Some(Box::new(former));
        self.changed_at = now;
    }

    /// Decodes the cookie of a COOKIE ECHO; `None` if this endpoint did not sign it. The age is not
    /// checked here.
    pub(crate) fn open(&self, sealed: &[u8]) -> Option<Cookie> {
        let body_len = sealed.len().checked_sub(MAC_LEN)?;
        let (body, mac) = sealed.split_at(body_len);
        let told = words(mac);
        let signed_with =
            |secret: &Secret| bool::from(words(&secret.mac(body))[..].ct_eq(&told[..]));
        if !signed_with(&self.current) && !self.previous.as_deref().is_some_and(signed_with) {
            return None;
        }
        Cookie::decode(body)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    fn fresh(random: &mut Random) -> CookieJar {
        let [secret, _] = random.keys();
        CookieJar::new(secret)
    }

    /// Signed cookie, without the unused bytes that [`CookieJar::seal`] leaves before it.
    fn seal(jar: &mut CookieJar, now: Nanos, cookie: &Cookie, random: &mut Random) -> Bytes {
        jar.seal(now, cookie, random, 4).freeze().slice(4..)
    }

    fn sample() -> Cookie {
        let peer: IpAddr = [10, 0, 0, 1].into();
        Cookie {
            created_at: 5 * SECOND,
            lifespan: 60 * SECOND,
            local_port: 5_000,
            remote_port: 6_000,
            local_tag: 1,
            peer_tag: 2,
            tie_tags: TieTags { local: 3, peer: 4 },
            local_initial_tsn: Tsn(u32::MAX),
            peer_initial_tsn: Tsn(7),
            peer_a_rwnd: 65_536,
            outbound_streams: 10,
            inbound_streams: 20,
            path: Path::new([10, 0, 0, 2].into(), peer),
            peer_addresses: Addresses::from_slice(&[peer, Ipv6Addr::LOCALHOST.into()]),
            extensions: Extensions::from_bits(1).expect("a bit"),
            auth: None,
            dtls: None,
            remarks: OptionalParameters::default(),
        }
    }

    #[test]
    fn a_sealed_cookie_opens() {
        let mut random = Random::new([1; 32]);
        let mut jar = fresh(&mut random);
        let usual = seal(&mut jar, 0, &sample(), &mut random);
        assert_eq!(
            usual.len(),
            sample().usual_len().next_multiple_of(4) + MAC_LEN
        );
        let remarked = |adaptation, primary| Cookie {
            remarks: OptionalParameters {
                adaptation,
                primary,
            },
            ..sample()
        };
        for cookie in [
            sample(),
            remarked(Some(u32::MAX), None),
            remarked(None, Some(Ipv6Addr::LOCALHOST.into())),
            remarked(Some(0), Some([10, 0, 0, 1].into())),
        ] {
            let sealed = seal(&mut jar, 0, &cookie, &mut random);
            assert_eq!(jar.open(&sealed), Some(cookie));
        }
    }

    #[test]
    fn no_altered_truncated_or_lengthened_cookie_opens() {
        let mut random = Random::new([1; 32]);
        let mut jar = fresh(&mut random);
        let sealed = seal(&mut jar, 0, &sample(), &mut random);
        for index in 0..sealed.len() {
            let mut altered = sealed.to_vec();
            altered[index] ^= 1;
            assert_eq!(jar.open(&altered), None, "byte {index} altered");
            assert_eq!(jar.open(&sealed[..index]), None, "truncated to {index}");
        }
        let mut longer = sealed.to_vec();
        longer.push(0);
        assert_eq!(jar.open(&longer), None);
        let other = fresh(&mut random);
        assert_eq!(other.open(&sealed), None, "another endpoint's secret");
    }

    /// First, second and last test vectors of SipHash's reference implementation: messages of 0, 1
    /// and 63 bytes, each byte equal to its index.
    #[test]
    fn the_mac_is_siphash_2_4_of_128_bits() {
        let secret = Secret(std::array::from_fn(|at| at as u8));
        let message: Vec<u8> = (0..63).collect();
        for (len, tag) in [
            (0, 0xa381_7f04_ba25_a8e6_6df6_7214_c755_0293_u128),
            (1, 0xda87_c1d8_6b99_af44_3476_5911_9b22_fc45),
            (63, 0x5150_d177_2f50_834a_503e_069a_973f_bd7c),
        ] {
            let mac = secret.mac(&message[..len]);
            assert_eq!(mac[..TAG_LEN], tag.to_be_bytes(), "{len} bytes");
            assert_eq!(mac[TAG_LEN..], [0; MAC_LEN - TAG_LEN]);
        }
    }

    /// CVE-2026-53224: a signed body may still be incomplete. A truncated body, or one with a wrong
    /// number of addresses, is rejected.
    #[test]
    fn a_body_cut_short_is_no_cookie_though_it_is_signed() {
        let mut whole = BytesMut::new();
        sample().encode(&mut whole);
        let whole = whole.freeze();
        assert_eq!(Cookie::decode(&whole), Some(sample()));
        let said = whole.len() / 4 * 4;
        for len in 0..said - 3 {
            assert_eq!(Cookie::decode(&whole[..len]), None, "{len} bytes");
        }
        let mut longer = whole.to_vec();
        longer.extend_from_slice(&[0; 4]);
        assert_eq!(Cookie::decode(&longer), None);
        let count = whole.windows(2).rposition(|it| it == [2, 4]).expect("two");
        for addresses in (0..=255).filter(|&it| it != 2) {
            let mut wrong = whole.to_vec();
            wrong[count] = addresses;
            assert_eq!(Cookie::decode(&wrong), None, "{addresses} addresses");
        }
    }

    #[test]
    fn a_cookie_outlives_one_change_of_secret_and_not_two() {
        let mut random = Random::new([1; 32]);
        let mut jar = fresh(&mut random);
        let first = seal(&mut jar, 0, &sample(), &mut random);
        seal(&mut jar, SECRET_LIFE, &sample(), &mut random);
        assert!(jar.open(&first).is_some());
        seal(&mut jar, 2 * SECRET_LIFE, &sample(), &mut random);
        assert!(jar.open(&first).is_none());
    }

    #[test]
    fn staleness_is_what_exceeds_the_lifespan() {
        let cookie = sample();
        assert_eq!(cookie.staleness(65 * SECOND), None);
        assert_eq!(cookie.staleness(66 * SECOND), Some(SECOND));
        assert_eq!(cookie.staleness(0), None, "a clock set back does no harm");
    }

    #[test]
    fn a_cookie_is_bounded_whatever_the_peer_lists() {
        let mut random = Random::new([1; 32]);
        let mut jar = fresh(&mut random);
        let mut cookie = sample();
        cookie.peer_addresses = Addresses::from_elem(Ipv6Addr::LOCALHOST.into(), 5_000);
        let sealed = seal(&mut jar, 0, &cookie, &mut random);
        assert!(sealed.len() < 300, "{} bytes", sealed.len());
        assert_eq!(
            jar.open(&sealed).expect("ours").peer_addresses.len(),
            MAX_PEER_ADDRESSES
        );
    }
}

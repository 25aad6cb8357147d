//! UDP encapsulation of another protocol, such as SCTP (RFC 6951).

use anabranch_transport::Path;
use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::header::{self, HEADER};
use crate::ip::sum;

/// Size of the UDP header before the encapsulated packet, bytes.
pub const TUNNEL_HEADER: usize = HEADER;

/// Appends a UDP header with these ports (source first). The caller must append the payload and
/// then call [`set_length`]; if checksums are computed, it must finally call [`seal`].
pub fn open(out: &mut BytesMut, ports: [u16; 2]) {
    out.put_u16(ports[0]);
    out.put_u16(ports[1]);
    out.put_u32(0);
}

/// Writes the length of `datagram` into its UDP header.
pub fn set_length(datagram: &mut [u8]) {
    let length = datagram.len() as u16;
    if let Some(field) = datagram.get_mut(4..6) {
        field.copy_from_slice(&length.to_be_bytes());
    }
}

/// Computes the checksum of `datagram` and writes it into the UDP header. Without this call the
/// field is 0, which means no checksum.
pub fn seal(path: Path, datagram: &mut [u8]) {
    let pseudo = header::pseudo_header(path.local, path.remote, datagram.len());
    let checksum = !sum(datagram, pseudo);
    // A checksum of 0 is sent as all ones, because 0 means no checksum.
    let checksum = if checksum == 0 { 0xffff } else { checksum };
    if let Some(field) = datagram.get_mut(6..8) {
        field.copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Splits a datagram into its ports (source first) and its payload; `None` if the datagram is
/// damaged. If `checked` is set, a datagram over IPv6 must have a checksum.
pub fn unwrap(path: Path, mut datagram: Bytes, checked: bool) -> Option<([u16; 2], Bytes)> {
    let sound = match checked {
        true => header::verify(path, &datagram),
        false => datagram.len() >= HEADER,
    };
    if !sound {
        return None;
    }
    let ports = [datagram.get_u16(), datagram.get_u16()];
    datagram.advance(4);
    Some((ports, datagram))
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr};

    use super::*;

    #[test]
    fn a_tunnel_returns_its_payload_and_detects_damage() {
        let far = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
        let path = Path::new(IpAddr::V6(Ipv6Addr::LOCALHOST), far);
        let mut out = BytesMut::new();
        open(&mut out, [7, 443]);
        out.put_slice(b"bytes");
        set_length(&mut out);
        let unsealed = out.clone().freeze();
        seal(path, &mut out);
        let whole = out.freeze();
        let here = path.reversed();
        let expected = Some(([7, 443], Bytes::from_static(b"bytes")));
        assert_eq!(unwrap(here, whole.clone(), true), expected);
        assert_eq!(unwrap(here, unsealed.clone(), true), None);
        assert_eq!(unwrap(here, unsealed, false), expected);
        for place in 0..whole.len() {
            let mut damaged = whole.to_vec();
            damaged[place] ^= 0x10;
            assert_eq!(unwrap(here, damaged.into(), true), None, "byte {place}");
        }
        for length in 0..HEADER {
            assert_eq!(unwrap(here, whole.slice(..length), false), None);
        }
    }
}

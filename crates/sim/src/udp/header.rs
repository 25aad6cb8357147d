//! The UDP header and its checksum (RFC 768; RFC 8200 §8.1 over IPv6).

use std::net::IpAddr;

use anabranch_transport::Path;
use bytes::{BufMut, BytesMut};

use crate::ip::{UDP, fold, sum};

/// Size of the header, bytes.
pub(super) const HEADER: usize = 8;

/// Checksum of the pseudo header for a datagram of `len` bytes.
pub(super) fn pseudo_header(source: IpAddr, destination: IpAddr, len: usize) -> u16 {
    let address = |address: IpAddr, so_far| match address {
        IpAddr::V4(address) => sum(&address.octets(), so_far),
        IpAddr::V6(address) => sum(&address.octets(), so_far),
    };
    let addresses = address(destination, address(source, 0));
    // In both address families the pseudo header contains protocol and length as separate words.
    fold(u64::from(addresses) + u64::from(UDP) + len as u64)
}

/// Appends a header, the stamp, and zero bytes up to a payload of `payload` bytes. The checksum
/// skips the zero bytes, because they do not change it.
pub(super) fn write(
    out: &mut BytesMut,
    path: Path,
    ports: [u16; 2],
    stamp: [u64; 2],
    payload: usize,
) {
    let len = HEADER + payload;
    let mut head = [0u8; HEADER + super::STAMP];
    head[0..2].copy_from_slice(&ports[0].to_be_bytes());
    head[2..4].copy_from_slice(&ports[1].to_be_bytes());
    head[4..6].copy_from_slice(&(len as u16).to_be_bytes());
    head[8..16].copy_from_slice(&stamp[0].to_be_bytes());
    head[16..24].copy_from_slice(&stamp[1].to_be_bytes());
    let head_len = head.len().min(len);
    let checksum = !sum(
        &head[..head_len],
        pseudo_header(path.local, path.remote, len),
    );
    // A checksum of 0 is sent as all ones, because 0 means no checksum.
    let checksum = if checksum == 0 { 0xffff } else { checksum };
    head[6..8].copy_from_slice(&checksum.to_be_bytes());
    out.put_slice(&head[..head_len]);
    out.put_bytes(0, len - head_len);
}

/// Whether `datagram`, received on `path`, is complete and has a correct checksum.
pub(super) fn verify(path: Path, datagram: &[u8]) -> bool {
    let Some(header) = datagram.first_chunk::<HEADER>() else {
        return false;
    };
    let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let unchecked = header[6..8] == [0, 0] && path.local.is_ipv4();
    len == datagram.len()
        && (unchecked || sum(datagram, pseudo_header(path.remote, path.local, len)) == 0xffff)
}

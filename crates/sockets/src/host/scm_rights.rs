//! Descriptors that programs pass (SCM_RIGHTS), and the unread data in them.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, sendmsg,
};
use socket2::Socket as Unix;

use crate::MAX_PIECE;
use crate::frame::{HEADER, HostFrameHeader};

/// Maximum size of data that is read from a descriptor, bytes: many times its buffer. The size is
/// limited, because a program may pass any descriptor.
const MAX_UNREAD: usize = 16 << 20;

/// Receives a datagram, and the descriptor that it carries, if any.
pub(super) fn receive(unix: &Unix, buffer: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(buffer)];
    let received = recvmsg(unix, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = control.drain().filter_map(|it| match it {
        RecvAncillaryMessage::ScmRights(all) => Some(all),
        _ => None,
    });
    Ok((received.bytes, descriptors.flatten().next()))
}

/// Sends a datagram with a copy of a descriptor.
pub(super) fn send(unix: &Unix, bytes: &[u8], descriptor: BorrowedFd<'_>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let all = [descriptor];
    if !control.push(SendAncillaryMessage::ScmRights(&all)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let parts = [IoSlice::new(bytes)];
    Ok(sendmsg(unix, &parts, &mut control, SendFlags::NOSIGNAL)?)
}

/// Reads all frames from a program's descriptor, at most [`MAX_UNREAD`] bytes. The first `read`
/// bytes of the first frame are skipped, because the program has read them.
pub(super) fn empty(descriptor: &OwnedFd, read: usize) -> Vec<(HostFrameHeader, Vec<u8>)> {
    let mut buffer = vec![0; HEADER + MAX_PIECE];
    let mut all = Vec::new();
    let mut taken = 0;
    while taken < MAX_UNREAD
        && let Ok((length @ 1.., _)) = recv(descriptor, &mut buffer[..], RecvFlags::DONTWAIT)
    {
        taken += length;
        let skipped = if all.is_empty() {
            read.max(HEADER)
        } else {
            HEADER
        };
        if let Some(frame) = HostFrameHeader::decode(&buffer[..length]) {
            let payload = buffer.get(skipped..length).unwrap_or_default();
            all.push((frame, payload.to_vec()));
        }
    }
    all
}

//! Reception of messages.
//!
//! A message may be longer than the program's buffer; the next call then returns the remaining
//! bytes (RFC 6458 §3.1.4). The kernel stores with the descriptor the number of bytes already read
//! of the first frame (SO_PEEK_OFF). Therefore every process that has the descriptor continues at
//! the same byte, and `poll` reports that more data is available.

use std::ffi::c_int;
use std::net::SocketAddr;

use anabranch_sockets::control::{HostReply, HostRequest};
use anabranch_sockets::frame::{self, HEADER, HostFrameHeader, HostFrameKind};
use anabranch_sockets::{MAX_PIECE, SocketStyle};

use crate::descriptor::socket_type;
use crate::{generations, host_client, send_cache, system};

/// MSG_NOTIFICATION, with Linux's value.
pub const MSG_NOTIFICATION: c_int = 0x8000;

/// MSG_PROTECTED of draft-ietf-tsvwg-sctp-dtls-chunk-04 §8.2, which assigns no value. Linux does
/// not use this bit.
pub const MSG_PROTECTED: c_int = 0x40_0000;

/// A received part of a message or notification.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceivedPiece {
    /// Number of bytes written to the program's buffers.
    pub length: usize,
    /// Flags for the program: MSG_EOR, MSG_NOTIFICATION, MSG_PROTECTED.
    pub flags: c_int,
    /// Header of the frame; `None` at the end of the data.
    pub frame: Option<HostFrameHeader>,
    /// Whether the next frame continues this message without delay.
    pub follows: bool,
}

impl ReceivedPiece {
    /// Source address of the message.
    pub fn address(&self) -> Option<SocketAddr> {
        self.frame.and_then(|it| it.address)
    }
}

/// Checks that messages can be received on the descriptor. The descriptor of a listening one-to-one
/// socket carries associations, and a socket that was never connected receives no messages.
pub fn may_begin(fd: c_int, wait: impl Fn() -> bool) -> Result<(), c_int> {
    let one_to_one = socket_type(fd).is_some_and(|it| it.style == SocketStyle::OneToOne);
    // No query is needed for a socket of another style, or for a socket that is known to await
    // data: its available data can be read.
    if !one_to_one || send_cache::awaits(fd) {
        return Ok(());
    }
    let asked = ask_awaited(fd, wait());
    if asked.is_err() {
        // The host may have put the same error into the descriptor.
        forget_error(fd);
    }
    asked
}

/// Checks that more data, or the end of the data, should be expected.
pub fn may_wait(fd: c_int) -> Result<(), c_int> {
    match send_cache::awaits(fd) {
        true => Ok(()),
        false => ask_awaited(fd, true),
    }
}

fn ask_awaited(fd: c_int, wait: bool) -> Result<(), c_int> {
    match host_client::ask(fd, HostRequest::Await { wait })? {
        HostReply::Awaited(generation) => {
            generations::find(host_client::generations);
            send_cache::remember_awaited(fd, generation);
        }
        _ => return Err(libc::EIO),
    }
    Ok(())
}

/// Receives a message into the program's buffers, or as much of it as fits.
///
/// # Safety
/// The memory of the parts must be writable.
pub unsafe fn message(
    fd: c_int,
    parts: &[libc::iovec],
    flags: c_int,
) -> Result<ReceivedPiece, c_int> {
    // SAFETY: guaranteed by the caller.
    let mut received = unsafe { piece(fd, parts, flags) }?;
    let room = room_of(parts);
    while received.follows && received.length < room {
        // The host is about to deliver the next frame of the message.
        system::wait(fd, libc::POLLIN);
        let rest = behind(parts, received.length);
        // SAFETY: guaranteed by the caller.
        match unsafe { piece(fd, &rest, flags | libc::MSG_DONTWAIT) } {
            Ok(more) => {
                received.length += more.length;
                (received.flags, received.follows) = (more.flags, more.follows);
            }
            // Another process took the frame; the next call returns the remaining bytes of the
            // message.
            Err(_) => break,
        }
    }
    Ok(received)
}

fn room_of(parts: &[libc::iovec]) -> usize {
    let lengths = parts.iter().map(|part| part.iov_len);
    lengths.fold(0, usize::saturating_add)
}

/// The remaining memory of the parts after their first `bytes` bytes.
fn behind(parts: &[libc::iovec], mut bytes: usize) -> Vec<libc::iovec> {
    let mut out = Vec::with_capacity(parts.len());
    for part in parts {
        let skipped = bytes.min(part.iov_len);
        bytes -= skipped;
        out.push(libc::iovec {
            iov_base: part.iov_base.wrapping_byte_add(skipped),
            iov_len: part.iov_len - skipped,
        });
    }
    out
}

/// Receives one piece of a message.
///
/// # Safety
/// The memory of the parts must be writable.
unsafe fn piece(fd: c_int, parts: &[libc::iovec], flags: c_int) -> Result<ReceivedPiece, c_int> {
    let kernel = flags & libc::MSG_DONTWAIT;
    loop {
        let done = system::int_option(fd, libc::SOL_SOCKET, libc::SO_PEEK_OFF)?.max(0) as usize;
        let mut header = [0_u8; HEADER];
        let head = libc::iovec {
            iov_base: header.as_mut_ptr().cast(),
            iov_len: HEADER,
        };
        let room = room_of(parts);
        let keeps = flags & libc::MSG_PEEK != 0;
        // If the program's buffers can hold the largest frame, the frame is read and consumed at
        // once; in all other cases it is peeked first.
        let at_once = done == 0 && !keeps && room >= MAX_PIECE;
        let (there, read) = if done == 0 {
            let parameters = if at_once {
                kernel
            } else {
                libc::MSG_PEEK | kernel
            };
            (
                behind_head(fd, head, parts, parameters | libc::MSG_TRUNC)?,
                HEADER,
            )
        } else {
            // Reads the header again, and then the data after the bytes that were already read.
            let peek = libc::MSG_PEEK | libc::MSG_TRUNC | libc::MSG_DONTWAIT;
            system::set_int_option(fd, libc::SOL_SOCKET, libc::SO_PEEK_OFF, 0)?;
            let (whole, _) = system::receive(fd, &mut [head], peek)?;
            system::set_int_option(fd, libc::SOL_SOCKET, libc::SO_PEEK_OFF, done as c_int)?;
            system::receive(fd, &mut parts.to_vec(), peek)?;
            (whole, done)
        };
        if there == 0 {
            send_cache::forget(fd);
            // The descriptor also ends if the program itself has shut down reception. Unless the
            // host has ended, the end comes from the peer, or follows an error that was already
            // reported.
            return match host_client::is_lost(fd) {
                true => Err(libc::ECONNRESET),
                false => host_client::tell(fd, HostRequest::End).map(|()| ReceivedPiece::default()),
            };
        }
        let frame = HostFrameHeader::decode(&header[..HEADER.min(there)]).ok_or(libc::EIO)?;
        let left = there - read.min(there);
        let length = left.min(room);
        match frame.kind {
            HostFrameKind::Error => {
                consume(fd, done, at_once)?;
                // The error is reported only once: here, by a failed send, or by SO_ERROR.
                match host_client::option(fd, libc::SOL_SOCKET, libc::SO_ERROR, &[0; 4])?
                    .first_chunk()
                {
                    None | Some(&[0, 0, 0, 0]) => continue,
                    Some(&error) => return Err(c_int::from_ne_bytes(error)),
                }
            }
            HostFrameKind::Data | HostFrameKind::Notification => (),
            // The frame is for a listening socket, or invalid.
            _ => {
                consume(fd, done, at_once)?;
                continue;
            }
        }
        let whole = length == left;
        if keeps {
            let back = if done == 0 { -1 } else { done as c_int };
            system::set_int_option(fd, libc::SOL_SOCKET, libc::SO_PEEK_OFF, back)?;
        } else if whole {
            consume(fd, done, at_once)?;
        } else {
            let next = (read + length) as c_int;
            system::set_int_option(fd, libc::SOL_SOCKET, libc::SO_PEEK_OFF, next)?;
        }
        let ends = whole && frame.flags & frame::MORE == 0;
        let mut told = if ends { libc::MSG_EOR } else { 0 };
        if frame.kind == HostFrameKind::Notification {
            told |= MSG_NOTIFICATION;
        } else if frame.flags & frame::PROTECTED != 0 {
            told |= MSG_PROTECTED;
        }
        return Ok(ReceivedPiece {
            length,
            flags: told,
            frame: Some(frame),
            follows: whole && !keeps && frame.flags & frame::FOLLOWS != 0,
        });
    }
}

/// Reads the header of a frame, and its payload into the program's buffers. Returns the full size
/// of the frame, bytes.
fn behind_head(
    fd: c_int,
    head: libc::iovec,
    parts: &[libc::iovec],
    flags: c_int,
) -> Result<usize, c_int> {
    const MAX_UNCOPIED: usize = 7;
    if parts.len() <= MAX_UNCOPIED {
        let mut all = [head; MAX_UNCOPIED + 1];
        all[1..=parts.len()].copy_from_slice(parts);
        let all = &mut all[..=parts.len()];
        return system::receive(fd, all, flags).map(|(there, _)| there);
    }
    let mut all = [&[head], parts].concat();
    system::receive(fd, &mut all, flags).map(|(there, _)| there)
}

/// Consumes the first frame, unless it was already consumed (`taken`).
fn consume(fd: c_int, done: usize, taken: bool) -> Result<(), c_int> {
    if taken {
        return Ok(());
    }
    if done > 0 {
        system::set_int_option(fd, libc::SOL_SOCKET, libc::SO_PEEK_OFF, -1)?;
    }
    system::receive(fd, &mut [], libc::MSG_DONTWAIT | libc::MSG_TRUNC).map(drop)
}

/// Drops pending errors from the descriptor, because the program has read them by SO_ERROR or
/// connects again.
pub fn forget_error(fd: c_int) {
    while let Some((frame, _)) = first(fd)
        && frame.kind == HostFrameKind::Error
        && consume(fd, 0, false).is_ok()
    {}
}

/// The header of the next message or notification, and the size of its first frame's payload, if
/// available.
pub fn next(fd: c_int) -> Option<(HostFrameHeader, usize)> {
    let found = first(fd);
    found.filter(|it| matches!(it.0.kind, HostFrameKind::Data | HostFrameKind::Notification))
}

/// Like [`next`], but for frames of any kind.
fn first(fd: c_int) -> Option<(HostFrameHeader, usize)> {
    let mut header = [0_u8; HEADER];
    let mut parts = [libc::iovec {
        iov_base: header.as_mut_ptr().cast(),
        iov_len: HEADER,
    }];
    // After a partially read message, the next frame cannot be peeked.
    if system::int_option(fd, libc::SOL_SOCKET, libc::SO_PEEK_OFF).ok()? > 0 {
        return None;
    }
    let peek = libc::MSG_PEEK | libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    let (there, _) = system::receive(fd, &mut parts, peek).ok()?;
    let frame = HostFrameHeader::decode(header.get(..there.min(HEADER))?)?;
    Some((frame, there - HEADER))
}

/// The next association of a listening socket: its number and source address. EAGAIN if there is
/// none yet.
pub fn incoming(fd: c_int) -> Result<(u32, Option<SocketAddr>), c_int> {
    loop {
        let mut header = [0_u8; HEADER];
        let mut parts = [libc::iovec {
            iov_base: header.as_mut_ptr().cast(),
            iov_len: HEADER,
        }];
        // The frame is consumed by a single call, so that only one of several waiting processes
        // gets it.
        let (length, _) = system::receive(fd, &mut parts, libc::MSG_DONTWAIT)?;
        if length == 0 {
            return Err(match host_client::is_lost(fd) {
                true => libc::ECONNRESET,
                false => libc::EINVAL,
            });
        }
        match HostFrameHeader::decode(&header[..length.min(HEADER)]) {
            Some(frame) if frame.kind == HostFrameKind::Incoming => {
                return Ok((frame.association, frame.address));
            }
            _ => (),
        }
    }
}

/// Size of the next message (FIONREAD), bytes.
pub fn waiting(fd: c_int) -> Result<usize, c_int> {
    let done = system::int_option(fd, libc::SOL_SOCKET, libc::SO_PEEK_OFF)?.max(0) as usize;
    // FIONREAD of the Unix socket itself would count all frames.
    let peek = libc::MSG_PEEK | libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    let there = match system::receive(fd, &mut [], peek) {
        Ok((there, _)) => there,
        Err(libc::EAGAIN) => 0,
        Err(error) => return Err(error),
    };
    let header = if done == 0 { HEADER } else { 0 };
    Ok(there.saturating_sub(header))
}

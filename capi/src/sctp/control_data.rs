//! Ancillary data of messages (RFC 6458 §5.3) in Linux's layouts.

use std::ffi::{c_int, c_void};
use std::net::{IpAddr, SocketAddr};

use anabranch_sockets::frame::{self, HostFrameHeader, HostFrameKind};
use libc::msghdr;

use crate::descriptor::forget;
use crate::receive::{MSG_NOTIFICATION, ReceivedPiece};
use crate::send::{SendInfo, SendParameters, flags};
use crate::{memory, receive_flags};

/// Type SCTP_SNDRCV of ancillary data.
const SNDRCV: c_int = 1;
/// Type SCTP_SNDINFO.
const SNDINFO: c_int = 2;
/// Type SCTP_RCVINFO.
const RCVINFO: c_int = 3;
/// Type SCTP_NXTINFO.
const NXTINFO: c_int = 4;
/// Type SCTP_PRINFO.
const PRINFO: c_int = 5;
/// Type SCTP_AUTHINFO.
const AUTHINFO: c_int = 6;
/// Types SCTP_DSTADDRV4 and SCTP_DSTADDRV6.
const DSTADDRV4: c_int = 7;
const DSTADDRV6: c_int = 8;

/// Layout of struct sctp_sndrcvinfo.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SndRcvInfo {
    pub stream: u16,
    pub ssn: u16,
    pub flags: u16,
    pub ppid: u32,
    pub context: u32,
    pub timetolive: u32,
    pub tsn: u32,
    pub cumtsn: u32,
    pub assoc_id: i32,
}

/// Layout of struct sctp_sndinfo.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SndInfo {
    pub sid: u16,
    pub flags: u16,
    pub ppid: u32,
    pub context: u32,
    pub assoc_id: i32,
}

/// Layout of struct sctp_rcvinfo.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RcvInfo {
    pub sid: u16,
    pub ssn: u16,
    pub flags: u16,
    pub ppid: u32,
    pub tsn: u32,
    pub cumtsn: u32,
    pub context: u32,
    pub assoc_id: i32,
}

/// Layout of struct sctp_nxtinfo.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct NxtInfo {
    pub sid: u16,
    pub flags: u16,
    pub ppid: u32,
    pub length: u32,
    pub assoc_id: i32,
}

impl From<SndRcvInfo> for SendInfo {
    fn from(it: SndRcvInfo) -> Self {
        SendInfo {
            stream: it.stream,
            flags: it.flags,
            ppid: it.ppid,
            context: it.context,
            association: it.assoc_id as u32,
        }
    }
}

impl From<SndInfo> for SendInfo {
    fn from(it: SndInfo) -> Self {
        SendInfo {
            stream: it.sid,
            flags: it.flags,
            ppid: it.ppid,
            context: it.context,
            association: it.assoc_id as u32,
        }
    }
}

/// Describes a received message as struct sctp_sndrcvinfo.
pub fn sndrcv(frame: &HostFrameHeader) -> SndRcvInfo {
    SndRcvInfo {
        stream: frame.stream,
        ssn: frame.ssn as u16,
        flags: u16::from(frame.flags & frame::UNORDERED != 0),
        ppid: frame.ppid,
        context: frame.context,
        timetolive: 0,
        tsn: frame.tsn,
        cumtsn: frame.cumulative_tsn,
        assoc_id: frame.association as i32,
    }
}

/// Describes the next message as struct sctp_nxtinfo.
fn nxtinfo(frame: &HostFrameHeader, length: usize) -> NxtInfo {
    let notification = frame.kind == HostFrameKind::Notification;
    let unordered = u16::from(frame.flags & frame::UNORDERED != 0);
    let notifies = if notification {
        MSG_NOTIFICATION as u16
    } else {
        0
    };
    NxtInfo {
        sid: frame.stream,
        flags: unordered | notifies,
        ppid: frame.ppid,
        length: length as u32,
        assoc_id: frame.association as i32,
    }
}

/// Bits of `sinfo_flags` that contain a policy of RFC 7496.
const POLICY: u16 = 0x30;
/// Policy SCTP_PR_SCTP_TTL: the message is abandoned after its lifetime.
const LIFETIME: u16 = 0x10;

/// Reads the send parameters from the address and the ancillary data of a message.
///
/// # Safety
/// The message must be valid for `sendmsg`.
pub unsafe fn sent(message: &msghdr, flags: c_int) -> Result<SendParameters, c_int> {
    let mut parameters = SendParameters::plain(flags);
    // SAFETY: guaranteed by the caller; the macros stay within the control data.
    unsafe {
        if !message.msg_name.is_null() && message.msg_namelen > 0 {
            let (to, _) = crate::address::read(message.msg_name, message.msg_namelen as usize)?;
            parameters.to.push(to);
        }
        let (control, room) = (message.msg_control, message.msg_controllen);
        if room > 0 && memory::is_out_of_reach(control, room) {
            return Err(libc::EFAULT);
        }
        let mut at = libc::CMSG_FIRSTHDR(message);
        while let Some(header) = at.as_ref() {
            let length = header.cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
            // The entry must end within the program's control buffer.
            let room = message.msg_control as usize + message.msg_controllen;
            let ends = libc::CMSG_DATA(at) as usize + length;
            if header.cmsg_len < libc::CMSG_LEN(0) as usize || ends > room {
                return Err(libc::EINVAL);
            }
            if header.cmsg_level == libc::IPPROTO_SCTP {
                let data = std::slice::from_raw_parts(libc::CMSG_DATA(at), length);
                take(&mut parameters, header.cmsg_type, data)?;
            }
            at = libc::CMSG_NXTHDR(message, at);
        }
    }
    Ok(parameters)
}

/// Checks that all flags are known; the values are Linux's.
fn check_flags(given: u16) -> Result<(), c_int> {
    let known = flags::UNORDERED
        | flags::ADDR_OVER
        | flags::ABORT
        | flags::SACK_IMMEDIATELY
        | flags::SENDALL
        | flags::EOF
        | POLICY;
    match given & !known {
        0 => Ok(()),
        _ => Err(libc::EINVAL),
    }
}

/// Adds one item of ancillary data to the send parameters.
fn take(parameters: &mut SendParameters, kind: c_int, data: &[u8]) -> Result<(), c_int> {
    let room = |bytes: usize| match data.len() == bytes {
        true => Ok(data.as_ptr()),
        false => Err(libc::EINVAL),
    };
    match kind {
        SNDRCV => {
            let at = room(size_of::<SndRcvInfo>())?.cast::<SndRcvInfo>();
            // SAFETY: the buffer has that size, and any bytes are a valid value.
            let info = unsafe { at.read_unaligned() };
            check_flags(info.flags)?;
            // Older programs set a lifetime without a policy, which selects SCTP_PR_SCTP_TTL.
            let policy = match (info.flags & POLICY, info.timetolive) {
                (0, 1..) => LIFETIME,
                (policy, _) => policy,
            };
            parameters.policy = Some((policy, info.timetolive));
            parameters.info = Some(info.into());
        }
        SNDINFO => {
            let at = room(size_of::<SndInfo>())?.cast::<SndInfo>();
            // SAFETY: the buffer has that size, and any bytes are a valid value.
            let info = unsafe { at.read_unaligned() };
            check_flags(info.flags)?;
            parameters.info = Some(info.into());
        }
        PRINFO => {
            let at = room(8)?.cast::<[u16; 4]>();
            // SAFETY: the buffer has that size. It contains struct sctp_prinfo: policy and value.
            let [policy, _, low, high] = unsafe { at.read_unaligned() };
            if policy & !POLICY != 0 {
                return Err(libc::EINVAL);
            }
            let [a, b] = low.to_ne_bytes();
            let [c, d] = high.to_ne_bytes();
            parameters.policy = Some((policy, u32::from_ne_bytes([a, b, c, d])));
        }
        // The item contains an additional address of the peer, whose port is that of the first
        // address; it is ignored without a first address.
        DSTADDRV4 | DSTADDRV6 => {
            let Some(port) = parameters.to.first().map(SocketAddr::port) else {
                return Ok(());
            };
            let ip: Option<IpAddr> = match kind {
                DSTADDRV4 => data.first_chunk::<4>().map(|&it| it.into()),
                _ => data.first_chunk::<16>().map(|&it| it.into()),
            };
            let ip = ip.ok_or(libc::EINVAL)?.to_canonical();
            parameters.to.push(SocketAddr::new(ip, port));
        }
        // The item is struct sctp_authinfo: a key number.
        AUTHINFO => {
            let key = data.try_into().map_err(|_| libc::EINVAL)?;
            parameters.key = Some(u16::from_ne_bytes(key));
        }
        _ => return Err(libc::EINVAL),
    }
    Ok(())
}

/// Writes the source address, the requested ancillary data and the flags of a received message to
/// the program's msghdr.
///
/// # Safety
/// The message must be valid for `recvmsg`.
pub unsafe fn received(
    fd: c_int,
    message: &mut msghdr,
    received: &ReceivedPiece,
) -> Result<(), c_int> {
    message.msg_flags = received.flags;
    let room = std::mem::replace(&mut message.msg_controllen, 0) as usize;
    let Some(frame) = &received.frame else {
        message.msg_namelen = 0;
        return Ok(());
    };
    match frame.address {
        Some(address) if !message.msg_name.is_null() => {
            let bytes = crate::address::bytes(address);
            // SAFETY: guaranteed by the caller.
            unsafe {
                crate::address::write_with_message(
                    &bytes,
                    message.msg_name,
                    &raw mut message.msg_namelen,
                )
            }?;
        }
        _ => message.msg_namelen = 0,
    }
    if frame.kind != HostFrameKind::Data {
        return Ok(());
    }
    if message.msg_control.is_null() || room == 0 {
        if receive_flags::of(fd) != 0 {
            message.msg_flags |= libc::MSG_CTRUNC;
        }
        return Ok(());
    }
    // If the control buffer is invalid, MSG_CTRUNC reports that the data does not fit.
    let room = match memory::is_out_of_reach(message.msg_control, room) {
        true => 0,
        false => room,
    };
    let mut used = 0;
    let sndrcv = sndrcv(frame);
    let info = RcvInfo {
        sid: sndrcv.stream,
        ssn: sndrcv.ssn,
        flags: sndrcv.flags,
        ppid: sndrcv.ppid,
        tsn: sndrcv.tsn,
        cumtsn: sndrcv.cumtsn,
        context: sndrcv.context,
        assoc_id: sndrcv.assoc_id,
    };
    // SAFETY: guaranteed by the caller; `put` stays within `room`.
    unsafe {
        let base: *mut u8 = message.msg_control.cast();
        let wants = receive_flags::of(fd);
        if wants & receive_flags::NXTINFO != 0
            && let Some((next, length)) = crate::receive::next(fd)
        {
            let next = nxtinfo(&next, length);
            put(base, room, &mut used, NXTINFO, next, &mut message.msg_flags);
        }
        if wants & receive_flags::RCVINFO != 0 {
            put(base, room, &mut used, RCVINFO, info, &mut message.msg_flags);
        }
        if wants & receive_flags::SNDRCV != 0 {
            put(
                base,
                room,
                &mut used,
                SNDRCV,
                sndrcv,
                &mut message.msg_flags,
            );
        }
    }
    message.msg_controllen = used as _;
    Ok(())
}

/// Writes one item of ancillary data. If it does not fit, it is truncated to the buffer and
/// MSG_CTRUNC is set.
///
/// # Safety
/// `room` bytes must be writable at `base`.
unsafe fn put<T>(
    base: *mut u8,
    room: usize,
    used: &mut usize,
    kind: c_int,
    value: T,
    flags: &mut c_int,
) {
    let bytes = size_of::<T>() as u32;
    // SAFETY: the functions only compute sizes.
    let (space, length) = unsafe { (libc::CMSG_SPACE(bytes), libc::CMSG_LEN(bytes)) };
    let left = room - *used;
    if left < length as usize {
        *flags |= libc::MSG_CTRUNC;
    }
    // SAFETY: the function only computes a size.
    let head = unsafe { libc::CMSG_LEN(0) } as usize;
    if left < head {
        return;
    }
    let length = left.min(length as usize);
    // SAFETY: the size was checked; control data may be unaligned.
    unsafe {
        let at = base.add(*used).cast::<libc::cmsghdr>();
        let mut header: libc::cmsghdr = std::mem::zeroed();
        header.cmsg_len = length as _;
        header.cmsg_level = libc::IPPROTO_SCTP;
        header.cmsg_type = kind;
        at.write_unaligned(header);
        let from: *const u8 = (&raw const value).cast();
        std::ptr::copy_nonoverlapping(from, at.cast::<u8>().add(head), length - head);
    }
    *used = (*used + space as usize).min(room);
}

/// Resets the cached types of received descriptors (SCM_RIGHTS), because these may be SCTP sockets.
///
/// # Safety
/// The message must have been filled in by `recvmsg`.
pub unsafe fn forget_passed(message: &msghdr) {
    // SAFETY: guaranteed by the caller; the macros stay within the control data.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(message);
        while let Some(header) = at.as_ref() {
            if (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let bytes = header.cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
                let data: *const c_void = libc::CMSG_DATA(at).cast();
                for place in 0..bytes / size_of::<c_int>() {
                    forget(data.cast::<c_int>().add(place).read_unaligned());
                }
            }
            at = libc::CMSG_NXTHDR(message, at);
        }
    }
}

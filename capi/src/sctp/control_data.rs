//! Ancillary data of messages (RFC 6458 §5.3), laid out as Linux has it.

use std::ffi::{c_int, c_void};

use anabranch_sockets::frame::{self, Frame, Kind};
use libc::msghdr;

use crate::descriptor::forget;
use crate::receive::Received;
use crate::send::Info;
use crate::wants;

/// SCTP_SNDRCV.
const SNDRCV: c_int = 1;
/// SCTP_SNDINFO.
const SNDINFO: c_int = 2;
/// SCTP_RCVINFO.
const RCVINFO: c_int = 3;
/// SCTP_PRINFO.
const PRINFO: c_int = 5;

/// struct sctp_sndrcvinfo.
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

/// struct sctp_sndinfo.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SndInfo {
    pub sid: u16,
    pub flags: u16,
    pub ppid: u32,
    pub context: u32,
    pub assoc_id: i32,
}

/// struct sctp_rcvinfo.
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

impl From<SndRcvInfo> for Info {
    fn from(it: SndRcvInfo) -> Self {
        Info {
            stream: it.stream,
            flags: it.flags,
            ppid: it.ppid,
            context: it.context,
            lifetime: it.timetolive,
        }
    }
}

impl From<SndInfo> for Info {
    fn from(it: SndInfo) -> Self {
        Info {
            stream: it.sid,
            flags: it.flags,
            ppid: it.ppid,
            context: it.context,
            lifetime: 0,
        }
    }
}

/// What came, as struct sctp_sndrcvinfo.
pub fn sndrcv(frame: &Frame) -> SndRcvInfo {
    SndRcvInfo {
        stream: frame.stream,
        ssn: frame.ssn as u16,
        flags: u16::from(frame.flags & frame::UNORDERED != 0),
        ppid: frame.ppid,
        context: frame.context,
        timetolive: 0,
        tsn: frame.tsn,
        cumtsn: frame.tsn,
        assoc_id: frame.association as i32,
    }
}

/// How a message is to be sent, by its ancillary data.
///
/// # Safety
/// The message is one for `sendmsg`.
pub unsafe fn sent(message: &msghdr) -> Option<Info> {
    let mut found: Option<Info> = None;
    let mut lifetime = 0;
    // SAFETY: as the caller promises; the macros keep within the control data.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(message);
        while let Some(header) = at.as_ref() {
            let data = libc::CMSG_DATA(at);
            let length = header.cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
            if header.cmsg_level == libc::IPPROTO_SCTP {
                match header.cmsg_type {
                    SNDRCV if length >= size_of::<SndRcvInfo>() => {
                        found = Some(data.cast::<SndRcvInfo>().read_unaligned().into());
                    }
                    SNDINFO if length >= size_of::<SndInfo>() => {
                        found = Some(data.cast::<SndInfo>().read_unaligned().into());
                    }
                    // struct sctp_prinfo: policy, value; 0x10 is SCTP_PR_SCTP_TTL.
                    PRINFO if length >= 8 => {
                        let [policy, value] = data.cast::<[u32; 2]>().read_unaligned();
                        if policy & 0xffff == 0x10 {
                            lifetime = value;
                        }
                    }
                    _ => (),
                }
            }
            at = libc::CMSG_NXTHDR(message, at);
        }
    }
    if let (Some(info), 1..) = (&mut found, lifetime) {
        info.lifetime = lifetime;
    }
    found
}

/// Fills in what a receiving program asked for: address, ancillary data, flags.
///
/// # Safety
/// The message is one for `recvmsg`.
pub unsafe fn received(fd: c_int, message: &mut msghdr, received: &Received) {
    message.msg_flags = received.flags;
    let room = std::mem::replace(&mut message.msg_controllen, 0) as usize;
    let Some(frame) = &received.frame else {
        message.msg_namelen = 0;
        return;
    };
    match frame.address {
        Some(address) if !message.msg_name.is_null() => {
            let bytes = crate::address::bytes(address, crate::calls::is_v6(fd));
            // SAFETY: as the caller promises.
            unsafe { crate::address::write(&bytes, message.msg_name, &mut message.msg_namelen) };
        }
        _ => message.msg_namelen = 0,
    }
    if frame.kind != Kind::Data || message.msg_control.is_null() {
        return;
    }
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
    // SAFETY: as the caller promises; `put` keeps within `room`.
    unsafe {
        let base: *mut u8 = message.msg_control.cast();
        let wants = wants::of(fd);
        if wants & wants::RCVINFO != 0 {
            put(base, room, &mut used, RCVINFO, info, &mut message.msg_flags);
        }
        if wants & wants::SNDRCV != 0 {
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
}

/// One piece of ancillary data, if there is room; else MSG_CTRUNC.
///
/// # Safety
/// `room` bytes can be written at `base`.
unsafe fn put<T>(
    base: *mut u8,
    room: usize,
    used: &mut usize,
    kind: c_int,
    value: T,
    flags: &mut c_int,
) {
    let bytes = size_of::<T>() as u32;
    // SAFETY: these only compute.
    let (space, length) = unsafe { (libc::CMSG_SPACE(bytes), libc::CMSG_LEN(bytes)) };
    if *used + length as usize > room {
        *flags |= libc::MSG_CTRUNC;
        return;
    }
    // SAFETY: there is room, as was checked; control data may stand anywhere.
    unsafe {
        let at = base.add(*used).cast::<libc::cmsghdr>();
        let mut header: libc::cmsghdr = std::mem::zeroed();
        header.cmsg_len = length as _;
        header.cmsg_level = libc::IPPROTO_SCTP;
        header.cmsg_type = kind;
        at.write_unaligned(header);
        at.cast::<u8>()
            .add(libc::CMSG_LEN(0) as usize)
            .cast::<T>()
            .write_unaligned(value);
    }
    *used = (*used + space as usize).min(room);
}

/// Descriptors that came by SCM_RIGHTS may be SCTP sockets.
///
/// # Safety
/// The message is one that `recvmsg` filled.
pub unsafe fn forget_passed(message: &msghdr) {
    // SAFETY: as the caller promises; the macros keep within the control data.
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

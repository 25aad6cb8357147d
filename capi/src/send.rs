//! Transmission of messages.

use std::ffi::c_int;
use std::net::SocketAddr;

use anabranch_sockets::control::{HostReply, HostRequest};
use anabranch_sockets::frame::{self, HEADER, HostFrameHeader};
use anabranch_sockets::{MAX_PIECE, SocketStyle, SocketType};
use libc::iovec;

use crate::waiting::{self, PENDING};
use crate::{generations, host_client, send_cache, system};

/// Flags of struct sctp_sndrcvinfo and struct sctp_sndinfo, with Linux's values.
pub mod flags {
    pub const UNORDERED: u16 = 1;
    pub const ADDR_OVER: u16 = 2;
    pub const ABORT: u16 = 4;
    pub const SACK_IMMEDIATELY: u16 = 8;
    pub const SENDALL: u16 = 64;
    pub const EOF: u16 = 0x200; // MSG_FIN
}

/// Send parameters of a message.
#[derive(Clone, Debug, Default)]
pub struct SendParameters {
    /// Parameters from the structs of RFC 6458; `None`: those of SCTP_DEFAULT_SEND_PARAM.
    pub info: Option<SendInfo>,
    /// PR-SCTP policy and its value; `None`: those of SCTP_DEFAULT_PRINFO.
    pub policy: Option<(u16, u32)>,
    /// Flags of the program's `sendmsg`.
    pub flags: c_int,
    /// Addresses of the peer, if the program specifies any.
    pub to: Vec<SocketAddr>,
    /// Number of the key that should authenticate the message, if the program specifies one.
    pub key: Option<u16>,
}

impl SendParameters {
    /// Parameters of a message without ancillary data.
    pub fn plain(flags: c_int) -> Self {
        Self {
            flags,
            ..Self::default()
        }
    }
}

/// Fields that struct sctp_sndrcvinfo and struct sctp_sndinfo have in common.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendInfo {
    pub stream: u16,
    pub flags: u16,
    pub ppid: u32,
    pub context: u32,
    pub association: u32,
}

/// Maximum number of parts of a message: UIO_MAXIOV.
pub const MAX_PARTS: usize = 1024;

/// Parts of a message in the program's memory.
#[derive(Clone, Copy)]
pub struct MessageParts {
    at: *const iovec,
    count: usize,
}

impl MessageParts {
    /// Parts from an array in the program's memory.
    ///
    /// # Safety
    /// The parts, and the memory that they refer to, must be readable while they are used.
    pub unsafe fn new(at: *const iovec, count: usize) -> Self {
        let count = if at.is_null() { 0 } else { count };
        Self { at, count }
    }

    fn all(&self) -> &[iovec] {
        match self.count {
            0 => &[],
            // SAFETY: guaranteed by the caller of `new`.
            count => unsafe { std::slice::from_raw_parts(self.at, count) },
        }
    }

    /// Total size in bytes, saturating.
    pub fn length(&self) -> usize {
        let lengths = self.all().iter().map(|part| part.iov_len);
        lengths.fold(0, usize::saturating_add)
    }

    /// Copies all parts into one buffer.
    fn whole(&self) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.length());
        for part in self.all().iter().filter(|part| part.iov_len > 0) {
            // SAFETY: guaranteed by the caller of `new`.
            let bytes = unsafe { std::slice::from_raw_parts(part.iov_base.cast(), part.iov_len) };
            whole.extend_from_slice(bytes);
        }
        whole
    }
}

/// A message whose route is known. The type needs no drop, because a thread may be cancelled while
/// it waits ([`waiting`]).
#[derive(Clone, Copy)]
struct Ready {
    header: HostFrameHeader,
    length: usize,
    /// Flags for the system call `sendmsg`.
    kernel: c_int,
}

/// Maximum number of parts that are sent without copying them.
const MAX_UNCOPIED: usize = 15;

/// Sends one message, and returns the C result of `sendmsg`; raises SIGPIPE if there is no
/// receiver. The call blocks within libc's functions, and holds no values that need to be dropped
/// while it blocks.
pub fn answer(
    fd: c_int,
    socket_type: SocketType,
    parts: MessageParts,
    flags: c_int,
    parameters: impl Fn() -> Result<SendParameters, c_int> + Copy,
) -> isize {
    let sent = loop {
        let ready = match prepare(fd, socket_type, parts, parameters) {
            Err(PENDING) => match waiting::for_answer() {
                Ok(()) => continue,
                Err(error) => break Err(error),
            },
            Err(error) => break Err(error),
            Ok(ready) => ready,
        };
        let sent = if ready.length <= MAX_PIECE && parts.count <= MAX_UNCOPIED {
            send_at_once(fd, parts, &ready)
        } else {
            send_in_pieces(fd, parts, &ready)
        };
        let waits = ready.kernel & libc::MSG_DONTWAIT == 0 && ready.length > MAX_PIECE;
        match sent {
            Err(libc::EAGAIN) if waits && !system::is_nonblocking(fd) => {
                match waiting::for_room(fd) {
                    Ok(()) => (),
                    Err(error) => break Err(gone(fd, error)),
                }
            }
            Ok(()) if ready.header.flags & frame::EOF != 0 && socket_type.is_one_to_many() => {
                // The message has been sent, so an error of this wait is ignored.
                if ready.kernel & libc::MSG_DONTWAIT == 0 && !system::is_nonblocking(fd) {
                    let _ = host_client::tell(fd, HostRequest::Ended(ready.header.association));
                }
                break Ok(ready.length as isize);
            }
            // As in Linux, the bytes of an abort's cause do not count as sent.
            Ok(()) if ready.header.flags & frame::ABORT != 0 => break Ok(0),
            Ok(()) => break Ok(ready.length as isize),
            Err(error) => break Err(gone(fd, error)),
        }
    };
    if sent == Err(libc::EPIPE) && flags & libc::MSG_NOSIGNAL == 0 {
        // SAFETY: the call has no pointer arguments.
        unsafe { libc::raise(libc::SIGPIPE) };
    }
    system::answer(sent)
}

fn gone(fd: c_int, error: c_int) -> c_int {
    match error {
        libc::EPIPE | libc::ECONNREFUSED | libc::ECONNRESET | libc::ENOTCONN => {
            match host_client::is_lost(fd) {
                true => libc::ECONNRESET,
                false => libc::EPIPE,
            }
        }
        error => error,
    }
}

/// Creates the frame header, after checking that the message can be sent.
fn prepare(
    fd: c_int,
    socket_type: SocketType,
    parts: MessageParts,
    parameters: impl Fn() -> Result<SendParameters, c_int>,
) -> Result<Ready, c_int> {
    let parameters = parameters()?;
    let info = parameters.info.unwrap_or_default();
    let flag = |on: bool, bit: u8| if on { bit } else { 0 };
    let has = |bit: u16| info.flags & bit != 0;
    // As in Linux, an address that the program specifies always overrides the primary path of a
    // one-to-one socket.
    let over = has(flags::ADDR_OVER) || socket_type.style == SocketStyle::OneToOne;
    if has(flags::ADDR_OVER) && parameters.to.is_empty() {
        return Err(libc::EINVAL);
    }
    // As in Linux, the association of a one-to-one socket can only be ended by closing the socket.
    if socket_type.style == SocketStyle::OneToOne && (has(flags::EOF) || has(flags::ABORT)) {
        return Err(libc::EINVAL);
    }
    let (policy, value) = parameters.policy.unwrap_or_default();
    // The flag MSG_EOF of `sendmsg` has the same value and meaning as SCTP_EOF.
    let ends = has(flags::EOF) || parameters.flags & c_int::from(flags::EOF) != 0;
    let mut header = HostFrameHeader {
        stream: info.stream,
        ppid: info.ppid,
        context: info.context,
        value,
        policy,
        key: parameters.key,
        over: over && !parameters.to.is_empty(),
        address: parameters.to.first().copied(),
        flags: flag(has(flags::UNORDERED), frame::UNORDERED)
            | flag(ends, frame::EOF)
            | flag(has(flags::ABORT), frame::ABORT)
            | flag(has(flags::SACK_IMMEDIATELY), frame::IMMEDIATE)
            | flag(has(flags::SENDALL), frame::ALL)
            | flag(parameters.info.is_none(), frame::DEFAULT)
            | flag(parameters.policy.is_none(), frame::DEFAULT_POLICY),
        ..HostFrameHeader::default()
    };
    let length = parts.length();
    if length == 0 && header.flags & (frame::EOF | frame::ABORT) == 0 {
        // RFC 6458 §3.1.3: a message must not be empty.
        return Err(libc::EINVAL);
    }
    route(fd, socket_type, &mut header, &parameters, length)?;
    let kernel = parameters.flags & (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) | libc::MSG_NOSIGNAL;
    Ok(Ready {
        header,
        length,
        kernel,
    })
}

/// Sends a message as one frame without copying it. The thread may be unwound in this call.
fn send_at_once(fd: c_int, parts: MessageParts, ready: &Ready) -> Result<(), c_int> {
    let mut header = ready.header.encode();
    let mut all = [EMPTY; MAX_UNCOPIED + 1];
    all[0] = iovec {
        iov_base: header.as_mut_ptr().cast(),
        iov_len: HEADER,
    };
    for (to, part) in all[1..].iter_mut().zip(parts.all()) {
        *to = *part;
    }
    // SAFETY: the header exists; the caller of `MessageParts::new` guarantees that the program's
    // parts are valid.
    unsafe { waiting::send(fd, &all[..=parts.count], ready.kernel) }
}

const EMPTY: iovec = iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

/// Maximum kernel overhead of a piece in bytes: partially filled pages, and their descriptors.
const PIECE_OVERHEAD: usize = 8 << 10;

/// Whether a descriptor has buffer space for all pieces of a message, so that no piece must wait.
/// The kernel accepts a piece while the queued bytes are below SO_SNDBUF. For a message that needs
/// more, SO_SNDBUF is raised up to the system's limit. A still larger message is started only on an
/// empty descriptor, and its remaining pieces must wait for the host.
fn has_room(fd: c_int, length: usize) -> Result<bool, c_int> {
    let before_last = length.div_ceil(MAX_PIECE).saturating_sub(1);
    let needs = before_last * (MAX_PIECE + PIECE_OVERHEAD) + 1;
    let limit = || system::int_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUF);
    let mut most = limit()?.unsigned_abs() as usize;
    if needs > most {
        let wanted = c_int::try_from(needs).unwrap_or(c_int::MAX);
        let _ = system::set_int_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, wanted);
        most = limit()?.unsigned_abs() as usize;
    }
    let waiting = system::unread(fd)?;
    Ok(waiting == 0 || waiting + needs <= most)
}

/// Sends a message in several frames. Only the first piece may fail for lack of buffer space. Later
/// pieces wait for space, because a message must be sent completely or not at all. On a
/// non-blocking descriptor, there must be space for all pieces at the start.
fn send_in_pieces(fd: c_int, parts: MessageParts, ready: &Ready) -> Result<(), c_int> {
    let waits = ready.kernel & libc::MSG_DONTWAIT == 0 && !system::is_nonblocking(fd);
    if !waits && !has_room(fd, ready.length)? {
        return Err(libc::EAGAIN);
    }
    let whole = parts.whole();
    let mut pieces = whole.chunks(MAX_PIECE).peekable();
    let mut header = HostFrameHeader {
        tsn: system::thread(),
        ..ready.header
    };
    while let Some(piece) = pieces.next() {
        header.flags = match pieces.peek() {
            Some(_) => frame::MORE,
            None => ready.header.flags,
        };
        let kernel = ready.kernel | libc::MSG_DONTWAIT;
        loop {
            let begins = header.ssn == 0;
            match system::send(fd, &[&header.encode(), piece], kernel) {
                Ok(_) => break,
                Err(libc::EINTR) if !begins => (),
                Err(libc::EAGAIN) if !begins => system::wait(fd, libc::POLLOUT),
                Err(error) => return Err(error),
            }
        }
        header.ssn += 1;
    }
    Ok(())
}

/// Determines the association of the message, and checks that the message can be sent.
fn route(
    fd: c_int,
    socket_type: SocketType,
    header: &mut HostFrameHeader,
    parameters: &SendParameters,
    length: usize,
) -> Result<(), c_int> {
    let one_to_many = socket_type.is_one_to_many();
    let (stream, ends) = (
        header.stream,
        header.flags & (frame::EOF | frame::ABORT) != 0,
    );
    let wait = !system::is_nonblocking(fd) && parameters.flags & libc::MSG_DONTWAIT == 0;
    // Neither the end of an association nor the cause of an abort needs buffer space.
    let room = length > 0 && header.flags & frame::ABORT == 0;
    if one_to_many && header.flags & frame::ALL != 0 {
        if room {
            waiting::asked(fd, HostRequest::Room { wait }, wait)?;
        }
        return Ok(());
    }
    let usual = parameters.to.is_empty() && parameters.key.is_none();
    if !one_to_many && usual && send_cache::allows(fd, stream, length) {
        return Ok(());
    }
    let request = HostRequest::Route {
        association: parameters.info.map_or(0, |it| it.association),
        addresses: parameters.to.clone(),
        // A message that ends an association must not start a new one.
        begin: !ends,
        wait,
        room: room && one_to_many,
        key: parameters.key,
    };
    let HostReply::Route {
        association,
        streams,
        most,
        settled,
    } = waiting::asked(fd, request, wait)?
    else {
        return Err(libc::EIO);
    };
    if stream >= streams {
        return Err(libc::EINVAL);
    }
    if length > most {
        return Err(libc::EMSGSIZE);
    }
    if one_to_many {
        header.association = association;
    } else if let Some(generation) = settled {
        generations::find(host_client::generations);
        send_cache::remember(fd, streams, most, generation);
    }
    Ok(())
}

/// Requests to shut down the association after all previous messages.
pub fn end(fd: c_int) -> Result<(), c_int> {
    let end = HostFrameHeader {
        flags: frame::EOF,
        ..HostFrameHeader::default()
    };
    let end = end.encode();
    send_cache::forget(fd);
    loop {
        match system::send(fd, &[&end], libc::MSG_NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(libc::EINTR) => (),
            Err(libc::EAGAIN) => system::wait(fd, libc::POLLOUT),
            Err(error) => return Err(error),
        }
    }
}

/// Fills the descriptor's buffer, so that it is not writable until the host reads again. The host
/// does so when the association is established.
pub fn fill(fd: c_int) {
    let nothing = HostFrameHeader {
        kind: frame::HostFrameKind::Nothing,
        ..HostFrameHeader::default()
    };
    let nothing = nothing.encode();
    while system::send(fd, &[&nothing], libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL).is_ok() {}
}

//! Messages out.

use std::ffi::c_int;
use std::net::SocketAddr;

use anabranch_sockets::control::{Answer, Request};
use anabranch_sockets::frame::{self, Frame, HEADER};
use anabranch_sockets::{Form, LARGEST_PIECE, Style};
use libc::iovec;

use crate::waiting::{self, PENDING};
use crate::{ask, generations, routes, system};

/// Flags of struct sctp_sndrcvinfo and struct sctp_sndinfo, as Linux has them.
pub mod flags {
    pub const UNORDERED: u16 = 1;
    pub const ADDR_OVER: u16 = 2;
    pub const ABORT: u16 = 4;
    pub const SACK_IMMEDIATELY: u16 = 8;
    pub const SENDALL: u16 = 64;
    pub const EOF: u16 = 0x200; // MSG_FIN
}

/// How a message is sent.
#[derive(Clone, Debug, Default)]
pub struct How {
    /// Of RFC 6458's structs; `None`: as SCTP_DEFAULT_SEND_PARAM says.
    pub info: Option<Info>,
    /// When it is given up, policy and value; `None`: as SCTP_DEFAULT_PRINFO says.
    pub policy: Option<(u16, u32)>,
    /// Of `sendmsg`.
    pub flags: c_int,
    /// The peer's addresses, where the program names some.
    pub to: Vec<SocketAddr>,
    /// The key that the message is signed by, where the program names one.
    pub key: Option<u16>,
}

impl How {
    /// As the defaults say.
    pub fn plain(flags: c_int) -> Self {
        Self {
            flags,
            ..Self::default()
        }
    }
}

/// What the structs say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Info {
    pub stream: u16,
    pub flags: u16,
    pub ppid: u32,
    pub context: u32,
    pub association: u32,
}

/// The most parts that a message can have: UIO_MAXIOV.
pub const MOST_PARTS: usize = 1024;

/// The program's parts of a message.
#[derive(Clone, Copy)]
pub struct Parts {
    at: *const iovec,
    count: usize,
}

impl Parts {
    /// Those of an array.
    ///
    /// # Safety
    /// They can be read, and what they name, while they are used.
    pub unsafe fn new(at: *const iovec, count: usize) -> Self {
        let count = if at.is_null() { 0 } else { count };
        Self { at, count }
    }

    fn all(&self) -> &[iovec] {
        match self.count {
            0 => &[],
            // SAFETY: as `new` was promised.
            count => unsafe { std::slice::from_raw_parts(self.at, count) },
        }
    }

    /// Their bytes; more than there can be is as many as can be.
    pub fn length(&self) -> usize {
        let lengths = self.all().iter().map(|part| part.iov_len);
        lengths.fold(0, usize::saturating_add)
    }

    /// A copy of them.
    fn whole(&self) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.length());
        for part in self.all().iter().filter(|part| part.iov_len > 0) {
            // SAFETY: as `new` was promised.
            let bytes = unsafe { std::slice::from_raw_parts(part.iov_base.cast(), part.iov_len) };
            whole.extend_from_slice(bytes);
        }
        whole
    }
}

/// A message of which is known where it goes. Nothing of it has to be dropped: a thread may be cancelled while it waits ([`waiting`]).
#[derive(Clone, Copy)]
struct Ready {
    header: Frame,
    length: usize,
    /// Of `sendmsg`.
    kernel: c_int,
}

/// Parts of a message that are sent from where they are.
const FEW: usize = 15;

/// Sends one message as `how` says, and gives what C wants; with SIGPIPE where there is nobody any more. It waits as `sendmsg` does, in libc's
/// functions, with nothing to drop.
pub fn answer(
    fd: c_int,
    form: Form,
    parts: Parts,
    flags: c_int,
    how: impl Fn() -> Result<How, c_int> + Copy,
) -> isize {
    let sent = loop {
        let ready = match prepare(fd, form, parts, how) {
            Err(PENDING) => match waiting::for_answer() {
                Ok(()) => continue,
                Err(error) => break Err(error),
            },
            Err(error) => break Err(error),
            Ok(ready) => ready,
        };
        let sent = if ready.length <= LARGEST_PIECE && parts.count <= FEW {
            send_at_once(fd, parts, &ready)
        } else {
            send_in_pieces(fd, parts, &ready)
        };
        let waits = ready.kernel & libc::MSG_DONTWAIT == 0 && ready.length > LARGEST_PIECE;
        match sent {
            Err(libc::EAGAIN) if waits && !system::is_nonblocking(fd) => {
                match waiting::for_room(fd) {
                    Ok(()) => (),
                    Err(error) => break Err(gone(fd, error)),
                }
            }
            Ok(()) if ready.header.flags & frame::EOF != 0 && form.is_one_to_many() => {
                // It is sent in any case.
                if ready.kernel & libc::MSG_DONTWAIT == 0 && !system::is_nonblocking(fd) {
                    let _ = ask::tell(fd, Request::Ended(ready.header.association));
                }
                break Ok(ready.length as isize);
            }
            // As with Linux, the cause of an abort does not count as sent.
            Ok(()) if ready.header.flags & frame::ABORT != 0 => break Ok(0),
            Ok(()) => break Ok(ready.length as isize),
            Err(error) => break Err(gone(fd, error)),
        }
    };
    if sent == Err(libc::EPIPE) && flags & libc::MSG_NOSIGNAL == 0 {
        // SAFETY: no pointers.
        unsafe { libc::raise(libc::SIGPIPE) };
    }
    system::answer(sent)
}

fn gone(fd: c_int, error: c_int) -> c_int {
    match error {
        libc::EPIPE | libc::ECONNREFUSED | libc::ECONNRESET | libc::ENOTCONN => {
            match ask::is_lost(fd) {
                true => libc::ECONNRESET,
                false => libc::EPIPE,
            }
        }
        error => error,
    }
}

/// What goes before the message, once it is known that it can be sent.
fn prepare(
    fd: c_int,
    form: Form,
    parts: Parts,
    how: impl Fn() -> Result<How, c_int>,
) -> Result<Ready, c_int> {
    let how = how()?;
    let info = how.info.unwrap_or_default();
    let flag = |on: bool, bit: u8| if on { bit } else { 0 };
    let has = |bit: u16| info.flags & bit != 0;
    // As Linux has it, an address that is named counts for a one-to-one socket in any case.
    let over = has(flags::ADDR_OVER) || form.style == Style::OneToOne;
    if has(flags::ADDR_OVER) && how.to.is_empty() {
        return Err(libc::EINVAL);
    }
    // Such a socket is closed to end its association: so it is with Linux.
    if form.style == Style::OneToOne && (has(flags::EOF) || has(flags::ABORT)) {
        return Err(libc::EINVAL);
    }
    let (policy, value) = how.policy.unwrap_or_default();
    // The program's own flags of `sendmsg` mean the same (MSG_EOF).
    let ends = has(flags::EOF) || how.flags & c_int::from(flags::EOF) != 0;
    let mut header = Frame {
        stream: info.stream,
        ppid: info.ppid,
        context: info.context,
        value,
        policy,
        key: how.key,
        over: over && !how.to.is_empty(),
        address: how.to.first().copied(),
        flags: flag(has(flags::UNORDERED), frame::UNORDERED)
            | flag(ends, frame::EOF)
            | flag(has(flags::ABORT), frame::ABORT)
            | flag(has(flags::SACK_IMMEDIATELY), frame::IMMEDIATE)
            | flag(has(flags::SENDALL), frame::ALL)
            | flag(how.info.is_none(), frame::DEFAULT)
            | flag(how.policy.is_none(), frame::DEFAULT_POLICY),
        ..Frame::default()
    };
    let length = parts.length();
    if length == 0 && header.flags & (frame::EOF | frame::ABORT) == 0 {
        // RFC 6458 §3.1.3: SCTP has no empty messages.
        return Err(libc::EINVAL);
    }
    route(fd, form, &mut header, &how, length)?;
    let kernel = how.flags & (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) | libc::MSG_NOSIGNAL;
    Ok(Ready {
        header,
        length,
        kernel,
    })
}

/// One frame, from where the program has it. May be unwound.
fn send_at_once(fd: c_int, parts: Parts, ready: &Ready) -> Result<(), c_int> {
    let mut header = ready.header.encode();
    let mut all = [EMPTY; FEW + 1];
    all[0] = iovec {
        iov_base: header.as_mut_ptr().cast(),
        iov_len: HEADER,
    };
    for (to, part) in all[1..].iter_mut().zip(parts.all()) {
        *to = *part;
    }
    // SAFETY: the header is there, and the program's parts, as `Parts::new` was promised.
    unsafe { waiting::send(fd, &all[..=parts.count], ready.kernel) }
}

const EMPTY: iovec = iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

/// What the kernel counts of a piece beside its bytes, at most: pages that are not filled, and their descriptors.
const BESIDE: usize = 8 << 10;

/// Whether a descriptor has room for a message in pieces, so that none of them waits. The kernel takes a piece while the bytes that wait
/// are below SO_SNDBUF. A message for which that is too small raises it, as far as the system lets it; one that is larger still is begun
/// where nothing waits, and its other pieces wait for the host, since no other way is left.
fn has_room(fd: c_int, length: usize) -> Result<bool, c_int> {
    let before_last = length.div_ceil(LARGEST_PIECE).saturating_sub(1);
    let needs = before_last * (LARGEST_PIECE + BESIDE) + 1;
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

/// Several frames. The first piece may find no room; the rest waits for it, since a message is sent whole or not at all. Where the program
/// does not wait, there must be room for all of them.
fn send_in_pieces(fd: c_int, parts: Parts, ready: &Ready) -> Result<(), c_int> {
    let waits = ready.kernel & libc::MSG_DONTWAIT == 0 && !system::is_nonblocking(fd);
    if !waits && !has_room(fd, ready.length)? {
        return Err(libc::EAGAIN);
    }
    let whole = parts.whole();
    let mut pieces = whole.chunks(LARGEST_PIECE).peekable();
    let mut header = ready.header;
    let mut begins = true;
    while let Some(piece) = pieces.next() {
        header.flags = match pieces.peek() {
            Some(_) => frame::MORE,
            None => ready.header.flags,
        };
        let kernel = ready.kernel | libc::MSG_DONTWAIT;
        loop {
            match system::send(fd, &[&header.encode(), piece], kernel) {
                Ok(_) => break,
                Err(libc::EINTR) if !begins => (),
                Err(libc::EAGAIN) if !begins => system::wait(fd, libc::POLLOUT),
                Err(error) => return Err(error),
            }
        }
        begins = false;
    }
    Ok(())
}

/// Finds out where the message goes, and whether it can.
fn route(fd: c_int, form: Form, header: &mut Frame, how: &How, length: usize) -> Result<(), c_int> {
    let one_to_many = form.is_one_to_many();
    let (stream, ends) = (
        header.stream,
        header.flags & (frame::EOF | frame::ABORT) != 0,
    );
    let wait = !system::is_nonblocking(fd) && how.flags & libc::MSG_DONTWAIT == 0;
    // What ends an association needs no room, nor does the cause of an abort.
    let room = length > 0 && header.flags & frame::ABORT == 0;
    if one_to_many && header.flags & frame::ALL != 0 {
        if room {
            waiting::asked(fd, Request::Room { wait }, wait)?;
        }
        return Ok(());
    }
    let usual = how.to.is_empty() && how.key.is_none();
    if !one_to_many && usual && routes::allows(fd, stream, length) {
        return Ok(());
    }
    let request = Request::Route {
        association: how.info.map_or(0, |it| it.association),
        addresses: how.to.clone(),
        // What ends an association begins none.
        begin: !ends,
        wait,
        room: room && one_to_many,
        key: how.key,
    };
    let Answer::Route {
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
        generations::find(ask::generations);
        routes::remember(fd, streams, most, generation);
    }
    Ok(())
}

/// Shuts the association down behind all that was sent before.
pub fn end(fd: c_int) -> Result<(), c_int> {
    let end = Frame {
        flags: frame::EOF,
        ..Frame::default()
    };
    let end = end.encode();
    routes::forget(fd);
    loop {
        match system::send(fd, &[&end], libc::MSG_NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(libc::EINTR) => (),
            Err(libc::EAGAIN) => system::wait(fd, libc::POLLOUT),
            Err(error) => return Err(error),
        }
    }
}

/// Fills the descriptor, so that it cannot be written until the host reads on, which it does when the association is up.
pub fn fill(fd: c_int) {
    let nothing = Frame {
        kind: frame::Kind::Nothing,
        ..Frame::default()
    };
    let nothing = nothing.encode();
    while system::send(fd, &[&nothing], libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL).is_ok() {}
}

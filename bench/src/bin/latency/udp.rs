//! Round trips of UDP packets without a stack, which show the cost of the system calls.

use std::io::{ErrorKind, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;

use nix::sys::socket::{setsockopt, sockopt};
use quinn_udp::{RecvMeta, UdpSockRef, UdpSocketState};
use rustix::event::epoll;

use super::{Outcome, Score, WARM_UP, Watch, between};

/// System calls used for sending and receiving.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// Blocking receive.
    Plain,
    /// Wait with `epoll` before each receive, as required for more than one socket.
    Epoll,
    /// The calls that this project's driver makes on a separate thread: they receive several
    /// packets at once if available, with the ECN field of each.
    Driver,
}

/// Measures round trips of packets without a stack.
pub fn udp_alone(pings: u32, calls: Calls) -> Outcome<Score> {
    between(
        move |socket, to| {
            let mut port = RawPort::new(socket, to, calls)?;
            let mut watch = Watch::of(pings);
            loop {
                port.send(&[0x5a; 100])?;
                port.receive()?;
                if let Some(score) = watch.answered() {
                    return Ok(score);
                }
            }
        },
        move |socket, to| {
            let mut port = RawPort::new(socket, to, calls)?;
            for _ in 0..WARM_UP + pings {
                let length = port.receive()?;
                let answer = port.buffers[0][..length].to_vec();
                port.send(&answer)?;
            }
            Ok(())
        },
    )
}

/// A UDP socket with its destination.
struct RawPort {
    socket: UdpSocket,
    to: SocketAddr,
    epoll: Option<OwnedFd>,
    /// State of `quinn_udp`; only with the calls of the driver.
    state: Option<UdpSocketState>,
    buffers: Vec<Vec<u8>>,
}

/// Number of buffers with which the driver calls receive while few packets arrive.
const BUFFERS: usize = 4;

impl RawPort {
    fn new(socket: UdpSocket, to: SocketAddr, calls: Calls) -> Outcome<Self> {
        let watch = || -> Outcome<OwnedFd> {
            socket.set_nonblocking(true)?;
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&epoll, &socket, epoll::EventData::new_u64(0), flags)?;
            Ok(epoll)
        };
        let epoll = (calls != Calls::Plain).then(watch).transpose()?;
        let state = || -> Outcome<UdpSocketState> {
            let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
            setsockopt(&socket, sockopt::Ipv4PacketInfo, &false)?;
            setsockopt(&socket, sockopt::ReceiveTimestampns, &false)?;
            Ok(state)
        };
        Ok(Self {
            to,
            epoll,
            state: (calls == Calls::Driver).then(state).transpose()?,
            buffers: vec![vec![0; 1 << 16]; BUFFERS],
            socket,
        })
    }

    fn send(&self, bytes: &[u8]) -> Outcome<()> {
        self.socket.send_to(bytes, self.to)?;
        Ok(())
    }

    /// Waits for a packet and receives it.
    fn receive(&mut self) -> Outcome<usize> {
        let Some(epoll) = &self.epoll else {
            return Ok(self.socket.recv(&mut self.buffers[0])?);
        };
        let mut events = [MaybeUninit::uninit(); 4];
        loop {
            epoll::wait(epoll, &mut events, None)?;
            let received = match &self.state {
                None => self.socket.recv(&mut self.buffers[0]),
                Some(state) => {
                    let mut slices: Vec<_> = self
                        .buffers
                        .iter_mut()
                        .map(|it| IoSliceMut::new(it))
                        .collect();
                    let mut meta = [RecvMeta::default(); BUFFERS];
                    let count = state.recv(UdpSockRef::from(&self.socket), &mut slices, &mut meta);
                    count.map(|_| meta[0].len)
                }
            };
            match received {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                received => return Ok(received?),
            }
        }
    }
}

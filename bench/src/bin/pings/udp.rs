//! Packets without a stack: what the calls of the system cost.

use std::io::{ErrorKind, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;

use nix::sys::socket::{setsockopt, sockopt};
use quinn_udp::{RecvMeta, UdpSockRef, UdpSocketState};
use rustix::event::epoll;

use super::{Outcome, Score, WARM_UP, Watch, between};

/// How packets are sent and received.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// Received, and blocked for.
    Plain,
    /// Waited for by `epoll`, and then received, as everybody has to who watches more than one socket.
    Epoll,
    /// As our driver has to, on a thread of its own: also several by one call, as many as are there, with the ECN of each.
    Driver,
}

/// Packets without a stack.
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

/// A socket, and where it sends.
struct RawPort {
    socket: UdpSocket,
    to: SocketAddr,
    epoll: Option<OwnedFd>,
    /// Of a driver: what knows the system's options.
    state: Option<UdpSocketState>,
    buffers: Vec<Vec<u8>>,
}

/// Buffers of one call of the driver, while few packets come.
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

    /// Waits, and receives.
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

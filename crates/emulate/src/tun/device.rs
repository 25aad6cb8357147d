//! A TUN device: the kernel's end of a link that a program serves.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use tun_rs::{DeviceBuilder, SyncDevice};

/// A TUN device without offloads, so that every packet has its real size and checksum.
pub struct Tun(SyncDevice);

impl Tun {
    /// Makes the device `name` in the network namespace of the calling thread, or opens one that is there. It is down and has no addresses, and
    /// goes when it is dropped.
    ///
    /// # Errors
    /// The system's: there is no `/dev/net/tun`, or CAP_NET_ADMIN is missing.
    pub fn make(name: &str, mtu: u16) -> io::Result<Self> {
        Self::build(DeviceBuilder::new().name(name).mtu(mtu).enable(false))
    }

    /// Opens the device `name` in the network namespace of the calling thread, or makes it; whoever asks configures it.
    ///
    /// # Errors
    /// As [`Tun::make`].
    pub fn open(name: &str) -> io::Result<Self> {
        Self::build(DeviceBuilder::new().name(name).inherit_enable_state())
    }

    fn build(builder: DeviceBuilder) -> io::Result<Self> {
        let device = builder.build_sync()?;
        device.set_nonblocking(true)?;
        Ok(Self(device))
    }

    /// The next packet that the system sends; `None`: there is none, or the device is down.
    pub(crate) fn receive<'a>(&self, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
        let len = self.0.recv(buffer).ok()?;
        Some(&buffer[..len])
    }

    /// Gives the system a packet.
    pub(crate) fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.0.send(packet).map(drop)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl fmt::Debug for Tun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tun").field(&self.0.as_fd()).finish()
    }
}

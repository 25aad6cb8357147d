//! TUN devices: network interfaces whose packets the emulator reads and writes.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use tun_rs::{DeviceBuilder, SyncDevice};

/// A TUN device without offloads, so that every packet has its real size and checksum.
pub struct Tun(SyncDevice);

impl Tun {
    /// Opens the device `name` in the network namespace of the calling thread, or creates it: it is
    /// then down and has no addresses. A created device is removed when dropped.
    ///
    /// # Errors
    /// Any error of the system, for example if `/dev/net/tun` or CAP_NET_ADMIN is missing.
    pub fn make(name: &str, mtu: u16) -> io::Result<Self> {
        Self::build(DeviceBuilder::new().name(name).mtu(mtu).enable(false))
    }

    /// Opens the device `name` in the network namespace of the calling thread, or creates it. The
    /// caller must configure it.
    ///
    /// # Errors
    /// See [`Tun::make`].
    pub fn open(name: &str) -> io::Result<Self> {
        Self::build(DeviceBuilder::new().name(name).inherit_enable_state())
    }

    fn build(builder: DeviceBuilder) -> io::Result<Self> {
        let device = builder.build_sync()?;
        device.set_nonblocking(true)?;
        Ok(Self(device))
    }

    /// Reads the next packet that the system has sent; `None` if there is none, or the device is
    /// down.
    pub(crate) fn receive<'a>(&self, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
        let len = self.0.recv(buffer).ok()?;
        Some(&buffer[..len])
    }

    /// Writes a packet, which the system receives.
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

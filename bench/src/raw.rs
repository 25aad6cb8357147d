//! Maximum throughput of the loopback interface: UDP datagrams of one size from one socket to
//! another, as many per system call as GSO and GRO allow, whose data is not processed. The receiver
//! reports the number of received bytes, and the sender limits the bytes in flight to the receive
//! buffer, so that no datagrams are lost.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};

/// UDP payload of an IPv4 packet of 1500 bytes.
const PACKET: usize = 1472;
/// Maximum number of bytes per system call.
const RUN: usize = 65_000;
/// Size of a socket buffer, bytes; equal to that of the driver.
const BUFFER: usize = 4 << 20;
/// Maximum number of bytes in flight. Less than the buffer size, because packets occupy more memory
/// in the system than their length.
const WINDOW: u64 = 1 << 20;
/// Number of bytes after which the receiver sends a report.
const WORD: u64 = WINDOW / 8;
/// Interval at which an idle receiver checks for the end. A sender without a report for this time
/// treats the data in flight as lost.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Sends for `long` in the network namespace of this thread. Returns the rate between the first and
/// the last datagram that arrived, bytes per second.
///
/// # Errors
/// Any error of the system.
pub fn rate(long: Duration) -> io::Result<f64> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let to = socket.local_addr()?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&socket, &over));
        let sent = send(to, Instant::now() + long);
        over.store(true, Ordering::Relaxed);
        let received = receiver.join();
        sent?;
        received.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn send(to: SocketAddr, until: Instant) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
    state.set_send_buffer_size(UdpSockRef::from(&socket), BUFFER)?;
    socket.set_nonblocking(false)?;
    let packets = state.max_gso_segments().min(RUN / PACKET);
    let bytes = vec![0x5a; packets * PACKET];
    let run = Transmit {
        destination: to,
        ecn: None,
        contents: &bytes,
        segment_size: (packets > 1).then_some(PACKET),
        src_ip: None,
    };
    socket.set_read_timeout(Some(POLL_INTERVAL))?;
    let (mut sent, mut heard, mut lost) = (0, 0, 0);
    let mut word = [0; 8];
    while Instant::now() < until {
        while sent - heard + bytes.len() as u64 > WINDOW {
            match socket.recv(&mut word) {
                Ok(_) => heard = sent.min(u64::from_le_bytes(word) + lost),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    lost += sent - heard;
                    heard = sent;
                }
                Err(error) => return Err(error),
            }
        }
        state.try_send(UdpSockRef::from(&socket), &run)?;
        sent += bytes.len() as u64;
    }
    Ok(())
}

fn receive(socket: &UdpSocket, over: &AtomicBool) -> io::Result<f64> {
    let state = UdpSocketState::new(UdpSockRef::from(socket))?;
    state.set_recv_buffer_size(UdpSockRef::from(socket), BUFFER)?;
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(POLL_INTERVAL))?;
    let mut buffer = vec![0; 1 << 16];
    let mut meta = [RecvMeta::default()];
    let (mut first, mut last, mut bytes, mut told) = (None, Instant::now(), 0u64, 0);
    loop {
        // One buffer per call, because a blocking call with several buffers waits until all are
        // full.
        let mut slices = [IoSliceMut::new(&mut buffer)];
        match state.recv(UdpSockRef::from(socket), &mut slices, &mut meta) {
            Ok(_) => {
                last = Instant::now();
                first.get_or_insert(last);
                bytes += meta[0].len as u64;
                if bytes - told >= WORD {
                    told = bytes;
                    socket.send_to(&bytes.to_le_bytes(), meta[0].addr)?;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if over.load(Ordering::Relaxed) {
                    break;
                }
            }
            Err(error) => return Err(error),
        }
    }
    let first = first.ok_or(io::ErrorKind::TimedOut)?;
    Ok(bytes as f64 / last.duration_since(first).as_secs_f64())
}

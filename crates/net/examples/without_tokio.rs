//! The protocol on a std socket, without tokio: an echo server and a client, each with one thread.
//!
//! The driver loop in short: call one `handle_*`, drain `poll_transmit_batch`, take outputs, read
//! `poll_timeout`. `cargo run -p anabranch-net --example without_tokio`

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anabranch_sctp::{
    CloseReason, Config, ConnectOptions, Endpoint, Event, Interest, Output, ReceivedMessage,
    SendOptions, TransmitOptions,
};
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use bytes::{Bytes, BytesMut};

/// A UDP socket with a protocol endpoint and a clock.
struct Host {
    socket: UdpSocket,
    endpoint: Endpoint,
    origin: Instant,
    out: BytesMut,
}

impl Host {
    fn new(port: u16) -> io::Result<Self> {
        // Size of the UDP header between IP and SCTP, bytes.
        let config = Config::default().with(|it| it.encapsulation = 8);
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        Ok(Self {
            socket: UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?,
            endpoint: Endpoint::new(config, port, seed).map_err(io::Error::other)?,
            origin: now(),
            out: BytesMut::new(),
        })
    }

    fn time(&self) -> Nanos {
        self.origin.elapsed().as_nanos() as Nanos
    }

    /// Sends all packets that the protocol has queued.
    fn drain(&mut self) -> io::Result<()> {
        let time = self.time();
        let Self {
            socket,
            endpoint,
            out,
            ..
        } = self;
        let (mut done, all) = (Ok(0), TransmitOptions::default());
        endpoint.poll_transmit_batch(time, all, out, |outgoing, out| {
            let to = SocketAddr::new(outgoing.transmit.path.remote, outgoing.udp_port);
            done = socket.send_to(&out.split(), to);
            match done {
                Ok(_) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        done.map(|_| ())
    }

    /// Waits for a packet or for the protocol's next timeout, whichever comes first, and handles
    /// it.
    fn step(&mut self) -> io::Result<()> {
        self.drain()?;
        let wait = match self.endpoint.poll_timeout() {
            Some(at) => Duration::from_nanos(at.saturating_sub(self.time()).max(1_000_000)),
            None => Duration::from_secs(1),
        };
        self.socket.set_read_timeout(Some(wait))?;
        let mut buffer = [0; 65_535];
        match self.socket.recv_from(&mut buffer) {
            Ok((len, from)) => {
                let path = Path::new(self.socket.local_addr()?.ip(), from.ip());
                let packet = Bytes::copy_from_slice(&buffer[..len]);
                let time = self.time();
                self.endpoint.handle_udp_datagram(
                    time,
                    path,
                    from.port(),
                    Ecn::NotEct,
                    (&packet, 0..packet.len()),
                );
            }
            Err(error) if is_timeout(&error) => self.endpoint.handle_timeout(self.time()),
            Err(error) => return Err(error),
        }
        self.drain()
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

#[allow(
    clippy::disallowed_methods,
    reason = "the driver is where real time comes in"
)]
fn now() -> Instant {
    Instant::now()
}

/// Echoes every message, until the association ends.
fn serve(mut host: Host) -> io::Result<()> {
    host.endpoint.listen(true);
    loop {
        host.step()?;
        while let Some(id) = host.endpoint.poll_ready().map(|it| it.0) {
            let time = host.time();
            while let Some(association) = host.endpoint.association_mut(id)
                && let Some(output) = association.poll_output(OUTPUTS)
            {
                match output {
                    Output::Message(message) => {
                        let (bytes, options) = echo(message);
                        if let Err(error) = association.send(time, bytes, &options) {
                            println!("server: {error}");
                        }
                    }
                    Output::Event(Event::Closed(reason)) => {
                        println!("server: closed, {reason:?}");
                        return host.drain();
                    }
                    _ => {}
                }
            }
        }
        host.drain()?;
    }
}

/// Messages and events, in the order of delivery.
const OUTPUTS: Interest = Interest::MESSAGES.and(Interest::EVENTS);

/// The bytes of a message, and the options to send it back on the same stream.
fn echo(received: ReceivedMessage) -> (Bytes, SendOptions) {
    let options = SendOptions::on(received.stream)
        .with_ppid(received.ppid)
        .with_unordered(received.unordered);
    (received.payload.into_bytes(), options)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Host::new(5_001)?;
    let udp_port = server.socket.local_addr()?.port();
    let serving = std::thread::spawn(move || serve(server));

    let mut client = Host::new(5_002)?;
    let home = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
    let id = client
        .endpoint
        .connect_with(0, &home, 5_001, ConnectOptions::over_udp(udp_port))?;
    let (hello, time) = (Bytes::from_static(b"hello"), client.time());
    if let Some(association) = client.endpoint.association_mut(id) {
        association.send(time, hello, &SendOptions::new())?;
    }
    loop {
        client.step()?;
        let time = client.time();
        while let Some(association) = client.endpoint.association_mut(id)
            && let Some(output) = association.poll_output(OUTPUTS)
        {
            match output {
                Output::Message(message) => {
                    let stream = message.stream;
                    let bytes = message.payload.into_bytes();
                    println!("client: {bytes:?} came back on stream {stream}");
                    association.shutdown(time, None)?;
                }
                Output::Event(Event::Closed(reason)) => {
                    println!("client: closed, {reason:?}");
                    client.drain()?;
                    serving.join().map_err(|_| "the server panicked")??;
                    return match reason {
                        CloseReason::Shutdown => Ok(()),
                        other => Err(format!("{other:?}").into()),
                    };
                }
                _ => {}
            }
        }
        client.drain()?;
    }
}

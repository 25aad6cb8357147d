use std::collections::VecDeque;
use std::net::Ipv4Addr;

use anabranch_sim::Seed;

use super::*;

const MILLISECOND: Nanos = 1_000_000;
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const PORTS: Ports = Ports {
    local: 1000,
    remote: 80,
};

/// A client, a proxy and a server in a line; each packet takes one millisecond per hop.
struct Line {
    now: Nanos,
    client: Connection,
    proxy: Splitter,
    server: Connection,
    /// Packets in transit to the proxy and from the proxy.
    to_proxy: VecDeque<(Path, Bytes)>,
    from_proxy: VecDeque<(Path, Bytes)>,
}

impl Line {
    fn new(buffer: u64) -> Self {
        let config = Config::default();
        let client = Connection::connect(config.clone(), Path::new(CLIENT, SERVER), PORTS, 7);
        let sides = [config.clone(), config.clone()];
        Self {
            now: 0,
            client,
            proxy: Splitter::new(sides, buffer, Seed::new(1, 0).stream("proxy")),
            server: Connection::listen(config, PORTS.remote, 9),
            to_proxy: VecDeque::new(),
            from_proxy: VecDeque::new(),
        }
    }

    fn step(&mut self) {
        let now = self.now;
        for (path, bytes) in self.to_proxy.drain(..) {
            self.proxy.handle_datagram(now, path, Ecn::NotEct, bytes);
        }
        self.proxy.handle_timeout(now);
        for (path, bytes) in self.from_proxy.drain(..) {
            let end = match path.local == CLIENT {
                true => &mut self.client,
                false => &mut self.server,
            };
            end.handle_datagram(now, path, Ecn::NotEct, bytes);
        }
        let mut out = BytesMut::new();
        for end in [&mut self.client, &mut self.server] {
            end.handle_timeout(now);
            while let Some(transmit) = end.poll_transmit(now, &mut out) {
                let bytes = out.split().freeze();
                self.to_proxy.push_back((transmit.path.reversed(), bytes));
            }
        }
        while let Some(transmit) = self.proxy.poll_transmit(now, &mut out) {
            let bytes = out.split().freeze();
            self.from_proxy.push_back((transmit.path.reversed(), bytes));
        }
        self.now += MILLISECOND;
    }

    fn run(&mut self, milliseconds: u64) {
        (0..milliseconds).for_each(|_| self.step());
    }
}

fn content(length: usize) -> Bytes {
    (0..length).map(|at| (at * 31 + at / 251) as u8).collect()
}

#[test]
fn bytes_come_as_they_were_sent_and_the_end_is_passed_on() {
    let mut line = Line::new(64 << 10);
    let sent = content(300_000);
    line.client.write(sent.clone()).expect("room");
    line.run(10);
    line.client.close();
    let mut read = Vec::new();
    let mut closed = false;
    for _ in 0..2000 {
        line.step();
        while let Some(bytes) = line.server.read() {
            read.extend_from_slice(&bytes);
        }
        while let Some(event) = line.server.poll_event() {
            closed |= event == Event::PeerClosed;
        }
        if closed {
            line.server.close();
        }
    }
    assert!(read == sent, "{} of {} bytes", read.len(), sent.len());
    assert!(closed);
    // Both hosts have closed their connections. The proxy should remove the split connection after
    // its TIME-WAIT.
    let states = [line.client.state(), line.server.state()];
    assert_eq!(states, [State::TimeWait, State::Closed]);
    line.run(250_000);
    assert_eq!(
        (line.proxy.relays.len(), line.proxy.poll_timeout()),
        (0, None)
    );
}

#[test]
fn a_server_that_does_not_read_stops_the_client() {
    let mut line = Line::new(32 << 10);
    line.client.write(content(1_000_000)).expect("room");
    line.run(3000);
    // Acknowledged data is limited by the server's window, the proxy's buffer plus one segment, and
    // the window that the proxy advertises.
    let window = 65_535;
    let acknowledged = 1_000_000 - line.client.unacknowledged();
    let most = window + (32 << 10) + 1460 + window;
    assert!(acknowledged <= most, "{acknowledged} of {most}");
    assert!(acknowledged > window + (32 << 10), "{acknowledged}");
    // When the client reads again, all data should arrive.
    let mut read = 0;
    for _ in 0..60_000 {
        line.step();
        while let Some(bytes) = line.server.read() {
            read += bytes.len();
        }
    }
    assert_eq!(read, 1_000_000);
}

#[test]
fn a_connection_that_breaks_breaks_the_other() {
    let mut line = Line::new(32 << 10);
    line.run(20);
    assert_eq!(line.server.state(), State::Established);
    line.server.abort();
    line.run(20);
    let mut events = std::iter::from_fn(|| line.client.poll_event());
    let reset = Event::Failed(anabranch_tcp::Failure::Reset);
    assert!(events.any(|event| event == reset));
    assert_eq!(line.proxy.relays.len(), 0);
}

#[test]
fn packets_without_a_connection_are_ignored() {
    let mut line = Line::new(32 << 10);
    let path = Path::new(SERVER, CLIENT);
    for length in [0, 3, HEADER - 1, HEADER, 60] {
        let segment = Bytes::from(vec![0; length]);
        line.proxy.handle_datagram(0, path, Ecn::NotEct, segment);
    }
    let transmit = line.proxy.poll_transmit(0, &mut BytesMut::new());
    assert!(transmit.is_none() && line.proxy.relays.is_empty());
}

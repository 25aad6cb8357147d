use std::net::Ipv4Addr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use anabranch_net::sctp::Authentication;
use anabranch_net::sctp::dtls::KeyMaterial;
use anabranch_net::sctp::dtls::preshared::PresharedSettings;
use anabranch_net::{Carrier, Config, Endpoint, Peer};
use socket2::{Domain, Type};

use super::super::dtls::RESTART;
use super::super::listener::POLL_INTERVAL;
use super::super::{Host, HostAccess};
use super::*;
use crate::SocketType;
use crate::control::OptionValue;
use crate::options::{AUTH_SUPPORTED, MAX_BURST};

/// A request for buffer space should be cancelled when the program no longer waits for it, and not
/// before.
#[tokio::test]
async fn the_end_of_a_program_is_seen() {
    let (program, host) = Unix::pair(Domain::UNIX, Type::SEQPACKET, None).expect("sockets");
    host.set_nonblocking(true).expect("a socket");
    let host = super::super::watched_by(host).expect("a runtime");
    (&program).write_all(b"a request").expect("room");
    let mut request = [0; 64];
    let read = |mut unix: &Unix| unix.read(&mut request);
    let read = host.async_io(Interest::READABLE, read).await;
    assert_eq!(read.expect("it came"), 9);
    {
        let mut ended = pin!(hung_up(&host));
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(ended.as_mut().poll(&mut cx), Poll::Pending);
        drop(program);
        ended.await;
    }
    // A closed connection stays closed.
    hung_up(&host).await;
}

fn loopback() -> Config {
    Config::default().with(|it| {
        it.addresses = vec![Ipv4Addr::LOCALHOST.into()];
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
    })
}

/// With dynamic addresses, which need AUTH (RFC 5061 §4.1).
fn dynamic() -> Config {
    loopback().with(|it| {
        it.sctp.authentication = Authentication::On;
        it.sctp.address_changes = true;
    })
}

/// A host, and a socket of it.
fn socket(config: Config, style: SocketStyle) -> (Arc<HostState>, Arc<Socket>, Unix) {
    let access = HostAccess::random().expect("random bits");
    let host = Host::start(&access.name, config).expect("loopback").known;
    let (program, unix) = Unix::pair(Domain::UNIX, Type::SEQPACKET, None).expect("sockets");
    unix.set_nonblocking(true).expect("a socket");
    let unix = super::super::watched_by(unix).expect("a runtime");
    let socket_type = SocketType { style, v6: false };
    let socket = Socket::new(&host, b"socket".to_vec(), unix, socket_type);
    (host, Arc::new(socket), program)
}

async fn set(
    host: &Arc<HostState>,
    socket: &Arc<Socket>,
    option: i32,
    words: &[u32],
) -> Result<HostReply, i32> {
    let value = words.iter().flat_map(|it| it.to_ne_bytes()).collect();
    let request = HostRequest::Set {
        level: IPPROTO_SCTP,
        option,
        value: OptionValue(value),
    };
    carry_out(host, socket, request, None).await
}

/// An option that an endpoint with dynamic addresses refuses: AUTH is off.
const REFUSED: (i32, [u32; 2]) = (AUTH_SUPPORTED, [0, 0]);

/// An option that the endpoint refuses has no effect, also on later options.
#[tokio::test]
async fn a_refused_option_does_not_remain() {
    let (host, socket, _program) = socket(dynamic(), SocketStyle::OneToMany);
    let listening = carry_out(&host, &socket, HostRequest::Listen(1), None).await;
    assert_eq!(listening, Ok(HostReply::Done));
    let before = socket.state().options.value(IPPROTO_SCTP, AUTH_SUPPORTED);
    let (option, value) = REFUSED;
    let refused = set(&host, &socket, option, &value).await;
    assert_eq!(refused, Err(libc::EINVAL));
    let kept = socket.state().options.value(IPPROTO_SCTP, AUTH_SUPPORTED);
    assert_eq!(kept, before);
    let later = set(&host, &socket, MAX_BURST, &[0, 8]).await;
    assert_eq!(later, Ok(HostReply::Done));
}

/// A `connect` that fails before the association begins leaves the keys of a restart.
#[tokio::test]
async fn keys_of_a_restart_outlive_a_connect_that_fails() {
    let (host, socket, _program) = socket(dynamic(), SocketStyle::OneToOne);
    let keys = || Some((3, KeyMaterial::from_secret(Default::default(), &[1; 32])));
    let peers = vec![(Ipv4Addr::LOCALHOST, 5001).into()];
    {
        let mut state = socket.state();
        state.dtls.local.flags = RESTART;
        state.dtls.restart = [keys(), None];
    }
    let incomplete = connect(&host, &socket, peers.clone(), true).await;
    assert_eq!(incomplete, Err(libc::EINVAL));
    socket.state().dtls.restart[1] = keys();
    let (option, value) = REFUSED;
    set(&host, &socket, option, &value)
        .await
        .expect("no endpoint");
    let no_endpoint = connect(&host, &socket, peers, true).await;
    assert_eq!(no_endpoint, Err(libc::EINVAL));
    let state = socket.state();
    assert!(state.dtls.restart.iter().all(Option::is_some));
}

/// A key must not get into a log.
#[test]
fn a_request_is_shown_without_secrets() {
    let call = Call {
        socket: Vec::new(),
        request: HostRequest::Set {
            level: IPPROTO_SCTP,
            option: DTLS_SET_SEND_KEYS,
            value: OptionValue(vec![123; 3]),
        },
        secret: "secret of the host".to_owned(),
    };
    let shown = format!("{call:?}");
    assert!(shown.contains("3 bytes"), "{shown}");
    assert!(
        !shown.contains("123") && !shown.contains("of the host"),
        "{shown}"
    );
}

/// If a socket listens again at its endpoint, peers that were refused before are not counted again.
#[tokio::test]
async fn a_refused_peer_is_counted_once() {
    let secret = PresharedSettings::new(b"a secret of both ends");
    let config = loopback().with_preshared_secret(secret);
    let (host, socket, _program) = socket(config, SocketStyle::OneToMany);
    let peer = Endpoint::bind(loopback()).expect("loopback");
    for refused in 1..=3 {
        for backlog in [0, 1] {
            let done = carry_out(&host, &socket, HostRequest::Listen(backlog), None).await;
            assert_eq!(done, Ok(HostReply::Done));
        }
        let port = socket.state().port.expect("it listens");
        let to = Peer::new([Ipv4Addr::LOCALHOST.into()], port).over_udp(host.sockets.udp_port());
        peer.connect(to).await.expect_err("without the DTLS chunk");
        // Timers expire in the order of their deadlines, so that the tasks of the socket have run.
        tokio::time::sleep(3 * POLL_INTERVAL).await;
        assert_eq!(host.refusals.borrow().count, refused);
    }
}

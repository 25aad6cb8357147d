//! Tests of UDP encapsulation (RFC 6951): which UDP port of the peer is accepted, and to which port
//! answers are sent.

use crate::common;

use std::net::{IpAddr, Ipv4Addr};

use anabranch_sctp::{
    AssociationId, AssociationState, Config, ConnectOptions, DiscardReason, Endpoint, Event,
    SendOptions, UdpTransmit,
};
use anabranch_transport::time::SECOND;
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use anabranch_wire::cause::code;
use anabranch_wire::chunk::{Chunk, Init};
use anabranch_wire::parameter::Parameters;
use anabranch_wire::serial::Tsn;
use bytes::{Bytes, BytesMut};
use common::{chunks_of, header_of, packet, poll_one, retag};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const PORT: u16 = common::PORT_Z;
/// UDP ports that a NAT assigns to the client, and the UDP port of the server.
const FIRST: u16 = 40_001;
const SECOND_PORT: u16 = 40_002;
const REGISTERED: u16 = 9_899;

struct Net {
    client: Endpoint,
    server: Endpoint,
    /// UDP port that the packets of the client seem to come from.
    nat: u16,
    now: Nanos,
    /// Last packets that the server has sent, with their destination UDP port.
    to_client: Vec<(u16, Bytes)>,
    to_server: Vec<Bytes>,
}

impl Net {
    fn new() -> Self {
        let config = |address| {
            Config::default().with(|it| {
                it.addresses = vec![address];
                it.encapsulation = 8;
            })
        };
        let mut server = Endpoint::new(config(SERVER), PORT, [1; 32]).expect("settings");
        server.listen(true);
        Self {
            client: Endpoint::new(config(CLIENT), common::PORT_A, [2; 32]).expect("settings"),
            server,
            nat: FIRST,
            now: SECOND,
            to_client: Vec::new(),
            to_server: Vec::new(),
        }
    }

    fn established() -> (Self, AssociationId, AssociationId) {
        let mut net = Self::new();
        let id = net
            .client
            .connect_with(
                net.now,
                &[SERVER],
                PORT,
                ConnectOptions::over_udp(REGISTERED),
            )
            .expect("free");
        net.exchange();
        let served = net.server.associations().next().expect("one came");
        (net, id, served)
    }

    /// Exchanges packets until neither end sends any more.
    fn exchange(&mut self) {
        let mut out = BytesMut::new();
        loop {
            let mut quiet = true;
            while let Some(UdpTransmit {
                transmit, udp_port, ..
            }) = poll_one(&mut self.client, self.now, &mut out)
            {
                quiet = false;
                assert_eq!(udp_port, REGISTERED);
                let bytes = out.split().freeze();
                self.to_server.push(bytes.clone());
                let path = transmit.path.reversed();
                self.server.handle_udp_datagram(
                    self.now,
                    path,
                    self.nat,
                    Ecn::NotEct,
                    (&bytes, 0..bytes.len()),
                );
            }
            while let Some(UdpTransmit {
                transmit, udp_port, ..
            }) = poll_one(&mut self.server, self.now, &mut out)
            {
                quiet = false;
                let bytes = out.split().freeze();
                self.to_client.push((udp_port, bytes.clone()));
                if udp_port == self.nat {
                    let path = transmit.path.reversed();
                    self.client.handle_udp_datagram(
                        self.now,
                        path,
                        REGISTERED,
                        Ecn::NotEct,
                        (&bytes, 0..bytes.len()),
                    );
                }
            }
            if quiet {
                return;
            }
        }
    }

    fn say(&mut self, from_client: bool, id: AssociationId) {
        let endpoint = if from_client {
            &mut self.client
        } else {
            &mut self.server
        };
        let message = Bytes::from_static(b"hello");
        let association = endpoint.association_mut(id).expect("known");
        association
            .send(0, message, &SendOptions::new())
            .expect("room");
        self.exchange();
    }

    /// Delivers `bytes` to the server from the address of the client and this UDP port. Returns the
    /// answers with their UDP ports.
    fn inject(&mut self, udp_port: u16, bytes: Bytes) -> Vec<(u16, Bytes)> {
        let mut out = BytesMut::new();
        let path = Path::new(SERVER, CLIENT);
        self.server.handle_udp_datagram(
            self.now,
            path,
            udp_port,
            Ecn::NotEct,
            (&bytes, 0..bytes.len()),
        );
        let mut answers = Vec::new();
        while let Some(outgoing) = poll_one(&mut self.server, self.now, &mut out) {
            answers.push((outgoing.udp_port, out.split().freeze()));
        }
        answers
    }

    fn port_of(&self, served: AssociationId) -> u16 {
        let association = self.server.association(served).expect("known");
        association.paths().udp_port_to(CLIENT)
    }
}

fn init() -> Chunk {
    Chunk::Init(Init {
        initiate_tag: 0xAAAA,
        a_rwnd: 65_536,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn(1),
        parameters: Parameters::empty(),
    })
}

#[test]
fn the_peers_port_is_learnt_and_followed() {
    let (mut net, id, served) = Net::established();
    assert!(net.to_client.iter().all(|(port, _)| *port == FIRST));
    // The NAT assigns another port. The next packet of the client comes from it, and the server
    // should then send its own data to this port.
    net.nat = SECOND_PORT;
    net.to_client.clear();
    net.say(true, id);
    net.say(false, served);
    assert!(!net.to_client.is_empty());
    assert!(net.to_client.iter().all(|(port, _)| *port == SECOND_PORT));
}

#[test]
fn a_packet_under_a_wrong_tag_moves_nothing() {
    let (mut net, id, served) = Net::established();
    net.say(true, id);
    let data = net.to_server.last().cloned().expect("DATA was sent");
    let tag = header_of(&data).verification_tag;
    for tag in [tag ^ 1, 0] {
        assert!(net.inject(SECOND_PORT, retag(&data, tag)).is_empty());
    }
    assert_eq!(net.port_of(served), FIRST);
    // A corrupted packet with the correct tag should not change the port either.
    let mut damaged = data.to_vec();
    let last = damaged.len() - 5;
    damaged[last] ^= 1;
    net.inject(SECOND_PORT, damaged.into());
    assert_eq!(net.port_of(served), FIRST);
    assert_eq!(net.server.discards().of(DiscardReason::Checksum), 1);
    // A copy of the original packet from another port should change the peer's port, because RFC
    // 6951 §5.4 requires only the correct tag.
    net.inject(SECOND_PORT, data);
    assert_eq!(net.port_of(served), SECOND_PORT);
}

#[test]
fn answers_out_of_the_blue_go_where_the_packet_came_from() {
    let mut net = Net::new();
    let answers = net.inject(5, packet(common::A, 0, &[&init()]));
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].0, 5);
    assert!(matches!(chunks_of(&answers[0].1)[0], Chunk::InitAck(_)));
    let answers = net.inject(0, packet(common::A, 9, &[&Chunk::ShutdownAck]));
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].0, 0, "right above IP, as it came");
}

/// draft-tuexen-tsvwg-sctp-udp-encaps-cons §4: an INIT contains no tag that proves that its sender
/// is the peer. An INIT from another port should therefore cause no restart.
#[test]
fn an_init_from_another_port_restarts_nothing() {
    let (mut net, _, served) = Net::established();
    let answers = net.inject(SECOND_PORT, packet(common::A, 0, &[&init()]));
    let [(port, answer)] = &answers[..] else {
        panic!("{answers:?}")
    };
    let Chunk::Abort(abort) = &chunks_of(answer)[0] else {
        panic!("{answer:?}")
    };
    let cause = abort.causes.iter().next().expect("one").expect("whole");
    assert_eq!(cause.code(), code::RESTART_WITH_NEW_UDP_PORT);
    assert_eq!(
        (*port, header_of(answer).verification_tag),
        (SECOND_PORT, 0xAAAA)
    );
    assert_eq!(net.server.discards().of(DiscardReason::RestartNewPort), 1);
    assert_eq!(net.port_of(served), FIRST);
    // An INIT from the known port may be that of a peer that has lost its state. It should be
    // answered as usual.
    let answers = net.inject(FIRST, packet(common::A, 0, &[&init()]));
    assert!(matches!(chunks_of(&answers[0].1)[0], Chunk::InitAck(_)));
}

/// The port should be disclosed only to the client's own address. An attacker who lists this
/// address in an INIT learns that it is in use (RFC 9260 §5.2.2), but should learn nothing else.
#[test]
fn another_peer_that_lists_a_clients_address_does_not_learn_its_port() {
    let (mut net, _, served) = Net::established();
    let stranger: IpAddr = [10, 66, 6, 6].into();
    for listed in [vec![CLIENT], vec![stranger, CLIENT]] {
        let init = common::caller::init_of(0xAAAA, &listed);
        let path = Path::new(SERVER, stranger);
        let init = packet(common::A, 0, &[&init]);
        net.server.handle_udp_datagram(
            net.now,
            path,
            SECOND_PORT,
            Ecn::NotEct,
            (&init, 0..init.len()),
        );
        let mut out = BytesMut::new();
        let answer = poll_one(&mut net.server, net.now, &mut out).expect("one");
        assert_eq!(answer.transmit.path.remote, stranger);
        let bytes = out.split().freeze();
        assert!(!bytes.windows(2).any(|it| it == FIRST.to_be_bytes()));
        let Chunk::Abort(abort) = &chunks_of(&bytes)[0] else {
            panic!("{bytes:?}")
        };
        let causes: Vec<_> = abort.causes.iter().flatten().collect();
        assert_eq!(causes.len(), 1);
        assert_eq!(causes[0].code(), code::RESTART_WITH_NEW_ADDRESSES);
        assert!(poll_one(&mut net.server, net.now, &mut out).is_none());
    }
    assert_eq!(net.port_of(served), FIRST);
}

/// A host that uses SCTP directly over IP lists the address of the client. The client uses UDP
/// encapsulation. Its packets should not be handled as a restart from another port.
#[test]
fn a_client_inside_udp_is_served_despite_address_camping() {
    let mut net = Net::new();
    let camper: IpAddr = [10, 66, 6, 6].into();
    let path = Path::new(SERVER, camper);
    let mut out = BytesMut::new();
    let mut tell = |net: &mut Net, bytes| {
        net.server
            .handle_udp_datagram(net.now, path, 0, Ecn::NotEct, (&bytes, 0..bytes.len()));
        poll_one(&mut net.server, net.now, &mut out).expect("an answer");
        out.split().freeze()
    };
    let init = common::caller::init_of(0xBAD, &[camper, CLIENT]);
    let ack = tell(&mut net, packet(common::A, 0, &[&init]));
    let (tag, cookie) = common::caller::cookie_of(&ack);
    let echo = Chunk::CookieEcho(anabranch_wire::chunk::CookieEcho { cookie });
    tell(&mut net, packet(common::A, tag, &[&echo]));
    let camped = net.server.associations().next().expect("one came");
    net.nat = 30_000;
    let id = net
        .client
        .connect_with(
            net.now,
            &[SERVER],
            PORT,
            ConnectOptions::over_udp(REGISTERED),
        )
        .expect("free");
    net.exchange();
    let mut all = net.server.associations();
    let served = all.find(|&it| it != camped).expect("the client's");
    drop(all);
    assert!(net.client.association(id).expect("known").state() == AssociationState::Established);
    assert_eq!(net.port_of(served), 30_000);
}

/// A peer loses its state. It returns with another port of its NAT, after the earlier association
/// has expired here.
#[test]
fn a_new_association_takes_its_port_from_the_cookie_echo() {
    let (mut net, _, served) = Net::established();
    net.server
        .association_mut(served)
        .expect("known")
        .abort(net.now, Bytes::new())
        .expect("open");
    net.exchange();
    while let Some((id, event)) = net.client.poll_event() {
        if matches!(event, Event::Closed(_)) {
            assert!(net.client.release(id));
        }
    }
    net.nat = SECOND_PORT;
    net.to_client.clear();
    net.client
        .connect_with(
            net.now,
            &[SERVER],
            PORT,
            ConnectOptions::over_udp(REGISTERED),
        )
        .expect("free again");
    net.exchange();
    assert!(!net.to_client.is_empty());
    assert!(net.to_client.iter().all(|(port, _)| *port == SECOND_PORT));
    assert!(net.server.poll_timeout().is_some());
}

#[test]
fn a_bare_init_has_no_parameter() {
    for minimal_init in [false, true] {
        let config = Config::default().with(|it| {
            it.addresses = vec![CLIENT, [10, 0, 1, 1].into()];
            it.minimal_init = minimal_init;
        });
        let mut endpoint = Endpoint::new(config, common::PORT_A, [2; 32]).expect("settings");
        endpoint.connect(0, &[SERVER], PORT).expect("free");
        let mut out = BytesMut::new();
        endpoint.poll_transmit(0, &mut out).expect("an INIT");
        let Chunk::Init(init) = chunks_of(&out.freeze()).remove(0) else {
            panic!()
        };
        assert_eq!(init.parameters.as_bytes().is_empty(), minimal_init);
    }
}

//! Zero checksums (RFC 9653) with dcsctp, in memory. The packets are exchanged without a network,
//! so none is damaged, and the extension is as safe as over DTLS.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use anabranch_net::sctp::{Config, Endpoint, ZeroChecksum};
use anabranch_transport::{Ecn, Path, Transport};
use bytes::{Bytes, BytesMut};
use dcsctp::api::{
    self, DcSctpSocket, ErrorKind, Options, PpId, SendOptions, SocketEvent, SocketTime, StreamId,
    ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_LOWER_LAYER_DTLS as DTLS,
    ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_NONE as NONE,
};

const PORT: u16 = 5_000;
const MESSAGES: usize = 50;
const STEP: u64 = 1_000_000;

/// An association of this stack with dcsctp, and the packets sent by each end.
struct Two {
    ours: Endpoint,
    theirs: Box<dyn DcSctpSocket>,
    now: u64,
    sent: [Vec<Bytes>; 2],
    up: bool,
    out: BytesMut,
}

impl Two {
    /// Creates both ends. `ours` and `theirs` select which end announces the extension;
    /// `ours_calls` selects the end that connects.
    fn new([ours, theirs]: [bool; 2], ours_calls: bool) -> Self {
        let [here, there] = addresses();
        let config = Config::default().with(|it| {
            it.addresses = vec![here];
            it.mtu = 1200;
            if ours {
                it.zero_checksum = ZeroChecksum::Dtls;
            }
        });
        let options = Options {
            local_port: PORT,
            remote_port: PORT,
            zero_checksum_alternate_error_detection_method: if theirs { DTLS } else { NONE },
            ..Options::default()
        };
        let mut two = Self {
            ours: Endpoint::new(config, PORT, [1; 32]).expect("settings"),
            theirs: dcsctp::new_socket("peer", &options),
            now: STEP,
            sent: Default::default(),
            up: false,
            out: BytesMut::new(),
        };
        two.ours.listen(true);
        if ours_calls {
            two.ours.connect(two.now, &[there], PORT).expect("free");
        } else {
            two.theirs.connect();
        }
        two
    }

    /// Advances the time by a millisecond, and exchanges the packets of both ends.
    fn step(&mut self) {
        let [here, there] = addresses();
        self.now += STEP;
        let time = SocketTime::zero() + Duration::from_nanos(self.now);
        self.theirs.advance_time(time);
        self.ours.handle_timeout(self.now);
        let mut to_them = VecDeque::new();
        while self.ours.poll_transmit(self.now, &mut self.out).is_some() {
            to_them.push_back(self.out.split().freeze());
        }
        while let Some(event) = self.theirs.poll_event() {
            match event {
                SocketEvent::SendPacket(packet) => {
                    let packet = Bytes::from(packet);
                    self.sent[1].push(packet.clone());
                    let path = Path::new(here, there);
                    self.ours
                        .handle_datagram(self.now, path, Ecn::NotEct, packet);
                }
                SocketEvent::OnConnected() => self.up = true,
                // A stack without RFC 3758 reports an unknown parameter (RFC 9260 §3.2.1); the
                // association continues.
                SocketEvent::OnError(ErrorKind::PeerReported, _) => (),
                SocketEvent::OnError(kind, text) | SocketEvent::OnAborted(kind, text) => {
                    panic!("{kind:?}: {text}")
                }
                _ => (),
            }
        }
        for packet in to_them {
            self.theirs.handle_input(&packet);
            self.sent[0].push(packet);
        }
    }

    /// Sends messages in both directions, and returns when all have arrived.
    fn talk(&mut self) {
        let mut limit = 0..10_000;
        while !self.up || self.ours.associations().next().is_none() {
            limit.next().expect("it comes up");
            self.step();
        }
        let id = self.ours.associations().next().expect("up");
        let payload = Bytes::from(vec![7; 3_000]);
        for _ in 0..MESSAGES {
            let association = self.ours.association_mut(id).expect("up");
            let options = anabranch_net::SendOptions::new();
            let sent = association.send(self.now, payload.clone(), &options);
            sent.expect("there is room");
            let message = api::Message::new(StreamId(0), PpId(0), payload.to_vec());
            let sent = self.theirs.send(message, &SendOptions::default());
            sent.expect("there is room");
        }
        let mut came = [0; 2];
        while came != [MESSAGES; 2] {
            limit.next().expect("all come");
            self.step();
            while let Some(message) = self.theirs.get_next_message() {
                assert_eq!(message.payload, payload);
                came[0] += 1;
            }
            let association = self.ours.association_mut(id).expect("up");
            while let Some(message) = association.poll_message() {
                assert_eq!(message.payload.into_bytes(), payload);
                came[1] += 1;
            }
        }
        let discards = self.ours.discards();
        assert_eq!(discards.total(), 0, "{discards:?}");
    }

    /// Number of DATA packets with a checksum that this end has sent, and number of those without.
    fn with_and_without(&self, end: usize) -> [usize; 2] {
        let data = self.sent[end].iter().filter(|it| it[12] == 0);
        let (with, without): (Vec<_>, Vec<_>) = data.partition(|it| it[8..12] != [0; 4]);
        [with.len(), without.len()]
    }
}

fn addresses() -> [IpAddr; 2] {
    [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()]
}

/// No DATA packet has a checksum, and INIT and COOKIE ECHO have one, whichever end connects.
#[test]
fn zero_checksums_with_dcsctp() {
    for ours_calls in [true, false] {
        let mut two = Two::new([true; 2], ours_calls);
        two.talk();
        let id = two.ours.associations().next().expect("up");
        let association = two.ours.association(id).expect("up");
        assert!(association.negotiated().zero_checksum);
        for end in 0..2 {
            let [with, without] = two.with_and_without(end);
            assert_eq!(with, 0, "of {end}, where ours calls: {ours_calls}");
            assert!(without >= MESSAGES, "{without}");
            // INIT and COOKIE ECHO must have a checksum. INIT ACK is not checked, because that of
            // dcsctp has none if this stack has announced the extension.
            let setup = two.sent[end].iter().filter(|it| [1, 10].contains(&it[12]));
            assert!(setup.into_iter().all(|it| it[8..12] != [0; 4]));
        }
    }
}

/// If only one end announces the extension, all packets have checksums, and the transfer works.
#[test]
fn one_end_alone_has_checksums_with_dcsctp() {
    for (announce, ours_calls) in [
        ([true, false], true),
        ([true, false], false),
        ([false, true], true),
        ([false, true], false),
    ] {
        let mut two = Two::new(announce, ours_calls);
        two.talk();
        for end in 0..2 {
            let [with, without] = two.with_and_without(end);
            assert_eq!(without, 0, "of {end}, {announce:?}");
            assert!(with >= MESSAGES, "{with}");
        }
    }
}

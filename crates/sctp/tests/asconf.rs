//! Responder to ASCONFs: a peer changes its addresses by signed hand-made ASCONFs (RFC 5061).

use crate::common;

use std::net::IpAddr;

use anabranch_sctp::{
    Association, AssociationId, AssociationState, Authentication, CloseReason, Config,
    DiscardReason, Event, PathState,
};
use anabranch_transport::Path;
use anabranch_transport::time::SECOND;
use anabranch_wire::Encode;
use anabranch_wire::chunk::Chunk;
use anabranch_wire::extension::{Asconf, AsconfParameter, AsconfRequest};
use anabranch_wire::tlv::{Tlv, TlvList};
use bytes::{Bytes, BytesMut};
use common::signed::Signer;
use common::wrong::discarded;
use common::*;

use AsconfRequest::{Add, Delete, SetPrimary};

fn settings() -> Config {
    Config::default().with(|it| {
        it.authentication = Authentication::On;
        it.address_changes = true;
    })
}

fn old() -> IpAddr {
    address(A, 0)
}

fn new() -> IpAddr {
    [10, 0, 9, 1].into()
}

fn any() -> IpAddr {
    [0, 0, 0, 0].into()
}

/// A is a peer that sends hand-made requests; Z responds.
struct Rig {
    world: World,
    z: AssociationId,
    signer: Signer,
    /// Tag of packets to Z.
    tag: u32,
    serial: u32,
}

impl Rig {
    fn new() -> Self {
        let mut world = World::with_configs(settings(), settings());
        let a = world.connect();
        world.run_for(SECOND);
        let z = world.only_association(Z);
        assert_eq!(
            world.state(A, a),
            AssociationState::Established,
            "{:#?}",
            world.story
        );
        let signer = Signer::of(&world, b"", 0);
        let Chunk::Init(init) = chunks_of(&world.shot(A, "INIT")).remove(0) else {
            panic!("an INIT");
        };
        let tag = world.tag_sent_by(A);
        // From now on A sends only hand-made packets.
        world.fate = Box::new(|shot| {
            if shot.from == A {
                Fate::Drop
            } else {
                Fate::Deliver
            }
        });
        world.forget();
        Self {
            world,
            z,
            signer,
            tag,
            serial: init.initial_tsn.0,
        }
    }

    fn z(&mut self) -> &mut Association {
        self.world.endpoints[Z]
            .association_mut(self.z)
            .expect("known")
    }

    /// ASCONF that contains A's first address.
    fn chunk(&self, serial: u32, parameters: &[AsconfParameter]) -> Vec<u8> {
        let chunk = Asconf {
            serial,
            address: old(),
            parameters: TlvList::of(parameters),
        };
        let mut out = BytesMut::new();
        chunk.encode(&mut out);
        out.to_vec()
    }

    /// Delivers chunks to Z from `source`, and returns the packets that Z sends there.
    fn say(&mut self, source: IpAddr, chunks: &[u8]) -> Vec<Shot> {
        let before = self.world.shots.len();
        let path = Path::new(address(Z, 0), source);
        self.world
            .inject_from(Z, path, raw_packet(A, self.tag, chunks));
        let shots = self.world.shots[before..].iter();
        shots
            .filter(|it| it.from == Z && it.path.remote == source)
            .cloned()
            .collect()
    }

    /// Sends signed requests with the next serial number from `source`, and returns the response
    /// parameters of the ASCONF-ACK.
    fn ask(&mut self, source: IpAddr, requests: &[(AsconfRequest, IpAddr)]) -> Bytes {
        let parameters: Vec<_> = (1_u32..)
            .zip(requests)
            .map(|(id, &(request, address))| AsconfParameter::Request {
                request,
                correlation_id: id,
                address,
            })
            .collect();
        let signed = self.signer.sign(&self.chunk(self.serial, &parameters));
        let answers = self.say(source, &signed);
        self.serial = self.serial.wrapping_add(1);
        let answer = answers
            .iter()
            .find(|it| it.chunks.starts_with("AUTH, type 128"));
        let answer = answer.unwrap_or_else(|| panic!("no answer: {:#?}", self.world.story));
        assert!(self.signer.is_right(&answer.bytes));
        let chunk = answer.bytes.slice(12 + 40..);
        let length = usize::from(u16::from_be_bytes([chunk[2], chunk[3]]));
        assert_eq!(chunk[4..8], self.serial.wrapping_sub(1).to_be_bytes());
        chunk.slice(8..length)
    }

    /// Answers the HEARTBEATs that Z sends to `at`.
    fn verify(&mut self, at: IpAddr) {
        let shots = self.world.shots.clone();
        for shot in shots.iter().filter(|it| it.path.remote == at) {
            for chunk in chunks_of(&shot.bytes) {
                if let Chunk::Heartbeat(heartbeat) = chunk {
                    let mut out = BytesMut::new();
                    anabranch_wire::chunk::HeartbeatAck {
                        info: heartbeat.info,
                    }
                    .encode(&mut out);
                    self.say(at, &out);
                }
            }
        }
    }

    fn addresses(&mut self) -> Vec<IpAddr> {
        self.z().paths().addresses().collect()
    }

    /// Lets Z send a message, and returns the destination of its packets.
    fn where_data_goes(&mut self) -> IpAddr {
        let before = self.world.shots.len();
        let z = self.z;
        self.world.send(Z, z, 0, "where?");
        let mut shots = self.world.shots[before..].iter();
        shots
            .find(|it| it.chunks.contains("DATA"))
            .expect("sent")
            .path
            .remote
    }
}

/// Error code and correlation ID of each response parameter; 0: success.
fn codes(parameters: &Bytes) -> Vec<(u32, u16)> {
    let all = TlvList::<AsconfParameter>::from_bytes(parameters.clone());
    let word = |it: &[u8]| u32::from_be_bytes(it[..4].try_into().expect("four"));
    let code = |tlv: Tlv| match tlv.kind {
        0xC005 => (word(tlv.value()), 0),
        0xC003 => (
            word(tlv.value()),
            u16::from_be_bytes([tlv.value()[4], tlv.value()[5]]),
        ),
        other => panic!("{other:#x}"),
    };
    all.raw().map(|it| code(it.expect("framed"))).collect()
}

#[test]
fn a_station_moves_to_an_unknown_address() {
    let mut rig = Rig::new();
    assert_eq!(rig.where_data_goes(), old());
    // The packet comes from the new address that it adds. If all requests succeed, the ASCONF-ACK
    // has no parameters.
    assert!(
        rig.ask(new(), &[(Add, any()), (SetPrimary, any())])
            .is_empty()
    );
    assert_eq!(rig.addresses(), [old(), new()]);
    assert_eq!(rig.where_data_goes(), old(), "it is not verified yet");
    rig.verify(new());
    assert_eq!(rig.where_data_goes(), new());
    assert!(rig.ask(new(), &[(Delete, old())]).is_empty());
    assert_eq!(rig.addresses(), [new()]);
    let told = rig.world.told(Z);
    let added =
        |it: &Event| matches!(it, Event::PeerAddressAdded { address, .. } if *address == new());
    let removed =
        |it: &Event| matches!(it, Event::PeerAddressRemoved { address, .. } if *address == old());
    assert_eq!(told.iter().filter(|it| added(it)).count(), 1);
    assert_eq!(told.iter().filter(|it| removed(it)).count(), 1);
    // Data in flight to the old address is retransmitted to the new one, and no more packets are
    // sent to the old address.
    rig.world.forget();
    rig.world.run_for(5 * SECOND);
    let shots = &rig.world.shots;
    assert!(
        shots
            .iter()
            .any(|it| it.from == Z && it.chunks.contains("DATA"))
    );
    assert!(
        shots
            .iter()
            .all(|it| it.from == A || it.path.remote == new()),
        "{:#?}",
        rig.world.story
    );
    // A packet from the old address no longer belongs to an association.
    let answers = rig.say(old(), &[4, 0, 0, 8, 0, 1, 0, 4]);
    assert_eq!(answers[0].chunks, "ABORT");
    assert_eq!(rig.z().state(), AssociationState::Established);
}

#[test]
fn refused_address_changes_are_reported_by_cause() {
    let mut rig = Rig::new();
    let asked = [(Delete, old())];
    assert_eq!(
        codes(&rig.ask(old(), &asked)),
        [(1, 0xA0)],
        "the last address"
    );
    rig.ask(old(), &[(Add, new())]);
    assert_eq!(
        codes(&rig.ask(old(), &asked)),
        [(1, 0xA2)],
        "where it comes from"
    );
    let multicast = [224, 0, 0, 1].into();
    let stranger = [10, 0, 50, 1].into();
    for asked in [
        (Add, multicast),
        (Add, [127, 0, 0, 1].into()),
        (Delete, stranger),
        (SetPrimary, stranger),
    ] {
        let told = codes(&rig.ask(old(), &[asked]));
        assert_eq!(told, [(1, 5)], "Unresolvable Address");
    }
    // After a request to add was refused, later requests in the same chunk neither add nor delete
    // addresses (RFC 5061 §5.3 F11).
    let asked = [
        (SetPrimary, stranger),
        (Add, [10, 0, 61, 1].into()),
        (Add, multicast),
        (Add, [10, 0, 61, 2].into()),
        (Delete, [10, 0, 61, 1].into()),
        (SetPrimary, new()),
    ];
    let told = codes(&rig.ask(old(), &asked));
    assert_eq!(
        told,
        [(1, 5), (2, 0), (3, 5), (4, 0xA1), (5, 0xA1), (6, 0)],
        "the first was done"
    );
    assert!(
        rig.ask(old(), &[(Delete, [10, 0, 61, 1].into())])
            .is_empty()
    );
    let many: Vec<_> = (1..8)
        .map(|it| (Add, IpAddr::from([10, 0, 60, it])))
        .collect();
    let told = codes(&rig.ask(old(), &many));
    assert_eq!(told.last(), Some(&(7, 0xA1)), "there is room for eight");
    assert_eq!(rig.addresses().len(), 8);
    // Deletes all addresses except the source of the ASCONF.
    assert!(rig.ask(old(), &[(Delete, any())]).is_empty());
    assert_eq!(rig.addresses(), [old()]);
}

/// CVE-2014-7841: an address of an unsupported or unknown family.
#[test]
fn cve_2014_7841_addresses_of_families_not_spoken() {
    let mut rig = Rig::new();
    let told = codes(&rig.ask(old(), &[(Add, "2001:db8::7".parse().expect("an address"))]));
    assert_eq!(told, [(1, 5)]);
    // A host name, a truncated address, an unknown parameter, and an empty request.
    let values: [(u16, &[u8]); 4] = [
        (0xC001, &[0, 0, 0, 7, 0, 11, 0, 8, b'h', b'o', b's', b't']),
        (0xC001, &[0, 0, 0, 7, 0, 5, 0, 8, 10, 0]),
        (0xC0F0, &[0, 0, 0, 7]),
        (0xC002, &[0, 0, 0, 7]),
    ];
    for (kind, value) in values {
        let parameter = AsconfParameter::Unknown(Tlv::new(kind, value).expect("short"));
        let signed = rig.signer.sign(&rig.chunk(rig.serial, &[parameter]));
        let answers = rig.say(old(), &signed);
        rig.serial = rig.serial.wrapping_add(1);
        assert_eq!(answers.len(), 1, "{kind:#x} {value:?}");
        assert!(answers[0].chunks.contains("type 128"));
    }
    assert_eq!(rig.addresses(), [old()]);
}

/// CVE-2014-3673, CVE-2014-3687, CVE-2014-3688: a repeated serial number, many copies at once, and
/// a serial number out of sequence.
#[test]
fn cve_2014_3687_and_3688_serials_that_come_again() {
    let mut rig = Rig::new();
    let request = AsconfParameter::Request {
        request: Add,
        correlation_id: 1,
        address: [224, 0, 0, 1].into(),
    };
    let chunk = rig.chunk(rig.serial, &[request]);
    let signed = rig.signer.sign(&chunk);
    let first = rig.say(old(), &signed);
    let again = rig.say(old(), &signed);
    assert_eq!(first[0].bytes, again[0].bytes, "the same answer");
    // Hundreds of ASCONFs in one packet cause one packet of replies.
    let many = rig.signer.sign(&chunk.repeat(1_000));
    assert_eq!(rig.say(old(), &many).len(), 1);
    for serial in [
        rig.serial.wrapping_sub(1),
        rig.serial.wrapping_add(2),
        rig.serial.wrapping_add(1 << 31),
    ] {
        let signed = rig.signer.sign(&rig.chunk(serial, &[]));
        assert!(rig.say(old(), &signed).is_empty(), "{serial}");
    }
    assert_eq!(discarded(&rig.world, Z, DiscardReason::BadAsconf), 3);
    assert_eq!(rig.z().state(), AssociationState::Established);
}

#[test]
fn nothing_is_changed_without_authentication() {
    let mut rig = Rig::new();
    let request = AsconfParameter::Request {
        request: Add,
        correlation_id: 1,
        address: any(),
    };
    let chunk = rig.chunk(rig.serial, &[request]);
    for source in [old(), new()] {
        assert!(rig.say(source, &chunk).is_empty());
        let mut altered = rig.signer.sign(&chunk);
        *altered.last_mut().expect("long") ^= 1;
        assert!(rig.say(source, &altered).is_empty());
    }
    assert_eq!(discarded(&rig.world, Z, DiscardReason::Unauthenticated), 2);
    assert_eq!(discarded(&rig.world, Z, DiscardReason::BadAuth), 2);
    assert_eq!(rig.addresses(), [old()]);
    // With a wrong verification tag, the association is not found.
    rig.tag ^= 1;
    let signed = rig.signer.sign(&chunk);
    assert_eq!(
        rig.say(new(), &signed)[0].chunks,
        "ABORT",
        "out of the blue"
    );
    assert_eq!(rig.addresses(), [old()]);
}

/// The address in an ASCONF only serves to find the association of that packet, and is not verified
/// thereby.
#[test]
fn the_address_in_an_asconf_finds_the_association_for_one_packet_only() {
    let mut rig = Rig::new();
    let data = |tsn: u32| {
        let (header, user_data) = ([0, 7, 0, 17], [b'x', 0, 0, 0]);
        [&header[..], &tsn.to_be_bytes(), &[0; 8], &user_data].concat()
    };
    let first = rig.serial;
    let together = [data(first), rig.chunk(first, &[])].concat();
    rig.say(new(), &together);
    assert_eq!(discarded(&rig.world, Z, DiscardReason::Unauthenticated), 1);
    let answers = rig.say(new(), &data(first.wrapping_add(1)));
    let answers: Vec<_> = answers.iter().map(|it| &it.chunks[..]).collect();
    assert_eq!(answers, ["ABORT"], "out of the blue");
    assert_eq!(rig.z().state(), AssociationState::Established);
}

#[test]
fn malformed_and_endless_requests_end_the_association() {
    let mut zero = AsconfParameter::Unknown(Tlv::new(0xC001, &[0; 12]).expect("short"));
    for many in [false, true] {
        let mut rig = Rig::new();
        let mut chunk = if many {
            zero = AsconfParameter::Unknown(Tlv::new(0xC0F0, &[0; 4]).expect("short"));
            rig.chunk(rig.serial, &vec![zero.clone(); 11])
        } else {
            rig.chunk(rig.serial, &[zero.clone()])
        };
        if !many {
            let at = chunk.len() - 16;
            chunk[at + 2..at + 4].fill(0);
        }
        let signed = rig.signer.sign(&chunk);
        let answers = rig.say(old(), &signed);
        assert!(answers[0].chunks.contains("ABORT"), "{answers:?}");
        assert!(rig.z().is_closed());
    }
}

#[test]
fn an_answer_to_nothing_that_was_asked_is_illegal() {
    let mut rig = Rig::new();
    // Serial numbers below the first are treated as old; from the first on, they are illegal.
    let ack = |serial: u32| {
        let mut bytes = vec![0x80, 0, 0, 8];
        bytes.extend(serial.to_be_bytes());
        bytes
    };
    let serial = initial_tsn_of_z();
    let signed = rig.signer.sign(&ack(serial.wrapping_sub(1)));
    rig.say(old(), &signed);
    assert_eq!(rig.z().state(), AssociationState::Established);
    let signed = rig.signer.sign(&ack(serial));
    let answers = rig.say(old(), &signed);
    assert_eq!(answers[0].bytes[12 + 4..12 + 8], [0, 0xA3, 0, 4]);
    assert!(matches!(
        rig.z().close_reason(),
        Some(CloseReason::PeerViolation(_))
    ));
}

/// Initial TSN of Z, which is the same in each rig because the seeds are.
fn initial_tsn_of_z() -> u32 {
    let mut world = World::with_configs(settings(), settings());
    world.connect();
    world.run_for(SECOND);
    match chunks_of(&world.shot(Z, "INIT ACK")).remove(0) {
        Chunk::InitAck(ack) => ack.initial_tsn.0,
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_is_agreed_on_only_with_authentication_on_both_sides() {
    let without = Config::default();
    let auth_alone = Config::default().with(|it| it.authentication = Authentication::On);
    for other in [without, auth_alone] {
        for (a, z) in [(settings(), other.clone()), (other.clone(), settings())] {
            let mut world = World::with_configs(a, z);
            let (a, z) = world.established();
            for (host, id) in [(A, a), (Z, z)] {
                let association = world.endpoints[host].association(id).expect("known");
                assert!(!association.negotiated().address_changes);
            }
        }
    }
    let alone = Config::default().with(|it| it.address_changes = true);
    assert_eq!(alone.check().expect_err("refused").field, "address_changes");
}

#[test]
fn addresses_come_and_go_without_end() {
    let mut rig = Rig::new();
    for step in 0..200_u8 {
        let next = IpAddr::from([10, 0, 70, step]);
        let asked = rig.ask(old(), &[(Add, next)]);
        assert!(asked.is_empty() || step == 0, "{step}: {:?}", codes(&asked));
        if step == 0 {
            continue;
        }
        assert!(rig.ask(old(), &[(Delete, next)]).is_empty(), "{step}");
    }
    assert!(rig.addresses().contains(&old()));
    let paths = rig.z().paths();
    assert!(paths.len() <= 32);
    assert!(paths.iter().any(|(_, it)| it.state() == PathState::Active));
}

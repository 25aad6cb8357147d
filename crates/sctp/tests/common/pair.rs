//! Two endpoints. A changes its addresses, and Z can send hand-made responses.

use anabranch_sctp::{
    AddressChange, AddressChangeError, AddressChangeOutcome, Association, Authentication,
};

use super::signed::Signer;
use super::*;

pub fn settings() -> Config {
    Config::default().with(|it| {
        it.authentication = Authentication::On;
        it.address_changes = true;
    })
}

pub fn old() -> IpAddr {
    address(A, 0)
}

pub fn new() -> IpAddr {
    [10, 0, 9, 1].into()
}

pub fn third() -> IpAddr {
    [10, 0, 8, 1].into()
}

/// Two established endpoints.
pub struct Pair {
    pub world: World,
    pub a: AssociationId,
    pub z: AssociationId,
    pub signer: Signer,
    /// Verification tag of packets to A.
    pub tag: u32,
    /// Initial TSN of A, which is also the first serial number of its ASCONFs.
    pub a_initial: u32,
    pub z_initial: u32,
}

/// Initial TSN of an INIT or INIT ACK.
fn initial_tsn(packet: &Bytes) -> u32 {
    u32::from_be_bytes(packet[28..32].try_into().expect("four"))
}

impl Pair {
    pub fn new() -> Self {
        Self::with(settings(), settings())
    }

    pub fn with(a: Config, z: Config) -> Self {
        let mut world = World::with_configs(a, z);
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
        let tag = header_of(&world.shot(Z, "INIT ACK")).verification_tag;
        let [a_initial, z_initial] = [(A, "INIT"), (Z, "INIT ACK")]
            .map(|(host, chunks)| initial_tsn(&world.shot(host, chunks)));
        world.forget();
        Self {
            world,
            a,
            z,
            signer,
            tag,
            a_initial,
            z_initial,
        }
    }

    pub fn a(&mut self) -> &mut Association {
        self.world.endpoints[A]
            .association_mut(self.a)
            .expect("known")
    }

    pub fn z(&mut self) -> &mut Association {
        self.world.endpoints[Z]
            .association_mut(self.z)
            .expect("known")
    }

    pub fn change(&mut self, changes: &[AddressChange]) {
        self.try_change(changes).expect("taken");
    }

    pub fn try_change(&mut self, changes: &[AddressChange]) -> Result<(), AddressChangeError> {
        let now = self.world.now;
        let result = self.a().change_addresses(now, changes);
        self.world.drain(A);
        result
    }

    /// Outcomes of A's requests, as reported by events.
    pub fn outcomes(&self) -> Vec<(AddressChange, AddressChangeOutcome)> {
        let told = self.world.told(A).into_iter();
        told.filter_map(|it| match it {
            Event::AddressChanged { change, outcome } => Some((change, outcome)),
            _ => None,
        })
        .collect()
    }

    /// Packets that A has sent: their chunks and source addresses.
    pub fn sent(&self) -> Vec<(String, IpAddr)> {
        let shots = self.world.shots.iter().filter(|it| it.from == A);
        shots.map(|it| (it.chunks.clone(), it.path.local)).collect()
    }

    pub fn asconfs(&self) -> Vec<Shot> {
        let shots = self.world.shots.iter();
        let asconf = |it: &&Shot| it.from == A && it.chunks.contains(ASCONF);
        shots.filter(asconf).cloned().collect()
    }

    /// Silences Z, so that A receives only hand-made packets from now on.
    pub fn silence(&mut self) {
        self.world.fate = Box::new(|_| Fate::Drop);
    }

    /// Delivers a signed hand-made ASCONF-ACK from Z with these parameters.
    pub fn acknowledge(&mut self, serial: u32, parameters: &[u8]) {
        let mut chunk = vec![0x80, 0];
        chunk.extend((8 + parameters.len() as u16).to_be_bytes());
        chunk.extend(serial.to_be_bytes());
        chunk.extend_from_slice(parameters);
        let signed = self.signer.sign(&chunk);
        self.say(old(), &signed);
    }

    /// Delivers a hand-made packet with these chunks from Z to A at address `local`.
    pub fn say(&mut self, local: IpAddr, chunks: &[u8]) {
        let path = Path::new(local, address(Z, 0));
        let packet = raw_packet(Z, self.tag, chunks);
        self.world.inject_from(A, path, packet);
    }
}

impl Pair {
    pub fn with_unsigned(a: Config, z: Config) -> Self {
        let mut world = World::with_configs(a, z);
        let (a, z) = world.established();
        let signer = Signer::new(
            &Bytes::from_static(&[0; 32]),
            &Bytes::from_static(&[0; 32]),
            b"",
            0,
        );
        Self {
            world,
            a,
            z,
            signer,
            tag: 0,
            a_initial: 0,
            z_initial: 0,
        }
    }
}

pub const ASCONF: &str = "type 193";

/// ASCONF in a packet, after the AUTH if there is one.
pub fn asconf_of(packet: &Bytes) -> Bytes {
    let at = if packet[12] == kind::AUTH {
        12 + 40
    } else {
        12
    };
    assert_eq!(packet[at], kind::ASCONF);
    packet.slice(at..)
}

pub fn serial_of(packet: &Bytes) -> u32 {
    let chunk = asconf_of(packet);
    u32::from_be_bytes(chunk[4..8].try_into().expect("four"))
}

/// Parameters of an ASCONF after its address parameter: type, correlation ID, and last byte of the
/// address.
pub fn requests_of(packet: &Bytes) -> Vec<(u16, u32, u8)> {
    let chunk = asconf_of(packet);
    let length = usize::from(u16::from_be_bytes([chunk[2], chunk[3]]));
    chunk[16..length]
        .chunks(16)
        .map(|it| {
            let id = u32::from_be_bytes(it[4..8].try_into().expect("four"));
            (u16::from_be_bytes([it[0], it[1]]), id, it[15])
        })
        .collect()
}

pub fn error(id: u32, cause: u16) -> Vec<u8> {
    let mut bytes = vec![0xC0, 3, 0, 12];
    bytes.extend(id.to_be_bytes());
    bytes.extend(cause.to_be_bytes());
    bytes.extend([0, 4]);
    bytes
}

pub fn success(id: u32) -> Vec<u8> {
    let mut bytes = vec![0xC0, 5, 0, 8];
    bytes.extend(id.to_be_bytes());
    bytes
}

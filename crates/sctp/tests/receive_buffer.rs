//! Tests of the receive buffer, which all streams share: data that has to wait for a missing
//! message of its stream reduces the window until it is read. Messages have 1000 bytes, and the
//! expected values were computed by hand.

use anabranch_sctp::config::Config;
use anabranch_sctp::profile::Profile;
use anabranch_sctp::rx::{DataOutcome, Receiver};
use anabranch_transport::time::MILLISECOND;
use anabranch_transport::{Nanos, Probe, ProbeSet, Trace};
use anabranch_wire::chunk::Data;
use anabranch_wire::{CommonHeader, PacketBuilder, Ssn, Tsn};
use bytes::{Bytes, BytesMut};

struct Rig {
    receiver: Receiver,
    trace: Trace,
}

impl Rig {
    fn new(profile: Profile, receive_buffer: u32) -> Self {
        let config = Config::new(profile).with(|it| it.receive_buffer = receive_buffer);
        Self {
            receiver: Receiver::new(&config, Tsn(1), 10),
            trace: Trace::new(ProbeSet::ALL),
        }
    }

    /// Packet with one message.
    fn arrive(&mut self, at_ms: Nanos, tsn: u32, stream_id: u16, ssn: u16) -> DataOutcome {
        let now = at_ms * MILLISECOND;
        let data = Data {
            tsn: Tsn(tsn),
            stream_id,
            ssn: Ssn(ssn),
            ppid: 0,
            unordered: false,
            beginning: true,
            ending: true,
            immediate: false,
            user_data: Bytes::from_static(&[7; 1000]),
        };
        let outcome = self.receiver.handle_data(now, data, &mut self.trace);
        self.receiver.on_packet_end(now);
        outcome
    }

    fn read(&mut self) -> Option<(u16, u16)> {
        let message = self.receiver.poll_message().expect("short")?;
        Some((message.stream, message.ssn.0))
    }

    fn read_all(&mut self) -> Vec<(u16, u16)> {
        std::iter::from_fn(|| self.read()).collect()
    }

    fn push_sack(&mut self, at_ms: Nanos) {
        let header = CommonHeader {
            source_port: 1,
            destination_port: 2,
            verification_tag: 3,
        };
        let mut out = BytesMut::new();
        let mut packet = PacketBuilder::new(&mut out, header, 1480);
        self.receiver
            .push_sack(at_ms * MILLISECOND, &mut packet, &mut self.trace)
            .expect("room for a SACK");
    }

    /// Time in ms, index and value of the samples of a probe.
    fn recorded(&mut self, probe: Probe) -> Vec<(Nanos, u16, f64)> {
        self.trace
            .drain()
            .filter(|sample| sample.probe == probe)
            .map(|sample| (sample.at / MILLISECOND, sample.index, sample.value))
            .collect()
    }
}

/// TSN 1, the first message of stream 0, is lost. Stream 1 continues, while later messages of
/// stream 0 have to wait. Both streams use the same buffer.
fn hole_in_stream_0(rig: &mut Rig) {
    for (at, tsn, stream, ssn) in [(10, 2, 1, 0), (20, 3, 0, 1), (30, 4, 1, 1), (40, 5, 0, 2)] {
        assert_eq!(rig.arrive(at, tsn, stream, ssn), DataOutcome::NewData);
    }
}

#[test]
fn the_window_falls_with_what_waits_and_rises_as_it_is_read() {
    let mut rig = Rig::new(Profile::rfc9260(), 10_000);
    hole_in_stream_0(&mut rig);
    assert_eq!(rig.receiver.a_rwnd(), 6000, "read or not, it is held");
    assert_eq!(rig.read_all(), [(1, 0), (1, 1)]);
    assert_eq!(rig.receiver.a_rwnd(), 8000, "what waits behind the hole");
    assert_eq!(rig.arrive(100, 1, 0, 0), DataOutcome::NewData);
    assert_eq!(rig.receiver.a_rwnd(), 7000);
    assert_eq!(rig.read(), Some((0, 0)));
    assert_eq!(rig.receiver.a_rwnd(), 8000);
    assert_eq!(rig.read_all(), [(0, 1), (0, 2)]);
    assert_eq!(rig.receiver.a_rwnd(), 10_000);
    assert!(rig.receiver.is_empty());
}

/// The receiver of ns-2.35 counts the headers of chunks as used buffer space, and its application
/// reads data as soon as it can be delivered.
#[test]
fn under_ns2_only_what_waits_behind_a_hole_is_held() {
    let mut rig = Rig::new(Profile::ns2(), 10_240);
    hole_in_stream_0(&mut rig);
    assert_eq!(rig.receiver.a_rwnd(), 10_240 - 2 * 1016);
    assert_eq!(rig.read_all(), [(1, 0), (1, 1)]);
    assert_eq!(rig.receiver.a_rwnd(), 10_240 - 2 * 1016);
    rig.arrive(100, 1, 0, 0);
    assert_eq!(rig.receiver.a_rwnd(), 10_240);
    assert_eq!(rig.read_all(), [(0, 0), (0, 1), (0, 2)]);
    assert_eq!(rig.receiver.a_rwnd(), 10_240);
}

#[test]
fn waits_and_bytes_held_are_recorded_by_stream() {
    let mut rig = Rig::new(Profile::rfc9260(), 10_000);
    hole_in_stream_0(&mut rig);
    rig.read_all();
    rig.push_sack(50);
    rig.arrive(100, 1, 0, 0);
    rig.read_all();
    rig.push_sack(110);
    let mut again = Rig::new(Profile::rfc9260(), 10_000);
    hole_in_stream_0(&mut again);
    again.arrive(100, 1, 0, 0);
    assert_eq!(
        again.recorded(Probe::HolBlockingDelay),
        [
            (10, 1, 0.0),
            (30, 1, 0.0),
            (100, 0, 0.0),
            (100, 0, 0.08),
            (100, 0, 0.06)
        ]
    );
    assert_eq!(
        rig.recorded(Probe::ReceiveBufferUsed),
        [
            (10, 2, 1000.0),
            (10, 0, 1000.0),
            (20, 1, 1000.0),
            (20, 0, 2000.0),
            (30, 2, 2000.0),
            (30, 0, 3000.0),
            (40, 1, 2000.0),
            (40, 0, 4000.0),
            (50, 2, 0.0),
            (50, 0, 2000.0),
            (100, 1, 3000.0),
            (100, 0, 3000.0),
            (110, 1, 0.0),
            (110, 0, 0.0),
        ]
    );
}

/// The application reads late. The window should close, no window below 1500 bytes should be
/// advertised, and the opening of the window should be reported.
#[test]
fn a_slow_reader_closes_the_window_and_opens_it_again() {
    let mut rig = Rig::new(Profile::rfc9260(), 5000);
    for n in 0..5 {
        assert_eq!(
            rig.arrive(10 * n, n as u32 + 1, 0, n as u16),
            DataOutcome::NewData
        );
        rig.push_sack(10 * n);
    }
    assert_eq!(
        rig.recorded(Probe::AdvertisedRwnd)
            .iter()
            .map(|sample| sample.2)
            .collect::<Vec<_>>(),
        [4000.0, 3000.0, 2000.0, 0.0, 0.0]
    );
    assert_eq!(rig.arrive(60, 6, 0, 5), DataOutcome::DroppedFull);
    rig.push_sack(60);
    assert_eq!(rig.read(), Some((0, 0)));
    assert!(!rig.receiver.sack_due(), "1000 bytes are not worth a SACK");
    assert_eq!(rig.read(), Some((0, 1)));
    assert!(rig.receiver.sack_due(), "2000 are");
    assert_eq!(rig.receiver.a_rwnd(), 2000);
}

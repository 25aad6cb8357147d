//! Timing of acknowledgements: every second full segment (RFC 5681 §4.2) regardless of options, and
//! the rules of Linux.

use crate::common;

use anabranch_tcp::{Config, Profile};
use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND as MS, SECOND};
use anabranch_wire::Checksum;
use anabranch_wire::tcp::Segment;
use common::{World, path_of};

/// After a handshake over links with 50 ms delay each way, the client writes `segments` segments.
/// Returns the times of the server's acknowledgements, in ms since the data was written, with the
/// number of segments acknowledged by then.
fn acknowledged(profile: &Profile, segments: u64) -> Vec<(Nanos, u64)> {
    let config = Config::new(profile.clone()).with(|it| it.mss = 1000);
    let mut world = World::new(config.clone(), config);
    world.ends[1].set_discard(true);
    world.run_until(SECOND);
    let (before, segment) = (world.sent[1].len(), world.ends[0].segment());
    world.ends[0].write_zeros(segments * segment).unwrap();
    world.run_until(5 * SECOND);
    let path = path_of(1);
    let first = number(&world.sent[1][before - 1].1, path);
    let told = world.sent[1][before..].iter().map(|(at, packet)| {
        let bytes = u64::from(number(packet, path).wrapping_sub(first));
        ((at - SECOND) / MS, bytes / segment)
    });
    told.collect()
}

/// Acknowledgment number in a packet.
fn number(packet: &bytes::Bytes, path: anabranch_transport::Path) -> u32 {
    let addresses = (path.local, path.remote);
    let segment = Segment::parse(packet, addresses, Checksum::Verify).expect("a good segment");
    segment.header.acknowledgment_number.0
}

/// Timestamps take 12 bytes of each segment; the shorter segment must still count as full.
#[test]
fn every_second_segment_is_acknowledged_with_and_without_timestamps() {
    for timestamps in [false, true] {
        let mut profile = Profile::rfc6675();
        profile.timestamps = timestamps;
        // The initial window is four segments; each acknowledgement then allows two more.
        let expected = [(50, 2), (50, 4), (150, 6), (150, 8), (350, 9)];
        assert_eq!(acknowledged(&profile, 9), expected, "{timestamps}");
    }
}

/// The initial window is ten segments, which slow start doubles. The first 16 segments are
/// acknowledged one by one, the others in pairs, and the last one after 40 ms.
#[test]
fn linux_acknowledges_the_first_sixteen_segments_at_once() {
    let mut expected: Vec<(Nanos, u64)> = (1..=10).map(|count| (50, count)).collect();
    expected.extend((11..=16).map(|count| (150, count)));
    expected.extend((18..=28).step_by(2).map(|count| (150, count)));
    expected.push((190, 29));
    assert_eq!(acknowledged(&Profile::linux(), 29), expected);
}

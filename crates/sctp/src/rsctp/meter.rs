//! Receiver side of RSCTP: measurement of arrivals between HEARTBEATs (ho2008 §3.1 to §3.3).

use anabranch_transport::{Nanos, Path};
use anabranch_wire::rsctp::{HeartbeatFields, NO_LOSS_RATE, WHOLE};

use crate::path::Paths;

/// Maximum time in microseconds between the HEARTBEATs of a pair when they are sent. The paper
/// sends them back to back, but a driver may need some time for each packet.
const PAIR_SPREAD: u32 = 10_000;

/// Report for one path, in the units of the HEARTBEAT ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// Available bandwidth in bytes per second; 0: no estimate.
    pub(crate) available_bandwidth: u32,
    /// Chunk loss rate in millionths; [`NO_LOSS_RATE`]: no estimate.
    pub(crate) chunk_loss_rate: u32,
}

impl Report {
    const NONE: Report = Report {
        available_bandwidth: 0,
        chunk_loss_rate: NO_LOSS_RATE,
    };
}

/// Counters of received data by pair of local and remote address, because a peer's address may send
/// to several local addresses over different paths.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    paths: Vec<PathCounters>,
}

#[derive(Debug)]
struct PathCounters {
    path: Path,
    /// Bytes of DATA since the last HEARTBEAT: complete chunks with header and padding, as cwnd
    /// counts them (RFC 9260 §7.2.2).
    bytes: u64,
    chunks: u32,
    last: Option<Mark>,
}

/// Last HEARTBEAT on a path.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Nanos,
    current_time: u32,
    chunk_count: u32,
}

impl Meter {
    /// Counts a DATA chunk of `bytes` bytes. Duplicates count as well, because they also crossed
    /// the network.
    pub(crate) fn data(&mut self, path: Path, bytes: u64) {
        if let Some(counters) = self.counters_of(path) {
            counters.bytes += bytes;
            counters.chunks = counters.chunks.wrapping_add(1);
        }
    }

    /// Processes a HEARTBEAT, whose size counts as `size` bytes; returns the report on the data
    /// since the previous HEARTBEAT. For the second HEARTBEAT of a pair the bandwidth is `B = s2 /
    /// (t2 - t1)`, with its size `s2` and the arrival times `t1` and `t2` of the pair, unless the
    /// two arrive closer together than they were sent (time compression). For other HEARTBEATs it
    /// is `B = d / (t2 - t1)`, with the number `d` of DATA bytes received between them.
    pub(crate) fn heartbeat(
        &mut self,
        now: Nanos,
        path: Path,
        fields: &HeartbeatFields,
        size: u64,
    ) -> Report {
        let Some(counters) = self.counters_of(path) else {
            return Report::NONE;
        };
        let mark = Mark {
            at: now,
            current_time: fields.current_time,
            chunk_count: fields.chunk_count,
        };
        let (bytes, chunks) = (
            std::mem::take(&mut counters.bytes),
            std::mem::take(&mut counters.chunks),
        );
        let Some(last) = counters.last.replace(mark) else {
            return Report::NONE;
        };
        let sent_apart = mark.current_time.wrapping_sub(last.current_time);
        let arrived_apart = now.saturating_sub(last.at);
        let available_bandwidth = if sent_apart > PAIR_SPREAD {
            rate(bytes, arrived_apart)
        } else if arrived_apart >= 1_000 * Nanos::from(sent_apart) {
            rate(bytes + size, arrived_apart)
        } else {
            0
        };
        Report {
            available_bandwidth,
            chunk_loss_rate: loss_rate(mark.chunk_count.wrapping_sub(last.chunk_count), chunks),
        }
    }

    fn counters_of(&mut self, path: Path) -> Option<&mut PathCounters> {
        // The search is linear, because there are usually one or two paths, and consecutive chunks
        // use the same path.
        match self.paths.iter().position(|counters| counters.path == path) {
            Some(index) => self.paths.get_mut(index),
            None if self.paths.len() < Paths::MAX => {
                self.paths.push(PathCounters {
                    path,
                    bytes: 0,
                    chunks: 0,
                    last: None,
                });
                self.paths.last_mut()
            }
            None => None,
        }
    }
}

/// Rate in bytes per second, rounded down; 0 for an empty interval.
fn rate(bytes: u64, span: Nanos) -> u32 {
    let per_second = u128::from(bytes) * 1_000_000_000;
    per_second
        .checked_div(span.into())
        .map_or(0, |rate| u32::try_from(rate).unwrap_or(u32::MAX))
}

/// Loss rate `(sent - received) / sent`, formula (7), in millionths.
fn loss_rate(sent: u32, received: u32) -> u32 {
    if sent == 0 {
        return NO_LOSS_RATE;
    }
    let lost = u64::from(sent.saturating_sub(received));
    (lost * u64::from(WHOLE) / u64::from(sent)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_transport::time::{MILLISECOND, SECOND};
    use bytes::Bytes;

    const WAY: Path = Path::new(
        std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)),
        std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)),
    );

    fn fields(current_time: u32, chunk_count: u32) -> HeartbeatFields {
        HeartbeatFields {
            current_time,
            chunk_count,
            own: Bytes::new(),
        }
    }

    /// 80 of 100 chunks of 1,500 bytes arrive in 1.2 s: 100,000 bytes per second, 20 % lost.
    #[test]
    fn data_between_two_heartbeats() {
        let mut meter = Meter::default();
        let start = 7 * SECOND;
        assert_eq!(
            meter.heartbeat(start, WAY, &fields(u32::MAX - 9, u32::MAX - 49), 60),
            Report::NONE
        );
        for _ in 0..80 {
            meter.data(WAY, 1_500);
        }
        // The sender's time and its chunk count have both wrapped around; 1 s has passed, and 100
        // chunks were sent.
        let report = meter.heartbeat(start + 1_200 * MILLISECOND, WAY, &fields(999_990, 50), 60);
        let expected = Report {
            available_bandwidth: 100_000,
            chunk_loss_rate: 200_000,
        };
        assert_eq!(report, expected);
        // If no data was sent, no measurement is made.
        let report = meter.heartbeat(start + 9 * SECOND, WAY, &fields(8_000_000, 50), 60);
        assert_eq!(report, Report::NONE);
        // If more chunks arrive than were sent, because the network duplicates packets, there is no
        // loss.
        for _ in 0..3 {
            meter.data(WAY, 1_500);
        }
        let report = meter.heartbeat(start + 10 * SECOND, WAY, &fields(9_000_000, 52), 60);
        assert_eq!(report.chunk_loss_rate, 0);
        // If no chunk arrives, the loss rate is 100 %.
        let report = meter.heartbeat(start + 11 * SECOND, WAY, &fields(10_000_000, 53), 60);
        assert_eq!(
            (report.available_bandwidth, report.chunk_loss_rate),
            (0, WHOLE)
        );
    }

    #[test]
    fn a_pair_measures_by_itself_unless_time_was_compressed() {
        let mut meter = Meter::default();
        meter.heartbeat(SECOND, WAY, &fields(0, 0), 60);
        let first = meter.heartbeat(5 * SECOND, WAY, &fields(4_000_000, 0), 60);
        assert_eq!(first, Report::NONE, "the first of a pair tells nothing");
        // 60 bytes in 480 us: 125,000 bytes per second.
        let at = 5 * SECOND + 480_000;
        let second = meter.heartbeat(at, WAY, &fields(4_000_000, 0), 60);
        assert_eq!(second.available_bandwidth, 125_000);
        // The two HEARTBEATs were sent 1 ms apart, and arrived 0.5 ms apart.
        meter.heartbeat(9 * SECOND, WAY, &fields(8_000_000, 0), 60);
        let at = 9 * SECOND + 500_000;
        let second = meter.heartbeat(at, WAY, &fields(8_001_000, 0), 60);
        assert_eq!(second, Report::NONE);
        // Both HEARTBEATs arrive at the same time, so the interval is zero.
        meter.heartbeat(13 * SECOND, WAY, &fields(12_000_000, 0), 60);
        let second = meter.heartbeat(13 * SECOND, WAY, &fields(12_000_000, 0), 60);
        assert_eq!(second, Report::NONE);
    }

    #[test]
    fn ways_are_distinguished_and_few() {
        let mut meter = Meter::default();
        let path = |last: u8| Path::new([10, 0, 0, 2].into(), [10, 0, 1, last].into());
        for last in 0..=255 {
            meter.heartbeat(0, path(last), &fields(0, 0), 60);
            meter.data(path(last), 1_000);
        }
        assert_eq!(meter.paths.len(), Paths::MAX);
        let report = meter.heartbeat(SECOND, path(0), &fields(1_000_000, 2), 60);
        assert_eq!(report.available_bandwidth, 1_000);
        assert_eq!(report.chunk_loss_rate, WHOLE / 2);
    }

    #[test]
    fn no_number_overflows() {
        assert_eq!(rate(u64::MAX, 1), u32::MAX);
        assert_eq!(rate(1, u64::MAX), 0);
        assert_eq!(loss_rate(u32::MAX, 0), WHOLE);
        assert_eq!(loss_rate(u32::MAX, u32::MAX), 0);
    }
}

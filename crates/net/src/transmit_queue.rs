//! Queue of packets to be sent. Runs of packets of equal size to one destination are sent by one
//! call (GSO).

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};

use anabranch_sctp::UdpTransmit;
use anabranch_transport::{Ecn, Path, Transmit};
use anabranch_wire::checksum;
use bytes::BytesMut;
use quinn_udp::EcnCodepoint;

use crate::socket::{Socket, Sockets};
use crate::socket_errors::{SocketErrors, SocketOperation};
use crate::status::EndpointStatistics;

/// Number of queued bytes at which the queue is full and should be sent.
const MAX_QUEUED_BYTES: usize = 256 * 1024;
/// Maximum size of a run that one call sends, bytes: the maximum length of an IP packet, without
/// headers.
const MAX_RUN_BYTES: usize = 65_000;

/// A run of packets of one size to one destination; only the last packet may be shorter.
#[derive(Clone, Copy, Debug)]
struct GsoBatch {
    /// Destination of the packets as the protocol knows it.
    path: Path,
    udp_port: u16,
    /// The socket and address to which they are sent.
    socket: usize,
    to: SocketAddr,
    source: Option<IpAddr>,
    start: usize,
    len: usize,
    segment: usize,
    packets: usize,
    ecn: Ecn,
    /// True for a single packet that IP may fragment.
    may_fragment: bool,
    /// True if the last packet is shorter, so that no other may follow.
    ended: bool,
    /// `unsummed`: some packets still lack their checksum. `has_zero`: some packets are sent
    /// without a checksum (RFC 9653).
    unsummed: bool,
    has_zero: bool,
}

impl GsoBatch {
    /// Returns true if the packet `outgoing` may be appended to this run. `has_zero` is true if
    /// `outgoing` is sent without a checksum.
    fn can_append(&self, outgoing: &UdpTransmit, has_zero: bool, max_segments: usize) -> bool {
        let Transmit {
            path,
            len,
            ecn,
            may_fragment,
            ..
        } = outgoing.transmit;
        // The checksums of a run are computed for all its packets or for none.
        let sums_agree = !(self.unsummed && has_zero || self.has_zero && outgoing.unsummed);
        !(self.ended || self.may_fragment || may_fragment)
            && (self.path, self.udp_port, self.ecn) == (path, outgoing.udp_port, ecn)
            && len <= self.segment
            && self.packets < max_segments
            && self.len + len <= MAX_RUN_BYTES
            && sums_agree
    }
}

/// Counters of sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SendCounters {
    pub packets: u64,
    pub calls: u64,
    pub errors: u64,
}

impl SendCounters {
    /// Copies the counters to the statistics of an endpoint.
    pub(crate) fn publish(&self, statistics: &mut EndpointStatistics) {
        statistics.packets_sent = self.packets;
        statistics.send_calls = self.calls;
        statistics.send_errors = self.errors;
    }
}

/// Packets that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct TransmitQueue {
    /// All packets, one after the other; the protocol appends packets to it.
    pub bytes: BytesMut,
    /// Division of `bytes` into runs, each of which is sent by one call.
    pub runs: GsoBatches,
}

/// Runs of packets in a [`TransmitQueue`], in the order of sending.
#[derive(Debug, Default)]
pub(crate) struct GsoBatches(VecDeque<GsoBatch>);

impl GsoBatches {
    /// Adds the packet `outgoing`, which occupies the last bytes of `bytes`. Returns `false` if no
    /// socket reaches its destination.
    pub(crate) fn push(
        &mut self,
        bytes: &mut BytesMut,
        sockets: &Sockets,
        outgoing: &UdpTransmit,
    ) -> bool {
        let &UdpTransmit {
            transmit:
                Transmit {
                    path,
                    len,
                    ecn,
                    may_fragment,
                    ..
                },
            udp_port,
            unsummed,
            ..
        } = outgoing;
        let start = bytes.len() - len;
        let has_zero = !unsummed && checksum::is_zero(&bytes[start..]);
        if let Some(run) = self.0.back_mut()
            && run.can_append(outgoing, has_zero, sockets.get(run.socket).max_segments())
        {
            run.len += len;
            run.packets += 1;
            run.ended = len < run.segment;
            run.unsummed |= unsummed;
            run.has_zero |= has_zero;
            return true;
        }
        let to = sockets.destination(SocketAddr::new(path.remote, udp_port));
        let Some((socket, source)) = sockets.route(path.local, to.ip()) else {
            bytes.truncate(start);
            return false;
        };
        self.0.push_back(GsoBatch {
            path,
            udp_port,
            socket,
            to,
            source,
            start,
            len,
            segment: len,
            packets: 1,
            ecn,
            may_fragment,
            ended: false,
            unsummed,
            has_zero,
        });
        true
    }
}

impl TransmitQueue {
    /// Returns true if no packet is queued.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.0.is_empty()
    }

    /// Returns true if packets should be sent before more are queued.
    pub(crate) fn is_full(bytes: usize) -> bool {
        bytes >= MAX_QUEUED_BYTES
    }

    /// Sends packets until the queue is empty (ready) or the sockets are not writable.
    pub(crate) fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        sockets: &Sockets,
        counts: (&mut SendCounters, &mut SocketErrors),
    ) -> Poll<()> {
        self.flush_by(sockets, counts, |socket, transmit| {
            socket.poll_send(cx, transmit)
        })
    }

    /// Drops all waiting packets, which the protocol treats as lost in the network.
    pub(crate) fn throw_away(&mut self, sent: &mut SendCounters) {
        sent.errors += self.runs.0.iter().map(|it| it.packets as u64).sum::<u64>();
        self.runs.0.clear();
        self.bytes.clear();
    }

    /// Sends packets while the sockets accept them immediately. Returns true if the queue is empty;
    /// the task is not woken for remaining packets.
    pub(crate) fn try_flush(
        &mut self,
        sockets: &Sockets,
        counts: (&mut SendCounters, &mut SocketErrors),
    ) -> bool {
        self.flush_by(sockets, counts, Socket::try_send).is_ready()
    }

    fn flush_by(
        &mut self,
        sockets: &Sockets,
        (sent, failures): (&mut SendCounters, &mut SocketErrors),
        mut send: impl FnMut(&Socket, &quinn_udp::Transmit<'_>) -> Poll<io::Result<()>>,
    ) -> Poll<()> {
        while let Some(run) = self.runs.0.front_mut() {
            if std::mem::take(&mut run.unsummed) {
                let packets = &mut self.bytes[run.start..run.start + run.len];
                packets.chunks_mut(run.segment).for_each(checksum::fill);
            }
            let single = run.packets > sockets.get(run.socket).max_segments();
            let len = if single {
                run.segment.min(run.len)
            } else {
                run.len
            };
            let packets = if single { 1 } else { run.packets };
            let transmit = quinn_udp::Transmit {
                destination: run.to,
                ecn: EcnCodepoint::from_bits(run.ecn.bits()),
                contents: &self.bytes[run.start..run.start + len],
                segment_size: (packets > 1).then_some(run.segment),
                src_ip: run.source,
            };
            let socket = sockets.get(run.socket);
            if run.may_fragment {
                socket.allow_fragmentation(true);
            }
            let result = send(socket, &transmit);
            if run.may_fragment {
                socket.allow_fragmentation(false);
            }
            let Poll::Ready(result) = result else {
                return Poll::Pending;
            };
            sent.calls += 1;
            match result {
                Ok(()) => sent.packets += packets as u64,
                // The interface lacks GSO although the system supports it. The socket has recorded
                // this, so the packets are now sent one by one.
                Err(_) if packets > sockets.get(run.socket).max_segments() => continue,
                Err(error) => {
                    debug_assert_ne!(error.kind(), io::ErrorKind::WouldBlock);
                    sent.errors += packets as u64;
                    failures.count(SocketOperation::Sending, &error);
                }
            }
            run.start += len;
            run.len -= len;
            run.packets -= packets;
            if run.packets == 0 {
                self.runs.0.pop_front();
            }
        }
        self.bytes.clear();
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use anabranch_sctp::TransmitOptions;

    use super::*;

    fn run(unsummed: bool, has_zero: bool) -> GsoBatch {
        let remote = IpAddr::from([192, 0, 2, 2]);
        GsoBatch {
            path: Path::new([192, 0, 2, 1].into(), remote),
            udp_port: 9_899,
            socket: 0,
            to: SocketAddr::new(remote, 9_899),
            source: None,
            start: 0,
            len: 1_000,
            segment: 1_000,
            packets: 1,
            ecn: Ecn::NotEct,
            may_fragment: false,
            ended: false,
            unsummed,
            has_zero,
        }
    }

    /// A packet that is sent without a checksum never shares a run with packets whose checksums are
    /// still to be computed, because they are computed for all packets of a run.
    #[test]
    fn a_run_that_is_summed_has_no_packet_that_goes_without() {
        let mut out = BytesMut::new();
        let secret = [1; 32];
        let mut endpoint =
            anabranch_sctp::Endpoint::new(anabranch_sctp::Config::default(), 7, secret)
                .expect("settings");
        endpoint
            .connect(0, &[[192, 0, 2, 2].into()], 7)
            .expect("no association yet");
        let mut first = None;
        endpoint.poll_transmit_batch(0, TransmitOptions::default(), &mut out, |outgoing, _| {
            first = Some(outgoing);
            ControlFlow::Break(())
        });
        let mut outgoing = first.expect("an INIT");
        let alike = run(false, false);
        (
            outgoing.transmit.path,
            outgoing.udp_port,
            outgoing.transmit.len,
        ) = (alike.path, alike.udp_port, 1_000);
        let takes = |run: GsoBatch, unsummed, has_zero| {
            let mut outgoing = outgoing;
            outgoing.unsummed = unsummed;
            run.can_append(&outgoing, has_zero, 64)
        };
        for (unsummed, zero) in [(false, false), (true, false), (false, true)] {
            assert!(takes(alike, unsummed, zero));
            assert_eq!(takes(run(true, false), unsummed, zero), !zero);
            assert_eq!(takes(run(false, true), unsummed, zero), !unsummed);
        }
        outgoing.udp_port += 1;
        assert!(!alike.can_append(&outgoing, false, 64));
    }
}

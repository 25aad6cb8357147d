use super::*;

fn peer(number: u16) -> SocketAddr {
    SocketAddr::new([192, 0, 2, 1].into(), number)
}

/// `count` packets of `size` bytes in one call, numbered from `first` on.
fn arrival(from: u16, first: u32, count: u32, size: usize) -> Arrival {
    let packet = |number: u32| {
        let mut packet = vec![1; size];
        packet[..4].copy_from_slice(&number.to_be_bytes());
        packet
    };
    Arrival {
        local: [192, 0, 2, 9].into(),
        from: peer(from),
        ecn: Ecn::NotEct,
        packets: (first..first + count).flat_map(packet).collect(),
        stride: size,
        taken: 0,
    }
}

/// Queues packets of known peers: an association has accepted packets of these senders before.
fn push(receive_queue: &mut FairReceiveQueue, arrivals: impl IntoIterator<Item = Arrival>) {
    for arrival in arrivals {
        receive_queue.add_known(arrival.from);
        receive_queue.push(arrival);
    }
    receive_queue.drop_excess();
}

/// Queues packets of unknown sources.
fn push_unknown(receive_queue: &mut FairReceiveQueue, arrivals: impl IntoIterator<Item = Arrival>) {
    arrivals.into_iter().for_each(|it| receive_queue.push(it));
    receive_queue.drop_excess();
}

fn number(receive_queue: &FairReceiveQueue, turn: &QueuedPacket) -> u32 {
    let packet = &receive_queue.block()[turn.packet.clone()];
    u32::from_be_bytes(*packet.first_chunk().expect("four bytes"))
}

/// However many packets a peer has queued, only one turn of them precedes a packet of another
/// sender.
#[test]
fn a_flood_of_one_peer_delays_another_by_a_turn_at_most() {
    for size in [16, 1_500, 60_000] {
        let mut receive_queue = FairReceiveQueue::default();
        push(
            &mut receive_queue,
            (0..60).map(|_| arrival(1, 0, 1 + 65_000 / size as u32, size)),
        );
        push(&mut receive_queue, [arrival(2, 7, 1, 100)]);
        let before = std::iter::from_fn(|| receive_queue.pop()).position(|it| it.from == peer(2));
        let before = before.expect("it comes");
        assert!(before <= TURN_PACKETS, "{before} packets of {size} bytes");
        assert!(
            before.saturating_sub(1) * size <= TURN_BYTES,
            "{before} packets of {size}"
        );
    }
}

#[test]
fn packets_of_one_peer_keep_their_order_and_none_is_lost_within_the_bound() {
    let mut receive_queue = FairReceiveQueue::default();
    for call in 0..10 {
        push(
            &mut receive_queue,
            (1..=3).map(|from| arrival(from, call * 40, 40, 200)),
        );
    }
    let mut next = [0; 4];
    while let Some(turn) = receive_queue.pop() {
        let from = usize::from(turn.from.port());
        assert_eq!(number(&receive_queue, &turn), next[from]);
        next[from] += 1;
    }
    assert_eq!((next, receive_queue.dropped()), ([0, 400, 400, 400], 0));
    assert_eq!(receive_queue.bytes, 0);
}

/// Each packet carries the number of packets that follow it in the same turn and were received by
/// the same call.
#[test]
fn a_packet_reports_what_is_next_of_its_call() {
    let mut receive_queue = FairReceiveQueue::default();
    push(
        &mut receive_queue,
        [arrival(1, 0, 40, 200), arrival(1, 40, 2, 200)],
    );
    push(&mut receive_queue, [arrival(2, 0, 1, 200)]);
    let behind: Vec<(u16, usize)> = std::iter::from_fn(|| receive_queue.pop())
        .map(|it| (it.from.port(), it.behind))
        .collect();
    // A turn has 32 packets, so the last packets of the 40 wait for the next turn.
    let first = (0..31).map(|at| (1, 39 - at)).chain([(1, 0)]);
    let then = (0..8).map(|at| (1, 7 - at)).chain([(1, 1), (1, 0)]);
    let expected: Vec<_> = first.chain([(2, 0)]).chain(then).collect();
    assert_eq!(behind, expected);
}

/// Waiting bytes are limited, and only the flooding sender loses packets.
#[test]
fn beyond_the_bound_only_the_sender_with_the_most_waiting_loses() {
    let mut receive_queue = FairReceiveQueue::default();
    let mut quiet = 0;
    for call in 0..1_000 {
        push(&mut receive_queue, [arrival(1, call * 40, 40, 1_500)]);
        if call % 10 == 0 {
            push(&mut receive_queue, [arrival(2, quiet, 1, 1_000)]);
            quiet += 1;
        }
        assert!(
            receive_queue.bytes <= MAX_WAITING,
            "{} bytes",
            receive_queue.bytes
        );
    }
    assert!(
        receive_queue.dropped() > 30_000,
        "{}",
        receive_queue.dropped()
    );
    let mut came = [0u64; 3];
    let mut heard = Vec::new();
    while let Some(turn) = receive_queue.pop() {
        came[usize::from(turn.from.port())] += 1;
        if turn.from == peer(2) {
            heard.push(number(&receive_queue, &turn));
        }
    }
    assert_eq!(
        heard,
        (0..quiet).collect::<Vec<_>>(),
        "the other lost nothing"
    );
    assert_eq!(came[1] + receive_queue.dropped(), 40_000);
    assert_eq!(receive_queue.bytes, 0);
}

/// The number of packets is limited too, because a packet of 16 bytes costs as much work as a large
/// one.
#[test]
fn a_round_ends_after_so_many_packets_or_bytes() {
    for (size, most) in [(16, ROUND_PACKETS), (65_536, 3)] {
        let mut budget = Budget::of_a_round();
        let mut handled = 0;
        while !budget.is_spent() {
            budget.spend(size);
            handled += 1;
        }
        assert_eq!(handled, most, "{size} bytes");
    }
}

/// Beyond the limit, packets of further senders stay in the sockets, so that the search among the
/// waiting senders stays cheap.
#[test]
fn so_many_senders_wait_and_no_more_are_received() {
    let mut receive_queue = FairReceiveQueue::default();
    let mut calls = 0;
    while receive_queue.has_room() {
        push(
            &mut receive_queue,
            (0..32).map(|it| arrival(calls * 32 + it, 0, 1, 16)),
        );
        calls += 1;
    }
    assert_eq!(
        (receive_queue.senders.len(), receive_queue.dropped()),
        (MAX_SENDERS, 0)
    );
    receive_queue.pop();
    assert!(receive_queue.has_room());
}

#[test]
fn cleared_datagrams_are_not_counted() {
    let mut receive_queue = FairReceiveQueue::default();
    push(
        &mut receive_queue,
        [arrival(1, 0, 40, 1_500), arrival(2, 0, 1, 16)],
    );
    receive_queue.pop();
    receive_queue.clear();
    assert!(
        receive_queue.is_empty() && receive_queue.pop().is_none() && receive_queue.peek().is_none()
    );
    assert_eq!(receive_queue.bytes, 0);
}

/// A packet with verification tag 0, like one with INIT.
fn init(from: u16) -> Arrival {
    let mut init = arrival(from, 0, 1, 32);
    init.packets = [&[0; 8][..], &[1; 24]].concat().into();
    init
}

/// Unknown sources get one packet per turn of a peer, even if a flood comes from many addresses.
#[test]
fn strangers_have_one_packet_after_a_turn_of_a_peer() {
    for strange in [|from| arrival(from, 0, 1, 100), init as fn(u16) -> Arrival] {
        let mut receive_queue = FairReceiveQueue::default();
        push_unknown(&mut receive_queue, (1_000..2_000).map(strange));
        push(
            &mut receive_queue,
            [arrival(1, 0, 320, 100), arrival(2, 0, 320, 100)],
        );
        let mut since = 0;
        let mut unknown = 0;
        receive_queue.begin_round();
        while !receive_queue.senders.is_empty() {
            let turn = receive_queue.pop().expect("packets of peers");
            assert_eq!(turn.unknown, turn.from.port() >= 1_000);
            if turn.unknown {
                assert!(
                    unknown == 0 || since == TURN_PACKETS,
                    "after {since} packets"
                );
                (since, unknown) = (0, unknown + 1);
            } else {
                since += 1;
            }
        }
        assert_eq!(unknown, 2 * 320 / TURN_PACKETS - 1);
        // After the last turn of the peers one more packet of an unknown source is handled. Then
        // the round ends, because the peers may have sent more.
        assert!(receive_queue.pop().is_some_and(|it| it.unknown));
        assert!(
            receive_queue.peek().is_none()
                && receive_queue.pop().is_none()
                && !receive_queue.is_empty()
        );
        receive_queue.begin_round();
        let rest = std::iter::from_fn(|| receive_queue.pop()).count();
        assert_eq!(rest, ROUND_UNKNOWN);
    }
}

/// A known peer's INIT is queued with unknown sources, because its address may be forged.
#[test]
fn an_init_waits_with_unknown_sources_whatever_its_source() {
    let mut receive_queue = FairReceiveQueue::default();
    push(&mut receive_queue, [arrival(1, 0, 1, 100), init(1)]);
    receive_queue.begin_round();
    let taken: Vec<bool> = std::iter::from_fn(|| receive_queue.pop())
        .map(|it| it.unknown)
        .collect();
    assert_eq!(taken, [false, true]);
}

#[test]
fn a_stranger_is_a_peer_once_an_association_took_its_packet() {
    let mut receive_queue = FairReceiveQueue::default();
    push_unknown(&mut receive_queue, [arrival(1, 0, 1, 100)]);
    receive_queue.begin_round();
    let first = receive_queue.pop().expect("it comes");
    assert!(first.unknown);
    receive_queue.add_known(first.from);
    push_unknown(&mut receive_queue, [arrival(1, 1, 1, 100)]);
    assert!(receive_queue.pop().is_some_and(|it| !it.unknown));
}

/// Waiting packets of unknown sources are limited, and take no space from peers.
#[test]
fn a_flood_of_strangers_is_dropped_beyond_its_bound() {
    let mut receive_queue = FairReceiveQueue::default();
    push_unknown(&mut receive_queue, (0..60_000).map(init));
    assert!(
        receive_queue.unknown_bytes <= MAX_UNKNOWN_BYTES
            && receive_queue.bytes == 0
            && receive_queue.has_room()
    );
    let waiting = receive_queue.unknown.len() as u64;
    assert_eq!(waiting, (MAX_UNKNOWN_BYTES / (32 + OVERHEAD)) as u64);
    assert_eq!(receive_queue.dropped(), 60_000 - waiting);
    receive_queue.clear();
    assert!(receive_queue.is_empty() && receive_queue.unknown_bytes == 0);
}

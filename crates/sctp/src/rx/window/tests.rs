use super::*;

fn window(receive_buffer: u32) -> ReceiveWindow {
    ReceiveWindow::new(&Config {
        receive_buffer,
        window_update: Some(4_000),
        ..Config::default()
    })
}

#[test]
fn a_window_much_wider_than_advertised_is_advertised() {
    let mut window = window(10_000);
    window.take(8_000, 8_000);
    window.last_advertised = 2_000;
    window.uncount(3_999);
    assert!(!window.update_is_worth_a_sack(), "5,999 against 2,000");
    window.uncount(1);
    assert!(window.update_is_worth_a_sack());
    window.advertised(6_000);
    assert!(!window.update_is_worth_a_sack(), "it was told");
}

/// A buffer of 80,000 bytes: 130,000 bytes of memory for chunks in order, which is 673 chunks of
/// one byte, and 140,000 bytes for chunks that fill a gap.
#[test]
fn tiny_chunks_close_the_window_before_their_bytes_do() {
    let mut window = window(80_000);
    let mut held = 0;
    while window.admits(1, 1, false) {
        window.take(1, 1);
        held += 1;
    }
    assert_eq!(held, 130_000 / 193);
    assert_eq!(window.to_advertise(), 0);
    (0..100).for_each(|_| window.free(1, 1));
    assert_eq!(window.to_advertise(), (130_000 - 573 * 193) / 193);
    (0..100).for_each(|_| window.take(1, 1));
    while window.admits(1, 1, true) {
        window.take(1, 1);
        held += 1;
    }
    assert_eq!(held, 140_000 / 193);
    window.free(1, 1);
    assert!(window.admits(1, 1, true));
}

fn counters(chunks: u64, bytes: u64, sacks: u64) -> ReceiverCounters {
    let mut counters = ReceiverCounters::default();
    (counters.chunks, counters.bytes, counters.sacks) = (chunks, bytes, sacks);
    counters
}

/// 130,000 bytes of memory are enough for 673 chunks of one byte, whether or not any is buffered.
#[test]
fn rows_of_tiny_chunks_narrow_the_window_before_any_is_held() {
    let mut window = window(80_000);
    window.look(&counters(15, 15, 0));
    assert_eq!(window.to_advertise(), 80_000, "too few to tell");
    window.look(&counters(72, 72, 0));
    assert_eq!(window.to_advertise(), 130_000 / 193);
    // The step of 4,000 bytes is 1/20 of 80,000, so it is scaled to 1/20 of the narrow window.
    (window.last_advertised, window.step) = (600, OptionalNanos::some(4_000));
    assert!(window.update_is_worth_a_sack());
    window.last_advertised = 641;
    assert!(!window.update_is_worth_a_sack());
    // A packet full of these chunks takes 1,500 * 193 / 20 bytes of memory, and no smaller window
    // is advertised.
    let mut held = 0;
    while window.to_advertise() > 0 {
        window.take(1, 1);
        held += 1;
    }
    assert_eq!(held, (130_000 - 14_475) / 193 + 1);
    (0..held).for_each(|_| window.free(1, 1));
    // A few larger chunks have no effect as long as they are still tiny.
    window.look(&counters(73, 372, 1));
    assert_eq!(window.to_advertise(), 130_000 / 193);
    assert!(!window.is_too_narrow(&counters(74, 679, 2)));
    assert!(window.is_too_narrow(&counters(74, 680, 2)));
    window.look(&counters(74, 680, 2));
    assert_eq!(window.to_advertise(), 80_000);
}

/// A peer that sends one chunk at a time, and a peer with chunks of 308 bytes, which fill the
/// window before the memory.
#[test]
fn other_chunks_do_not_narrow_it() {
    let mut window = window(80_000);
    for sent in 1..1_000 {
        window.look(&counters(sent, sent, sent - 1));
        assert_eq!(window.to_advertise(), 80_000);
    }
    let mut window = self::window(80_000);
    for sent in 1..1_000 {
        window.look(&counters(10 * sent, 3_080 * sent, sent - 1));
        assert_eq!(window.to_advertise(), 80_000);
    }
    // A profile that drops silently advertises the same window as the papers' simulator.
    let config = Config::new(crate::profile::Profile::ns2()).with(|it| it.receive_buffer = 80_000);
    let mut window = ReceiveWindow::new(&config);
    for sent in 1..1_000 {
        window.look(&counters(100 * sent, 100 * sent, sent - 1));
        assert_eq!(window.to_advertise(), 80_000);
    }
}

/// One small unread message reduces the window only slightly.
#[test]
fn a_few_tiny_chunks_do_not_show() {
    let mut window = window(80_000);
    window.take(20, 20);
    assert_eq!(window.to_advertise(), 80_000 - 20);
    (0..200).for_each(|_| window.take(1, 1));
    // 38,812 of 130,000 bytes of memory are used. Of the free 91,188 bytes, the fraction (130,000 -
    // 77,624) / 130,000 is advertised.
    assert_eq!(window.to_advertise(), 36_738);
}

/// Chunks of 400 bytes fill the window before memory, so the overhead per chunk has no effect.
#[test]
fn other_chunks_close_it_by_their_bytes() {
    let mut window = window(80_000);
    for held in 0..200u32 {
        assert_eq!(
            window.to_advertise(),
            match 80_000 - 400 * held {
                left if left < 1500 => 0,
                left => left,
            }
        );
        assert!(window.admits(400, 400, false));
        window.take(400, 400);
    }
    assert!(!window.admits(400, 400, false));
}

/// The window computed without the memory check must equal the window computed with it.
#[test]
fn the_short_way_to_the_window_leads_where_the_long_one_does() {
    let mut last_advertised = 0;
    for length in [1, 20, 60, 100, 130, 200, 400] {
        let mut window = window(80_000);
        while window.admits(length, length, false) {
            window.take(length, length as usize);
            let (left, memory) = (window.left(), window.memory());
            let fits = window.fitting(window.soft.saturating_sub(memory), memory);
            if left.min(fits) >= window.least() {
                let expected = left.min(fits);
                assert_eq!(u64::from(window.to_advertise()), expected, "{length} B");
                last_advertised += 1;
            }
        }
    }
    assert!(last_advertised > 1_000, "{last_advertised}");
}

#[test]
fn a_window_that_opens_is_never_as_advertised() {
    let mut window = window(80_000);
    window.take(80_000, 80_000);
    window.advertised(window.to_advertise());
    assert_eq!(
        (window.last_advertised, window.is_as_advertised()),
        (0, true)
    );
    window.uncount(1_500);
    assert_eq!(window.to_advertise(), 1_500);
    assert!(!window.is_as_advertised(), "it was closed");
    window.advertised(1_500);
    window.uncount(10_000);
    assert!(window.is_as_advertised(), "within an eighth of the buffer");
    window.uncount(1);
    assert!(!window.is_as_advertised());
}

fn plain(receive_buffer: u32) -> ReceiveWindow {
    ReceiveWindow::new(&Config {
        receive_buffer,
        ..Config::default()
    })
}

/// A chunk of 5,000 bytes was dropped while 3,000 bytes were advertised, so the window was not
/// closed.
#[test]
fn a_window_that_fits_refused_data_is_advertised() {
    let mut window = plain(20_000);
    window.take(17_000, 17_000);
    window.advertised(window.to_advertise());
    window.uncount(1_000);
    assert!(!window.update_is_worth_a_sack(), "nothing was refused");
    window.refuse(5_000);
    assert!(!window.update_is_worth_a_sack(), "4,000 against 5,000");
    window.uncount(1_000);
    assert!(window.update_is_worth_a_sack());
    window.advertised(4_999);
    assert!(window.update_is_worth_a_sack(), "it does not fit that");
    window.advertised(5_000);
    window.uncount(10_000);
    assert!(!window.update_is_worth_a_sack(), "it was told");
}

/// A chunk larger than the buffer was dropped, so a SACK is sent when the whole buffer is free.
#[test]
fn a_message_larger_than_the_buffer_needs_the_whole_buffer() {
    let mut window = plain(4_000);
    window.take(2_000, 2_000);
    window.advertised(window.to_advertise());
    window.refuse(8_000);
    window.uncount(1_999);
    assert!(!window.update_is_worth_a_sack());
    window.uncount(1);
    assert!(window.update_is_worth_a_sack());
}

/// The minimum window is half of the buffer or a segment of the peer, which is longer than a
/// segment of this side.
#[test]
fn a_window_smaller_than_the_peers_segments_is_closed() {
    let mut window = plain(40_000);
    window.take(35_000, 35_000);
    assert_eq!(window.to_advertise(), 5_000);
    window.note_packet(1_480);
    assert_eq!(window.to_advertise(), 5_000);
    window.note_packet(8_980);
    assert_eq!(window.to_advertise(), 0);
    window.advertised(0);
    window.uncount(3_979);
    assert!(!window.update_is_worth_a_sack(), "8,979");
    window.uncount(1);
    assert!(window.update_is_worth_a_sack());
    let mut small = plain(4_000);
    small.note_packet(8_980);
    small.take(2_000, 2_000);
    assert_eq!(small.to_advertise(), 2_000, "half of it is enough");
}

/// A buffer of 80,000 bytes: 130,000 bytes of memory, of which partial deliveries use a part. The
/// window is what is free, because no chunk is buffered that later chunks could resemble.
#[test]
fn partial_deliveries_leave_the_free_memory_to_the_window() {
    for open in [0, 50, 100, 150, 200] {
        let mut window = plain(80_000);
        window.count_open(FREE_OPEN + open);
        let free = 130_000 - open as u64 * OPEN_COST;
        assert_eq!(u64::from(window.to_advertise()), free.min(80_000), "{open}");
    }
    // In addition to the partial deliveries, buffered chunks of one byte reduce the window.
    let mut window = plain(80_000);
    window.count_open(FREE_OPEN + 100);
    (0..200).for_each(|_| window.take(1, 1));
    let of_chunks = 200 * 193;
    let free = 130_000 - 100 * OPEN_COST - of_chunks;
    let expected = free * (130_000 - 2 * of_chunks) / 130_000;
    assert_eq!(u64::from(window.to_advertise()), expected);
}

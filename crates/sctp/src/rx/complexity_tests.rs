//! Tests that the cost of a chunk does not depend on the order of arrival, by counted steps.

use anabranch_wire::chunk::Data;
use anabranch_wire::extension::{FragmentPosition, IData};
use anabranch_wire::serial::{Fsn, Mid};
use anabranch_wire::{CommonHeader, PacketBuilder, Ssn};
use bytes::{Bytes, BytesMut};

use super::*;
use crate::work_counter;

/// Maximum number of steps per chunk. A step is a key comparison, a moved fragment, or an examined
/// word of the bitmap. A tree of 60,000 entries has five levels of about four comparisons. A chunk
/// needs about a dozen lookups in one tree, and in two trees when it is removed.
const MAX_STEPS: u64 = 250;

fn fragment(at: u32, n: u32) -> Data {
    Data {
        beginning: at == 0,
        ending: at + 1 == n,
        ..message(at, 0, 0)
    }
}

fn message(at: u32, stream_id: u16, ssn: u32) -> Data {
    Data {
        tsn: Tsn(1).add(at),
        stream_id,
        ssn: Ssn(ssn as u16),
        ppid: 0,
        unordered: false,
        beginning: true,
        ending: true,
        immediate: false,
        user_data: Bytes::from_static(b"x"),
    }
}

fn unordered(at: u32) -> Data {
    Data {
        unordered: true,
        ..message(at, 0, 0)
    }
}

fn outside_in(n: u32) -> impl Iterator<Item = u32> {
    (0..n / 2).flat_map(move |at| [at, n - 1 - at])
}

fn shuffled(n: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n).collect();
    let mut state = 5u64;
    for at in (1..order.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        order.swap(at, (state >> 33) as usize % (at + 1));
    }
    order
}

/// Order of arrival of a number of chunks.
struct Order {
    name: &'static str,
    /// Whether the chunks are fragments of one message, which may be I-DATA as well.
    is_one_message: bool,
    chunks: fn(u32) -> Vec<Data>,
}

const fn messages(name: &'static str, chunks: fn(u32) -> Vec<Data>) -> Order {
    Order {
        name,
        is_one_message: false,
        chunks,
    }
}

const fn one_message(name: &'static str, chunks: fn(u32) -> Vec<Data>) -> Order {
    Order {
        name,
        is_one_message: true,
        chunks,
    }
}

const ORDERS: &[Order] = &[
    messages("messages in order", |n| {
        (0..n).map(|at| message(at, 0, at)).collect()
    }),
    messages("messages last first", |n| {
        (0..n).rev().map(|at| message(at, 0, at)).collect()
    }),
    messages("messages at random", |n| {
        let places = shuffled(n).into_iter();
        places.map(|at| message(at, 0, at)).collect()
    }),
    messages("numbers outside in", |n| {
        let numbers = outside_in(n).zip(0..);
        numbers.map(|(ssn, at)| message(at, 0, ssn)).collect()
    }),
    messages("each stream waits, and then goes on", |n| {
        let first = (0..n).map(|at| message(at, at as u16, 1));
        first
            .chain((0..n).map(|at| message(n + at, at as u16, 0)))
            .collect()
    }),
    messages("unordered, every other and then the rest backwards", |n| {
        let places = (1..n).step_by(2).chain((0..n).step_by(2).rev());
        places.map(unordered).collect()
    }),
    messages("unordered outside in", |n| {
        outside_in(n).map(unordered).collect()
    }),
    one_message("fragments in order", |n| {
        (0..n).map(|at| fragment(at, n)).collect()
    }),
    one_message("fragments last first", |n| {
        (0..n).rev().map(|at| fragment(at, n)).collect()
    }),
    one_message("fragments at random", |n| {
        let places = shuffled(n).into_iter();
        places.map(|at| fragment(at, n)).collect()
    }),
    one_message("fragments outside in", |n| {
        outside_in(n).map(|at| fragment(at, n)).collect()
    }),
    one_message("lone fragments outside in, and then between", |n| {
        let lone = outside_in(n / 2).map(|at| 2 * at);
        let between = (0..n / 2).map(|at| 2 * at + 1);
        lone.chain(between).map(|at| fragment(at, n)).collect()
    }),
    one_message("pairs joined to a long run", |n| {
        let late = (n / 2..n).chain((0..n / 2).rev().map(|at| at ^ 1));
        late.map(|at| fragment(at, n)).collect()
    }),
    one_message("runs joined by halves", |n| {
        let bits = n.ilog2();
        let places = (0..1 << bits).map(|at: u32| at.reverse_bits() >> (32 - bits));
        places.map(|at| fragment(at, 1 << bits)).collect()
    }),
];

/// Converts a fragment of the only message to I-DATA.
fn interleaved(data: Data) -> IData {
    IData {
        tsn: data.tsn,
        stream_id: 0,
        mid: Mid(0),
        position: match data.tsn.distance_from(Tsn(1)) {
            0 => FragmentPosition::First { ppid: 0 },
            fsn => FragmentPosition::Later { fsn: Fsn(fsn) },
        },
        unordered: false,
        ending: data.ending,
        immediate: false,
        user_data: data.user_data,
    }
}

/// Steps per chunk, with `bundle` chunks per packet, which are I-DATA if `as_i_data`. A SACK of one
/// packet's size is written whenever one is due.
fn steps_of(order: fn(u32) -> Vec<Data>, n: u32, bundle: usize, as_i_data: bool) -> u64 {
    let config = Config {
        receive_buffer: 64 << 20,
        ..Config::default()
    };
    let mut receiver = Receiver::new(&config, Tsn(1), u16::MAX);
    let mut trace = Trace::default();
    receiver.expect_interleaved(as_i_data);
    let chunks = order(n);
    let count = chunks.len() as u64;
    let header = CommonHeader {
        source_port: 1,
        destination_port: 2,
        verification_tag: 3,
    };
    let mut out = BytesMut::new();
    work_counter::take();
    for (at, data) in chunks.into_iter().enumerate() {
        if at % bundle == 0 {
            receiver.on_packet_begin(16 * bundle);
        }
        let outcome = match as_i_data {
            true => receiver.handle_i_data(0, interleaved(data), &mut trace),
            false => receiver.handle_data(0, data, &mut trace),
        };
        assert_eq!(outcome, DataOutcome::NewData);
        if at % bundle == bundle - 1 {
            receiver.on_packet_end(0);
        }
        if receiver.sack_due() {
            let mut packet = PacketBuilder::new(&mut out, header, 1480);
            receiver
                .push_sack(0, &mut packet, &mut trace)
                .expect("room for a SACK");
            drop(packet);
            out.clear();
        }
        while receiver.poll_part().is_some() {}
    }
    assert!(receiver.is_empty(), "all that came is read");
    work_counter::take() / count
}

/// All orders of arrival with DATA, and the orders of the fragments of one message also with
/// I-DATA.
fn all_orders() -> impl Iterator<Item = (String, fn(u32) -> Vec<Data>, bool)> {
    ORDERS.iter().flat_map(|order| {
        let (name, chunks) = (order.name, order.chunks);
        let as_i_data = || (format!("{name}, as I-DATA"), chunks, true);
        let as_data = (name.to_owned(), chunks, false);
        std::iter::once(as_data).chain(order.is_one_message.then(as_i_data))
    })
}

#[test]
fn a_chunk_costs_the_same_in_every_order() {
    for (name, order, as_i_data) in all_orders() {
        let [few, many] = [1_000, 30_000].map(|n| steps_of(order, n, 70, as_i_data));
        println!("{name}: {few} steps a chunk of 1,000, {many} of 30,000");
        assert!(many < MAX_STEPS, "{name}: {many} steps a chunk");
        assert!(
            many <= 3 * few.max(8),
            "{name}: {few} of 1,000, {many} of 30,000"
        );
    }
}

/// One chunk per packet, thousands of gaps, and a SACK with 366 blocks after each packet. The
/// number of blocks must not affect the cost.
#[test]
fn a_packet_costs_the_same_however_many_gaps_its_sack_names() {
    let apart = messages("unordered, every other, last first", |n| {
        (1..n).step_by(2).rev().map(unordered).collect()
    });
    let between = messages("unordered, every other, and then each hole", |n| {
        let places = (1..n).step_by(2).chain((0..n).step_by(2));
        places.map(unordered).collect()
    });
    let more = [apart, between].map(|it| (it.name.to_owned(), it.chunks, false));
    for (name, order, as_i_data) in all_orders().chain(more) {
        let each = steps_of(order, 30_000, 1, as_i_data);
        println!("{name}: {each} steps a packet");
        assert!(each < MAX_STEPS, "{name}: {each} steps a packet");
    }
}

/// With 32,000 gaps, a SACK must examine only the words of the blocks that it reports.
#[test]
fn a_sack_costs_what_it_says() {
    let mut tracker = TsnTracker::new(Tsn(0));
    (1..32_000).for_each(|at| {
        tracker.insert(Tsn(2 * at));
    });
    for most in [360, 2_000] {
        work_counter::take();
        let named = tracker.blocks(most).count();
        assert_eq!((named, tracker.gap_count()), (most, 31_999));
        assert!(work_counter::take() <= most as u64 / 32 + 1);
    }
    // One TSN in each stride, on the first or the last bit of its word. A block that ends at the
    // end of its word may cost two steps, because the next missing TSN is in the next word.
    for (stride, from, steps, each) in [
        (2, 63, 1, 32),
        (64, 64, 1, 1),
        (64, 63, 1, 1),
        (128, 64, 1, 1),
        (128, 63, 2, 1),
    ] {
        let mut tracker = TsnTracker::new(Tsn(0));
        (from..65_535).step_by(stride).for_each(|at| {
            tracker.insert(Tsn(at));
        });
        for most in [1, 32, 360, 511] {
            work_counter::take();
            assert_eq!(tracker.blocks(most).count(), most);
            let found = work_counter::take();
            let limit = steps * most as u64 / each + 1;
            assert!(
                found <= limit,
                "stride {stride} from {from}, {most} blocks: {found} steps"
            );
        }
    }
}

/// Space is freed for gap-filling chunks repeatedly, while many messages are buffered. Each step
/// must find the last message directly.
#[test]
fn dropping_the_highest_costs_the_same_however_many_wait() {
    let config = Config {
        receive_buffer: 4 << 20,
        ..Config::default()
    };
    let mut receiver = Receiver::new(&config, Tsn(1), 10);
    let mut trace = Trace::default();
    let mut take = |data| receiver.handle_data(0, data, &mut trace);
    let held = (20_000..60_000)
        .take_while(|&at| take(message(at, 0, at - 20_000 + 1)) == DataOutcome::NewData)
        .count();
    assert!(held > 30_000);
    work_counter::take();
    for at in (1..20_000).rev() {
        assert_eq!(take(message(at, 1, at)), DataOutcome::NewData);
    }
    let each = work_counter::take() / 20_000;
    assert!(receiver.statistics().withdrawn > 10_000);
    assert!(each < MAX_STEPS, "{each} steps a chunk");
}

//! Tests of reassembly: fragments in any order, and contradictions.

use anabranch_wire::chunk::Data;
use bytes::Bytes;

use super::*;

/// Neighbours as if both adjacent TSNs had arrived, so that both adjacent runs are always looked
/// up. The lookup of a run that does not exist finds nothing.
const BESIDE: Neighbours = Neighbours {
    before: true,
    after: true,
};

impl Reassembly {
    /// Number of buffered fragments.
    fn chunks(&self) -> usize {
        self.runs.values().map(|run| run.parts.len()).sum()
    }

    fn take(&mut self, data: Data) -> Fragmented {
        let chunk = ChunkView::of_data(&data.with(&data.user_data[..]));
        self.insert(&chunk, data.user_data.clone(), BESIDE)
    }
}

fn fragment(tsn: u32, beginning: bool, ending: bool) -> Data {
    Data {
        tsn: Tsn(tsn),
        stream_id: 1,
        ssn: Ssn(5),
        ppid: 9,
        unordered: false,
        beginning,
        ending,
        immediate: false,
        user_data: Bytes::from(vec![tsn as u8; 3]),
    }
}

/// All orders of five fragments, whose TSNs wrap around.
#[test]
fn any_order_gives_the_message_at_the_last_fragment() {
    let tsns = [u32::MAX - 1, u32::MAX, 0, 1, 2];
    for order in permutations(5) {
        let mut reassembly = Reassembly::default();
        for (turn, index) in order.iter().enumerate() {
            let result = reassembly.take(fragment(tsns[*index], *index == 0, *index == 4));
            if turn < 4 {
                assert_eq!(result, Fragmented::Held, "{order:?}");
            } else {
                let Fragmented::Complete(_, message) = result else {
                    panic!("{order:?}: {result:?}")
                };
                let expected: Vec<u8> = tsns.iter().flat_map(|tsn| [*tsn as u8; 3]).collect();
                assert_eq!(message.payload.into_bytes().to_vec(), expected, "{order:?}");
            }
        }
        assert_eq!(reassembly.chunks(), 0);
    }
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![vec![]];
    }
    let shorter = permutations(n - 1);
    shorter
        .iter()
        .flat_map(|order| {
            (0..n).map(move |at| {
                let mut longer = order.clone();
                longer.insert(at, n - 1);
                longer
            })
        })
        .collect()
}

#[test]
fn two_messages_side_by_side_stay_apart() {
    let mut reassembly = Reassembly::default();
    assert_eq!(reassembly.take(fragment(11, false, true)), Fragmented::Held);
    let mut second = fragment(12, true, false);
    second.ssn = Ssn(6);
    assert_eq!(reassembly.take(second), Fragmented::Held);
    assert!(matches!(
        reassembly.take(fragment(10, true, false)),
        Fragmented::Complete(..)
    ));
    assert_eq!(reassembly.chunks(), 1);
}

#[test]
fn contradictions_are_refused() {
    let mut reassembly = Reassembly::default();
    reassembly.take(fragment(10, true, false));
    assert_eq!(
        reassembly.take(fragment(11, true, false)),
        Fragmented::Contradiction,
        "begins inside"
    );
    let other = Data {
        stream_id: 2,
        ..fragment(11, false, true)
    };
    assert_eq!(
        reassembly.take(other),
        Fragmented::Contradiction,
        "another stream"
    );
    assert_eq!(
        reassembly.take(fragment(9, true, false)),
        Fragmented::Contradiction,
        "unended before a beginning"
    );
    assert!(matches!(
        reassembly.take(fragment(11, false, true)),
        Fragmented::Complete(..)
    ));
}

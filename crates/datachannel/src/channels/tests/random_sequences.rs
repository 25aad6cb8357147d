//! Random operations at two ends.

use super::*;

/// For random sequences of operations of the two ends, no message should be lost or duplicated, and
/// each channel should end once.
#[test]
fn random_sequences() {
    for seed in 0..300_u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut draw = move |most: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) as usize % most
        };
        let (mut a, mut b) = pair();
        let mut open: Vec<ChannelId> = Vec::new();
        let (mut sent, mut got, mut closed) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut number = 0;
        for _ in 0..200 {
            let left = draw(2) == 0;
            let end = if left { &mut a } else { &mut b };
            match draw(6) {
                0 => open.push(end.open(ChannelOptions::new("x"))),
                1 if !open.is_empty() => end.channels.close(open[draw(open.len())]),
                2 | 3 if !open.is_empty() => {
                    let id = open[draw(open.len())];
                    number += 1;
                    // Fails if this end does not know the channel yet, or has closed it.
                    if end.channels.send(0, id, text(&number.to_string())).is_ok() {
                        sent.entry((id, !left))
                            .or_insert_with(Vec::new)
                            .push(number);
                    }
                }
                4 => end.pump(),
                _ => {
                    a.pump();
                    b.pump();
                    let (from, to) = if left {
                        (&mut a, &mut b)
                    } else {
                        (&mut b, &mut a)
                    };
                    carry(from, to);
                }
            }
            note(&mut a, true, &mut got, &mut closed);
            note(&mut b, false, &mut got, &mut closed);
        }
        for &id in &open {
            a.channels.close(id);
            b.channels.close(id);
        }
        exchange(&mut a, &mut b);
        note(&mut a, true, &mut got, &mut closed);
        note(&mut b, false, &mut got, &mut closed);
        for (key, got) in &got {
            let sent = &sent[key];
            // The received messages are a prefix of the sent ones: a reset by the receiver may cut
            // off the rest.
            assert!(
                sent.starts_with(got),
                "seed {seed}: {key:?} {sent:?} {got:?}"
            );
        }
        for end in [&a, &b] {
            assert!(
                end.channels.table.is_empty(),
                "seed {seed}: {:?}",
                end.channels.table
            );
            assert_eq!(end.channels.names, 0, "seed {seed}");
        }
        assert!(
            closed.values().all(|&count| count == 1),
            "seed {seed}: {closed:?}"
        );
    }
}

type Got = BTreeMap<(ChannelId, bool), Vec<i32>>;

fn note(end: &mut End, left: bool, got: &mut Got, closed: &mut BTreeMap<(ChannelId, bool), usize>) {
    for event in end.events() {
        match event {
            ChannelEvent::Message(id, Payload::Text(text)) => {
                got.entry((id, left))
                    .or_default()
                    .push(text.parse().unwrap());
            }
            ChannelEvent::Closed(id) => *closed.entry((id, left)).or_default() += 1,
            _ => {}
        }
    }
}

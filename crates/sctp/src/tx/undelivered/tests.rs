use super::*;
use anabranch_wire::serial::{Fsn, Mid, Ssn};

fn part(stream: u16, mid: u32, [beginning, ending]: [bool; 2], text: &'static str) -> Fragment {
    Fragment {
        stream,
        ssn: Ssn(0),
        mid: Mid(mid),
        fsn: Fsn(0),
        ppid: 7,
        unordered: false,
        beginning,
        ending,
        immediate: false,
        context: mid,
        user_data: Bytes::from_static(text.as_bytes()),
    }
}

const FIRST: [bool; 2] = [true, false];
const MIDDLE: [bool; 2] = [false, false];
const LAST: [bool; 2] = [false, true];
const WHOLE: [bool; 2] = [true, true];

const WHOLE_OF_SEVERAL: &[u8] = b"one message whole";

#[test]
fn a_message_of_several_chunks_is_kept_until_its_end_is_passed() {
    let mut payloads = FragmentedMessages::default();
    for (end, length) in [(2, 30), (5, 40), (9, 50)] {
        payloads.keep(Tsn(end), vec![0; length].into());
    }
    payloads.pass(Tsn(0), &part(0, 0, WHOLE, "whole"));
    payloads.pass(Tsn(1), &part(0, 1, FIRST, "a"));
    assert_eq!(payloads.kept(), [(2, 30), (5, 40), (9, 50)]);
    payloads.pass(Tsn(2), &part(0, 1, LAST, "b"));
    assert_eq!(payloads.kept(), [(5, 40), (9, 50)]);
    // A message that was abandoned before its last chunk was sent.
    payloads.pass(Tsn(4), &part(0, 2, LAST, ""));
    assert_eq!(payloads.kept(), [(5, 40), (9, 50)]);
    // Two messages are abandoned later; their data is released immediately.
    payloads.forget(Tsn(9));
    payloads.forget(Tsn(7));
    assert_eq!(payloads.kept(), [(5, 40), (9, 0)]);
    assert_eq!(payloads.take(Tsn(4)), Bytes::new());
    assert_eq!(payloads.take(Tsn(5)).len(), 40);
    payloads.pass(Tsn(9), &part(0, 3, LAST, ""));
    assert_eq!(payloads.kept(), []);
}

/// The first chunk of the first message has already been acknowledged.
#[test]
fn a_message_is_given_back_whole_and_once_whichever_of_its_chunks_are_left() {
    for interleaved in [false, true] {
        let (mut payloads, mut begun) = (FragmentedMessages::default(), Begun::default());
        payloads.keep(Tsn(4), Bytes::from_static(WHOLE_OF_SEVERAL));
        if interleaved {
            payloads.keep(Tsn(5), Bytes::from_static(b"another one"));
        }
        let mut add = |tsn, part| begun.add_sent(Tsn(tsn), part, &mut payloads);
        add(2, part(1, 4, MIDDLE, "message "));
        if interleaved {
            add(3, part(2, 9, FIRST, "another "));
        }
        add(4, part(1, 4, LAST, "whole"));
        if interleaved {
            add(5, part(2, 9, LAST, "one"));
        }
        add(6, part(1, 5, WHOLE, "next"));
        add(7, part(1, 6, FIRST, "given up on the way"));
        add(8, part(1, 7, FIRST, "not cut"));
        let rest = Bytes::from_static(b"not cut to its end");
        begun.add(part(1, 7, LAST, ""), rest);
        let all: Vec<_> = begun.into_messages().collect();
        let told: Vec<_> = all.iter().map(|it| (it.context, &it.payload[..])).collect();
        let mut expected = vec![
            (4, WHOLE_OF_SEVERAL),
            (5, b"next"),
            (7, b"not cut to its end"),
        ];
        if interleaved {
            expected.insert(1, (9, b"another one"));
        }
        assert_eq!(told, expected);
        assert!(all.iter().all(|it| it.sent && it.ppid == 7));
    }
}

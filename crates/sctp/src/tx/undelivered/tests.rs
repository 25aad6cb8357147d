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

#[test]
fn parts_are_kept_until_the_end_of_their_message_is_passed() {
    let mut passed = Passed::default();
    passed.pass(part(0, 0, WHOLE, "whole"));
    assert!(passed.parts.is_empty());
    passed.pass(part(0, 1, FIRST, "a"));
    passed.pass(part(0, 1, MIDDLE, "b"));
    assert_eq!(passed.parts, ["a", "b"]);
    passed.pass(part(0, 1, LAST, "c"));
    assert!(passed.parts.is_empty());
    for _ in 0..1_000 {
        passed.pass(part(0, 2, MIDDLE, "x"));
    }
    passed.pass(part(0, 2, LAST, "x"));
    assert!(passed.parts.capacity() <= 2 * KEPT);
}

#[test]
fn a_message_is_put_together_of_what_was_passed_and_what_was_not() {
    for interleaved in [false, true] {
        let (mut passed, mut begun) = (Passed::default(), AllBegun::default());
        passed.interleave(interleaved);
        passed.pass(part(1, 4, FIRST, "one "));
        begun.add(part(1, 4, MIDDLE, "message "), &mut passed);
        if interleaved {
            begun.add(part(2, 9, FIRST, "another "), &mut passed);
        }
        begun.add(part(1, 4, LAST, "whole"), &mut passed);
        if interleaved {
            begun.add(part(2, 9, LAST, "one"), &mut passed);
        }
        begun.add(part(1, 5, WHOLE, "next"), &mut passed);
        let all: Vec<_> = begun.all.into_iter().map(Begun::whole).collect();
        let told: Vec<_> = all.iter().map(|it| (it.context, &it.payload[..])).collect();
        let mut expected = vec![(4, &b"one message whole"[..]), (5, b"next")];
        if interleaved {
            expected.insert(1, (9, b"another one"));
        }
        assert_eq!(told, expected);
        assert!(all.iter().all(|it| it.sent && it.ppid == 7));
    }
}

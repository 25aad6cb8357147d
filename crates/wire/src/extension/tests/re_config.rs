//! Tests of RE-CONFIG: its parameters and their allowed combinations.

use super::*;

#[test]
fn re_config() {
    let one = |parameter| {
        Extension::ReConfig(ReConfig {
            parameters: TlvList::of(&[parameter]),
        })
    };
    is(
        one(ReConfigParameter::OutgoingSsnReset {
            request: 0x0102_0304,
            response: 0x0506_0708,
            last_tsn: Tsn(0x090A_0B0C),
            streams: U16List::of(&[1, 0x0203, 4]),
        }),
        &[
            0x82, 0, 0, 26, 0, 13, 0, 22, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 1, 2, 3, 0, 4,
            0, 0,
        ],
    );
    let request = 7;
    let outgoing = ReConfigParameter::OutgoingSsnReset {
        request,
        response: 6,
        last_tsn: Tsn(5),
        streams: U16List::default(),
    };
    let incoming = ReConfigParameter::IncomingSsnReset {
        request,
        streams: U16List::of(&[1]),
    };
    let all = ReConfigParameter::SsnTsnReset { request };
    let response = ReConfigParameter::Response {
        response: 1,
        result: ReConfigResult::InProgress,
        next_tsns: None,
    };
    let more_out = ReConfigParameter::AddOutgoingStreams { request, count: 2 };
    let more_in = ReConfigParameter::AddIncomingStreams { request, count: 2 };
    let every = [&outgoing, &incoming, &all, &response, &more_out, &more_in];
    let allowed = [(13, 14), (17, 18), (13, 16), (16, 16)];
    for first in every {
        let alone = ReConfig {
            parameters: TlvList::of(std::slice::from_ref(first)),
        };
        assert_eq!(alone.combination(), Ok((first.clone(), None)));
        for second in every {
            let pair = [first.clone(), second.clone()];
            let both = ReConfig {
                parameters: TlvList::of(&pair),
            };
            let (low, high) = (
                first.kind().min(second.kind()),
                first.kind().max(second.kind()),
            );
            let expected = if allowed.contains(&(low, high)) {
                Ok((first.clone(), Some(second.clone())))
            } else {
                Err(Combination::Pair {
                    first: first.kind(),
                    second: second.kind(),
                })
            };
            assert_eq!(both.combination(), expected, "{first:?} {second:?}");
        }
    }
    let of = |list: &[ReConfigParameter]| ReConfig {
        parameters: TlvList::of(list),
    };
    assert_eq!(of(&[]).combination(), Err(Combination::Empty));
    let three = vec![response; 3];
    assert_eq!(of(&three).combination(), Err(Combination::TooMany));
    let cut = ReConfig::decode(raw(&[0x82, 0, 0, 12, 0, 15, 0, 9, 0, 0, 0, 1]));
    let past = TlvError::PastEnd {
        kind: 15,
        length: 9,
        remaining: 8,
    };
    assert_eq!(cut.combination(), Err(Combination::Malformed(past)));
}

#[test]
fn re_config_parameters() {
    is_item(
        ReConfigParameter::IncomingSsnReset {
            request: 0x0102_0304,
            streams: U16List::of(&[0x0506]),
        },
        &[0, 14, 0, 10, 1, 2, 3, 4, 5, 6],
    );
    is_item(
        ReConfigParameter::SsnTsnReset {
            request: 0x0102_0304,
        },
        &[0, 15, 0, 8, 1, 2, 3, 4],
    );
    for (number, result) in (0..8).map(|number| (number, ReConfigResult::of(number))) {
        assert_eq!(result.number(), number);
        assert_eq!(matches!(result, ReConfigResult::Unknown(_)), number == 7);
    }
    is_item(
        ReConfigParameter::Response {
            response: 0x0102_0304,
            result: ReConfigResult::Performed,
            next_tsns: None,
        },
        &[0, 16, 0, 12, 1, 2, 3, 4, 0, 0, 0, 1],
    );
    is_item(
        ReConfigParameter::Response {
            response: 0x0102_0304,
            result: ReConfigResult::Unknown(0xFF),
            next_tsns: Some((Tsn(0x0506_0708), Tsn(0x090A_0B0C))),
        },
        &[
            0, 16, 0, 20, 1, 2, 3, 4, 0, 0, 0, 0xFF, 5, 6, 7, 8, 9, 10, 11, 12,
        ],
    );
    is_item(
        ReConfigParameter::AddOutgoingStreams {
            request: 0x0102_0304,
            count: 0x0506,
        },
        &[0, 17, 0, 12, 1, 2, 3, 4, 5, 6, 0, 0],
    );
    is_item(
        ReConfigParameter::AddIncomingStreams {
            request: 0x0102_0304,
            count: 0x0506,
        },
        &[0, 18, 0, 12, 1, 2, 3, 4, 5, 6, 0, 0],
    );
    is_item(
        ReConfigParameter::Unknown(Tlv::new(99, b"?").unwrap()),
        &[0, 99, 0, 5, b'?'],
    );
}

#[test]
fn re_config_parameters_of_wrong_length() {
    type P = ReConfigParameter;
    // These values end within a stream number or within the fixed part, or contain only one of the
    // two TSNs.
    assert_eq!(
        refused::<P>(&[0, 13, 0, 17, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0]),
        of_length(13, 17)
    );
    assert_eq!(
        refused::<P>(&[0, 13, 0, 12, 0, 0, 0, 1, 0, 0, 0, 1]),
        of_length(13, 12)
    );
    assert_eq!(
        refused::<P>(&[0, 14, 0, 9, 0, 0, 0, 1, 0]),
        of_length(14, 9)
    );
    assert_eq!(refused::<P>(&[0, 14, 0, 6, 0, 0]), of_length(14, 6));
    assert_eq!(refused::<P>(&[0, 15, 0, 4]), of_length(15, 4));
    assert_eq!(
        refused::<P>(&[0, 15, 0, 10, 0, 0, 0, 0, 0, 1]),
        of_length(15, 10)
    );
    assert_eq!(
        refused::<P>(&[0, 16, 0, 16, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9]),
        of_length(16, 16)
    );
    assert_eq!(refused::<P>(&[0, 16, 0, 8, 0, 0, 0, 1]), of_length(16, 8));
    assert_eq!(
        refused::<P>(&[0, 17, 0, 10, 0, 0, 0, 1, 0, 1]),
        of_length(17, 10)
    );
    assert_eq!(refused::<P>(&[0, 18, 0, 8, 0, 0, 0, 1]), of_length(18, 8));
}

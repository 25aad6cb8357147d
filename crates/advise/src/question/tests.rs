use super::*;
use crate::trials::Unwatched;

fn geo() -> Question {
    Question::new(Span(560 * MILLISECOND), Rate(10_000_000), Probability(0.01))
}

#[test]
fn what_is_left_out_follows_the_path() {
    let question = geo().checked().expect("sensible");
    // 10 Mbit/s x 0.56 s = 700 000 bytes = 466.7 packets.
    assert_eq!(question.bandwidth_delay(), 700_000);
    assert_eq!(question.queue(), Amount::Packets(467));
    assert_eq!(question.message(), 1452);
    assert_eq!(question.least_buffer(), 1500);
    // 1 s + 20 x 0.56 s = 12.2 s; 400 x 0.56 s = 224 s.
    assert_eq!(
        question.timing(),
        Timing {
            begin: Span(12_200 * MILLISECOND),
            end: Span(236_200 * MILLISECOND)
        }
    );
}

#[test]
fn a_dear_path_is_measured_for_less_time() {
    let timed = |rate, rtt| {
        let mut question = Question::new(Span(rtt), Rate(rate), Probability(0.0));
        question.profiles.truncate(1);
        question.congestion.truncate(1);
        let timed = crate::timed(question.clone(), 1, &Unwatched).expect("it runs");
        assert_eq!(question.duration, None);
        (timed.duration, question)
    };
    // A packet or two in a round trip: a run costs next to nothing.
    let (slow, question) = timed(64_000, 100 * MILLISECOND);
    assert_eq!(slow, Some(question.most_measured()));
    // 83 000 packets in a second, and a SACK for every second of them.
    let (fast, question) = timed(1_000_000_000, 20 * MILLISECOND);
    assert_eq!(fast, Some(question.least_measured()));
    let (between, question) = timed(20_000_000, 20 * MILLISECOND);
    assert!(
        between > Some(question.least_measured()) && between < Some(question.most_measured()),
        "{between:?}"
    );
}

#[test]
fn what_is_measured_of_a_run_has_bounds() {
    let mut question = geo();
    let bounds = |question: &Question| {
        let seconds = |span: Span| span.0 / SECOND;
        (
            seconds(question.least_measured()),
            seconds(question.most_measured()),
        )
    };
    assert_eq!(bounds(&question), (5, 224));
    question.rtt = Span(MILLISECOND);
    assert_eq!(bounds(&question), (1, 20));
    question.rtt = Span(60 * MILLISECOND);
    assert_eq!(bounds(&question), (3, 24));
    question.rtt = Span(2 * SECOND);
    assert_eq!(bounds(&question), (5, 400));
    question.duration = Some(Span(40 * SECOND));
    let timing = question.timing();
    assert_eq!(timing.end.0 - timing.begin.0, 40 * SECOND);
}

#[test]
fn a_large_message_wants_room_with_its_chunk_headers() {
    let question = Question {
        message: Some(Size(4000)),
        ..geo()
    };
    // Three chunks: 1452 + 1452 + 1096.
    assert_eq!(question.least_buffer(), 4000 + 3 * 16);
}

#[test]
fn streams_are_put_in_order() {
    let question = Question {
        streams: vec![8, 1, 8, 2],
        ..geo()
    }
    .checked()
    .expect("sensible");
    assert_eq!(question.streams, [1, 2, 8]);
}

#[test]
fn candidates_stand_in_the_order_of_preference() {
    let names: Vec<String> = geo().controls().iter().map(Control::to_string).collect();
    assert_eq!(names.len(), 9);
    assert_eq!(
        names[..4],
        [
            "rfc9260 sctp",
            "rfc9260 westwood",
            "rfc9260 binomial",
            "rfc4960 sctp"
        ]
    );
}

#[test]
fn nonsense_is_refused_with_what_is_allowed() {
    let wrong = [
        (
            Question {
                rtt: Span(0),
                ..geo()
            },
            "rtt",
        ),
        (
            Question {
                rate: Rate(1),
                ..geo()
            },
            "rate",
        ),
        (
            Question {
                loss: Probability(0.6),
                ..geo()
            },
            "loss",
        ),
        (
            Question {
                share: 1.0,
                ..geo()
            },
            "goodput",
        ),
        (
            Question {
                mtu: Size(100),
                ..geo()
            },
            "mtu",
        ),
        (
            Question {
                message: Some(Size(0)),
                ..geo()
            },
            "message",
        ),
        (
            Question {
                queue: Some(Amount::Bytes(100)),
                ..geo()
            },
            "queue",
        ),
        (
            Question {
                streams: vec![0, 1],
                ..geo()
            },
            "streams",
        ),
        (
            Question {
                streams: vec![],
                ..geo()
            },
            "streams",
        ),
        (
            Question {
                duration: Some(Span(0)),
                ..geo()
            },
            "duration",
        ),
        (
            Question {
                profiles: vec![],
                ..geo()
            },
            "profile",
        ),
    ];
    for (question, key) in wrong {
        let message = question.checked().expect_err(key).to_string();
        assert!(message.starts_with(key), "{key}: {message}");
        assert!(message.contains("found"), "{message}");
    }
    let question = Question {
        congestion: vec!["westwod".to_owned()],
        ..geo()
    };
    let message = question.checked().expect_err("no such name").to_string();
    assert!(message.ends_with("did you mean `westwood`?"), "{message}");
}

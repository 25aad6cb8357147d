use super::*;
use crate::executor::{NoProgress, TrialExecutor};

/// The ranking, and the question for the first candidate alone.
fn own(question: &Question) -> (crate::Ranking, Question) {
    let executor = TrialExecutor {
        jobs: 2,
        runner: &anabranch_lab::run::Simulator::default(),
        progress: &NoProgress,
    };
    let ranking = crate::ranking(question, executor).expect("it runs");
    let (own, _) = ranking.question(question, 0, executor).expect("it runs");
    (ranking, own)
}

fn geo() -> Question {
    Question::new(
        TimeSpan(560 * MILLISECOND),
        Rate(10_000_000),
        Probability(0.01),
    )
}

#[test]
fn omitted_values_are_derived_from_the_path() {
    let question = geo().checked().expect("sensible");
    // The bandwidth-delay product: 10 Mbit/s x 0.56 s = 700 000 bytes = 466.7 packets.
    assert_eq!(question.bandwidth_delay(), 700_000);
    assert_eq!(question.queue(), Capacity::Packets(467));
    assert_eq!(question.message_size(), 1452);
    assert_eq!(question.least_buffer(), 1500);
    // The warm-up is 1 s + 20 x 0.56 s = 12.2 s, and the measurement 400 x 0.56 s = 224 s.
    assert_eq!(
        question.timing(),
        RunTimes {
            begin: TimeSpan(12_200 * MILLISECOND),
            end: TimeSpan(236_200 * MILLISECOND)
        }
    );
}

#[test]
fn a_dear_path_is_measured_for_less_time() {
    let timed = |rate, rtt| {
        let mut question = Question::new(TimeSpan(rtt), Rate(rate), Probability(0.0));
        question.congestion.truncate(1);
        let (ranking, own) = own(&question);
        assert_eq!((ranking.better, question.duration), (None, None));
        let measured = own.duration.expect("chosen");
        assert!(measured >= own.begin, "no less counts than is left out");
        (measured.0, question)
    };
    // A run has only one or two packets per round trip, so it is cheap and has the maximum
    // duration.
    let (slow, question) = timed(64_000, 100 * MILLISECOND);
    assert_eq!(slow, question.most_measured().0);
    // A run has 80 packets per millisecond, and a SACK for every second packet.
    let (fast, question) = timed(1_000_000_000, MILLISECOND);
    let least = question.least_measured().0;
    assert!((least..=least * 11 / 10).contains(&fast), "{fast}");
    let (between, question) = timed(20_000_000, 20 * MILLISECOND);
    let (least, most) = (question.least_measured().0, question.most_measured().0);
    assert!(between > least && between < most, "{between}");
}

#[test]
fn a_path_with_scarce_losses_is_measured_until_there_are_enough() {
    let mut question = Question::new(
        TimeSpan(40 * MILLISECOND),
        Rate(20_000_000),
        Probability(0.001),
    );
    question.congestion.truncate(1);
    let (ranking, own) = own(&question);
    assert_eq!(own.scale, 1);
    let packets = ranking.candidates[0].1.mean / 8.0 / own.message_size() as f64;
    let losses = packets * 0.001 * own.duration.expect("chosen").seconds();
    assert!((55.0..65.0).contains(&losses), "{losses}");
}

#[test]
fn a_large_window_is_simulated_at_a_smaller_scale() {
    // The bandwidth-delay product of 10 Gbit/s x 90 ms is 75 000 packets of 1500 bytes.
    let mut question = Question::new(
        TimeSpan(90 * MILLISECOND),
        Rate(10_000_000_000),
        Probability(1e-5),
    );
    // The window alone would allow a scale of 1/1172. The loss probability grows with the square of
    // the factor and may reach only 0.2 %, 200 times its value, which limits the scale to 1/14.
    assert_eq!(question.scale_for(75_000.0), 14);
    assert_eq!(question.scale_for(640.0), 10);
    assert_eq!(question.scale_for(256.0), 1);
    question.scale = 10;
    assert_eq!(question.simulated_rate(), Rate(1_000_000_000));
    assert!((question.simulated_loss().0 - 1e-3).abs() < 1e-12);
    assert_eq!(question.simulated_queue(), Capacity::Packets(7500));
    assert_eq!(question.simulated_buffer(Some(1 << 20)), Size(104_857));
    assert!(
        question.buffers()[0] >= 15_000,
        "a packet in the smaller path"
    );
    question.loss = Probability(0.0);
    assert_eq!(question.scale_for(75_000.0), 1171);
}

#[test]
fn the_measured_time_of_a_run_is_bounded() {
    let mut question = geo();
    let bounds = |question: &Question| {
        let seconds = |span: TimeSpan| span.0 / SECOND;
        (
            seconds(question.least_measured()),
            seconds(question.most_measured()),
        )
    };
    assert_eq!(bounds(&question), (5, 224));
    question.rtt = TimeSpan(MILLISECOND);
    assert_eq!(bounds(&question), (1, 20));
    question.rtt = TimeSpan(60 * MILLISECOND);
    assert_eq!(bounds(&question), (3, 24));
    question.rtt = TimeSpan(2 * SECOND);
    assert_eq!(bounds(&question), (5, 400));
    question.duration = Some(TimeSpan(40 * SECOND));
    let timing = question.timing();
    assert_eq!(timing.end.0 - timing.begin.0, 40 * SECOND);
}

#[test]
fn a_large_message_wants_space_with_its_chunk_headers() {
    let question = Question {
        message_size: Some(Size(4000)),
        ..geo()
    };
    // A message of 4000 bytes has three chunks: 1452 + 1452 + 1096 bytes.
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
    let question = Question {
        profiles: vec!["rfc9260".to_owned(), "rfc4960".to_owned()],
        ..geo()
    };
    let names: Vec<String> = question
        .controls()
        .iter()
        .map(CandidateSender::to_string)
        .collect();
    assert_eq!(names.len(), 12);
    assert_eq!(
        names[..7],
        [
            "rfc9260 sctp",
            "rfc9260 sctp rack",
            "rfc9260 westwood",
            "rfc9260 binomial",
            "rfc9260 cubic rack",
            "rfc9260 bbr rack",
            "rfc4960 sctp"
        ]
    );
    // Congestion controls that are named have the standard recovery, or else the recoveries that
    // are named.
    let of = |congestion: &[&str], recovery: &[&str]| {
        let question = geo().with(|it| {
            it.congestion = congestion.iter().map(|&name| name.to_owned()).collect();
            it.recovery = recovery.iter().map(|&name| name.to_owned()).collect();
        });
        let names = question
            .controls()
            .iter()
            .map(CandidateSender::to_string)
            .collect();
        let names: Vec<String> = names;
        names
    };
    let named = |recovery: &[&str]| of(&["cubic", "sctp"], recovery);
    // The recovery `paced` has no effect on an algorithm that paces itself.
    assert_eq!(of(&["bbr"], &["paced"]), ["rfc9260 bbr rack"]);
    assert_eq!(of(&["bbr"], &["rack", "paced"]), ["rfc9260 bbr rack"]);
    assert_eq!(named(&[]), ["rfc9260 cubic", "rfc9260 sctp"]);
    assert_eq!(
        named(&["standard", "paced"]),
        [
            "rfc9260 cubic",
            "rfc9260 cubic paced",
            "rfc9260 sctp",
            "rfc9260 sctp paced"
        ]
    );
}

#[test]
fn time_dependent_controls_are_simulated_at_full_size_or_refused() {
    let large = |name: Option<&str>| {
        let fast = Question::new(
            TimeSpan(90 * MILLISECOND),
            Rate(10_000_000_000),
            Probability(1e-5),
        );
        let asked = fast.with(|it| {
            if let Some(name) = name {
                it.congestion = vec![name.to_owned()];
            }
        });
        asked.checked()
    };
    // In the shortest run of 1 s + 20 x 90 ms + 4.5 s = 7.3 s, 10 Gbit/s are 6.08 million packets.
    let usual = large(None).expect("others are tried");
    assert_eq!(usual.congestion, ["sctp", "westwood", "binomial"]);
    assert_eq!(usual.left_out, ["cubic", "bbr"]);
    let message = large(Some("bbr")).expect_err("too large").to_string();
    assert!(
        message.starts_with("congestion: found \"bbr\" on a path of 6083333 packets"),
        "{message}"
    );
    for name in ["cubic", "bbr1", "vegas", "veno"] {
        large(Some(name)).expect_err(name);
    }
    large(Some("westwood")).expect("simulated at a smaller scale");
    let discipline = geo().with(|it| it.rate = Rate(10_000_000_000));
    let discipline = discipline.with(|it| it.qdisc = "codel".to_owned());
    let message = discipline.checked().expect_err("too large").to_string();
    assert!(message.starts_with("qdisc: found \"codel\""), "{message}");
    // CUBIC is simulated at full size, even if other candidates are scaled.
    let small = Question {
        scale: 4,
        ..geo().checked().expect("sensible")
    };
    let scales = small.controls().into_iter();
    let scales = scales.map(|control| small.scale_of(&control));
    assert_eq!(scales.collect::<Vec<_>>(), [4, 4, 4, 4, 1, 1]);
}

#[test]
fn a_discipline_is_written_with_what_the_path_says() {
    let names = discipline::names();
    for name in ["drop-tail", "codel", "fq-codel", "pie", "red", "dualpi2"] {
        assert!(names.contains(&name), "{name} of {names:?}");
    }
    let written = |name: &str| {
        let table = discipline::table(geo().link(), name);
        serde_json::to_value(&table).expect("a table")
    };
    assert_eq!(written("codel")["limit"], "467 packets");
    assert_eq!(written("fq-codel")["limit"], 467);
    // The transmission time of 1500 B at 10 Mbit/s.
    assert_eq!(written("red")["packet_time"], "1200 us");
}

#[test]
fn a_path_over_satellites_has_its_round_trip_time() {
    let over = |from: &str, to: &str| {
        Question::over(
            Satellites::new(from, to),
            Rate(20_000_000),
            Probability(0.0),
        )
    };
    let question = over("40.7,-74.0", "51.5,-0.1").expect("a path");
    // The great circle has a length of 5570 km, so the round-trip time of light is 37.2 ms. The
    // satellite path takes less than twice that time.
    let rtt = question.rtt.seconds() * 1e3;
    assert!((37.2..75.0).contains(&rtt), "{rtt} ms");
    assert_eq!(question.least_measured(), TimeSpan(60 * SECOND));
    assert!(question.most_measured() >= question.least_measured());
    let refused = |from: &str, to: &str| over(from, to).expect_err("refused").to_string();
    assert!(refused("40.7", "51.5,-0.1").starts_with("from: "));
    assert!(refused("40.7,-74.0", "91,0").starts_with("to: "));
    // A shell with an inclination of 53 degrees does not cover the pole.
    assert!(refused("90,0", "51.5,-0.1").contains("no path over starlink-1"));
    let mut slow = Satellites::new("40.7,-74.0", "51.5,-0.1");
    slow.handover = TimeSpan(15 * SECOND);
    let slow = Question::over(slow, Rate(1_000_000), Probability(0.0));
    assert!(slow.is_err_and(|error| error.to_string().starts_with("handover: found 15 s")));
    let mut other = Satellites::new("40.7,-74.0", "51.5,-0.1");
    other.shell = "starlink-0".to_owned();
    assert!(other.rtt().is_err_and(|refused| refused.key == "shell"));
}

#[test]
fn nonsense_is_refused_with_what_is_allowed() {
    let wrong = [
        (
            Question {
                rtt: TimeSpan(0),
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
                message_size: Some(Size(0)),
                ..geo()
            },
            "message_size",
        ),
        (
            Question {
                queue: Some(Capacity::Bytes(100)),
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
                duration: Some(TimeSpan(0)),
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

#[test]
fn a_sender_is_of_the_standard_by_what_it_is() {
    let is = |profile: &str, congestion: &str| {
        let control = CandidateSender {
            profile: profile.to_owned(),
            congestion: congestion.to_owned(),
            recovery: "standard".to_owned(),
        };
        control.is_standard()
    };
    assert!(is("rfc9260", "sctp") && is("rfc2960", "sctp"));
    assert!(!is("rfc9260", "westwood") && !is("rfc9260", "binomial"));
    assert!(!is("ns2", "sctp"), "the module of another program");
    assert!(!is("nobody", "sctp") && !is("rfc9260", "nobody"));
}

#[test]
fn a_window_fills_link_and_queue_by_a_packet_a_round_trip() {
    // The bandwidth-delay product is 30 Mbit/s x 60 ms = 225000 B = 150 packets of 1500 B, and the
    // queue has the same size: 300 round trips.
    let question = Question::new(TimeSpan(60_000_000), Rate(30_000_000), Probability(0.005));
    assert_eq!(question.filling(), TimeSpan(18_000_000_000));
}

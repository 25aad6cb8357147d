use anabranch_congestion::careful_resume::ResumeParameters;
use anabranch_congestion::tcp_newreno::{Growth, HalvingBasis, TcpNewReno, TcpNewRenoConfig};
use anabranch_congestion::{AckSample, CongestionControl, Delivery};
use anabranch_transport::time::MILLISECOND;

use super::*;

const PATH: Path = Path::new(
    IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
    IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
);

fn at(seconds: Nanos) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(unix_time()) + Duration::from_secs(seconds)
}

fn saved(expires: SystemTime) -> SavedPath {
    SavedPath {
        local: PATH.local,
        remote: PATH.remote,
        cwnd: 250_000,
        rtt: Duration::from_millis(600),
        expires,
    }
}

/// A controller with a window of 10 segments.
fn controller() -> CarefulResume {
    let inner = Box::new(TcpNewReno::new(TcpNewRenoConfig {
        segment: 1_000,
        initial_window: 10.0,
        initial_ssthresh: f64::INFINITY,
        restart_window: None,
        growth: Growth::PerAck,
        halving_basis: HalvingBasis::FlightSize,
        integer_halving: false,
        cwnd_floor: true,
        whole_segments: true,
    }));
    CarefulResume::new(inner, 1_000, ResumeParameters::default())
}

/// An acknowledgement of a full window after an RTT of 100 ms, at a rate of 1 MB/s.
fn ack(now: Nanos) -> AckSample {
    AckSample {
        now,
        bytes_acked: 10_000,
        segments_acked: 10,
        cumulative_advanced: true,
        flightsize_before: 10_000,
        latest_rtt: Some(100 * MILLISECOND),
        delivery: Some(Delivery {
            rate: 1e6,
            span: 100 * MILLISECOND,
            app_limited: false,
        }),
        ..AckSample::default()
    }
}

#[test]
fn a_text_has_five_words() {
    let line = "192.0.2.1 2001:db8::7 250000 600000000 1798761600";
    let path: SavedPath = line.parse().expect("five words");
    assert_eq!(path.rtt, Duration::from_millis(600));
    assert_eq!(
        path.expires,
        UNIX_EPOCH + Duration::from_secs(1_798_761_600)
    );
    assert_eq!(path.to_string(), line);
    for (text, words) in [
        ("192.0.2.1", "the line of a saved path: found \"192.0.2.1\""),
        ("here ::1 1 1 1", "LOCAL of a saved path: found \"here\""),
        ("::1 there 1 1 1", "REMOTE of a saved path: found \"there\""),
        ("::1 ::1 0 1 1", "CWND of a saved path: found \"0\""),
        ("::1 ::1 1 -1 1", "RTT of a saved path: found \"-1\""),
        ("::1 ::1 1 1 10000000000", "EXPIRES of a saved path"),
    ] {
        let error = text.parse::<SavedPath>().expect_err(text).to_string();
        assert!(error.starts_with(words), "{error}");
    }
}

#[test]
fn stored_sets_expire() {
    let cache = ResumeCache::new(Duration::from_secs(1_000_000), 2);
    assert!(!cache.insert(saved(at(0))), "it has just expired");
    assert_eq!(cache.saved_paths(), []);
    let later = saved(at(100_000));
    assert!(cache.insert(later));
    assert_eq!(cache.saved_paths(), [later]);
    // The expiry time is far in the future, as if the clock was wrong when the set was stored.
    assert!(cache.insert(saved(at(1 << 31))));
    let limit = at(1_000_000);
    assert!(cache.saved_paths().iter().all(|it| it.expires <= limit));
    cache.clear();
    assert_eq!(cache.saved_paths(), []);
}

#[test]
fn an_observation_is_saved() {
    let cache = ResumeCache::default();
    let mut control = controller();
    control.on_sent(0, 10_000, 10_000);
    observe_path(&cache, PATH, &control, &mut false);
    assert_eq!(cache.saved_paths(), [], "nothing was measured");
    control.on_ack(&ack(100 * MILLISECOND));
    observe_path(&cache, PATH, &control, &mut false);
    // The capacity is 1 MB/s for 100 ms.
    let all = cache.saved_paths();
    let [path] = &all[..] else { panic!("{all:?}") };
    assert_eq!((path.local, path.remote), (PATH.local, PATH.remote));
    assert_eq!((path.cwnd, path.rtt), (100_000, Duration::from_millis(100)));
}

/// With a saved RTT of 600 ms and a measured RTT of 100 ms the set is not used. It is kept, because
/// a later association may measure about the saved RTT again. A set that has expired before the
/// jump is deleted.
#[test]
fn a_wrong_set_is_deleted() {
    for (expires, left) in [(u64::MAX, 1), (0, 0)] {
        let cache = ResumeCache::default();
        assert!(cache.insert(saved(at(1_000))));
        let taken = cache.lock().take(unix_time(), &PATH).expect("inserted");
        let mut control = controller();
        assert!(control.resume(SavedParameters { expires, ..taken }));
        control.on_sent(0, 10_000, 10_000);
        let mut used = true;
        let slow = ack(100 * MILLISECOND);
        control.on_ack(&AckSample {
            delivery: None,
            ..slow
        });
        assert_eq!(control.phase(), ResumePhase::Normal);
        observe_path(&cache, PATH, &control, &mut used);
        assert_eq!((cache.saved_paths().len(), used), (left, left == 1));
    }
}

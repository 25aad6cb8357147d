//! Changes of settings while an association is established.

use crate::common;

use std::net::IpAddr;
use std::time::Duration;

use anabranch_net::{Config, DynamicSettingError, SendOptions};
use common::{LOOPBACK, bounded, pair, without_timers};

/// Settings have the names, values and errors of the protocol core.
#[test]
fn settings_of_a_living_association_are_read_changed_and_refused() {
    bounded(async {
        let (client, _server) = pair(without_timers(Config::default())).await;
        let settings = client.settings().expect("up");
        let changed = settings.with(|it| (it.sack_frequency, it.max_burst) = (4, 8));
        client.set_settings(changed).expect("in range");
        assert_eq!(client.settings(), Some(changed));
        let bad = settings.with(|it| it.sack_frequency = 0);
        let error = client.set_settings(bad).expect_err("out of range");
        assert_eq!(
            error.to_string(),
            "sack_frequency: found 0; allowed: 1 to 100"
        );
        assert_eq!(client.settings(), Some(changed));

        let path = client.path_settings(LOOPBACK).expect("its path");
        let changed = path.with(|it| it.heartbeat_interval = Some(Duration::from_secs(5)));
        let done = client.set_path_settings(Some(LOOPBACK), changed);
        done.expect("in range");
        assert_eq!(client.path_settings(LOOPBACK), Some(changed));
        let other: IpAddr = [127, 0, 0, 9].into();
        let error = client.set_path_settings(Some(other), path);
        assert_eq!(error, Err(DynamicSettingError::NoSuchPath(other)));
        assert_eq!(client.path_settings(other), None);

        client.set_stream_value(9, 3).expect("ten streams");
        assert_eq!(client.stream_value(9), Some(3));
        let error = client.set_stream_value(10, 3);
        let (stream, most) = (10, 9);
        assert_eq!(
            error,
            Err(DynamicSettingError::NoSuchStream { stream, most })
        );
        assert_eq!(client.stream_value(10), None);
    });
}

/// A message without a policy gets the default policy, unless it is sent as reliable.
#[test]
fn messages_have_the_policies_of_the_defaults() {
    bounded(async {
        let config = Config::default().with(|it| it.sctp.partial_reliability = true);
        let (client, server) = pair(without_timers(config)).await;
        let settings = client.settings().expect("up");
        let brief = settings.with(|it| it.send_defaults = brief(it.send_defaults));
        client.set_settings(brief).expect("in range");
        assert_eq!(client.settings(), Some(brief));
        let bad = brief.with(|it| it.sack_frequency = 0);
        let bad = bad.with(|it| it.send_defaults = settings.send_defaults);
        client.set_settings(bad).expect_err("out of range");
        assert_eq!(client.settings(), Some(brief), "nothing changes");
        server.shutdown().await.expect("graceful");
        // The server aborts first, and the client is notified.
        client.closed().await;
        assert_eq!(client.set_settings(brief), Err(DynamicSettingError::Closed));
    });
}

fn brief(defaults: SendOptions) -> SendOptions {
    defaults.with_max_retransmits(Some(3))
}

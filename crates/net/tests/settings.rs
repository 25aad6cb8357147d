//! What is changed while an association is up.

use crate::common;

use std::net::IpAddr;

use anabranch_net::{Config, RuntimeError};
use common::{LOOPBACK, bounded, pair, without_timers};

/// The settings of the core, under their names, and its errors.
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
        let changed = path.with(|it| it.heartbeat_interval = Some(5_000_000_000));
        let done = client.set_path_settings(Some(LOOPBACK), changed);
        done.expect("in range");
        assert_eq!(client.path_settings(LOOPBACK), Some(changed));
        let other: IpAddr = [127, 0, 0, 9].into();
        let error = client.set_path_settings(Some(other), path);
        assert_eq!(error, Err(RuntimeError::NoSuchPath(other)));
        assert_eq!(client.path_settings(other), None);

        client.set_stream_value(9, 3).expect("ten streams");
        assert_eq!(client.stream_value(9), Some(3));
        let error = client.set_stream_value(10, 3);
        let (stream, most) = (10, 9);
        assert_eq!(error, Err(RuntimeError::NoSuchStream { stream, most }));
        assert_eq!(client.stream_value(10), None);
    });
}

#[test]
fn what_nothing_else_is_said_of_goes_as_the_defaults_say() {
    bounded(async {
        let (client, server) = pair(without_timers(Config::default())).await;
        let defaults = client.send_defaults().expect("up").with(|it| {
            it.stream = 4;
            it.options = it.options.with_ppid(51).with_unordered(true);
        });
        client.set_send_defaults(defaults).expect("in range");
        client.send_default("as ever").await.expect("open");
        let message = server.recv().await.expect("open").expect("a message");
        assert_eq!(
            (message.stream, message.ppid, message.unordered),
            (4, 51, true)
        );
        assert_eq!(&message.bytes[..], b"as ever");
        server.shutdown().await.expect("graceful");
        // The server ends first, and tells the client.
        client.closed().await;
        let error = client.set_send_defaults(defaults);
        assert_eq!(error, Err(RuntimeError::Closed));
    });
}

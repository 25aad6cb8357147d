//! Errors of failed attempts, by the state that the handshake reached.

use crate::common;

use std::time::Duration;

use anabranch_net::{
    Association, AssociationError, CloseReason, Config, ConnectError, ConnectOptions, Endpoint,
    Peer,
};
use common::{HANGS, LOOPBACK, bounded, without_timers};

/// Repeats an attempt with a growing timeout, starting at `first`, until the handshake reaches
/// COOKIE-ECHOED, because on a busy machine the peer may answer the INIT late.
async fn as_far_as_it_goes<F>(first: Duration, attempt: impl Fn(Duration) -> F) -> ConnectError
where
    F: Future<Output = Result<Association, ConnectError>>,
{
    let mut patience = first;
    loop {
        let error = attempt(patience)
            .await
            .map(drop)
            .expect_err("no COOKIE ACK");
        if error != ConnectError::Association(AssociationError(CloseReason::NoAnswer)) {
            return error;
        }
        patience *= 2;
    }
}

/// A relay between a client and the endpoint at `port` that drops COOKIE ECHOs; returns its port.
fn cookie_thief(port: u16) -> u16 {
    const COOKIE_ECHO: u8 = 10;
    let [front, back] = [0, 1].map(|_| std::net::UdpSocket::bind((LOOPBACK, 0)).expect("loopback"));
    back.connect((LOOPBACK, port)).expect("loopback");
    let own = front.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        let mut packet = [0; 65_536];
        while let Ok((length, client)) = front.recv_from(&mut packet) {
            if packet[12] == COOKIE_ECHO {
                continue;
            }
            let _ = back.send(&packet[..length]);
            // Answers an INIT; ignores other packets of the client.
            if packet[12] == 1
                && let Ok(length) = back.recv(&mut packet)
            {
                let _ = front.send_to(&packet[..length], client);
            }
        }
    });
    own
}

#[test]
fn an_attempt_reports_how_far_it_came() {
    bounded(async {
        let mut config = Config::default().with(|it| it.addresses = vec![LOOPBACK]);
        let silent = std::net::UdpSocket::bind((LOOPBACK, 0)).expect("loopback");
        let silent_port = silent.local_addr().expect("bound").port();
        let server = Endpoint::bind(config.clone().with(|it| it.accept = true)).expect("loopback");
        let deaf = cookie_thief(server.udp_port());
        // Attempts of the endpoint `patient` are limited only by the caller's timeout, and attempts
        // of the endpoints that `quick` returns only by Max.Init.Retransmits.
        let patient = Endpoint::bind(without_timers(config.clone())).expect("loopback");
        config.sctp.max_init_retransmits = 3;
        let quick = |rto: Duration| {
            let rto = rto.as_nanos() as u64;
            let config = config.clone().with(|it| {
                it.sctp.profile.rto_initial.0 = rto;
                (it.sctp.rto_min, it.sctp.rto_max) = (rto, rto);
            });
            Endpoint::bind(config).expect("loopback")
        };
        let at = |port| Peer::from((LOOPBACK, server.port())).over_udp(port);
        let within = |port, limit| {
            patient.connect_with(at(port), ConnectOptions::default().with_timeout(limit))
        };
        let in_vain = |port, rto| async move { quick(rto).connect(at(port)).await };
        let (limit, rto) = (Duration::from_millis(300), Duration::from_millis(20));
        let unanswered = Err(ConnectError::Association(AssociationError(
            CloseReason::NoAnswer,
        )));
        assert_eq!(within(silent_port, limit).await.map(drop), unanswered);
        assert_eq!(in_vain(silent_port, rto).await.map(drop), unanswered);
        let unheard = ConnectError::Association(AssociationError(CloseReason::NoCookieAck));
        let slow = as_far_as_it_goes(limit, |limit| within(deaf, limit)).await;
        assert_eq!(slow, unheard);
        let slow = as_far_as_it_goes(rto, |rto| in_vain(deaf, rto)).await;
        assert_eq!(slow, unheard);
        patient.wait_idle().await;
        let straight = Peer::from((LOOPBACK, server.port())).over_udp(server.udp_port());
        let up = patient.connect_with(straight, ConnectOptions::default().with_timeout(HANGS));
        up.await.expect("it listens");
    });
}

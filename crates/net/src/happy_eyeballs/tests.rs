//! Tests with attempts that only sleep, in virtual time.

use std::cell::RefCell;
use std::collections::VecDeque;

use tokio::time::{Instant, Sleep};

use super::*;

/// A scripted resolver: answers, each with its delay in milliseconds.
struct Script {
    answers: VecDeque<(u64, io::Result<Vec<IpAddr>>)>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Stream for Script {
    type Item = io::Result<Vec<IpAddr>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(&(after, _)) = self.answers.front() else {
            return Poll::Ready(None);
        };
        let after = Duration::from_millis(after);
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(after)));
        ready!(sleep.as_mut().poll(cx));
        self.sleep = None;
        Poll::Ready(self.answers.pop_front().map(|(_, answer)| answer))
    }
}

fn addresses(text: &[&str]) -> Vec<IpAddr> {
    text.iter()
        .map(|it| it.parse().expect("an address"))
        .collect()
}

/// Scripted outcome of an attempt at an address: the delay in milliseconds after which it is
/// established or fails.
type AttemptOutcome = (&'static str, u64, Result<(), &'static str>);

/// Runs the attempts. Returns the address of the first success or the last error, and the start
/// times of the attempts in milliseconds.
async fn raced(
    answers: Vec<(u64, io::Result<Vec<IpAddr>>)>,
    fates: &[AttemptOutcome],
) -> (
    Option<Result<IpAddr, &'static str>>,
    Vec<(u64, String)>,
    u64,
) {
    let began = Instant::now();
    let since = || began.elapsed().as_millis() as u64;
    let log = RefCell::new(Vec::new());
    let attempt = |address: IpAddr| {
        log.borrow_mut().push((since(), address.to_string()));
        let fate = fates.iter().find(|(it, ..)| addresses(&[it])[0] == address);
        let &(_, after, fate) = fate.expect("a fate for each");
        async move {
            tokio::time::sleep(Duration::from_millis(after)).await;
            fate.map(|()| address)
        }
    };
    let answers = Box::pin(Script {
        answers: answers.into(),
        sleep: None,
    });
    let sort = |all: &mut [IpAddr]| all.sort_by_key(IpAddr::is_ipv4);
    let runtime = runtime::current().expect("tokio");
    let (won, _) = run(
        &*runtime,
        answers,
        HappyEyeballsTiming::default(),
        |_| true,
        sort,
        attempt,
    )
    .await;
    (won, log.take(), since())
}

fn begun(log: &[(u64, String)]) -> Vec<(u64, &str)> {
    log.iter()
        .map(|(at, address)| (*at, address.as_str()))
        .collect()
}

/// If IPv6 packets are silently lost, IPv4 connects after the attempt delay of 250 ms.
#[tokio::test(start_paused = true)]
async fn the_other_family_wins_where_the_first_is_silent() {
    let found = addresses(&["2001:db8::1", "2001:db8::2", "192.0.2.1"]);
    let fates: [AttemptOutcome; 3] = [
        ("2001:db8::1", 60_000, Err("silent")),
        ("2001:db8::2", 60_000, Err("silent")),
        ("192.0.2.1", 30, Ok(())),
    ];
    let (won, log, ended) = raced(vec![(5, Ok(found.clone()))], &fates).await;
    assert_eq!(won, Some(Ok(found[2])));
    assert_eq!(begun(&log), [(5, "2001:db8::1"), (255, "192.0.2.1")]);
    assert_eq!(ended, 285);
}

#[tokio::test(start_paused = true)]
async fn a_slow_first_attempt_may_still_win() {
    let found = addresses(&["2001:db8::1", "192.0.2.1"]);
    let fates: [AttemptOutcome; 2] = [("2001:db8::1", 400, Ok(())), ("192.0.2.1", 300, Ok(()))];
    let (won, log, ended) = raced(vec![(0, Ok(found.clone()))], &fates).await;
    assert_eq!((won, log.len(), ended), (Some(Ok(found[0])), 2, 400));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_starts_the_next_at_once_and_the_last_error_is_returned() {
    let found = addresses(&["2001:db8::1", "192.0.2.1"]);
    let fates: [AttemptOutcome; 2] = [
        ("2001:db8::1", 20, Err("refused")),
        ("192.0.2.1", 500, Err("refused, too")),
    ];
    let (won, log, ended) = raced(vec![(0, Ok(found))], &fates).await;
    assert_eq!(begun(&log), [(0, "2001:db8::1"), (20, "192.0.2.1")]);
    assert_eq!((won, ended), (Some(Err("refused, too")), 520));
}

/// The A record arrives first; AAAA arrives within 50 ms, or fails.
#[tokio::test(start_paused = true)]
async fn answers_are_waited_for_as_the_rfc_says() {
    let [v4, v6] = [addresses(&["192.0.2.1"]), addresses(&["2001:db8::1"])];
    let fates: [AttemptOutcome; 2] = [("2001:db8::1", 10, Ok(())), ("192.0.2.1", 10, Ok(()))];
    let answers = vec![(10, Ok(v4.clone())), (30, Ok(v6))];
    let (_, log, _) = raced(answers, &fates).await;
    assert_eq!(begun(&log), [(40, "2001:db8::1")]);
    let answers = vec![
        (10, Ok(v4.clone())),
        (5_000, Err(io::ErrorKind::TimedOut.into())),
    ];
    let (_, log, _) = raced(answers, &fates).await;
    assert_eq!(begun(&log), [(60, "192.0.2.1")]);
    let answers = vec![(10, Err(io::ErrorKind::NotFound.into()))];
    let (won, log, _) = raced(answers, &fates).await;
    assert_eq!((won, log.len()), (None, 0));
}

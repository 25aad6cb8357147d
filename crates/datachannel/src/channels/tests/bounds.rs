//! What many messages that wait cost.

use super::super::one::LOOKS;
use super::*;

/// A call looks at as many of the messages that wait, however many there are.
#[test]
fn work_does_not_grow_with_what_waits() {
    for reliability in [
        Reliability::Reliable,
        Reliability::MaxRetransmits(1),
        Reliability::MaxLifetime(50),
    ] {
        let (mut a, _) = pair();
        a.pipe.full = true;
        let mut options = ChannelOptions::new("");
        options.reliability = reliability;
        let id = a.open(options);
        for _ in 0..1_000 {
            a.channels.send(0, id, text("x")).unwrap();
            LOOKS.set(0);
            a.pump();
            assert!(LOOKS.get() <= 2, "{} looks", LOOKS.get());
        }
    }
}

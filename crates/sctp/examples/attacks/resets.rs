//! Attacks by stream resets, and attacks while resets are pending.

use anabranch_sctp::SendOptions;
use anabranch_transport::time::MILLISECOND;

use super::states::*;
use super::table::Attack;
use super::victim::*;

/// List of 700 streams, which is the maximum in one packet.
fn every_third(from: u16) -> Vec<u16> {
    (0..700).map(|it| from + it * 3).collect()
}

pub const RESETS: &[Attack] = &[
    ("RE-CONFIG, one stream after another, much queued", || {
        let mut victim = sent(plain(), IN_FLIGHT, 1, &SendOptions::default());
        for at in 0..20_000 {
            victim.sends(at as u16, 1, &SendOptions::default());
        }
        let all = requests(&victim, 60, |number| {
            reset(true, number, &[number as u16 + 1])
        });
        (victim, all)
    }),
    ("RE-CONFIG, many streams", || {
        let victim = plain();
        let all = packets(&victim, |at| reset(true, at, &every_third(0)));
        (victim, all)
    }),
    ("RE-CONFIG, many streams of the peer", || {
        let mut victim = plain();
        waiting(&mut victim, 30_000, 30_000);
        let all = packets(&victim, |at| reset(false, at, &every_third(0)));
        (victim, all)
    }),
    (
        "RE-CONFIG, all streams of the peer, again and again",
        || {
            let mut victim = plain();
            victim.says_all((0..30_000).map(|at| data(at, at as u16, 0, "BE")));
            let all = requests(&victim, 60, |number| reset(false, number, &[]));
            (victim, all)
        },
    ),
    ("RE-CONFIG, all streams, again and again", || {
        let mut victim = sent(plain(), IN_FLIGHT, 1, &SendOptions::default());
        victim.waits(MILLISECOND);
        let all = requests(&victim, 60, |number| reset(true, number, &[]));
        (victim, all)
    }),
    ("RE-CONFIG, the whole association, again and again", || {
        let victim = plain();
        let all = requests(&victim, 60, |number| {
            chunk(
                RE_CONFIG,
                0,
                &parameter(15, &(FIRST + number).to_be_bytes()),
            )
        });
        (victim, all)
    }),
    ("SACKs while resets wait", || {
        let mut victim = sent(plain(), IN_FLIGHT, 1, &SendOptions::default());
        for at in 0..2_000 {
            let request = reset(true, at, &[at as u16]);
            victim.says(&request);
        }
        let all = packets(&victim, |at| {
            victim.sack(victim.acknowledged + 1 + at, &[], &[])
        });
        (victim, all)
    }),
    ("SACKs while resets wait, much queued", || {
        let mut victim = sent(plain(), IN_FLIGHT, 1, &SendOptions::default());
        for stream in 0..40_000 {
            victim.sends(stream, 1, &SendOptions::default());
        }
        for at in 0..2_000 {
            let request = reset(true, at, &[39_999 - at as u16]);
            victim.says(&request);
        }
        let all = packets(&victim, |at| {
            victim.sack(victim.acknowledged + 1 + at, &[], &[])
        });
        (victim, all)
    }),
    ("RE-CONFIG, many streams of the peer, interleaved", || {
        let mut victim = interleaving();
        victim.says_all(
            (0..15_000)
                .map(|at| i_data(1 + at, 3 * (at % 5_000) as u16, (1 + at / 5_000, 0), "BE")),
        );
        victim.says_all(
            (0..10_000).map(|at| i_data(15_001 + at, 1 + 3 * (at % 10_000) as u16, (at, 1), "")),
        );
        // The set of streams with buffered chunks is built once, by this request.
        victim.says(&reset(false, 0, &[1]));
        let all = packets(&victim, |at| reset(false, 1 + at, &every_third(2)));
        (victim, all)
    }),
    (
        "RE-CONFIG, many streams of the peer with unfinished messages",
        || {
            let mut victim = interleaving();
            victim.says_all((0..20_000).map(|at| i_data(1 + at, at as u16, (at, 1), "")));
            victim.says(&reset(false, 0, &[60_000]));
            let all = packets(&victim, |at| reset(false, 1 + at, &every_third(0)));
            (victim, all)
        },
    ),
    ("RE-CONFIG responses", || {
        let victim = plain();
        let response = parameter(16, &[0; 8]);
        same(victim, filled(&chunk(RE_CONFIG, 0, &response)))
    }),
    ("DATA held behind a reset that waits", || {
        let mut victim = plain();
        let mut value = Vec::new();
        value.extend(FIRST.to_be_bytes());
        value.extend([0; 4]);
        value.extend(FIRST.wrapping_add(10_000).to_be_bytes());
        let request = chunk(RE_CONFIG, 0, &parameter(13, &value));
        victim.says(&request);
        let all = packets(&victim, |at| {
            (0..70)
                .flat_map(|it| data(10_001 + 70 * at + it, 1, 0, "BE"))
                .collect()
        });
        (victim, all)
    }),
];

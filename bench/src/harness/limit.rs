//! Lower bound for any stack: the payload is copied into packets once, and CRC32c is computed at
//! both ends, without any protocol.

use std::error::Error;
use std::hint::black_box;
use std::time::Duration;

use anabranch_wire::checksum;
use bytes::Bytes;
use cpu_time::ThreadTime;

use super::{CLOCK_INTERVAL, Conditions, Score};

/// Length of the common header and of the DATA chunk header, bytes.
const HEADERS: [usize; 2] = [12, 16];

/// Copies payload and computes CRC32c for the given processor time.
///
/// # Errors
/// None; the signature is the same as for stacks.
pub fn race(
    conditions: &Conditions,
    warm_up: Duration,
    long: Duration,
) -> Result<Score, Box<dyn Error>> {
    for length in [warm_up, long] {
        let begin = ThreadTime::now();
        let mut spent = Duration::ZERO;
        let mut score = Score::default();
        carry(conditions, &mut score, |score| {
            if score.packets % CLOCK_INTERVAL == 0 {
                spent = begin.elapsed();
            }
            spent < length
        });
        score.cpu = spent.as_secs_f64();
        if length == long {
            return Ok(score);
        }
    }
    Ok(Score::default())
}

/// Copies payload and computes CRC32c for the given number of messages.
///
/// # Errors
/// None; the signature is the same as for stacks.
pub fn work(conditions: &Conditions, messages: u64) -> Result<Score, Box<dyn Error>> {
    let mut score = Score::default();
    carry(conditions, &mut score, |score| score.messages < messages);
    Ok(score)
}

/// Fills packets with chunks of whole messages, or with fragments of one message.
fn carry(conditions: &Conditions, score: &mut Score, mut more: impl FnMut(&Score) -> bool) {
    let payload = Bytes::from(vec![0x5a; conditions.message]);
    let [common, chunk] = HEADERS;
    let piece = conditions
        .message
        .min((conditions.packet - common - chunk) & !3);
    let chunks = (conditions.packet - common) / (chunk + piece.next_multiple_of(4));
    let mut packet = Vec::with_capacity(conditions.packet);
    let mut at = 0;
    while more(score) {
        packet.clear();
        packet.extend_from_slice(&[0; 12]);
        for _ in 0..chunks.max(1) {
            let end = (at + piece).min(payload.len());
            packet.extend_from_slice(&[0; 16]);
            packet.extend_from_slice(&payload[at..end]);
            score.bytes += (end - at) as u64;
            at = end % payload.len();
            score.messages += u64::from(at == 0);
        }
        checksum::fill(&mut packet);
        assert!(checksum::verify(black_box(&packet)), "it was just computed");
        score.packets += 1;
    }
}

//! Cost of an attacker's packet at its receiver, in all states of an association.
//!
//! `attacks` lists the attacks; `attacks NAME PACKETS` processes this number of packets of one
//! attack. `valgrind --tool=callgrind --toggle-collect='*::packets_arrive*'` counts the
//! instructions; with `last` as a further argument, those of the last packet. `attacks NAME` prints
//! four numbers: the packets, their bytes, their one-time operations (messages delivered,
//! acknowledged or abandoned, plus one per hundred bytes sent), and the bytes sent.
//!
//! NAME may also be `random SEED`, for a random state and random packets.
#![expect(clippy::print_stdout, reason = "it is what the program is for")]

use std::env;
use std::error::Error;

#[path = "attacks/random.rs"]
mod random;
#[path = "attacks/resets.rs"]
mod resets;
#[path = "attacks/states.rs"]
mod states;
#[path = "attacks/table.rs"]
mod table;
#[path = "attacks/victim.rs"]
mod victim;

use bytes::Bytes;
use resets::RESETS;
use table::{ATTACKS, Attack};
use victim::Victim;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let Some(name) = arguments.first() else {
        all().for_each(|it| println!("{}", it.0));
        return Ok(());
    };
    let (mut victim, packets) = match name.strip_prefix("random ") {
        Some(seed) => random::attack(seed.parse()?),
        None => all().find(|it| it.0 == name).ok_or("no such attack")?.1(),
    };
    let Some(count) = arguments.get(1) else {
        let bytes: usize = packets.iter().map(|it| it.len() + 12).sum();
        let (mut done, mut sent) = (0, 0);
        for packet in &packets {
            done += victim.does(packet);
            sent += victim.sent;
        }
        println!("{} {bytes} {done} {sent}", packets.len());
        return Ok(());
    };
    let packets = &packets[..packets.len().min(count.parse()?)];
    let first = match arguments.get(2).map(String::as_str) {
        Some("last") => packets.len().saturating_sub(1),
        _ => 0,
    };
    packets[..first].iter().for_each(|it| victim.hears(it));
    packets_arrive(&mut victim, &packets[first..]);
    victim.still_lives()
}

fn all() -> impl Iterator<Item = &'static Attack> {
    ATTACKS.iter().chain(RESETS)
}

/// Code whose instructions are counted.
#[inline(never)]
fn packets_arrive(victim: &mut Victim, packets: &[Bytes]) {
    for packet in packets {
        victim.hears(packet);
    }
}

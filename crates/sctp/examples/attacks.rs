//! What a packet of an attacker's costs its receiver, whatever state it has brought an association into.
//!
//! `attacks` lists the attacks; `attacks NAME PACKETS` lets so many of the packets of one arrive. `valgrind --tool=callgrind
//! --toggle-collect='*::packets_arrive*'` counts what that takes. `attacks NAME` tells how many packets there are, and bytes in them.
#![expect(clippy::print_stdout, reason = "it is what the program is for")]

use std::env;
use std::error::Error;

#[path = "attacks/states.rs"]
mod states;
#[path = "attacks/table.rs"]
mod table;
#[path = "attacks/victim.rs"]
mod victim;

use bytes::Bytes;
use table::ATTACKS;
use victim::Victim;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let Some(name) = arguments.first() else {
        ATTACKS.iter().for_each(|it| println!("{}", it.0));
        return Ok(());
    };
    let attack = ATTACKS.iter().find(|it| it.0 == name);
    let (mut victim, packets) = attack.ok_or("no such attack")?.1();
    let Some(count) = arguments.get(1) else {
        let bytes: usize = packets.iter().map(|it| it.len() + 12).sum();
        println!("{} {bytes}", packets.len());
        return Ok(());
    };
    packets_arrive(&mut victim, &packets[..packets.len().min(count.parse()?)]);
    victim.still_lives()
}

/// What is counted.
#[inline(never)]
fn packets_arrive(victim: &mut Victim, packets: &[Bytes]) {
    for packet in packets {
        victim.hears(packet);
    }
}

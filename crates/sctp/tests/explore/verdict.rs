//! Verdict on a world after its network has become reliable: both ends must agree in the end.

use anabranch_sctp::{AssociationState, CloseReason};
use anabranch_transport::time::SECOND;

use super::world::{A, HOSTS, Step, World, Z};

/// Time after which every timer has expired for the last time, in nanoseconds.
const TIMEOUT: u64 = 600 * SECOND;
/// Number of events after which a world is considered to be in an endless loop.
const MAX_EVENTS: usize = 5_000;

pub struct Verdict {
    /// Whether both ends were established before the network became reliable and still are, have
    /// exchanged data, and reported neither a close nor a restart.
    pub agreed: bool,
    pub problem: Option<String>,
}

/// Delivers every packet in order and runs every timer, until there are none.
fn settle(world: &mut World) -> Result<(), String> {
    let until = world.now + TIMEOUT;
    for _ in 0..MAX_EVENTS {
        if world.handed < world.seen.len() {
            let (to, path, bytes) = {
                let seen = &world.seen[world.handed];
                (seen.to, seen.path, seen.bytes.clone())
            };
            world.handed += 1;
            world.hand(to, path, bytes);
        } else if world.next_timer().is_some_and(|at| at <= until) {
            world.run_timers();
        } else {
            return Ok(());
        }
    }
    Err("it goes on for ever".into())
}

/// Drops packets in flight, makes the network reliable, and checks the result.
pub fn verdict(mut world: World) -> Verdict {
    let up = |world: &World, host| world.state(host) == Some(AssociationState::Established);
    let was_up = HOSTS.iter().all(|&host| up(&world, host));
    let broken = world.broken;
    world.honest = true;
    world.handed = world.seen.len();
    world.cut = false;
    let mut agreed = false;
    let problem = (|| {
        settle(&mut world)?;
        for host in HOSTS {
            if let Some(state) = world.state(host).filter(|_| !up(&world, host)) {
                return Err(format!("host {host} stays in {state:?}"));
            }
        }
        let probes = HOSTS.map(|host| world.send(host));
        settle(&mut world)?;
        match HOSTS.map(|host| up(&world, host)) {
            [false, false] => {}
            [true, true] => {
                for host in HOSTS {
                    let heard = probes[1 - host].is_some_and(|it| world.got[host].contains(&it));
                    if !heard {
                        return Err(format!("both are up, and host {host} hears nothing"));
                    }
                }
                agreed = was_up && world.broken == broken;
                world.take(Step::Shutdown(A));
                settle(&mut world)?;
            }
            [one, _] => return Err(format!("host {} is up alone", usize::from(!one))),
        }
        for host in [A, Z] {
            if let Some(state) = world.state(host) {
                return Err(format!("host {host} stays in {state:?} after the shutdown"));
            }
        }
        let good = world.lives.iter().filter(|it| !it.broken);
        for life in good.filter(|it| it.closed == Some(CloseReason::Shutdown)) {
            for number in &life.sent {
                if !world.got[1 - life.host].contains(number) {
                    return Err(format!("message {number} was acknowledged and is lost"));
                }
            }
        }
        Ok(())
    })();
    Verdict {
        agreed,
        problem: problem.err(),
    }
}

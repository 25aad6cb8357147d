//! Synchronization of the threads of one divided world. After each window of simulated time, the
//! threads meet at a barrier, exchange packets, and agree on the start of the next window.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use anabranch_scenario::records::SeriesSample;
use anabranch_sim::{Crossing, RouteTables, World};
use anabranch_transport::Nanos;

use super::WorldError;

/// Number of times that a thread polls the barrier before it sleeps, if each part has a processor.
/// Polling so often takes about as long as a short window.
const LOOKS: u32 = 4_000;

/// State that the threads of all parts of a world share.
pub struct Meeting {
    parts: usize,
    /// Number of times that a thread polls the barrier before it sleeps.
    looks: u32,
    arrived: AtomicUsize,
    rounds: AtomicUsize,
    /// Whether a part has ended early, so that the other parts must end.
    over: AtomicBool,
    sleeping: Mutex<usize>,
    wake: Condvar,
    /// Time of the earliest event of each part, nanoseconds, for the current round and for the next
    /// one.
    next: [Vec<AtomicU64>; 2],
    /// For each part, the packets that other parts have sent to it.
    crossings: Vec<Mutex<Vec<Crossing>>>,
    /// Targets of routes that the parts have added since the start of the run. It grows only before
    /// a meeting that agrees on the start of a window.
    targets: Mutex<Vec<u32>>,
    /// The routes that each part has computed for the last change of routes.
    routes: Vec<RwLock<RouteTables>>,
    /// Samples of all parts except the first.
    samples: Mutex<Vec<(u32, SeriesSample)>>,
}

/// Locks a mutex. Poisoning is ignored, because a thread that panics ends the run.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Meeting {
    /// Creates the meeting of this number of parts. If each part has its own processor, waiting
    /// threads spin for a while before they sleep.
    pub fn new(parts: usize, has_processors: bool) -> Self {
        let next = || (0..parts).map(|_| AtomicU64::new(0)).collect();
        Self {
            parts,
            looks: if has_processors { LOOKS } else { 0 },
            arrived: AtomicUsize::new(0),
            rounds: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            sleeping: Mutex::new(0),
            wake: Condvar::new(),
            next: [next(), next()],
            crossings: (0..parts).map(|_| Mutex::default()).collect(),
            targets: Mutex::default(),
            routes: (0..parts).map(|_| RwLock::default()).collect(),
            samples: Mutex::default(),
        }
    }

    /// Waits until all parts have called this function.
    ///
    /// # Errors
    /// [`WorldError::OtherPart`] if a part has ended and therefore does not call this function. A
    /// round in which all parts meet succeeds even if one of them fails afterwards. Therefore
    /// exactly the parts with an error in the same window report it, independently of the speed of
    /// the threads.
    fn meet(&self) -> Result<(), WorldError> {
        let round = self.rounds.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.parts {
            self.arrived.store(0, Ordering::Relaxed);
            self.rounds.store(round + 1, Ordering::Release);
            if *lock(&self.sleeping) > 0 {
                self.wake.notify_all();
            }
            return Ok(());
        }
        self.await_round(round);
        match self.rounds.load(Ordering::Acquire) == round {
            true => Err(WorldError::OtherPart),
            false => Ok(()),
        }
    }

    fn await_round(&self, round: usize) {
        let is_here = || {
            let rounds = self.rounds.load(Ordering::Acquire);
            rounds != round || self.over.load(Ordering::Acquire)
        };
        for _ in 0..self.looks {
            if is_here() {
                return;
            }
            spin_loop();
        }
        let mut sleeping = lock(&self.sleeping);
        *sleeping += 1;
        while !is_here() {
            let woken = self.wake.wait(sleeping);
            sleeping = woken.unwrap_or_else(PoisonError::into_inner);
        }
        *sleeping -= 1;
    }

    /// Ends the run of all parts, because one has failed.
    fn end(&self) {
        self.over.store(true, Ordering::Release);
        let _sleeping = lock(&self.sleeping);
        self.wake.notify_all();
    }
}

/// One part at a meeting. If it is dropped without a call of [`Attendance::finish`], the other
/// parts end.
pub struct Attendance<'a> {
    meeting: &'a Meeting,
    /// Number of the part.
    pub part: usize,
    round: usize,
    /// Number of targets of routes that the world of this part knows.
    known_targets: usize,
    finished: bool,
}

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.meeting.end();
        }
    }
}

impl<'a> Attendance<'a> {
    /// Creates the attendance of a part.
    pub fn new(meeting: &'a Meeting, part: usize) -> Self {
        Self {
            meeting,
            part,
            round: 0,
            known_targets: 0,
            finished: false,
        }
    }

    /// Records that the part has ended without an error.
    pub fn finish(mut self) {
        self.finished = true;
    }

    /// Runs the part up to and including `end`.
    ///
    /// # Errors
    /// The errors of the events of this part, and [`WorldError::OtherPart`] if another part has
    /// failed.
    pub fn run_until(&mut self, world: &mut World, end: Nanos) -> Result<(), WorldError> {
        while let Some(begin) = self.next_window(world)?.filter(|begin| *begin <= end) {
            if world.shares_routes(begin) {
                self.share_routes(world, begin)?;
            }
            world.run_window(begin, end.saturating_add(1))?;
        }
        world.end_windows(end);
        Ok(())
    }

    /// Computes the routes from `begin` on together with the other parts.
    fn share_routes(&mut self, world: &mut World, begin: Nanos) -> Result<(), WorldError> {
        let meeting = self.meeting;
        let new = lock(&meeting.targets)[self.known_targets..].to_vec();
        self.known_targets += new.len();
        {
            let own = meeting.routes[self.part].write();
            let mut own = own.unwrap_or_else(PoisonError::into_inner);
            world.compute_routes(begin, new, &mut own);
        }
        meeting.meet()?;
        let others = (0..meeting.parts).filter(|part| *part != self.part);
        for part in others {
            let tables = meeting.routes[part].read();
            world.accept_routes(&tables.unwrap_or_else(PoisonError::into_inner));
        }
        Ok(())
    }

    /// Exchanges packets with the other parts. Returns the time of the earliest event of all parts,
    /// nanoseconds.
    fn next_window(&mut self, world: &mut World) -> Result<Option<Nanos>, WorldError> {
        let meeting = self.meeting;
        let mut next = world.next_event().unwrap_or(Nanos::MAX);
        for crossing in world.take_crossings() {
            next = next.min(crossing.at());
            lock(&meeting.crossings[crossing.part()]).push(crossing);
        }
        let targets = world.take_targets();
        if !targets.is_empty() {
            lock(&meeting.targets).extend(targets);
        }
        // Consecutive rounds use different arrays, because a part may already write for the next
        // round while another part still reads those of this round.
        let places = &meeting.next[self.round % 2];
        self.round += 1;
        places[self.part].store(next, Ordering::Relaxed);
        meeting.meet()?;
        for crossing in std::mem::take(&mut *lock(&meeting.crossings[self.part])) {
            world.accept(crossing)?;
        }
        let all = places.iter().map(|place| place.load(Ordering::Relaxed));
        Ok(all.min().filter(|next| *next < Nanos::MAX))
    }

    /// Adds the samples of the other parts, in any order, to those of the first part.
    ///
    /// # Errors
    /// [`WorldError::OtherPart`].
    pub fn gather(&mut self, samples: &mut Vec<(u32, SeriesSample)>) -> Result<(), WorldError> {
        if self.part > 0 {
            lock(&self.meeting.samples).append(samples);
        }
        self.meeting.meet()?;
        if self.part == 0 {
            samples.append(&mut lock(&self.meeting.samples));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn is_other_part(met: &Result<(), WorldError>) -> bool {
        matches!(met, Err(WorldError::OtherPart))
    }

    /// The error of a run does not depend on whether a part fails before or after the others have
    /// left the last meeting.
    #[test]
    fn only_a_meeting_that_a_part_misses_fails() {
        for spins in [true, false] {
            let meeting = Meeting::new(1, spins);
            meeting.end();
            assert!(meeting.meet().is_ok(), "all parts have come");
            let meeting = Meeting::new(2, spins);
            meeting.end();
            assert!(is_other_part(&meeting.meet()), "one does not come");
        }
        for round in 0..200 {
            let meeting = Meeting::new(2, round % 2 == 0);
            thread::scope(|scope| {
                let other = scope.spawn(|| [meeting.meet(), meeting.meet()]);
                // The other part waits, and wakes when this one may have failed.
                while meeting.arrived.load(Ordering::Acquire) == 0 {
                    thread::yield_now();
                }
                assert!(meeting.meet().is_ok());
                meeting.end();
                let [first, second] = other.join().expect("no panic");
                assert!(first.is_ok() && is_other_part(&second), "{round}");
            });
        }
    }
}

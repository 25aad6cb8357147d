//! Comparison of the scheduler with a simple model.

use super::*;
use crate::rng::Seed;

impl Scheduler {
    /// Number of marks in the scheduler.
    fn len(&self) -> usize {
        usize::from(self.first != NONE) + (self.len - 1) + self.far.len()
    }
}

#[test]
fn the_earliest_of_random_changes_is_the_minimum() {
    for seed in 0..60 {
        let mut rng = Seed::new(seed, 0).stream("agenda");
        // The marks of some numbers of sources fit in the sorted list, and those of others do not.
        let sources = 1 + rng.below(100) as usize;
        // In some runs events are spread over a long time; in others many are at the same instant.
        let span = [50, 1_000_000][seed as usize % 2];
        let mut scheduler = Scheduler::new(sources);
        let mut model = vec![EventKey::NONE; sources];
        let mut now = 0;
        for _ in 0..3000 {
            // Half of the changes are of the source whose event is next, as in a world.
            let source = match scheduler.earliest() {
                Some((at, source)) if rng.below(2) == 0 => {
                    now = at;
                    source
                }
                _ => rng.below(sources as u64) as usize,
            };
            let key = if rng.below(4) == 0 {
                EventKey::NONE
            } else {
                EventKey::new(now + rng.below(span), now)
            };
            scheduler.set(source, key);
            model[source] = key;
            let events = model.iter().enumerate();
            let first = events
                .filter(|(_, key)| **key != EventKey::NONE)
                .min_by_key(|it| it.1);
            let first = first.map(|(source, key)| (key.at(), source));
            assert_eq!(scheduler.earliest(), first, "seed {seed}");
            assert_eq!(scheduler.get(source), model[source], "seed {seed}");
            if let Some((_, first)) = first {
                let others = model.iter().enumerate().filter(|(it, _)| *it != first);
                let rival = others.map(|(_, key)| *key).min();
                assert!(
                    Some(scheduler.rival()) <= rival.or(Some(EventKey::NONE)),
                    "seed {seed}"
                );
            }
            assert!(scheduler.len() <= sources, "seed {seed}");
        }
    }
}

/// Mark of an event of a steady source.
fn mark_of(source: usize, key: EventKey) -> EventKey {
    match key {
        EventKey::NONE => EventKey::NONE,
        EventKey { at, number } => EventKey {
            at,
            number: number | steady_bits(source),
        },
    }
}

#[test]
fn steady_sources_stand_in_order_among_the_others() {
    for seed in 0..60 {
        let mut rng = Seed::new(seed, 0).stream("agenda");
        let sources = 2 + rng.below(100) as usize;
        // The first `steady` sources are steady.
        let mut steady = rng.below(sources as u64) as usize;
        let span = [50, 1_000_000][seed as usize % 2];
        let mut scheduler = Scheduler::new(sources);
        let mut model = vec![EventKey::NONE; sources];
        for _ in 0..3000 {
            let events = model.iter().enumerate();
            let first = events
                .filter(|(_, key)| **key != EventKey::NONE)
                .min_by_key(|it| it.1);
            let now = first.map_or(0, |(_, key)| key.at());
            let first = first.map(|(source, _)| source);
            let mut source = rng.below(sources as u64) as usize;
            let mut key = EventKey::new(now + rng.below(span), now);
            if rng.below(4) == 0 {
                key = EventKey::NONE;
            }
            if rng.below(2) == 0 {
                source = first.unwrap_or(source);
            }
            if source >= steady {
                scheduler.set(source, key);
            } else if first == Some(source) {
                scheduler.follow(mark_of(source, key));
            } else if model[source] == EventKey::NONE && key != EventKey::NONE {
                scheduler.begin(mark_of(source, key));
            } else {
                key = model[source];
            }
            model[source] = key;
            if rng.below(500) == 0 && steady > 0 {
                steady -= 1;
                scheduler.unsettle(steady, model[steady]);
            }
            let events = model.iter().enumerate();
            let first = events.min_by_key(|it| it.1);
            let first = first.filter(|(_, key)| **key != EventKey::NONE);
            let first = first.map(|(source, key)| (key.at(), source));
            assert_eq!(scheduler.earliest(), first, "seed {seed}");
            assert_eq!(scheduler.is_empty(), first.is_none(), "seed {seed}");
            assert!(scheduler.len() <= sources, "seed {seed}");
        }
    }
}

#[test]
fn an_alarm_that_does_not_change_keeps_its_place() {
    let mut scheduler = Scheduler::new(3);
    scheduler.alarm(2, Some(7), 0);
    scheduler.alarm(1, Some(7), 1);
    scheduler.alarm(2, Some(7), 2);
    assert_eq!(scheduler.earliest(), Some((7, 2)));
    scheduler.alarm(2, Some(8), 3);
    assert_eq!(scheduler.earliest(), Some((7, 1)));
    scheduler.alarm(1, None, 4);
    assert_eq!(scheduler.earliest(), Some((8, 2)));
    scheduler.alarm(1, None, 4);
    scheduler.alarm(0, Some(3), 3);
    assert_eq!(scheduler.earliest(), Some((3, 0)));
}

#[test]
fn a_deadline_put_off_leaves_one_mark() {
    let mut scheduler = Scheduler::new(2);
    scheduler.set(0, EventKey::new(10, 0));
    scheduler.set(1, EventKey::new(1_000, 1));
    for put_off in 2..1_000 {
        scheduler.set(1, EventKey::new(1_000 + put_off, put_off));
        // A deadline that is moved forward and back again leaves no second mark.
        scheduler.set(1, EventKey::new(500, put_off));
        scheduler.set(1, EventKey::new(1_000 + put_off, put_off));
    }
    assert_eq!(scheduler.len(), 2);
    assert_eq!(scheduler.earliest(), Some((10, 0)));
    assert_eq!(scheduler.rival().at(), 500);
    scheduler.set(0, EventKey::NONE);
    assert_eq!(scheduler.earliest(), Some((1_999, 1)));
    assert_eq!(scheduler.rival(), EventKey::NONE);
    scheduler.set(1, EventKey::NONE);
    assert_eq!(scheduler.earliest(), None);
    assert_eq!(scheduler.len(), 0);
}

#[test]
fn growing_keeps_events() {
    let mut scheduler = Scheduler::new(2);
    scheduler.set(1, EventKey::new(5, 0));
    scheduler.grow(9);
    assert_eq!(scheduler.earliest(), Some((5, 1)));
    scheduler.set(8, EventKey::new(4, 1));
    assert_eq!(scheduler.earliest(), Some((4, 8)));
    assert_eq!(scheduler.get(1).at(), 5);
}

#[test]
fn the_last_event_of_an_instant_comes_after_all_others() {
    let mut scheduler = Scheduler::new(4);
    scheduler.set(0, EventKey::last(7));
    scheduler.set(1, EventKey::new(7, 7));
    scheduler.set(2, EventKey::new(8, 0));
    scheduler.set(3, EventKey::last(7));
    let mut order = Vec::new();
    while let Some((at, source)) = scheduler.earliest() {
        order.push((at, source));
        scheduler.set(source, EventKey::NONE);
    }
    assert_eq!(order, [(7, 1), (7, 0), (7, 3), (8, 2)]);
}

#[test]
fn one_instant_keeps_the_order_of_decision() {
    let mut scheduler = Scheduler::new(3);
    scheduler.set(2, EventKey::new(7, 4));
    scheduler.set(0, EventKey::new(7, 5));
    assert_eq!(scheduler.earliest(), Some((7, 2)));
}

#[test]
fn events_decided_at_the_same_time_happen_in_the_order_of_sources() {
    // Whether a source is steady depends on observers, so it must not affect the order of events.
    for steady in [0, 1, 2] {
        let mut scheduler = Scheduler::new(3);
        for source in [2, 0, 1] {
            match source == steady {
                true => scheduler.begin(steady_mark(7, 4, steady_bits(source))),
                false => scheduler.set(source, EventKey::new(7, 4)),
            }
        }
        let mut order = Vec::new();
        while let Some((_, source)) = scheduler.earliest() {
            order.push(source);
            match source == steady {
                true => scheduler.follow(EventKey::NONE),
                false => scheduler.set(source, EventKey::NONE),
            }
        }
        assert_eq!(order, [0, 1, 2]);
    }
}

#[test]
fn the_order_of_an_instant_is_that_of_decisions_for_hours() {
    let hours = 2 * 3600 * 1_000_000_000_u64;
    let at = 10 * hours;
    let mut keys = [0, 1, 1_000, hours - 1, hours].map(|before| EventKey::new(at, at - before));
    keys.reverse();
    assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(keys[4] < EventKey::last(at) && EventKey::last(at) < EventKey::new(at + 1, 0));
}

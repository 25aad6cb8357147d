//! Compares the scheduler with a simple model.

use super::*;
use crate::rng::Seed;

impl Agenda {
    /// The number of marks.
    fn len(&self) -> usize {
        usize::from(self.first != NONE) + (self.len - 1) + self.far.len()
    }
}

#[test]
fn the_earliest_of_random_changes_is_the_minimum() {
    for seed in 0..60 {
        let mut rng = Seed::new(seed, 0).stream("agenda");
        // Some numbers of sources fit the list and some do not.
        let sources = 1 + rng.below(100) as usize;
        // Some events are spread over a long time; others happen at the same instants.
        let span = [50, 1_000_000][seed as usize % 2];
        let mut agenda = Agenda::new(sources);
        let mut model = vec![Key::NEVER; sources];
        let mut now = 0;
        for sequence in 0..3000 {
            // Half of the changes are of the source whose event is next, as in a world.
            let source = match agenda.earliest() {
                Some((at, source)) if rng.below(2) == 0 => {
                    now = at;
                    source
                }
                _ => rng.below(sources as u64) as usize,
            };
            let key = if rng.below(4) == 0 {
                Key::NEVER
            } else {
                Key::new(now + rng.below(span), sequence)
            };
            agenda.set(source, key);
            model[source] = key;
            let events = model.iter().enumerate();
            let first = events
                .filter(|(_, key)| **key != Key::NEVER)
                .min_by_key(|it| it.1);
            let first = first.map(|(source, key)| (key.at(), source));
            assert_eq!(agenda.earliest(), first, "seed {seed}");
            assert_eq!(agenda.get(source), model[source], "seed {seed}");
            if let Some((_, first)) = first {
                let others = model.iter().enumerate().filter(|(it, _)| *it != first);
                let rival = others.map(|(_, key)| *key).min();
                assert!(
                    Some(agenda.rival()) <= rival.or(Some(Key::NEVER)),
                    "seed {seed}"
                );
            }
            assert!(agenda.len() <= sources, "seed {seed}");
        }
    }
}

/// The mark of an event of a steady source.
fn mark_of(source: usize, key: Key) -> Key {
    let sequence = key.number >> SOURCE_BITS;
    match key {
        Key::NEVER => Key::NEVER,
        _ => steady_mark(key.at, sequence, steady_bits(source)),
    }
}

#[test]
fn steady_sources_stand_in_order_among_the_others() {
    for seed in 0..60 {
        let mut rng = Seed::new(seed, 0).stream("agenda");
        let sources = 2 + rng.below(100) as usize;
        // The first of them are steady.
        let mut steady = rng.below(sources as u64) as usize;
        let span = [50, 1_000_000][seed as usize % 2];
        let mut agenda = Agenda::new(sources);
        let mut model = vec![Key::NEVER; sources];
        for sequence in 0..3000 {
            let events = model.iter().enumerate();
            let first = events
                .filter(|(_, key)| **key != Key::NEVER)
                .min_by_key(|it| it.1);
            let now = first.map_or(0, |(_, key)| key.at());
            let first = first.map(|(source, _)| source);
            let mut source = rng.below(sources as u64) as usize;
            let mut key = Key::new(now + rng.below(span), sequence);
            if rng.below(4) == 0 {
                key = Key::NEVER;
            }
            if rng.below(2) == 0 {
                source = first.unwrap_or(source);
            }
            if source >= steady {
                agenda.set(source, key);
            } else if first == Some(source) {
                agenda.follow(mark_of(source, key));
            } else if model[source] == Key::NEVER && key != Key::NEVER {
                agenda.begin(mark_of(source, key));
            } else {
                key = model[source];
            }
            model[source] = key;
            if rng.below(500) == 0 && steady > 0 {
                steady -= 1;
                agenda.unsettle(steady, model[steady]);
            }
            let events = model.iter().enumerate();
            let first = events.min_by_key(|it| it.1);
            let first = first.filter(|(_, key)| **key != Key::NEVER);
            let first = first.map(|(source, key)| (key.at(), source));
            assert_eq!(agenda.earliest(), first, "seed {seed}");
            assert_eq!(agenda.is_empty(), first.is_none(), "seed {seed}");
            assert!(agenda.len() <= sources, "seed {seed}");
        }
    }
}

#[test]
fn an_alarm_that_does_not_change_keeps_its_place() {
    let mut agenda = Agenda::new(3);
    let mut sequence = 0;
    agenda.alarm(2, Some(7), &mut sequence);
    agenda.alarm(1, Some(7), &mut sequence);
    agenda.alarm(2, Some(7), &mut sequence);
    assert_eq!(agenda.earliest(), Some((7, 2)));
    assert_eq!(sequence, 2);
    agenda.alarm(2, Some(8), &mut sequence);
    assert_eq!(agenda.earliest(), Some((7, 1)));
    agenda.alarm(1, None, &mut sequence);
    assert_eq!(agenda.earliest(), Some((8, 2)));
    agenda.alarm(1, None, &mut sequence);
    agenda.alarm(0, Some(3), &mut sequence);
    assert_eq!(agenda.earliest(), Some((3, 0)));
}

#[test]
fn a_deadline_put_off_leaves_one_mark() {
    let mut agenda = Agenda::new(2);
    agenda.set(0, Key::new(10, 0));
    agenda.set(1, Key::new(1_000, 1));
    for put_off in 2..1_000 {
        agenda.set(1, Key::new(1_000 + put_off, put_off));
        // A deadline that is temporarily earlier leaves no second mark.
        agenda.set(1, Key::new(500, put_off));
        agenda.set(1, Key::new(1_000 + put_off, put_off));
    }
    assert_eq!(agenda.len(), 2);
    assert_eq!(agenda.earliest(), Some((10, 0)));
    assert_eq!(agenda.rival().at(), 500);
    agenda.set(0, Key::NEVER);
    assert_eq!(agenda.earliest(), Some((1_999, 1)));
    assert_eq!(agenda.rival(), Key::NEVER);
    agenda.set(1, Key::NEVER);
    assert_eq!(agenda.earliest(), None);
    assert_eq!(agenda.len(), 0);
}

#[test]
fn growing_keeps_events() {
    let mut agenda = Agenda::new(2);
    agenda.set(1, Key::new(5, 0));
    agenda.grow(9);
    assert_eq!(agenda.earliest(), Some((5, 1)));
    agenda.set(8, Key::new(4, 1));
    assert_eq!(agenda.earliest(), Some((4, 8)));
    assert_eq!(agenda.get(1).at(), 5);
}

#[test]
fn the_last_event_of_an_instant_comes_after_all_others() {
    let mut agenda = Agenda::new(4);
    agenda.set(0, Key::last(7));
    agenda.set(1, Key::new(7, 8_000_000_000_000));
    agenda.set(2, Key::new(8, 0));
    agenda.set(3, Key::last(7));
    let mut order = Vec::new();
    while let Some((at, source)) = agenda.earliest() {
        order.push((at, source));
        agenda.set(source, Key::NEVER);
    }
    assert_eq!(order, [(7, 1), (7, 0), (7, 3), (8, 2)]);
}

#[test]
fn one_instant_keeps_the_order_of_decision() {
    let mut agenda = Agenda::new(3);
    agenda.set(2, Key::new(7, 10));
    agenda.set(0, Key::new(7, 11));
    assert_eq!(agenda.earliest(), Some((7, 2)));
}

//! Media on which every station hears all others, with propagation delays that are too short to
//! affect the order of events. Under these conditions the medium can look ahead beyond the next
//! edge of a signal.

use anabranch_transport::Nanos;

use super::Station;
use crate::wifi::dcf::Rules;

/// Propagation from one station to all others.
#[derive(Debug)]
pub(super) struct Reach {
    /// Delay to each station in nanoseconds; 0 to the station itself.
    pub delays: Vec<Nanos>,
    pub nearest: Nanos,
    pub farthest: Nanos,
    /// Number of instants at which a frame of this station begins at another station. The instant
    /// at which the station starts to send is excluded.
    pub begins: u64,
    /// Number of instants at which a frame of this station ends at another station.
    pub ends: u64,
}

/// Propagation from each station to the others, if all stations are in range of each other.
#[derive(Debug)]
pub(super) struct SingleDomain(pub Vec<Reach>);

impl SingleDomain {
    /// Propagation between `stations`, if every station hears all others.
    pub fn of<P>(stations: &[Station<P>], rules: &Rules) -> Option<Self> {
        let reaches = stations.iter().enumerate();
        let reaches: Option<Vec<_>> = reaches
            .map(|(index, station)| reach(index, station, stations.len(), rules))
            .collect();
        let reaches = reaches.filter(|all| all.len() > 1)?;
        let farthest = reaches.iter().map(|it| it.farthest).max()?;
        is_narrow(farthest, rules).then_some(Self(reaches))
    }
}

fn reach<P>(index: usize, station: &Station<P>, stations: usize, rules: &Rules) -> Option<Reach> {
    let listeners = &station.listeners[..];
    let radio = &rules.parameters.radio;
    let all = listeners.len() + 1 == stations && listeners.iter().all(|it| radio.decodes(it.power));
    let (nearest, farthest) = match listeners {
        [nearest, .., farthest] => (nearest.delay, farthest.delay),
        [only] => (only.delay, only.delay),
        [] => return None,
    };
    let mut delays = vec![0; stations];
    for listener in listeners {
        delays[listener.station.index()] = listener.delay;
    }
    debug_assert_eq!(delays[index], 0);
    // Listeners are sorted by delay.
    let same = listeners.windows(2).filter(|it| it[0].delay == it[1].delay);
    let ends = listeners.len() - same.count();
    // At a listener without delay the frame begins when the station starts to send, an instant that
    // is excluded.
    let begins = ends - usize::from(nearest == 0);
    all.then_some(Reach {
        delays,
        nearest,
        farthest,
        begins: begins as u64,
        ends: ends as u64,
    })
}

/// Whether delays are so short that a frame has begun, or ended, at all stations before a response
/// starts, a timeout expires, a slot passes, or the layer above is notified.
fn is_narrow(farthest: Nanos, rules: &Rules) -> bool {
    let (parameters, timing) = (&rules.parameters, &rules.timing);
    let sifs = parameters.sifs;
    farthest < sifs
        && farthest < parameters.link_layer_delay
        && farthest < timing.plcp.min(timing.rts).min(timing.cts).min(timing.ack)
        && 2 * farthest < parameters.slot
        && 2 * farthest + sifs + timing.cts <= timing.cts_timeout
}

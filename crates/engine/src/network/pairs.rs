//! Pairs of members of two groups, between which the members of a flow run.

use std::collections::BTreeSet;
use std::ops::Range;

use anabranch_scenario::Flow;
use anabranch_scenario::computed::Computed;
use anabranch_scenario::constellation::{Ground, Pairs, RandomPairs, Weights};
use anabranch_scenario::names::MemberSelection;
use anabranch_scenario::quantity::GroupSize;
use anabranch_scenario::validate::MAX_FLOWS;
use anabranch_sim::{Rng, Seed};

/// Maximum number of possible pairs from which pairs are drawn by weight.
const MAX_WEIGHTED: usize = 10_000_000;

type Wrong = (&'static str, String);

/// Resolves the random pairs of a flow into members of its groups.
pub(super) fn resolve_pairs(
    flow: &mut Flow,
    groups: &[(String, u32)],
    grounds: &[Ground],
) -> Result<(), Wrong> {
    let Some(pairs) = &flow.pairs else {
        return Ok(());
    };
    let members = |name: &str| -> Option<Range<u32>> {
        let name = MemberSelection::parse(name);
        let (_, count) = groups.iter().find(|(group, _)| group == name.group)?;
        let Range { start, end } = name.range(*count);
        Some(start.min(*count)..end.min(*count))
    };
    // The check of names reports an unknown name.
    let (Some(from), Some(to)) = (members(&flow.from), members(&flow.to)) else {
        return Ok(());
    };
    let same = MemberSelection::parse(&flow.from).group == MemberSelection::parse(&flow.to).group;
    let matrix: Vec<[u32; 2]> = match pairs {
        Pairs::All => {
            let all = from.flat_map(|one| to.clone().map(move |other| [one, other]));
            let all = all.filter(|[one, other]| !same || one != other);
            all.take(MAX_FLOWS as usize + 1).collect()
        }
        Pairs::List(list) => {
            for (index, [one, other]) in list.iter().enumerate() {
                if !from.contains(one) || !to.contains(other) {
                    let message = format!(
                        "pair {index}: found [{one}, {other}]; allowed: members of {:?} and of {:?}",
                        flow.from, flow.to
                    );
                    return Err(("pairs", message));
                }
                if same && one == other {
                    let message =
                        format!("pair {index}: found [{one}, {other}], a node and itself");
                    return Err(("pairs", message));
                }
            }
            list.clone()
        }
        Pairs::Random(random) => {
            let weights = match random.weights {
                Some(Weights::Population) => Some([
                    populations(grounds, &flow.from, &from)?,
                    populations(grounds, &flow.to, &to)?,
                ]),
                None => None,
            };
            let sets = Sets {
                from,
                to,
                one_group: same,
                both: random.both,
            };
            drawn(random, &sets, weights)?
        }
    };
    if matrix.is_empty() {
        return Err(("pairs", "found no pairs; nothing would be sent".to_owned()));
    }
    let count = GroupSize(matrix.len() as u32);
    // An equal count is accepted, because a spec that was saved after its pairs were resolved
    // contains this count.
    if flow.count != GroupSize::default() && flow.count != count {
        let message = "found another count than that of the `pairs`, which say how many there are; leave it out";
        return Err(("count", message.to_owned()));
    }
    flow.count = count;
    flow.matrix = Computed(matrix);
    Ok(())
}

/// Populations of the selected stations of a ground, as their weights.
fn populations(grounds: &[Ground], name: &str, members: &Range<u32>) -> Result<Vec<f64>, Wrong> {
    let group = MemberSelection::parse(name).group;
    let ground = grounds.iter().find(|ground| ground.name == group);
    let stations = ground.map_or(&[][..], |it| &it.stations);
    let of = |member: u32| {
        let station = stations.get(member as usize);
        let population = station.and_then(|it| it.population);
        population.ok_or_else(|| {
            let message = format!(
                "found weights by population, but {group}[{member}] has no `population`; give it to each station, or a column of the file"
            );
            ("pairs", message)
        })
    };
    members.clone().map(of).collect()
}

/// The first `wanted` items that are drawn without repetition, each with a probability in
/// proportion to its weight. This is achieved by giving each item a random key, exponentially
/// distributed with its weight as rate, and taking the items with the smallest keys (Efraimidis and
/// Spirakis, *Weighted random sampling with a reservoir*, 2006). Items with weight 0 are never
/// drawn.
fn weighted<T: Copy + Ord>(
    items: impl Iterator<Item = (T, f64)>,
    wanted: usize,
    rng: &mut Rng,
) -> Vec<T> {
    let keyed = items.filter(|(_, weight)| *weight > 0.0);
    let keyed = keyed.map(|(item, weight)| (-libm::log(rng.unit()) / weight, item));
    let mut keyed: Vec<(f64, T)> = keyed.collect();
    let order = |one: &(f64, T), other: &(f64, T)| {
        let keys = one.0.total_cmp(&other.0);
        keys.then(one.1.cmp(&other.1))
    };
    if keyed.len() > wanted {
        keyed.select_nth_unstable_by(wanted, order);
        keyed.truncate(wanted);
        keyed.shrink_to_fit();
    }
    keyed.sort_unstable_by(order);
    keyed.into_iter().map(|(_, item)| item).collect()
}

/// The two sets of members between which pairs are drawn.
struct Sets {
    from: Range<u32>,
    to: Range<u32>,
    /// Whether both sets are ranges of the same group.
    one_group: bool,
    /// Whether each pair is used in both directions.
    both: bool,
}

impl Sets {
    /// Whether both sets are the same, so that each member is in at most one pair.
    fn are_same(&self) -> bool {
        self.one_group && self.from == self.to
    }

    /// Whether a pair of members may be drawn. A member is never paired with itself; if pairs are
    /// used in both directions, only one of two opposite pairs may be drawn.
    fn allow(&self, [one, other]: [u32; 2]) -> bool {
        let opposite = || self.from.contains(&other) && self.to.contains(&one);
        !self.one_group || one < other || one > other && !(self.both && opposite())
    }

    /// Maximum number of pairs that can be drawn.
    fn pairs(&self) -> usize {
        if self.are_same() {
            return self.from.len() / 2;
        }
        let shared = self.from.start.max(self.to.start)..self.from.end.min(self.to.end);
        let shared = match self.one_group {
            true => shared.len(),
            false => 0,
        };
        let opposite = match self.both {
            true => shared * shared.saturating_sub(1) / 2,
            false => 0,
        };
        self.from.len() * self.to.len() - shared - opposite
    }

    /// The first `wanted` pairs, drawn in proportion to the weights `ours` and `theirs` of their
    /// members.
    fn weighted(
        &self,
        [ours, theirs]: [Vec<f64>; 2],
        wanted: usize,
        rng: &mut Rng,
    ) -> Result<Vec<[u32; 2]>, Wrong> {
        let from = self.from.clone().zip(ours);
        if self.are_same() {
            let order = weighted(from, 2 * wanted, rng);
            return Ok(order.chunks_exact(2).map(|it| [it[0], it[1]]).collect());
        }
        let [one, other] = [self.from.len(), self.to.len()];
        if one * other > MAX_WEIGHTED {
            let message = format!(
                "found {one} x {other} members; with `weights` there are at most {MAX_WEIGHTED} pairs to draw from"
            );
            return Err(("pairs", message));
        }
        let to = self.to.clone().zip(theirs).collect::<Vec<_>>();
        let all = from.flat_map(|(one, own)| {
            let pairs = to.iter();
            pairs.map(move |(other, weight)| ([one, *other], own * weight))
        });
        let all = all.filter(|(pair, _)| self.allow(*pair));
        Ok(weighted(all, wanted, rng))
    }

    /// `wanted` pairs, drawn with equal probabilities.
    fn uniform(&self, wanted: usize, rng: &mut Rng) -> Vec<[u32; 2]> {
        if self.are_same() {
            // Fisher-Yates shuffle.
            let mut order: Vec<u32> = self.from.clone().collect();
            for last in (1..order.len()).rev() {
                order.swap(last, rng.below(last as u64 + 1) as usize);
            }
            let pairs = order.chunks_exact(2).take(wanted);
            return pairs.map(|pair| [pair[0], pair[1]]).collect();
        }
        let mut pairs = Vec::with_capacity(wanted);
        let mut seen = BTreeSet::new();
        while pairs.len() < wanted {
            let mut member = |set: &Range<u32>| set.start + rng.below(set.len() as u64) as u32;
            let pair = [member(&self.from), member(&self.to)];
            if self.allow(pair) && seen.insert(pair) {
                pairs.push(pair);
            }
        }
        pairs
    }
}

/// Draws random pairs without repetition.
fn drawn(
    random: &RandomPairs,
    sets: &Sets,
    weights: Option<[Vec<f64>; 2]>,
) -> Result<Vec<[u32; 2]>, Wrong> {
    let most = sets.pairs().min(MAX_FLOWS as usize);
    let wanted = random.random as usize;
    if sets.both && !sets.one_group {
        let message = "found `both`, but `from` and `to` are members of two groups; add a flow in the other direction";
        return Err(("pairs", message.to_owned()));
    }
    if wanted == 0 || wanted > most {
        let message = format!("found {wanted} random pairs; allowed: 1 to {most}");
        return Err(("pairs", message));
    }
    let mut rng = Seed::new(u64::from(random.seed), 0).stream("pairs");
    let pairs = match weights {
        Some(weights) => sets.weighted(weights, wanted, &mut rng)?,
        None => sets.uniform(wanted, &mut rng),
    };
    if pairs.len() < wanted {
        let found = pairs.len();
        let message =
            format!("found {wanted} random pairs, but members with a population form {found}");
        return Err(("pairs", message));
    }
    if !sets.both {
        return Ok(pairs);
    }
    let both = pairs.iter();
    let both = both.flat_map(|&[one, other]| [[one, other], [other, one]]);
    Ok(both.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the weights 6, 3, 1 and 0, the first item is drawn first in 60 % of the draws, and the
    /// last item is never drawn.
    #[test]
    fn items_are_drawn_in_proportion_to_their_weights() {
        let mut rng = Seed::new(7, 0).stream("weights");
        let mut first = [0; 4];
        let mut second = [0; 4];
        for _ in 0..20_000 {
            let items = (0..4).zip([6.0, 3.0, 1.0, 0.0]);
            let drawn = weighted(items, 3, &mut rng);
            assert_eq!(drawn.len(), 3);
            first[drawn[0]] += 1;
            second[drawn[1]] += 1;
        }
        let is_near = |found: i32, share: f64| (f64::from(found) / 20_000.0 - share).abs() < 0.015;
        assert!(
            is_near(first[0], 0.6) && is_near(first[1], 0.3),
            "{first:?}"
        );
        // Probability that the third item is drawn second: after the first item its weight is 1 of
        // 4, and after the second it is 1 of 7.
        let wanted = 0.6 * 0.25 + 0.3 / 7.0;
        assert!(is_near(second[2], wanted), "{second:?}");
    }
}

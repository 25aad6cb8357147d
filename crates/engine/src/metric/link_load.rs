//! Load of the links of a group, for example of a constellation.

use anabranch_settings::{KindEntry, kind};

use super::common_parameters::LINK;
use super::{BoxedMetric, Metric, ResultName, RunData};

kind! {
    /// Parameter of the load: the group of links.
    struct LinkLoad {
        link: String as LINK;
    }
    /// Share of the run during which the transmitters of a link's members were busy, %. Each
    /// direction of a member has one transmitter. Values: the median over the transmitters that
    /// sent a packet (`link_load_median`), their 95th percentile (`link_load_p95`), the maximum
    /// (`link_load_max`), and the share of transmitters that sent a packet (`link_load_used`, %).
    pub(super) static ENTRY: KindEntry<BoxedMetric> = "link_load", |it, ()| Ok(Box::new(it));
}

impl Metric for LinkLoad {
    fn names(&self) -> Vec<ResultName> {
        let names = ["median", "p95", "max", "used"];
        let names =
            names.map(|name| ResultName::new(&self.link, &format!("link_load_{name}"), "%"));
        names.into()
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let members = seen.link_members(&self.link);
        let duration = seen.outcome.duration as f64;
        // If no member has sent backward, only forward transmitters count, because the links are
        // then used in one direction.
        let one_way = members
            .iter()
            .all(|[_, backward]| backward.offered.packets == 0);
        let directions = if one_way { 1 } else { 2 };
        let all = members.iter().flat_map(|both| &both[..directions]);
        let used = all.filter(|stats| stats.offered.packets > 0);
        let mut load: Vec<f64> = used
            .map(|stats| stats.busy as f64 / duration * 100.0)
            .collect();
        load.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| {
            let place = share * load.len().saturating_sub(1) as f64;
            load.get(place.round() as usize).copied().unwrap_or(0.0)
        };
        let count = members.len() * directions;
        let share = load.len() as f64 / count.max(1) as f64 * 100.0;
        vec![at(0.5), at(0.95), at(1.0), share]
    }
}

//! What the paths of one association are like together, for algorithms that couple their windows.

/// One of the paths.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Member {
    /// Congestion window, bytes.
    pub cwnd: f64,
    /// Slow-start threshold, bytes.
    pub ssthresh: f64,
    /// The smoothed round-trip time in seconds, once measured.
    pub rtt: Option<f64>,
    /// What its controller says of [the bytes between losses](crate::CongestionControl::between_losses).
    pub between_losses: u64,
}

impl Member {
    /// Window by round-trip time: bytes per second.
    pub fn rate(&self) -> Option<f64> {
        self.measured().map(|rtt| self.cwnd / rtt)
    }

    fn measured(&self) -> Option<f64> {
        self.rtt.filter(|rtt| *rtt > 0.0)
    }

    /// The square of the rate that a flow alone would have there, but for a constant: a loss in so many bytes, over that round trip.
    fn quality(&self) -> f64 {
        let measured = self.measured();
        measured.map_or(0.0, |rtt| self.between_losses as f64 / (rtt * rtt))
    }
}

/// Sums over the paths that an association uses at once, the one that is told of them included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pool {
    /// The path that is told.
    pub own: Member,
    /// How many there are.
    pub paths: usize,
    /// Congestion windows, bytes.
    pub cwnd: f64,
    /// Slow-start thresholds, bytes.
    pub ssthresh: f64,
    /// Windows by round-trip times: bytes per second.
    pub rate: f64,
    /// The largest window by the square of its round-trip time.
    pub best: f64,
    /// How many have the largest window.
    pub largest: usize,
    /// How many of those that carry most between losses do not have it.
    pub collected: usize,
    most_cwnd: f64,
    most_quality: f64,
}

impl Pool {
    /// Of these paths, `own` among them.
    pub fn of(own: Member, members: impl Iterator<Item = Member> + Clone) -> Self {
        let mut pool = Self {
            own,
            ..Self::default()
        };
        for member in members.clone() {
            pool.paths += 1;
            pool.cwnd += member.cwnd;
            pool.ssthresh += member.ssthresh;
            if let Some(rtt) = member.measured() {
                pool.rate += member.cwnd / rtt;
                pool.best = pool.best.max(member.cwnd / (rtt * rtt));
            }
            pool.most_cwnd = pool.most_cwnd.max(member.cwnd);
            pool.most_quality = pool.most_quality.max(member.quality());
        }
        for member in members {
            if pool.is_largest(&member) {
                pool.largest += 1;
            } else if pool.is_best(&member) {
                pool.collected += 1;
            }
        }
        pool
    }

    /// Whether no path has a larger window.
    pub fn is_largest(&self, member: &Member) -> bool {
        member.cwnd >= self.most_cwnd
    }

    /// Whether no path would carry more alone, by what it carries between losses.
    pub fn is_best(&self, member: &Member) -> bool {
        member.quality() > 0.0 && member.quality() >= self.most_quality
    }
}

//! State of all paths of an association, for algorithms that couple the windows of paths.

/// State of one path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CoupledPath {
    /// Congestion window, bytes.
    pub cwnd: f64,
    /// Slow-start threshold, bytes.
    pub ssthresh: f64,
    /// Smoothed round-trip time, seconds; `None` before the first measurement.
    pub rtt: Option<f64>,
    /// The controller's [bytes between losses](crate::CongestionControl::between_losses).
    pub between_losses: u64,
}

impl CoupledPath {
    /// Window divided by the round-trip time, bytes per second.
    pub fn rate(&self) -> Option<f64> {
        self.measured().map(|rtt| self.cwnd / rtt)
    }

    fn measured(&self) -> Option<f64> {
        self.rtt.filter(|rtt| *rtt > 0.0)
    }

    /// Square of the rate that a single flow would have on this path, up to a constant factor, with
    /// one loss per `between_losses` bytes and this round-trip time.
    fn quality(&self) -> f64 {
        let measured = self.measured();
        measured.map_or(0.0, |rtt| self.between_losses as f64 / (rtt * rtt))
    }
}

/// Sums over the paths that an association uses concurrently, including the path whose controller
/// is notified.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CoupledPaths {
    /// State of the path whose controller is notified.
    pub own: CoupledPath,
    /// Number of paths.
    pub paths: usize,
    /// Sum of the congestion windows, bytes.
    pub cwnd: f64,
    /// Sum of the slow-start thresholds, bytes.
    pub ssthresh: f64,
    /// Sum over all paths of the window divided by the round-trip time, bytes per second.
    pub rate: f64,
    /// Maximum over all paths of the window divided by the square of the round-trip time, bytes per
    /// second squared.
    pub best: f64,
    /// Number of paths with the largest window.
    pub largest: usize,
    /// Number of the best paths, by bytes between losses, that do not have the largest window.
    pub collected: usize,
    most_cwnd: f64,
    most_quality: f64,
}

impl CoupledPaths {
    /// Computes the sums over `members`, which must include `own`.
    pub fn of(own: CoupledPath, members: impl Iterator<Item = CoupledPath> + Clone) -> Self {
        let mut coupled = Self {
            own,
            ..Self::default()
        };
        for member in members.clone() {
            coupled.paths += 1;
            coupled.cwnd += member.cwnd;
            coupled.ssthresh += member.ssthresh;
            if let Some(rtt) = member.measured() {
                coupled.rate += member.cwnd / rtt;
                coupled.best = coupled.best.max(member.cwnd / (rtt * rtt));
            }
            coupled.most_cwnd = coupled.most_cwnd.max(member.cwnd);
            coupled.most_quality = coupled.most_quality.max(member.quality());
        }
        for member in members {
            if coupled.is_largest(&member) {
                coupled.largest += 1;
            } else if coupled.is_best(&member) {
                coupled.collected += 1;
            }
        }
        coupled
    }

    /// Whether the path `member` has the largest window.
    pub fn is_largest(&self, member: &CoupledPath) -> bool {
        member.cwnd >= self.most_cwnd
    }

    /// Whether the path `member` is the best one, by bytes between losses.
    pub fn is_best(&self, member: &CoupledPath) -> bool {
        member.quality() > 0.0 && member.quality() >= self.most_quality
    }
}

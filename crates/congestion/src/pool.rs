//! What the paths of one association are like together, for algorithms that couple their windows.

/// Sums over the paths that an association uses at once, the one that is told of them included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pool {
    /// Congestion windows, bytes.
    pub cwnd: f64,
    /// Slow-start thresholds, bytes.
    pub ssthresh: f64,
    /// Windows by round-trip times: bytes per second.
    pub rate: f64,
    /// The largest window by the square of its round-trip time.
    pub best: f64,
}

impl Pool {
    /// A path: cwnd and ssthresh in bytes, the smoothed round-trip time in seconds once measured.
    pub fn add(&mut self, cwnd: f64, ssthresh: f64, rtt: Option<f64>) {
        self.cwnd += cwnd;
        self.ssthresh += ssthresh;
        if let Some(rtt) = rtt.filter(|rtt| *rtt > 0.0) {
            self.rate += cwnd / rtt;
            self.best = self.best.max(cwnd / (rtt * rtt));
        }
    }
}

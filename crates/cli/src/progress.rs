//! Progress bar with the number of runs and the estimated remaining time, printed only on a
//! terminal.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_lab::run::ProgressObserver;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on standard error that counts runs. Its length is simulated time, which predicts the
/// remaining time better than the number of runs. The line is shorter than 80 columns, so that it
/// can be erased completely.
pub struct Bar {
    bar: ProgressBar,
    runs: AtomicUsize,
    finished: AtomicUsize,
}

impl Bar {
    /// A bar that is not shown yet.
    pub fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(5));
        let style = ProgressStyle::with_template("{bar:24} {percent:>3} %  {prefix}  {eta} left");
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        Bar {
            bar,
            runs: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
        }
    }

    /// Erases the bar.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn count(&self, more: usize) {
        let finished = self.finished.fetch_add(more, Ordering::Relaxed) + more;
        let runs = self.runs.load(Ordering::Relaxed);
        self.bar.set_prefix(format!("{finished} of {runs} runs"));
    }
}

impl ProgressObserver for Bar {
    fn begin(&self, runs: usize, finished: usize, seconds: f64) {
        self.runs.store(runs, Ordering::Relaxed);
        // The length is set only now, because a bar of length 0 would be shown as full.
        self.bar.set_length(seconds.ceil() as u64);
        self.count(finished);
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }

    fn finished(&self, seconds: f64) {
        self.count(1);
        self.bar.inc(seconds.ceil() as u64);
    }
}

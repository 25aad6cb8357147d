//! How far the work is: a bar with a rate and an estimate, and nothing at all where nobody looks at a terminal.

use std::time::Duration;

use anabranch_lab::run::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on standard error that counts simulated seconds.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar that is not shown yet.
    pub fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(5));
        let style = ProgressStyle::with_template(
            "{bar:32} {percent:>3} %  {human_pos} of {human_len} simulated seconds, {per_sec}  {prefix}  {eta} left",
        );
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        Bar(bar)
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn begin(&self, runs: usize, finished: usize, seconds: f64) {
        self.0.set_length(seconds.ceil() as u64);
        if finished > 0 && runs > finished {
            self.0
                .set_prefix(format!("{finished} of {runs} runs were there"));
        }
        self.0.enable_steady_tick(Duration::from_millis(200));
    }

    fn finished(&self, seconds: f64) {
        self.0.inc(seconds.ceil() as u64);
    }
}

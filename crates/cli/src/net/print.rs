//! Printing of lines by a separate thread. A write blocks while the reader is slow, and neither the
//! protocol nor the handling of signals should wait for that.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use anabranch_settings::counted;
use tokio::sync::oneshot;

/// Maximum number of queued lines. Further lines are dropped and counted, and their number is
/// printed when there is space again.
pub const MAX_WAITING: usize = 1_024;

/// A printer of lines to one output. Clones use the same thread.
#[derive(Clone, Debug)]
pub struct Printer {
    lines: SyncSender<String>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Number of lines that were dropped because the queue was full.
    dropped: AtomicU64,
    /// The first write error; after it no line is written.
    error: Mutex<Option<io::ErrorKind>>,
}

impl Shared {
    fn error(&self) -> MutexGuard<'_, Option<io::ErrorKind>> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Future that completes when every line is written.
#[derive(Debug)]
pub struct Written(oneshot::Receiver<()>);

impl Written {
    /// Waits until all handles are dropped and every line is written, or cannot be written.
    pub async fn wait(self) {
        // An error means that the thread has ended, so no further line will be written.
        let _ = self.0.await;
    }
}

impl Printer {
    /// Creates a printer to standard output.
    pub fn stdout() -> (Self, Written) {
        Self::to(io::stdout())
    }

    /// Creates a printer to standard error.
    pub fn stderr() -> (Self, Written) {
        Self::to(io::stderr())
    }

    fn to(out: impl Write + Send + 'static) -> (Self, Written) {
        let (lines, waiting) = sync_channel(MAX_WAITING);
        let (done, written) = oneshot::channel();
        let shared = Arc::new(Shared::default());
        let writing = Arc::clone(&shared);
        // The thread is not joined: if its output never accepts the lines, the process ends anyway.
        thread::spawn(move || {
            write_all(&waiting, out, &writing);
            // Fails if the receiver was dropped.
            let _ = done.send(());
        });
        (Self { lines, shared }, Written(written))
    }

    /// Queues a line without waiting. If the queue is full, the line is dropped and counted.
    ///
    /// # Errors
    /// An earlier write failed, so no further line is written.
    pub fn line(&self, line: impl Into<String>) -> io::Result<()> {
        if let Some(kind) = *self.shared.error() {
            return Err(kind.into());
        }
        let dropped = self.shared.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 && self.lines.try_send(remark(dropped)).is_err() {
            self.shared.dropped.fetch_add(dropped, Ordering::Relaxed);
        }
        match self.lines.try_send(line.into()) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => {
                self.shared.dropped.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(TrySendError::Disconnected(_)) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// The text that replaces lines that were dropped.
fn remark(dropped: u64) -> String {
    let dropped = counted(dropped, "line");
    format!("({dropped} dropped: the output was not read)")
}

fn write_all(lines: &Receiver<String>, mut out: impl Write, shared: &Shared) {
    let mut write = |line: &str| {
        let written = writeln!(out, "{line}").and_then(|()| out.flush());
        if let Err(error) = written {
            *shared.error() = Some(error.kind());
        }
    };
    for line in lines {
        write(&line);
        if shared.error().is_some() {
            return;
        }
    }
    let dropped = shared.dropped.swap(0, Ordering::Relaxed);
    if dropped > 0 {
        write(&remark(dropped));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// An output that accepts data only on request.
    struct Slow {
        turns: mpsc::Receiver<()>,
        heard: mpsc::Sender<String>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.turns.recv().is_err() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let _ = self.heard.send(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn slow() -> (Printer, Written, mpsc::Sender<()>, mpsc::Receiver<String>) {
        let (turn, turns) = mpsc::channel();
        let (heard, hears) = mpsc::channel();
        let (printer, written) = Printer::to(Slow { turns, heard });
        (printer, written, turn, hears)
    }

    #[test]
    fn lines_without_a_reader_are_buffered_up_to_a_limit_and_the_rest_is_counted() {
        let (printer, _written, turn, heard) = slow();
        let many = MAX_WAITING + 501;
        for number in 0..many {
            printer.line(format!("line {number}")).expect("not broken");
        }
        // From now on the output accepts everything.
        for _ in 0..8 * many {
            turn.send(()).expect("the thread lives");
        }
        drop(printer);
        let said: String = heard.iter().collect();
        let kept = said.lines().filter(|it| it.starts_with("line")).count();
        let remarks: Vec<usize> = said.lines().filter_map(dropped_by).collect();
        // The thread holds one line outside the queue. If it took that line early, a slot of the
        // queue became free before the first remark.
        let places = kept + remarks.len() - 1;
        assert!(
            (MAX_WAITING..=MAX_WAITING + 1).contains(&places),
            "{places}"
        );
        assert_eq!(kept + remarks.iter().sum::<usize>(), many, "{remarks:?}");
        assert!(said.lines().last().and_then(dropped_by).is_some());
    }

    /// The number of dropped lines in a remark.
    fn dropped_by(line: &str) -> Option<usize> {
        let number = line.strip_prefix('(')?.split(' ').next()?.parse().ok()?;
        (line == remark(number as u64)).then_some(number)
    }

    #[test]
    fn an_error_is_reported_to_the_next_writer() {
        let (printer, written, turn, _heard) = slow();
        drop(turn);
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        printer.line("into a closed pipe").expect("not known yet");
        runtime.expect("a runtime").block_on(written.wait());
        let error = printer.line("again").expect_err("it is known");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}

//! Lines to standard output or standard error by a separate thread, because a write blocks for any
//! time if the reader is slow, and neither the protocol nor a signal should wait for that.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use anabranch_settings::counted;
use tokio::sync::oneshot;

/// Maximum number of waiting lines. Further lines are counted, and their number is printed when
/// there is space again.
pub const MAX_WAITING: usize = 1_024;

/// A destination of lines. Clones are handles of the same destination.
#[derive(Clone, Debug)]
pub struct Printer {
    lines: SyncSender<String>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Lines dropped for lack of room.
    dropped: AtomicU64,
    /// The write error after which no further line is written.
    error: Mutex<Option<io::ErrorKind>>,
}

impl Shared {
    fn error(&self) -> MutexGuard<'_, Option<io::ErrorKind>> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Completes when every line is written.
#[derive(Debug)]
pub struct Written(oneshot::Receiver<()>);

impl Written {
    /// Waits until all handles are dropped and every line is written, or cannot be.
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
        // If its lines are never accepted, it is abandoned: the process ends all the same.
        thread::spawn(move || {
            write_all(&waiting, out, &writing);
            // The receiver may have been dropped.
            let _ = done.send(());
        });
        (Self { lines, shared }, Written(written))
    }

    /// Prints a line, without waiting. If too many wait, it is dropped and counted.
    ///
    /// # Errors
    /// No further line is written, because an earlier write failed.
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

/// The text in place of lines that were dropped.
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

    /// A reader that reads on request.
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
        // The reader continues to read until the end.
        for _ in 0..8 * many {
            turn.send(()).expect("the thread lives");
        }
        drop(printer);
        let said: String = heard.iter().collect();
        let kept = said.lines().filter(|it| it.starts_with("line")).count();
        let remarks: Vec<usize> = said.lines().filter_map(dropped_by).collect();
        // The thread buffers one line. If the writer took that line early, a slot became free for
        // the first note.
        let places = kept + remarks.len() - 1;
        assert!(
            (MAX_WAITING..=MAX_WAITING + 1).contains(&places),
            "{places}"
        );
        assert_eq!(kept + remarks.iter().sum::<usize>(), many, "{remarks:?}");
        assert!(said.lines().last().and_then(dropped_by).is_some());
    }

    /// The number in a remark.
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

//! `samples.csv` of a trace: samples as they come, for whoever ends the process before it can write its results directory.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anabranch_transport::Sample;

/// Time between two writes: what a killed process loses at most.
const PERIOD: Duration = Duration::from_millis(200);

/// A sample, and the number of its association in the order of their beginnings.
pub type Numbered = (u32, Sample);

/// The file, and the thread that writes it.
pub struct Spool {
    path: PathBuf,
    /// Dropped, it tells the thread to end.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Spool {
    /// Begins `samples.csv` in `directory`, and appends what `take` gives from time to time.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn begin(
        directory: &Path,
        take: impl Fn() -> Vec<Numbered> + Send + 'static,
    ) -> io::Result<Self> {
        let path = directory.join("samples.csv");
        let mut file = BufWriter::new(File::create(&path)?);
        file.write_all(b"seconds,association,probe,value\n")?;
        file.flush()?;
        let (end, ends) = channel();
        let thread = thread::spawn(move || {
            let mut written = Ok(());
            loop {
                let over = ends.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout);
                // What a full disk does not take is let go of all the same: nobody else takes it.
                let samples = take();
                written = written.and_then(|()| write(&mut file, &samples));
                if over {
                    return written;
                }
            }
        });
        Ok(Self {
            path,
            end: Some(end),
            thread: Some(thread),
        })
    }

    /// Ends the thread, with everything written.
    pub fn end(&mut self) -> io::Result<()> {
        drop(self.end.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            // A panic has told of itself.
            _ => Ok(()),
        }
    }

    /// Takes the file away: everything in it is in the results directory now.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

fn write(out: &mut impl Write, samples: &[Numbered]) -> io::Result<()> {
    for (association, sample) in samples {
        let (at, probe) = (sample.at as f64 / 1e9, sample.probe.name());
        writeln!(out, "{at:.9},{association},{probe},{}", sample.value)?;
    }
    out.flush()
}

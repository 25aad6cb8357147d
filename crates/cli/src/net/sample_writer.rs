//! `samples.csv` of a trace: samples are written while they are recorded, because the process may
//! be killed before it writes its results directory.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anabranch_transport::Sample;

/// Interval of writes, and therefore the maximum loss if the process is killed.
const PERIOD: Duration = Duration::from_millis(200);

/// A sample with the number of its association, in the order of their starts.
pub type Numbered = (u32, Sample);

/// The file, and the thread that writes it.
pub struct SampleWriter {
    path: PathBuf,
    /// Dropping the sender ends the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl SampleWriter {
    /// Creates `samples.csv` in `directory`. A thread periodically appends the samples that `take`
    /// returns.
    ///
    /// # Errors
    /// The file cannot be created.
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
                // After a write error samples are still taken and discarded, because otherwise they
                // would accumulate in memory.
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

    /// Ends the thread after all samples are written.
    pub fn end(&mut self) -> io::Result<()> {
        drop(self.end.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            // The thread panicked, which was reported already.
            _ => Ok(()),
        }
    }

    /// Removes the file, because the results directory contains its samples now.
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

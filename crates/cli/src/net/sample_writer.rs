//! `samples.csv` of a trace: samples are written while they are recorded, in case the process is
//! killed before it can write its results directory.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anabranch_transport::Sample;

/// Interval of writes: the maximum loss of a killed process.
const PERIOD: Duration = Duration::from_millis(200);

/// A sample, and the number of its association in the order of their starts.
pub type Numbered = (u32, Sample);

/// The file, and the thread that writes it.
pub struct SampleWriter {
    path: PathBuf,
    /// Dropping it ends the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl SampleWriter {
    /// Creates `samples.csv` in `directory`, and appends the samples of `take` from time to time.
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
                // With a full disk, samples are discarded all the same, because there is no other
                // consumer.
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

    /// Ends the thread, after everything is written.
    pub fn end(&mut self) -> io::Result<()> {
        drop(self.end.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            // A panic was already reported.
            _ => Ok(()),
        }
    }

    /// Removes the file: its content is in the results directory now.
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

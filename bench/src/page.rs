//! Output of a benchmark, which replaces its last results in `bench/README.md`.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A section of `bench/README.md`. Its lines are printed; [`Page::close`] writes them to the file
/// if requested.
pub struct Page {
    name: &'static str,
    write: bool,
    text: String,
}

/// Arguments of this program without `--write`, and whether `--write` was given.
pub fn arguments() -> (Vec<String>, bool) {
    let (flags, rest): (Vec<_>, Vec<_>) = env::args().skip(1).partition(|it| it == "--write");
    (rest, !flags.is_empty())
}

impl Page {
    /// Starts the section `name`. If it is to be written, the file must contain it.
    ///
    /// # Errors
    /// The date or the load cannot be read.
    pub fn open(name: &'static str, write: bool) -> Result<Self, Box<dyn Error>> {
        let mut page = Self {
            name,
            write,
            text: String::new(),
        };
        page.line(&format!("Last run: {}.", circumstances()?));
        page.line("");
        Ok(page)
    }

    /// Adds a line, and prints it.
    pub fn line(&mut self, line: &str) {
        println!("{line}");
        self.text += line;
        self.text.push('\n');
    }

    /// Writes the section if requested.
    ///
    /// # Errors
    /// The file has no such section, or cannot be written.
    pub fn close(self) -> Result<(), Box<dyn Error>> {
        if !self.write {
            return Ok(());
        }
        let path = folder().join("README.md");
        let whole = fs::read_to_string(&path)?;
        let page = replaced(&whole, self.name, &self.text)
            .ok_or_else(|| format!("{} has no section {}", path.display(), self.name))?;
        Ok(fs::write(path, page)?)
    }
}

/// Folder of the benchmark files.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// Text with the date, the load of the last minute, and the number of processors.
///
/// # Errors
/// `date` cannot be run, or `/proc/loadavg` is missing.
pub fn circumstances() -> Result<String, Box<dyn Error>> {
    let date = Command::new("date").args(["-u", "+%F"]).output()?.stdout;
    let load = fs::read_to_string("/proc/loadavg")?;
    Ok(format!(
        "{}, a load of {} on {} processors",
        String::from_utf8(date)?.trim(),
        load.split(' ').next().unwrap_or_default(),
        std::thread::available_parallelism()?,
    ))
}

/// Replaces the text between the two marks of the section `name` in `whole`.
fn replaced(whole: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (
        format!("<!-- {name}: begin -->\n"),
        format!("<!-- {name}: end -->"),
    );
    let (before, rest) = whole.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{text}\n{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn only_the_section_of_that_name_is_replaced() {
        let page = "a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb\n<!-- y: begin -->\nkept\n<!-- y: end -->\n";
        let new = replaced(page, "x", "new\n").expect("there is a section x");
        assert_eq!(
            new,
            "a\n<!-- x: begin -->\n\nnew\n\n<!-- x: end -->\nb\n<!-- y: begin -->\nkept\n<!-- y: end -->\n"
        );
        assert_eq!(
            replaced(&new, "x", "new\n").as_deref(),
            Some(&*new),
            "again the same"
        );
        assert_eq!(replaced(page, "z", "new\n"), None);
    }
}

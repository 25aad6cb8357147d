//! Commands that run concurrently with a test.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::Value;

use crate::commands::command;
pub use crate::commands::text;

pub fn anabranch(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = command(directory, arguments);
    command.stdin(Stdio::null());
    command
}

pub fn run(directory: &Path, arguments: &[&str]) -> Output {
    anabranch(directory, arguments)
        .output()
        .expect("the command starts")
}

pub fn number_after(line: &str, word: &str) -> String {
    let rest = line.split(word).nth(1).unwrap_or_default();
    let digits = rest.trim_start().chars().take_while(char::is_ascii_digit);
    let number: String = digits.collect();
    assert!(!number.is_empty(), "no number after {word:?} in {line:?}");
    number
}

/// A command that runs concurrently with the test, and is killed at its end.
pub struct Beside {
    pub child: Child,
    output: BufReader<ChildStdout>,
    pub first: String,
}

impl Beside {
    /// Starts the command, and waits for its first line.
    pub fn start(directory: &Path, arguments: &[&str]) -> Self {
        let mut child = anabranch(directory, arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut first = String::new();
        output.read_line(&mut first).expect("a first line");
        Self {
            child,
            output,
            first,
        }
    }

    /// The number that follows `word` in the first line.
    pub fn port(&self, word: &str) -> String {
        number_after(&self.first, word)
    }

    /// Waits for the next line of the command.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line
    }

    /// Waits for the end of the command, and returns its output after the first line.
    pub fn end(mut self) -> (i32, String) {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        let status = self.child.wait().expect("it ends");
        (status.code().unwrap_or(-1), rest)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Errors are ignored, because the process has ended already if the test succeeded.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Limits data in flight, so that it is acknowledged soon after the end of a measurement even on a
/// busy machine: `perf` waits two seconds for it.
pub const SMALL: [&str; 2] = ["--set", "receive_buffer=64 KiB"];

pub fn server(directory: &Path, service: &str, more: &[&str]) -> Beside {
    let arguments = ["serve", service, "--once", "--udp-port", "0"];
    let arguments: Vec<&str> = arguments.iter().chain(more).copied().collect();
    Beside::start(directory, &arguments)
}

pub fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a JSON document")
}

pub fn signal(child: &Child, name: &str) {
    let command = format!("kill -s {name} {}", child.id());
    let sent = Command::new("sh").args(["-c", &command]).status();
    assert!(sent.expect("sh starts").success());
}

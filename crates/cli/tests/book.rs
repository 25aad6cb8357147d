//! Tests of the documentation: the commands on its pages are executed as printed, and the page of
//! commands must equal the output of `help`.
//!
//! On a page of `docs/`, a block marked
//! - `console` holds commands, each after `$ `, and their output. They run in the order of the
//!   page, in one shell, in a directory that is empty at first. A command without shown output may
//!   print anything. A line `...` matches any number of lines, and `[..]` any text within a line.
//!   `console status=2` expects that exit status.
//! - `console serve` holds one command that serves: the test ends it after it has printed as many
//!   lines as shown.
//! - `console skip` is not run: it installs something, or needs another machine.
//! - `LANGUAGE file=NAME` is written to the file NAME, `LANGUAGE add=NAME` is appended to it.
//!
//! `<!-- made: FILE -->` before an image names the file, created by the commands of the page, that
//! the image must equal. With `BOOK=write` in the environment, that file replaces the image.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn writes() -> bool {
    std::env::var("BOOK").is_ok_and(|how| how == "write")
}

/// A step of a page.
enum Step {
    /// Writes a file with this text; true: appends the text.
    File(String, String, bool),
    /// Runs a command: its text, its line on the page, how it ends, and its expected output.
    Run(String, usize, End, Vec<String>),
    /// Checks that this image is a copy of that file.
    Image(String, String),
}

/// How a command ends.
#[derive(Clone, Copy)]
enum End {
    /// The command exits with this status.
    Status(i32),
    /// The command serves until the test ends it.
    Served,
}

/// Parses the steps of a page.
fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut made = None;
    let mut lines = page.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        if let Some(file) = line.strip_prefix("<!-- made: ") {
            made = file.strip_suffix(" -->").map(str::to_owned);
        } else if let (Some(file), true) = (&made, line.starts_with("![")) {
            let image = line.rsplit_once("](").expect("an image").1;
            steps.push(Step::Image(
                image.trim_end_matches(')').to_owned(),
                file.clone(),
            ));
            made = None;
        } else if let Some(marks) = line.strip_prefix("```") {
            let within: Vec<(usize, &str)> = lines
                .by_ref()
                .take_while(|(_, line)| *line != "```")
                .collect();
            block(marks, &within, &mut steps);
        }
    }
    steps
}

/// Parses the steps of a fenced block.
fn block(marks: &str, lines: &[(usize, &str)], steps: &mut Vec<Step>) {
    let marks: Vec<&str> = marks.split_whitespace().collect();
    let value = |key: &str| marks.iter().find_map(|mark| mark.strip_prefix(key));
    for (key, adds) in [("file=", false), ("add=", true)] {
        if let Some(name) = value(key) {
            let text = lines.iter().map(|(_, line)| format!("{line}\n")).collect();
            steps.push(Step::File(name.to_owned(), text, adds));
        }
    }
    if marks.first() != Some(&"console") || marks.contains(&"skip") {
        return;
    }
    let status = value("status=").map_or(0, |status| status.parse().expect("a status"));
    let end = if marks.contains(&"serve") {
        End::Served
    } else {
        End::Status(status)
    };
    for (number, line) in lines {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => {
                steps.push(Step::Run(command.to_owned(), number + 1, end, vec![]));
            }
            (None, Some(Step::Run(command, .., printed))) => {
                if printed.is_empty() && command.ends_with('\\') {
                    *command += &format!("\n{line}");
                } else {
                    printed.push((*line).to_owned());
                }
            }
            _ => panic!("line {}: output without a command", number + 1),
        }
    }
}

/// Returns true if the text matches a line of a page.
fn fits(shown: &str, text: &str) -> bool {
    let mut rest = text;
    let mut parts = shown.trim_end().split("[..]").enumerate().peekable();
    while let Some((index, part)) = parts.next() {
        let last = parts.peek().is_none();
        let found = match (index, last) {
            (0, true) => (rest.trim_end() == part).then_some(0),
            (0, false) => rest.starts_with(part).then_some(0),
            (_, true) => rest
                .trim_end()
                .ends_with(part)
                .then(|| rest.trim_end().len() - part.len()),
            (_, false) => rest.find(part),
        };
        match found {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// Returns true if the lines match the lines of a page.
fn all_fit(shown: &[String], lines: &[&str]) -> bool {
    match shown.split_first() {
        None => lines.is_empty(),
        Some((first, others)) if first.trim() == "..." => {
            (0..=lines.len()).any(|skipped| all_fit(others, &lines[skipped..]))
        }
        Some((first, others)) => {
            let Some((line, rest)) = lines.split_first() else {
                return false;
            };
            fits(first, line) && all_fit(others, rest)
        }
    }
}

/// A script that runs the steps of a page in one shell, in an empty directory; it writes the output
/// of each command to `logs`.
fn script(steps: &[Step], here: &Path, logs: &Path) -> String {
    let mut script = format!("cd {}\n", here.display());
    for (index, step) in steps.iter().enumerate() {
        match step {
            Step::File(name, text, adds) => {
                let from = logs.join(format!("{index}.file"));
                fs::write(&from, text).expect("a file");
                let into = if *adds { ">>" } else { ">" };
                script += &format!("cat {} {into} {name}\n", from.display());
            }
            Step::Run(command, _, end, shown) => {
                let log = logs.join(index.to_string());
                let log = log.display();
                script += &match end {
                    End::Status(status) => format!(
                        "{{ {command}\n}} > {log} 2>&1\nended=$?\necho $ended > {log}.status\n[ $ended = {status} ] || exit 1\n"
                    ),
                    // The command runs until it has printed the expected lines, or has ended.
                    End::Served => format!(
                        ": > {log}\n( exec {command} ) >> {log} 2>&1 &\nserver=$!\n\
                         while kill -0 $server && [ $(wc -l < {log}) -lt {} ]; do sleep 0.05; done\n\
                         kill $server && echo 0 > {log}.status\nwait $server\n[ -e {log}.status ] || exit 1\n",
                        shown.len()
                    ),
                };
            }
            Step::Image(..) => {}
        }
    }
    script
}

/// Time after which a page counts as hanging, seconds.
const TIMEOUT_SECONDS: &str = "600";

/// A shell in a new network namespace, so that all ports are free.
fn shell() -> Command {
    let own = ["--map-root-user", "--net"];
    let may = Command::new("unshare")
        .args(own)
        .args(["sh", "-c", "ip link set lo up"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !may {
        let mut shell = Command::new("timeout");
        shell.args([TIMEOUT_SECONDS, "bash"]);
        return shell;
    }
    let mut shell = Command::new("timeout");
    shell.args([TIMEOUT_SECONDS, "unshare"]);
    shell
        .args(own)
        .args(["sh", "-c", "ip link set lo up && exec bash"]);
    shell
}

fn execute(name: &str, page: &str) {
    let steps = steps(page);
    let here = tempfile::tempdir().expect("a directory");
    let logs = tempfile::tempdir().expect("a directory");
    let program = Path::new(env!("CARGO_BIN_EXE_anabranch"));
    let path = format!(
        "{}:{}",
        program.parent().expect("a directory").display(),
        std::env::var("PATH").expect("a path")
    );
    let file = logs.path().join("script");
    fs::write(&file, script(&steps, here.path(), logs.path())).expect("a file");
    let ran = shell()
        .stdin(fs::File::open(&file).expect("the script"))
        .env("PATH", path)
        .env("NO_COLOR", "1")
        .env_remove("COLUMNS")
        .output()
        .expect("a shell");
    for (index, step) in steps.iter().enumerate() {
        match step {
            Step::File(..) => {}
            Step::Run(command, line, wanted, shown) => {
                let read = |file: PathBuf| fs::read_to_string(file).unwrap_or_default();
                let said = read(logs.path().join(index.to_string()));
                let status = read(logs.path().join(format!("{index}.status")));
                let place = format!("docs/{name}, line {line}: $ {command}");
                let wanted = match wanted {
                    End::Status(status) => status.to_string(),
                    End::Served => {
                        assert!(!shown.is_empty(), "{place}\nshows nothing");
                        "0".to_owned()
                    }
                };
                assert!(
                    status.trim() == wanted,
                    "{place}\nended with status {status}{said}{}",
                    String::from_utf8_lossy(&ran.stderr)
                );
                let lines: Vec<&str> = said.lines().collect();
                assert!(
                    shown.is_empty() || all_fit(shown, &lines),
                    "{place}\nprints\n{said}\nand not\n{}",
                    shown.join("\n")
                );
            }
            Step::Image(image, made) => {
                let page = docs().join(name);
                let image = page.parent().expect("a folder").join(image);
                let made = fs::read(here.path().join(made)).expect(made);
                if writes() {
                    fs::write(&image, &made).expect("the image");
                }
                assert!(
                    fs::read(&image).expect("the image") == made,
                    "docs/{name}: {} is not what its commands make; BOOK=write makes it anew",
                    image.display()
                );
            }
        }
    }
}

/// Finds all pages in a folder, by their paths from `docs/`.
fn pages(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "md") {
            let name = path.strip_prefix(docs()).expect("a page of the book");
            found.push(name.to_string_lossy().into_owned());
        }
    }
}

#[test]
fn the_commands_of_every_page_do_what_it_says() {
    let mut names = Vec::new();
    pages(&docs(), &mut names);
    names.sort_unstable();
    let mut commands = 0;
    for name in &names {
        let page = fs::read_to_string(docs().join(name)).expect("a page");
        let run = |step: &&Step| matches!(step, Step::Run(..));
        let count = steps(&page).iter().filter(run).count();
        if count > 0 {
            execute(name, &page);
            commands += count;
        }
    }
    assert!(commands >= 20, "{commands} commands in the book");
}

#[test]
#[should_panic(expected = "and not")]
fn other_output_is_found() {
    execute(
        "invented.md",
        "```console\n$ echo one; echo two\none\n```\n",
    );
}

#[test]
#[should_panic(expected = "ended with status 1")]
fn a_command_that_fails_is_found() {
    execute("invented.md", "```console\n$ false\n$ true\n```\n");
}

#[test]
fn a_command_that_serves_is_ended() {
    execute(
        "invented.md",
        "```console serve\n$ bash -c 'echo begun; exec sleep 1000'\nbegun\n```\n```console\n$ true\n```\n",
    );
}

#[test]
#[should_panic(expected = "ended with status")]
fn a_command_that_should_serve_and_ends_is_found() {
    execute("invented.md", "```console serve\n$ false\nbegun\n```\n");
}

#[test]
fn lines_and_parts_of_lines_may_be_left_out() {
    let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(all_fit(&shown("a\n...\nd"), &["a", "b", "c", "d"]));
    assert!(all_fit(&shown("a [..] c"), &["a 17 b c"]));
    assert!(!all_fit(&shown("a\n...\ne"), &["a", "b", "c", "d"]));
    assert!(!all_fit(&shown("a"), &["a", "b"]));
    assert!(!fits("a [..] c", "a 17 b d"));
}

/// The text of the page before the commands.
const ABOUT: &str = "# Commands

This page is generated from the command line (`BOOK=write cargo test -p anabranch-cli --test book`). Do not edit it. The same text comes from
`anabranch help COMMAND` and, as man pages, from `anabranch man`.
";

fn help(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .arg("help")
        .args(arguments)
        .env("NO_COLOR", "1")
        .env_remove("COLUMNS")
        .output()
        .expect("the command");
    assert!(output.status.success(), "help {arguments:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

#[test]
fn the_page_of_commands_is_up_to_date() {
    let all = help(&[]);
    let list = all.split("Commands:\n").nth(1).expect("commands");
    let names = list
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help");
    let mut page = format!("{ABOUT}\n```text\n{}\n```\n", all.trim_end());
    for name in names {
        let text = help(&[name]);
        page += &format!(
            "\n## anabranch {name}\n\n```text\n{}\n```\n",
            text.trim_end()
        );
    }
    let path = docs().join("reference/commands.md");
    if writes() {
        fs::write(&path, &page).expect("the page");
    }
    let found = fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == page,
        "docs/reference/commands.md is not what `anabranch help` says; \
         `BOOK=write cargo test -p anabranch-cli --test book` writes it"
    );
}

/// Each code block of the page is a part of a source file of the command, and the last block is a
/// whole file.
#[test]
fn the_page_of_subcommands_has_the_code() {
    let page = fs::read_to_string(docs().join("extending/subcommand.md")).expect("the page");
    let source = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name);
        fs::read_to_string(path).expect("a source file")
    };
    let blocks: Vec<&str> = page.split("```rust").skip(1).collect();
    let code = blocks.iter().map(|block| {
        let (_, code) = block.split_once('\n').expect("a line");
        code.split("```").next().expect("a block")
    });
    let code: Vec<&str> = code.collect();
    let [arguments, line, work] = code[..] else {
        panic!("found {} blocks of code", code.len());
    };
    assert!(source("arguments.rs").contains(arguments), "{arguments}");
    assert!(source("main.rs").contains(line), "{line}");
    assert_eq!(source("settings.rs"), work);
}

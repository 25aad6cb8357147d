//! Former names of flags and commands: each error names a replacement that exists.

use std::path::Path;

use anabranch_settings::{NameCategory, RENAMED};

use super::anabranch;

fn run(words: &[&str]) -> (Option<i32>, String) {
    let output = anabranch(Path::new("."), words);
    let [out, error] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    (output.status.code(), format!("{out}{error}"))
}

#[test]
fn each_former_flag_or_command_leads_to_one_that_exists() {
    let mut checked = 0;
    for it in RENAMED {
        let is_renamed = |(status, text): (Option<i32>, String)| {
            let expected = format!("found `{}`, which is renamed to `{}`", it.old, it.new);
            assert!(status == Some(2) && text.contains(&expected), "{text}");
        };
        match it.family {
            NameCategory::Command => {
                is_renamed(run(&[it.old]));
                assert_eq!(run(&[it.new, "--help"]).0, Some(0), "{}", it.new);
            }
            NameCategory::Flag(commands) => {
                for command in commands {
                    // All services of a server have the same flags.
                    let words: &[&str] = match *command {
                        "serve" => &["serve", "source"],
                        other => &[other],
                    };
                    is_renamed(run(&[words, &[it.old]].concat()));
                    let (status, help) = run(&[words, &["--help"]].concat());
                    let flag = it.new.split(' ').next().expect("a flag");
                    let has = |flag: &str| {
                        help.contains(&format!("{flag} ")) || help.contains(&format!("{flag}\n"))
                    };
                    assert!(status == Some(0) && has(flag), "{command} {flag}: {help}");
                }
            }
            _ => continue,
        }
        checked += 1;
    }
    assert!(checked > 5, "{checked}");
}

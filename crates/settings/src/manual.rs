//! Pages of the manual and help texts, generated from declarations.

use std::fmt::Write;

use crate::setting::{Fallback, Kind, Setting};

/// Section of a page or a help text: a group of settings with one owner.
#[derive(Clone, Copy)]
pub struct Section<'a> {
    /// Heading of the section.
    pub title: &'a str,
    /// Paragraph below the heading.
    pub about: &'a str,
    /// Settings of the section.
    pub settings: &'a [Setting],
    /// Names of the profiles whose defaults are listed separately; a single name if there are no
    /// profiles.
    pub profiles: &'a [&'a str],
    /// Returns the default of a setting in a profile.
    pub fallback: &'a dyn Fn(&str, &str) -> Option<String>,
}

/// Entry in the column of defaults for a required setting.
const REQUIRED: &str = "required";

impl Section<'_> {
    /// The section in Markdown, with a row for each setting.
    pub fn markdown(&self) -> String {
        let mut page = format!("## {}\n\n{}\n\n", self.title, self.about);
        if self.settings.is_empty() {
            page.truncate(page.len() - 1);
            return page;
        }
        page.push_str("| name | type | unit | range | default | clause | description |\n");
        page.push_str("|---|---|---|---|---|---|---|\n");
        for setting in self.settings {
            let kind = &setting.kind;
            let cells = [
                format!("`{}`", setting.name),
                kind.type_name().to_owned(),
                kind.unit(),
                kind.range(),
                self.default_of(setting),
                setting.clause.to_owned(),
                what(setting),
            ];
            let cells = cells.map(|cell| cell.replace('|', "\\|"));
            let _ = writeln!(page, "| {} |", cells.join(" | "));
        }
        page
    }

    /// The section as help text for a terminal of `width` columns: name, range and default of each
    /// setting, and a sentence about it.
    pub fn help(&self, width: usize) -> String {
        let mut help = format!("{}:\n", self.title);
        for setting in self.settings {
            let range = setting.kind.range();
            let _ = writeln!(help, "  {}=<{}>", setting.name, setting.kind.type_name());
            let default = self.default_of(setting);
            let mut text = setting.summary();
            if !matches!(setting.kind, Kind::Flag) {
                let _ = write!(text, " Takes {range}.");
            }
            if default == REQUIRED {
                let _ = write!(text, " [{default}]");
            } else if !default.is_empty() {
                let _ = write!(text, " [default: {default}]");
            }
            help.push_str(&wrapped(&text, 10, width));
        }
        help
    }

    /// Default of a setting; if it differs between profiles, each default with its profile.
    pub fn default_of(&self, setting: &Setting) -> String {
        let of = |profile: &&str| (self.fallback)(profile, setting.name);
        let Some(first) = self.profiles.first().and_then(of) else {
            return match setting.fallback {
                Fallback::Is(value) => value.to_owned(),
                Fallback::Required => REQUIRED.to_owned(),
                Fallback::Owner | Fallback::Nothing => String::new(),
            };
        };
        let mut groups: Vec<(String, Vec<&str>)> = vec![(first, Vec::new())];
        for profile in self.profiles {
            let value = of(profile).unwrap_or_default();
            match groups.iter_mut().find(|(known, _)| *known == value) {
                Some((_, profiles)) => profiles.push(profile),
                None => groups.push((value, vec![profile])),
            }
        }
        let others = groups[1..]
            .iter()
            .map(|(value, profiles)| format!("; {}: {value}", profiles.join(", ")));
        groups[0].0.clone() + &others.collect::<String>()
    }
}

/// Text of a setting, with the descriptions of its words.
fn what(setting: &Setting) -> String {
    let mut text = setting.text();
    let words = match &setting.kind {
        Kind::Choice(words) | Kind::Either(words, _) => words.to_vec(),
        Kind::Registered(words) => words(),
        _ => Vec::new(),
    };
    for word in words.iter().filter(|word| !word.about.is_empty()) {
        let _ = write!(text, " `{}`: {}.", word.name, word.about);
    }
    text
}

/// Breaks a text into lines of at most `width` columns, indented by `indent` blanks.
fn wrapped(text: &str, indent: usize, width: usize) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column == 0 || column + 1 + length > width {
            let _ = write!(
                lines,
                "{}{:indent$}{word}",
                if column == 0 { "" } else { "\n" },
                ""
            );
            column = indent + length;
        } else {
            let _ = write!(lines, " {word}");
            column += 1 + length;
        }
    }
    lines.push('\n');
    lines
}

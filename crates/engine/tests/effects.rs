//! A setting without effect is an error. Therefore every setting should change something in one of
//! a few small worlds, alone or with the settings that it requires.

mod kinds;
mod values;
mod worlds;

use anabranch_engine::kinds::Standard;
use anabranch_scenario::transport::TransportKind;

use values::{Subject, subjects};
use worlds::{Depth, Runs, TransportInput, WORLDS};

/// Search for an effect of each setting of a transport.
struct Search<'a> {
    runs: Runs<'a>,
    subjects: &'a [Subject],
}

/// Result of the search for a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// The setting changes the events in the world with this index.
    Effect(Depth, usize),
    /// The setting changes no events.
    Nothing,
    /// The setting makes a spec valid that would be invalid without it.
    Admits,
    /// The setting is an error in all tried specs.
    Refused,
}

/// All subjects of a transport; the profile counts as a setting.
fn all_subjects(kind: &TransportKind) -> Vec<Subject> {
    subjects_under(kind, kind.profiles.first().copied().unwrap_or_default())
}

/// All subjects, compared with the defaults of the given profile.
fn subjects_under(kind: &TransportKind, profile: &str) -> Vec<Subject> {
    let of = |setting| subjects(setting, (kind.fallback)(profile, setting.name).as_deref());
    let mut all: Vec<Subject> = kind.all().flat_map(of).collect();
    let others = kind.profiles.iter().skip(1);
    let others: Vec<String> = others.map(|name| format!("{name:?}")).collect();
    if !others.is_empty() {
        all.push(Subject {
            name: "profile".to_owned(),
            key: "profile",
            from: None,
            to: others,
            about: String::new(),
        });
    }
    all
}

/// `base` with the setting; `None` if `base` has another value of the setting.
fn with(base: &TransportInput, key: &str, value: &str) -> Option<TransportInput> {
    match base.iter().find(|(known, _)| known == key) {
        Some((_, known)) => (known == value).then(|| base.clone()),
        None => {
            let mut all = base.clone();
            all.push((key.to_owned(), value.to_owned()));
            Some(all)
        }
    }
}

impl<'a> Search<'a> {
    fn new(kind: &'a TransportKind, subjects: &'a [Subject]) -> Self {
        Self {
            runs: Runs::new(kind),
            subjects,
        }
    }

    /// `base` with a setting, and with the settings that are required for it. The required settings
    /// are found by their names in error messages.
    fn support(
        &self,
        base: &TransportInput,
        key: &str,
        value: &str,
        depth: usize,
    ) -> Option<TransportInput> {
        let all = with(base, key, value)?;
        let Err(error) = self.runs.accepts(&all) else {
            return Some(all);
        };
        let named = |it: &&Subject| {
            depth > 0 && !it.name.contains('.') && it.key != key && error.contains(it.key)
        };
        let helpers = self.subjects.iter().filter(named);
        let mut helpers = helpers.flat_map(|it| it.to.iter().map(move |value| (it.key, value)));
        helpers.find_map(|(helper, word)| {
            let direct = with(&all, helper, word)?;
            if self.runs.accepts(&direct).is_ok() {
                return Some(direct);
            }
            let base = self.support(base, helper, word, depth - 1)?;
            let all = with(&base, key, value)?;
            self.runs.accepts(&all).is_ok().then_some(all)
        })
    }

    /// Searches for an effect of the setting alone, and then with each value of the settings that
    /// its text names.
    fn anywhere(&mut self, subject: &Subject) -> Found {
        let all = self.runs.places.clone();
        let depths = [Depth::Packets, Depth::Told];
        let name = format!("{} {}", self.runs.name(), subject.name);
        if let Some((_, beside)) = BESIDE.iter().find(|(known, _)| *known == name) {
            let owned = beside.iter();
            let base = owned.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            return self.look(subject, &base.collect(), &depths, &all);
        }
        let alone = self.look(subject, &TransportInput::new(), &depths, &all);
        if alone != Found::Nothing {
            return alone;
        }
        let subjects = self.subjects;
        let named = |it: &&Subject| {
            it.key != subject.key && subject.about.contains(&format!("`{}`", it.key))
        };
        for other in subjects.iter().filter(named) {
            for value in &other.to {
                let Some(base) = self.support(&TransportInput::new(), other.key, value, 2) else {
                    continue;
                };
                let found = self.look(subject, &base, &depths[..1], &all);
                if matches!(found, Found::Effect(..)) {
                    return found;
                }
            }
        }
        alone
    }

    /// Worlds in which the setting alone changes packets.
    fn effective(&mut self, subject: &Subject, worlds: &[usize]) -> Vec<usize> {
        let mut all = worlds.to_vec();
        all.retain(|world| {
            let found = self.look(
                subject,
                &TransportInput::new(),
                &[Depth::Packets],
                &[*world],
            );
            matches!(found, Found::Effect(..))
        });
        all
    }

    /// Searches `worlds` in order for one in which a value of the setting changes the events
    /// compared with `base`.
    fn look(
        &mut self,
        subject: &Subject,
        base: &TransportInput,
        depths: &[Depth],
        worlds: &[usize],
    ) -> Found {
        let mut pairs: Vec<[TransportInput; 2]> = Vec::new();
        let mut admits = false;
        for value in &subject.to {
            let Some(mut to) = self.support(base, subject.key, value, 2) else {
                continue;
            };
            let mut from = to.clone();
            from.retain(|(key, _)| key != subject.key);
            // If possible, the run for comparison leaves the key out, because all settings can
            // share this run.
            let plain = !subject.name.contains('.') && !Runs::worlds_give(subject.key);
            if let Some(own) = subject.from.as_ref().filter(|_| !plain) {
                from.push((subject.key.to_owned(), own.clone()));
            }
            from.sort();
            to.sort();
            if self.runs.accepts(&from).is_ok() {
                pairs.push([from, to]);
            } else {
                admits = true;
            }
        }
        if pairs.is_empty() {
            return if admits {
                Found::Admits
            } else {
                Found::Refused
            };
        }
        for &depth in depths {
            for &world in worlds {
                for pair in &pairs {
                    let [from, to] = [0, 1].map(|it| self.runs.digest(world, &pair[it], depth));
                    if from.is_some() && to.is_some() && from != to {
                        return Found::Effect(depth, world);
                    }
                }
            }
        }
        Found::Nothing
    }
}

fn kinds() -> Vec<&'static TransportKind> {
    let all = Standard::default().transports.kinds();
    let wanted = std::env::var("EFFECTS_OF").ok();
    let is_wanted = |kind: &&TransportKind| wanted.as_deref().is_none_or(|it| it == kind.name);
    all.into_iter().filter(is_wanted).collect()
}

/// Settings that show no effect in these worlds, with the reason. None of them is ineffective by
/// design.
const UNSEEN: &[(&str, &str)] = &[
    ("sctp drain_timeout = \"off\"", UNMET),
    ("sctp late_cookies_discarded", SCRIPTS),
    ("sctp t2_restarts_with_data_only", SCRIPTS),
    ("sctp late_data_unanswered", SCRIPTS),
    ("sctp dtls_replay_window", UNMET),
    ("sctp accept_stream_resets", PROGRAMS),
    ("sctp accept_association_reset", PROGRAMS),
    ("sctp accept_added_streams", PROGRAMS),
];
const UNMET: &str = "what it is about does not happen in these worlds";
const SCRIPTS: &str = "no setup or end is disturbed here: the scripts of crates/sctp/tests show it";
const PROGRAMS: &str = "programs ask for that, and no flow does: specs may not have it";

/// Settings that show an effect in these worlds only together with several other settings, or with
/// one that their text does not name.
type Beside = (&'static str, &'static [(&'static str, &'static str)]);
const BESIDE: &[Beside] = &[
    ("tcp retransmission_cancels_rtt", &[("rack", "true")]),
    (
        "sctp loss_cancels_rtt",
        &[("retransmission_cancels_rtt", "false")],
    ),
    (
        "sctp answer_after_timeout_clears_errors",
        &[("potentially_failed", "true"), ("path_max_retrans", "1")],
    ),
    (
        "sctp rsctp_wireless_switch_needs_bandwidth",
        &[
            ("rsctp", "true"),
            ("congestion", "\"rsctp\""),
            ("rsctp_max_loss_rate", "0.005"),
        ],
    ),
    (
        "sctp cmt_cwnd_update",
        &[("cmt", "true"), ("growth_needs_cumulative_advance", "true")],
    ),
    (
        "sctp accept_address_changes",
        &[
            ("address_changes", "true"),
            ("authentication", "\"on\""),
            ("asconf_on_link_change", "\"100 ms\""),
        ],
    ),
];

/// Tests each setting, and each word that it may have, with values that follow from its type,
/// together with the settings that it requires or that its text names. For a number, the test shows
/// only that some other number has an effect. The longer test below tries combinations with all
/// other settings.
#[test]
fn each_setting_changes_something() {
    let mut idle = Vec::new();
    for kind in kinds() {
        let subjects = all_subjects(kind);
        let mut search = Search::new(kind, &subjects);
        if search.runs.places.is_empty() {
            continue; // it was not compiled in
        }
        for subject in &subjects {
            let name = format!("{} {}", kind.name, subject.name);
            if UNSEEN.iter().any(|(unseen, _)| *unseen == name) {
                continue;
            }
            let found = search.anywhere(subject);
            if !matches!(found, Found::Effect(..) | Found::Admits) {
                idle.push(format!("{name}: {found:?}"));
            }
        }
        println!(
            "{}: {} subjects, {} runs",
            kind.name,
            subjects.len(),
            search.runs.count
        );
    }
    assert_eq!(idle, Vec::<String>::new());
}

/// Tests each setting with every value of every other setting, and finds combinations in which it
/// has no effect, although it has one alone.
#[test]
#[ignore = "takes many minutes; `EFFECTS_OF=tcp` for one transport alone, `EFFECTS_BESIDE=cmt,rack` for combinations with these"]
fn each_setting_changes_something_with_each_other() {
    for kind in kinds() {
        let subjects = all_subjects(kind);
        let mut search = Search::new(kind, &subjects);
        let all = search.runs.places.clone();
        let mut alone = Vec::new();
        for subject in by_key(&subjects) {
            let worlds = search.effective(&subject, &all);
            let names: Vec<&str> = worlds.iter().map(|it| WORLDS[*it].name).collect();
            println!("{} {}: {}", kind.name, subject.name, names.join("; "));
            alone.push((subject, worlds));
        }
        let (mut pairs, mut refused) = (0, 0);
        let only = std::env::var("EFFECTS_BESIDE").ok();
        for other in subjects.iter().filter(|it| {
            only.as_deref()
                .is_none_or(|o| o.split(',').any(|o| it.key == o))
        }) {
            let few = if other.to.len() > 1 {
                &other.to[..2]
            } else {
                &other.to[..]
            };
            for value in few
                .iter()
                .take(if other.name.contains('.') { 1 } else { 2 })
            {
                let Some(base) = search.support(&TransportInput::new(), other.key, value, 2) else {
                    continue;
                };
                let mut idle: Vec<String> = Vec::new();
                let own = by_key(&subjects_under(kind, value.trim_matches('"')));
                for (subject, worlds) in &alone {
                    let subject = match other.key == "profile" {
                        true => own.iter().find(|it| it.key == subject.key).unwrap(),
                        false => subject,
                    };
                    let is_given = base.iter().any(|(key, _)| key == subject.key);
                    if is_given || worlds.is_empty() {
                        continue;
                    }
                    pairs += 1;
                    match search.look(subject, &base, &[Depth::Packets], worlds) {
                        Found::Nothing => idle.push(subject.name.clone()),
                        Found::Refused => refused += 1,
                        Found::Admits | Found::Effect(..) => {}
                    }
                }
                search.runs.forget();
                println!("{} {base:?}: {}", kind.name, idle.join(", "));
            }
        }
        println!(
            "{}: {pairs} pairs, {refused} refused, {} runs",
            kind.name, search.runs.count
        );
    }
}

/// Combines the subjects of each key into one, with only a few values.
fn by_key(subjects: &[Subject]) -> Vec<Subject> {
    let mut all: Vec<Subject> = Vec::new();
    for subject in subjects.iter().filter(|it| !it.name.contains('.')) {
        match all.iter_mut().find(|it| it.key == subject.key) {
            Some(known) => known.to.extend(subject.to.iter().cloned()),
            None => all.push(Subject {
                name: subject.key.to_owned(),
                ..subject.clone()
            }),
        }
    }
    all.iter_mut().for_each(|it| it.to.truncate(4));
    all
}

/// Papers, examples and benchmarks should contain no setting without effect.
#[test]
fn the_specs_of_this_project_have_no_setting_without_effect() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders: Vec<_> = ["papers", "examples", "bench", "docs", "validation"]
        .map(|it| root.join(it))
        .into();
    let mut planned = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "toml") {
                let text = std::fs::read_to_string(&path).expect("a file");
                if !text.lines().any(|line| line == "anabranch = 1") {
                    continue;
                }
                match worlds::plan(text) {
                    Ok(_) => planned += 1,
                    // Specs that need other files, or a stack that is not compiled in, are tested
                    // elsewhere.
                    Err(error) => {
                        assert!(
                            !error.contains("it has no effect"),
                            "{}: {error}",
                            path.display()
                        );
                        println!("{}: {error}", path.display());
                    }
                }
            }
        }
    }
    assert!(planned > 20, "only {planned}");
}

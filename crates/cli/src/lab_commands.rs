//! Implementation of the commands that work on specs, papers and results.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;

use anabranch_engine::kinds::Standard;
use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::world;
use anabranch_lab::journal::Damage;
use anabranch_lab::outputs::{self, WriteError};
use anabranch_lab::papers::{PaperCatalog, PaperError, example, examples};
use anabranch_lab::plain;
use anabranch_lab::reference::Loaded;
use anabranch_lab::run::CaptureRequest;
use anabranch_lab::run::{self, Simulator};
use anabranch_lab::shard::{self, CompleteShards, ShardContents, ShardError, ShardSpec};
use anabranch_lab::spec_files;
use anabranch_lab::spec_source::Folder;
use anabranch_lab::store::{Store, StoreError};
use anabranch_lab::threads::Threads;
use anabranch_report::Outputs;
use anabranch_report::outputs::TALLIES;
use anabranch_report::terminal::{self, Terminal};
use anabranch_scenario::records::Results;
use anabranch_scenario::schema::json_schema;
use anabranch_scenario::suggest::nearest;
use anabranch_settings::counted;

use crate::arguments::{Common, Merge, Reproduce, RunArguments};
use crate::failure::{Failure, unread};
use crate::interrupt::Interruption;
use crate::net::live::{self, MixedRunner};
use crate::overwrite_note::print_overwrite_note;
use crate::progress::Bar;
use crate::shell_quote::quoted;
use crate::stderr::note;

/// Lists the papers. For each: its location, papers with the same name that it hides, and the
/// verdicts of its last run in the current directory.
pub fn papers() -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let mut damaged = Vec::new();
    for paper in PaperCatalog::standard().papers().map_err(paper_failed)? {
        let name = &paper.name;
        match paper.title() {
            Ok(title) => {
                writeln!(out, "{name:16} {title}")?;
                writeln!(out, "{:16} anabranch reproduce {name}", "")?;
            }
            Err(error) => {
                writeln!(out, "{name:16} cannot be read")?;
                damaged.push(error.to_string());
            }
        }
        write!(out, "{:16} found in {}", "", paper.folder)?;
        for hidden in &paper.hides {
            write!(out, "; hides that of {hidden}")?;
        }
        writeln!(out)?;
        // Results are in a directory with the paper's name, in the current directory.
        for tally in plain::text(&Path::new(name).join(TALLIES))
            .iter()
            .flat_map(|it| it.lines())
        {
            for (at, line) in terminal::fitted(tally, 27).iter().enumerate() {
                let head = if at == 0 { "last run:" } else { "" };
                writeln!(out, "{:16} {head:9} {line}", "")?;
            }
        }
    }
    if damaged.is_empty() {
        Ok(())
    } else {
        Err(Failure::Usage(damaged.join("\nerror: ")))
    }
}

/// Runs the experiments of a paper, and compares the results with the printed values.
pub fn reproduce(arguments: &Reproduce) -> Result<(), Failure> {
    let source = read_paper(&arguments.paper)?;
    work(source, &arguments.common, &[], &[])
}

/// Reads the spec of a paper.
pub fn read_paper(name: &str) -> Result<SpecSource, Failure> {
    let paper = PaperCatalog::standard().paper(name).map_err(paper_failed)?;
    Ok(SpecSource {
        file: paper.spec_path().display().to_string(),
        text: paper.text().map_err(paper_failed)?,
        folder: paper.folder,
    })
}

fn paper_failed(error: PaperError) -> Failure {
    match error {
        PaperError::Spec(error) => Failure::Spec(error),
        error => Failure::Usage(error.to_string()),
    }
}

/// A spec with the place that it comes from.
pub struct SpecSource {
    /// Name of the file, for messages.
    pub file: String,
    /// Text of the spec.
    pub text: String,
    /// Folder of the files that the spec names.
    pub folder: Folder,
}

/// Runs a spec of the user.
pub fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let source = read_spec(&arguments.spec)?;
    work(
        source,
        &arguments.common,
        &arguments.capture,
        &arguments.live,
    )
}

/// Reads a spec from its file, or the built-in example of that name if there is no such file. A
/// directory of that name is ignored, because the results of an example are in a directory with its
/// name.
pub fn read_spec(path: &Path) -> Result<SpecSource, Failure> {
    let file = path.display().to_string();
    let error = match fs::read_to_string(path) {
        Ok(text) => {
            let folder = Folder::of(path);
            return Ok(SpecSource { file, text, folder });
        }
        Err(error) => error,
    };
    let missing = matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::IsADirectory
    );
    if let Some((text, folder)) = path.to_str().filter(|_| missing).and_then(example) {
        let text = text.to_owned();
        return Ok(SpecSource { file, text, folder });
    }
    let hint = if missing {
        let known = examples();
        let near = nearest(&file, known.iter().map(String::as_str))
            .map_or(String::new(), |name| format!("; did you mean `{name}`?"));
        format!("; examples that need no file: {}{near}", known.join(", "))
    } else {
        String::new()
    };
    let message = format!("cannot read the spec {file}: {}{hint}", unread(&error));
    Err(Failure::Usage(message))
}

/// Creates and validates the plan of a spec with the options of the command line.
fn plan(source: &SpecSource, common: &Common) -> Result<Plan, Failure> {
    let plan = Plan::with_executor(
        PlanRequest::new(source.file.clone(), source.text.clone()).with(|it| {
            it.overrides = common.set.clone();
            it.only = common.only.clone();
            it.replications = common.replications;
            it.quick = common.quick;
            it.record_all = common.record_all;
            it.seed = common.seed;
            it.files = spec_files::files(&source.folder);
        }),
        &Standard::default(),
        &Threads(jobs(common.jobs)),
    )?;
    check_record_all(&plan, common)?;
    Ok(plan)
}

/// Creates and validates the plan of a spec that other processes will run. Returns it with the
/// number of threads that share a run.
pub fn planned(spec: &Path, common: &Common) -> Result<(Plan, usize), Failure> {
    let source = read_spec(spec)?;
    let plan = plan(&source, common)?;
    let reference = Loaded::read(&plan.spec.reference, &source.folder);
    reference.map_err(|error| Failure::Usage(error.to_string()))?;
    let threads = check_threads(&plan, common, &[], &[])?;
    Ok((plan, threads))
}

/// Plans and runs a spec, and writes all outputs.
fn work(
    source: SpecSource,
    common: &Common,
    captures: &[(String, PathBuf)],
    live: &[String],
) -> Result<(), Failure> {
    let interruption = Interruption::watch();
    let plan = plan(&source, common)?;
    for remark in &plan.notes {
        note(format_args!("note: {}: {remark}", plan.request.file));
    }
    let directory = common.out.clone().unwrap_or_else(|| match common.shard {
        Some(share) => {
            let share = share.to_string().replace('/', "-of-");
            PathBuf::from(format!("{}-{share}", plan.spec.name))
        }
        None => PathBuf::from(&plan.spec.name),
    });
    check_share(common, captures)?;
    check_captures(&plan, captures)?;
    let reference = Loaded::read(&plan.spec.reference, &source.folder);
    let reference = reference.map_err(|error| Failure::Usage(error.to_string()))?;
    live::check(&plan, live)?;
    let threads = check_threads(&plan, common, captures, live)?;
    let simulator = Simulator::default().with(|it| {
        it.threads = common.threads as usize;
        it.captures = captures
            .iter()
            .map(|(link, path)| CaptureRequest::new(link, path))
            .collect();
        it.captured = plan
            .experiments
            .first()
            .map(|experiment| experiment.id.clone());
    });
    let store = open(&directory)?;
    print_overwrite_note(&directory, &plan.spec.name);
    let kept = reference.keep(&directory);
    kept.map_err(|error| Failure::Reference(Box::new(error)))?;
    interruption.keeps(&directory);
    // Real-time runs should not wait for a core.
    let jobs = match (live.is_empty(), common.jobs) {
        (true, None) => (jobs(None) / threads).max(1),
        (true, asked) => jobs(asked),
        (false, _) => 1,
    };
    let runner = MixedRunner { simulator, live };
    let bar = Bar::new();
    if let Some(share) = common.shard {
        return run_shard(&plan, share, &store, &runner, jobs, &bar);
    }
    let results = run::run(&plan, &store, &runner, jobs, &bar);
    bar.clear();
    let results = results.map_err(|error| Failure::Run(Box::new(error), directory.clone()))?;
    write_outputs(&results, &reference, &directory)?;
    // Not freed, because the process ends now and freeing a hundred thousand records takes time.
    std::mem::forget((results, plan));
    Ok(())
}

/// Opens a results directory, and prints a note about damaged records.
fn open(directory: &Path) -> Result<Store, Failure> {
    let store = Store::create(directory).map_err(|error| Failure::Directory(Box::new(error)))?;
    for damage in store.damaged() {
        let Damage {
            path,
            runs,
            bytes,
            lost,
        } = damage;
        let path = path.display();
        note(format_args!(
            "note: {path}: damaged: {}; runs lost, and to be repeated: {lost}; runs kept: {runs}",
            counted(bytes, "byte")
        ));
    }
    Ok(store)
}

/// Runs one shard of a plan.
fn run_shard(
    plan: &Plan,
    share: ShardSpec,
    store: &Store,
    runner: &MixedRunner<'_>,
    jobs: usize,
    bar: &Bar,
) -> Result<(), Failure> {
    let shard = ShardContents::of(plan, share, runner.live);
    let begun = shard.begin(store);
    begun.map_err(|error| Failure::Shard(Box::new(error)))?;
    let made = run::run_shard(plan, share, store, runner, jobs, bar);
    bar.clear();
    let directory = store.directory();
    let runs = made.map_err(|error| Failure::Run(Box::new(error), directory.to_owned()))?;
    let mut out = io::stdout().lock();
    writeln!(out, "shard {share}: {runs} of {} runs", plan.runs())?;
    let directory = quoted(&directory.display().to_string())?;
    writeln!(out, "with the others: anabranch merge {directory} ...")?;
    Ok(())
}

/// Merges the results of all shards.
pub fn merge(arguments: &Merge) -> Result<(), Failure> {
    let failed = |error| Failure::Shard(Box::new(error));
    let whole = CompleteShards::read(&arguments.shards).map_err(failed)?;
    let name = || PathBuf::from(&whole.plan.spec.name);
    let directory = arguments.out.clone().unwrap_or_else(name);
    let mut references = Vec::new();
    for shard in whole.directories() {
        let loaded = Loaded::kept(&whole.plan.spec.reference, shard);
        references.push(loaded.map_err(|error| Failure::Reference(Box::new(error)))?);
    }
    if let Some(other) = references.iter().position(|it| !it.is_same(&references[0])) {
        let shards: Vec<&Path> = whole.directories().collect();
        return Err(failed(ShardError::Differ {
            first: shards[0].to_owned(),
            second: shards[other].to_owned(),
            what: "the files of [reference] differ".to_owned(),
        }));
    }
    let store = open(&directory)?;
    let runner = MixedRunner {
        simulator: Simulator::default(),
        live: &whole.shard.live,
    };
    whole.copy(&store, &runner).map_err(failed)?;
    let results = store.assemble(&whole.plan, &runner);
    let results = results.map_err(|error| Failure::Store(Box::new(error)))?;
    let reference = references.swap_remove(0);
    let kept = reference.keep(&directory);
    kept.map_err(|error| Failure::Reference(Box::new(error)))?;
    write_outputs(&results, &reference, &directory)
}

/// Computes and writes tables, figures and the report page, and prints a summary.
fn write_outputs(results: &Results, reference: &Loaded, directory: &Path) -> Result<(), Failure> {
    let outputs_failed =
        |error: WriteError| Failure::Outputs(Box::new(error), directory.to_owned());
    let made = Outputs::make(results, &reference.reference);
    let made = made.map_err(|error| outputs_failed(error.into()))?;
    outputs::write(&made, directory).map_err(outputs_failed)?;
    summary(&made, directory)
}

/// Refuses --record-all if the spec records no series.
fn check_record_all(plan: &Plan, common: &Common) -> Result<(), Failure> {
    let points = plan.experiments.iter().flat_map(|it| &it.points);
    let mut records = points.flat_map(|point| point.records());
    if common.record_all && records.next().is_none() {
        return Err(Failure::Usage(
            "found --record-all, but no experiment has a `record` that says which series"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Refuses several threads for runs that one thread must do. Returns the maximum number of threads
/// that share a run.
fn check_threads(
    plan: &Plan,
    common: &Common,
    captures: &[(String, PathBuf)],
    live: &[String],
) -> Result<usize, Failure> {
    let threads = common.threads as usize;
    if threads == 1 {
        return Ok(1);
    }
    let found = format!("found --threads {threads}");
    if !captures.is_empty() {
        let message = "with --capture, which numbers the packets of the whole world; leave one out";
        return Err(Failure::Usage(format!("{found} {message}")));
    }
    if !live.is_empty() {
        let message = "with --live: real sockets have their own threads; leave one out";
        return Err(Failure::Usage(format!("{found} {message}")));
    }
    let units = PlannedRun::all(plan).into_iter();
    let units: Vec<_> = units.filter(|unit| unit.replication == 0).collect();
    let parts =
        Threads(jobs(common.jobs)).map(&units, |unit| world::check_divisible(unit, threads));
    let mut most = 1;
    for (unit, parts) in units.iter().zip(parts) {
        let parts = parts
            .map_err(|error| Failure::Usage(format!("{found}: {}: {error}", described(unit))))?;
        most = most.max(parts);
    }
    if most < threads {
        let file = &plan.request.file;
        let used = counted(most, "part");
        note(format_args!(
            "note: {file}: {found}; the worlds have at most {used}, so that no run has more threads"
        ));
    }
    Ok(most)
}

/// The experiment and the point of a run, for messages.
fn described(unit: &PlannedRun<'_>) -> String {
    let values = unit.point().into_iter();
    let values: Vec<String> = values.map(|(name, x)| format!("{name} {x}")).collect();
    match values.as_slice() {
        [] => unit.experiment.id.clone(),
        values => format!("{} at {}", unit.experiment.id, values.join(", ")),
    }
}

/// Refuses captures by a shard that does not include the first run.
fn check_share(common: &Common, captures: &[(String, PathBuf)]) -> Result<(), Failure> {
    match common.shard {
        Some(share) if !share.has(0) && !captures.is_empty() => Err(Failure::Usage(format!(
            "found --capture with shard {share}, but the first run, which is captured, belongs to the first shard"
        ))),
        _ => Ok(()),
    }
}

/// Number of parallel runs: as requested, or one per processor.
pub fn jobs(asked: Option<u32>) -> usize {
    asked.map_or_else(
        || thread::available_parallelism().map_or(1, usize::from),
        |jobs| jobs as usize,
    )
}

/// Refuses captures of links that the first run does not have, and capture files in directories
/// that do not exist.
fn check_captures(plan: &Plan, captures: &[(String, PathBuf)]) -> Result<(), Failure> {
    let known = world::link_names(&plan.spec);
    let known = || known.iter().map(String::as_str);
    for (link, file) in captures {
        if !known().any(|name| name == link) {
            return Err(Failure::unknown("--capture", link, known()));
        }
        let folder = file.parent().filter(|it| !it.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|it| !it.is_dir()) {
            return Err(Failure::Usage(format!(
                "--capture: found {}, but there is no directory {}",
                file.display(),
                folder.display()
            )));
        }
    }
    Ok(())
}

/// Prints a short summary of the tables.
fn summary(outputs: &Outputs<'_>, directory: &Path) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let runs = outputs.results.manifest.runs;
    writeln!(out, "{}", counted(runs, "run"))?;
    for failure in outputs.results.failures() {
        writeln!(out, "failed: {failure}")?;
    }
    for remark in outputs.results.notes() {
        note(format_args!("note: {remark}"));
    }
    let open = outputs.unmatched_rows.iter().map(ToString::to_string);
    for text in outputs.tallies().into_iter().chain(open) {
        for line in terminal::fitted(&text, 0) {
            writeln!(out, "{line}")?;
        }
    }
    writeln!(out, "report: {}", directory.join("report.html").display())?;
    let directory = quoted(&directory.display().to_string())?;
    writeln!(out, "tables: anabranch show {directory}")?;
    Ok(())
}

/// Prints the tables and key figures of a finished run.
pub fn show(directory: &Path) -> Result<(), Failure> {
    let results = Store::open(directory).map_err(|error| match error {
        StoreError::Read { .. } if directory.join(shard::FILE).exists() => Failure::Usage(format!(
            "{} is a shard of a sweep; `anabranch merge` puts the shards together",
            directory.display()
        )),
        // Runs without a manifest mean that the command was interrupted, because the manifest is
        // written last.
        StoreError::Read { ref source, .. }
            if source.kind() == io::ErrorKind::NotFound && directory.join("runs").is_dir() =>
        {
            Failure::Usage(format!(
                "{} is not finished: repeat the command that began it, and it continues",
                directory.display()
            ))
        }
        StoreError::Read { path, source }
            if matches!(
                source.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Failure::Usage(format!(
                "{} is not a results directory: it has no {}",
                directory.display(),
                path.display()
            ))
        }
        error => Failure::Store(Box::new(error)),
    })?;
    let reference = Loaded::kept(&results.spec.reference, directory);
    let reference = reference.map_err(|error| Failure::Reference(Box::new(error)))?;
    let outputs = Outputs::make(&results, &reference.reference)
        .map_err(|error| Failure::Show(Box::new(error)))?;
    terminal::show(&outputs, Terminal::detect(), &mut io::stdout().lock())?;
    Ok(())
}

/// Prints the JSON Schema of specs.
pub fn schema() -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(&json_schema(&Standard::default()))
        .map_err(io::Error::from)?;
    writeln!(io::stdout().lock(), "{text}")?;
    Ok(())
}

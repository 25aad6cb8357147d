//! `anabranch slurm`: runs a spec as a job array, followed by a job that merges the results.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anabranch_lab::atomic_write::{self, Durability};
use anabranch_settings::counted;

use crate::arguments::{Common, Slurm};
use crate::failure::Failure;
use crate::lab_commands::planned;
use crate::shell_quote::quoted;

/// Maximum number of attempts of a task.
const ATTEMPTS: u32 = 3;

/// Folders of the scripts and of the shards, in the results directory.
const SCRIPTS: &str = "slurm";
const SHARDS: &str = "shards";

/// Writes the two scripts, and submits them.
pub fn slurm(arguments: &Slurm) -> Result<(), Failure> {
    let common = &arguments.common;
    if common.shard.is_some() {
        let message = "found --shard; the tasks of the array are the shards";
        return Err(Failure::Usage(message.to_owned()));
    }
    let (plan, threads) = planned(&arguments.spec, common)?;
    let (tasks, runs) = (arguments.array as usize, plan.runs());
    if tasks > runs {
        return Err(Failure::Usage(format!(
            "found --array {tasks}; the spec has {}, and each task needs one",
            counted(runs, "run")
        )));
    }
    let out = common.out.clone();
    let out = absolute(&out.unwrap_or_else(|| PathBuf::from(&plan.spec.name)))?;
    let program = env::current_exe().map_err(|error| Failure::Net(error.to_string()))?;
    let script = Script {
        name: &plan.spec.name,
        program: &program,
        // A built-in example without a file is passed by its name.
        spec: match arguments.spec.is_file() {
            true => absolute(&arguments.spec)?,
            false => arguments.spec.clone(),
        },
        out: &out,
        tasks,
        common,
        threads,
        options: &arguments.sbatch,
    };
    let folder = out.join(SCRIPTS);
    let failed = |path: &Path, error: io::Error| {
        Failure::Net(format!("cannot write {}: {error}", path.display()))
    };
    let texts = [script.array()?, script.merge()?];
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
    let [array, merge] = ["array.sh", "merge.sh"].map(|name| folder.join(name));
    for (path, text) in [&array, &merge].into_iter().zip(texts) {
        let written = atomic_write::write(path, Durability::Buffered, |file| {
            file.write_all(text.as_bytes())
        });
        written.map_err(|error| failed(path, error))?;
    }
    let mut said = io::stdout().lock();
    if arguments.dry_run {
        writeln!(
            said,
            "{} for {}: sbatch {}",
            counted(tasks, "task"),
            counted(runs, "run"),
            array.display()
        )?;
        writeln!(
            said,
            "then: sbatch --dependency=afterok:ID {}",
            merge.display()
        )?;
        return Ok(());
    }
    let job = submit(&["--parsable"], &array)?;
    let after = format!("--dependency=afterok:{job}");
    // The option cancels the merging job if the array fails, because that job would otherwise wait
    // forever.
    let merged = submit(&["--parsable", "--kill-on-invalid-dep=yes", &after], &merge)?;
    writeln!(
        said,
        "array: job {job}, {} for {}",
        counted(tasks, "task"),
        counted(runs, "run")
    )?;
    writeln!(said, "merge: job {merged}, after them")?;
    writeln!(said, "report: {}", out.join("report.html").display())?;
    writeln!(said, "logs: {}/*.log", folder.display())?;
    Ok(())
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    let found = std::path::absolute(path);
    found.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// Submits a script, and returns the id of the job.
fn submit(options: &[&str], script: &Path) -> Result<String, Failure> {
    let by_hand = || {
        format!(
            "the scripts are in {}",
            script.parent().unwrap_or(script).display()
        )
    };
    let made = Command::new("sbatch").args(options).arg(script).output();
    let made =
        made.map_err(|error| Failure::Net(format!("cannot call sbatch: {error}; {}", by_hand())))?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr);
        return Err(Failure::Net(format!(
            "sbatch: {}; {}",
            said.trim(),
            by_hand()
        )));
    }
    let id = String::from_utf8_lossy(&made.stdout);
    // With several clusters, `sbatch` appends the name of the cluster.
    Ok(id.trim().split(';').next().unwrap_or_default().to_owned())
}

/// Generator of the two scripts.
struct Script<'a> {
    name: &'a str,
    program: &'a Path,
    spec: PathBuf,
    out: &'a Path,
    tasks: usize,
    common: &'a Common,
    /// Number of threads that share a run.
    threads: usize,
    options: &'a [String],
}

/// A directive for sbatch, which is a comment for the shell. Control characters are refused,
/// because a line feed would start a shell command, and comments have no quoting.
fn directive(text: &str) -> Result<String, Failure> {
    match text.find(char::is_control) {
        None => Ok(format!("#SBATCH {text}")),
        Some(at) => Err(Failure::Usage(format!(
            "found {:?} in {text:?}; an option of sbatch, the name of the spec and the results directory have no control characters",
            text[at..].chars().next().unwrap_or_default()
        ))),
    }
}

impl Script<'_> {
    /// The directives that both scripts have.
    fn head(&self, log: &str) -> Result<String, Failure> {
        let folder = format!("{}/", self.out.join(SCRIPTS).display());
        // sbatch replaces patterns that begin with %; two % stand for one.
        let folder = folder.replace('%', "%%");
        let mut lines = vec![
            "#!/bin/sh".to_owned(),
            format!("--job-name={}", quoted(self.name)?),
            format!("--output={}", quoted(&format!("{folder}{log}"))?),
            "--requeue --open-mode=append".to_owned(),
        ];
        lines.extend(self.options.iter().cloned());
        for line in &mut lines[1..] {
            *line = directive(line)?;
        }
        Ok(lines.join("\n"))
    }

    /// The script of a task, which runs one shard. A task that is killed is started again, and its
    /// finished runs are kept; `--requeue` handles the failure of a node. An invalid spec (status
    /// 2) is not retried.
    fn array(&self) -> Result<String, Failure> {
        let common = self.common;
        let mut command = vec![
            quoted(&self.program.display().to_string())?,
            "run".to_owned(),
            quoted(&self.spec.display().to_string())?,
        ];
        if !common.only.is_empty() {
            command.push(format!("--only {}", quoted(&common.only.join(","))?));
        }
        if let Some(replications) = common.replications {
            command.push(format!("--replications {replications}"));
        }
        command.push(format!("--seed {}", common.seed));
        for (given, flag) in [
            (common.quick, "--quick"),
            (common.record_all, "--record-all"),
        ] {
            command.extend(given.then(|| flag.to_owned()));
        }
        if common.threads > 1 {
            command.push(format!("--threads {}", common.threads));
        }
        for setting in &common.set {
            command.push(format!("--set {}", quoted(setting)?));
        }
        let jobs = common.jobs.unwrap_or(1);
        let processors = u64::from(jobs) * self.threads as u64;
        Ok(format!(
            "{head}
#SBATCH --array=1-{tasks} --ntasks=1 --cpus-per-task={processors}
task=$SLURM_ARRAY_TASK_ID
try=1
until {command} --jobs {jobs} --shard \"$task/{tasks}\" --out {shards}/\"$task\"; do
    status=$?
    if [ $status -eq 2 ] || [ $try -ge {ATTEMPTS} ]; then exit $status; fi
    echo \"anabranch: task $task ended with status $status; it is begun again\"
    try=$((try + 1))
done
",
            head = self.head("%a.log")?,
            tasks = self.tasks,
            command = command.join(" "),
            shards = self.shards()?,
        ))
    }

    fn merge(&self) -> Result<String, Failure> {
        let shards = self.shards()?;
        let all = (1..=self.tasks).map(|task| format!(" \\\n    {shards}/{task}"));
        Ok(format!(
            "{head}\n#SBATCH --ntasks=1\n{program} merge --out {out}{all}\n",
            head = self.head("merge.log")?,
            program = quoted(&self.program.display().to_string())?,
            out = quoted(&self.out.display().to_string())?,
            all = all.collect::<String>(),
        ))
    }

    fn shards(&self) -> Result<String, Failure> {
        quoted(&self.out.join(SHARDS).display().to_string())
    }
}

//! The processes of the command line and their descendants, all of which end with this process.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use anabranch_emulate::namespace::Namespace;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use tokio::sync::{mpsc, oneshot};

use super::parent_death;
use crate::failure::Failure;

/// Time for which background commands may continue after the end of the main command, before they
/// get SIGTERM.
const LINGER: Duration = Duration::from_millis(200);
/// Time limit for commands to end after SIGTERM.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval at which it is checked whether processes have ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum number of checks for processes that were killed.
const MAX_CHECKS: u32 = 200;

/// A background command of --run.
pub struct BackgroundCommand {
    /// Node and command, for messages.
    pub what: String,
    child: Child,
    status: Option<ExitStatus>,
}

impl BackgroundCommand {
    /// Why the command failed; `None` if it still runs or has succeeded.
    pub fn failure(&self) -> Option<String> {
        let status = self.status.filter(|it| !it.success())?;
        Some(match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with status {code}"),
            (None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None) => "ended".to_owned(),
        })
    }
}

/// The running main command.
pub struct MainCommand {
    child: Child,
    ended: oneshot::Receiver<()>,
}

impl MainCommand {
    /// Waits until the command ends; returns its exit status as a shell would.
    pub async fn ended(&mut self) -> u8 {
        // The thread that waits sends only one message.
        let _ = (&mut self.ended).await;
        let status = self.child.wait().ok();
        let code = status.and_then(|it| it.code().or(it.signal().map(|signal| 128 + signal)));
        code.and_then(|it| u8::try_from(it).ok()).unwrap_or(1)
    }

    /// Sends a signal to the command. Its process id cannot have been reused, because the process
    /// was not reaped.
    pub fn signal(&self, signal: Signal) {
        // Fails if the process has just ended.
        let _ = kill(pid(&self.child), signal);
    }
}

/// The background commands.
pub struct Processes {
    started: Vec<BackgroundCommand>,
    ended: mpsc::UnboundedReceiver<usize>,
    tell: mpsc::UnboundedSender<usize>,
}

impl Processes {
    /// Creates an empty set. From now on, orphaned descendants are reparented to this process.
    pub fn adopt() -> Self {
        // If this fails, a program that daemonizes itself is not ended with this process.
        let _ = prctl::set_child_subreaper(true);
        let (tell, ended) = mpsc::unbounded_channel();
        Self {
            started: Vec::new(),
            ended,
            tell,
        }
    }

    /// Starts a shell command in a namespace, as a separate process group.
    pub fn start(
        &mut self,
        namespace: &Namespace,
        what: String,
        command: String,
    ) -> Result<(), Failure> {
        let spawn = move || {
            parent_death::command(OsStr::new("sh"))?
                .arg("-c")
                .arg(command)
                .stdin(Stdio::null())
                .process_group(0)
                .spawn()
        };
        let child = begun(namespace, "sh", spawn)?;
        let (number, tell) = (self.started.len(), self.tell.clone());
        on_end(&child, move || {
            // Fails if the receiver was dropped at the end.
            let _ = tell.send(number);
        });
        self.started.push(BackgroundCommand {
            what,
            child,
            status: None,
        });
        Ok(())
    }

    /// Starts the main command in a namespace.
    pub fn run(&self, namespace: &Namespace, command: &[OsString]) -> Result<MainCommand, Failure> {
        let [program, rest @ ..] = command else {
            return Err(Failure::Usage("found no command".to_owned()));
        };
        let name = program.to_string_lossy().into_owned();
        let (program, rest) = (program.clone(), rest.to_vec());
        let child = begun(namespace, &name, move || {
            parent_death::command(&program)?.args(rest).spawn()
        })?;
        let (tell, ended) = oneshot::channel();
        on_end(&child, move || {
            // Fails if the receiver was dropped at the end.
            let _ = tell.send(());
        });
        Ok(MainCommand { child, ended })
    }

    /// Waits until the next background command ends.
    pub async fn next_ended(&mut self) -> Option<&BackgroundCommand> {
        let number = self.ended.recv().await?;
        let started = self.started.get_mut(number)?;
        started.status = started.child.wait().ok();
        Some(started)
    }

    /// Ends all background commands with their descendants.
    pub fn end(&mut self) {
        // Waits first, because a server may be about to end after its client has ended.
        self.wait(LINGER);
        for started in self.started.iter().filter(|it| it.status.is_none()) {
            // Fails if the process has just ended.
            let _ = killpg(pid(&started.child), Signal::SIGTERM);
        }
        self.wait(SHUTDOWN_TIMEOUT);
        for _ in 0..MAX_CHECKS {
            while matches!(waitpid(None, Some(WaitPidFlag::WNOHANG)), Ok(it) if it != WaitStatus::StillAlive)
            {
            }
            let left = children();
            if left.is_empty() {
                return;
            }
            for pid in left {
                let _ = kill(pid, Signal::SIGKILL);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until all background commands have ended, at most for `at_most`.
    fn wait(&mut self, at_most: Duration) {
        let mut waited = Duration::ZERO;
        while waited < at_most && !self.all_ended() {
            std::thread::sleep(POLL_INTERVAL);
            waited += POLL_INTERVAL;
        }
    }

    fn all_ended(&mut self) -> bool {
        for started in self.started.iter_mut().filter(|it| it.status.is_none()) {
            started.status = started.child.try_wait().ok().flatten();
        }
        self.started.iter().all(|it| it.status.is_some())
    }
}

fn begun(
    namespace: &Namespace,
    name: &str,
    spawn: impl FnOnce() -> std::io::Result<Child> + Send + 'static,
) -> Result<Child, Failure> {
    namespace
        .run(spawn)
        .and_then(|child| child)
        .map_err(|error| Failure::Usage(format!("cannot run {name}: {error}")))
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX))
}

/// Calls `act` when a child ends, without reaping it.
fn on_end(child: &Child, act: impl FnOnce() + Send + 'static) {
    let pid = pid(child);
    std::thread::spawn(move || {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        while waitid(Id::Pid(pid), flags) == Err(nix::errno::Errno::EINTR) {}
        act();
    });
}

/// The children of this process, including adopted orphans.
fn children() -> Vec<Pid> {
    let own = std::process::id();
    let Ok(all) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = all
        .flatten()
        .filter_map(|it| it.file_name().to_str()?.parse::<i32>().ok());
    numbers
        .filter(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            parent(&stat) == Some(own)
        })
        .map(Pid::from_raw)
        .collect()
}

/// The parent process id in the text of `/proc/PID/stat`: the second field after the name, which
/// may contain any characters.
fn parent(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parent;

    #[test]
    fn the_parent_is_found_behind_any_name() {
        assert_eq!(parent("12 (sh) S 7 12 12 0"), Some(7));
        assert_eq!(parent("12 (a) S 9 (b) R 7 12"), Some(7));
        assert_eq!(parent(""), None);
    }
}

//! The SCTP host of the programs: one in this process, or that of another `wrap` command of the
//! same user with the same UDP port.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::pin::Pin;
use std::time::Duration;

use anabranch_net::{Carrier, Config};
use anabranch_settings::counted;
use anabranch_sockets::host::{
    BypassStatus, Host, HostAccess, JoinResult, Membership, Refusals, Shortage, join,
};
use anabranch_sockets::{COMMAND_VARIABLE, HOST_VARIABLE, SECRET_VARIABLE};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::process::Command;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::security::Protection;
use crate::failure::Failure;
use crate::net::Interrupts;
use crate::net::wrap_arguments::Wrap;
use crate::stderr::note;

/// Times for which a host that a program has started waits: for the first socket, and after the
/// last socket for another one.
const FIRST_SOCKET: Duration = Duration::from_secs(10);
const NEXT_SOCKET: Duration = Duration::from_secs(2);
/// Time limit for the port of an ended host to become free, and interval of attempts.
const FORMER: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum number of different reasons of refusals that are printed; further ones are only counted,
/// because a peer may try again and again.
const MAX_REASONS: usize = 16;

/// The host that this command's program uses.
pub struct Serving {
    access: HostAccess,
    own: Option<OwnHost>,
    member: Option<JoinHandle<io::Result<()>>>,
}

/// A host in this process.
struct OwnHost {
    serve: JoinHandle<io::Result<()>>,
    idle: Pin<Box<dyn Future<Output = ()> + Send>>,
    members: watch::Receiver<usize>,
    shortage: watch::Receiver<Shortage>,
    refusals: watch::Receiver<Refusals>,
    tell: JoinHandle<()>,
    end: oneshot::Sender<()>,
}

impl Serving {
    /// Joins the host at the port, or starts one.
    pub fn begin(config: &Config, protection: &Protection) -> Result<Self, Failure> {
        // Repeated, because another host may start or end at the same time.
        for _ in 0..3 {
            match join(config, &protection.text) {
                Ok(JoinResult::NoHost) => (),
                Ok(JoinResult::Member(member)) => return Ok(Self::joined(member, config)),
                Ok(JoinResult::Refused(why)) => return Err(taken(config, &why)),
                Err(error) => return Err(taken(config, &error.to_string())),
            }
            let access = HostAccess::random();
            let access = access.map_err(|error| cannot(&error))?;
            match Host::start_shared(&access, config.clone(), &protection.text) {
                Ok(host) => return Ok(Self::of(host, access)),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => (),
                Err(error) => return Err(cannot(&error)),
            }
        }
        Err(taken(config, "another program has it"))
    }

    fn of(host: Host, access: HostAccess) -> Self {
        Self {
            access,
            own: Some(OwnHost::serve(host)),
            member: None,
        }
    }

    fn joined(member: Membership, config: &Config) -> Self {
        note(format_args!(
            "anabranch: the programs use the host of another command, which has {}",
            port(config)
        ));
        Self {
            access: member.access.clone(),
            own: None,
            member: Some(tokio::spawn(member.host_ended())),
        }
    }

    /// Sets the environment by which a program finds the host, and restarts it if it has ended.
    pub fn configure_child(
        &self,
        command: &mut Command,
        arguments: &Wrap,
        protection: &Protection,
    ) {
        command.env(HOST_VARIABLE, &self.access.name);
        match &self.access.secret {
            Some(secret) => command.env(SECRET_VARIABLE, secret),
            None => command.env_remove(SECRET_VARIABLE),
        };
        match restart_command(arguments, protection) {
            Some(beginning) => command.env(COMMAND_VARIABLE, beginning),
            None => command.env_remove(COMMAND_VARIABLE),
        };
    }

    /// Waits until the host ends, which happens only after an error; returns the reason.
    pub async fn failed(&mut self) -> String {
        let ended = match (&mut self.own, &mut self.member) {
            (Some(own), _) => (&mut own.serve).await,
            (None, Some(member)) => {
                let _ = member.await;
                self.member = None;
                return "the command whose host it was has ended".to_owned();
            }
            (None, None) => std::future::pending().await,
        };
        self.own = None;
        match ended {
            Ok(Ok(())) => "it has ended".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        }
    }

    /// Waits until the program's messages have arrived and all other commands that use the host
    /// have ended. An interrupt ends the wait.
    pub async fn finish(self, interrupts: &mut Interrupts) {
        let Some(own) = self.own else { return };
        let members = *own.members.borrow();
        if members > 0 {
            note(format_args!(
                "anabranch: the program has ended; its host goes on for {}",
                counted(members, "further command")
            ));
        }
        tokio::select! {
            () = own.idle => (),
            () = interrupts.next() => (),
        }
        drop(own.end);
        // Dropping `end` makes the host end.
        let _ = own.tell.await;
        own.serve.abort();
        report_refusals(&own.refusals.borrow());
        let refused = own.shortage.borrow().refused;
        if refused > 0 {
            note(format_args!(
                "anabranch: {} refused, since few file descriptors were left",
                counted(refused, "socket")
            ));
        }
    }
}

impl OwnHost {
    fn serve(host: Host) -> Self {
        let idle = Box::pin(host.idle());
        let members = host.members();
        let (mut missed, mut short) = (host.bypass_status(), host.shortage());
        let shortage = short.clone();
        let mut refused = host.refusals();
        let refusals = refused.clone();
        let (end, mut ended) = oneshot::channel::<()>();
        let tell = tokio::spawn(async move {
            let mut was_short = false;
            let mut reported = Vec::new();
            loop {
                tokio::select! {
                    // Bypassing calls are reported before the end of the program.
                    biased;
                    Ok(()) = missed.changed() => report_bypass(&missed.borrow_and_update()),
                    Ok(()) = short.changed(), if !was_short => {
                        report_shortage(*short.borrow_and_update());
                        was_short = true;
                    }
                    Ok(()) = refused.changed(), if reported.len() < MAX_REASONS => {
                        let why = refused.borrow_and_update().last.clone();
                        if !reported.contains(&why) {
                            note(format_args!("anabranch: an association was refused: {why}"));
                            reported.push(why);
                        }
                    }
                    _ = &mut ended => return,
                }
            }
        });
        Self {
            serve: tokio::spawn(host.serve()),
            idle,
            members,
            shortage,
            refusals,
            tell,
            end,
        }
    }
}

/// Runs a host without a program until it is interrupted; other commands join it.
pub async fn alone(config: &Config, protection: &Protection) -> Result<(), Failure> {
    let mut interrupts = Interrupts::new();
    let mut serving = Serving::begin(config, protection)?;
    if serving.own.is_none() {
        return Err(taken(config, "another command's host has it"));
    }
    raise_limit();
    note(format_args!("anabranch: a host has {}", port(config)));
    tokio::select! {
        why = serving.failed() => Err(Failure::Net(format!("the host ended: {why}"))),
        () = interrupts.next() => {
            if let Some(own) = &serving.own {
                report_refusals(&own.refusals.borrow());
            }
            Ok(())
        }
    }
}

/// Runs a host on behalf of a program, at the address in the environment, until no program has a
/// socket.
pub async fn again(config: Config, protection: &Protection) -> Result<(), Failure> {
    let name = std::env::var(HOST_VARIABLE).unwrap_or_default();
    if name.is_empty() {
        return Err(Failure::Usage(format!(
            "--again: programs give it {HOST_VARIABLE}, which is not there"
        )));
    }
    let secret = std::env::var(SECRET_VARIABLE).ok();
    let access = HostAccess {
        name,
        secret: secret.filter(|it| !it.is_empty()),
    };
    raise_limit();
    let host = begun_again(&access, &config, &protection.text).await?;
    let used = host.use_of();
    let serve = tokio::spawn(host.serve());
    tokio::time::sleep(FIRST_SOCKET).await;
    loop {
        used.none().await;
        tokio::time::sleep(NEXT_SOCKET).await;
        if used.is_none() {
            serve.abort();
            return Ok(());
        }
    }
}

/// Starts a host, repeatedly, because the system may still be releasing the port of the previous
/// one.
async fn begun_again(
    access: &HostAccess,
    config: &Config,
    protection: &str,
) -> Result<Host, Failure> {
    let mut waited = Duration::ZERO;
    loop {
        match Host::start_shared(access, config.clone(), protection) {
            Ok(host) => return Ok(host),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && waited < FORMER => {
                tokio::time::sleep(POLL_INTERVAL).await;
                waited += POLL_INTERVAL;
            }
            Err(error) => return Err(cannot(&error)),
        }
    }
}

/// The command line that restarts a host: the path of the program and its arguments, one per line.
/// `None` if an argument contains a line feed.
fn restart_command(arguments: &Wrap, protection: &Protection) -> Option<OsString> {
    let program = std::env::current_exe().ok()?.into_os_string();
    let mut words = vec![program, "wrap".into(), "--again".into()];
    match arguments.is_ip() {
        true => words.push("--carrier=ip".into()),
        false => {
            let [port, peer_port] = arguments.udp_ports();
            words.push(format!("--udp-port={port}").into());
            words.push(format!("--peer-udp-port={peer_port}").into());
        }
    }
    if arguments.auth {
        words.push("--auth".into());
    }
    words.extend(protection.words.iter().cloned());
    let local = arguments.local.iter();
    words.extend(local.map(|it| OsString::from(format!("--local={it}"))));
    let words: Vec<Vec<u8>> = words.into_iter().map(OsString::into_vec).collect();
    let fits = words.iter().all(|it| !it.contains(&b'\n'));
    fits.then(|| OsString::from_vec(words.join(&b'\n')))
}

/// The UDP port of a host, as text.
fn port(config: &Config) -> String {
    let at = match &config.addresses[..] {
        [] => String::new(),
        all => {
            let all: Vec<String> = all.iter().map(ToString::to_string).collect();
            format!(" at {}", all.join(", "))
        }
    };
    match config.carrier {
        Carrier::Encapsulated { port, .. } => format!("UDP port {port}{at}"),
        _ => format!("SCTP over IP{at}"),
    }
}

fn cannot(error: &io::Error) -> Failure {
    Failure::Net(format!("cannot open the sockets: {error}"))
}

fn taken(config: &Config, why: &str) -> Failure {
    let remedy = match config.carrier {
        Carrier::Encapsulated { .. } => {
            "; take another by --udp-port (0: any), other addresses by --local, or the same options as the command that has it"
        }
        _ => "; take other addresses by --local, or the same options as the command that has it",
    };
    Failure::Net(format!("{} is in use: {why}{remedy}", port(config)))
}

/// Prints which calls of a program bypass this stack.
fn report_bypass(missed: &BypassStatus) {
    match missed {
        BypassStatus::Socket => note(format_args!(
            "anabranch: a program asked the kernel itself for an SCTP socket, past the C library, and was refused (ENOSYS): only calls of libc's \
             functions can be caught. Static programs, and those of Go, do so."
        )),
        BypassStatus::Undetectable(error) => note(format_args!(
            "anabranch: cannot see whether programs ask the kernel itself for SCTP sockets (seccomp: {}); those that do get what the kernel has",
            io::Error::from_raw_os_error(*error)
        )),
        _ => (),
    }
}

/// Prints the number of refused associations, unless the only one was printed with its reason.
fn report_refusals(refusals: &Refusals) {
    if refusals.count > 1 {
        note(format_args!(
            "anabranch: {} refused because of --secure",
            counted(refusals.count, "association")
        ));
    }
}

/// Prints that descriptors were short; only once, because this may happen often.
fn report_shortage(shortage: Shortage) {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(limit, _)| limit);
    match shortage.last {
        _ if shortage.refused > 0 => note(format_args!(
            "anabranch: few file descriptors are left ({limit} may be open, one for each socket): sockets and associations are refused until \
             some are closed; `ulimit -n` allows more"
        )),
        Some(error) => note(format_args!(
            "anabranch: the system has no room for a socket now: {}; it is tried again",
            io::Error::from_raw_os_error(error)
        )),
        None => (),
    }
}

/// Raises the limit of descriptors, because the host has a descriptor for each socket of the
/// program. The host process gets the maximum of the system; the program keeps its limit.
pub fn raise_limit() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // If this fails, an error is printed when descriptors run out.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

//! Tests in which Debian's programs on this stack communicate with the same programs on Linux's own
//! SCTP, which runs in a User Mode Linux (the guest).

mod common;

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anabranch_interop::namespace::{self, Family, GUEST, HOST};
use anabranch_interop::peer::Peer;
use anabranch_interop::programs::Programs;
use anabranch_net::{Carrier, Config};
use common::{compile, library, run_at, text};

/// Timeout of a case, long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(250);
/// UDP port of both ends.
const PORT: u16 = 9899;
const NEEDED: [&str; 7] = [
    "sctp_test",
    "sctp_darn",
    "checksctp",
    "iperf3",
    "socat",
    "ncat",
    "stdbuf",
];

fn programs() -> &'static Programs {
    static PROGRAMS: OnceLock<Programs> = OnceLock::new();
    PROGRAMS.get_or_init(|| Programs::new(env!("CARGO_TARGET_TMPDIR"), "", ""))
}

/// Whether all requirements are available; prints the first that is missing.
fn able() -> bool {
    let programs_there = || {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = |name: &&str| std::env::split_paths(&path).any(|it| it.join(name).is_file());
        match NEEDED.iter().find(|name| !is_there(name)) {
            Some(name) => Err(format!("{name} is not installed (scripts/setup)")),
            None => Ok(()),
        }
    };
    let able = namespace::allowed()
        .and_then(|()| programs_there())
        .and_then(|()| programs().linux().map(drop));
    if let Err(reason) = &able {
        eprintln!("left out: {reason}");
    }
    able.is_ok()
}

/// Runs `body` in a network with a guest. The arguments of `body` are this side's address and the
/// guest's address.
fn beside_a_guest<R: Send>(body: impl FnOnce(IpAddr, IpAddr) -> Result<R, String> + Send) -> R {
    let run = || {
        namespace::tap(0, Family::V4)?;
        let at = |host| namespace::address(Family::V4, 0, host);
        body(at(HOST), at(GUEST))
    };
    namespace::inside(run).unwrap_or_else(|error| panic!("{error}"))
}

/// Configuration of a host at this address: SCTP directly over IP if `raw`, or else with UDP
/// encapsulation.
fn host(own: IpAddr, raw: bool) -> Config {
    Config::default().with(|it| {
        it.addresses = vec![own];
        it.carrier = match raw {
            true => Carrier::Ip,
            false => Carrier::Encapsulated {
                port: PORT,
                peer_port: PORT,
            },
        };
    })
}

#[allow(clippy::disallowed_methods)] // real peers take real time
fn deadline() -> Instant {
    Instant::now() + TIMEOUT
}

/// Starts a guest that runs `script`, in which the addresses are filled in.
fn guest(
    folder: &Path,
    script: &str,
    [own, other]: [IpAddr; 2],
    raw: bool,
) -> Result<Peer, String> {
    let path = folder.join("guest.sh");
    let head = format!("OWN={own}; OTHER={other}\n");
    fs::write(&path, head + script).map_err(|error| error.to_string())?;
    let udp = (!raw).then_some([PORT, PORT]);
    Peer::script(&path, own, udp, programs())
}

/// Shell script that starts the servers at address `OWN`, each at a port. Each server prints its
/// result as a line with one word, and ends with the shell.
const SERVERS: &str = r#"
    # Runs a command, and says its name when a line says that it listens, and when so many have what it shall get. Its standard input
    # never ends: ncat would end the association with it.
    pipe=$(mktemp -u); mkfifo $pipe; exec {open}<>$pipe; rm $pipe
    await() { # NAME LISTENS GETS COUNT COMMAND...
        local name=$1 listens=$2 found=$3 count=$4 n=0; shift 4
        stdbuf -oL -eL "$@" 2>&1 <&$open | { while read -r line; do
            [[ $line == *$listens* ]] && echo "listens $name" && listens=never
            [[ $line == *$found* ]] && ((++n == count)) && echo "got $name"
            last=$line
        done; echo "over $name: $last"; } &
    }
    await sctp_test Receiving 'recvmsg*Data' 70 sctp_test -H $OWN -P 5001 -l
    await sctp_test-T accept 'recvmsg*Data' 70 sctp_test -H $OWN -P 5002 -l -T
    await sctp_darn listening second 1 sctp_darn -H $OWN -P 5003 -l
    await iperf3 'Server listening' 'Server listening' 6 iperf3 -s -p 5300
    await socat 'listening on' 300000 1 socat -dd -u SCTP-LISTEN:5004 EXEC:'wc -c'
    await ncat Listening 'last words' 1 ncat -v --sctp -l $OWN 5005
"#;

/// Names of the servers, as the scripts print them.
const NAMES: [&str; 6] = [
    "sctp_test",
    "sctp_test-T",
    "sctp_darn",
    "iperf3",
    "socat",
    "ncat",
];

/// Shell script of clients, which connect to the servers at `OTHER`.
const CLIENTS: &str = r#"
    log=$(mktemp)
    fails() { tail -n 5 $log; echo "fails $1"; exit 1; }
    [[ $(checksctp 2>&1) == 'SCTP supported' ]] || fails checksctp
    # Each at a port of its own: the association of the one before may still be closing.
    for case in 0 1 2 3 4 5 6; do
        sctp_test -H $OWN -P $((6010 + case)) -h $OTHER -p 5001 -s -c $case -x 1 >$log 2>&1 </dev/null || fails "sctp_test $case"
        sctp_test -H $OWN -P $((6020 + case)) -h $OTHER -p 5002 -s -c $case -x 1 -T >$log 2>&1 </dev/null || fails "sctp_test -T $case"
    done
    echo called sctp_test
    printf 'first
second
' | sctp_darn -H $OWN -P 6003 -h $OTHER -p 5003 -s >/dev/null 2>&1 # its status says nothing
    echo called sctp_darn
    for options in '-n 2M' '-n 2M -R' '-n 2M -P 3' '-n 2M --nstreams 8 -b 0' '-n 2M --nstreams 8 -b 0 -R'; do
        # Its server does not listen for a moment after each test.
        until iperf3 -c $OTHER -p 5300 --sctp $options </dev/null >$log 2>&1; do
            grep -q 'unable to connect to server' $log || fails "iperf3 $options"
        done
    done
    echo called iperf3
    head -c 300000 /dev/zero | tr '\0' x | socat -u - SCTP:$OTHER:5004 || fails socat
    echo called socat
    echo last words | ncat --sctp --send-only $OTHER 5005 || fails ncat
    rm $log
    echo called ncat
"#;

/// Shell script for the guest after its programs have ended. It waits until all associations have
/// ended, because the kernel may still be sending the last data.
const LAST_WORDS: &str = "
    until (($(wc -l </proc/net/sctp/assocs) == 1)); do sleep 0.1; done
";

/// Tests programs on this stack that connect to programs on the kernel.
fn calls_the_kernel(raw: bool) {
    if !able() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    beside_a_guest(|own, other| {
        let until = deadline();
        let script = format!("{SERVERS}\nwait");
        let mut guest = guest(folder.path(), &script, [other, own], raw)?;
        for name in NAMES {
            guest.wait(&format!("listens {name}"), until)?;
        }
        let script = format!("OWN={own}; OTHER={other}\n{CLIENTS}");
        let mut command = Command::new("bash");
        let said = text(&run_at(
            command.args(["-c", &script]),
            &[library()],
            host(own, raw),
        ));
        if !said.ends_with("called ncat\n") {
            return Err(format!("{said}\n{guest}"));
        }
        for name in NAMES {
            guest.wait(&format!("got {name}"), until)?;
        }
        Ok(())
    });
}

/// Tests programs on the kernel that connect to programs on this stack.
fn is_called_by_the_kernel(raw: bool) {
    if !able() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let ready = folder.path().join("ready");
    let stop = folder.path().join("stop");
    // The guest starts when all servers listen. This script ends when each server has its result,
    // or when the guest has ended early.
    let mut script =
        format!("{{ {SERVERS}\nwait; }} > >(n=0; m=0; while read -r said; do echo \"$said\"");
    script.push_str(&format!(
        "
            [[ $said == listens* ]] && ((++n == {count})) && : >{ready}
            [[ $said == over* ]] && ((n < {count})) && kill -HUP $$
            [[ $said == got* ]] && ((++m == {count})) && kill -TERM $$
        done) &
        until [[ -e {stop} ]]; do sleep 0.1; done",
        count = NAMES.len(),
        ready = ready.display(),
        stop = stop.display()
    ));
    beside_a_guest(|own, other| {
        let until = deadline();
        std::thread::scope(|scope| {
            let servers = scope.spawn(|| {
                let traps = "trap 'echo all; exit' TERM; trap 'echo early; exit' HUP";
                let script = format!("OWN={own}\n{traps}\n{script}");
                let mut command = Command::new("bash");
                text(&run_at(
                    command.args(["-c", &script]),
                    &[library()],
                    host(own, raw),
                ))
            });
            while !ready.exists() && !servers.is_finished() {
                std::thread::sleep(Duration::from_millis(20));
            }
            if !ready.exists() {
                return Err(servers.join().expect("no panic"));
            }
            let script = format!("{CLIENTS}{LAST_WORDS}");
            let mut guest = guest(folder.path(), &script, [other, own], raw)?;
            let ended = guest.wait("ended", until);
            if ended.as_deref() != Ok("ended 0") {
                fs::write(&stop, "").map_err(|error| error.to_string())?;
            }
            let said = servers.join().expect("no panic");
            match (ended, said.ends_with("all\n")) {
                (Ok(ended), true) if ended == "ended 0" => Ok(()),
                (ended, _) => Err(format!("{ended:?}\n{said}\n{guest}")),
            }
        })
    });
}

#[test]
fn debians_programs_call_the_kernels_inside_udp() {
    calls_the_kernel(false);
}

#[test]
fn debians_programs_call_the_kernels_over_ip() {
    calls_the_kernel(true);
}

#[test]
fn the_kernels_programs_call_debians_inside_udp() {
    is_called_by_the_kernel(false);
}

#[test]
fn the_kernels_programs_call_debians_over_ip() {
    is_called_by_the_kernel(true);
}

/// On the kernel, the results of the calls should equal `calls.linux`, `more.linux`, `ports.linux`,
/// `edges.linux` and `ends.linux`. `linux.rs` compares this stack with the same files.
#[test]
fn the_kernels_calls_end_as_they_are_listed() {
    if !able() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    beside_a_guest(|own, other| {
        let until = deadline();
        let mut script = String::new();
        for (name, port) in [
            ("calls", 5001),
            ("more", 5101),
            ("ports", 5201),
            ("edges", 5301),
            ("ends", 5401),
        ] {
            script.push_str(&format!(
                "{program} {port} >/run/{name} 2>/dev/null
                if diff {listed} /run/{name}; then echo \"as listed {name}\"; fi\n",
                program = compile(name, folder.path()).display(),
                listed = tests.join(format!("{name}.linux")).display()
            ));
        }
        let mut guest = guest(folder.path(), &script, [other, own], true)?;
        guest.wait("ended", until)?;
        for name in ["calls", "more", "ports", "edges", "ends"] {
            if guest.wait(&format!("as listed {name}"), until).is_err() {
                return Err(guest.to_string());
            }
        }
        Ok(())
    });
}

//! Tests of `anabranch wrap` with several commands on one host, with hosts that are short of
//! descriptors, and with hosts that are killed.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};

use common::{library, tied};

/// Path of the `anabranch` command; `None` with a message if it is not built or python3 is missing.
fn anabranch() -> Option<PathBuf> {
    // target/*/deps contains the tests, and target/* the programs.
    let command = library().parent()?.parent()?.join("anabranch");
    if !command.is_file() {
        eprintln!("left out: {} is not built", command.display());
        return None;
    }
    let python = Command::new("python3").arg("--version").output();
    if python.is_err() {
        eprintln!("left out: python3 is not installed (scripts/setup)");
        return None;
    }
    Some(command)
}

/// A loopback address that no other test uses, even in another process.
fn own_address() -> String {
    static COUNT: AtomicU8 = AtomicU8::new(1);
    let [high, low] = ((std::process::id() % 65_000) as u16).to_be_bytes();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("127.{}.{high}.{low}", 100 + count)
}

/// First lines of all Python programs in these tests.
const HEAD: &str = "
import errno, os, signal, socket, sys, time
def tcp(kind=socket.SOCK_STREAM): return socket.socket(socket.AF_INET, kind, 132)
def error(what):
    try: return repr(what())
    except OSError as e: return errno.errorcode[e.errno]
def say(*words): print(*words, flush=True)
def heard(): return sys.stdin.readline()
AT = sys.argv[1]
";

/// A Python program under `anabranch wrap`, which reads and writes lines.
struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Program {
    /// Starts the program; `before` is run by the shell, for example to set a limit. If the command
    /// is killed, the shell stays alive, because its end would also kill the remaining processes.
    fn start(before: &str, arguments: &[&str], at: &str, script: &str) -> Option<Self> {
        let command = anabranch()?;
        let quoted: Vec<String> = arguments.iter().map(|it| format!("'{it}'")).collect();
        let line = format!(
            "{before}'{}' wrap --no-seccomp {} -- python3 -c \"$SCRIPT\" {at}; s=$?; [ $s = 137 ] && sleep 300; exit $s",
            command.display(),
            quoted.join(" ")
        );
        let mut shell = Command::new("bash");
        shell.args(["-c", &line]);
        let mut child = tied(&shell)
            .env("SCRIPT", format!("{HEAD}{script}"))
            .env("ANABRANCH_PRELOAD", library())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("bash is there");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Some(Self {
            child,
            input,
            output,
        })
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }

    fn tell(&mut self) {
        self.input.write_all(b"go\n").expect("it reads");
    }

    /// Returns the remaining output and the exit status.
    fn end(mut self) -> (String, Option<i32>) {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        let status = self.child.wait().expect("it ends");
        (rest.trim_end().to_owned(), status.code())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The host may already have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Program that accepts connections and echoes data until it is stopped, and closes connections
/// that the peer has closed.
const SERVER: &str = "
import select
l = tcp(); l.bind((AT, 7200)); l.listen(128); say('listening')
p = select.poll(); p.register(l, select.POLLIN); p.register(0, select.POLLIN)
held, errors = {}, set()
while True:
    for fd, _ in p.poll():
        if fd == 0: say(len(errors), 'errors'); sys.exit(0)
        if fd == l.fileno():
            try: c, _ = l.accept()
            except OSError as e: errors.add(e.errno); time.sleep(0.01); continue
            held[c.fileno()] = c; p.register(c, select.POLLIN); continue
        try: b = held[fd].recv(100)
        except OSError: b = b''
        if b: held[fd].send(b); continue
        p.unregister(fd); held.pop(fd).close()
";

/// Program that opens as many associations as possible, reports this, and closes them on request.
/// Then it opens one association, on which it expects an echo.
const CLIENTS: &str = "
all = []
for i in range(int(os.environ.get('COUNT', '1'))):
    c = tcp(); c.settimeout(10)
    try: c.connect((AT, 7200))
    except OSError: c.close(); continue
    all.append(c)
say('open')
heard()
for c in all: c.close()
for attempt in range(200):
    c = tcp(); c.settimeout(10)
    try: c.connect((AT, 7200)); c.send(b'hello'); b = c.recv(10)
    except OSError as e: b = b''
    c.close()
    if b == b'hello': break
    time.sleep(0.05)
say(b.decode())
";

/// If a peer opens more associations than the server's host may have descriptors, `accept` should
/// continue to work.
#[test]
fn a_host_without_descriptors_goes_on() {
    let at = own_address();
    let port = ["--udp-port", "9899", "--local", &at];
    let Some(mut server) = Program::start("ulimit -n 128; ", &port, &at, SERVER) else {
        return;
    };
    assert_eq!(server.line(), "listening");
    let own = own_address();
    let other = ["--udp-port", "0", "--local", &own];
    let mut clients =
        Program::start("export COUNT=250; ", &other, &at, CLIENTS).expect("as before");
    assert_eq!(clients.line(), "open");
    clients.tell();
    assert_eq!(clients.end().0, "hello");
    server.tell();
    let (said, status) = server.end();
    assert!(said.ends_with("errors"), "{said}");
    assert_eq!(status, Some(0));
}

/// Programs of the second command should use the host of the first command, with separate ports,
/// like programs that share a kernel. This should also work after the first command has ended.
#[test]
fn commands_with_one_port_share_a_host() {
    let at = own_address();
    let port = ["--udp-port", "9899", "--local", &at];
    let serve = "
l = tcp(); say(error(lambda: l.bind((AT, 7200)))); l.listen(5)
heard()
c, _ = l.accept(); say(c.recv(10).decode())
";
    let Some(mut first) = Program::start("", &port, &at, serve) else {
        return;
    };
    assert_eq!(first.line(), "None");
    let second = "
l = tcp(); say(error(lambda: l.bind((AT, 7200)))); l = tcp(); l.bind((AT, 7201)); l.listen(5)
c = tcp(); c.connect((AT, 7200)); c.send(b'hello'); say('sent')
heard()
c, _ = l.accept(); say(c.recv(10).decode())
";
    let mut second = Program::start("", &port, &at, second).expect("as before");
    assert_eq!(second.line(), "EADDRINUSE");
    assert_eq!(second.line(), "sent");
    first.tell();
    assert_eq!(first.line(), "hello");
    let third = "
c = tcp(); c.connect((AT, 7201)); c.send(b'again'); c.close()
";
    let third = Program::start("", &port, &at, third).expect("as before");
    assert_eq!(third.end(), (String::new(), Some(0)));
    second.tell();
    assert_eq!(second.end(), ("again".to_owned(), Some(0)));
    assert_eq!(first.end(), (String::new(), Some(0)));
}

#[test]
fn a_port_that_cannot_be_shared_is_named_with_the_remedy() {
    let at = own_address();
    let Some(command) = anabranch() else { return };
    let taken = std::net::UdpSocket::bind((at.as_str(), 0)).expect("loopback");
    let port = taken.local_addr().expect("a port").port().to_string();
    let output = Command::new(command)
        .args(["wrap", "--udp-port", &port, "--local", &at, "--", "true"])
        .env("ANABRANCH_PRELOAD", library())
        .output()
        .expect("it starts");
    let said = common::text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains(&format!("UDP port {port} at {at} is in use")),
        "{said}"
    );
    assert!(said.contains("--udp-port"), "{said}");
}

/// If the process that runs SCTP is killed, every socket should report an error, and a new socket
/// should work.
#[test]
fn a_host_that_dies_is_an_error_of_each_socket_and_another_is_begun() {
    let at = own_address();
    let port = ["--udp-port", "9899", "--local", &at];
    let script = "
import threading
l = tcp(); l.bind((AT, 7200)); l.listen(5)
c = tcp(); c.connect((AT, 7200)); d, _ = l.accept()
c.send(b'hello'); d.recv(10)
m = tcp(socket.SOCK_SEQPACKET); m.bind((AT, 7300)); m.listen(1)
f = tcp()
out = []
blocked = threading.Thread(target=lambda: out.append(error(lambda: d.recv(10)))); blocked.start()
time.sleep(0.2)
os.kill(os.getppid(), signal.SIGKILL)
blocked.join(); say('blocked', *out)
say('recv', error(lambda: d.recv(10)), error(lambda: c.recv(10)))
say('send', error(lambda: c.send(b'x')))
say('accept', error(lambda: l.accept()))
say('many', error(lambda: m.recv(10)))
say('bind', error(lambda: f.bind((AT, 7400))))
l = tcp(); l.bind((AT, 7200)); l.listen(5)
c = tcp(); c.connect((AT, 7200)); d, _ = l.accept()
c.send(b'again'); say(d.recv(10).decode())
";
    let Some(mut program) = Program::start("", &port, &at, script) else {
        return;
    };
    for expected in [
        "blocked ECONNRESET",
        "recv ECONNRESET ECONNRESET",
        "send ECONNRESET",
        "accept ECONNRESET",
        "many ECONNRESET",
        "bind ECONNRESET",
        "again",
    ] {
        assert_eq!(program.line(), expected);
    }
}

/// Functions of the following Python programs: socket options of the DTLS chunk
/// (draft-ietf-tsvwg-sctp-dtls-chunk-04 §8.4). All keys of one direction follow from a number.
const DTLS: &str = "
import struct
def opened():
    s = tcp()
    s.setsockopt(132, 0x4100, struct.pack('=iHHB', 0, 15, 1, 200)) # all flags, method 200
    s.setsockopt(132, 11, bytes([0, 1])) # SCTP_ASSOC_CHANGE
    return s
def opened_again():
    # A host that was killed may be reached until the kernel has closed its sockets.
    for i in range(3000):
        try: return opened()
        except ConnectionResetError: time.sleep(0.01)
def keys(s, option, number, restart=0):
    s.setsockopt(132, option, struct.pack('=i2BHQ4H', 0, 0x13, 1, restart, 3, 16, 12, 16, 0) + bytes([number]) * 44)
def keyed(s, send, receive):
    for restart in 0, 1:
        keys(s, 0x4105, receive + 10 * restart, restart)
        keys(s, 0x4104, send + 10 * restart, restart)
    s.setsockopt(132, 0x4107, struct.pack('=ii', 0, 1))
def hears(s):
    data, _, flags, _ = s.recvmsg(100)
    if flags & 0x8000: say('state', *data[8:9], 'dtls' if 7 in data[20:] else 'none')
    else: say(data.decode(), 'protected' if flags & 0x400000 else 'clear')
";

/// An end whose host was killed should restart its association with keys that it has stored. The
/// other end is notified, and nothing is sent without protection.
#[test]
fn a_program_restarts_an_association_with_its_keys() {
    let [at, own] = [own_address(), own_address()];
    let port = ["--udp-port", "9899", "--local", &at];
    let serve = format!(
        "{DTLS}
l = opened(); l.bind((AT, 7200)); l.listen(5); say('listening')
c, _ = l.accept(); keyed(c, 1, 2); say('keys')
for i in range(4): hears(c)
c.send(b'answer'); heard()
"
    );
    let Some(mut server) = Program::start("", &port, &at, &serve) else {
        return;
    };
    assert_eq!(server.line(), "listening");
    let connect = format!(
        "{DTLS}
def connected(*restart):
    s = opened_again(); s.bind(('{own}', 7300))
    for option, number in restart: keys(s, option, number, 1)
    s.connect((AT, 7200)); return s
c = connected(); keyed(c, 2, 1); heard(); c.send(b'first'); heard()
os.kill(os.getppid(), signal.SIGKILL)
c = connected((0x4104, 12), (0x4105, 11)); hears(c); c.send(b'again'); hears(c)
"
    );
    let port = ["--udp-port", "9899", "--local", &own];
    let mut client = Program::start("", &port, &at, &connect).expect("as before");
    assert_eq!(server.line(), "keys");
    client.tell();
    for expected in ["state 0 dtls", "first protected"] {
        assert_eq!(server.line(), expected);
    }
    client.tell();
    for expected in ["state 2 dtls", "again protected"] {
        assert_eq!(server.line(), expected);
    }
    for expected in ["state 0 dtls", "answer protected"] {
        assert_eq!(client.line(), expected);
    }
    server.tell();
}

/// A daemon that drops root privileges should still be able to use its host, because it has the
/// host's secret.
#[test]
fn a_program_that_gives_up_root_accepts() {
    let at = own_address();
    let port = ["--udp-port", "9899", "--local", &at];
    let script = "
if os.getuid() != 0: say('left out'); sys.exit(0)
l = tcp(); l.bind((AT, 7200)); l.listen(5)
if os.fork() == 0:
    c = tcp(); c.connect((AT, 7200)); c.send(b'x'); c.recv(10); os._exit(0)
os.setgid(65534); os.setuid(65534)
d, _ = l.accept(); say(d.recv(4).decode()); d.setsockopt(132, 3, 1)
say(tcp().fileno() > 0)
# Who does not know the secret is refused.
";
    let Some(program) = Program::start("", &port, &at, script) else {
        return;
    };
    let (said, _) = program.end();
    if said == "left out" {
        eprintln!("left out: this is not root");
        return;
    }
    assert_eq!(said, "x\nTrue");
}

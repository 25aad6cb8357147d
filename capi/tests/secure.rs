//! `anabranch wrap --secure`: unmodified programs, whose associations are protected by the DTLS
//! chunk. Their packets pass a relay that records them.

mod common;

use std::net::UdpSocket;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use anabranch_interop::namespace::{allowed, inside};
use anabranch_net::sctp::dtls::preshared::PresharedSettings;
use common::{compile_with, encapsulated, library, libsctp, run_at, run_with, text, tied};

/// Certificates of two authorities, and functions for all scripts. `await` waits until a file
/// contains a text.
const BEGIN: &str = r#"
certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 90 -subj /CN=$1 -keyout $1.key -out $1.pem "${@:2}" 2>/dev/null
}
for it in authority another; do certificate $it; done
for it in amf gnb; do
    certificate $it -addext subjectAltName=URI:spiffe://example.org/$it -addext basicConstraints=critical,CA:FALSE -CA authority.pem -CAkey authority.key
done
certificate stranger -addext subjectAltName=URI:spiffe://example.org/gnb -addext basicConstraints=critical,CA:FALSE -CA another.pem -CAkey another.key
echo "a secret of both ends" >psk
secure() { echo --secure --tls-cert $1.pem --tls-key $1.key --tls-ca ${2-authority}.pem; }
await() { for ((i = 0; i < 600; i++)); do grep -qs -- "$2" $1 && return; sleep 0.1; done; echo "no \"$2\":"; cat $1; exit 1; }
listens() {
    rm -f server.log
    exec 7<> <(true) # its standard input, which never ends
    anabranch wrap "$@" -- ncat -v --sctp -l 5002 <&7 >server.log 2>&1 & server=$!
    await server.log "Listening.*0.0.0.0"
}
# Sends a line through the relay.
sends() { echo "the line that is sent" | anabranch wrap --udp-port 0 --peer-udp-port 9900 "$@" -- ncat --sctp --send-only 127.0.0.1 5002 2>client.log; }
"#;

/// What `sends` sends.
const LINE: &[u8] = b"the line that is sent";

/// Runs the script in a network namespace, in an empty directory, with a relay from UDP port 9900
/// to 9899. Returns its output and all bytes that passed the relay; `None`: this machine cannot,
/// which is reported.
fn script(body: &str) -> Option<(String, Vec<u8>)> {
    if let Err(reason) = allowed() {
        eprintln!("left out: {reason}");
        return None;
    }
    // target/*/deps contains the tests, and target/* the programs.
    let anabranch = library().parent()?.parent()?.join("anabranch");
    let ncat = Command::new("ncat").arg("--version").output();
    if !anabranch.is_file() || ncat.is_err() {
        eprintln!("left out: anabranch is not built, or ncat is not installed (scripts/setup)");
        return None;
    }
    let asked = Command::new(&anabranch)
        .args([
            "wrap",
            "--secure",
            "--tls-cert",
            "none",
            "--tls-key",
            "none",
        ])
        .args(["--", "true"])
        .output();
    if text(&asked.expect("it starts")).contains("not compiled in") {
        eprintln!("left out: anabranch is built without the feature tls");
        return None;
    }
    let folder = tempfile::tempdir().expect("a directory");
    symlink(anabranch, folder.path().join("anabranch")).expect("a link");
    let mut command = Command::new("bash");
    command
        .args(["-ec", &format!("exec 2>&1\nPATH=.:$PATH\n{BEGIN}{body}")])
        .current_dir(folder.path());
    let run = || {
        let output = tied(&command)
            .env("ANABRANCH_PRELOAD", library())
            .stdin(Stdio::null())
            .output();
        text(&output.expect("bash is there"))
    };
    Some(inside(|| Ok(recorded(run))).expect("a network"))
}

/// Runs `body` with the relay.
fn recorded(body: impl FnOnce() -> String) -> (String, Vec<u8>) {
    let bound = |port: u16| UdpSocket::bind(("127.0.0.1", port)).expect("a port");
    let (front, back) = (bound(9900), bound(0));
    let client = Mutex::new(None);
    let record = Mutex::new(Vec::new());
    // Passes packets on, until an empty one arrives.
    let passes = |from: &UdpSocket, each: &dyn Fn(&[u8], std::net::SocketAddr)| {
        let mut buffer = [0; 65_536];
        while let Ok((length @ 1.., source)) = from.recv_from(&mut buffer) {
            record.lock().expect("no panic").extend(&buffer[..length]);
            each(&buffer[..length], source);
        }
    };
    let said = std::thread::scope(|scope| {
        scope.spawn(|| {
            passes(&front, &|packet, source| {
                *client.lock().expect("no panic") = Some(source);
                // Fails while the server has no socket.
                let _ = back.send_to(packet, ("127.0.0.1", 9899));
            });
        });
        scope.spawn(|| {
            passes(&back, &|packet, _| {
                if let Some(client) = *client.lock().expect("no panic") {
                    let _ = front.send_to(packet, client);
                }
            });
        });
        let said = body();
        for socket in [&front, &back] {
            let own = socket.local_addr().expect("bound");
            socket.send_to(&[], own).expect("loopback");
        }
        said
    });
    (said, record.into_inner().expect("no panic"))
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|it| it == part)
}

/// The same two programs with `--secure`, by certificates or a secret, and without it: only then
/// their line can be read on the wire.
#[test]
fn what_programs_send_cannot_be_read_on_the_wire() {
    let ways = [
        ("$(secure amf)", "$(secure gnb)", false),
        ("--secure --psk-file psk", "--secure --psk-file psk", false),
        ("", "", true),
    ];
    for (server, client, clear) in ways {
        let body = format!(
            "listens {server}; sends {client} || cat client.log; wait $server; tail -n 1 server.log"
        );
        let Some((said, record)) = script(&body) else {
            return;
        };
        assert_eq!(said.as_bytes(), [LINE, b"\n"].concat(), "{said}");
        assert!(record.len() > LINE.len());
        assert_eq!(contains(&record, LINE), clear, "{server}");
    }
}

/// iperf3 in both directions and over several associations. The secrets of TLS are in the file of
/// SSLKEYLOGFILE.
#[test]
fn iperf3_runs_over_protected_associations() {
    let body = r#"
export SSLKEYLOGFILE=$PWD/keys.log
for options in "" -R "-P 3"; do
    rm -f server.log
    anabranch wrap $(secure amf) -- stdbuf -oL iperf3 -s -1 >server.log 2>&1 & server=$!
    await server.log listening
    anabranch wrap --udp-port 0 $(secure gnb) -- iperf3 -c 127.0.0.1 --sctp -n 1M $options >client.log || cat client.log
    wait $server
    grep -c "iperf Done" client.log
done
grep -q "^EXPORTER_SECRET " keys.log && echo keys
"#;
    if let Some((said, _)) = script(body) {
        assert_eq!(said, "1\n1\n1\nkeys\n");
    }
}

/// Each refusal is an error of `connect`, and both commands say why.
#[test]
fn a_peer_with_a_wrong_certificate_is_refused() {
    let body = r#"
listens $(secure amf)
# A server that this client does not trust, a client that the server does not trust, and a name.
for options in "$(secure gnb another)" "$(secure stranger)" "$(secure gnb) --tls-name spiffe://example.org/smf"; do
    sends $options && echo sent
    grep -o "Connection refused" client.log
    grep -o "an association was refused: 127.0.0.1:5002: .*" client.log
done
kill $server; wait $server || true
grep -c "the line" server.log || true
"#;
    let Some((said, _)) = script(body) else {
        return;
    };
    let lines: Vec<&str> = said.lines().collect();
    let [first, why, second, cause, third, name, none] = lines[..] else {
        panic!("{said}");
    };
    assert_eq!([first, second, third], ["Connection refused"; 3]);
    assert!(why.contains("authority"), "{why}");
    assert!(cause.contains("cause 13"), "{cause}");
    assert!(name.contains("none of the expected names"), "{name}");
    assert_eq!(none, "0");
}

/// A program without protection, at either end, gets an error and does not wait.
#[test]
fn a_peer_without_protection_is_refused() {
    let body = r#"
listens $(secure amf)
sends && echo sent
grep -o "Connection refused" client.log
await server.log "an association was refused: port 5002: a peer does not offer"
kill $server; wait $server || true
listens
sends $(secure gnb) && echo sent
grep -o "Connection refused" client.log
grep -o "without the DTLS chunk, which is required" client.log
kill $server; wait $server || true
"#;
    if let Some((said, record)) = script(body) {
        let expected =
            "Connection refused\nConnection refused\nwithout the DTLS chunk, which is required\n";
        assert_eq!(said, expected);
        assert!(!contains(&record, LINE));
    }
}

/// A command joins the host of another one only if both have the same protection, and a program
/// that starts another host in place of one that was killed gets a protected one.
#[test]
fn hosts_are_shared_and_begun_again_with_their_protection() {
    let body = r#"
anabranch wrap --host $(secure amf) 2>host.log & host=$!
await host.log "a host has UDP port 9899"
anabranch wrap $(secure amf) -- true 2>&1 | grep -o "use the host of another command"
for options in "" "$(secure gnb)" "--secure --psk-file psk"; do
    anabranch wrap $options -- true 2>refused.log && echo joined
    grep -o "its host has --secure" refused.log
done
# The same options, but the file was replaced.
cp amf.pem another.pem && mv another.pem amf.pem
anabranch wrap $(secure amf) -- true 2>refused.log && echo joined
grep -o "its host has --secure" refused.log
kill $host; wait $host || true
rm -f server.log
mkdir elsewhere
# The shell is no SCTP program; ncat starts another host after the first one has ended.
exec 7<> <(true)
(anabranch wrap --no-seccomp $(secure amf) -- bash -c 'cd elsewhere; kill -9 $PPID; while kill -0 $PPID; do sleep 0.05; done; exec ncat -v --sctp -l 5002' <&7 >server.log 2>&1 || true) 2>/dev/null &
await server.log "Listening.*0.0.0.0"
sends && echo sent
grep -o "Connection refused" client.log
sends $(secure gnb) || cat client.log
await server.log "the line"
echo protected
"#;
    if let Some((said, record)) = script(body) {
        let refused = "its host has --secure\n".repeat(4);
        let expected =
            format!("use the host of another command\n{refused}Connection refused\nprotected\n");
        assert_eq!(said, expected);
        assert!(!contains(&record, LINE));
    }
}

/// Options of draft-ietf-tsvwg-sctp-dtls-chunk-04 §8.4, MSG_PROTECTED and `sac_info`, with a
/// program that is the key management.
#[test]
fn a_program_manages_keys_by_socket_options() {
    let folder = tempfile::tempdir().expect("a directory");
    let ours = libsctp().to_string_lossy().into_owned();
    let program = compile_with("dtls", folder.path(), &[&ours]);
    let output = run_with(Command::new(program).arg("5001"), &[library(), libsctp()]);
    assert_eq!(text(&output), "dtls\n");
}

#[test]
fn a_program_does_not_manage_the_keys_of_its_host() {
    let folder = tempfile::tempdir().expect("a directory");
    let ours = libsctp().to_string_lossy().into_owned();
    let program = compile_with("dtls", folder.path(), &[&ours]);
    let secret = PresharedSettings::new(b"a secret of both ends");
    let config = encapsulated(&[]).with_preshared_secret(secret);
    let mut command = Command::new(program);
    command.args(["5001", "managed"]);
    let output = run_at(&mut command, &[library(), libsctp()], config);
    assert_eq!(text(&output), "managed\n");
}

/// The C library lists the cipher suites of the host.
#[test]
fn the_suites_of_the_c_library_are_those_of_the_host() {
    use anabranch_net::sctp::dtls::Suite;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("libsctp/libsctp.c");
    let source = std::fs::read_to_string(source).expect("the library");
    let all = Suite::ALL.map(|it| {
        let [first, second] = it.code();
        format!("{{ {first:#04x}, {second:#04x} }}")
    });
    let list = format!("[][2] = {{ {} }};", all.join(", "));
    assert!(source.contains(&list), "{list}");
}

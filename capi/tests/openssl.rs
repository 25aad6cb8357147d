//! DTLS over SCTP (RFC 6083) between OpenSSL's own `s_client` and `s_server`, under `anabranch
//! wrap`, and the commands of this stack. OpenSSL is unmodified, built with SCTP by
//! `scripts/openssl-sctp`; without it these tests are skipped with a message.

mod common;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use anabranch_interop::namespace::{allowed, inside};
use common::{library, text, tied};

/// Options of the ends, and functions for all scripts. An end writes its output to a file; `await`
/// waits until the file contains a text.
const BEGIN: &str = r#"
certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 90 -subj /CN=$1 -keyout $1.key -out $1.pem "${@:2}" 2>/dev/null
}
certificate authority
for name in amf gnb; do
    certificate $name -addext subjectAltName=URI:spiffe://example.org/$name -addext basicConstraints=critical,CA:FALSE -CA authority.pem -CAkey authority.key
done
own=(--security rfc6083 --tls-ca authority.pem)
accepting=(-dtls1_2 -sctp -accept 5001 -naccept 1 -cert amf.pem -key amf.key -CAfile authority.pem -Verify 1 -verify_return_error)
connecting=(-dtls1_2 -sctp -connect 127.0.0.1:5001 -cert gnb.pem -key gnb.key -CAfile authority.pem -verify_return_error)
await() { for ((i = 0; i < 3000; i++)); do grep -qs -- "$2" $1 && return; sleep 0.1; done; echo "no \"$2\":"; cat $1; exit 1; }
# The file contains the whole text, in lines of digits only.
long() { await $1 "^40000$"; grep -xE "[0-9]+" $1 | cmp - text; }
seq 40000 >text
mkfifo to-server to-client
"#;

/// Runs the script with OpenSSL's programs in a network namespace, in an empty directory. If this
/// machine cannot do so, prints the reason and returns `None`.
fn script(body: &str) -> Option<String> {
    let skipped = |why: &str| {
        eprintln!("left out: {why}");
        None::<String>
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let Ok(openssl) = root.join("target/openssl-sctp/openssl").canonicalize() else {
        return skipped("OpenSSL with SCTP is not built (scripts/openssl-sctp)");
    };
    if let Err(reason) = allowed() {
        return skipped(&reason);
    }
    let libraries = library();
    // target/*/deps contains the tests, and target/* the programs.
    let anabranch = libraries.parent()?.parent()?.join("anabranch");
    if !anabranch.is_file() {
        return skipped(&format!("{} is not built", anabranch.display()));
    }
    let folder = tempfile::tempdir().expect("a directory");
    symlink(anabranch, folder.path().join("anabranch")).expect("a link");
    symlink(openssl, folder.path().join("s")).expect("a link");
    let mut command = Command::new("bash");
    command
        .args(["-ec", &format!("exec 2>&1\nPATH=.:$PATH\n{BEGIN}{body}")])
        .current_dir(folder.path());
    let run = || {
        let output = tied(&command)
            .env("ANABRANCH_PRELOAD", library())
            .stdin(Stdio::null())
            .output();
        Ok(text(&output.expect("bash is there")))
    };
    Some(inside(run).expect("a network"))
}

/// Messages should arrive in both directions, also after a change of the keys. Then the client
/// closes the connection. Both ends are OpenSSL and use this stack through the sockets API.
#[test]
fn openssl_with_itself() {
    let said = script(
        r#"
anabranch wrap --auth -- s s_server "${accepting[@]}" -client_renegotiation <to-server >server.log 2>&1 & server=$!
exec 8>to-server
await server.log ACCEPT
anabranch wrap --auth --udp-port 0 -- s s_client "${connecting[@]}" <to-client >client.log 2>&1 & client=$!
exec 9>to-client
echo "from the client" >&9; await server.log "^from the client"
echo "from the server" >&8; await client.log "^from the server"
echo R >&9; await client.log RENEGOTIATING
echo "with new keys" >&9; await server.log "^with new keys"
echo "answer" >&8; await client.log "^answer"
exec 9>&-
wait $client; wait $server
await server.log "CONNECTION CLOSED"
await server.log "1 server renegotiates"
echo both ended
"#,
    );
    if let Some(said) = said {
        assert_eq!(said, "both ended\n");
    }
}

#[test]
fn openssl_with_the_commands_of_this_stack() {
    let said = script(
        r#"
anabranch serve echo --once "${own[@]}" --tls-cert amf.pem --tls-key amf.key --tls-name spiffe://example.org/gnb >server.log 2>&1 & server=$!
await server.log listening
anabranch wrap --auth --udp-port 0 -- s s_client "${connecting[@]}" <to-client >client.log 2>&1 & client=$!
exec 9>to-client
echo "a text" >&9; await client.log "^a text"
exec 9>&-
wait $client; wait $server
await server.log "closed gracefully"

anabranch wrap --auth -- s s_server "${accepting[@]}" <to-server >server.log 2>&1 & server=$!
exec 8>to-server
await server.log ACCEPT
anabranch cat 127.0.0.1 "${own[@]}" --tls-cert gnb.pem --tls-key gnb.key --tls-name spiffe://example.org/amf <to-client >client.log 2>&1 & client=$!
exec 9>to-client
echo "from the client" >&9; await server.log "^from the client"
echo "from the server" >&8; await client.log "^from the server"
exec 9>&-
wait $client; wait $server
await server.log "CONNECTION CLOSED"
echo all ended
"#,
    );
    if let Some(said) = said {
        assert_eq!(said, "all ended\n");
    }
}

/// OpenSSL's client ends the connection if its request for new keys is declined.
#[test]
fn openssl_is_not_given_other_keys() {
    let said = script(
        r#"
anabranch serve echo --once "${own[@]}" --tls-cert amf.pem --tls-key amf.key >server.log 2>&1 & server=$!
await server.log listening
anabranch wrap --auth --udp-port 0 -- s s_client "${connecting[@]}" <to-client >client.log 2>&1 & client=$!
exec 9>to-client
echo "a text" >&9; await client.log "^a text"
echo R >&9; await client.log "no renegotiation"
wait $client || true; wait $server || true
await server.log "the peer ended the connection by an alert"
echo declined
"#,
    );
    if let Some(said) = said {
        assert_eq!(said, "declined\n");
    }
}

/// 5 % of the packets are lost in each direction, while a long text is sent both ways. The end of
/// the connection is not tested, because its last packet may be lost and the process that could
/// retransmit it may have ended.
#[test]
fn long_texts_pass_a_lossy_link() {
    let said = script(
        r#"
cat >link.toml <<'EOF'
anabranch = 1
name = "lossy"
[world]
duration = "60 s"
[[node]]
name = "near"
[[node]]
name = "far"
[[link]]
name = "link"
between = ["near", "far"]
rate = "100 Mbit/s"
delay = "2 ms"
queue = "200 packets"
loss = { forward = { model = "bernoulli", probability = 0.05 }, backward = { model = "bernoulli", probability = 0.05 } }
EOF
anabranch emulate link.toml >link.log 2>&1 & link=$!
await link.log emulating

anabranch serve echo "${own[@]}" --tls-cert amf.pem --tls-key amf.key >server.log 2>&1 & server=$!
await server.log listening
anabranch wrap --auth --udp-port 0 --peer-udp-port 9900 -- s s_client "${connecting[@]}" <to-client >client.log 2>&1 & client=$!
exec 9>to-client
cat text >&9; long client.log
exec 9>&-
kill $server; wait $client $server || true

anabranch wrap --auth -- s s_server "${accepting[@]}" <to-server >server.log 2>&1 & server=$!
exec 8>to-server
await server.log ACCEPT
anabranch cat 127.0.0.1 --peer-udp-port 9900 "${own[@]}" --tls-cert gnb.pem --tls-key gnb.key <to-client >client.log 2>&1 & client=$!
exec 9>to-client
cat text >&9; long server.log
cat text >&8; long client.log
kill $client $server; kill -INT $link; wait $link
grep -q "dropped: [1-9][0-9]* loss" link.log && echo all arrived
"#,
    );
    if let Some(said) = said {
        assert_eq!(said, "all arrived\n");
    }
}

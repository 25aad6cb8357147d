//! Handshake, exported key and records of RFC 6083 with OpenSSL as the peer. `openssl s_server`
//! runs over UDP, because Debian's OpenSSL is built without SCTP. Each record is a datagram.
#![cfg(feature = "rfc6083")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anabranch_dtls::Role;
use anabranch_dtls::rfc6083::{Connection, HandshakeAction, Opened, Rfc6083Settings};
use anabranch_dtls::tls::{Credentials, Trust};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// Time limit after which the test counts as hanging.
const HANGS: Duration = Duration::from_secs(120);

/// A certificate chain and key in PEM format.
fn issue(issuer: &CertifiedIssuer<'static, KeyPair>, name: &str) -> [String; 2] {
    let mut params = CertificateParams::new(vec![name.to_string()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let chain = params.signed_by(&key, issuer).unwrap().pem();
    [chain, key.serialize_pem()]
}

/// The lines of a reader, which a thread reads.
fn lines(reader: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    thread::spawn(move || {
        for line in BufReader::new(reader).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    receive
}

fn wait_for(lines: &Receiver<String>, part: &str) -> String {
    loop {
        let line = lines.recv_timeout(HANGS).expect(part);
        if line.contains(part) {
            return line;
        }
    }
}

#[test]
fn openssl_agrees_on_keys_and_reads_and_writes_messages() {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [chain, key] = issue(&issuer, "server.example.org");
    for (name, text) in [
        ("ca.pem", &issuer.pem()),
        ("own.pem", &chain),
        ("own.key", &key),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
    // A free port is selected here, because OpenSSL cannot select one itself.
    let port = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let server = Command::new("openssl")
        .current_dir(folder)
        .args([
            "s_server",
            "-dtls1_2",
            "-accept",
            &format!("127.0.0.1:{port}"),
        ])
        .args(["-cert", "own.pem", "-key", "own.key", "-CAfile", "ca.pem"])
        .args(["-Verify", "1", "-verify_return_error"])
        .args(["-keymatexport", "EXPORTER_DTLS_OVER_SCTP"])
        .args(["-keymatexportlen", "64"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl");
    let mut server = KillOnDrop(server);
    let said = lines(server.0.stdout.take().unwrap());
    wait_for(&said, "ACCEPT");

    let [chain, key] = issue(&issuer, "client.example.org");
    let credentials = Credentials::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    let trust = Trust::default().with_authorities(issuer.pem().as_bytes());
    let trust = trust.unwrap().with_name("server.example.org");
    let settings = Arc::new(Rfc6083Settings::new(&credentials, trust).unwrap());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(HANGS)).unwrap();
    #[expect(clippy::disallowed_methods, reason = "dimpl requires a time")]
    let now = Instant::now();
    let mut connection = Connection::new(settings, Role::Client, now);
    let mut shared = None;
    let mut buffer = vec![0; 20_000];
    while !connection.is_established() {
        while let Some(action) = connection.poll() {
            match action {
                HandshakeAction::Send { record, .. } => drop(socket.send(&record).unwrap()),
                HandshakeAction::SetKey { key, .. } => shared = Some(key),
                HandshakeAction::Fail(why) => panic!("{why}"),
                _ => {}
            }
        }
        let length = socket.recv(&mut buffer).expect("an answer");
        let mut datagram = &buffer[..length];
        // OpenSSL may send several records in one UDP datagram.
        while datagram.len() > 12 {
            let length = 13 + usize::from(u16::from_be_bytes([datagram[11], datagram[12]]));
            connection.handle_message(&datagram[..length]);
            datagram = &datagram[length..];
        }
    }
    let exported = wait_for(&said, "Keying material: ");
    let shared = shared.unwrap();
    let ours = shared.iter().map(|it| format!("{it:02X}"));
    assert_eq!(
        exported.split_once(": ").unwrap().1,
        ours.collect::<String>()
    );

    let record = connection.seal(b"from the client\n").unwrap();
    socket.send(&record).unwrap();
    wait_for(&said, "from the client");
    let mut input = server.0.stdin.take().unwrap();
    input.write_all(b"from the server\n").unwrap();
    let length = socket.recv(&mut buffer).expect("a message");
    let opened = connection.open(&buffer[..length]);
    assert_eq!(opened, Ok(Opened::Data(b"from the server\n".to_vec())));
    socket.send(&connection.close().unwrap()).unwrap();
    let length = socket.recv(&mut buffer).expect("its close_notify");
    assert_eq!(connection.open(&buffer[..length]), Ok(Opened::Closed));
}

/// A process that is killed at the end of the test, even if the test fails.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

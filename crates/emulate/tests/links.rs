//! Symbolic links that another user may have created at paths at which a namespace creates files.
#![cfg(target_os = "linux")]

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::symlink;

use anabranch_emulate::namespace::{Namespace, NamespaceError, Setup};

/// Another user can guess these names: the process id is known, and the id of a thread is a small
/// number.
#[test]
fn no_file_of_a_namespace_is_written_through_a_link() {
    let folder = tempfile::tempdir().expect("a directory");
    let victim = folder.path().join("victim");
    fs::write(&victim, "precious").expect("written");
    let process = std::process::id();
    let links: Vec<_> = (1..200)
        .map(|thread| format!("anabranch-hosts-{process}-ThreadId({thread})"))
        .map(|name| std::env::temp_dir().join(name))
        .collect();
    for link in &links {
        symlink(&victim, link).expect("a link");
    }
    let made = Namespace::new(Setup {
        name: "phone".to_owned(),
        addresses: vec![IpAddr::from([10, 0, 0, 1])],
        mtu: 1500,
        hosts: "10.0.0.1 phone\n".to_owned(),
    });
    for link in &links {
        // Removes the link, which must still exist unchanged.
        let _ = fs::remove_file(link);
    }
    assert_eq!(fs::read_to_string(&victim).expect("read"), "precious");
    match made {
        Err(NamespaceError::NotAllowed(_) | NamespaceError::Tun(_)) => {
            eprintln!("left out: this process may not make a network namespace, or has no TUN");
        }
        Err(error) => panic!("{error}"),
        Ok((namespace, _tun)) => {
            let read = || fs::read_to_string("/etc/hosts").expect("it is there");
            let hosts = namespace.run(read).expect("a thread");
            assert!(hosts.ends_with("10.0.0.1 phone\n"), "{hosts}");
            assert!(!read().contains("10.0.0.1 phone"), "the host's own");
        }
    }
}
